//! What users saw and did last: one row for each (user, item, segment), with the last time of an
//! impression and of each kind of feedback. Times only grow, so rows do not depend on the order in
//! which events come, and stored versions of a row merge by the largest.
//!
//! A time is a unit of the finest pane since the epoch, from 1; 0 is never.

use hashbrown::HashTable;

use crate::changes::Segment;
use crate::hash::mix;

/// Rows that one user may have.
pub const MAX_USER_ROWS: u32 = 100_000;
/// Of the last row of a user.
const END: u32 = u32::MAX;
/// Rows are made room for by an eighth, not by doubling.
const GROWTH: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Row {
    user: u64,
    /// `mix` of user and item.
    pair: u64,
    segment: Segment,
    /// Between which seals the row last changed.
    epoch: u32,
    /// The next row of this user.
    next: u32,
    /// How many rows this user has from this one on.
    depth: u32,
}

/// What a row is found by.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub user: u64,
    /// `mix` of user and item.
    pub pair: u64,
    pub segment: Segment,
}

/// Rows as columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub user: Vec<u64>,
    pub pair: Vec<u64>,
    pub segment: Vec<u32>,
    /// Impressions, then each kind of feedback.
    pub times: Vec<Vec<i64>>,
}

/// The rows of one partition.
#[derive(Debug)]
pub struct UserItems {
    /// 1 + the kinds of feedback.
    width: usize,
    rows: Vec<Row>,
    /// `width` a row.
    times: Vec<u32>,
    by_key: HashTable<u32>,
    /// The first row of each user.
    heads: HashTable<u32>,
    epoch: u32,
    is_changed: bool,
    /// Rows that were not kept because their user had too many.
    pub dropped_rows: u64,
}

