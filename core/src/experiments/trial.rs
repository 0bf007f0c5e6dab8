//! One experiment as it is counted: its days, arms and measures, and what one user adds to its sums.

use std::collections::BTreeMap;
use std::ops::Range;

use ethnum::I256;

use crate::columns::Columns;
use crate::experiments::arms::ArmsOfLabels;
use crate::experiments::contribution::UserAmounts;
use crate::experiments::exposures::ArmOf;
use crate::experiments::layout::Layout;
use crate::experiments::spans::DAY_MS;
use crate::experiments::sums::{self, ExperimentSums};
use crate::experiments::user_state::Standing;
use crate::spec::experiments::{MeasureSpec, TrialSpec};

#[cfg(test)]
mod tests;

/// Components that count impressions, with one of which a user is in an experiment, and outcomes.
pub const SHOWN: usize = 0;
pub const OUTCOMES: usize = 1;
/// Statistics: users of an arm, users seen in several of which it was the first, and those who did
/// anything on the day; of no arm: users seen in several, outcomes before the first exposure of their user, and outcomes of users without one.
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

/// What a user did in one slot, or at a time, under one label.
#[derive(Clone, Copy, Debug)]
pub struct Did {
    /// When the slot began, or the time.
    pub at_ms: i64,
    pub day: i64,
    pub label: u32,
    /// Where its amounts stand among those of the user.
    pub row: usize,
}

/// What a user did, in the order of time.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    pub did: &'a [Did],
    /// One for each sum, of each that the user did.
    pub amounts: &'a [i64],
    /// Number of sums.
    pub width: usize,
}

impl<'a> History<'a> {
    fn amounts_of(&self, did: &Did) -> &'a [i64] {
        &self.amounts[did.row..did.row + self.width]
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

    /// Day and number of the outcomes of some days.
    pub fn outcomes(&self, days: &Range<i64>) -> impl Iterator<Item = (i64, i64)> {
        let within = self.within(days);
        let outcomes = move |did: &Did| (did.day, within.amounts_of(did)[OUTCOMES]);
        within.did.iter().map(outcomes).filter(|(_, n)| *n != 0)
    }
}

/// Which days count, and of which of them what a user adds is wanted.
#[derive(Clone, Debug)]
pub struct DayRanges {
    pub within: Range<i64>,
    pub added: Range<i64>,
}

impl DayRanges {
    /// All that some days add.
    pub fn all_of(within: Range<i64>) -> Self {
        Self {
            within,
            added: i64::MIN..i64::MAX,
        }
    }
}

/// One experiment.
#[derive(Debug)]
pub struct Trial {
    pub days: Range<i64>,
    covariates: Option<Range<i64>>,
    pub exposure: u32,
    /// The number of each arm of the exposure.
    arms: Vec<u32>,
    /// Where events count towards the arm that is their own: the arms of labels, by their place.
    pub attributed: Option<usize>,
    measures: Vec<MeasureSpec>,
    /// The days since the first one that measures are of, each once.
    ages: Vec<(i64, i64)>,
    layout: Layout,
    /// The keys of its sums on each day.
    pub keys: Range<i64>,
    /// Equal of experiments to which a user adds the same who is exposed to both at once.
    pub profile: usize,
}

/// Buffers that are used for one user after another.
#[derive(Debug, Default)]
pub struct Work {
    pub contribution: UserAmounts,
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

/// The arm that a user saw first, whether it was the only one, and since when.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub arm: u32,
    is_only: bool,
    first_ms: i64,
}

impl Seen {
    /// The only arm; None of several.
    pub fn only(&self) -> Option<u32> {
        self.is_only.then_some(self.arm)
    }

    /// How many things the user did before it.
    pub fn before(&self, history: &History<'_>) -> usize {
        history.did.partition_point(|did| did.at_ms < self.first_ms)
    }

    /// The day of it.
    pub fn day(&self) -> i64 {
        self.first_ms.div_euclid(DAY_MS)
    }
}

