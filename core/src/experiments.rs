//! Experiments: arms compared by sums over users, which follow every event of a user.
//!
//! What a user does is kept once, by slot: a day, or the part of it from a first exposure of the user
//! to the next, so that a slot counts whole towards an experiment, or not at all. As long as an
//! exposure before it may come, an event is kept under its own time. When a user is touched first
//! since the last refresh, what the user contributes to the sums from that day on is retracted; a
//! refresh adds what the users who were touched contribute then.

pub mod arms;
pub mod assignments;
pub mod caps;
mod contribution;
pub mod exposures;
pub mod found;
mod from_spec;
mod history;
mod layout;
mod spans;
mod stored;
pub mod sums;
#[cfg(test)]
mod tests;
pub mod trial;
pub mod units;
pub mod user_days;
pub mod user_state;

pub use stored::ExperimentTable;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ethnum::I256;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::changes::{Combination, UserAt};
use crate::columns::Columns;
use crate::decode::ArmTexts;
use crate::experiments::arms::{ArmsByDimension, ArmsByField, ArmsOfLabels};
use crate::experiments::exposures::{ArmOf, SaidBy};
use crate::experiments::found::{FoundExperiment, FoundExperiments, Placed};
use crate::experiments::spans::{DAY_MS, Spans};
use crate::experiments::sums::ExperimentSums;
use crate::experiments::trial::{DayRanges, History, Seen, Trial, Work};
use crate::experiments::user_days::UserDayKey;
use crate::hash::{in_sample, is_anonymous, mix};
use crate::panes::Overflow;
use crate::panes::dimensions::Dimensions;
use crate::panes::labels::Labels;
use crate::spec::experiments::ExposureSpec;
use history::{Person, UserTables};

const MAX_SAMPLE_BITS: u32 = 63;

/// How far the time moves before which no exposure comes, until rows are settled.
const SETTLE_MS: i64 = 60_000;
/// Dirty users for whom room is kept.
const DIRTY_USERS: usize = 1 << 16;
/// The key of the outcomes of all users on a day.
const ALL_OUTCOMES: i64 = 0;

/// A trial that a user is in.
#[derive(Clone, Copy, Debug)]
struct Entered {
    trial: usize,
    seen: Seen,
    /// Equal where the user adds the same: what there was before (of several arms nothing), and the
    /// day of the exposure.
    same: (usize, Option<usize>, i64),
}

impl Entered {
    fn new(trial: &Trial, place: usize, seen: Seen, history: &History<'_>) -> Self {
        let before = seen.only().map(|_| seen.before(history));
        Self {
            trial: place,
            seen,
            same: (trial.profile, before, seen.day()),
        }
    }
}

/// The experiments of one partition.
#[derive(Debug)]
pub struct Experiments {
    columns: Vec<String>,
    /// Of each column whether loaded rows have it: else nothing was ever added to it.
    is_stored: Vec<bool>,
    pub limit: usize,
    exposures: Vec<ExposureSpec>,
    spans: Spans,
    trials: Vec<Trial>,
    /// The first day of any.
    first_day: i64,
    /// The trials of each exposure, by their places.
    trials_of: Vec<Vec<usize>>,
    by_dimension: ArmsByDimension,
    by_field: ArmsByField,
    /// Those that are not declared, by slot.
    pub found: FoundExperiments,
    /// Of those that settings name since: by code the declared arms that each arm is.
    known_since: HashMap<i64, Vec<Vec<ArmOf>>>,
    /// The day on which experiments that were found were last retired.
    retired_on: i64,
    /// Rows of earlier days have left.
    oldest_day: i64,
    /// Of trials whose events count towards their own arm.
    of_labels: Vec<ArmsOfLabels>,
    pub labels: Labels,
    tables: UserTables,
    /// No exposure before this time can come any more, as of the last settling.
    final_ms: i64,
    sample_bits: u32,
    /// As of the last refresh.
    sums: ExperimentSums,
    /// What is different since then.
    delta: ExperimentSums,
    /// The days whose sums changed since they were taken.
    changed: BTreeSet<i64>,
    /// Users, and the day from which on their contribution is not in the sums.
    dirty: HashMap<u64, i64>,
    last_dirty: Option<(u64, i64)>,
    is_stale: bool,
    person: Person,
    work: Work,
    /// A buffer.
    entered: Vec<Entered>,
}

