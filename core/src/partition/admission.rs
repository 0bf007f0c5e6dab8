//! Admission: the arrival clock of one topic-partition, and which of its events count.
//!
//! In this order: a record that is no event is rejected; one stamped beyond the wall clock by more
//! than the skew is rejected as `future`, and moves no clock; an event newer than the arrival clock by
//! more than the skew is rejected likewise; one older by more than the lateness is late; a copy
//! of an accepted event id within the deduplication horizon is a duplicate. All others are accepted.

use std::collections::BTreeMap;

use crate::changes::NEVER;

use crate::decode::{Event, Reason};
use crate::hash::{NONE, mix};
use crate::kinds::EventKind;
use crate::partition::event_ids::{EventId, EventIds, Order};
use crate::spec::{LogSpec, Time};

/// Offsets have no more bits.
pub const OFFSET_BITS: u32 = 47;

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Duplicate,
    Late,
    Future,
}

/// Where one topic of a partition stands, and what it counted.
#[derive(Debug)]
pub struct TopicLog {
    /// Its name in labels and in what is stored.
    pub name: String,
    /// Which of the decoder's sources its records are of.
    pub source: usize,
    /// Makes positions of several topics with events of one kind different.
    rank: u16,
    /// Whether it holds events of several kinds.
    is_mixed: bool,
    pub time: Time,
    /// Offset of the next record to read.
    pub next_offset: i64,
    /// Running maximum of record timestamps.
    pub arrival_ms: i64,
    /// Watermark that an idle topic takes from its siblings: for joins and expiry only.
    pub idle_ms: i64,
    pub accepted: u64,
    pub duplicates: u64,
    pub late: u64,
    /// Records that are known and not to be counted.
    pub ignored: u64,
    /// Accepted events without a user.
    pub anonymous: u64,
    /// Values of dimensions of accepted events that were cut.
    pub cut_values: u64,
    /// Rejected records by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Records that appeared below the watermark of a topic that had been idle.
    pub join_gap: u64,
    /// Of conversions the second, which are remembered for longer; of other events the first: see `ids_of`.
    pub ids: [EventIds; 2],
}

impl TopicLog {
    pub fn new(spec: &LogSpec, time: Time, max_ids: usize) -> Self {
        Self {
            name: spec.name.clone(),
            source: spec.source,
            rank: spec.rank,
            is_mixed: spec.kinds.len() > 1,
            time,
            next_offset: 0,
            arrival_ms: NEVER,
            idle_ms: NEVER,
            accepted: 0,
            duplicates: 0,
            late: 0,
            ignored: 0,
            anonymous: 0,
            cut_values: 0,
            rejected: BTreeMap::new(),
            join_gap: 0,
            ids: [
                EventIds::new(time.dedup_horizon_ms, max_ids, false),
                EventIds::new(time.conversion_dedup_horizon_ms, max_ids, true),
            ],
        }
    }

    /// Where a record stands among those of all topics; ties between events are broken by it.
    pub fn position(&self, offset: i64) -> i64 {
        i64::from(self.rank) << OFFSET_BITS | offset
    }

    /// A record arrives: moves the clock, and returns it.
    pub fn arrive(&mut self, offset: i64, record_ms: i64) -> i64 {
        self.next_offset = offset + 1;
        self.arrival_ms = self.arrival_ms.max(record_ms);
        self.join_gap += u64::from(self.arrival_ms < self.idle_ms);
        self.arrival_ms
    }

    /// A record that is stamped beyond the wall clock is passed: it moves no clock.
    pub fn pass(&mut self, offset: i64) -> i64 {
        self.next_offset = offset + 1;
        self.arrival_ms
    }

    /// The id of an event: one of another kind may have the same.
    pub fn id_of(&self, event: &Event) -> u64 {
        self.id_of_kind(event.dedup_id(), event.kind())
    }

    fn id_of_kind(&self, id: u64, kind: EventKind) -> u64 {
        match id != NONE && self.is_mixed {
            true => mix(id, 1 + kind as u64),
            false => id,
        }
    }

    /// The order that a refund of an item is of, where it is known.
    pub fn order_of(&self, refund: &Event, item: u64) -> Option<Order> {
        let ids = &self.ids[Self::ids_of(refund)];
        let orders = refund.ids_of_order(item).into_iter();
        let keys = orders.map(|id| self.id_of_kind(id, refund.kind()));
        let arrival_ms = self.arrival_ms;
        let mut found = keys.filter_map(|key| ids.order(EventId { key, arrival_ms }));
        found.next()
    }

    /// Where the id of an event is remembered.
    pub fn ids_of(event: &Event) -> usize {
        usize::from(event.kind() == EventKind::Conversions)
    }

    /// Judges and counts an event that has just arrived. `order`: what it is to refunds.
    pub fn judge(&mut self, event: &Event, order: Order) -> Verdict {
        let lag_ms = self.arrival_ms - event.event_ms;
        if lag_ms < -self.time.max_skew_ms {
            return self.refuse_future();
        }
        if lag_ms > self.time.max_lateness_ms {
            self.late += 1;
            return Verdict::Late;
        }
        let id = self.id_of(event);
        if id != NONE {
            let ids = &mut self.ids[Self::ids_of(event)];
            ids.expire(self.arrival_ms);
            let (key, arrival_ms) = (id, self.arrival_ms);
            if !ids.admit(EventId { key, arrival_ms }, order) {
                self.duplicates += 1;
                return Verdict::Duplicate;
            }
        }
        self.accepted += 1;
        self.anonymous += u64::from(event.is_anonymous());
        self.cut_values += u64::from(event.cut);
        Verdict::Accepted
    }

    /// Counts an event that is ahead of the records, or of the wall clock.
    pub fn refuse_future(&mut self) -> Verdict {
        self.reject("future");
        Verdict::Future
    }

    /// Counts a record that does not count.
    pub fn reject(&mut self, reason: &'static str) {
        *self.rejected.entry(reason).or_insert(0) += 1;
    }

    /// Sets a stored count of rejected records; reasons that there are not any more are left out.
    pub fn restore_rejected(&mut self, reason: &str, count: u64) {
        if let Some(name) = Reason::names().find(|name| *name == reason) {
            self.rejected.insert(name, count);
        }
    }

    /// The clock of joins: arrival, or the watermark while the topic is idle.
    pub fn clock_ms(&self) -> i64 {
        self.arrival_ms.max(self.idle_ms)
    }
}
