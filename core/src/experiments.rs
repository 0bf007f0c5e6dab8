//! Experiments: arms compared by sums over users, which follow every event of a user.
//!
//! Events add to the user's day, or where it is open whether they count (see `exposures`) to their
//! time. When a user is touched first since the last refresh, what he contributes to the sums is
//! retracted and he is dirty; a refresh adds what dirty users contribute then.

pub mod arms;
pub mod caps;
pub mod exposures;
mod from_spec;
mod history;
mod layout;
mod stored;
pub mod sums;
#[cfg(test)]
mod tests;
pub mod trial;
pub mod user_days;
pub mod user_state;

pub use stored::ExperimentTable;

use std::collections::BTreeMap;
use std::ops::Range;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::changes::UserAt;
use crate::columns::Columns;
use crate::experiments::arms::Arms;
use crate::experiments::sums::ArmSums;
use crate::experiments::trial::{SHOWN, Trial, Work};
use crate::experiments::user_days::UserDayKey;
use crate::hash::{in_sample, is_anonymous};
use crate::panes::Overflow;
use crate::panes::dimensions::Dimensions;
use crate::panes::labels::Labels;
use crate::spec::experiments::ExposureSpec;
use crate::users::rows::spread;
use history::{Person, UserTables};

const MAX_SAMPLE_BITS: u32 = 63;

pub const DAY_MS: i64 = 86_400_000;
/// How far the time moves before which no impression comes, until rows are settled.
const SETTLE_MS: i64 = 60_000;
/// Dirty users for whom room is kept.
const DIRTY_USERS: usize = 1 << 16;

/// What exposes users.
#[derive(Debug)]
struct Exposure {
    spec: ExposureSpec,
    days: Range<i64>,
    /// Place of its arms.
    arms: usize,
}

/// The experiments of one partition.
#[derive(Debug)]
pub struct Experiments {
    columns: Vec<String>,
    /// Of each column whether loaded rows have it: else nothing was ever added to it.
    is_stored: Vec<bool>,
    limit: usize,
    exposures: Vec<Exposure>,
    /// Each with the place of its arms.
    trials: Vec<(Trial, usize)>,
    arms: Vec<Arms>,
    /// From the first to the last day that anything wants.
    every_day: Range<i64>,
    pub labels: Labels,
    /// Of the dimensions' values, when arms were looked at last.
    looked_at: u64,
    tables: UserTables,
    /// No impression before this time can come any more, as of the last settling.
    final_ms: i64,
    sample_bits: u32,
    /// As of the last refresh.
    sums: Vec<ArmSums>,
    /// What is different since then.
    delta: Vec<ArmSums>,
    is_changed: Vec<bool>,
    /// Users whose contribution is not in the sums.
    dirty: HashTable<u64>,
    last_dirty: Option<u64>,
    is_stale: bool,
    person: Person,
    work: Work,
}

impl Experiments {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    // Events ----------------------------------------------------------------------------------------

    /// Add an amount of one sum.
    pub fn add(
        &mut self,
        dimensions: &Dimensions,
        sum: usize,
        (user, event_ms, combination): UserAt,
        amount: i64,
    ) -> Result<(), Overflow> {
        let day = event_ms.div_euclid(DAY_MS);
        let is_wanted = amount != 0 && sum < self.columns.len() && !is_anonymous(user);
        if !is_wanted || !self.every_day.contains(&day) || !in_sample(user, self.sample_bits) {
            return Ok(());
        }
        self.look(dimensions);
        let label = self.labels.of(dimensions, combination);
        for arms in &mut self.arms {
            arms.learn(&self.labels);
        }
        for place in 0..self.exposures.len() {
            if self.exposures[place].days.contains(&day) {
                self.mark_dirty(user);
                let key = UserDayKey {
                    user,
                    at: event_ms,
                    label,
                    part: 2 * place as u32,
                };
                self.take(place, key, sum, amount)?;
            }
        }
        Ok(())
    }

    /// Add to the day where it is known for good whether it counts, else to the time.
    fn take(
        &mut self,
        place: usize,
        key: UserDayKey,
        sum: usize,
        amount: i64,
    ) -> Result<(), Overflow> {
        let Exposure { spec, arms, .. } = &self.exposures[place];
        let (number, first_ms) = (place as u32, spec.first_day * DAY_MS);
        let UserTables {
            days,
            pending,
            exposures,
            ..
        } = &mut self.tables;
        let is_exposed = if spec.is_attributed {
            true
        } else {
            let is_shown = sum == SHOWN && amount > 0 && key.at >= first_ms;
            if is_shown && self.arms[*arms].of(key.label) > 0 {
                exposures.see(key.user, number, key.at);
                true
            } else {
                exposures.is_exposed(key.user, number, key.at)
            }
        };
        if is_exposed || key.at < self.final_ms.max(first_ms) {
            let dated = UserDayKey {
                at: key.at.div_euclid(DAY_MS),
                part: key.part + u32::from(is_exposed),
                ..key
            };
            days.add(&dated, sum, amount)
        } else {
            pending.add(&key, sum, amount)
        }
    }

