//! Slates: what one request showed a user, by key and time of opening.
//!
//! A request id that comes back later than the deduplication window after the slate's first row (by
//! the arrival clock) opens another slate under the same key. A slate stays as long as one of its
//! rows: open impressions, or retained ones.

pub mod family;
pub mod members;
pub mod pairs;
pub mod probes;
pub mod ranking;
pub mod scoring;
pub mod values;

use hashbrown::HashTable;

use crate::changes::{Age, Combination, UserAt};
use crate::log::{Log, NO_ROW};
use crate::slates::pairs::PairLosses;
use crate::slates::probes::{EventProbes, ProbedBy, Probes};

const CHUNK: usize = 1024;

/// Refers to no slate.
pub const NO_SLATE: u32 = u32::MAX;

/// The losses over the pairs of a large slate, as emitted, and who was relevant then.
#[derive(Debug)]
pub struct EmittedLosses {
    pub losses: PairLosses,
    pub members: Vec<(Age, bool)>,
}

/// One slate.
#[derive(Debug)]
pub struct Slate {
    /// Hash of its user and request.
    pub key: u64,
    /// That of the earliest member.
    pub user: u64,
    /// Arrival of its first row, of its last, and the latest event time of its rows.
    pub opened_ms: i64,
    pub latest_arrival_ms: i64,
    pub latest_event_ms: i64,
    /// The earliest member, under whose time and combination the slate counts; `NO_AGE`: none.
    earliest: Age,
    pub earliest_combination: Combination,
    /// Rows placed so far: those beyond the bound are no members.
    pub placed: u32,
    /// Rows that are here.
    rows: u32,
    /// Members with an outcome.
    pub marked: u32,
    pub first_row: u32,
    /// Chains of its members: open ones, and retained ones.
    pub last_member: u32,
    pub last_retained: u32,
    /// The slate of the same key before it.
    pub older: u32,
    /// Whether rows of it had to leave before their time: it is not ranked any more.
    pub is_closed: bool,
    /// Whether its values were retracted and are to be emitted again.
    pub is_dirty: bool,
    /// Likewise its list.
    pub is_list_dirty: bool,
    /// Of large slates that are ranked: the losses over pairs, as emitted.
    pub losses: Option<Box<EmittedLosses>>,
    /// What it is compared with, if anything.
    pub probes: Option<Box<Probes>>,
}

/// Later than any.
const NO_AGE: Age = (i64::MAX, 0, 0);

impl Slate {
    /// The earliest member.
    pub fn earliest(&self) -> Option<Age> {
        (self.earliest != NO_AGE).then_some(self.earliest)
    }

    /// Under what it counts; none without members.
    pub fn at(&self) -> Option<UserAt> {
        let (event_ms, ..) = self.earliest()?;
        Some(UserAt::new(self.user, event_ms, self.earliest_combination))
    }

    /// Whether it has values: members with an outcome, or probes.
    pub fn is_ranked(&self) -> bool {
        self.marked > 0 || self.probes.is_some()
    }

    /// Whether the next row that is placed is a member.
    pub fn takes(&self, most: u32) -> bool {
        self.placed < most && !self.is_closed
    }

    /// A member was loaded: the slate counts under its earliest one.
    pub fn learn_earliest(&mut self, age: Age, combination: Combination, user: u64) {
        if age < self.earliest {
            (self.earliest, self.earliest_combination) = (age, combination);
            self.user = user;
        }
    }
}

/// The slates of one partition.
#[derive(Debug, Default)]
pub struct Slates {
    /// In chunks, so that growth copies nothing.
    slates: Vec<Vec<Option<Slate>>>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
    /// Those whose values are to be emitted again.
    pub dirty: Vec<u32>,
    /// Those whose lists are.
    pub dirty_lists: Vec<u32>,
    /// Members that probes of slates came from.
    pub probed_by: Log<ProbedBy>,
    /// Items of all brute-force lists.
    listed: usize,
}

impl Slates {
    pub fn iter(&self) -> impl Iterator<Item = &Slate> {
        self.slates.iter().flatten().flatten()
    }

    pub fn get(&self, slate: u32) -> Option<&Slate> {
        find(&self.slates, slate)
    }

    pub fn get_mut(&mut self, slate: u32) -> Option<&mut Slate> {
        let slate = slate as usize;
        self.slates
            .get_mut(slate / CHUNK)?
            .get_mut(slate % CHUNK)?
            .as_mut()
    }

