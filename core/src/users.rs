//! Users: what people saw and did, kept so that means over people can be read for any window.
//!
//! An event raises a last time of its (user, item, combination). When a user is touched first in a
//! combination since the last refresh, what he contributes to its segments is retracted and he is dirty
//! in it; a refresh adds what dirty users contribute to these segments then. Feedback that may still
//! move to another combination is held apart until it is settled.

mod bounds;
pub mod contribution;
mod dirty;
pub mod held;
pub mod items;
pub mod rows;
mod stored;
pub mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::changes::Combination;
use crate::hash::in_sample;
use crate::panes::dimensions::{CombinationCodes, PushedOut};
use crate::panes::segments::{Placement, Segments};
use crate::spec::{Ring, RowLimit};
use crate::users::contribution::{Contribution, Part};
use crate::users::dirty::Dirty;
use crate::users::held::Held;
use crate::users::items::{UserItemKey, UserItems};
pub use crate::users::stored::{latest_unit, time_column};
use crate::users::sums::{MAX_STATS, RingSums, UserSums, users_stats};

/// Rows below which nothing is compacted.
const COMPACT_ROWS: usize = 1 << 18;

/// What users are counted by.
#[derive(Clone, Debug)]
pub struct UsersSpec {
    pub rings: Vec<Ring>,
    /// Milliseconds of the finest pane, of which all others are multiples.
    pub unit_ms: i64,
    /// Places of the rollups by which they are counted.
    pub rollups: Vec<usize>,
    /// Kinds of feedback.
    pub kinds: usize,
    /// Rows beyond which a sample of the users is kept.
    pub limit: RowLimit,
    /// From when on users count in each ring; without one: always.
    pub since_ms: Vec<i64>,
}

/// An impression, or feedback.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    pub user: u64,
    pub pair: u64,
    pub combination: Combination,
    pub event_ms: i64,
    /// 0: an impression; 1 + the kind of feedback.
    pub column: usize,
}

/// The users of one partition.
#[derive(Debug)]
pub struct Users {
    unit_ms: i64,
    /// Units before the first that times of rows count; they have 32 bits.
    base: i64,
    kinds: usize,
    limit: usize,
    windows: Vec<Ring>,
    pub items: UserItems,
    held: Held,
    rollups: Vec<usize>,
    rings: Vec<RingSums>,
    /// Sums of each ring as of the last refresh.
    sums: Vec<UserSums>,
    is_changed: Vec<bool>,
    dirty: Dirty,
    /// Whether nobody's contribution is in the sums.
    is_stale: bool,
    sample_bits: u32,
    refreshed_ms: i64,
    compact_at: usize,
    work: Contribution,
    /// Combinations in which a user is dirty.
    dirty_in: Vec<Combination>,
}

impl Users {
    /// An error where panes are not multiples of the unit, or it is too short for 32 bits.
    pub fn new(spec: UsersSpec) -> Result<Self, String> {
        let UsersSpec {
            rings: windows,
            unit_ms,
            rollups,
            kinds,
            limit: RowLimit {
                rows: limit,
                of_a_user,
            },
            since_ms,
        } = spec;
        if unit_ms <= 0 {
            return Err(format!("units of {unit_ms} ms"));
        }
        if windows
            .iter()
            .any(|ring| ring.pane_ms < unit_ms || ring.pane_ms % unit_ms != 0)
        {
            return Err(format!("panes are no multiples of {unit_ms} ms"));
        }
        let stats = users_stats(kinds);
        if stats > MAX_STATS {
            return Err(format!("{kinds} kinds of feedback of users are too many"));
        }
        Ok(Self {
            unit_ms,
            base: 0,
            kinds,
            limit,
            items: UserItems::new(kinds, of_a_user as usize),
            held: Held::default(),
            rollups,
            rings: windows
                .iter()
                .enumerate()
                .map(|(at, ring)| {
                    let since_ms = since_ms.get(at).copied().unwrap_or(0);
                    RingSums::new(*ring, unit_ms, stats).since(since_ms.div_euclid(unit_ms))
                })
                .collect(),
            sums: vec![UserSums::default(); windows.len()],
            is_changed: vec![false; windows.len()],
            windows,
            dirty: Dirty::default(),
            is_stale: false,
            sample_bits: 0,
            refreshed_ms: 0,
            compact_at: COMPACT_ROWS.min(limit),
            work: Contribution::new(kinds),
            dirty_in: Vec::new(),
        })
    }

    // Events ----------------------------------------------------------------------------------------

    /// Fetches what is known of a user: see `Partition::warm_up`.
    pub fn warm_up(&self, user: u64) -> usize {
        self.items.warm_up(user)
    }

