//! What users saw and did last: one row for each (user, item, segment), with the last time of an
//! impression and of each kind of feedback. Times only grow, so rows do not depend on the order in
//! which events come, and stored versions of a row merge by the largest.
//!
//! A time is a unit of the finest pane since the epoch, from 1; 0 is never.

use hashbrown::HashTable;

use crate::changes::Segment;
use crate::hash::mix;
use crate::user_rows::UserRows;

/// Rows that one user may have.
pub const MAX_USER_ROWS: usize = 100_000;
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
    by_user: UserRows,
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
            by_user: UserRows::default(),
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
            + self.by_user.nbytes()
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
        self.rows_of(user).len() >= MAX_USER_ROWS
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
        });
        self.times.resize(self.times.len() + self.width, 0);
        self.link(number);
        number
    }

    /// Make a row known by its key and by its user.
    fn link(&mut self, number: usize) {
        let Self {
            rows,
            by_key,
            by_user,
            ..
        } = self;
        let Row {
            user,
            pair,
            segment,
            ..
        } = rows[number];
        by_key.insert_unique(hash_of(pair, segment), number as u32, |row| {
            let row = &rows[*row as usize];
            hash_of(row.pair, row.segment)
        });
        by_user.push(user, number as u32, |row| rows[row as usize].user);
    }

    // Reading ---------------------------------------------------------------------------------------

    fn rows_of(&self, user: u64) -> &[u32] {
        self.by_user.of(user, |row| self.rows[row as usize].user)
    }

    /// Pair, segment and times of each row of a user.
    pub fn of(&self, user: u64) -> impl Iterator<Item = (u64, Segment, &[u32])> {
        self.rows_of(user).iter().map(|row| {
            let number = *row as usize;
            let row = &self.rows[number];
            (
                row.pair,
                row.segment,
                &self.times[number * self.width..][..self.width],
            )
        })
    }

    /// Every user.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        self.by_user
            .firsts()
            .map(|row| self.rows[row as usize].user)
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
                self.rows[kept] = self.rows[number];
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
        self.by_user = UserRows::default();
        for number in 0..kept {
            self.link(number);
        }
    }

    // Stored form -----------------------------------------------------------------------------------

    /// Let times be so much smaller; what was before is never.
    pub fn shift(&mut self, shift: i64) {
        for time in &mut self.times {
            *time = (i64::from(*time) - shift).clamp(0, i64::from(u32::MAX)) as u32;
        }
    }

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
