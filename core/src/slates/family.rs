//! Values of slates by name, and the columns of a family of them: Python declares a metric and hands
//! over which columns it wants; here is only which function a name stands for.

use crate::moments::Moments;
use crate::slates::values::{Convention, MAX_ITEMS, SlateContext, UNIT};
use crate::slates::{ranking, scoring};
use crate::spec::sums::{ColumnSpec, FamilySpec};

/// Stands for the positions that people see, a cut-off that each slate has.
const VISIBLE: i64 = -1;

/// Slate, cut-off k (0: none) and convention → value in units of 1e-9.
type Function = fn(&SlateContext, i64, Convention) -> i64;

/// Slates over which a mean is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    All,
    Engaged,
    Contrasted,
    Sampled,
    Reference,
    Gauc,
    Paired,
}

impl Population {
    /// The population of a name.
    pub fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "all" => Self::All,
            "engaged" => Self::Engaged,
            "contrasted" => Self::Contrasted,
            "sampled" => Self::Sampled,
            "reference" => Self::Reference,
            "gauc" => Self::Gauc,
            "paired" => Self::Paired,
            _ => return Err(format!("no population {name:?} of slates")),
        })
    }

    /// Whether a slate belongs to it.
    pub fn contains(self, slate: &SlateContext) -> bool {
        match self {
            Self::All => true,
            Self::Engaged => slate.relevant_count() > 0,
            Self::Contrasted => slate.is_contrasted(),
            Self::Sampled => slate.has_held_out,
            Self::Reference => slate.reference_size > 0,
            Self::Gauc => slate.has_both_classes(),
            Self::Paired => slate.has_scored_pairs(),
        }
    }
}

/// The function of a name, and the conventions it knows besides the default.
fn function(name: &str) -> Option<(Function, &'static [Convention])> {
    use Convention::{Exponential, Jurity, Primer, Shown, TauB};
    Some(match name {
        "precision_ratio" => (ranking::precision, &[Shown]),
        "recall_ratio" => (ranking::recall, &[]),
        "hit_ratio" => (ranking::hit, &[]),
        "mrr" => (ranking::reciprocal_rank, &[]),
        "arhr" => (ranking::reciprocal_hits, &[]),
        "map_ratio" => (ranking::average_precision, &[Jurity, Primer]),
        "mar_ratio" => (ranking::average_recall, &[Jurity, Primer]),
        "cg" => (ranking::cumulative_gain, &[]),
        "dcg" => (ranking::discounted_gain, &[]),
        "ndcg_ratio" => (ranking::normalized_gain, &[Jurity, Exponential]),
        "fcp_ratio" => (ranking::concordance, &[]),
        "kendall_tau" => (ranking::kendall, &[TauB]),
        "spearman_rho" => (ranking::spearman, &[]),
        "hit_sampled_ratio" => (ranking::sampled_hit, &[]),
        "ndcg_sampled_ratio" => (ranking::sampled_gain, &[]),
        "index_recall_ratio" => (ranking::index_recall, &[]),
        "gauc_ratio" => (scoring::grouped_auc, &[]),
        "bpr_loss" => (scoring::bpr, &[]),
        "hinge_loss" => (scoring::hinge, &[]),
        "margin_loss" => (scoring::margin, &[]),
        _ => return None,
    })
}

/// A value of slates, 0 outside its population.
#[derive(Clone, Copy, Debug)]
pub struct SlateValue {
    function: Function,
    k: i64,
    convention: Convention,
    population: Population,
}

impl SlateValue {
    /// An error where a name is unknown or k is not a cut-off. `k`: 0 for none, or `VISIBLE`.
    pub fn new(name: &str, k: i64, convention: &str, population: &str) -> Result<Self, String> {
        let (function, conventions) =
            function(name).ok_or_else(|| format!("no value {name:?} of slates"))?;
        let convention = Convention::parse(convention)
            .filter(|x| *x == Convention::Default || conventions.contains(x))
            .ok_or_else(|| format!("{name} has no convention {convention:?}"))?;
        if !(VISIBLE..=MAX_ITEMS as i64).contains(&k) {
            return Err(format!("{name} at {k}: cut-offs are at most {MAX_ITEMS}"));
        }
        Ok(Self {
            function,
            k,
            convention,
            population: Population::parse(population)?,
        })
    }

