//! Feeding a partition: records, or record batches as Kafka sent them.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::names::overflow;
use super::records_from_python::GivenRecords;
use crate::decode::Decoder;
use crate::decode::rejected::Room;
use crate::formats::{SchemaId, UnknownSchemas};
use crate::kafka;
use crate::panes::Overflow;
use crate::partition::Partition;
use crate::partition::admission::TopicLog;
use crate::spec::Limits;

/// Offset, timestamp, and CRC-32 of the value.
type Fingerprint = (i64, i64, u32);
/// A range of lost offsets (first, end) and why.
type Skipped = (i64, i64, &'static str);
/// How many records there were, the last of them, what was lost, the ids of the schemas without which
/// the next record, and others after it, cannot be read, and whether the time was up before the end.
pub(super) type Fed = (u64, Option<Fingerprint>, Vec<Skipped>, Vec<SchemaId>, bool);

fn fingerprint(record: &kafka::Record) -> Fingerprint {
    let mut crc = flate2::Crc::new();
    crc.update(record.value.unwrap_or_default());
    (record.offset, record.timestamp_ms, crc.sum())
}

/// A log of a partition that is fed.
pub(super) struct Feeding<'a> {
    log: usize,
    decoder: &'a mut Decoder,
    partition: &'a mut Partition,
    limits: &'a Limits,
    fed: u64,
    unknown: UnknownSchemas,
    /// When to stop, and whether that was before the end.
    until: Option<Instant>,
    is_late: bool,
}

impl<'a> Feeding<'a> {
    pub fn new(
        log: usize,
        decoder: &'a mut Decoder,
        partition: &'a mut Partition,
        limits: &'a Limits,
    ) -> Self {
        Self {
            log,
            decoder,
            partition,
            limits,
            fed: 0,
            unknown: UnknownSchemas::default(),
            until: None,
            is_late: false,
        }
    }

    /// Feeds for so long; what is left is for another time.
    pub fn within(mut self, ms: Option<u64>) -> Self {
        self.until = ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        self
    }

    /// Decodes some records, and takes them in, up to one whose schema is not known; of all others
    /// only the schemas are looked at. Returns the last that was taken in.
    fn feed<'r>(
        &mut self,
        records: &'r [kafka::Record<'r>],
    ) -> Result<Option<&'r kafka::Record<'r>>, Overflow> {
        if self.is_late {
            return Ok(None);
        }
        let source = self.log().source;
        let mut known = if self.is_stopped() { 0 } else { records.len() };
        let format = self.decoder.format(source);
        for (at, record) in records.iter().enumerate() {
            if self.unknown.note(format, record) {
                known = known.min(at);
            }
        }
        if known == 0 {
            return Ok(None);
        }
        let events = self.decoder.decode_all(source, &records[..known]);
        self.partition.feed(self.log, records, &events)?;
        self.fed += known as u64;
        self.is_late = self.until.is_some_and(|until| Instant::now() > until);
        Ok(records[..known].last())
    }

    /// Whether a record was met whose schema is not known, or the time was up.
    fn is_stopped(&self) -> bool {
        self.is_late || !self.unknown.ids.is_empty()
    }

    fn log(&mut self) -> &mut TopicLog {
        &mut self.partition.logs[self.log]
    }

    pub fn records(mut self, given: &GivenRecords) -> Result<Fed, Overflow> {
        self.partition.rejected.set_room(Room::UNBOUNDED);
        let new: Vec<kafka::Record> = given.since(self.log().next_offset).collect();
        let mut last = None;
        for block in new.chunks(kafka::BLOCK) {
            last = self.feed(block)?.or(last);
        }
        let last = last.map(fingerprint);
        Ok((self.fed, last, Vec::new(), self.unknown.ids, self.is_late))
    }

    pub fn batches(
        mut self,
        scratch: &mut kafka::Scratch,
        blob: &[u8],
        aborted: &[(i64, i64)],
    ) -> PyResult<Fed> {
        let room = self.limits.rejected.room(blob.len());
        self.partition.rejected.set_room(room);
        let options = kafka::ReadOptions {
            next_offset: self.log().next_offset,
            check_crcs: true,
            is_read_committed: true,
            aborted,
            max_inflated_bytes: self.limits.inflated_bytes,
        };
        let (mut fed, mut last) = (Ok(()), None);
        let read = kafka::read(blob, &options, scratch, |records| {
            if fed.is_err() {
                return;
            }
            match self.feed(records) {
                Ok(Some(record)) if record.is_last || self.is_stopped() => {
                    last = Some(fingerprint(record));
                }
                Ok(_) => {}
                Err(error) => fed = Err(error),
            }
        });
        scratch.trim();
        fed.map_err(overflow)?;
        let mut found = read.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let is_stopped = self.is_stopped();
        let log = self.log();
        match is_stopped {
            false => log.next_offset = log.next_offset.max(found.next_offset),
            true => found.skipped.retain(|s| s.first < log.next_offset),
        }
        found.skipped.retain(|s| s.first < s.end); // a damaged batch that was gone over before
        let skipped = found.skipped.iter();
        let skipped = skipped.map(|s| (s.first, s.end, s.reason.name())).collect();
        Ok((self.fed, last, skipped, self.unknown.ids, self.is_late))
    }
}

/// What the headers of fetched record batches say, from an offset on: the offset to fetch next,
/// how many records there are at most, and the first timestamp (epoch ms). ValueError where the
/// first is none of format 2.
#[pyfunction]
pub fn scan_batches(blob: &[u8], next_offset: i64) -> PyResult<(i64, u64, i64)> {
    let found =
        kafka::scan(blob, next_offset).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((found.next_offset, found.records, found.first_timestamp_ms))
}

/// The first batch of a fetched blob that is not as it was sent: how many bytes before it are whole,
/// its offset, and whether it can be passed over. None where all are whole.
#[pyfunction]
pub fn verify_batches(
    py: Python<'_>,
    blob: PyBackedBytes,
    next_offset: i64,
    end_offset: i64,
) -> Option<(usize, i64, bool)> {
    let damage = py.detach(|| kafka::verify(&blob, next_offset, end_offset))?;
    Some((damage.whole_bytes, damage.offset, damage.has_frame))
}
