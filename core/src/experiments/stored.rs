//! Rows of experiments as columns, and back: versions, of which the newest of a row counts.

use super::{DAY_MS, Experiments};
use crate::columns::{Columns, LoadError, StoredRow, stored_row};
use crate::experiments::user_days::{UserDayKey, UserDays};
use crate::hash::in_sample;
use crate::panes::MAX_SUM;

/// A stored table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentTable {
    Days,
    Pending,
    Exposures,
}

impl ExperimentTable {
    /// In the order in which they are loaded.
    pub const ALL: [Self; 3] = [Self::Exposures, Self::Days, Self::Pending];

    /// Under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Days => "user_days",
            Self::Pending => "user_pending",
            Self::Exposures => "user_exposures",
        }
    }

    /// The latest time of stored rows.
    pub fn latest_ms(self, columns: &Columns) -> Result<i64, LoadError> {
        match self {
            Self::Days => Ok(columns.largest("at")? * DAY_MS),
            Self::Pending => columns.largest("at"),
            Self::Exposures => columns.largest("first_ms"),
        }
    }
}

stored_row! {
    /// Since when a user is exposed. `code`: of what exposes.
    struct ExposureRow {
        user: u64,
        code: i64,
        first_ms: i64,
    }
}

stored_row! {
    /// What a user did on a day, or at a time; beside it stands a column for each sum.
    /// `part`: twice the code of the exposure, and 1 more for after it.
    struct UserDayRow {
        user: u64,
        at: i64,
        label: i32,
        part: i64,
    }
}

impl Experiments {
    /// Changes from now on belong to another epoch. Returns its number in each table, in the order
    /// of `Table::ALL`.
    pub fn seal(&mut self) -> [u32; 3] {
        ExperimentTable::ALL.map(|table| self.seal_table(table))
    }

    /// The epoch that changes of a table belong to.
    pub fn epoch(&self, table: ExperimentTable) -> u32 {
        let tables = &self.tables;
        match table {
            ExperimentTable::Days => tables.days.epoch(),
            ExperimentTable::Pending => tables.pending.epoch(),
            ExperimentTable::Exposures => tables.exposures.epoch(),
        }
    }

    /// Stored rows of a table before this time (ms) are not wanted.
    pub fn horizon_ms(&self, table: ExperimentTable) -> i64 {
        let first = self
            .exposures
            .iter()
            .map(|exposure| exposure.days.start)
            .min();
        let first_ms = first.map_or(i64::MAX, |day| day * DAY_MS);
        if table == ExperimentTable::Pending {
            first_ms.max(self.final_ms)
        } else {
            first_ms
        }
    }

    fn seal_table(&mut self, table: ExperimentTable) -> u32 {
        let tables = &mut self.tables;
        match table {
            ExperimentTable::Days => tables.days.seal(),
            ExperimentTable::Pending => tables.pending.seal(),
            ExperimentTable::Exposures => tables.exposures.seal(),
        }
    }

    /// What is stored of rows of a table that last changed in the epochs [first, end).
    pub fn changed(&self, table: ExperimentTable, first: u32, end: u32) -> Columns {
        let tables = &self.tables;
        match table {
            ExperimentTable::Days => self.columns_of(&tables.days, first, end),
            ExperimentTable::Pending => self.columns_of(&tables.pending, first, end),
            ExperimentTable::Exposures => {
                let rows = tables.exposures.changed(first, end);
                ExposureRow::columns(rows.map(|(user, exposure, first_ms)| ExposureRow {
                    user,
                    code: self.code(exposure),
                    first_ms,
                }))
            }
        }
    }

    fn code(&self, exposure: u32) -> i64 {
        self.exposures[exposure as usize].spec.code
    }

    fn columns_of(&self, rows: &UserDays, first: u32, end: u32) -> Columns {
        let found: Vec<_> = rows.changed(first, end).collect();
        let mut columns = UserDayRow::columns(found.iter().map(|(key, _)| UserDayRow {
            user: key.user,
            at: key.at,
            label: key.label as i32,
            part: 2 * self.code(key.part >> 1) + i64::from(key.part & 1),
        }));
        for (at, name) in self.columns.iter().enumerate() {
            columns.add(name, found.iter().map(|(_, sums)| sums[at]).collect());
        }
        columns
    }

