//! What users did: one row for each (user, slot or time, label), with sums that only add.

mod leaving;
#[cfg(test)]
mod tests;

use hashbrown::HashTable;

use crate::hash::mix;
use crate::panes::{MAX_SUM, Overflow};
use crate::users::rows::spread;
use crate::versions::{NEW, Versions};

/// Of the last row of a user.
const END: u32 = u32::MAX;
/// Rows are made room for by an eighth, not by doubling.
const GROWTH: usize = 8;

/// What a row is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserDayKey {
    pub user: u64,
    /// When the slot began, or the time (ms).
    pub at: i64,
    pub label: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    key: UserDayKey,
    epoch: u32,
    /// The rows of this user before and after this one.
    before: u32,
    next: u32,
}

/// The first row of a user, and how many he has.
#[derive(Clone, Copy, Debug)]
struct Head {
    row: u32,
    rows: u32,
}

/// The rows of one partition, by slot or by time.
#[derive(Debug, Default)]
pub struct UserDays {
    /// Components.
    width: usize,
    rows: Vec<Row>,
    /// `width` a row.
    amounts: Vec<i64>,
    by_key: HashTable<u32>,
    heads: HashTable<Head>,
    /// No user has more rows.
    most_rows: u32,
    /// Rows that one user may have.
    user_rows: u32,
    pub versions: Versions,
    /// Amounts that were not kept because their user had too many rows.
    pub dropped_rows: u64,
}

impl UserDays {
    /// `width`: number of sums; `user_rows`: how many rows one user may have.
    pub fn new(width: usize, user_rows: u32) -> Self {
        Self {
            width,
            rows: Vec::new(),
            amounts: Vec::new(),
            by_key: HashTable::new(),
            heads: HashTable::new(),
            most_rows: 0,
            user_rows,
            versions: Versions::default(),
            dropped_rows: 0,
        }
    }