    /// Whether loaded rows know all sums.
    pub fn is_all_stored(&self) -> bool {
        self.is_stored.iter().all(|is_stored| *is_stored)
    }

    /// Whether loaded rows know a sum.
    pub fn is_stored(&self, sum: usize) -> bool {
        self.is_stored[sum]
    }

    // Sums ------------------------------------------------------------------------------------------

    /// Whether something changed that the sums do not show yet.
    pub fn is_dirty(&self) -> bool {
        self.is_stale || !self.dirty.is_empty()
    }

    /// Whether the next refresh computes everything anew.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Values may be kept or folded since the last look, so that labels have other arms.
    fn look(&mut self, dimensions: &Dimensions) {
        let texts = dimensions.values.iter().map(|values| values.texts.len());
        let now = dimensions.changes + texts.sum::<usize>() as u64;
        if std::mem::replace(&mut self.looked_at, now) == now {
            return;
        }
        let labels = &self.labels;
        let looked = self
            .arms
            .iter_mut()
            .map(|arms| arms.look(dimensions, labels));
        if looked.fold(false, |is_other, arms| is_other | arms) {
            self.make_stale();
        }
    }

    /// Nobody's contribution is in the sums any more.
    fn make_stale(&mut self) {
        self.is_stale = !self.is_empty();
        self.dirty.clear();
        self.last_dirty = None;
        self.delta.iter_mut().for_each(ArmSums::clear);
    }

    /// Retract what a user contributes, once.
    fn mark_dirty(&mut self, user: u64) {
        if self.is_stale || self.last_dirty == Some(user) {
            return;
        }
        self.last_dirty = Some(user);
        let hasher = |user: &u64| spread(*user);
        let entry = self
            .dirty
            .entry(spread(user), |other| *other == user, hasher);
        if let Entry::Vacant(entry) = entry {
            entry.insert(user);
            self.contribute(user, -1);
        }
    }

    /// Add `sign` times what a user contributes.
    fn contribute(&mut self, user: u64, sign: i64) {
        self.person.read(&self.tables, user);
        for ((trial, arms), sums) in self.trials.iter().zip(&mut self.delta) {
            let (history, arms) = (self.person.under(trial.exposure), &self.arms[*arms]);
            trial.contribute(&history, arms, &trial.days, &mut self.work, (sums, sign));
        }
    }

    /// Bring the sums up to date. `final_ms`: no impression before it can come any more.
    pub fn refresh(&mut self, dimensions: &Dimensions, final_ms: i64) -> Result<(), Overflow> {
        if self.is_empty() {
            return Ok(());
        }
        self.look(dimensions);
        if self.is_dirty() {
            self.shrink();
            self.add_dirty();
        }
        if final_ms >= self.final_ms.saturating_add(SETTLE_MS) {
            self.settle(final_ms)?;
        }
        Ok(())
    }

