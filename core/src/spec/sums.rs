//! What Python says of sums: which ones there are, the statistics that they fill, and the values of
//! slates that are wanted.

use std::collections::HashMap;

use serde::Deserialize;

/// One additive statistic: `width` integers, the first at `at` (block * 64 + place).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistic {
    pub name: String,
    pub at: u32,
    pub width: u32,
    /// The sums that fill it, in this order; none: a family of values of slates does.
    pub of: Vec<StatisticPart>,
    pub in_windows: bool,
    /// Whether it is counted since the start, too.
    pub in_totals: bool,
}

/// A sum, and what divides it into classes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatisticPart {
    pub sum: SumSpec,
    pub by: Option<By>,
}

/// A sum by its name; `at`: the place of a policy, of a kind of feedback or of an own sum, a
/// cut-off or a threshold. Of values of slates `slates` says which.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct SumSpec {
    pub name: String,
    #[serde(default)]
    pub at: i64,
    #[serde(default)]
    pub slates: Option<SlateSum>,
}

/// The size of a population of slates, or the sum of a value over it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct SlateSum {
    pub population: String,
    pub value: Option<String>,
    #[serde(default)]
    pub k: i64,
    #[serde(default)]
    pub convention: String,
}

/// What divides a sum into classes: times and magnitudes by their upper bounds, ascending, scores by
/// inner edges, probabilities into so many bins, positions into so many classes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    UserGroup,
    Position(u32),
    Time(Vec<i64>),
    Score(Vec<f64>),
    Probability(u32),
    Magnitude(Vec<i64>),
}

/// A sum of one's own: which events add to it, and what.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnSum {
    /// The kind of events.
    pub kind: String,
    /// Of `clicks` the kind of feedback, by its place.
    pub feedback: Option<u8>,
    /// Of `conversions`, whether each line counts.
    pub is_of_lines: bool,
    /// Place of the amount; none: each event is 1.
    pub amount: Option<usize>,
    /// The conditions that the event has to meet, and the impression that it joins: a bit each.
    pub own: u32,
    pub joined: u32,
    /// Places of dimensions, and the values under which events count.
    pub dimensions: Vec<(usize, Vec<String>)>,
    /// Whether only events that have a user count.
    pub is_of_users: bool,
}

/// Which values of slates are wanted, and what they are made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlatesSpec {
    pub tables: TableSpec,
    pub families: Vec<FamilySpec>,
    #[serde(default)]
    pub visible: Option<VisibleSpec>,
}

/// How many positions people see, by the value of a dimension.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisibleSpec {
    /// Its place.
    pub dimension: usize,
    pub values: HashMap<String, i64>,
    /// With any other value.
    pub others: i64,
}

/// The statistic of a family: sizes of populations first, then columns of values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilySpec {
    pub statistic: String,
    pub width: usize,
    /// Names in the order of their columns.
    pub populations: Vec<String>,
    pub columns: Vec<ColumnSpec>,
}

/// Where the sums of one value begin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    pub name: String,
    pub k: i64,
    pub convention: String,
    pub population: String,
    pub at: usize,
    pub is_single: bool,
    pub square_limbs: usize,
}

/// Tables of numbers that Python computes exactly and hands over.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Gain of each grade from 1, ascending.
    pub gains: Vec<f64>,
    /// 2^gain - 1 of each.
    pub exponential_gains: Vec<f64>,
    /// Of the margin loss.
    pub margin: f64,
    /// 1 / i of rank i (0 at 0), in units of a table.
    pub reciprocal: Vec<i64>,
    /// 1 / log2(i + 1) of rank i (0 at 0), in units of a table.
    pub discount: Vec<i64>,
}