impl Experiments {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    // Events ----------------------------------------------------------------------------------------

    /// An impression exposes its user to the arms that its dimensions say.
    pub fn expose(&mut self, dimensions: &Dimensions, at: UserAt) {
        let (user, event_ms) = (at.user, at.event_ms);
        if self.by_dimension.is_empty() || !self.is_wanted(user, event_ms) {
            return;
        }
        let said = self.by_dimension.of(dimensions, at.combination);
        if said.arms.is_empty() {
            return;
        }
        let (hash, arms) = (said.hash, said.arms.clone());
        self.see(user, event_ms, SaidBy::Dimensions, hash, |_| arms);
    }

    /// An event of any kind exposes its user to the arms that its fields say.
    pub fn expose_by_fields(&mut self, user: u64, event_ms: i64, said: ArmTexts<'_>) {
        if said.is_empty() || !self.reads_fields() || !self.is_wanted(user, event_ms) {
            return;
        }
        let hash = said
            .iter()
            .fold(1, |all, (path, hash, _)| mix(all ^ path as u64, hash));
        self.see(user, event_ms, SaidBy::Fields, hash, |own| {
            let (mut arms, mut others) = (Vec::new(), Vec::new());
            for (path, _, json) in said.iter() {
                own.by_field.read(path, json, &mut arms, |key, arm| {
                    if own.found.reads(path) {
                        others.push((key.to_owned(), arm.to_owned()));
                    }
                });
            }
            others.iter().for_each(|(key, _)| own.found.note(key, user));
            for (key, arm) in &others {
                let placed = own.find_arm((key, arm), user, event_ms);
                arms.retain(|of| !placed.replaced.is_some_and(|replaced| replaced.has(*of)));
                arms.extend(placed.arm);
            }
            arms.into()
        });
    }

    /// The arm of an experiment that is not declared; nobody is in what it replaces any more.
    fn find_arm(&mut self, said: (&str, &str), user: u64, event_ms: i64) -> Placed {
        let placed = self.found.place(said, user, event_ms);
        if let Some(replaced) = placed.replaced {
            self.forget(|of| replaced.has(of));
        }
        placed
    }

    /// Nobody is in some arms any more.
    fn forget(&mut self, is_gone: impl Fn(ArmOf) -> bool) {
        self.tables.exposures.keep(|_, of| !is_gone(of));
        self.make_stale();
    }

    /// Experiments that were found are retired where they are over, and rows of days that nothing
    /// wants any more leave.
    fn retire(&mut self, today: i64) {
        if !self.found.is_on() || today <= self.retired_on {
            return;
        }
        self.retired_on = today;
        let over = self.found.retire(today);
        if !over.is_empty() {
            self.forget(|of| over.contains(&of.exposure));
        }
        let found_from = self.found.first_day().unwrap_or(today);
        let first = self.spans.first_declared_day().unwrap_or(found_from);
        let oldest = first.min(found_from);
        if oldest > self.oldest_day {
            self.oldest_day = oldest;
            let is_old = |key: &UserDayKey| key.at < oldest * DAY_MS;
            let leaving = self.tables.days.iter().filter(|(key, _)| is_old(key));
            let users: BTreeSet<u64> = leaving.map(|(key, _)| key.user).collect();
            for user in users {
                self.mark_dirty(user, i64::MIN);
            }
            self.tables.days.keep(|key| !is_old(key));
        }
    }

