//! Intervals of one key that lie close together are one: the rule of sessions and of viewings.
//!
//! A row is the union of such intervals, with a summary of what was in them. Because intervals only
//! grow together, rows do not depend on the order in which their parts came. Rows change, so they
//! are stored in versions: of those with one id the newest counts.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::hash::HashMap;
use crate::log::NO_ROW;

const BUCKET_MS: i64 = 8_192;

/// What is said of a union besides its ends.
pub trait Summary: Copy {
    /// Takes in the summary of another part; each comes with the ends of its part.
    fn join(&mut self, mine: (i64, i64), other: &Self, theirs: (i64, i64));
}

/// A union of intervals, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Row<S> {
    pub key: u64,
    pub low_ms: i64,
    pub high_ms: i64,
    pub summary: S,
    pub id: u64,
    /// Epoch in which it last changed.
    pub epoch: u32,
    /// False: it became part of another row.
    pub is_alive: bool,
    pub(crate) next: u32,
}

/// Rows that a new interval replaced, and the one that it became.
pub struct Merged<S> {
    pub before: SmallVec<[Row<S>; 2]>,
    pub after: Row<S>,
}

/// The rows of one partition that intervals can still join.
#[derive(Debug)]
pub struct Intervals<S> {
    gap_ms: i64,
    reach_ms: i64,
    pub limit: usize,
    rows: Vec<Option<Row<S>>>,
    free: Vec<u32>,
    heads: HashMap<u32>,
    /// Rows by the time after which nothing joins them, as it was when they were put here.
    due: BTreeMap<i64, Vec<(u32, u64)>>,
    next_id: u64,
    live: usize,
    pub epoch: u32,
    changed: Vec<(u32, u64)>,
    sealed: Option<Vec<(u32, u64)>>,
    pub evicted_early: u64,
}

