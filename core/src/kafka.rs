//! Record batches of format 2, as a fetch response of Kafka carries them: several one after
//! another, the last of which may be cut short. What is read, and which offset comes next, are
//! those of aiokafka's fetcher; damage is a skipped range of offsets instead of an exception.

mod errors;
mod header;
mod inflate;
mod partitioner;
mod records;
mod verify;

use std::collections::HashSet;

pub use errors::{ReadError, SkipReason};
use header::{Frame, Header};
pub use inflate::Scratch;
pub use partitioner::partition_of;
use records::Cursor;
pub use records::{BLOCK, ReadSummary, Record};
pub use verify::verify;

/// Bytes that one batch may inflate to in tests.
pub const MAX_INFLATED_BYTES: usize = 64 << 20;

/// How a blob is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions<'a> {
    /// The offset that was fetched: records below it are passed over.
    pub next_offset: i64,
    /// Whether checksums (CRC-32C) are compared.
    pub check_crcs: bool,
    /// Whether records of aborted transactions are passed over.
    pub is_read_committed: bool,
    /// Aborted transactions, as the response lists them: producer id, first offset.
    pub aborted: &'a [(i64, i64)],
    /// Bytes that one batch may inflate to.
    pub max_inflated_bytes: usize,
}

/// Hands over the records of all whole batches, in order, at most `BLOCK` at a time.
///
/// Where something that is no batch of format 2 follows others, reading ends before it; the next
/// blob then begins with it.
///
/// # Errors
/// Where the first batch from `next_offset` on is none of format 2.
pub fn read(
    blob: &[u8],
    options: &ReadOptions,
    scratch: &mut Scratch,
    mut on_records: impl FnMut(&[Record]),
) -> Result<ReadSummary, ReadError> {
    let mut summary = ReadSummary {
        next_offset: options.next_offset,
        ..ReadSummary::default()
    };
    let mut aborted = Aborted::new(options);
    let mut at = 0;
    loop {
        match Frame::at(blob, at) {
            Ok(Some(frame)) => {
                at += frame.bytes.len();
                read_batch(
                    &frame,
                    options,
                    &mut aborted,
                    scratch,
                    &mut summary,
                    &mut on_records,
                );
            }
            Ok(None) => {
                summary.leftover_bytes = blob.len() - at;
                return Ok(summary);
            }
            Err(error) if summary.next_offset == options.next_offset => return Err(error),
            Err(_) => return Ok(summary),
        }
    }
}

fn read_batch(
    frame: &Frame,
    options: &ReadOptions,
    aborted: &mut Aborted,
    scratch: &mut Scratch,
    summary: &mut ReadSummary,
    on_records: &mut impl FnMut(&[Record]),
) {
    let header = Header::of(frame.bytes);
    if options.check_crcs && !header.has_right_crc(frame.bytes) {
        return summary.skip(frame, &header, SkipReason::Crc);
    }
    let Some(next_offset) = header.next_offset() else {
        return summary.skip(frame, &header, SkipReason::Damaged);
    };
    let is_aborted = aborted.contains(&header, frame);
    if !is_aborted && !header.is_control() && next_offset > summary.next_offset {
        let result = scratch
            .inflate(header.codec(), frame.records(), options.max_inflated_bytes)
            .and_then(|body| records::read(body, &header, summary, on_records));
        if let Err(reason) = result {
            return summary.skip(frame, &header, reason);
        }
    }
    summary.next_offset = summary.next_offset.max(next_offset);
}

/// The producers that are within an aborted transaction.
struct Aborted {
    is_read_committed: bool,
    /// Producer id and first offset of transactions that have not begun; the next one is the last.
    waiting: Vec<(i64, i64)>,
    producers: HashSet<i64>,
}

impl Aborted {
    pub fn new(options: &ReadOptions) -> Self {
        let mut waiting = Vec::new();
        if options.is_read_committed {
            waiting.extend_from_slice(options.aborted);
            waiting.sort_by_key(|&(_, first_offset)| std::cmp::Reverse(first_offset));
        }
        let is_read_committed = options.is_read_committed;
        Self {
            is_read_committed,
            waiting,
            producers: HashSet::new(),
        }
    }

    /// Whether a batch belongs to an aborted transaction. Batches are asked for in order.
    pub fn contains(&mut self, header: &Header, frame: &Frame) -> bool {
        if !self.is_read_committed {
            return false;
        }
        while self
            .waiting
            .last()
            .is_some_and(|&(_, first)| first <= header.base_offset)
        {
            self.producers
                .extend(self.waiting.pop().map(|(producer, _)| producer));
        }
        if self.producers.is_empty() {
            return false;
        }
        if header.is_control() && is_abort_marker(frame.records()) {
            self.producers.remove(&header.producer_id);
        }
        header.is_transactional() && self.producers.contains(&header.producer_id)
    }
}

/// Whether the first record of a control batch ends a transaction that is aborted: its key is
/// version 0, type 0. An empty control batch, which compaction leaves, is none.
fn is_abort_marker(records: &[u8]) -> bool {
    let mut cursor = Cursor::new(records);
    let key = cursor.record().and_then(|mut record| {
        record.deltas()?;
        record.nullable_bytes()
    });
    matches!(key, Some(Some([0, 0, 0, 0, ..])))
}

/// The whole batches of a blob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The offset to fetch next.
    pub next_offset: i64,
    /// Records in them, at most: those of aborted transactions, and below the offset that was
    /// fetched, are among them.
    pub records: u64,
    /// The timestamp of the first, epoch milliseconds.
    pub first_timestamp_ms: i64,
}

/// Reads the headers of all whole batches from an offset on.
///
/// # Errors
/// Where the first of them is none of format 2.
pub fn scan(blob: &[u8], next_offset: i64) -> Result<Scan, ReadError> {
    let mut summary = ReadSummary {
        next_offset,
        ..ReadSummary::default()
    };
    let mut found = Scan::default();
    let mut at = 0;
    loop {
        match Frame::at(blob, at) {
            Ok(Some(frame)) => {
                at += frame.bytes.len();
                let header = Header::of(frame.bytes);
                if !header.is_control() && header.next_offset() > Some(summary.next_offset) {
                    if found.records == 0 {
                        found.first_timestamp_ms = header.first_record_ms();
                    }
                    found.records += header.most_records();
                }
                summary.next_offset = summary.offsets_left(&frame, &header).1;
            }
            Err(error) if summary.next_offset == next_offset => return Err(error),
            Ok(None) | Err(_) => {
                found.next_offset = summary.next_offset;
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
