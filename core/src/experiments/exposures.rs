//! Since when each user is exposed to an experiment: later outcomes count towards the arm.

use hashbrown::HashTable;

use crate::hash::mix;
use crate::versions::{NEW, Versions};

const GROWTH: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Row {
    user: u64,
    first_ms: i64,
    /// Place of what exposes.
    exposure: u32,
    epoch: u32,
}

/// First exposures of the users of one partition.
#[derive(Debug, Default)]
pub struct Exposures {
    rows: Vec<Row>,
    by_key: HashTable<u32>,
    versions: Versions,
    /// The earliest of each place.
    earliest_ms: Vec<Option<i64>>,
}

impl Exposures {
    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<Row>();
        rows + self.by_key.allocation_size() + self.versions.nbytes()
    }

    fn find(&self, user: u64, exposure: u32) -> Option<usize> {
        let is_it = |row: &u32| {
            let row = &self.rows[*row as usize];
            row.user == user && row.exposure == exposure
        };
        let found = self.by_key.find(hash_of(user, exposure), is_it);
        found.map(|row| *row as usize)
    }

    /// The first exposure (ms) of a user.
    pub fn first_ms(&self, user: u64, exposure: u32) -> Option<i64> {
        self.find(user, exposure).map(|row| self.rows[row].first_ms)
    }

    /// The first exposure (ms) of any user at a place.
    pub fn earliest_ms(&self, exposure: usize) -> Option<i64> {
        self.earliest_ms.get(exposure).copied().flatten()
    }

    /// Whether a user was exposed by this time.
    pub fn is_exposed(&self, user: u64, exposure: u32, event_ms: i64) -> bool {
        self.first_ms(user, exposure)
            .is_some_and(|first_ms| event_ms >= first_ms)
    }

    /// A user is exposed at this time.
    pub fn see(&mut self, user: u64, exposure: u32, event_ms: i64) {
        if !self.is_exposed(user, exposure, event_ms) {
            self.set(user, exposure, event_ms);
        }
    }

    /// The first exposure of a user is at this time.
    pub fn set(&mut self, user: u64, exposure: u32, first_ms: i64) {
        let found = self.find(user, exposure);
        let number = found.unwrap_or_else(|| self.insert(user, exposure));
        let place = exposure as usize;
        if place >= self.earliest_ms.len() {
            self.earliest_ms.resize(place + 1, None);
        }
        let earliest = self.earliest_ms[place].get_or_insert(first_ms);
        *earliest = first_ms.min(*earliest);
        let row = &mut self.rows[number];
        row.first_ms = first_ms;
        self.versions.mark(number as u32, &mut row.epoch);
    }

    fn insert(&mut self, user: u64, exposure: u32) -> usize {
        let number = self.rows.len();
        if number == self.rows.capacity() {
            self.rows.reserve_exact(number / GROWTH + 1024);
        }
        self.rows.push(Row {
            user,
            first_ms: 0,
            exposure,
            epoch: NEW,
        });
        self.link(number);
        number
    }

    fn link(&mut self, number: usize) {
        let Self { rows, by_key, .. } = self;
        let hash = |row: &Row| hash_of(row.user, row.exposure);
        by_key.insert_unique(hash(&rows[number]), number as u32, |row| {
            hash(&rows[*row as usize])
        });
    }

    /// Keep the rows of some users.
    pub fn keep(&mut self, is_wanted: impl Fn(u64) -> bool) {
        self.rows.retain(|row| is_wanted(row.user));
        self.rows
            .shrink_to(self.rows.len() + self.rows.len() / GROWTH);
        self.by_key = HashTable::with_capacity(self.rows.len());
        for number in 0..self.rows.len() {
            self.link(number);
        }
        self.versions
            .renumber(self.rows.iter().map(|row| row.epoch));
    }

    // Stored form -----------------------------------------------------------------------------------

    /// The epoch that changes belong to.
    pub fn epoch(&self) -> u32 {
        self.versions.epoch()
    }

    /// Changes from now on belong to another epoch, whose number is returned.
    pub fn seal(&mut self) -> u32 {
        self.versions.seal()
    }

    /// User, place of what exposes and first exposure of the rows that last changed in the epochs
    /// [first, end).
    pub fn changed(&self, first: u32, end: u32) -> impl Iterator<Item = (u64, u32, i64)> {
        let of = |row: u32| self.rows[row as usize].epoch;
        let found = self.versions.changed(first, end, self.rows.len(), of);
        found.into_iter().map(|row| {
            let row = &self.rows[row as usize];
            (row.user, row.exposure, row.first_ms)
        })
    }

    /// How many rows last changed from each of these epochs (ascending) on, before the next.
    pub fn live(&self, firsts: &[u32]) -> Vec<u64> {
        self.versions.live(firsts)
    }
}

fn hash_of(user: u64, exposure: u32) -> u64 {
    mix(user, u64::from(exposure) + 1)
}
