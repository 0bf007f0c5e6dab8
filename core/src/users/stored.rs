//! Rows of users as columns, and back.

use super::Users;
use crate::hash::in_sample;
use crate::users::items::{Columns, Key};

/// Segments that stored rows may have: groups are numbered in 20 bits.
const MAX_SEGMENTS: u32 = 1 << 20;
/// No unit is so late: a larger time is damage.
const MAX_TIME: i64 = 1 << 40;

impl Users {
    /// The epoch that changes belong to.
    pub fn epoch(&self) -> u32 {
        self.items.epoch()
    }

    /// Changes from now on belong to another epoch, whose number is returned.
    pub fn seal(&mut self) -> u32 {
        self.items.seal()
    }

    /// What is stored of rows that last changed in the epochs [first, end).
    pub fn changed(&self, first: u32, end: u32) -> Columns {
        let mut columns = self.items.changed(first, end);
        for time in columns.times.iter_mut().flatten().filter(|time| **time > 0) {
            *time += self.base;
        }
        columns
    }

    /// How many rows last changed from each of these epochs (ascending) on, before the next.
    pub fn live(&self, firsts: &[u32]) -> Vec<u64> {
        self.items.live(firsts)
    }

    /// Take over stored rows, as an epoch of their own; segments are those that they were stored
    /// under. The sums are computed at the next refresh. An error where columns do not fit.
    pub fn load(&mut self, columns: &Columns, stream_ms: i64) -> Result<(), String> {
        let rows = columns.user.len();
        let mut lengths = columns.times.iter().map(Vec::len);
        let is_even = columns.pair.len() == rows && columns.segment.len() == rows;
        if columns.times.len() != 1 + self.kinds || !is_even || lengths.any(|n| n != rows) {
            return Err(format!(
                "users have {} columns of times of one length",
                1 + self.kinds
            ));
        }
        if columns
            .segment
            .iter()
            .any(|segment| *segment >= MAX_SEGMENTS)
        {
            return Err("a segment of users is out of range".to_owned());
        }
        let oldest = self.oldest_unit(stream_ms);
        let keys = columns.user.iter().zip(&columns.pair).zip(&columns.segment);
        for (row, ((user, pair), segment)) in keys.enumerate() {
            if !in_sample(*user, self.sample_bits) {
                continue;
            }
            let key = Key {
                user: *user,
                pair: *pair,
                segment: *segment,
            };
            for (column, times) in columns.times.iter().enumerate() {
                if (oldest + 1..MAX_TIME).contains(&times[row])
                    && let Some(time) = self.time_of(times[row] - 1)
                {
                    self.raise(&key, column, time, false);
                }
            }
        }
        self.items.seal();
        self.is_stale = true;
        self.dirty.clear();
        Ok(())
    }
}
