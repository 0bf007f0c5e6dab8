//! One experiment as it is counted: its days, arms and measures, and what one user adds to its sums.

use std::ops::Range;

use ethnum::I256;

use crate::components::LIMB_BITS;
use crate::experiments_spec::{MeasureSpec, TrialSpec};
use crate::trial_sums::Sums;

/// Components that count impressions, with one of which a user is in an experiment, and outcomes.
pub const SHOWN: usize = 0;
pub const OUTCOMES: usize = 1;
/// Statistics: users of an arm; of no arm: users seen in several, outcomes before the first exposure
/// of their user, and outcomes of users without one.
const USERS: usize = 0;
const MIXED: usize = 1;
const EARLY: usize = 2;
const UNEXPOSED: usize = 3;
/// How many statistics there are before those of measures.
const COUNTS: usize = 4;
/// Numerator, denominator, and the same of the days before: their sums, those of products of two,
/// and the number of users whose numerator is not 0.
const MOST_MOMENTS: usize = 4 + 10 + 1;

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
    /// One for each component, of each that he did.
    pub amounts: &'a [i64],
    /// Number of components.
    pub width: usize,
}

impl<'a> History<'a> {
    fn amounts_of(&self, did: &Did) -> &'a [i64] {
        &self.amounts[did.at..did.at + self.width]
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
    /// The first statistic of each measure.
    firsts: Vec<usize>,
    /// How many statistics an arm has on a day.
    stats: usize,
    /// How many sums each measure has, in each bucket.
    pub moments: usize,
}

type Moments = [I256; MOST_MOMENTS];

/// What a user adds up to on a day: of each measure the moments, and their bucket.
#[derive(Debug, Default)]
pub struct Standing {
    is_in: bool,
    measures: Vec<(usize, Moments)>,
}

/// Buffers that are used for one user after another.
#[derive(Debug, Default)]
pub struct Work {
    totals: Vec<i128>,
    covariates: Vec<i128>,
    now: Standing,
    before: Standing,
}

/// In which arm a user is: the first and the last that he saw, and since which day.
#[derive(Clone, Copy)]
struct Seen {
    first: usize,
    last: usize,
    day: i64,
}

impl Trial {
    /// An error where components are missing or keys would not fit 64 bits.
    pub fn new(
        spec: &TrialSpec,
        is_attributed: bool,
        arms: usize,
        components: usize,
    ) -> Result<Self, String> {
        let covariates = spec.covariates.filter(|days| days.0 < days.1);
        let moments = if covariates.is_some() {
            4 + 10 + 1
        } else {
            2 + 3 + 1
        };
        let (mut firsts, mut stats) = (Vec::new(), COUNTS);
        for measure in &spec.measures {
            let places = [Some(measure.above), measure.below, measure.high];
            if places.iter().flatten().any(|place| *place >= components) {
                return Err("a measure of an experiment has no such component".to_owned());
            }
            firsts.push(stats);
            stats += moments * measure.cap.buckets();
        }
        let days = spec.days.0..spec.days.1;
        let most = (arms as i128 + 1) * i128::from(days.end - days.start) * stats as i128;
        if days.is_empty() || most > i128::from(i64::MAX) {
            return Err(format!("an experiment has the days {days:?}"));
        }
        Ok(Self {
            days,
            covariates: covariates.map(|days| days.0..days.1),
            exposure: spec.exposure as u32,
            is_attributed,
            measures: spec.measures.clone(),
            firsts,
            stats,
            moments,
        })
    }

    /// One integer of arm (0: none), day and statistic.
    fn key(&self, arm: usize, day: i64, stat: usize) -> i64 {
        let place = arm as i64 * (self.days.end - self.days.start) + day - self.days.start;
        place * self.stats as i64 + stat as i64
    }

    /// Add what a user contributes. `history`: all that he did under the trial's exposure; `arm_of`:
    /// the arm of a label, 0 for none; `within`: the only days that count, except that who was
    /// exposed before is in, and who was in several arms on any day is not.
    pub fn contribute(
        &self,
        history: &History<'_>,
        arm_of: impl Fn(u32) -> usize,
        within: &Range<i64>,
        work: &mut Work,
        (sums, sign): (&mut Sums, i64),
    ) {
        let inside = history.within(&self.days);
        let seen = self.seen(&inside, &arm_of);
        if let Some(seen) = seen.filter(|seen| seen.first < seen.last) {
            sums.add(self.key(0, seen.day, 0), MIXED, I256::from(sign));
            return;
        }
        let arm = seen.map_or(0, |seen| seen.last);
        if !self.is_attributed {
            self.add_outside(&inside, arm, within, (sums, sign));
        }
        if arm == 0 {
            return;
        }
        let counts = |did: &&Did| {
            if self.is_attributed {
                arm_of(did.label) == arm && did.day >= within.start
            } else {
                did.is_exposed
            }
        };
        let ended = inside.within(&(self.days.start..within.end));
        self.accumulate(
            history,
            (&ended, arm, within.start),
            counts,
            work,
            (sums, sign),
        );
    }