impl UserItems {
    /// `kinds`: of feedback.
    pub fn new(kinds: usize) -> Self {
        Self {
            width: 1 + kinds,
            rows: Vec::new(),
            times: Vec::new(),
            by_key: HashTable::new(),
            heads: HashTable::new(),
            epoch: 0,
            is_changed: false,
            dropped_rows: 0,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.times.capacity() * size_of::<u32>()
            + self.by_key.allocation_size()
            + self.heads.allocation_size()
    }

    // Changing --------------------------------------------------------------------------------------

    /// The row of a key, if there is one.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let is_it = |row: &u32| {
            let row = &self.rows[*row as usize];
            row.pair == key.pair && row.segment == key.segment
        };
        self.by_key
            .find(hash_of(key.pair, key.segment), is_it)
            .map(|row| *row as usize)
    }

    /// The last time in a column of a row.
    pub fn time(&self, row: usize, column: usize) -> u32 {
        self.times[row * self.width + column]
    }

    /// Whether a user has as many rows as are kept.
    pub fn is_full(&self, user: u64) -> bool {
        self.head(user)
            .is_some_and(|row| self.rows[row].depth >= MAX_USER_ROWS)
    }

    /// Set the last time in a column of a row.
    pub fn set(&mut self, row: usize, column: usize, time: u32) {
        self.times[row * self.width + column] = time;
        self.rows[row].epoch = self.epoch;
        self.is_changed = true;
    }

    /// Make a row, whose key is new, without any time; returns its number.
    pub fn insert(&mut self, key: &Key) -> usize {
        let number = self.rows.len();
        let extra = number / GROWTH + 1024;
        if number == self.rows.capacity() {
            self.rows.reserve_exact(extra);
            self.times.reserve_exact(extra * self.width);
        }
        let Key {
            user,
            pair,
            segment,
        } = *key;
        self.rows.push(Row {
            user,
            pair,
            segment,
            epoch: self.epoch,
            next: END,
            depth: 1,
        });
        self.times.resize(self.times.len() + self.width, 0);
        self.link(number);
        number
    }

    /// Find a row by its key, and chain it before the others of its user.
    fn link(&mut self, number: usize) {
        let Self {
            rows,
            by_key,
            heads,
            ..
        } = self;
        let Row {
            user,
            pair,
            segment,
            ..
        } = rows[number];
        let row_number = number as u32;
        by_key.insert_unique(hash_of(pair, segment), row_number, |row| {
            let row = &rows[*row as usize];
            hash_of(row.pair, row.segment)
        });
        let is_his = |row: &u32| rows[*row as usize].user == user;
        if let Some(head) = heads.find_mut(spread(user), is_his) {
            let next = std::mem::replace(head, row_number);
            let depth = rows[next as usize].depth + 1;
            let row = &mut rows[number];
            (row.next, row.depth) = (next, depth);
        } else {
            heads.insert_unique(spread(user), row_number, |row| {
                spread(rows[*row as usize].user)
            });
        }
    }

    // Reading ---------------------------------------------------------------------------------------

    fn head(&self, user: u64) -> Option<usize> {
        let is_his = |row: &u32| self.rows[*row as usize].user == user;
        self.heads
            .find(spread(user), is_his)
            .map(|row| *row as usize)
    }

    /// Pair, segment and times of each row of a user.
    pub fn of(&self, user: u64) -> impl Iterator<Item = (u64, Segment, &[u32])> {
        let mut next = self.head(user);
        std::iter::from_fn(move || {
            let number = next?;
            let row = &self.rows[number];
            next = (row.next != END).then_some(row.next as usize);
            let first = number * self.width;
            Some((
                row.pair,
                row.segment,
                &self.times[first..first + self.width],
            ))
        })
    }

    /// Every user.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        self.heads.iter().map(|row| self.rows[*row as usize].user)
    }

    /// The user and the segment of every row.
    pub fn segments(&self) -> impl Iterator<Item = (u64, Segment)> {
        self.rows.iter().map(|row| (row.user, row.segment))
    }

    // Leaving ---------------------------------------------------------------------------------------

    /// How many rows have a time from `oldest` on.
    pub fn count_since(&self, oldest: u32) -> usize {
        let times = self.times.chunks_exact(self.width);
        times
            .filter(|times| times.iter().any(|time| *time >= oldest))
            .count()
    }

    /// Keep the rows whose user and times are wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(u64, &[u32]) -> bool) {
        let width = self.width;
        let mut kept = 0;
        for number in 0..self.rows.len() {
            let first = number * width;
            if is_wanted(self.rows[number].user, &self.times[first..first + width]) {
                let row = Row {
                    next: END,
                    depth: 1,
                    ..self.rows[number]
                };
                self.rows[kept] = row;
                self.times.copy_within(first..first + width, kept * width);
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        self.times.truncate(kept * width);
        let room = kept + kept / GROWTH;
        self.rows.shrink_to(room);
        self.times.shrink_to(room * width);
        self.by_key = HashTable::with_capacity(kept);
        self.heads = HashTable::new();
        for number in 0..kept {
            self.link(number);
        }
    }

    // Stored form -----------------------------------------------------------------------------------

    /// The epoch that changes belong to.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Changes from now on belong to another epoch, whose number is returned.
    pub fn seal(&mut self) -> u32 {
        self.epoch += u32::from(self.is_changed);
        self.is_changed = false;
        self.epoch
    }

    /// What is stored of rows that last changed in the epochs [first, end).
    pub fn changed(&self, first: u32, end: u32) -> Columns {
        let mut found = Columns {
            times: vec![Vec::new(); self.width],
            ..Columns::default()
        };
        for (row, times) in self.rows.iter().zip(self.times.chunks_exact(self.width)) {
            if (first..end).contains(&row.epoch) {
                found.user.push(row.user);
                found.pair.push(row.pair);
                found.segment.push(row.segment);
                for (column, time) in found.times.iter_mut().zip(times) {
                    column.push(i64::from(*time));
                }
            }
        }
        found
    }

    /// How many rows last changed from each of these epochs (ascending) on, before the next.
    pub fn live(&self, firsts: &[u32]) -> Vec<u64> {
        let mut counts = vec![0; firsts.len()];
        for row in &self.rows {
            let after = firsts.partition_point(|first| *first <= row.epoch);
            if let Some(count) = after.checked_sub(1).and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        counts
    }
}

fn hash_of(pair: u64, segment: Segment) -> u64 {
    mix(pair, u64::from(segment) + 1)
}

/// Users of a sample share their first bits, which tables look at.
pub fn spread(user: u64) -> u64 {
    mix(user, 1)
}
