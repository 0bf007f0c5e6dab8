//! What Python says of experiments, once. Names stay there: here they are places.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::spec::sums::SumSpec;

/// All experiments; days are those of UTC since 1970-01-01.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentsSpec {
    /// What is added up; the first two are impressions and outcomes.
    pub sums: Vec<SumSpec>,
    /// Name of the stored column of each sum.
    pub columns: Vec<String>,
    /// Places of dimensions by which experiments are read apart.
    pub explored: Vec<usize>,
    pub exposures: Vec<ExposureSpec>,
    pub trials: Vec<TrialSpec>,
    #[serde(default)]
    pub found: FoundSpec,
    /// Those whose unit is not the user, by their units.
    #[serde(default)]
    pub units: Vec<UnitSpec>,
}

/// Experiments of one unit: a value of a dimension, or a slot of time of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitSpec {
    /// Place of the dimension whose values are the units; None: everything is one.
    pub dimension: Option<usize>,
    /// Values that are kept whatever the sample of values.
    pub named: Vec<String>,
    /// In which time is cut: a unit is a slot then.
    pub slots: Option<SlotsSpec>,
    /// Under which rows are stored.
    pub code: i64,
    /// Their exposures and trials, of the sums of all.
    pub experiments: Box<ExperimentsSpec>,
}

/// Slots of time, in each of which a value of the dimension has one arm of the only exposure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotsSpec {
    /// When the first one begins.
    pub start_ms: i64,
    pub length_ms: i64,
    /// What is before this time of a slot counts for nothing.
    pub washout_ms: i64,
    /// Value → numbers of the arms of its slots, over and over.
    pub schedule: BTreeMap<String, Vec<u32>>,
    /// The same of all other values; empty: they are in no slot.
    pub others: Vec<u32>,
}

/// Which experiments are looked for that are not declared.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundSpec {
    /// How many there may be: so many exposures, the last ones, and trials of them are free for them.
    pub slots: usize,
    /// Places of the paths where they are looked for.
    pub paths: Vec<usize>,
    pub most_arms: usize,
    /// Of a key or an arm in UTF-8.
    pub most_bytes: usize,
    /// Days without an event that names it after which one is retired.
    pub silent_days: i64,
    /// Days after its first one after which it is.
    pub most_days: i64,
    /// Keys of declared experiments whose unit is another.
    #[serde(default)]
    pub taken: Vec<String>,
}

/// What exposes a user to one of the arms, on the first day or later.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExposureSpec {
    pub by: ExposedBy,
    /// What the experiment is called in events of exposures, and where a value says the arms of
    /// several.
    pub key: String,
    pub arms: Vec<String>,
    pub first_day: i64,
    /// Every event counts whenever it was, to the arm that is its own.
    pub is_attributed: bool,
    /// The days [start, stop) that are wanted.
    pub days: (i64, i64),
    /// Under which rows are stored: below 2^62.
    pub code: i64,
}

/// What says the arm.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExposedBy {
    /// Impressions, by their value of a dimension, whose place this is.
    Dimension(usize),
    /// Events of any kind, by the values at paths, whose places these are.
    Fields(Vec<usize>),
}

impl ExposureSpec {
    /// Places of the paths at which events say the arm.
    pub fn paths(&self) -> &[usize] {
        match &self.by {
            ExposedBy::Dimension(_) => &[],
            ExposedBy::Fields(paths) => paths,
        }
    }
}

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// The days [start, stop) that count.
    pub days: (i64, i64),
    /// The days [start, stop) before, of which covariates are.
    pub covariates: Option<(i64, i64)>,
    /// Place of the exposure.
    pub exposure: usize,
    /// The number of each arm of the exposure; that of the control is 1.
    pub arms: Vec<u32>,
    pub measures: Vec<MeasureSpec>,
}

impl TrialSpec {
    /// Whether another one counts the same of the same days.
    pub fn counts_as(&self, other: &Self) -> bool {
        self.days == other.days
            && self.covariates == other.covariates
            && self.measures == other.measures
    }
}

/// A ratio of two sums, by their places; without `below` of one to the number of users.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    pub above: usize,
    pub below: Option<usize>,
    /// The high limbs of numerator and denominator.
    pub high: Option<usize>,
    pub below_high: Option<usize>,
    #[serde(default)]
    pub cap: Cap,
    /// The days since a user's first that counts, [from, to), of which it is alone; else of all.
    #[serde(default)]
    pub age: Option<(i64, i64)>,
    /// Whether users count once their days of that age are over, all at once.
    #[serde(default)]
    pub is_mature: bool,
    /// Of a composite the ratios besides this one.
    #[serde(default)]
    pub others: Vec<RatioSpec>,
}

/// Another ratio of a composite.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct RatioSpec {
    pub above: usize,
    pub below: Option<usize>,
    pub high: Option<usize>,
    pub below_high: Option<usize>,
}

/// What a user counts for at most.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    #[default]
    None,
    /// In units of the numerator, on both sides of 0.
    Amount(i128),
    /// 1 of a numerator above 0, else 0.
    Any,
    /// A quantile of numerators, which readers take: sums are kept by buckets.
    Quantile,
    /// Readers take a quantile of denominators, or an amount: sums are kept by buckets of them.
    Denominator,
}

impl MeasureSpec {
    /// All ratios: itself first.
    pub fn ratios(&self) -> impl Iterator<Item = RatioSpec> {
        let first = RatioSpec {
            above: self.above,
            below: self.below,
            high: self.high,
            below_high: self.below_high,
        };
        std::iter::once(first).chain(self.others.iter().copied())
    }
}