    /// The newest slate of a key.
    pub fn newest(&self, key: u64) -> Option<u32> {
        let is_of_key = |slate: &u32| self.get(*slate).is_some_and(|found| found.key == key);
        self.by_key.find(key, is_of_key).copied()
    }

    /// Fetches what `of_arrival` needs: see `Partition::warm_up`.
    pub fn warm_up(&self, key: u64) -> usize {
        usize::from(self.newest(key).is_some())
    }

    /// The slate that a row of a key belongs to which arrives now, opened if need be.
    pub fn of_arrival(&mut self, key: u64, user: u64, arrival_ms: i64, window_ms: i64) -> u32 {
        let newest = self.newest(key);
        if let Some(found) = newest.and_then(|slate| self.get_mut(slate))
            && !found.is_closed
            && arrival_ms - found.opened_ms <= window_ms
        {
            found.latest_arrival_ms = found.latest_arrival_ms.max(arrival_ms);
            return newest.unwrap_or(NO_SLATE);
        }
        // Later than the one before, which may be closed: slates of a key are told apart by it.
        let after_ms = newest.and_then(|slate| Some(self.get(slate)?.opened_ms + 1));
        let opened_ms = after_ms.map_or(arrival_ms, |after_ms| after_ms.max(arrival_ms));
        self.open(key, user, opened_ms)
    }

    /// The slate of a key that was opened at a time, made if need be: when rows are loaded.
    pub fn of_opening(&mut self, key: u64, user: u64, opened_ms: i64) -> u32 {
        let found = self.of_key(key).find(|slate| {
            self.get(*slate)
                .is_some_and(|found| found.opened_ms == opened_ms)
        });
        found.unwrap_or_else(|| self.open(key, user, opened_ms))
    }

    /// Opens a slate, behind those of its key that were opened later: rows are not loaded in the order
    /// in which they came.
    fn open(&mut self, key: u64, user: u64, opened_ms: i64) -> u32 {
        let opened_of = |slate: &u32| self.get(*slate).map_or(i64::MIN, |found| found.opened_ms);
        let later = self
            .of_key(key)
            .take_while(|slate| opened_of(slate) > opened_ms);
        let newer = later.last();
        let older = match newer {
            Some(newer) => self.get(newer).map(|found| found.older),
            None => self.newest(key),
        };
        let older = older.filter(|slate| *slate != NO_SLATE);
        let slate = Slate {
            key,
            user,
            opened_ms,
            latest_arrival_ms: opened_ms,
            latest_event_ms: i64::MIN,
            earliest: NO_AGE,
            earliest_combination: 0,
            placed: 0,
            rows: 0,
            marked: 0,
            first_row: NO_ROW,
            last_member: NO_ROW,
            last_retained: NO_ROW,
            older: older.unwrap_or(NO_SLATE),
            is_closed: false,
            is_dirty: false,
            is_list_dirty: false,
            losses: None,
            probes: None,
        };
        let at = self.add(slate);
        if let Some(newer) = newer.and_then(|newer| self.get_mut(newer)) {
            newer.older = at;
            return at;
        }
        match older {
            Some(older) => {
                if let Some(head) = self.by_key.find_mut(key, |slate| *slate == older) {
                    *head = at;
                }
            }
            None => {
                let slates = &self.slates;
                let key_of = |slate: &u32| find(slates, *slate).map_or(0, |found| found.key);
                self.by_key.insert_unique(key, at, key_of);
            }
        }
        at
    }

