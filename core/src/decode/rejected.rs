//! Records that do not count, held for the dead-letter topic until they are taken.
//!
//! A letter takes more room than a short record, and a compressed batch holds many: what is fed
//! says how much of it may be kept. Every record is counted by reason, whether it is kept or not.

use crate::kafka::Record;
use crate::spec::RejectedLimits;

/// A record that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Place of its log.
    pub log: usize,
    pub offset: i64,
    pub timestamp_ms: i64,
    pub reason: &'static str,
    /// None for a tombstone.
    pub value: Option<Box<[u8]>>,
    pub key: Option<Box<[u8]>>,
    pub headers: Box<[u8]>,
}

impl Rejected {
    /// A record of a log.
    pub fn of(log: usize, record: &Record, reason: &'static str) -> Self {
        Self {
            log,
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            reason,
            value: record.value.map(Into::into),
            key: record.key.map(Into::into),
            headers: record.headers.into(),
        }
    }
}

impl RejectedLimits {
    /// How much of a fetch of so many bytes may be kept.
    pub fn room(&self, fetched_bytes: usize) -> Room {
        let records = self.records + fetched_bytes / self.fetched_bytes_a_record.max(1);
        Room {
            records: records.min(self.most_records),
            bytes: self.bytes + fetched_bytes * self.bytes_a_fetched_byte,
        }
    }
}

/// How much may be kept of what is fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub records: usize,
    pub bytes: usize,
}

impl Room {
    /// For what the caller holds as records already.
    pub const UNBOUNDED: Self = Self {
        records: usize::MAX,
        bytes: usize::MAX,
    };
}

/// The rejected records since they were last taken, in the order in which they were fed.
#[derive(Debug)]
pub struct RejectedRecords {
    kept: Vec<Rejected>,
    omitted: u64,
    room: Room,
    /// Log and offset of the record that came last.
    last: Option<(usize, i64)>,
}

impl Default for RejectedRecords {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            omitted: 0,
            room: Room::UNBOUNDED,
            last: None,
        }
    }
}

impl RejectedRecords {
    /// How much may be kept of what is fed next.
    pub fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Keeps a record, once: of several reasons that it has the first.
    pub fn push(&mut self, log: usize, record: &Record, reason: &'static str) {
        if self.last == Some((log, record.offset)) {
            return;
        }
        self.last = Some((log, record.offset));
        let of = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let bytes = of(record.value) + of(record.key) + record.headers.len();
        let room = &mut self.room;
        if room.records == 0 || bytes > room.bytes {
            self.omitted += 1;
            return;
        }
        room.records -= 1;
        room.bytes -= bytes;
        self.kept.push(Rejected::of(log, record, reason));
    }

    /// What was kept, and how many records were not.
    pub fn take(&mut self) -> (Vec<Rejected>, u64) {
        (
            std::mem::take(&mut self.kept),
            std::mem::take(&mut self.omitted),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(records: &mut RejectedRecords, offset: i64, value: &[u8]) {
        let record = Record {
            value: Some(value),
            offset,
            ..Record::default()
        };
        records.push(0, &record, "late");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut records = RejectedRecords::default();
        records.set_room(Room {
            records: 3,
            bytes: 5,
        });
        for (offset, value) in (0..).zip([b"123".as_slice(), b"456", b"78", b"", b"9"]) {
            push(&mut records, offset, value);
            push(&mut records, offset, value); // a second event of the same record
        }
        let (kept, omitted) = records.take();
        let values: Vec<&[u8]> = kept.iter().filter_map(|x| x.value.as_deref()).collect();
        assert_eq!(values, [b"123".as_slice(), b"78", b""]);
        assert_eq!(omitted, 2);
        assert_eq!(records.take(), (Vec::new(), 0));
    }
}
