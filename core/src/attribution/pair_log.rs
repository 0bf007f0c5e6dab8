//! Rows of (user, item) pairs in log order, found by pair and time.
//!
//! The rows of a pair are chained, the newest row first. Rows come almost in the order of their
//! times; a row whose time no older row of its pair passes says so, and a search ends there.
//! A pair in whose chain a search takes many steps is crowded: its rows are found by an ordered set
//! from then on, so that no search takes more steps than a logarithm of them.

use std::collections::BTreeSet;

use hashbrown::HashTable;

use crate::changes::Age;
use crate::hash::HashMap;
use crate::log::{Log, NO_ROW};

/// Steps in a chain after which its pair is crowded.
const CHAIN_STEPS: usize = 32;
/// Rows that a search passes which do not fit though their place does.
const PASSED_ROWS: usize = 256;

/// Where a row stands in the chain of its pair.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The row of the pair before it.
    pub prev: u32,
    /// Whether no older row, in log order, has a greater age.
    pub is_newest_so_far: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            prev: NO_ROW,
            is_newest_so_far: false,
        }
    }
}

/// A row of a pair.
pub trait OfPair {
    /// (user, item) in one hash.
    fn pair(&self) -> u64;
    fn age(&self) -> Age;
    /// The slate, or its key.
    fn group(&self) -> u64;
    /// The time of its first feedback; `NOT_YET` without any.
    fn first_ms(&self) -> i64;
    fn link(&self) -> Link;
    fn set_link(&mut self, link: Link);
}

/// The time of the first feedback of an impression that has none.
pub const NOT_YET: i64 = 1 << 62;

/// Which rows of a pair a search is for: those of one group or of any, and all of them or only those
/// with feedback at or before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairSearch {
    pub group: Option<u64>,
    pub has_feedback: bool,
}

/// The rows of a crowded pair by age, for each search that wants them.
type Crowd = BTreeSet<(PairSearch, Age, u32)>;

/// Where a row stands among those of its pair.
fn entries<T: OfPair>(row: &T, at: u32) -> impl Iterator<Item = (PairSearch, Age, u32)> {
    let with_feedback = (row.first_ms() != NOT_YET).then_some(true);
    let (age, group) = (row.age(), row.group());
    let of = move |has_feedback| {
        [None, Some(group)].map(|group| {
            (
                PairSearch {
                    group,
                    has_feedback,
                },
                age,
                at,
            )
        })
    };
    std::iter::once(false).chain(with_feedback).flat_map(of)
}

/// Rows of one partition.
#[derive(Debug)]
pub struct PairLog<T> {
    pub log: Log<T>,
    by_pair: HashTable<u32>,
    crowded: HashMap<Crowd>,
    /// Searches that passed as many rows as a search may.
    pub cut_short: u64,
}

impl<T> Default for PairLog<T> {
    fn default() -> Self {
        Self {
            log: Log::default(),
            by_pair: HashTable::new(),
            crowded: HashMap::default(),
            cut_short: 0,
        }
    }
}

impl<T: OfPair> PairLog<T> {
    fn newest_row(&self, pair: u64) -> u32 {
        let log = &self.log;
        let is_of_pair = |row: &u32| log.get(*row).is_some_and(|found| found.pair() == pair);
        self.by_pair
            .find(pair, is_of_pair)
            .copied()
            .unwrap_or(NO_ROW)
    }

    /// Fetches what is known of a pair: see `Partition::warm_up`.
    pub fn warm_up(&self, pair: u64) -> usize {
        self.newest_row(pair) as usize
    }

    /// Adds a row, chained to those of its pair; returns what refers to it.
    pub fn push(&mut self, mut row: T) -> u32 {
        let (pair, prev) = (row.pair(), self.newest_row(row.pair()));
        let is_crowded = prev != NO_ROW && self.crowded.contains_key(&pair);
        let is_newest_so_far = !is_crowded && self.is_newest(prev, row.age());
        row.set_link(Link {
            prev,
            is_newest_so_far,
        });
        let added = self.log.push(row);
        let log = &self.log;
        if prev == NO_ROW {
            let pair_of = |row: &u32| log.get(*row).map_or(0, T::pair);
            self.by_pair.insert_unique(pair, added, pair_of);
        } else if let Some(head) = self.by_pair.find_mut(pair, |row| *row == prev) {
            *head = added;
        }
        if is_crowded {
            self.index(added);
        }
        added
    }

    /// Whether no row of a chain has a greater age.
    fn is_newest(&mut self, newest: u32, age: Age) -> bool {
        let (mut row, mut steps) = (newest, 0);
        while let Some(found) = self.log.get(row) {
            if found.age() > age {
                self.crowd_after(steps, newest);
                return false;
            }
            if found.link().is_newest_so_far {
                break;
            }
            (row, steps) = (found.link().prev, steps + 1);
        }
        self.crowd_after(steps, newest);
        true
    }