impl<S: Summary> Intervals<S> {
    /// Intervals less than `gap_ms` apart are one; rows stay until the clock is `reach_ms` past
    /// their end.
    pub fn new(gap_ms: i64, reach_ms: i64, limit: usize) -> Self {
        Self {
            gap_ms,
            reach_ms,
            limit,
            rows: Vec::new(),
            free: Vec::new(),
            heads: HashMap::default(),
            due: BTreeMap::new(),
            next_id: 0,
            live: 0,
            epoch: 1,
            changed: Vec::new(),
            sealed: None,
            evicted_early: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.live
    }

    fn get(&self, at: u32) -> Option<&Row<S>> {
        self.rows.get(at as usize)?.as_ref()
    }

    fn get_mut(&mut self, at: u32) -> Option<&mut Row<S>> {
        self.rows.get_mut(at as usize)?.as_mut()
    }

    fn of_key(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let first = self.heads.get(&key).copied();
        std::iter::successors(first, |at| {
            Some(self.get(*at)?.next).filter(|x| *x != NO_ROW)
        })
    }

    /// Takes in an interval.
    pub fn merge(&mut self, key: u64, low_ms: i64, high_ms: i64, summary: S) -> Merged<S> {
        let gap_ms = self.gap_ms;
        let is_near = |row: &Row<S>| low_ms - row.high_ms < gap_ms && row.low_ms - high_ms < gap_ms;
        let near: SmallVec<[u32; 2]> = self
            .of_key(key)
            .filter(|at| self.get(*at).is_some_and(is_near))
            .collect();
        let (id, epoch) = (self.next_id, self.epoch);
        let mut after = Row {
            key,
            low_ms,
            high_ms,
            summary,
            id,
            epoch,
            is_alive: true,
            next: NO_ROW,
        };
        let mut before = SmallVec::new();
        for row in near.iter().filter_map(|at| self.get(*at)) {
            let ends = (after.low_ms, after.high_ms);
            after
                .summary
                .join(ends, &row.summary, (row.low_ms, row.high_ms));
            after.low_ms = after.low_ms.min(row.low_ms);
            after.high_ms = after.high_ms.max(row.high_ms);
            before.push(*row);
        }
        match near.split_first() {
            None => {
                self.next_id += 1;
                self.add(after);
            }
            Some((first, others)) => {
                for at in others {
                    self.bury(*at);
                }
                after = self.replace(*first, after);
            }
        }
        Merged { before, after }
    }

    /// Adds a row to the chain of its key.
    fn add(&mut self, mut row: Row<S>) -> u32 {
        let at = self.free.pop().unwrap_or(self.rows.len() as u32);
        if row.is_alive {
            row.next = self.heads.insert(row.key, at).unwrap_or(NO_ROW);
            self.live += 1;
        }
        if at as usize == self.rows.len() {
            self.rows.push(None);
        }
        self.rows[at as usize] = Some(row);
        let bucket = (row.high_ms + self.reach_ms).div_euclid(BUCKET_MS);
        self.due.entry(bucket).or_default().push((at, row.id));
        self.changed.push((at, row.id));
        at
    }

    /// Writes a union over one of its parts.
    fn replace(&mut self, at: u32, mut after: Row<S>) -> Row<S> {
        let epoch = self.epoch;
        if let Some(row) = self.get_mut(at) {
            (after.id, after.next) = (row.id, row.next);
            let is_first_change = row.epoch != epoch;
            *row = after;
            if is_first_change {
                self.changed.push((at, after.id));
            }
        }
        after
    }

    /// A row became part of another: its stored versions must not come back.
    fn bury(&mut self, at: u32) {
        self.unlink(at);
        let epoch = self.epoch;
        if let Some(row) = self.get_mut(at) {
            let (id, is_first_change) = (row.id, row.epoch != epoch);
            (row.is_alive, row.epoch, row.next) = (false, epoch, NO_ROW);
            if is_first_change {
                self.changed.push((at, id));
            }
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some((key, next)) = self.get(at).filter(|r| r.is_alive).map(|r| (r.key, r.next)) else {
            return;
        };
        self.live -= 1;
        let before = self
            .of_key(key)
            .find(|x| self.get(*x).is_some_and(|row| row.next == at));
        match before.and_then(|x| self.get_mut(x)) {
            Some(row) => row.next = next,
            None if next == NO_ROW => {
                self.heads.remove(&key);
            }
            None => {
                self.heads.insert(key, next);
            }
        }
    }

    /// Changes the summaries of those rows of a key for which `change` does anything.
    pub fn change(
        &mut self,
        key: u64,
        mut change: impl FnMut(&mut S) -> bool,
    ) -> SmallVec<[(Row<S>, Row<S>); 1]> {
        let all: SmallVec<[u32; 2]> = self.of_key(key).collect();
        let mut changed = SmallVec::new();
        for at in all {
            if let Some(before) = self.get(at).copied() {
                let mut after = before;
                if change(&mut after.summary) {
                    after.epoch = self.epoch;
                    changed.push((before, self.replace(at, after)));
                }
            }
        }
        changed
    }

    /// Forgets rows that nothing can join any more at a clock; `settled` is called with each that
    /// counts. Beyond the bound the oldest leave before their time.
    pub fn expire(&mut self, clock_ms: i64, mut settled: impl FnMut(&Row<S>)) {
        while let Some(entry) = self.due.first_entry() {
            if *entry.key() * BUCKET_MS > clock_ms && self.live <= self.limit {
                break;
            }
            let bucket = *entry.key();
            let rows = entry.remove();
            let is_early = bucket * BUCKET_MS > clock_ms;
            let mut later: Vec<(u32, u64)> = Vec::new();
            for (at, id) in rows {
                let Some(row) = self.get(at).filter(|row| row.id == id).copied() else {
                    continue;
                };
                let until_ms = row.high_ms + self.reach_ms;
                let until = until_ms.div_euclid(BUCKET_MS);
                if until > bucket {
                    self.due.entry(until).or_default().push((at, id));
                } else if until_ms < clock_ms {
                    if row.is_alive {
                        settled(&row);
                    }
                    self.remove(at);
                } else if is_early && self.live > self.limit {
                    self.evicted_early += u64::from(row.is_alive);
                    self.remove(at);
                } else {
                    later.push((at, id));
                }
            }
            if !later.is_empty() {
                self.due.insert(bucket, later);
                if self.live <= self.limit || !is_early {
                    break;
                }
            }
        }
    }

    fn remove(&mut self, at: u32) {
        self.unlink(at);
        if let Some(row) = self.rows.get_mut(at as usize) {
            *row = None;
            self.free.push(at);
        }
    }

    // Stored form

    /// What changes from now on belongs to another epoch.
    pub fn seal(&mut self) {
        if !self.changed.is_empty() {
            self.epoch += 1;
            self.sealed = Some(std::mem::take(&mut self.changed));
        }
    }

    /// Rows that last changed in the epochs [first, end), those that are no more included.
    pub fn versions(&self, first: u32, end: u32) -> Vec<&Row<S>> {
        let is_wanted = |row: &&Row<S>| (first..end).contains(&row.epoch);
        let is_last = first + 1 == self.epoch && end == self.epoch;
        if let Some(sealed) = self.sealed.as_ref().filter(|_| is_last) {
            let rows = sealed
                .iter()
                .filter_map(|(at, id)| self.get(*at).filter(|row| row.id == *id));
            return rows.filter(is_wanted).collect();
        }
        self.rows.iter().flatten().filter(is_wanted).collect()
    }

    /// The rows that are here.
    pub fn alive(&self) -> impl Iterator<Item = &Row<S>> {
        self.rows.iter().flatten().filter(|row| row.is_alive)
    }

    /// A stored row has this id: new ones get later ones.
    pub fn skip_id(&mut self, id: u64) {
        self.next_id = self.next_id.max(id + 1);
    }

    /// Takes over the newest stored version of a row, unless nothing can join it at a clock.
    pub fn load(&mut self, mut row: Row<S>, clock_ms: i64) {
        if row.high_ms + self.reach_ms >= clock_ms {
            row.next = NO_ROW;
            self.add(row);
            self.changed.clear();
        }
    }

    /// Rows were loaded; what changes from now on belongs to this epoch.
    pub fn begin(&mut self, epoch: u32) {
        (self.epoch, self.sealed) = (epoch, None);
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Option<Row<S>>>() + self.heads.allocation_size()
    }
}
