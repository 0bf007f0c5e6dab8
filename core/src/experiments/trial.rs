//! One experiment as it is counted: its days, arms and measures, and what one user adds to its sums.

use std::collections::BTreeMap;
use std::ops::Range;

use ethnum::I256;

use crate::experiments::arms::Arms;
use crate::experiments::layout::Layout;
use crate::experiments::sums::ArmSums;
use crate::experiments::user_state::Standing;
use crate::spec::experiments::{MeasureSpec, TrialSpec};

#[cfg(test)]
mod tests;

/// Components that count impressions, with one of which a user is in an experiment, and outcomes.
pub const SHOWN: usize = 0;
pub const OUTCOMES: usize = 1;
/// Statistics: users of an arm, and those who did anything on the day; of no arm: users seen in
/// several, outcomes before the first exposure of their user, and outcomes of users without one.
const USERS: usize = 0;
const MIXED: usize = 1;
const EARLY: usize = 2;
const UNEXPOSED: usize = 3;
const ACTIVE: usize = 4;
/// How many statistics there are before those of measures.
const COUNTS: usize = 5;
/// Amounts of a user besides those of sums: days with an impression, and those of them after
/// the first.
const DERIVED: usize = 2;

/// What a user did on one day, under one label and part.
#[derive(Clone, Copy, Debug)]
pub struct Did {
    pub exposure: u32,
    pub day: i64,
    pub label: u32,
    /// Whether it was after the first exposure.
    pub is_exposed: bool,
    /// Where his amounts stand among those of the user.
    pub at: usize,
}

/// What a user did under one exposure, in the order of days.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    pub did: &'a [Did],
    /// One for each sum, of each that he did.
    pub amounts: &'a [i64],
    /// Number of sums.
    pub width: usize,
}

impl<'a> History<'a> {
    fn amounts_of(&self, did: &Did) -> &'a [i64] {
        &self.amounts[did.at..did.at + self.width]
    }

    /// Whether there was an impression or an outcome.
    fn is_active(&self, did: &Did) -> bool {
        let amounts = self.amounts_of(did);
        amounts[SHOWN] != 0 || amounts[OUTCOMES] != 0
    }

    /// Only some days.
    fn within(&self, days: &Range<i64>) -> Self {
        let start = self.did.partition_point(|did| did.day < days.start);
        let stop = self.did.partition_point(|did| did.day < days.end);
        Self {
            did: self.did.get(start..stop).unwrap_or(&[]),
            ..*self
        }
    }
}

/// One experiment.
#[derive(Debug)]
pub struct Trial {
    pub days: Range<i64>,
    covariates: Option<Range<i64>>,
    pub exposure: u32,
    is_attributed: bool,
    measures: Vec<MeasureSpec>,
    /// The days since the first one that measures are of, each once.
    ages: Vec<(i64, i64)>,
    layout: Layout,
}

/// Buffers that are used for one user after another.
#[derive(Debug, Default)]
pub struct Work {
    /// Of all ages, and of each that measures are of.
    totals: Vec<Totals>,
    covariates: Totals,
    now: Standing,
    before: Standing,
}

/// What a user did so far on days of an age.
#[derive(Debug, Default)]
struct Totals {
    sums: Vec<i128>,
    /// The last day with an impression.
    seen_on: Option<i64>,
}

/// In which arm a user is: the first and the last that he saw, and since which day.
#[derive(Clone, Copy)]
struct Seen {
    first: usize,
    last: usize,
    day: i64,
}

impl Trial {
    /// An error where sums are missing or keys would not fit 64 bits.
    pub fn new(
        spec: &TrialSpec,
        is_attributed: bool,
        arms: usize,
        sums: usize,
    ) -> Result<Self, String> {
        let covariates = spec.covariates.filter(|days| days.0 < days.1);
        let ratios = spec.measures.iter().flat_map(MeasureSpec::ratios);
        let places = ratios.flat_map(|r| [Some(r.above), r.below, r.high]);
        if places.flatten().any(|place| place >= sums + DERIVED) {
            return Err("a measure of an experiment has no such sum".to_owned());
        }
        let layout = Layout::new(&spec.measures, COUNTS, covariates.is_some());
        let days = spec.days.0..spec.days.1;
        let length = i128::from(days.end) - i128::from(days.start);
        let most = (arms as i128 + 1) * length * layout.stats as i128;
        if days.is_empty() || most > i128::from(i64::MAX) {
            return Err(format!("an experiment has the days {days:?}"));
        }
        Ok(Self {
            days,
            covariates: covariates.map(|days| days.0..days.1),
            exposure: spec.exposure as u32,
            is_attributed,
            measures: spec.measures.clone(),
            ages: ages_of(&spec.measures),
            layout,
        })
    }