    /// The newest row of a pair that is wanted at or before a time, at most `horizon_ms` before it;
    /// none where that is below 0, as of a refund that comes later than orders may.
    pub fn newest_before(
        &mut self,
        pair: u64,
        wanted: PairSearch,
        event_ms: i64,
        horizon_ms: i64,
    ) -> Option<u32> {
        if horizon_ms < 0 {
            return None;
        }
        if !self.crowded.is_empty() && self.crowded.contains_key(&pair) {
            return self.newest_of_crowd(pair, wanted, event_ms, horizon_ms);
        }
        let newest = self.newest_row(pair);
        let mut best: Option<(Age, u32)> = None;
        let (mut row, mut steps) = (newest, 0);
        while let Some(found) = self.log.get(row) {
            let lag_ms = event_ms - found.age().0;
            if (0..=horizon_ms).contains(&lag_ms)
                && (!wanted.has_feedback || found.first_ms() <= event_ms)
                && wanted.group.is_none_or(|group| group == found.group())
            {
                best = best.max(Some((found.age(), row)));
            }
            let is_found = best.is_some_and(|(age, _)| age >= found.age());
            if found.link().is_newest_so_far && (is_found || lag_ms > horizon_ms) {
                break;
            }
            (row, steps) = (found.link().prev, steps + 1);
        }
        self.crowd_after(steps, newest);
        best.map(|(_, row)| row)
    }

    fn newest_of_crowd(
        &mut self,
        pair: u64,
        wanted: PairSearch,
        event_ms: i64,
        horizon_ms: i64,
    ) -> Option<u32> {
        let from = (event_ms.saturating_sub(horizon_ms), i64::MIN, 0);
        let to = (event_ms, i64::MAX, u16::MAX);
        let rows = self.crowded.get(&pair)?;
        let mut within = rows.range((wanted, from, 0)..=(wanted, to, NO_ROW)).rev();
        let has_by_then = |row: u32| self.log.get(row).is_some_and(|x| x.first_ms() <= event_ms);
        for _ in 0..PASSED_ROWS {
            let (_, _, row) = within.next()?;
            if !wanted.has_feedback || has_by_then(*row) {
                return Some(*row);
            }
        }
        self.cut_short += 1;
        None
    }

    /// Whether a pair has a row of a group, the first of which is `first`.
    pub fn has_group(&mut self, pair: u64, group: u64, first: u32) -> bool {
        if let Some(rows) = self.crowded.get(&pair) {
            let wanted = PairSearch {
                group: Some(group),
                has_feedback: false,
            };
            let mut from = rows.range((wanted, (i64::MIN, i64::MIN, 0), 0)..);
            return from.next().is_some_and(|(of, _, _)| *of == wanted);
        }
        let end = self.log.next() as u32;
        let newest = self.newest_row(pair);
        let (mut row, mut steps) = (newest, 0);
        let mut is_there = false;
        while let Some(found) = self.log.get(row) {
            is_there = found.group() == group;
            if is_there || end.wrapping_sub(row) > end.wrapping_sub(first) {
                break;
            }
            (row, steps) = (found.link().prev, steps + 1);
        }
        self.crowd_after(steps, newest);
        is_there
    }

    /// A search took so many steps from the newest row of a pair.
    fn crowd_after(&mut self, steps: usize, newest: u32) {
        if steps <= CHAIN_STEPS {
            return;
        }
        let Some(pair) = self.log.get(newest).map(T::pair) else {
            return;
        };
        self.crowded.insert(pair, Crowd::new());
        let mut row = newest;
        while let Some(found) = self.log.get(row) {
            let prev = found.link().prev;
            self.index(row);
            row = prev;
        }
    }

    /// Adds a row to those of its pair, if that is crowded.
    fn index(&mut self, row: u32) {
        if let Some(found) = self.log.get(row)
            && let Some(rows) = self.crowded.get_mut(&found.pair())
        {
            rows.extend(entries(found, row));
        }
    }

    fn unindex(&mut self, row: u32) {
        if let Some(found) = self.log.get(row)
            && let Some(rows) = self.crowded.get_mut(&found.pair())
        {
            for entry in entries(found, row) {
                rows.remove(&entry);
            }
        }
    }

    /// Changes the time of the first feedback of a row.
    pub fn change_first(&mut self, row: u32, change: impl FnOnce(&mut T)) {
        let is_crowded = !self.crowded.is_empty();
        if is_crowded {
            self.unindex(row);
        }
        if let Some(found) = self.log.get_mut(row) {
            change(found);
        }
        if is_crowded {
            self.index(row);
        }
    }

