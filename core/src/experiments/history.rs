//! The rows of users, and what one of them did.

use crate::experiments::exposures::Exposures;
use crate::experiments::trial::{Did, History};
use crate::experiments::user_days::{UserDayKey, UserDays};
use crate::panes::Overflow;

use super::DAY_MS;

/// The rows of one partition.
#[derive(Debug)]
pub struct UserTables {
    pub days: UserDays,
    /// Rows by time: it is open whether they count.
    pub pending: UserDays,
    pub exposures: Exposures,
    /// Rows that one user may have.
    user_rows: u32,
}

impl UserTables {
    pub fn new(sums: usize, user_rows: u32) -> Self {
        Self {
            days: UserDays::new(sums, user_rows),
            pending: UserDays::new(sums, user_rows),
            exposures: Exposures::default(),
            user_rows,
        }
    }

    /// Every user with rows.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        let others = self.pending.users().filter(|user| !self.days.has(*user));
        self.days.users().chain(others)
    }

    /// Users with so many rows that not all may find room when they are settled.
    pub fn crowded(&self) -> impl Iterator<Item = u64> {
        let is_any = self.pending.most_rows() + self.days.most_rows() > self.user_rows;
        let users = is_any.then(|| self.pending.users()).into_iter().flatten();
        let rows = |user: u64| self.pending.rows_of(user) + self.days.rows_of(user);
        users.filter(move |user| rows(*user) > self.user_rows)
    }

    /// Bring rows before this time to their days.
    pub fn settle(&mut self, final_ms: i64) -> Result<(), Overflow> {
        for (key, amounts) in self.pending.iter() {
            if key.at < final_ms {
                let dated = dated(&self.exposures, key);
                self.days.add_row(&dated, amounts)?;
            }
        }
        self.pending.remove_before(final_ms);
        Ok(())
    }

    /// Keep the rows of some users.
    pub fn keep(&mut self, is_wanted: impl Fn(u64) -> bool) {
        self.days.keep(|key| is_wanted(key.user));
        self.pending.keep(|key| is_wanted(key.user));
        self.exposures.keep(is_wanted);
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.days.nbytes() + self.pending.nbytes() + self.exposures.nbytes()
    }
}

/// A row by time under its day, as things are known now.
fn dated(exposures: &Exposures, key: &UserDayKey) -> UserDayKey {
    let is_exposed = exposures.is_exposed(key.user, key.part >> 1, key.at);
    UserDayKey {
        at: key.at.div_euclid(DAY_MS),
        part: key.part | u32::from(is_exposed),
        ..*key
    }
}

/// The rows of one user at a time; its buffers are used again.
#[derive(Debug, Default)]
pub struct Person {
    width: usize,
    /// In the order of exposures and days.
    did: Vec<Did>,
    amounts: Vec<i64>,
}

impl Person {
    /// Read what a user did.
    pub fn read(&mut self, tables: &UserTables, user: u64) {
        self.width = tables.days.width();
        self.did.clear();
        self.amounts.clear();
        for (key, amounts) in tables.days.of(user) {
            self.push(key, amounts);
        }
        for (key, amounts) in tables.pending.of(user) {
            self.push(&dated(&tables.exposures, key), amounts);
        }
        self.did.sort_unstable_by_key(|did| (did.exposure, did.day));
    }

    fn push(&mut self, key: &UserDayKey, amounts: &[i64]) {
        self.did.push(Did {
            exposure: key.part >> 1,
            day: key.at,
            label: key.label,
            is_exposed: key.part & 1 == 1,
            at: self.amounts.len(),
        });
        self.amounts.extend_from_slice(amounts);
    }

    /// What he did under one exposure.
    pub fn under(&self, exposure: u32) -> History<'_> {
        let start = self.did.partition_point(|did| did.exposure < exposure);
        let stop = self.did.partition_point(|did| did.exposure <= exposure);
        History {
            did: &self.did[start..stop],
            amounts: &self.amounts,
            width: self.width,
        }
    }
}
