//! Rows of experiments as columns, and back: versions, of which the newest of a row counts.

use super::{DAY_MS, Experiments};
use crate::columns::{Columns, LoadError, Values};
use crate::counting::panes::MAX_SUM;
use crate::experiments::user_days::{Key, UserDays};
use crate::hash::in_sample;

/// A stored table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Days,
    Pending,
    Exposures,
}

impl Table {
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
}

impl Experiments {
    /// Changes from now on belong to another epoch. Returns its number in each table, in the order
    /// of `Table::ALL`.
    pub fn seal(&mut self) -> [u32; 3] {
        Table::ALL.map(|table| self.seal_table(table))
    }

    /// The epoch that changes of a table belong to.
    pub fn epoch(&self, table: Table) -> u32 {
        let tables = &self.tables;
        match table {
            Table::Days => tables.days.epoch(),
            Table::Pending => tables.pending.epoch(),
            Table::Exposures => tables.exposures.epoch(),
        }
    }

    /// Stored rows of a table before this time (ms) are not wanted.
    pub fn horizon_ms(&self, table: Table) -> i64 {
        let first = self
            .exposures
            .iter()
            .map(|exposure| exposure.days.start)
            .min();
        let first_ms = first.map_or(i64::MAX, |day| day * DAY_MS);
        if table == Table::Pending {
            first_ms.max(self.final_ms)
        } else {
            first_ms
        }
    }

    fn seal_table(&mut self, table: Table) -> u32 {
        let tables = &mut self.tables;
        match table {
            Table::Days => tables.days.seal(),
            Table::Pending => tables.pending.seal(),
            Table::Exposures => tables.exposures.seal(),
        }
    }

    /// What is stored of rows of a table that last changed in the epochs [first, end).
    pub fn changed(&self, table: Table, first: u32, end: u32) -> Columns {
        let tables = &self.tables;
        match table {
            Table::Days => self.columns_of(&tables.days, first, end),
            Table::Pending => self.columns_of(&tables.pending, first, end),
            Table::Exposures => {
                let (mut user, mut code, mut first_ms) = (Vec::new(), Vec::new(), Vec::new());
                for row in tables.exposures.changed(first, end) {
                    user.push(row.0);
                    code.push(self.code(row.1));
                    first_ms.push(row.2);
                }
                let mut found = Columns::default();
                found.add("user", Values::U64(user));
                found.add("code", Values::I64(code));
                found.add("first_ms", Values::I64(first_ms));
                found
            }
        }
    }

    fn code(&self, exposure: u32) -> i64 {
        self.exposures[exposure as usize].spec.code
    }

    fn columns_of(&self, rows: &UserDays, first: u32, end: u32) -> Columns {
        let (mut user, mut at) = (Vec::new(), Vec::new());
        let (mut label, mut part) = (Vec::new(), Vec::new());
        let mut sums = vec![Vec::new(); self.columns.len()];
        for (key, amounts) in rows.changed(first, end) {
            user.push(key.user);
            at.push(key.at);
            label.push(key.label as i32);
            part.push(2 * self.code(key.part >> 1) + i64::from(key.part & 1));
            for (column, amount) in sums.iter_mut().zip(amounts) {
                column.push(*amount);
            }
        }
        let mut found = Columns::default();
        found.add("user", Values::U64(user));
        found.add("at", Values::I64(at));
        found.add("label", Values::I32(label));
        found.add("part", Values::I64(part));
        for (name, column) in self.columns.iter().zip(sums) {
            found.add(name, Values::I64(column));
        }
        found
    }

    /// How many rows of a table last changed from each of these epochs (ascending) on, before the
    /// next.
    pub fn live(&self, table: Table, firsts: &[u32]) -> Vec<u64> {
        match table {
            Table::Days => self.tables.days.live(firsts),
            Table::Pending => self.tables.pending.live(firsts),
            Table::Exposures => self.tables.exposures.live(firsts),
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
    pub fn load(&mut self, table: Table, columns: &Columns) -> Result<(), LoadError> {
        let rows = columns.rows()?;
        match table {
            Table::Exposures => self.load_exposures(columns, rows)?,
            Table::Days | Table::Pending => self.load_rows(table, columns, rows)?,
        }
        self.seal_table(table);
        self.make_stale();
        self.must_refresh = self.is_stale;
        Ok(())
    }

    fn load_exposures(&mut self, columns: &Columns, rows: usize) -> Result<(), LoadError> {
        let user = columns.u64("user")?;
        let (code, first_ms) = (columns.i64("code")?, columns.i64("first_ms")?);
        for row in 0..rows {
            let day = first_ms[row].div_euclid(DAY_MS);
            if let Some(exposure) = self.wanted(user[row], code[row], day) {
                self.tables
                    .exposures
                    .set(user[row], exposure, first_ms[row]);
            }
        }
        Ok(())
    }

    fn load_rows(&mut self, table: Table, columns: &Columns, rows: usize) -> Result<(), LoadError> {
        let (user, at) = (columns.u64("user")?, columns.i64("at")?);
        let (label, part) = (columns.i32("label")?, columns.i64("part")?);
        let sums = self.sum_columns(columns)?;
        let is_pending = table == Table::Pending;
        for row in 0..rows {
            let day = if is_pending {
                at[row].div_euclid(DAY_MS)
            } else {
                at[row]
            };
            let Some(exposure) = self.wanted(user[row], part[row] >> 1, day) else {
                continue;
            };
            if is_pending && at[row] < self.final_ms {
                continue;
            }
            let label = u32::try_from(label[row]).ok();
            let label = label.filter(|label| (*label as usize) < self.labels.known.len());
            let key = Key {
                user: user[row],
                at: at[row],
                label: label.ok_or("a row of users has an unknown label")?,
                part: 2 * exposure + (part[row] & 1) as u32,
            };
            let amounts = sums.iter().map(|sums| sums.map_or(0, |sums| sums[row]));
            let held = if is_pending {
                &mut self.tables.pending
            } else {
                &mut self.tables.days
            };
            held.set(&key, amounts);
        }
        Ok(())
    }

    /// The stored sums of each component; none where they are not stored.
    fn sum_columns<'a>(&self, columns: &'a Columns) -> Result<Vec<Option<&'a [i64]>>, LoadError> {
        let mut found = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let is_stored = columns.0.iter().any(|(other, _)| other == name);
            let sums = is_stored.then(|| columns.i64(name)).transpose()?;
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