    /// How many rows of a table last changed from each of these epochs (ascending) on, before the
    /// next.
    pub fn live(&self, table: ExperimentTable, firsts: &[u32]) -> Vec<u64> {
        match table {
            ExperimentTable::Days => self.tables.days.live(firsts),
            ExperimentTable::Pending => self.tables.pending.live(firsts),
            ExperimentTable::Exposures => self.tables.exposures.live(firsts),
        }
    }

    // Loading ---------------------------------------------------------------------------------------

    /// Before rows are loaded: what is stored beside them. Labels have a text for each dimension
    /// that any experiment looks at, in the order of the dimensions; empty where they lack it.
    pub fn restore(&mut self, labels: Vec<Vec<String>>, final_ms: i64, sample_bits: u32) {
        self.labels.load(labels);
        self.arms
            .iter_mut()
            .for_each(|arms| arms.learn(&self.labels));
        self.final_ms = final_ms;
        self.keep_sample(if self.is_empty() { 0 } else { sample_bits });
    }

    /// Take over stored rows, as an epoch of their own. Those that are not wanted, out of the
    /// sample or settled since are left out. The sums are computed at the next refresh.
    pub fn load(&mut self, table: ExperimentTable, columns: &Columns) -> Result<(), LoadError> {
        match table {
            ExperimentTable::Exposures => self.load_exposures(columns)?,
            ExperimentTable::Days | ExperimentTable::Pending => self.load_rows(table, columns)?,
        }
        self.seal_table(table);
        self.make_stale();
        Ok(())
    }

    fn load_exposures(&mut self, columns: &Columns) -> Result<(), LoadError> {
        for row in ExposureRow::rows(columns)? {
            let day = row.first_ms.div_euclid(DAY_MS);
            if let Some(exposure) = self.wanted(row.user, row.code, day) {
                self.tables.exposures.set(row.user, exposure, row.first_ms);
            }
        }
        Ok(())
    }

    fn load_rows(&mut self, table: ExperimentTable, columns: &Columns) -> Result<(), LoadError> {
        let sums = self.sum_columns(columns)?;
        for (is_stored, sums) in self.is_stored.iter_mut().zip(&sums) {
            *is_stored |= sums.is_some();
        }
        let is_pending = table == ExperimentTable::Pending;
        for (place, row) in UserDayRow::rows(columns)?.enumerate() {
            let day = if is_pending {
                row.at.div_euclid(DAY_MS)
            } else {
                row.at
            };
            let Some(exposure) = self.wanted(row.user, row.part >> 1, day) else {
                continue;
            };
            if is_pending && row.at < self.final_ms {
                continue;
            }
            let label = u32::try_from(row.label).ok();
            let label = label.filter(|label| (*label as usize) < self.labels.known.len());
            let key = UserDayKey {
                user: row.user,
                at: row.at,
                label: label.ok_or("a row of users has an unknown label")?,
                part: 2 * exposure + (row.part & 1) as u32,
            };
            let amounts = sums.iter().map(|sums| sums.map_or(0, |sums| sums[place]));
            let held = if is_pending {
                &mut self.tables.pending
            } else {
                &mut self.tables.days
            };
            held.set(&key, amounts);
        }
        Ok(())
    }

    /// The stored amounts of each sum; none where they are not stored.
    fn sum_columns<'a>(&self, columns: &'a Columns) -> Result<Vec<Option<&'a [i64]>>, LoadError> {
        let mut found = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let stored = columns.has(name).then(|| columns.get(name));
            let sums: Option<&[i64]> = stored.transpose()?;
            let mut values = sums.into_iter().flatten();
            if !values.all(|sum| (-MAX_SUM..=MAX_SUM).contains(sum)) {
                return Err(format!("a stored sum of {name} is beyond 2**62"));
            }
            found.push(sums);
        }
        Ok(found)
    }

    /// The place of the exposure with a code, if the day is wanted and the user in the sample.
    fn wanted(&self, user: u64, code: i64, day: i64) -> Option<u32> {
        let is_it = |exposure: &super::Exposure| exposure.spec.code == code;
        let place = self.exposures.iter().position(is_it)?;
        let is_wanted = self.exposures[place].days.contains(&day);
        (is_wanted && in_sample(user, self.sample_bits)).then_some(place as u32)
    }
}