impl Trial {
    /// An error where sums are missing or keys would not fit 64 bits. `first_key`: of its sums on each
    /// day; `profile`, `attributed`: see the fields.
    pub fn new(
        spec: &TrialSpec,
        sums: usize,
        (first_key, profile): (i64, usize),
        attributed: Option<usize>,
    ) -> Result<Self, String> {
        let covariates = spec.covariates.filter(|days| days.0 < days.1);
        let ratios = spec.measures.iter().flat_map(MeasureSpec::ratios);
        let places = ratios.flat_map(|r| [Some(r.above), r.below, r.high, r.below_high]);
        if places.flatten().any(|place| place >= sums + DERIVED) {
            return Err("a measure of an experiment has no such sum".to_owned());
        }
        let layout = Layout::new(&spec.measures, COUNTS, covariates.is_some());
        let days = spec.days.0..spec.days.1;
        let length = i128::from(days.end) - i128::from(days.start);
        let stats = (spec.arms.len() as i128 + 1) * layout.stats as i128;
        if days.is_empty() || stats * length > i128::from(i64::MAX) {
            return Err(format!("an experiment has the days {days:?}"));
        }
        Ok(Self {
            days,
            covariates: covariates.map(|days| days.0..days.1),
            exposure: spec.exposure as u32,
            arms: spec.arms.clone(),
            attributed,
            measures: spec.measures.clone(),
            ages: ages_of(&spec.measures),
            layout,
            keys: first_key..first_key + stats as i64,
            profile,
        })
    }

    /// The days of the covariates as an experiment of their own, without covariates; None where
    /// there are none.
    pub fn before(&self) -> Option<Self> {
        let layout = Layout::new(&self.measures, COUNTS, false);
        Some(Self {
            days: self.covariates.clone()?,
            covariates: None,
            exposure: self.exposure,
            arms: self.arms.clone(),
            attributed: None,
            measures: self.measures.clone(),
            ages: self.ages.clone(),
            keys: 0..2 * layout.stats as i64,
            profile: self.profile,
            layout,
        })
    }

    /// The first key of an arm (0: none) on each day.
    fn key(&self, arm: u32) -> i64 {
        self.keys.start + i64::from(arm) * self.layout.stats as i64
    }

    /// All sums, as columns of arm, day and statistic in one key; `outcomes`: of all users, by day.
    pub fn columns(&self, sums: &ExperimentSums, outcomes: Range<i64>) -> Columns {
        let length = self.days.end - self.days.start;
        let stats = self.layout.stats as i64;
        let key = |day: i64, key: i64| {
            let (arm, stat) = (key / stats, key % stats);
            (arm * length + day - self.days.start) * stats + stat
        };
        let own = sums.within(&self.days, self.keys.clone());
        let own = own.map(|(day, at, sum)| (key(day, at - self.keys.start), sum));
        let of_all = sums.within(&self.days, outcomes);
        let of_all = of_all.map(|(day, _, sum)| (key(day, UNEXPOSED as i64), sum));
        sums::columns(own.chain(of_all).collect())
    }

    /// In which arm a user is, who saw these at first at these times; None: in none, or before these
    /// days.
    pub fn seen(&self, saw: &[(ArmOf, i64)]) -> Option<Seen> {
        let is_in = |first_ms: i64| self.days.contains(&first_ms.div_euclid(DAY_MS));
        let is_earlier = |first_ms: i64| first_ms.div_euclid(DAY_MS) < self.days.start;
        if saw.iter().any(|(_, first_ms)| is_earlier(*first_ms)) {
            return None; // of an earlier period
        }
        let inside = saw.iter().filter(|(_, first_ms)| is_in(*first_ms));
        let seen = inside.map(|(of, first_ms)| Seen {
            arm: self.arms[of.arm as usize - 1],
            is_only: true,
            first_ms: *first_ms,
        });
        seen.reduce(|a, b| {
            let first = if (b.first_ms, b.arm) < (a.first_ms, a.arm) {
                b
            } else {
                a
            };
            Seen {
                is_only: a.is_only && b.is_only && a.arm == b.arm,
                ..first
            }
        })
    }

