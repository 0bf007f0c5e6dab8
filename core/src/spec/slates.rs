//! What Python says of slates: which values are wanted, and what they are made of.

use serde::Deserialize;

/// Which values of slates are wanted, and what they are made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlatesSpec {
    pub tables: TableSpec,
    pub families: Vec<FamilySpec>,
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
