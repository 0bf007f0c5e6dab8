//! Experiments as Python says them, checked.

use super::history::{Person, UserTables};
use super::{Experiments, Exposure};
use crate::experiments::arms::Arms;
use crate::experiments::sums::ArmSums;
use crate::experiments::trial::{Trial, Work};
use crate::panes::labels::Labels;
use crate::spec::experiments::ExperimentsSpec;
use crate::spec::{RowLimit, Spec};
use hashbrown::HashTable;

/// Combinations of values under which rows are kept; all further ones are `other`.
const MAX_LABELS: usize = 20_000;
/// 2200-01-01: days of rows stay far within 32 bits, and times in milliseconds within 64.
const MAX_DAY: i64 = 84_006;

impl Experiments {
    /// The experiments of a whole spec; an error where places do not fit.
    pub fn new(spec: &ExperimentsSpec, whole: &Spec) -> Result<Self, String> {
        Self::bounded(spec, whole.dimensions.len(), whole.limits.of_days())
    }

    /// `limit`: of the rows by day, and of those by time.
    pub fn bounded(
        spec: &ExperimentsSpec,
        dimensions: usize,
        limit: RowLimit,
    ) -> Result<Self, String> {
        check(spec, dimensions)?;
        let mut arms: Vec<Arms> = Vec::new();
        let mut exposures = Vec::new();
        for exposure in &spec.exposures {
            exposures.push(Exposure {
                days: exposure.days.0..exposure.days.1,
                arms: place_of(&mut arms, exposure.dimension, &exposure.arms)?,
                spec: exposure.clone(),
            });
        }
        let mut trials = Vec::new();
        for trial in &spec.trials {
            let is_attributed = spec.exposures[trial.exposure].is_attributed;
            let width = spec.sums.len();
            let built = Trial::new(trial, is_attributed, trial.arms.len(), width)?;
            trials.push((built, place_of(&mut arms, trial.dimension, &trial.arms)?));
        }
        let of_arms = arms.iter().map(|arms| arms.dimension);
        let mut places: Vec<usize> = of_arms.chain(spec.explored.iter().copied()).collect();
        places.sort_unstable();
        places.dedup();
        let days = exposures.iter().map(|exposure: &Exposure| &exposure.days);
        let sums: Vec<ArmSums> = trials
            .iter()
            .map(|(t, _)| ArmSums::new(t.width()))
            .collect();
        Ok(Self {
            columns: spec.columns.clone(),
            is_stored: vec![false; spec.columns.len()],
            limit: limit.rows,
            every_day: days.clone().map(|days| days.start).min().unwrap_or(0)
                ..days.map(|days| days.end).max().unwrap_or(0),
            exposures,
            arms,
            labels: Labels::new(places, MAX_LABELS),
            looked_at: 0,
            tables: UserTables::new(spec.columns.len(), limit.of_a_user),
            final_ms: 0,
            sample_bits: 0,
            delta: sums.clone(),
            sums,
            is_changed: vec![false; trials.len()],
            trials,
            dirty: HashTable::new(),
            last_dirty: None,
            is_stale: false,
            person: Person::default(),
            work: Work::default(),
        })
    }
}

/// The place of these arms among all, where they are put if they are missing.
fn place_of(all: &mut Vec<Arms>, dimension: usize, values: &[String]) -> Result<usize, String> {
    let is_it = |arms: &Arms| arms.dimension == dimension && arms.values == values;
    if let Some(place) = all.iter().position(is_it) {
        return Ok(place);
    }
    all.push(Arms::new(dimension, values.to_vec())?);
    Ok(all.len() - 1)
}

/// An error where places or days do not fit.
fn check(spec: &ExperimentsSpec, dimensions: usize) -> Result<(), String> {
    let first = ["impressions", "outcomes"];
    let names = spec.sums.iter().map(|sum| sum.name.as_str());
    if !spec.trials.is_empty() && !names.take(2).eq(first) {
        return Err("the first sums of experiments are impressions and outcomes".to_owned());
    }
    if spec.columns.len() != spec.sums.len() {
        return Err("each sum of experiments has a column".to_owned());
    }
    for exposure in &spec.exposures {
        let (start, stop) = exposure.days;
        let days = [start, stop, exposure.first_day];
        if days.iter().any(|day| !(-MAX_DAY..=MAX_DAY).contains(day)) || start > stop {
            return Err(format!("an exposure has the days [{start}, {stop})"));
        }
        if exposure.dimension >= dimensions || !(0..1 << 62).contains(&exposure.code) {
            return Err("an exposure has no such dimension, or a code that is no code".to_owned());
        }
    }
    if spec.explored.iter().any(|place| *place >= dimensions) {
        return Err("experiments are explored by a dimension that there is not".to_owned());
    }
    for trial in &spec.trials {
        if trial.dimension >= dimensions || trial.exposure >= spec.exposures.len() {
            return Err("an experiment has no such dimension or exposure".to_owned());
        }
    }
    Ok(())
}
