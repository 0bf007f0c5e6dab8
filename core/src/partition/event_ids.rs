//! Event ids accepted within the deduplication horizon, each with the arrival of its first event.

use hashbrown::HashTable;

use crate::columns::stored_row;
use crate::log::Log;

stored_row! {
    /// An accepted event id, as a hash; 16 bytes, and 5 to 12 in the table that finds it.
    pub struct EventId {
        key: u64,
        arrival_ms: i64,
    }
}

/// The ids of one topic-partition.
#[derive(Debug)]
pub struct EventIds {
    horizon_ms: i64,
    pub limit: usize,
    pub log: Log<EventId>,
    index: HashTable<u32>,
    /// Ids forgotten before their time, because there were too many.
    pub evicted_early: u64,
}

impl EventIds {
    pub fn new(horizon_ms: i64, limit: usize) -> Self {
        let (log, index) = (Log::default(), HashTable::new());
        Self {
            horizon_ms,
            limit,
            log,
            index,
            evicted_early: 0,
        }
    }

    /// Whether an event is the first with its id: later ones within the horizon of it are copies,
    /// and do not prolong it.
    pub fn admit(&mut self, key: u64, arrival_ms: i64) -> bool {
        let log = &self.log;
        let known = |row: &u32| log.get(*row).is_some_and(|id| id.key == key);
        if let Some(row) = self.index.find_mut(key, known) {
            let first_ms = log.get(*row).map_or(i64::MIN / 2, |id| id.arrival_ms);
            if arrival_ms - first_ms <= self.horizon_ms {
                return false;
            }
            *row = self.log.push(EventId { key, arrival_ms });
            return true;
        }
        self.push(EventId { key, arrival_ms });
        true
    }

    /// Fetches what `admit` needs: see `Partition::warm_up`.
    pub fn warm_up(&self, key: u64) -> usize {
        usize::from(self.index.find(key, |_| false).is_some())
    }

    fn push(&mut self, id: EventId) {
        let row = self.log.push(id);
        let log = &self.log;
        let key_of = |row: &u32| log.get(*row).map_or(0, |id| id.key);
        self.index.insert_unique(id.key, row, key_of);
    }

    /// Takes over a stored id; they come in the order of arrival.
    pub fn load(&mut self, id: EventId) {
        let log = &self.log;
        let known = |row: &u32| log.get(*row).is_some_and(|other| other.key == id.key);
        if let Some(row) = self.index.find_mut(id.key, known) {
            *row = self.log.push(id);
        } else {
            self.push(id);
        }
    }

    /// Forgets ids whose copies would be first again, and the oldest beyond the bound.
    pub fn expire(&mut self, arrival_ms: i64) {
        while let Some((row, id)) = self.log.front() {
            let is_old = id.arrival_ms < arrival_ms - self.horizon_ms;
            if !is_old && self.log.len() <= self.limit {
                break;
            }
            self.evicted_early += u64::from(!is_old);
            if let Ok(entry) = self.index.find_entry(id.key, |other| *other == row) {
                entry.remove();
            }
            self.log.drop_front();
        }
    }

    pub fn bytes(&self) -> usize {
        self.log.bytes() + self.index.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_within_the_horizon_do_not_prolong_it() {
        let mut ids = EventIds::new(100, 1000);
        let verdicts = [0, 50, 100, 101, 150, 202].map(|at| ids.admit(7, at));
        assert_eq!(verdicts, [true, false, false, true, false, true]);
        ids.expire(302);
        assert_eq!(ids.log.len(), 1);
        ids.expire(303);
        assert_eq!((ids.log.len(), ids.index.len()), (0, 0));
    }

    #[test]
    fn beyond_the_bound_the_oldest_are_forgotten() {
        let mut ids = EventIds::new(1_000_000, 10);
        for hash in 1..=25 {
            ids.admit(hash, hash as i64);
            ids.expire(hash as i64);
        }
        assert_eq!((ids.log.len(), ids.evicted_early), (10, 15));
        assert!(ids.admit(1, 26) && !ids.admit(25, 26));
    }

    #[test]
    fn an_id_takes_at_most_thirty_bytes() {
        let mut ids = EventIds::new(i64::MAX / 4, 10_000_000);
        for n in 0..1_000_000u64 {
            ids.admit(crate::hash::mix(n, 1), 0);
        }
        assert!(ids.bytes() <= 30_000_000, "{}", ids.bytes());
    }
}