    /// The days of the covariates as an experiment of their own, without covariates; None where
    /// there are none.
    pub fn before(&self) -> Option<Self> {
        Some(Self {
            days: self.covariates.clone()?,
            covariates: None,
            exposure: self.exposure,
            is_attributed: false,
            measures: self.measures.clone(),
            ages: self.ages.clone(),
            layout: Layout::new(&self.measures, COUNTS, false),
        })
    }

    /// How many statistics are added to at once, at most.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// One integer of arm (0: none), day and statistic.
    fn key(&self, arm: usize, day: i64, stat: usize) -> i64 {
        let place = arm as i64 * (self.days.end - self.days.start) + day - self.days.start;
        place * self.layout.stats as i64 + stat as i64
    }

    /// Add what a user contributes. `history`: all that he did under the trial's exposure; `within`:
    /// the only days that count, except that who was exposed before is in, and who was in several
    /// arms on any day is not.
    pub fn contribute(
        &self,
        history: &History<'_>,
        arms: &Arms,
        within: &Range<i64>,
        work: &mut Work,
        (sums, sign): (&mut ArmSums, i64),
    ) {
        let inside = history.within(&self.days);
        let seen = self.seen(&inside, arms);
        if let Some(seen) = seen.filter(|seen| seen.first < seen.last) {
            sums.add(self.key(0, seen.day, 0), MIXED, I256::from(sign));
            return;
        }
        let arm = seen.map_or(0, |seen| seen.last);
        let counts = |did: &&Did| {
            if self.is_attributed {
                arms.of(did.label) == arm
            } else {
                did.is_exposed
            }
        };
        let is_outside = |did: &&Did| arm == 0 || !counts(did);
        let stat = if arm > 0 { EARLY } else { UNEXPOSED };
        self.add_outside(&inside.within(within), is_outside, stat, (sums, sign));
        if arm == 0 {
            return;
        }
        let ended = inside.within(&(self.days.start..within.end));
        self.accumulate(
            history,
            (&ended, arm, within.start),
            counts,
            work,
            (sums, sign),
        );
    }

    /// Add what a user contributes if every label is one of the first arm. In are users with an
    /// impression: what they did counts from that day on. Rows of days before an experiment do not
    /// say what came first on a day, so that all of the day counts.
    pub fn contribute_whatever_arm(
        &self,
        history: &History<'_>,
        work: &mut Work,
        sums: &mut ArmSums,
    ) {
        let inside = history.within(&self.days);
        let is_shown = |did: &&Did| inside.amounts_of(did)[SHOWN] > 0;
        if let Some(first) = inside.did.iter().find(is_shown) {
            let counts = |did: &&Did| did.day >= first.day;
            self.accumulate(history, (&inside, 1, first.day), counts, work, (sums, 1));
        }
    }

    /// The arms of which the user had an impression.
    fn seen(&self, inside: &History<'_>, arms: &Arms) -> Option<Seen> {
        let mut seen: Option<Seen> = None;
        for did in inside.did {
            let arm = arms.of(did.label);
            if arm > 0 && inside.amounts_of(did)[SHOWN] > 0 {
                let start = Seen {
                    first: arm,
                    last: arm,
                    day: did.day,
                };
                let held = seen.get_or_insert(start);
                held.first = held.first.min(arm);
                held.last = held.last.max(arm);
            }
        }
        seen
    }