    /// Forgets the first row.
    pub fn drop_front(&mut self) {
        if let Some((row, found)) = self.log.front() {
            let pair = found.pair();
            let is_last = match self.by_pair.find_entry(pair, |other| *other == row) {
                Ok(entry) => {
                    entry.remove();
                    true
                }
                Err(_) => false,
            };
            if !self.crowded.is_empty() {
                self.unindex(row);
                if is_last {
                    self.crowded.remove(&pair);
                }
            }
            self.log.drop_front();
        }
    }

    pub fn bytes(&self) -> usize {
        let crowded: usize = self.crowded.values().map(BTreeSet::len).sum();
        self.log.bytes()
            + self.by_pair.allocation_size()
            + crowded * size_of::<(PairSearch, Age, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(u64, Age, Link, u64, i64);

    impl OfPair for Row {
        fn pair(&self) -> u64 {
            self.0
        }
        fn age(&self) -> Age {
            self.1
        }
        fn group(&self) -> u64 {
            self.3
        }
        fn first_ms(&self) -> i64 {
            self.4
        }
        fn link(&self) -> Link {
            self.2
        }
        fn set_link(&mut self, link: Link) {
            self.2 = link;
        }
    }

    fn row(pair: u64, event_ms: i64, offset: i64) -> Row {
        Row(
            pair,
            (event_ms, offset, 0),
            Link::default(),
            offset as u64 % 5,
            NOT_YET,
        )
    }

    const ANY: PairSearch = PairSearch {
        group: None,
        has_feedback: false,
    };

    #[test]
    fn the_newest_at_or_before_a_time_is_found_in_any_order() {
        let mut rows = PairLog::default();
        let times = [50, 10, 40, 90, 20, 70];
        let added: Vec<u32> = (0..6)
            .map(|i| rows.push(row(7, times[i], i as i64)))
            .collect();
        let mut at = |event_ms| rows.newest_before(7, ANY, event_ms, 25);
        assert_eq!(at(45), Some(added[2]));
        assert_eq!(at(69), Some(added[0]));
        assert_eq!(at(76), Some(added[5]));
        assert_eq!((at(1000), at(9)), (None, None));
        assert_eq!(rows.newest_before(8, ANY, 45, 25), None);
        assert!(rows.has_group(7, 4, added[4]));
        assert!(!rows.has_group(7, 1, added[3]));
    }

    #[test]
    fn a_search_agrees_with_looking_at_all() {
        // In order, shuffled, and falling: the last two make pairs that are crowded.
        for time in [|i: i64| i, |i: i64| (i * 7919) % 1000, |i: i64| 1000 - i] {
            let mut rows = PairLog::default();
            for i in 0..900 {
                let added = rows.push(row(i as u64 % 3, time(i), i));
                if i % 4 > 0 {
                    rows.change_first(added, |x| x.4 = x.1.0 + i % 50);
                }
                if i > 500 {
                    rows.drop_front();
                }
                if i % 10 == 0 {
                    agrees(&mut rows, time(i) + i % 60);
                }
            }
            assert_eq!(rows.cut_short, 0);
        }
    }

    fn agrees(rows: &mut PairLog<Row>, at: i64) {
        for (group, has_feedback) in [
            (None, false),
            (None, true),
            (Some(2), false),
            (Some(3), true),
        ] {
            let wanted = PairSearch {
                group,
                has_feedback,
            };
            let fits = |x: &&Row| {
                x.0 == 1
                    && (0..=80).contains(&(at - x.1.0))
                    && group.is_none_or(|group| x.3 == group)
                    && (!has_feedback || x.4 <= at)
            };
            let expected = rows
                .log
                .iter()
                .map(|(_, x)| x)
                .filter(fits)
                .map(|x| x.1)
                .max();
            let found = rows.newest_before(1, wanted, at, 80);
            assert_eq!(
                found.and_then(|row| rows.log.get(row)).map(|x| x.1),
                expected
            );
        }
        let of_group = rows.log.iter().find(|(_, x)| x.0 == 1 && x.3 == 4);
        let first = of_group.map(|(row, _)| row);

        assert_eq!(rows.has_group(1, 4, first.unwrap_or(0)), first.is_some());
    }

    #[test]
    fn a_search_passes_so_many_rows_without_feedback_in_time_and_says_so() {
        let mut rows = PairLog::default();
        for i in 0..1_000 {
            let added = rows.push(row(1, i, i));
            rows.change_first(added, |x| x.4 = if i == 0 { 0 } else { 5_000 });
        }
        let wanted = PairSearch {
            group: None,
            has_feedback: true,
        };
        assert!(rows.newest_before(1, wanted, 2_000, 10_000).is_some());
        assert_eq!(rows.newest_before(1, wanted, 2_000, 10_000), None);
        assert_eq!(rows.cut_short, 1);
        rows.drop_front();
        assert!(rows.newest_before(1, wanted, 6_000, 10_000).is_some());
        assert_eq!(rows.newest_before(1, wanted, 6_000, -1), None);
    }
}
