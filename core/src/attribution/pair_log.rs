//! Rows of (user, item) pairs in log order, found by pair and time.
//!
//! The rows of a pair are chained, the newest row first. Rows come almost in the order of their
//! times; a row whose time no older row of its pair passes says so, and a search ends there.

use hashbrown::HashTable;

use crate::changes::Age;
use crate::log::{Log, NO_ROW};

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
    fn link(&self) -> Link;
    fn set_link(&mut self, link: Link);
}

/// Rows of one partition.
#[derive(Debug)]
pub struct PairLog<T> {
    pub log: Log<T>,
    by_pair: HashTable<u32>,
}

impl<T> Default for PairLog<T> {
    fn default() -> Self {
        Self {
            log: Log::default(),
            by_pair: HashTable::new(),
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
        let is_newest_so_far = self.newest_age(prev).is_none_or(|age| age <= row.age());
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
        added
    }

    /// The greatest age in the chain from a row on.
    fn newest_age(&self, mut row: u32) -> Option<Age> {
        let mut newest = None;
        while let Some(found) = self.log.get(row) {
            newest = newest.max(Some(found.age()));
            if found.link().is_newest_so_far {
                break;
            }
            row = found.link().prev;
        }
        newest
    }

    /// The newest row of a pair at or before a time, at most `horizon_ms` before it, that `fits`.
    pub fn newest_before(
        &self,
        pair: u64,
        event_ms: i64,
        horizon_ms: i64,
        fits: impl Fn(&T) -> bool,
    ) -> Option<u32> {
        let mut best: Option<(Age, u32)> = None;
        let mut row = self.newest_row(pair);
        while let Some(found) = self.log.get(row) {
            let lag_ms = event_ms - found.age().0;
            if (0..=horizon_ms).contains(&lag_ms) && fits(found) {
                best = best.max(Some((found.age(), row)));
            }
            let is_found = best.is_some_and(|(age, _)| age >= found.age());
            if found.link().is_newest_so_far && (is_found || lag_ms > horizon_ms) {
                break;
            }
            row = found.link().prev;
        }
        best.map(|(_, row)| row)
    }

    /// Whether a pair has a row that `fits` among those from `first` on.
    pub fn has_since(&self, pair: u64, first: u32, fits: impl Fn(&T) -> bool) -> bool {
        let end = self.log.next() as u32;
        let mut row = self.newest_row(pair);
        while let Some(found) = self.log.get(row) {
            if end.wrapping_sub(row) > end.wrapping_sub(first) {
                return false;
            }
            if fits(found) {
                return true;
            }
            row = found.link().prev;
        }
        false
    }

    /// Forgets the first row.
    pub fn drop_front(&mut self) {
        if let Some((row, found)) = self.log.front() {
            if let Ok(entry) = self.by_pair.find_entry(found.pair(), |other| *other == row) {
                entry.remove();
            }
            self.log.drop_front();
        }
    }

    pub fn bytes(&self) -> usize {
        self.log.bytes() + self.by_pair.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(u64, Age, Link);

    impl OfPair for Row {
        fn pair(&self) -> u64 {
            self.0
        }
        fn age(&self) -> Age {
            self.1
        }
        fn link(&self) -> Link {
            self.2
        }
        fn set_link(&mut self, link: Link) {
            self.2 = link;
        }
    }

    fn row(pair: u64, event_ms: i64, offset: i64) -> Row {
        Row(pair, (event_ms, offset, 0), Link::default())
    }

    #[test]
    fn the_newest_at_or_before_a_time_is_found_in_any_order() {
        let mut rows = PairLog::default();
        let times = [50, 10, 40, 90, 20, 70];
        let added: Vec<u32> = (0..6)
            .map(|i| rows.push(row(7, times[i], i as i64)))
            .collect();
        let at = |event_ms| rows.newest_before(7, event_ms, 25, |_| true);
        assert_eq!(at(45), Some(added[2]));
        assert_eq!(at(69), Some(added[0]));
        assert_eq!(at(76), Some(added[5]));
        assert_eq!((at(1000), at(9)), (None, None));
        assert_eq!(rows.newest_before(8, 45, 25, |_| true), None);
        assert!(rows.has_since(7, added[2], |found| found.1.0 == 20));
        assert!(!rows.has_since(7, added[2], |found| found.1.0 == 10));
    }

    #[test]
    fn a_search_agrees_with_looking_at_all() {
        let mut rows = PairLog::default();
        let time = |i: i64| (i * 7919) % 1000;
        for i in 0..500 {
            rows.push(row(i as u64 % 3, time(i), i));
            if i > 200 {
                rows.drop_front();
            }
        }
        for at in (0..1100).step_by(13) {
            let wanted = |found: &&Row| found.0 == 1 && (0..=80).contains(&(at - found.1.0));
            let expected = rows
                .log
                .iter()
                .map(|(_, x)| x)
                .filter(wanted)
                .map(|x| x.1)
                .max();
            let found = rows.newest_before(1, at, 80, |_| true);
            assert_eq!(
                found.and_then(|row| rows.log.get(row)).map(|x| x.1),
                expected
            );
        }
    }
}