    /// Take in an impression, or feedback that will not move any more.
    pub fn touch(
        &mut self,
        touch: &Touch,
        segments: Placement<'_, impl CombinationCodes>,
        stream_ms: i64,
    ) {
        let Some((key, time)) = self.read(touch) else {
            return;
        };
        if i64::from(time) + self.base > self.oldest_unit(stream_ms)
            && let Some(row) = self.earlier(&key, touch.column, time)
        {
            self.mark_dirty(key.user, Some(key.combination), segments);
            self.items.set(&key, row, touch.column, time);
        }
    }

    /// Hold feedback that may still move, or has moved: it is read from its combination until it is
    /// released.
    pub fn hold(
        &mut self,
        serial: u64,
        touch: &Touch,
        segments: Placement<'_, impl CombinationCodes>,
    ) {
        self.release(serial, segments);
        if let Some((key, time)) = self.read(touch) {
            self.mark_dirty(key.user, Some(key.combination), segments);
            self.held.insert(serial, key, touch.column, time);
        }
    }

    /// Hold feedback no longer; does nothing where it is not held.
    pub fn release(&mut self, serial: u64, segments: Placement<'_, impl CombinationCodes>) {
        if let Some((user, combination)) = self.held.place(serial) {
            self.mark_dirty(user, Some(combination), segments);
            self.held.remove(serial);
        }
    }

    /// The last time (ms) at which a user saw an item, or gave feedback to it.
    pub fn last_ms(&self, user: u64, pair: u64, is_feedback: bool) -> Option<i64> {
        let columns = if is_feedback { 1..1 + self.kinds } else { 0..1 };
        let rows = self.items.of(user).filter(|row| row.pair() == pair);
        let rows = rows.flat_map(|row| row.times()[columns.clone()].iter().copied());
        let held = self.held.of(user);
        let held = held.filter(|(of, _, column, _)| *of == pair && columns.contains(column));
        self.ms_of(rows.chain(held.map(|(.., time)| time)).max()?)
    }

    /// The begin (ms) of a time; None of never.
    fn ms_of(&self, time: u32) -> Option<i64> {
        (time > 0).then(|| (i64::from(time) - 1 + self.base) * self.unit_ms)
    }

    /// The last times (ms) at which a user gave feedback, by pair.
    pub fn last_feedback(&self, user: u64) -> BTreeMap<u64, i64> {
        let rows = self.items.of(user).map(|row| {
            let last = row.times()[1..].iter().max();
            (row.pair(), last.copied().unwrap_or(0))
        });
        let held = self.held.of(user);
        let held = held.filter(|(_, _, column, _)| *column > 0);
        let mut last = BTreeMap::new();
        for (pair, time) in rows.chain(held.map(|(pair, .., time)| (pair, time))) {
            if let Some(ms) = self.ms_of(time) {
                let known = last.entry(pair).or_insert(ms);
                *known = ms.max(*known);
            }
        }
        last
    }

    /// Key and time of an event; None where it does not count.
    fn read(&mut self, touch: &Touch) -> Option<(UserItemKey, u32)> {
        let Touch {
            user,
            pair,
            combination,
            event_ms,
            column,
        } = *touch;
        if column > self.kinds || !in_sample(user, self.sample_bits) {
            return None;
        }
        let time = self.time_of(event_ms.div_euclid(self.unit_ms))?;
        (time > 0).then_some((
            UserItemKey {
                user,
                pair,
                combination,
            },
            time,
        ))
    }

    /// The time of a unit, from 1; None where it is long before all others. Times count from another
    /// base where they would need more than 32 bits.
    fn time_of(&mut self, unit: i64) -> Option<u32> {
        let is_far = unit - self.base >= i64::from(u32::MAX);
        if is_far || (unit < self.base && self.items.is_empty() && self.held.is_empty()) {
            let shift = (unit - (1 << 31)).max(0) - self.base;
            self.base += shift;
            self.items.shift(shift);
            self.held.shift(shift);
            for ring in &mut self.rings {
                ring.base = self.base;
            }
        }
        u32::try_from(unit - self.base + 1)
            .ok()
            .filter(|time| *time > 0)
    }

    /// The row whose last time is earlier, if there is one, or none where it is to be made; None
    /// where nothing changes.
    fn earlier(&mut self, key: &UserItemKey, column: usize, time: u32) -> Option<Option<usize>> {
        let row = self.items.find(key);
        if row.is_some_and(|row| self.items.time(row, column) >= time) {
            return None;
        }
        if row.is_none() && self.items.is_full(key.user) {
            self.items.dropped_rows += 1;
            return None;
        }
        Some(row)
    }

    // Sums ------------------------------------------------------------------------------------------

    /// Whether something changed that the sums do not show yet.
    pub fn is_dirty(&self) -> bool {
        self.is_stale || !self.dirty.is_empty()
    }

