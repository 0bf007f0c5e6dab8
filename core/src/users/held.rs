//! Feedback that may still move to another combination, apart from the rows of users: by its serial
//! number, and chained for each user.

use hashbrown::HashTable;

use crate::changes::Combination;
use crate::users::items::UserItemKey;
use crate::users::rows::spread;

const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    serial: u64,
    key: UserItemKey,
    time: u32,
    column: u32,
    /// Of the same user; of free places `next` is the next one.
    before: u32,
    next: u32,
}

/// Pending feedback of one partition.
#[derive(Debug)]
pub struct Held {
    entries: Vec<Entry>,
    free: u32,
    by_serial: HashTable<u32>,
    heads: HashTable<u32>,
}

impl Default for Held {
    fn default() -> Self {
        let (by_serial, heads) = (HashTable::new(), HashTable::new());
        Self {
            entries: Vec::new(),
            free: END,
            by_serial,
            heads,
        }
    }
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.by_serial.is_empty()
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let tables = self.by_serial.allocation_size() + self.heads.allocation_size();
        self.entries.capacity() * size_of::<Entry>() + tables
    }

    /// User and combination of a serial number, if it is held.
    pub fn place(&self, serial: u64) -> Option<(u64, Combination)> {
        let key = self.entries[self.find(serial)? as usize].key;
        Some((key.user, key.combination))
    }

    fn find(&self, serial: u64) -> Option<u32> {
        let is_it = |at: &u32| self.entries[*at as usize].serial == serial;
        self.by_serial.find(spread(serial), is_it).copied()
    }

    /// Hold one whose serial number is new.
    pub fn insert(&mut self, serial: u64, key: UserItemKey, column: usize, time: u32) {
        let entry = Entry {
            serial,
            key,
            time,
            column: column as u32,
            before: END,
            next: END,
        };
        let at = match self.free {
            END => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
            free => {
                self.free = self.entries[free as usize].next;
                self.entries[free as usize] = entry;
                free
            }
        };
        let Self {
            entries,
            by_serial,
            heads,
            ..
        } = self;
        by_serial.insert_unique(spread(serial), at, |at| {
            spread(entries[*at as usize].serial)
        });
        let user = key.user;
        let is_his = |at: &u32| entries[*at as usize].key.user == user;
        if let Some(head) = heads.find_mut(spread(user), is_his) {
            let next = std::mem::replace(head, at);
            entries[next as usize].before = at;
            entries[at as usize].next = next;
        } else {
            heads.insert_unique(spread(user), at, |at| {
                spread(entries[*at as usize].key.user)
            });
        }
    }

    /// Hold one no longer.
    pub fn remove(&mut self, serial: u64) {
        let entries = &mut self.entries;
        let is_it = |at: &u32| entries[*at as usize].serial == serial;
        let Ok(found) = self.by_serial.find_entry(spread(serial), is_it) else {
            return;
        };
        let (at, _) = found.remove();
        let Entry {
            key, before, next, ..
        } = entries[at as usize];
        if next != END {
            entries[next as usize].before = before;
        }
        if before != END {
            entries[before as usize].next = next;
        } else if let Ok(mut head) = self.heads.find_entry(spread(key.user), |head| *head == at) {
            if next == END {
                head.remove();
            } else {
                *head.get_mut() = next;
            }
        }
        entries[at as usize].next = self.free;
        self.free = at;
    }

    /// Pair, combination, column and time of all that a user has.
    pub fn of(&self, user: u64) -> impl Iterator<Item = (u64, Combination, usize, u32)> {
        let is_his = |at: &u32| self.entries[*at as usize].key.user == user;
        let mut next = self.heads.find(spread(user), is_his).copied();
        std::iter::from_fn(move || {
            let entry = &self.entries[next? as usize];
            next = (entry.next != END).then_some(entry.next);
            Some((
                entry.key.pair,
                entry.key.combination,
                entry.column as usize,
                entry.time,
            ))
        })
    }

    /// Let times be so much smaller.
    pub fn shift(&mut self, shift: i64) {
        for entry in &mut self.entries {
            entry.time = (i64::from(entry.time) - shift).clamp(0, i64::from(u32::MAX)) as u32;
        }
    }

    /// Serial number, user and combination of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, Combination)> {
        self.by_serial.iter().map(|at| {
            let entry = &self.entries[*at as usize];
            (entry.serial, entry.key.user, entry.key.combination)
        })
    }

    /// Every user who has some.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        self.heads
            .iter()
            .map(|at| self.entries[*at as usize].key.user)
    }
}