    /// Number of sums.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.amounts.capacity() * size_of::<i64>()
            + self.by_key.allocation_size()
            + self.heads.allocation_size()
            + self.versions.nbytes()
    }

    // Changing --------------------------------------------------------------------------------------

    /// Add to one sum of a row, which is made where it is missing.
    pub fn add(&mut self, key: &UserDayKey, sum: usize, amount: i64) -> Result<(), Overflow> {
        let Some(row) = self.find_or_insert(key) else {
            return Ok(());
        };
        let total = &mut self.amounts[row * self.width + sum];
        *total = added(*total, amount)?;
        self.versions.mark(row as u32, &mut self.rows[row].epoch);
        Ok(())
    }

    /// Add to all sums of a row; one with nothing to add is not made.
    pub fn add_row(&mut self, key: &UserDayKey, amounts: &[i64]) -> Result<(), Overflow> {
        if amounts.iter().all(|amount| *amount == 0) {
            return Ok(());
        }
        let Some(row) = self.find_or_insert(key) else {
            return Ok(());
        };
        let held = &mut self.amounts[row * self.width..][..self.width];
        for (sum, amount) in held.iter_mut().zip(amounts) {
            *sum = added(*sum, *amount)?;
        }
        self.versions.mark(row as u32, &mut self.rows[row].epoch);
        Ok(())
    }

    /// Take over a row as it was stored.
    pub fn set(&mut self, key: &UserDayKey, amounts: impl Iterator<Item = i64>) {
        if let Some(row) = self.find_or_insert(key) {
            let held = &mut self.amounts[row * self.width..][..self.width];
            for (sum, amount) in held.iter_mut().zip(amounts) {
                *sum = amount;
            }
            self.versions.mark(row as u32, &mut self.rows[row].epoch);
        }
    }

    fn find(&self, key: &UserDayKey) -> Option<usize> {
        let is_it = |row: &u32| self.rows[*row as usize].key == *key;
        let found = self.by_key.find(hash_of(key), is_it);
        found.map(|row| *row as usize)
    }

    fn is_full(&self, user: u64) -> bool {
        self.rows_of(user) >= self.user_rows || self.rows.len() >= END as usize
    }

    fn find_or_insert(&mut self, key: &UserDayKey) -> Option<usize> {
        let found = self.find(key);
        if found.is_some() {
            return found;
        }
        if self.is_full(key.user) {
            self.dropped_rows += 1;
            return None;
        }
        let number = self.rows.len();
        if number == self.rows.capacity() {
            let extra = number / GROWTH + 1024;
            self.rows.reserve_exact(extra);
            self.amounts.reserve_exact(extra * self.width);
        }
        self.rows.push(Row {
            key: *key,
            epoch: NEW,
            before: END,
            next: END,
        });
        self.amounts.resize(self.amounts.len() + self.width, 0);
        self.link(number);
        Some(number)
    }

    /// Find a row by its key, and chain it before the others of its user.
    fn link(&mut self, number: usize) {
        let Self {
            rows,
            by_key,
            heads,
            most_rows,
            ..
        } = self;
        let (key, row_number) = (rows[number].key, number as u32);
        by_key.insert_unique(hash_of(&key), row_number, |row| {
            hash_of(&rows[*row as usize].key)
        });
        let is_his = |head: &Head| rows[head.row as usize].key.user == key.user;
        if let Some(head) = heads.find_mut(spread(key.user), is_his) {
            let next = std::mem::replace(&mut head.row, row_number);
            head.rows += 1;
            *most_rows = head.rows.max(*most_rows);
            rows[next as usize].before = row_number;
            rows[number].next = next;
        } else {
            let head = Head {
                row: row_number,
                rows: 1,
            };
            *most_rows = 1.max(*most_rows);
            heads.insert_unique(spread(key.user), head, |head| {
                spread(rows[head.row as usize].key.user)
            });
        }
    }

    // Reading ---------------------------------------------------------------------------------------

    fn head(&self, user: u64) -> Option<&Head> {
        let is_his = |head: &Head| self.rows[head.row as usize].key.user == user;
        self.heads.find(spread(user), is_his)
    }

    /// How many rows a user has.
    pub fn rows_of(&self, user: u64) -> u32 {
        self.head(user).map_or(0, |head| head.rows)
    }

    /// No user has more rows than this.
    pub fn most_rows(&self) -> u32 {
        self.most_rows
    }

    /// Whether a user has rows.
    pub fn has(&self, user: u64) -> bool {
        self.head(user).is_some()
    }

    fn row(&self, number: usize) -> (&UserDayKey, &[i64]) {
        let amounts = &self.amounts[number * self.width..][..self.width];
        (&self.rows[number].key, amounts)
    }

    /// The sums of a row, by its place in `iter`.
    pub fn amounts(&self, number: usize) -> &[i64] {
        self.row(number).1
    }

    /// Key and sums of each row of a user.
    pub fn of(&self, user: u64) -> impl Iterator<Item = (&UserDayKey, &[i64])> {
        let mut next = self.head(user).map_or(END, |head| head.row);
        std::iter::from_fn(move || {
            let number = (next != END).then_some(next as usize)?;
            next = self.rows[number].next;
            Some(self.row(number))
        })
    }

    /// Key and sums of every row.
    pub fn iter(&self) -> impl Iterator<Item = (&UserDayKey, &[i64])> {
        (0..self.rows.len()).map(|number| self.row(number))
    }

    /// Every user.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        let user = |head: &Head| self.rows[head.row as usize].key.user;
        self.heads.iter().map(user)
    }

    // Stored form -----------------------------------------------------------------------------------

    /// Key and sums of the rows that last changed in the epochs [first, end).
    pub fn changed(&self, first: u32, end: u32) -> impl Iterator<Item = (&UserDayKey, &[i64])> {
        let of = |row: u32| self.rows[row as usize].epoch;
        let found = self.versions.changed(first, end, self.rows.len(), of);
        found.into_iter().map(|row| self.row(row as usize))
    }
}

fn hash_of(key: &UserDayKey) -> u64 {
    mix(mix(key.user, key.at as u64), u64::from(key.label))
}

fn added(sum: i64, amount: i64) -> Result<i64, Overflow> {
    let total = sum.checked_add(amount).ok_or(Overflow)?;
    (-MAX_SUM..=MAX_SUM)
        .contains(&total)
        .then_some(total)
        .ok_or(Overflow)
}