    /// Whether the sums are not those of the rows, so that they have to be refreshed at once: rows
    /// were loaded, or users left the sample.
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Retract once what a user contributes to the segments of a combination, or to all: also where
    /// it has no segment yet, for that may come to be `other`, in which he may be already.
    fn mark_dirty(
        &mut self,
        user: u64,
        combination: Option<Combination>,
        segments: Placement<'_, impl CombinationCodes>,
    ) {
        if self.is_stale || self.dirty.has(user, combination) {
            return;
        }
        self.dirty.read(user, &mut self.dirty_in);
        let is_known =
            |of: &Combination| self.rollups.iter().all(|x| segments.of(*of, *x).is_some());
        let of = self.dirty.insert(user, combination.filter(is_known));
        self.gather(user);
        let part = Part {
            of: of.as_ref().map(std::slice::from_ref),
            except: &self.dirty_in,
        };
        let rollups = &self.rollups;
        self.work
            .add(segments, rollups, &mut self.rings, (part, -1));
    }

    fn gather(&mut self, user: u64) {
        self.work.clear();
        for row in self.items.of(user) {
            self.work.push(row.pair(), row.combination(), row.times());
        }
        for (pair, combination, column, time) in self.held.of(user) {
            self.work.push_one(pair, combination, column, time);
        }
    }

    /// Bring the sums up to date, and forget what no window covers.
    pub fn refresh(
        &mut self,
        stream_ms: i64,
        combinations: &impl CombinationCodes,
        segments: &mut Segments,
    ) {
        self.shrink(stream_ms);
        self.refreshed_ms = stream_ms;
        for ring in &mut self.rings {
            ring.advance(stream_ms);
        }
        if self.is_stale {
            self.restart();
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for user in dirty.users() {
            let is_in_part = dirty.read(user, &mut self.dirty_in);
            self.gather(user);
            self.work.learn(segments, &self.rollups, combinations);
            let placement = Placement {
                combinations,
                segments,
            };
            let part = Part {
                of: is_in_part.then_some(&self.dirty_in),
                except: &[],
            };
            let rollups = &self.rollups;
            self.work
                .add(placement, rollups, &mut self.rings, (part, 1));
        }
        dirty.clear();
        self.dirty = dirty;
        let held = self.sums.iter_mut().zip(&mut self.is_changed);
        for (ring, (sums, is_changed)) in self.rings.iter_mut().zip(held) {
            if let Some(now) = ring.take() {
                (*sums, *is_changed) = (now, true);
            }
        }
    }

    /// Begin with empty sums; every user is dirty.
    fn restart(&mut self) {
        self.is_stale = false;
        for ring in &mut self.rings {
            ring.clear();
        }
        self.dirty.clear();
        for user in self.items.users().chain(self.held.users()) {
            if !self.dirty.has(user, None) {
                self.dirty.insert(user, None);
            }
        }
    }

    /// The sums of a ring as of the last refresh.
    pub fn sums(&self, ring: usize) -> Option<&UserSums> {
        self.sums.get(ring)
    }

    /// The rings whose sums changed since the last call.
    pub fn take_changed_rings(&mut self) -> Vec<usize> {
        let changed = (0..self.is_changed.len())
            .filter(|ring| self.is_changed[*ring])
            .collect();
        self.is_changed.fill(false);
        changed
    }

    /// Stream time of the last refresh.
    pub fn refreshed_ms(&self) -> i64 {
        self.refreshed_ms
    }

    /// A value is about to become `other`: retract what users contribute who have rows with it.
    pub fn before_fold<C: CombinationCodes>(
        &mut self,
        (at, gone): PushedOut,
        segments: Placement<'_, C>,
    ) {
        let is_moving =
            |combination: Combination| segments.combinations.codes(combination)[at] == gone;
        let rows = self.items.combinations();
        let held = self
            .held
            .iter()
            .map(|(_, user, combination)| (user, combination));
        let moving = rows
            .chain(held)
            .chain(self.dirty.combinations())
            .filter(|(_, combination)| is_moving(*combination));
        let mut users: Vec<u64> = moving.map(|(user, _)| user).collect();
        users.dedup();
        for user in users {
            self.mark_dirty(user, None, segments);
        }
    }

    /// Calls its argument with every combination that is referred to.
    pub fn each_combination(&self, visit: &mut dyn FnMut(Combination)) {
        let rows = self
            .items
            .combinations()
            .map(|(_, combination)| combination);
        let held = self.held.iter().map(|(.., combination)| combination);
        let dirty = self
            .dirty
            .combinations()
            .map(|(_, combination)| combination);
        rows.chain(held).chain(dirty).for_each(visit);
    }
}
