//! Rows of users as columns, and back.

use super::Users;
use crate::columns::{Columns, LoadError, StoredRow, stored_row};
use crate::hash::in_sample;
use crate::users::items::UserItemKey;

/// No unit is so late: a larger time is damage.
const MAX_TIME: i64 = 1 << 40;

stored_row! {
    /// What a user did with an item; beside it stands `time_{n}`, the unit of the last impression
    /// and of the last feedback of each kind.
    struct UserItemRow {
        user: u64,
        pair: u64,
        combination: i32,
    }
}

/// The latest unit of stored rows.
pub fn latest_unit(columns: &Columns) -> Result<i64, LoadError> {
    let mut latest = 0;
    for name in (0..).map(time_column).take_while(|name| columns.has(name)) {
        latest = columns.largest(&name)?.max(latest);
    }
    Ok(latest - 1)
}

pub fn time_column(column: usize) -> String {
    format!("time_{column}")
}

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
        let rows: Vec<_> = self.items.changed(first, end).collect();
        let mut columns = UserItemRow::columns(rows.iter().map(|(user, row)| UserItemRow {
            user: *user,
            pair: row.pair(),
            combination: row.combination() as i32,
        }));
        for column in 0..1 + self.kinds {
            let times = rows.iter().map(|(_, row)| match row.times()[column] {
                0 => 0,
                time => i64::from(time) + self.base,
            });
            columns.add(&time_column(column), times.collect());
        }
        columns
    }

    /// How many rows last changed from each of these epochs (ascending) on, before the next.
    pub fn live(&self, firsts: &[u32]) -> Vec<u64> {
        self.items.live(firsts)
    }

    /// Take over stored rows, as an epoch of their own; combinations are those that they were stored
    /// under. The sums are computed at the next refresh. An error where columns do not fit.
    pub fn load(&mut self, columns: &Columns, stream_ms: i64) -> Result<(), LoadError> {
        columns.rows()?;
        let times: Vec<&[i64]> = (0..1 + self.kinds)
            .map(|column| columns.get(&time_column(column)))
            .collect::<Result<_, _>>()?;
        if columns.has(&time_column(times.len())) {
            return Err(format!("users have {} columns of times", times.len()));
        }
        let combinations = 0..i32::MAX;
        let stored: &[i32] = columns.get("combination")?;
        if stored
            .iter()
            .any(|combination| !combinations.contains(combination))
        {
            return Err("a combination of users is out of range".to_owned());
        }
        let oldest = self.oldest_unit(stream_ms);
        for (at, row) in UserItemRow::rows(columns)?.enumerate() {
            if !in_sample(row.user, self.sample_bits) {
                continue;
            }
            let key = UserItemKey {
                user: row.user,
                pair: row.pair,
                combination: row.combination as u32,
            };
            for (column, times) in times.iter().enumerate() {
                if (oldest + 1..MAX_TIME).contains(&times[at])
                    && let Some(time) = self.time_of(times[at] - 1)
                    && let Some(row) = self.earlier(&key, column, time)
                {
                    self.items.set(&key, row, column, time);
                }
            }
        }
        self.items.seal();
        self.is_stale = true;
        self.dirty.clear();
        Ok(())
    }
}
