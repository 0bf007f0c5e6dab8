//! Rows of experiments as columns, and back: versions, of which the newest of a row counts.

use super::Experiments;
use super::spans::DAY_MS;
use crate::columns::{Columns, LoadError, StoredRow, stored_row};
use crate::experiments::exposures::ArmOf;
use crate::experiments::user_days::{UserDayKey, UserDays};
use crate::hash::in_sample;
use crate::panes::MAX_SUM;
use crate::versions::Versions;

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
            Self::Days | Self::Pending => columns.largest("at"),
            Self::Exposures => columns.largest("first_ms"),
        }
    }
}

stored_row! {
    /// Since when a user is exposed to an arm. `code`: of what exposes; `arm`: from 1.
    struct ExposureRow {
        user: u64,
        code: i64,
        arm: i16,
        first_ms: i64,
    }
}

stored_row! {
    /// What a user did in a slot, or at a time; beside it stands a column for each sum.
    struct UserDayRow {
        user: u64,
        at: i64,
        label: i32,
    }
}

impl Experiments {
    /// Changes from now on belong to another epoch. Returns its number in each table, in the order
    /// of `Table::ALL`.
    pub fn seal(&mut self) -> [u32; 3] {
        ExperimentTable::ALL.map(|table| self.versions_mut(table).seal())
    }

    /// When the rows of a table changed.
    pub fn versions(&self, table: ExperimentTable) -> &Versions {
        let tables = &self.tables;
        match table {
            ExperimentTable::Days => &tables.days.versions,
            ExperimentTable::Pending => &tables.pending.versions,
            ExperimentTable::Exposures => &tables.exposures.versions,
        }
    }

    /// The same, to be changed.
    pub(super) fn versions_mut(&mut self, table: ExperimentTable) -> &mut Versions {
        let tables = &mut self.tables;
        match table {
            ExperimentTable::Days => &mut tables.days.versions,
            ExperimentTable::Pending => &mut tables.pending.versions,
            ExperimentTable::Exposures => &mut tables.exposures.versions,
        }
    }

    /// Stored rows of a table before this time (ms) are not wanted.
    pub fn horizon_ms(&self, table: ExperimentTable) -> i64 {
        let first_day = self.spans.first_day().map(|day| day.max(self.oldest_day));
        let first_ms = first_day.map_or(i64::MAX, |day| day * DAY_MS);
        if table == ExperimentTable::Pending {
            first_ms.max(self.final_ms)
        } else {
            first_ms
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
                ExposureRow::columns(rows.map(|(user, of, first_ms)| ExposureRow {
                    user,
                    code: self.code_of(of.exposure),
                    arm: of.arm as i16,
                    first_ms,
                }))
            }
        }
    }

    fn columns_of(&self, rows: &UserDays, first: u32, end: u32) -> Columns {
        let found: Vec<_> = rows.changed(first, end).collect();
        let mut columns = UserDayRow::columns(found.iter().map(|(key, _)| UserDayRow {
            user: key.user,
            at: key.at,
            label: key.label as i32,
        }));
        for (at, name) in self.columns.iter().enumerate() {
            columns.add(name, found.iter().map(|(_, sums)| sums[at]).collect());
        }
        columns
    }

    // Loading ---------------------------------------------------------------------------------------

    /// Before rows are loaded: what is stored beside them. Labels have a text for each dimension
    /// that any experiment looks at, in the order of the dimensions; empty where they lack it.
    pub fn restore(&mut self, labels: Vec<Vec<String>>, final_ms: i64) {
        self.labels.load(labels);
        for arms in &mut self.of_labels {
            arms.learn(&self.labels);
        }
        self.final_ms = final_ms;
    }

    /// Keep the sample that was stored, before rows are loaded.
    pub fn restore_sample(&mut self, bits: u32) {
        self.keep_sample(if self.is_empty() { 0 } else { bits });
    }

    /// Take over stored rows, as an epoch of their own. Those that are not wanted, out of the
    /// sample or settled since are left out. The sums are computed at the next refresh.
    pub fn load(&mut self, table: ExperimentTable, columns: &Columns) -> Result<(), LoadError> {
        match table {
            ExperimentTable::Exposures => self.load_exposures(columns)?,
            ExperimentTable::Days | ExperimentTable::Pending => self.load_rows(table, columns)?,
        }
        self.versions_mut(table).seal();
        self.make_stale();
        Ok(())
    }

    fn load_exposures(&mut self, columns: &Columns) -> Result<(), LoadError> {
        for row in ExposureRow::rows(columns)? {
            if !in_sample(row.user, self.sample_bits) {
                continue;
            }
            let arm = u32::try_from(row.arm).unwrap_or(0);
            for of in self.arms_of_row(row.code, arm)? {
                let exposure = &self.exposures[of.exposure as usize];
                let day = row.first_ms.div_euclid(DAY_MS);
                if (exposure.first_day..exposure.days.1).contains(&day) {
                    let exposures = &mut self.tables.exposures;
                    exposures.set(row.user, of, row.first_ms);
                }
            }
        }
        Ok(())
    }

    /// The arms that a stored row is of: none of an experiment that is not wanted any more.
    fn arms_of_row(&self, code: i64, arm: u32) -> Result<Vec<ArmOf>, LoadError> {
        let unknown = "a row of exposures has an unknown arm";
        if let Some(arms) = self.known_since.get(&code) {
            let found = arm.checked_sub(1).and_then(|at| arms.get(at as usize));
            return found.cloned().ok_or_else(|| unknown.into());
        }
        let declared = self.exposures.iter().position(|each| each.code == code);
        let found = declared.map(|place| (place as u32, self.exposures[place].arms.len()));
        let found = found.or_else(|| {
            let exposure = self.found.of_code(code)?;
            Some((exposure, self.found.of_exposure(exposure)?.arms.len()))
        });
        match found {
            None => Ok(Vec::new()),
            Some((exposure, arms)) if (1..=arms).contains(&(arm as usize)) => {
                Ok(vec![ArmOf { exposure, arm }])
            }
            Some(_) => Err(unknown.into()),
        }
    }

    /// Under which rows of an exposure are stored.
    fn code_of(&self, exposure: u32) -> i64 {
        match self.found.of_exposure(exposure) {
            Some(found) => found.code,
            None => self.exposures[exposure as usize].code,
        }
    }

    fn load_rows(&mut self, table: ExperimentTable, columns: &Columns) -> Result<(), LoadError> {
        let sums = self.sum_columns(columns)?;
        for (is_stored, sums) in self.is_stored.iter_mut().zip(&sums) {
            *is_stored |= sums.is_some();
        }
        let is_pending = table == ExperimentTable::Pending;
        for (place, row) in UserDayRow::rows(columns)?.enumerate() {
            let is_settled = is_pending && row.at < self.final_ms;
            if is_settled || !self.is_wanted(row.user, row.at) {
                continue;
            }
            let label = u32::try_from(row.label).ok();
            let label = label.filter(|label| (*label as usize) < self.labels.known.len());
            let key = UserDayKey {
                user: row.user,
                at: row.at,
                label: label.ok_or("a row of users has an unknown label")?,
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
}