    /// Takes over what was found, before rows are loaded.
    pub fn restore_found(&mut self, stored: Vec<(usize, FoundExperiment)>) {
        let declared = self.found.restore(stored);
        for found in declared {
            let arms = found.arms.iter().map(|arm| {
                let mut all = Vec::new();
                self.by_field.of_key(&found.key.text, &arm.text, &mut all);
                all
            });
            self.known_since.insert(found.code, arms.collect());
        }
    }

    /// An event says that its user is in an arm of an experiment.
    pub fn expose_by_event(&mut self, user: u64, event_ms: i64, (key, arm): (&str, &str)) {
        if !self.is_wanted(user, event_ms) {
            return;
        }
        let mut arms = Vec::new();
        if self.by_field.has(key) {
            self.by_field.of_key(key, arm, &mut arms);
        } else {
            arms.extend(self.find_arm((key, arm), user, event_ms).arm);
        }
        self.set_exposures(user, event_ms, &arms);
    }

    /// Whether events of any kind may expose their users.
    pub fn reads_fields(&self) -> bool {
        !self.by_field.is_empty() || self.found.is_on()
    }

    /// A user sees arms. `hash`: equal where the arms are, which are looked at where it is new.
    fn see(
        &mut self,
        user: u64,
        event_ms: i64,
        by: SaidBy,
        hash: u64,
        arms: impl FnOnce(&mut Self) -> Box<[ArmOf]>,
    ) {
        let day = event_ms.div_euclid(DAY_MS);
        // An experiment that was found is alive on the days on which events name it.
        let span = match self.found.is_on() {
            true => day as u64,
            false => u64::from(self.spans.of(day).number),
        };
        let hash = mix(hash, span);
        if self.tables.exposures.is_repeated(user, by, hash, event_ms) {
            return;
        }
        let arms = arms(self);
        self.set_exposures(user, event_ms, &arms);
        self.tables.exposures.note(user, by, hash, event_ms);
    }

    fn set_exposures(&mut self, user: u64, event_ms: i64, arms: &[ArmOf]) {
        let day = event_ms.div_euclid(DAY_MS);
        for of in arms {
            let exposure = &self.exposures[of.exposure as usize];
            let is_open = (exposure.first_day..exposure.days.1).contains(&day);
            if is_open && self.tables.exposures.is_new(user, *of, event_ms) {
                self.mark_dirty(user, i64::MIN);
                self.tables.exposures.set(user, *of, event_ms);
            }
        }
    }

    /// Whether anything wants to know what a user does at a time.
    fn is_wanted(&self, user: u64, event_ms: i64) -> bool {
        !is_anonymous(user)
            && in_sample(user, self.sample_bits)
            && event_ms >= self.oldest_day * DAY_MS
            && self.spans.of(event_ms.div_euclid(DAY_MS)).is_wanted
    }

    /// Add an amount of one sum.
    pub fn add(
        &mut self,
        dimensions: &Dimensions,
        sum: usize,
        at: UserAt,
        amount: i64,
    ) -> Result<(), Overflow> {
        let is_known = amount != 0 && sum < self.columns.len();
        if !is_known || !self.is_wanted(at.user, at.event_ms) {
            return Ok(());
        }
        let key = UserDayKey {
            user: at.user,
            at: at.event_ms,
            label: self.label(dimensions, at.combination),
        };
        let day = at.event_ms.div_euclid(DAY_MS);
        self.mark_dirty(at.user, day);
        let (span, exposures) = (self.spans.of(day), &mut self.tables.exposures);
        let is_settled = at.event_ms < self.final_ms
            || exposures.is_whole(at.user, (span.number, &span.open), at.event_ms);
        if is_settled {
            let slotted = self.tables.slotted(&key);
            self.tables.days.add(&slotted, sum, amount)
        } else {
            self.tables.pending.add(&key, sum, amount)
        }
    }

