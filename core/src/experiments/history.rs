//! The rows of users, and what one of them did.

use crate::experiments::exposures::{ArmOf, Exposures};
use crate::experiments::spans::DAY_MS;
use crate::experiments::trial::{Did, History};
use crate::experiments::user_days::{UserDayKey, UserDays};
use crate::panes::Overflow;

/// The rows of one partition.
#[derive(Debug)]
pub struct UserTables {
    /// By slot: a day, or the part of it from a first exposure of the user to the next.
    pub days: UserDays,
    /// By time: it is open which slots there will be.
    pub pending: UserDays,
    pub exposures: Exposures,
    /// Rows that one user may have.
    user_rows: u32,
}

impl UserTables {
    pub fn new(sums: usize, user_rows: u32, exposures: Exposures) -> Self {
        Self {
            days: UserDays::new(sums, user_rows),
            pending: UserDays::new(sums, user_rows),
            exposures,
            user_rows,
        }
    }

    /// Every user with rows.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        let has_days = |user: &u64| self.days.has(*user);
        let pending = self.pending.users().filter(move |user| !has_days(user));
        let is_other = move |user: &u64| !has_days(user) && !self.pending.has(*user);
        let exposed = self.exposures.users().filter(is_other);
        self.days.users().chain(pending).chain(exposed)
    }

    /// Users with so many rows that not all may find room when they are settled.
    pub fn crowded(&self) -> impl Iterator<Item = u64> {
        let is_any = self.pending.most_rows() + self.days.most_rows() > self.user_rows;
        let users = is_any.then(|| self.pending.users()).into_iter().flatten();
        let rows = |user: u64| self.pending.rows_of(user) + self.days.rows_of(user);
        users.filter(move |user| rows(*user) > self.user_rows)
    }

    /// The key of a row by time under its slot, as things are known now.
    pub fn slotted(&self, key: &UserDayKey) -> UserDayKey {
        let day_ms = key.at.div_euclid(DAY_MS) * DAY_MS;
        UserDayKey {
            at: self.exposures.slot(key.user, key.at, day_ms),
            ..*key
        }
    }

    /// Bring rows before this time to their slots.
    pub fn settle(&mut self, final_ms: i64) -> Result<(), Overflow> {
        let mut settled = Vec::new();
        for (number, (key, _)) in self.pending.iter().enumerate() {
            if key.at < final_ms {
                settled.push((number, self.slotted(key)));
            }
        }
        for (number, key) in settled {
            self.days.add_row(&key, self.pending.amounts(number))?;
        }
        self.pending.remove_before(final_ms);
        Ok(())
    }

    /// Keep the rows of some users.
    pub fn keep(&mut self, is_wanted: impl Fn(u64) -> bool) {
        self.days.keep(|key| is_wanted(key.user));
        self.pending.keep(|key| is_wanted(key.user));
        self.exposures.keep(|user, _| is_wanted(user));
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.days.nbytes() + self.pending.nbytes() + self.exposures.nbytes()
    }
}

/// What one user at a time did and saw; its buffers are used again.
#[derive(Debug, Default)]
pub struct Person {
    width: usize,
    /// In the order of time.
    did: Vec<Did>,
    amounts: Vec<i64>,
    /// By exposure.
    saw: Vec<(ArmOf, i64)>,
}

impl Person {
    /// Read what a user did.
    pub fn read(&mut self, tables: &UserTables, user: u64) {
        self.width = tables.days.width();
        self.did.clear();
        self.amounts.clear();
        let rows = tables.days.of(user).chain(tables.pending.of(user));
        for (key, amounts) in rows {
            self.did.push(Did {
                at_ms: key.at,
                day: key.at.div_euclid(DAY_MS),
                label: key.label,
                row: self.amounts.len(),
            });
            self.amounts.extend_from_slice(amounts);
        }
        self.did.sort_unstable_by_key(|did| did.at_ms);
        self.read_exposures(tables, user);
    }

    /// Read what a user saw, alone.
    pub fn read_exposures(&mut self, tables: &UserTables, user: u64) {
        self.saw.clear();
        self.saw.extend(tables.exposures.of(user));
        self.saw.sort_unstable_by_key(|(of, _)| of.exposure);
    }

    /// What the user did.
    pub fn history(&self) -> History<'_> {
        History {
            did: &self.did,
            amounts: &self.amounts,
            width: self.width,
        }
    }

    /// The arms that the user saw, with the first time of each, exposure by exposure.
    pub fn saw(&self) -> impl Iterator<Item = &[(ArmOf, i64)]> {
        self.saw.chunk_by(|a, b| a.0.exposure == b.0.exposure)
    }

    /// Those of one exposure.
    pub fn saw_of(&self, exposure: u32) -> &[(ArmOf, i64)] {
        let mut saw = self.saw();
        saw.find(|saw| saw[0].0.exposure == exposure)
            .unwrap_or_default()
    }
}
