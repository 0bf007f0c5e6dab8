//! What users saw and did last: one row for each (user, item, combination), with the last time of an
//! impression and of each kind of feedback. Times only grow, so rows do not depend on the order in
//! which events come, and stored versions of a row merge by the largest.
//!
//! A time is a unit of the finest pane since the epoch, from 1; 0 is never.

use crate::changes::Combination;
use crate::users::rows::{UserRow, UserRows};

/// Rows of a user that are fetched ahead; a robot has far more.
const WARMED: usize = 64;

/// What a row is found by.
#[derive(Clone, Copy, Debug)]
pub struct UserItemKey {
    pub user: u64,
    /// `mix` of user and item.
    pub pair: u64,
    pub combination: Combination,
}

/// The rows of one partition.
#[derive(Debug)]
pub struct UserItems {
    /// Rows that one user may have.
    user_rows: usize,
    rows: UserRows,
    epoch: u32,
    is_changed: bool,
    /// Rows that were not kept because their user had too many.
    pub dropped_rows: u64,
}

impl UserItems {
    /// `kinds`: of feedback; `user_rows`: how many rows one user may have.
    pub fn new(kinds: usize, user_rows: usize) -> Self {
        Self {
            user_rows,
            rows: UserRows::new(1 + kinds),
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
        self.rows.nbytes()
    }

    // Changing --------------------------------------------------------------------------------------

    /// The place of the row of a key, if there is one.
    pub fn find(&self, key: &UserItemKey) -> Option<usize> {
        self.rows.find(key.user, key.pair, key.combination)
    }

    /// The last time in a column of a row.
    pub fn time(&self, at: usize, column: usize) -> u32 {
        self.rows.row(at).times()[column]
    }

    /// Whether a user has as many rows as are kept.
    pub fn is_full(&self, user: u64) -> bool {
        self.rows.count(user) >= self.user_rows
    }

    /// Set the last time in a column of a row, which is made where it is missing.
    pub fn set(&mut self, key: &UserItemKey, at: Option<usize>, column: usize, time: u32) {
        let UserItemKey {
            user,
            pair,
            combination,
        } = *key;
        let at = at.unwrap_or_else(|| self.rows.push(user, pair, combination, self.epoch));
        self.rows.set(user, at, column, time, self.epoch);
        self.is_changed = true;
    }

    // Reading ---------------------------------------------------------------------------------------

    /// Fetches the first rows of a user: see `Partition::warm_up`.
    pub fn warm_up(&self, user: u64) -> usize {
        let rows = self.rows.of(user).take(WARMED);
        rows.map(|row| row.epoch() as usize & 1).sum()
    }

    /// The rows of a user.
    pub fn of(&self, user: u64) -> impl Iterator<Item = UserRow<'_>> {
        self.rows.of(user)
    }

    /// Every user.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        self.rows.users().map(|(user, _)| user)
    }

    /// The user and the combination of every row.
    pub fn combinations(&self) -> impl Iterator<Item = (u64, Combination)> {
        self.rows
            .iter()
            .map(|(user, row)| (user, row.combination()))
    }

    // Leaving ---------------------------------------------------------------------------------------

    /// How many rows have a time from `oldest` on.
    pub fn count_since(&self, oldest: u32) -> usize {
        let is_since = |row: &UserRow| row.times().iter().any(|time| *time >= oldest);
        self.rows.iter().filter(|(_, row)| is_since(row)).count()
    }

    /// Keep the rows whose user and times are wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(u64, &[u32]) -> bool) {
        self.rows.keep(|user, row| is_wanted(user, row.times()));
    }

    // Stored form -----------------------------------------------------------------------------------

    /// Let times be so much smaller; what was before is never.
    pub fn shift(&mut self, shift: i64) {
        self.rows
            .change_times(|time| (i64::from(time) - shift).clamp(0, i64::from(u32::MAX)) as u32);
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

    /// Rows that last changed in the epochs [first, end), each with its user.
    pub fn changed(&self, first: u32, end: u32) -> impl Iterator<Item = (u64, UserRow<'_>)> {
        let users = self.rows.users().filter(move |(_, epoch)| *epoch >= first);
        let rows = users.flat_map(|(user, _)| self.rows.of(user).map(move |row| (user, row)));
        rows.filter(move |(_, row)| (first..end).contains(&row.epoch()))
    }

    /// How many rows last changed from each of these epochs (ascending) on, before the next.
    pub fn live(&self, firsts: &[u32]) -> Vec<u64> {
        let mut counts = vec![0; firsts.len()];
        for (_, row) in self.rows.iter() {
            let after = firsts.partition_point(|first| *first <= row.epoch());
            if let Some(count) = after.checked_sub(1).and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        counts
    }
}