    /// Find what a user contributes who saw one arm. `within`: the only days that count, except that
    /// who was exposed before is in.
    pub fn find(
        &self,
        (history, seen): (&History<'_>, Seen),
        arms: Option<&ArmsOfLabels>,
        wanted: &DayRanges,
        work: &mut Work,
    ) {
        let counts = |did: &&Did| match arms {
            Some(arms) => arms.of(did.label) == seen.arm,
            None => did.at_ms >= seen.first_ms,
        };
        let inside = history.within(&self.days);
        for did in inside.within(&wanted.within).did {
            let outcomes = inside.amounts_of(did)[OUTCOMES];
            if outcomes != 0 && wanted.added.contains(&did.day) && !counts(&did) {
                self.push_count(work, (did.day, false), EARLY, outcomes);
            }
        }
        let from = wanted.within.start;
        let ended = inside.within(&(self.days.start..wanted.within.end));
        // Who is exposed is in, whatever comes of it; where events are attributed, with the first one.
        let exposed = arms.is_none().then(|| seen.day());
        let exposed = exposed.filter(|day| *day < wanted.within.end);
        let did = (&ended, from, &wanted.added);
        self.accumulate((history, exposed), did, counts, work);
    }

    /// Find what a user contributes who saw several arms, to none and to the first of them.
    pub fn find_mixed(&self, seen: Seen, wanted: &DayRanges, work: &mut Work) {
        if wanted.added.contains(&seen.day()) {
            self.push_count(work, (seen.day(), false), MIXED, 1);
            self.push_count(work, (seen.day(), true), MIXED, 1);
        }
    }

    /// Find outcomes of some days as those of a user who saw no arm, so many times.
    pub fn find_unexposed(
        &self,
        history: &History<'_>,
        wanted: &DayRanges,
        times: i64,
        work: &mut Work,
    ) {
        let inside = history.within(&self.days);
        for (day, outcomes) in inside.outcomes(&wanted.within) {
            if wanted.added.contains(&day) {
                self.push_count(work, (day, false), UNEXPOSED, times * outcomes);
            }
        }
    }

    /// Add what was found, `sign` times, to the sums of an arm (0: none).
    pub fn add(&self, work: &Work, arm: u32, (sums, sign): (&mut ExperimentSums, i64)) {
        let keys = (self.key(0), self.key(arm));
        work.contribution.add_to(sums, keys, sign);
    }

    fn push_count(&self, work: &mut Work, place: (i64, bool), stat: usize, count: i64) {
        let of = (self.layout.counts, stat);
        let count = std::iter::once(I256::from(count));
        work.contribution.push(place, of, count);
    }

    /// Find what a user contributes whatever the arm. In are users with an impression: what they did
    /// counts from that day on. Rows of days before an experiment do not say what came first on a day,
    /// so that all of the day counts.
    pub fn find_whatever_arm(&self, history: &History<'_>, work: &mut Work) {
        let inside = history.within(&self.days);
        let is_shown = |did: &&Did| inside.amounts_of(did)[SHOWN] > 0;
        if let Some(first) = inside.did.iter().find(is_shown) {
            let (day, all) = (first.day, i64::MIN..i64::MAX);
            let counts = |did: &&Did| did.day >= day;
            self.accumulate((history, None), (&inside, day, &all), counts, work);
        }
    }

    /// The value (one of those of labels) that most impressions have that count on the first day of
    /// the user, of equals the first; `unknown` where there are none; None of a user who is in several
    /// arms.
    pub fn value_of<'v>(
        &self,
        (history, seen): (&History<'_>, Seen),
        arms: Option<&ArmsOfLabels>,
        values: &'v [String],
    ) -> Option<&'v str> {
        seen.only()?;
        let counts = |did: &&Did| match arms {
            Some(arms) => arms.of(did.label) == seen.arm,
            None => did.at_ms >= seen.first_ms,
        };
        let day = seen.day();
        let inside = history.within(&(day..day + 1));
        let mut shown: BTreeMap<&str, i64> = BTreeMap::new();
        for did in inside.did.iter().filter(counts) {
            let impressions = inside.amounts_of(did)[SHOWN];
            if impressions > 0 {
                *shown.entry(&values[did.label as usize]).or_default() += impressions;
            }
        }
        let most = shown.values().max().copied();
        let mut found = shown.into_iter().filter(|(_, n)| Some(*n) == most);
        Some(found.next().map_or("unknown", |(value, _)| value))
    }