    /// The arms of which the user had an impression.
    fn seen(&self, inside: &History<'_>, arm_of: &impl Fn(u32) -> usize) -> Option<Seen> {
        let mut seen: Option<Seen> = None;
        for did in inside.did {
            let arm = arm_of(did.label);
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

    /// Count outcomes that count towards no arm, of a user of an arm (0: of none).
    fn add_outside(
        &self,
        inside: &History<'_>,
        arm: usize,
        within: &Range<i64>,
        (sums, sign): (&mut Sums, i64),
    ) {
        let stat = if arm > 0 { EARLY } else { UNEXPOSED };
        for did in inside.within(within).did {
            let outcomes = inside.amounts_of(did)[OUTCOMES];
            if outcomes != 0 && !(did.is_exposed && arm > 0) {
                sums.add(self.key(0, did.day, 0), stat, I256::from(sign * outcomes));
            }
        }
    }

    /// Add the differences between each day and the day before, of what counts. What was before
    /// `from` is nothing on it, except that the user was exposed.
    fn accumulate<'a>(
        &self,
        history: &History<'a>,
        (ended, arm, from): (&History<'a>, usize, i64),
        counts: impl Fn(&&Did) -> bool,
        work: &mut Work,
        (sums, sign): (&mut Sums, i64),
    ) {
        work.totals.clear();
        work.totals.resize(history.width, 0);
        self.add_covariates(history, work);
        work.before.is_in = false;
        let mut last = None;
        for did in ended.did.iter().filter(counts) {
            let day = did.day.max(from);
            if let Some(done) = last.filter(|done| *done != day) {
                self.step(arm, done, work, (sums, sign));
            }
            last = Some(day);
            if did.day >= from {
                for (total, amount) in work.totals.iter_mut().zip(ended.amounts_of(did)) {
                    *total += i128::from(*amount);
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
        work.covariates.clear();
        work.covariates.resize(history.width, 0);
        for did in history.within(days).did {
            for (total, amount) in work.covariates.iter_mut().zip(history.amounts_of(did)) {
                *total += i128::from(*amount);
            }
        }
    }

    /// A day is complete: add how the user stands now, less how he stood before.
    fn step(&self, arm: usize, day: i64, work: &mut Work, (sums, sign): (&mut Sums, i64)) {
        self.stand(work);
        let (now, before) = (&work.now, &work.before);
        let users = i64::from(now.is_in) - i64::from(before.is_in);
        if users != 0 {
            sums.add(self.key(arm, day, 0), USERS, I256::from(sign * users));
        }
        for (number, first) in self.firsts.iter().enumerate() {
            let of = |standing: &Standing| standing.measures.get(number).copied();
            let (now, before) = (
                of(now).filter(|_| now.is_in),
                of(before).filter(|_| before.is_in),
            );
            let key = |bucket| self.key(arm, day, first + bucket * self.moments);
            if now == before {
                continue;
            }
            for ((bucket, moments), its_sign) in now
                .map(|now| (now, sign))
                .into_iter()
                .chain(before.map(|x| (x, -sign)))
            {
                for (sum, moment) in sums.block(key(bucket)).iter_mut().zip(moments) {
                    if its_sign > 0 {
                        *sum += moment;
                    } else {
                        *sum -= moment;
                    }
                }
            }
        }
        std::mem::swap(&mut work.now, &mut work.before);
    }

    /// How a user stands with these totals.
    fn stand(&self, work: &mut Work) {
        let Work {
            totals,
            covariates,
            now,
            ..
        } = work;
        now.is_in = !self.is_attributed || totals[SHOWN] > 0;
        now.measures.clear();
        if !now.is_in {
            return;
        }
        let covariates = self.covariates.as_ref().map(|_| covariates.as_slice());
        for measure in &self.measures {
            let (above, bucket) = measure.cap.capped(above_of(measure, totals));
            let then = covariates.map(|then| [above_of(measure, then), below_of(measure, then)]);
            let moments = moments_of([above, below_of(measure, totals)], then);
            now.measures.push((bucket, moments));
        }
    }
}

fn above_of(measure: &MeasureSpec, totals: &[i128]) -> i128 {
    let high = measure.high.map_or(0, |high| totals[high]);
    totals[measure.above] + (high << LIMB_BITS)
}

fn below_of(measure: &MeasureSpec, totals: &[i128]) -> i128 {
    measure.below.map_or(1, |below| totals[below])
}

/// Values, products of two, and whether the numerator is not 0.
fn moments_of(now: [i128; 2], then: Option<[i128; 2]>) -> Moments {
    let [x, y] = now;
    let [u, v] = then.unwrap_or([0, 0]);
    let (values, n) = ([x, y, u, v], if then.is_some() { 4 } else { 2 });
    let mut moments = [I256::ZERO; MOST_MOMENTS];
    let mut places = moments.iter_mut();
    let mut put = |value| {
        if let Some(place) = places.next() {
            *place = value;
        }
    };
    values[..n].iter().for_each(|value| put(I256::from(*value)));
    for (i, a) in values[..n].iter().enumerate() {
        values[i..n].iter().for_each(|b| put(product(*a, *b)));
    }
    put(I256::from(x != 0));
    moments
}

/// Exact; short where both fit 64 bits.
fn product(a: i128, b: i128) -> I256 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => I256::from(i128::from(a) * i128::from(b)),
        _ => I256::from(a) * I256::from(b),
    }
}