    /// Add an amount of one sum under a time as it is, to a unit that has no labels. The sums are not
    /// to be refreshed before all is added.
    fn add_at(&mut self, (unit, at): (u64, i64), sum: usize, amount: i64) -> Result<(), Overflow> {
        let is_known = amount != 0 && sum < self.columns.len();
        if !is_known || !self.is_wanted(unit, at) {
            return Ok(());
        }
        let key = UserDayKey {
            user: unit,
            at,
            label: 0,
        };
        self.tables.days.add(&key, sum, amount)
    }

    fn label(&mut self, dimensions: &Dimensions, combination: Combination) -> u32 {
        let known = self.labels.known.len();
        let label = self.labels.of(dimensions, combination);
        if self.labels.known.len() > known {
            for arms in &mut self.of_labels {
                arms.learn(&self.labels);
            }
        }
        label
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

    /// Nobody's contribution is in the sums any more.
    fn make_stale(&mut self) {
        self.is_stale = !self.is_empty();
        self.dirty.clear();
        self.last_dirty = None;
        self.delta.clear();
    }

    /// Retract what a user contributes from a day on, once.
    fn mark_dirty(&mut self, user: u64, day: i64) {
        let is_marked = |last: (u64, i64)| last.0 == user && last.1 <= day;
        if self.is_stale || self.last_dirty.is_some_and(is_marked) {
            return;
        }
        self.last_dirty = Some((user, day));
        let days = match self.dirty.entry(user) {
            Entry::Vacant(entry) => {
                entry.insert(day);
                day..i64::MAX
            }
            Entry::Occupied(mut entry) if day < *entry.get() => {
                let marked = entry.insert(day);
                day..marked
            }
            Entry::Occupied(entry) => {
                self.last_dirty = Some((user, *entry.get()));
                return;
            }
        };
        self.contribute(user, days, -1);
    }

    /// Add `sign` times what a user contributes on some days.
    fn contribute(&mut self, user: u64, added: Range<i64>, sign: i64) {
        let Self {
            person,
            delta,
            work,
            entered,
            ..
        } = self;
        person.read(&self.tables, user);
        let history = person.history();
        let begun = added.start.max(self.first_day)..added.end;
        for (day, outcomes) in history.outcomes(&begun) {
            let outcomes = [I256::from(outcomes)];
            delta.add(day, (ALL_OUTCOMES, 1, 0), &outcomes, sign);
        }
        entered.clear();
        for saw in person.saw() {
            for place in &self.trials_of[saw[0].0.exposure as usize] {
                let seen = self.trials[*place].seen(saw);
                entered.extend(
                    seen.map(|seen| Entered::new(&self.trials[*place], *place, seen, &history)),
                );
            }
        }
        entered.sort_unstable_by_key(|entered| entered.same);
        for same in entered.chunk_by(|a, b| a.same == b.same) {
            let (trial, seen) = (&self.trials[same[0].trial], same[0].seen);
            let wanted = DayRanges {
                within: trial.days.clone(),
                added: added.clone(),
            };
            let arms = trial.attributed.map(|place| &self.of_labels[place]);
            work.contribution.clear();
            trial.find_unexposed(&history, &wanted, -1, work);
            match seen.only() {
                Some(_) => trial.find((&history, seen), arms, &wanted, work),
                None => trial.find_mixed(seen, &wanted, work),
            }
            for each in same {
                self.trials[each.trial].add(work, each.seen.arm, (delta, sign));
            }
        }
    }

    /// Bring the sums up to date. `final_ms`: no exposure before it can come any more.
    pub fn refresh(&mut self, final_ms: i64) -> Result<(), Overflow> {
        if self.is_empty() {
            return Ok(());
        }
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
        for (user, day) in &dirty {
            self.contribute(*user, *day..i64::MAX, 1);
        }
        dirty.clear();
        dirty.shrink_to(DIRTY_USERS);
        (self.dirty, self.last_dirty) = (dirty, None);
        self.changed.append(&mut self.sums.take(&mut self.delta));
    }

    /// Compute everything anew.
    fn restart(&mut self) {
        self.is_stale = false;
        let users: Vec<u64> = self.tables.users().collect();
        for user in users {
            self.contribute(user, i64::MIN..i64::MAX, 1);
        }
        self.changed.extend(self.sums.days());
        self.sums = std::mem::take(&mut self.delta);
        self.changed.extend(self.sums.days());
    }

    /// Bring to slots what is known for good now. The sums stay as they are.
    fn settle(&mut self, final_ms: i64) -> Result<(), Overflow> {
        self.final_ms = final_ms;
        let crowded: Vec<u64> = self.tables.crowded().collect();
        for user in crowded {
            self.mark_dirty(user, i64::MIN); // not all rows may find room
        }
        self.tables.settle(final_ms)?;
        self.retire(final_ms.div_euclid(DAY_MS));
        if self.is_dirty() {
            self.add_dirty();
        }
        Ok(())
    }

    /// The days that have sums.
    pub fn days(&self) -> impl Iterator<Item = i64> {
        self.sums.days()
    }

    /// The sums of all experiments on a day, as of the last refresh: columns `key`, ascending, and
    /// `limb_0`, ….
    pub fn sums_of_day(&self, day: i64) -> Columns {
        self.sums.of_day(day)
    }

    /// The first key of each experiment on a day.
    pub fn first_keys(&self) -> Vec<i64> {
        self.trials.iter().map(|trial| trial.keys.start).collect()
    }

    /// The days whose sums changed since the last call.
    pub fn take_changed(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.changed).into_iter().collect()
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
        let values = match by {
            Some(dimension) => Some(self.labels.values_of(dimensions, dimension)?),
            None => None,
        };
        let trial = self.trials.get(trial)?;
        let arms = trial.attributed.map(|place| &self.of_labels[place]);
        let days = from.max(trial.days.start)..to.min(trial.days.end);
        let mut found: BTreeMap<&str, ExperimentSums> = BTreeMap::new();
        let wanted = DayRanges::all_of(days.clone());
        for user in self.tables.users().filter(|_| !days.is_empty()) {
            self.person.read(&self.tables, user);
            let history = self.person.history();
            let seen = trial.seen(self.person.saw_of(trial.exposure));
            let value = match (&values, seen) {
                (Some(values), Some(seen)) => trial.value_of((&history, seen), arms, values),
                (Some(_), None) => None,
                (None, _) => Some(""),
            };
            let Some(value) = value else {
                continue;
            };
            let work = &mut self.work;
            work.contribution.clear();
            match (seen, seen.and_then(|seen| seen.only())) {
                (None, _) => trial.find_unexposed(&history, &wanted, 1, work),
                (Some(seen), None) => trial.find_mixed(seen, &wanted, work),
                (Some(seen), Some(_)) => trial.find((&history, seen), arms, &wanted, work),
            }
            let sums = found.entry(value).or_default();
            trial.add(work, seen.map_or(0, |seen| seen.arm), (sums, 1));
        }
        let columns = |(value, sums): (&&str, &ExperimentSums)| {
            ((*value).to_owned(), trial.columns(sums, 0..0))
        };
        Some(found.iter().map(columns).collect())
    }