    /// The value in units of 1e-9.
    pub fn units(&self, slate: &SlateContext) -> i64 {
        if !self.population.contains(slate) {
            return 0;
        }
        let k = match self.k {
            VISIBLE => slate.visible,
            k => k,
        };
        (self.function)(slate, k, self.convention)
    }

    /// The value in millionths, as it is added for users.
    pub fn millionths(&self, slate: &SlateContext) -> i64 {
        const COARSER: i64 = UNIT / 1_000_000;
        (self.units(slate) + COARSER / 2).div_euclid(COARSER)
    }
}

#[derive(Debug)]
struct Column {
    value: SlateValue,
    at: usize,
    moments: Moments,
}

/// A family of values of slates, and where they stand.
#[derive(Debug)]
pub struct SlateFamily {
    /// The statistic's name.
    pub statistic: String,
    /// Number of its columns.
    pub width: usize,
    populations: Vec<Population>,
    columns: Vec<Column>,
}

impl SlateFamily {
    /// An error where a name is unknown, or columns do not fit.
    pub fn new(spec: &FamilySpec) -> Result<Self, String> {
        let populations: Result<Vec<_>, _> = spec
            .populations
            .iter()
            .map(|name| Population::parse(name))
            .collect();
        let columns: Result<Vec<_>, _> = spec.columns.iter().map(|c| column(c, spec)).collect();
        if spec.populations.len() > spec.width {
            return Err(format!(
                "{}: {} columns are too few",
                spec.statistic, spec.width
            ));
        }
        Ok(Self {
            statistic: spec.statistic.clone(),
            width: spec.width,
            populations: populations?,
            columns: columns?,
        })
    }

    /// Columns of the populations that every slate belongs to: the caller counts them for each
    /// slate, with feedback or without.
    pub fn of_every_slate(&self) -> impl Iterator<Item = usize> {
        let all = self.populations.iter().enumerate();
        all.filter(|(_, population)| **population == Population::All)
            .map(|(at, _)| at)
    }

    /// Write what a slate adds to the statistic into its `width` columns; populations that every
    /// slate belongs to are left 0.
    pub fn amounts(&self, slate: &SlateContext, out: &mut [i64]) {
        out.fill(0);
        for (amount, population) in out.iter_mut().zip(&self.populations) {
            *amount = i64::from(*population != Population::All && population.contains(slate));
        }
        for column in &self.columns {
            if !column.value.population.contains(slate) {
                continue;
            }
            let value = column.value.units(slate);
            if let Some(out) = out.get_mut(column.at..column.at + column.moments.width()) {
                column.moments.write(value, out);
            }
        }
    }
}

fn column(spec: &ColumnSpec, family: &FamilySpec) -> Result<Column, String> {
    let value = SlateValue::new(&spec.name, spec.k, &spec.convention, &spec.population)?;
    let moments = Moments::new(spec.is_single, spec.square_limbs)?;
    let end = spec.at.checked_add(moments.width());
    if spec.at < family.populations.len() || end.is_none_or(|end| end > family.width) {
        return Err(format!("{} stands outside its statistic", spec.name));
    }
    Ok(Column {
        value,
        at: spec.at,
        moments,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn family(field: &str, value: Value) -> Result<SlateFamily, String> {
        let mut spec = json!({
            "statistic": "scoring",
            "width": 8,
            "populations": ["gauc"],
            "columns": [{"name": "gauc_ratio", "k": 0, "convention": "", "population": "gauc",
                         "at": 1, "is_single": true, "square_limbs": 2}],
        });
        spec["columns"][0][field] = value;
        SlateFamily::new(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn what_is_unknown_is_an_error_at_start() {
        assert!(family("k", json!(1000)).is_ok());
        for (field, value, message) in [
            ("name", json!("no_such"), "no value"),
            ("convention", json!("shown"), "no convention"),
            ("population", json!("nobody"), "no population"),
            ("k", json!(1001), "cut-offs"),
            ("square_limbs", json!(3), "limbs"),
            ("at", json!(0), "outside"),
            ("at", json!(6), "outside"),
            ("at", json!(1_000_000), "outside"),
        ] {
            let error = family(field, value).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