    /// Add what dirty users contribute.
    fn add_dirty(&mut self) {
        if self.is_stale {
            return self.restart();
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for user in &dirty {
            self.contribute(*user, 1);
        }
        dirty.clear();
        dirty.shrink_to(DIRTY_USERS, |user| spread(*user));
        (self.dirty, self.last_dirty) = (dirty, None);
        let both = self.sums.iter_mut().zip(&mut self.delta);
        for ((sums, delta), is_changed) in both.zip(&mut self.is_changed) {
            *is_changed |= sums.take(delta);
        }
    }

    /// Compute everything anew.
    fn restart(&mut self) {
        self.is_stale = false;
        for user in self.tables.users() {
            self.person.read(&self.tables, user);
            for ((trial, arms), sums) in self.trials.iter().zip(&mut self.delta) {
                let (history, arms) = (self.person.under(trial.exposure), &self.arms[*arms]);
                trial.contribute(&history, arms, &trial.days, &mut self.work, (sums, 1));
            }
        }
        for (sums, delta) in self.sums.iter_mut().zip(&mut self.delta) {
            let empty = ArmSums::new(sums.width());
            *sums = std::mem::replace(delta, empty);
        }
        self.is_changed.fill(true);
    }

    /// Bring to days what is known for good now. The sums stay as they are.
    fn settle(&mut self, final_ms: i64) -> Result<(), Overflow> {
        self.final_ms = final_ms;
        let crowded: Vec<u64> = self.tables.crowded().collect();
        for user in crowded {
            self.mark_dirty(user); // not all of his rows may find room
        }
        self.tables.settle(final_ms)?;
        if self.is_dirty() {
            self.add_dirty();
        }
        Ok(())
    }

    /// The sums of an experiment as of the last refresh: columns `key`, ascending, and `limb_0`, ….
    pub fn sums(&self, trial: usize) -> Option<Columns> {
        self.sums.get(trial).map(ArmSums::columns)
    }

    /// The experiments whose sums changed since the last call.
    pub fn take_changed(&mut self) -> Vec<usize> {
        let changed = (0..self.is_changed.len()).filter(|trial| self.is_changed[*trial]);
        let changed = changed.collect();
        self.is_changed.fill(false);
        changed
    }

    /// The sums of an experiment over the days [from, to), computed from the rows. `by`: apart for
    /// each value of this dimension, of users who began in it (see `Trial::value_of`); else all
    /// under an empty text. None where there is no such experiment, or labels lack the dimension.
    pub fn of_range(
        &mut self,
        dimensions: &Dimensions,
        trial: usize,
        (from, to): (i64, i64),
        by: Option<usize>,
    ) -> Option<BTreeMap<String, Columns>> {
        self.look(dimensions);
        let values = match by {
            Some(dimension) => Some(self.labels.values_of(dimensions, dimension)?),
            None => None,
        };
        let (trial, arms) = self.trials.get(trial)?;
        let arms = &self.arms[*arms];
        let within = from.max(trial.days.start)..to.min(trial.days.end);
        let mut found: BTreeMap<&str, ArmSums> = BTreeMap::new();
        for user in self.tables.users().filter(|_| !within.is_empty()) {
            self.person.read(&self.tables, user);
            let history = self.person.under(trial.exposure);
            let value = match &values {
                Some(values) => trial.value_of(&history, arms, values),
                None => Some(""),
            };
            if let Some(value) = value {
                let sums = found
                    .entry(value)
                    .or_insert_with(|| ArmSums::new(trial.width()));
                trial.contribute(&history, arms, &within, &mut self.work, (sums, 1));
            }
        }
        let found = found.iter();
        Some(
            found
                .map(|(value, sums)| ((*value).to_owned(), sums.columns()))
                .collect(),
        )
    }

    /// The sums of an experiment's covariate days over everybody, whatever arm it was, computed
    /// from the rows (see `Trial::contribute_whatever_arm`). None where there are no such days.
    pub fn before_start(&mut self, trial: usize) -> Option<Columns> {
        let before = self.trials.get(trial)?.0.before()?;
        let mut sums = ArmSums::new(before.width());
        for user in self.tables.users() {
            self.person.read(&self.tables, user);
            let history = self.person.under(before.exposure);
            before.contribute_whatever_arm(&history, &mut self.work, &mut sums);
        }
        Some(sums.columns())
    }

    // Bounds of memory: beyond the limit a sample of the users stays

    /// Beyond the bound keep half of the users. Returns whether users were left out: the sums have
    /// to be refreshed at once then.
    pub fn shrink(&mut self) -> bool {
        let before = self.sample_bits;
        while self.rows() > self.limit && self.sample_bits < MAX_SAMPLE_BITS {
            self.keep_sample(self.sample_bits + 1);
        }
        self.sample_bits > before
    }

    /// Keep the users whose hash begins with so many zeros.
    pub fn keep_sample(&mut self, bits: u32) {
        let bits = bits.min(MAX_SAMPLE_BITS);
        self.sample_bits = bits;
        self.tables.keep(|user| in_sample(user, bits));
        self.make_stale();
    }

    /// Users whose hash begins with so many zeros are kept: all at 0.
    pub fn sample_bits(&self) -> u32 {
        self.sample_bits
    }

    /// For each of what exposes, when it exposed a user first; None where it did not yet.
    pub fn first_exposures_ms(&self) -> Vec<Option<i64>> {
        let places = 0..self.exposures.len();
        places
            .map(|place| self.tables.exposures.earliest_ms(place))
            .collect()
    }

    /// No impression before this time (ms) can come any more, as of the last settling.
    pub fn final_ms(&self) -> i64 {
        self.final_ms
    }

    /// Amounts that were not kept because their user had too many rows.
    pub fn dropped_rows(&self) -> u64 {
        self.tables.days.dropped_rows + self.tables.pending.dropped_rows
    }

    /// Number of rows that the limit bounds: by day or by time, whichever are more.
    pub fn rows(&self) -> usize {
        self.tables.days.len().max(self.tables.pending.len())
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let sums = self.sums.iter().chain(&self.delta);
        let sums: usize = sums.map(ArmSums::nbytes).sum();
        self.tables.nbytes() + sums + self.dirty.allocation_size()
    }
}
