//! Event ids accepted within the deduplication horizon, each with the arrival of its first event.

use hashbrown::HashTable;

use crate::changes::NEVER;
use crate::columns::stored_row;
use crate::hash::NONE;
use crate::log::Log;

stored_row! {
    /// An accepted event id, as a hash; 16 bytes, and 5 to 12 in the table that finds it.
    pub struct EventId {
        key: u64,
        arrival_ms: i64,
    }
}

stored_row! {
    /// What a refund needs of its order: its time, its slate, its first line as a pair, and its
    /// value in millionths.
    pub struct Order {
        event_ms: i64,
        slate: u64,
        pair: u64,
        value_micros: i64,
    }
}

impl Order {
    /// One that nothing joins as.
    pub const UNKNOWN: Self = Self {
        event_ms: NEVER,
        slate: NONE,
        pair: NONE,
        value_micros: 0,
    };

    /// Whether a refund of this much, in millionths below 0, leaves nothing of it.
    pub fn is_used_up_by(&self, value_micros: i64) -> bool {
        self.value_micros > 0 && value_micros.saturating_neg() >= self.value_micros
    }
}

/// The ids of one topic-partition.
#[derive(Debug)]
pub struct EventIds {
    horizon_ms: i64,
    pub limit: usize,
    pub log: Log<EventId>,
    /// Under the same numbers; only where ids are of conversions.
    pub orders: Option<Log<Order>>,
    index: HashTable<u32>,
    /// Ids forgotten before their time, because there were too many.
    pub evicted_early: u64,
}

impl EventIds {
    pub fn new(horizon_ms: i64, limit: usize, is_of_orders: bool) -> Self {
        let (log, index) = (Log::default(), HashTable::new());
        Self {
            horizon_ms,
            limit,
            log,
            orders: is_of_orders.then(Log::default),
            index,
            evicted_early: 0,
        }
    }

    /// Whether an event is the first with its id: later ones within the horizon of it are copies,
    /// and do not prolong it.
    pub fn admit(&mut self, id: EventId, order: Order) -> bool {
        let horizon_ms = self.horizon_ms;
        self.put(id, order, |first| {
            id.arrival_ms - first.arrival_ms > horizon_ms
        })
    }

    /// Takes over a stored id; they come in the order of arrival.
    pub fn load(&mut self, id: EventId, order: Order) {
        self.put(id, order, |_| true);
    }

    /// Adds an id, if it is new or takes the place of the one before; whether it does.
    fn put(&mut self, id: EventId, order: Order, replaces: impl Fn(&EventId) -> bool) -> bool {
        let log = &self.log;
        let known = |row: &u32| log.get(*row).is_some_and(|other| other.key == id.key);
        let held = self.index.find_mut(id.key, known);
        let first = held.as_ref().and_then(|row| log.get(**row));
        if first.is_some_and(|first| !replaces(first)) {
            return false;
        }
        if let Some(orders) = &mut self.orders {
            orders.push(order);
        }
        let row = self.log.push(id);
        if let Some(held) = held {
            *held = row;
            return true;
        }
        let log = &self.log;
        let key_of = |row: &u32| log.get(*row).map_or(0, |id| id.key);
        self.index.insert_unique(id.key, row, key_of);
        true
    }

    /// The order with an id, if it came within the horizon before.
    pub fn order(&self, id: EventId) -> Option<Order> {
        let log = &self.log;
        let known = |row: &u32| log.get(*row).is_some_and(|other| other.key == id.key);
        let row = *self.index.find(id.key, known)?;
        let age_ms = id.arrival_ms - log.get(row)?.arrival_ms;
        let order = self.orders.as_ref()?.get(row)?;
        (age_ms <= self.horizon_ms && *order != Order::UNKNOWN).then_some(*order)
    }

    /// Fetches what `admit` needs: see `Partition::warm_up`.
    pub fn warm_up(&self, key: u64) -> usize {
        usize::from(self.index.find(key, |_| false).is_some())
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
            if let Some(orders) = &mut self.orders {
                orders.drop_front();
            }
        }
    }

    pub fn bytes(&self) -> usize {
        let orders = self.orders.as_ref().map_or(0, Log::bytes);
        self.log.bytes() + orders + self.index.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(ids: &mut EventIds, key: u64, arrival_ms: i64) -> bool {
        let order = Order {
            event_ms: arrival_ms,
            ..Order::default()
        };
        ids.admit(EventId { key, arrival_ms }, order)
    }

    #[test]
    fn beyond_the_bound_the_oldest_are_forgotten() {
        let mut ids = EventIds::new(1_000_000, 10, false);
        for hash in 1..=25 {
            admit(&mut ids, hash, hash as i64);
            ids.expire(hash as i64);
        }
        assert_eq!((ids.log.len(), ids.evicted_early), (10, 15));
        assert!(admit(&mut ids, 1, 26) && !admit(&mut ids, 25, 26));
    }

    #[test]
    fn an_id_takes_at_most_thirty_bytes() {
        let mut ids = EventIds::new(i64::MAX / 4, 10_000_000, false);
        for n in 0..1_000_000u64 {
            admit(&mut ids, crate::hash::mix(n, 1), 0);
        }
        assert!(ids.bytes() <= 30_000_000, "{}", ids.bytes());
    }
}