    /// The arm of each experiment that a user is in, with one arm; of the user that is read.
    fn arms_of_person(&self, found: &mut Vec<(usize, u32)>) {
        found.clear();
        for saw in self.person.saw() {
            for place in &self.trials_of[saw[0].0.exposure as usize] {
                let arm = self.trials[*place].seen(saw).and_then(|seen| seen.only());
                found.extend(arm.map(|arm| (*place, arm)));
            }
        }
    }

    /// Users of each pair of experiments by their arms: (first, arm, second, arm) → users, the first
    /// experiment before the second.
    pub fn pairs(&mut self) -> HashMap<(usize, u32, usize, u32), u64> {
        let (mut found, mut arms) = (HashMap::new(), Vec::new());
        let users: Vec<u64> = self.tables.exposures.users().collect();
        for user in users {
            self.person.read_exposures(&self.tables, user);
            self.arms_of_person(&mut arms);
            arms.sort_unstable();
            for (number, (first, a)) in arms.iter().enumerate() {
                for (second, b) in &arms[number + 1..] {
                    *found.entry((*first, *a, *second, *b)).or_default() += 1;
                }
            }
        }
        found
    }

    /// The sums of an experiment over the days [from, to), apart for each arm of another one, of users
    /// who are in one arm of it. None where there is no such experiment.
    pub fn across(
        &mut self,
        (trial, other): (usize, usize),
        (from, to): (i64, i64),
    ) -> Option<BTreeMap<u32, Columns>> {
        self.trials.get(other)?;
        let trial = self.trials.get(trial)?;
        let days = from.max(trial.days.start)..to.min(trial.days.end);
        let arms = trial.attributed.map(|place| &self.of_labels[place]);
        let wanted = DayRanges::all_of(days.clone());
        let mut found: BTreeMap<u32, ExperimentSums> = BTreeMap::new();
        for user in self.tables.exposures.users().filter(|_| !days.is_empty()) {
            self.person.read(&self.tables, user);
            let seen = trial.seen(self.person.saw_of(trial.exposure));
            let of = &self.trials[other];
            let arm = of
                .seen(self.person.saw_of(of.exposure))
                .and_then(|seen| seen.only());
            let (Some(seen), Some(arm)) = (seen, arm) else {
                continue;
            };
            let Some(own) = seen.only() else {
                continue;
            };
            let work = &mut self.work;
            work.contribution.clear();
            trial.find((&self.person.history(), seen), arms, &wanted, work);
            trial.add(work, own, (found.entry(arm).or_default(), 1));
        }
        let columns = |(arm, sums): (&u32, &ExperimentSums)| (*arm, trial.columns(sums, 0..0));
        Some(found.iter().map(columns).collect())
    }