    /// The value (one of those of labels) that most impressions of the user's arm have on the first
    /// day with any, of equals the first; none of a user who is in no arm, or in several.
    pub fn value_of<'v>(
        &self,
        history: &History<'_>,
        arms: &Arms,
        values: &'v [String],
    ) -> Option<&'v str> {
        let inside = history.within(&self.days);
        let seen = self.seen(&inside, arms)?;
        if seen.first < seen.last {
            return None;
        }
        let mut shown: BTreeMap<&str, i64> = BTreeMap::new();
        for did in inside.did.iter().filter(|did| did.day == seen.day) {
            if arms.of(did.label) == seen.first {
                *shown.entry(&values[did.label as usize]).or_default() +=
                    inside.amounts_of(did)[SHOWN];
            }
        }
        let most = shown.values().max().copied();
        shown
            .into_iter()
            .find(|(_, n)| Some(*n) == most)
            .map(|(value, _)| value)
    }

    /// Count outcomes that count towards no arm.
    fn add_outside(
        &self,
        inside: &History<'_>,
        is_outside: impl Fn(&&Did) -> bool,
        stat: usize,
        (sums, sign): (&mut ArmSums, i64),
    ) {
        for did in inside.did.iter().filter(is_outside) {
            let outcomes = inside.amounts_of(did)[OUTCOMES];
            if outcomes != 0 {
                sums.add(self.key(0, did.day, 0), stat, I256::from(sign * outcomes));
            }
        }
    }

    /// Add the differences between each day and the day before, of what counts. What was before
    /// `from` adds nothing on it: all that is left is that the user was exposed.
    fn accumulate<'a>(
        &self,
        history: &History<'a>,
        (ended, arm, from): (&History<'a>, usize, i64),
        counts: impl Fn(&&Did) -> bool,
        work: &mut Work,
        (sums, sign): (&mut ArmSums, i64),
    ) {
        work.totals
            .resize_with(1 + self.ages.len(), Totals::default);
        work.totals.iter_mut().for_each(|t| t.empty(history.width));
        self.add_covariates(history, work);
        work.before.is_in = false;
        let (mut first, mut last, mut active_on) = (None, None, None);
        for did in ended.did.iter().filter(counts) {
            let day = did.day.max(from);
            if let Some(done) = last.filter(|done| *done != day) {
                self.step(arm, done, work, (sums, sign));
            }
            last = Some(day);
            let is_active = did.day >= from && ended.is_active(did);
            if is_active && active_on.replace(day) != Some(day) {
                sums.add(self.key(arm, day, 0), ACTIVE, I256::from(sign));
            }
            let age = did.day - *first.get_or_insert(did.day);
            if did.day >= from {
                let amounts = ended.amounts_of(did);
                let (all, of_ages) = work.totals.split_at_mut(1);
                all[0].add(did.day, amounts);
                for ((start, stop), totals) in self.ages.iter().zip(of_ages) {
                    if (*start..*stop).contains(&age) {
                        totals.add(did.day, amounts);
                    }
                }
            }
        }
        if let Some(done) = last {
            self.step(arm, done, work, (sums, sign));
        }
    }

    fn add_covariates(&self, history: &History<'_>, work: &mut Work) {
        let Some(days) = &self.covariates else {
            return;
        };
        work.covariates.empty(history.width);
        for did in history.within(days).did {
            work.covariates.add(did.day, history.amounts_of(did));
        }
    }

    /// A day is complete: add how the user stands now, less how he stood before.
    fn step(&self, arm: usize, day: i64, work: &mut Work, (sums, sign): (&mut ArmSums, i64)) {
        work.now.is_in = false;
        if !self.is_attributed || work.totals[0].sums[SHOWN] > 0 {
            let before = self.covariates.is_some().then_some(&*work.covariates.sums);
            let totals = |number: usize| {
                let age = self.measures[number].age;
                let place = self.ages.iter().position(|each| Some(*each) == age);
                &*work.totals[place.map_or(0, |place| place + 1)].sums
            };
            work.now.set(&self.measures, totals, before);
        }
        let users = i64::from(work.now.is_in) - i64::from(work.before.is_in);
        if users != 0 {
            sums.add(self.key(arm, day, 0), USERS, I256::from(sign * users));
        }
        let Layout {
            firsts, moments, ..
        } = &self.layout;
        for (number, first) in firsts.iter().enumerate() {
            let (now, before) = (work.now.of(number), work.before.of(number));
            if now == before {
                continue;
            }
            let key = |bucket: usize| self.key(arm, day, first + bucket * moments[number]);
            if let Some((bucket, values)) = now {
                sums.add_all(key(bucket), values, sign);
            }
            if let Some((bucket, values)) = before {
                sums.add_all(key(bucket), values, -sign);
            }
        }
        std::mem::swap(&mut work.now, &mut work.before);
    }
}

/// The ages that measures are of, each once.
fn ages_of(measures: &[MeasureSpec]) -> Vec<(i64, i64)> {
    let mut ages: Vec<_> = measures.iter().filter_map(|m| m.age).collect();
    ages.sort_unstable();
    ages.dedup();
    ages
}

impl Totals {
    /// Nothing so far, of `width` sums and what is derived of them.
    fn empty(&mut self, width: usize) {
        self.sums.clear();
        self.sums.resize(width + DERIVED, 0);
        self.seen_on = None;
    }

    /// Add what was done on a day, in the order of days.
    fn add(&mut self, day: i64, amounts: &[i64]) {
        for (total, amount) in self.sums.iter_mut().zip(amounts) {
            *total += i128::from(*amount);
        }
        if amounts[SHOWN] > 0 && self.seen_on != Some(day) {
            self.sums[amounts.len() + 1] += i128::from(self.seen_on.is_some());
            self.sums[amounts.len()] += 1;
            self.seen_on = Some(day);
        }
    }
}
