//! Experiments as Python says them, checked.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::history::{Person, UserTables};
use super::spans::{ExposureDays, Spans};
use super::{ALL_OUTCOMES, Experiments};
use crate::experiments::arms::{ArmsByDimension, ArmsByField, ArmsOfLabels, ValueArms};
use crate::experiments::exposures::Exposures;
use crate::experiments::found::FoundExperiments;
use crate::experiments::sums::ExperimentSums;
use crate::experiments::trial::{Trial, Work};
use crate::panes::labels::Labels;
use crate::spec::experiments::{ExperimentsSpec, ExposedBy, ExposureSpec, TrialSpec};
use crate::spec::{RowLimit, Spec};

/// Combinations of values under which rows are kept; all further ones are `other`.
const MAX_LABELS: usize = 20_000;
/// 2200-01-01: days of rows stay far within 32 bits, and times in milliseconds within 64.
const MAX_DAY: i64 = 84_006;

impl Experiments {
    /// The experiments of a whole spec; an error where places do not fit.
    pub fn new(spec: &ExperimentsSpec, whole: &Spec) -> Result<Self, String> {
        Self::bounded(spec, whole.dimensions.len(), whole.limits.of_days())
    }

    /// `limit`: of the rows by slot, of those by time, and of those of exposures.
    pub fn bounded(
        spec: &ExperimentsSpec,
        dimensions: usize,
        limit: RowLimit,
    ) -> Result<Self, String> {
        check(spec, dimensions)?;
        let exposures = (0..).zip(&spec.exposures);
        let values: Vec<ValueArms> = exposures.clone().filter_map(value_arms).collect();
        let mut by_field = ArmsByField::default();
        let found = FoundExperiments::new(&spec.found, &spec.exposures)?;
        for (place, exposure) in exposures.take(spec.exposures.len() - spec.found.slots) {
            by_field.add(place, exposure);
        }
        let (mut trials, mut trials_of) = (Vec::new(), vec![Vec::new(); spec.exposures.len()]);
        let (mut of_labels, mut key) = (Vec::new(), ALL_OUTCOMES + 1);
        for (place, trial) in spec.trials.iter().enumerate() {
            let exposure = &spec.exposures[trial.exposure];
            let attributed = exposure.is_attributed.then_some(of_labels.len());
            if exposure.is_attributed {
                let of = values
                    .iter()
                    .find(|of| of.exposure as usize == trial.exposure);
                let of = of.ok_or("outcomes are attributed by the values of a dimension")?;
                of_labels.push(ArmsOfLabels::new(of, &trial.arms));
            }
            let counts_apart = |of: &TrialSpec| spec.exposures[of.exposure].is_attributed;
            let is_same = |other: &TrialSpec| other.counts_as(trial) && !counts_apart(other);
            let same = spec.trials[..place].iter().position(is_same);
            let same = same.filter(|_| !counts_apart(trial));
            let (width, profile) = (spec.sums.len(), same.unwrap_or(place));
            let built = Trial::new(trial, width, (key, profile), attributed)?;
            key = built.keys.end;
            trials_of[trial.exposure].push(place);
            trials.push(built);
        }
        let is_attributed = |of: &&ValueArms| spec.exposures[of.exposure as usize].is_attributed;
        let attributed = values.iter().filter(is_attributed);
        let of_arms: Vec<usize> = attributed.map(|of| of.dimension).collect();
        let places: BTreeSet<usize> = of_arms
            .into_iter()
            .chain(spec.explored.iter().copied())
            .collect();
        let days: Vec<ExposureDays> = spec.exposures.iter().map(days_of).collect();
        let declared = days.len() - spec.found.slots;
        let exposures = Exposures::new(days.iter().map(|days| days.parts).collect());
        Ok(Self {
            columns: spec.columns.clone(),
            is_stored: vec![false; spec.columns.len()],
            limit: limit.rows,
            exposures: spec.exposures.clone(),
            spans: Spans::new(&days, declared),
            first_day: trials
                .iter()
                .map(|trial| trial.days.start)
                .min()
                .unwrap_or(0),
            trials,
            trials_of,
            by_dimension: ArmsByDimension::new(values),
            by_field,
            found,
            known_since: HashMap::new(),
            retired_on: i64::MIN,
            oldest_day: 0,
            of_labels,
            labels: Labels::new(places.into_iter().collect(), MAX_LABELS),
            tables: UserTables::new(spec.columns.len(), limit.of_a_user, exposures),
            final_ms: 0,
            sample_bits: 0,
            sums: ExperimentSums::default(),
            delta: ExperimentSums::default(),
            changed: BTreeSet::new(),
            dirty: HashMap::new(),
            last_dirty: None,
            is_stale: false,
            person: Person::default(),
            work: Work::default(),
            entered: Vec::new(),
        })
    }
}

fn value_arms((exposure, spec): (u32, &ExposureSpec)) -> Option<ValueArms> {
    match spec.by {
        ExposedBy::Fields(_) => None,
        ExposedBy::Dimension(dimension) => Some(ValueArms {
            dimension,
            exposure,
            values: spec.arms.clone(),
        }),
    }
}

fn days_of(spec: &ExposureSpec) -> ExposureDays {
    ExposureDays {
        wanted: spec.days.0..spec.days.1,
        first: spec.first_day,
        parts: !spec.is_attributed,
    }
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
        let is_known = match exposure.by {
            ExposedBy::Dimension(dimension) => dimension < dimensions,
            ExposedBy::Fields(_) => true,
        };
        if !is_known || !(0..1 << 62).contains(&exposure.code) {
            return Err("an exposure has no such dimension, or a code that is no code".to_owned());
        }
    }
    if spec.explored.iter().any(|place| *place >= dimensions) {
        return Err("experiments are explored by a dimension that there is not".to_owned());
    }
    for trial in &spec.trials {
        if trial.exposure >= spec.exposures.len() {
            return Err("an experiment has no such exposure".to_owned());
        }
        let arms = spec.exposures[trial.exposure].arms.len();
        let numbers: BTreeSet<u32> = trial.arms.iter().copied().collect();
        if trial.arms.len() != arms || !numbers.into_iter().eq(1..=arms as u32) {
            return Err("the arms of an experiment are not those of its exposure".to_owned());
        }
    }
    Ok(())
}