    /// The sums of an experiment's covariate days over everybody, whatever arm it was, computed
    /// from the rows (see `Trial::contribute_whatever_arm`). None where there are no such days.
    pub fn before_start(&mut self, trial: usize) -> Option<Columns> {
        let before = self.trials.get(trial)?.before()?;
        let mut sums = ExperimentSums::default();
        for user in self.tables.users() {
            self.person.read(&self.tables, user);
            self.work.contribution.clear();
            before.find_whatever_arm(&self.person.history(), &mut self.work);
            before.add(&self.work, 1, (&mut sums, 1));
        }
        Some(before.columns(&sums, 0..0))
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

    /// No exposure before this time (ms) can come any more, as of the last settling.
    pub fn final_ms(&self) -> i64 {
        self.final_ms
    }

    /// Amounts that were not kept because their user had too many rows.
    pub fn dropped_rows(&self) -> u64 {
        self.tables.days.dropped_rows + self.tables.pending.dropped_rows
    }

    /// Sets them, as they were stored.
    pub fn set_dropped_rows(&mut self, rows: u64) {
        self.tables.days.dropped_rows = rows;
    }

    /// Number of rows that the limit bounds: by slot, by time, or of exposures, whichever are most.
    pub fn rows(&self) -> usize {
        self.user_rows().max(self.tables.exposures.len())
    }

    /// Number of rows by slot or by time, whichever are more.
    pub fn user_rows(&self) -> usize {
        self.tables.days.len().max(self.tables.pending.len())
    }

    /// Rows of exposures: number and bytes.
    pub fn exposure_rows(&self) -> (usize, usize) {
        let exposures = &self.tables.exposures;
        (exposures.len(), exposures.nbytes())
    }

    /// Bytes of memory, but for those of exposures.
    pub fn nbytes(&self) -> usize {
        self.tables.nbytes() - self.tables.exposures.nbytes()
            + self.sums.nbytes()
            + self.delta.nbytes()
            + self.dirty.allocation_size()
    }
}