    fn add(&mut self, slate: Slate) -> u32 {
        if let Some(at) = self.free.pop() {
            let place = at as usize;
            self.slates[place / CHUNK][place % CHUNK] = Some(slate);
            return at;
        }
        if self.slates.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.slates.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.slates.len() - 1) * CHUNK;
        let chunk = &mut self.slates[before / CHUNK];
        chunk.push(Some(slate));
        (before + chunk.len() - 1) as u32
    }

    /// A row refers to the slate.
    pub fn hold(&mut self, slate: u32) {
        if let Some(found) = self.get_mut(slate) {
            found.rows += 1;
        }
    }

    /// A row that referred to the slate has left; with its last one the slate leaves.
    pub fn release(&mut self, slate: u32) {
        let Some(found) = self.get_mut(slate) else {
            return;
        };
        found.rows -= 1;
        if found.rows == 0 {
            let (key, older) = (found.key, found.older);
            let listed = found.probes.as_ref().map_or(0, |probes| probes.listed());
            self.listed -= listed;
            self.unlink(slate, key, older);
            let at = slate as usize;
            self.slates[at / CHUNK][at % CHUNK] = None;
            self.free.push(slate);
        }
    }

    fn unlink(&mut self, slate: u32, key: u64, older: u32) {
        let Some(newest) = self.newest(key) else {
            return;
        };
        if newest == slate {
            if older != NO_SLATE {
                if let Some(head) = self.by_key.find_mut(key, |other| *other == slate) {
                    *head = older;
                }
            } else if let Ok(entry) = self.by_key.find_entry(key, |other| *other == slate) {
                entry.remove();
            }
            return;
        }
        let mut at = newest;
        while let Some(found) = self.get_mut(at) {
            if found.older == slate {
                found.older = older;
                return;
            }
            at = found.older;
        }
    }

    /// A member of a slate has probes; false where there are `most` items in lists already.
    pub fn take_probes(&mut self, slate: u32, age: Age, probes: EventProbes, most: usize) -> bool {
        let is_full = self.listed + probes.reference.len() > most;
        let Some(found) = self.get_mut(slate).filter(|_| !is_full) else {
            return !is_full;
        };
        let (key, opened_ms) = (found.key, found.opened_ms);
        let of_slate = found.probes.get_or_insert_default();
        let before = of_slate.listed();
        let is_taken = of_slate.take(age, probes);
        let now = of_slate.listed();
        self.listed = self.listed + now - before;
        if is_taken {
            self.probed_by.push(ProbedBy {
                slate,
                key,
                opened_ms,
                age,
            });
        }
        true
    }

    /// A stored pair of the probes of a slate; without its rows the slate is gone, and so are they.
    pub fn load_probe(&mut self, by: (u64, i64, Age), is_held_out: bool, pair: u64) {
        let (key, opened_ms, age) = by;
        let is_it = |slate: &u32| self.get(*slate).is_some_and(|x| x.opened_ms == opened_ms);
        let Some(slate) = self.of_key(key).find(is_it) else {
            return;
        };
        if let Some(found) = self.get_mut(slate) {
            let probes = found.probes.get_or_insert_default();
            let before = probes.listed();
            probes.load(age, is_held_out, pair);
            let now = probes.listed();
            self.listed = self.listed + now - before;
        }
        let by = ProbedBy {
            slate,
            key,
            opened_ms,
            age,
        };
        let last = self.probed_by.next().checked_sub(1);
        if last.and_then(|last| self.probed_by.get(last as u32)) != Some(&by) {
            self.probed_by.push(by);
        }
    }

    /// The slate of a row of `probed_by`, while it is here.
    pub fn probed(&self, by: &ProbedBy) -> Option<&Slate> {
        self.get(by.slate)
            .filter(|found| (found.key, found.opened_ms) == (by.key, by.opened_ms))
    }

    /// Forgets where the probes of slates came from that are gone.
    pub fn expire_probes(&mut self) {
        while let Some((_, front)) = self.probed_by.front() {
            if self.probed(front).is_some() {
                return;
            }
            self.probed_by.drop_front();
        }
    }

    /// Every slate of a key, the newest first.
    pub fn of_key(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let next = |slate: &u32| Some(self.get(*slate)?.older).filter(|x| *x != NO_SLATE);
        std::iter::successors(self.newest(key), next)
    }

    pub fn len(&self) -> usize {
        let before = self.slates.len().saturating_sub(1) * CHUNK;
        before + self.slates.last().map_or(0, Vec::len) - self.free.len()
    }

    pub fn bytes(&self) -> usize {
        self.slates.len() * CHUNK * size_of::<Option<Slate>>()
            + self.by_key.allocation_size()
            + self.probed_by.bytes()
            + self.probed_by.len() * size_of::<Probes>()
            + self.listed * size_of::<u64>()
    }
}

fn find(slates: &[Vec<Option<Slate>>], slate: u32) -> Option<&Slate> {
    let slate = slate as usize;
    slates.get(slate / CHUNK)?.get(slate % CHUNK)?.as_ref()
}