    /// Find the differences between each day and the day before, of what counts. What was before
    /// `from` adds nothing on it: all that is left is that the user was exposed. `exposed`: the day
    /// of that, with which the user is in; None: with the first that counts.
    fn accumulate<'a>(
        &self,
        (history, exposed): (&History<'a>, Option<i64>),
        (ended, from, added): (&History<'a>, i64, &Range<i64>),
        counts: impl Fn(&&Did) -> bool,
        work: &mut Work,
    ) {
        work.totals
            .resize_with(1 + self.ages.len(), Totals::default);
        work.totals.iter_mut().for_each(|t| t.empty(history.width));
        self.add_covariates(history, work);
        work.before.is_in = false;
        let (mut first, mut active_on) = (exposed, None);
        let mut last = exposed.map(|day| day.max(from));
        for did in ended.did.iter().filter(counts) {
            let day = did.day.max(from);
            if let Some(done) = last.filter(|done| *done != day) {
                self.step((done, day), added, work);
            }
            last = Some(day);
            if day >= added.end {
                break;
            }
            let is_active = did.day >= from && ended.is_active(did);
            if is_active && active_on.replace(day) != Some(day) && added.contains(&day) {
                self.push_count(work, (day, true), ACTIVE, 1);
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
            if done < added.end {
                self.step((done, i64::MAX), added, work);
            }
            self.push_mature(first.unwrap_or(done), added, work);
        }
    }

    /// Find what the user comes to in windows that are over, on the last day of each: all at once.
    fn push_mature(&self, first: i64, added: &Range<i64>, work: &mut Work) {
        if !self.measures.iter().any(|measure| measure.is_mature) {
            return;
        }
        self.stand(work);
        for (number, measure) in self.measures.iter().enumerate() {
            let Some((_, stop)) = measure.age.filter(|_| measure.is_mature) else {
                continue;
            };
            let day = first + stop - 1;
            let is_added = added.contains(&day) && self.days.contains(&day);
            if let Some((bucket, moments)) = work.now.of(number).filter(|_| is_added) {
                let block = self.layout.block(number, bucket);
                let values = moments.iter().copied();
                work.contribution.push((day, true), block, values);
            }
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

    /// A day is complete, and another one is the next: find how the user stands now, less how the user
    /// stood before.
    fn step(&self, (day, next): (i64, i64), added: &Range<i64>, work: &mut Work) {
        if next < added.start {
            return; // a later day before the first one that is added says how the user stood
        }
        self.stand(work);
        if added.contains(&day) {
            let users = i64::from(work.now.is_in) - i64::from(work.before.is_in);
            if users != 0 {
                self.push_count(work, (day, true), USERS, users);
            }
            self.push_moments(day, work);
        }
        std::mem::swap(&mut work.now, &mut work.before);
    }

    /// How the user stands now.
    fn stand(&self, work: &mut Work) {
        work.now.is_in = false;
        if self.attributed.is_none() || work.totals[0].sums[SHOWN] > 0 {
            let before = self.covariates.is_some().then_some(&*work.covariates.sums);
            let totals = |number: usize| {
                let age = self.measures[number].age;
                let place = self.ages.iter().position(|each| Some(*each) == age);
                &*work.totals[place.map_or(0, |place| place + 1)].sums
            };
            work.now.set(&self.measures, totals, before);
        }
    }

    fn push_moments(&self, day: i64, work: &mut Work) {
        let Work {
            now,
            before,
            contribution,
            ..
        } = work;
        for measure in 0..self.measures.len() {
            let (now, before) = (now.of(measure), before.of(measure));
            if now == before || self.measures[measure].is_mature {
                continue;
            }
            let mut push = |bucket: usize, values: &mut dyn Iterator<Item = I256>| {
                let block = self.layout.block(measure, bucket);
                contribution.push((day, true), block, values);
            };
            match (now, before) {
                (Some((bucket, now)), Some((other, before))) if bucket == other => {
                    push(bucket, &mut now.iter().zip(before).map(|(a, b)| *a - *b));
                }
                _ => {
                    if let Some((bucket, now)) = now {
                        push(bucket, &mut now.iter().copied());
                    }
                    if let Some((bucket, before)) = before {
                        push(bucket, &mut before.iter().map(|value| -*value));
                    }
                }
            }
        }
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
