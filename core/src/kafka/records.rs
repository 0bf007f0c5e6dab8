//! The records of one batch, inflated: lengths and integers are zigzag varints.

use smallvec::SmallVec;

use super::errors::SkipReason;
use super::header::{Frame, Header};

/// Records that are handed over together, at most.
pub const BLOCK: usize = 16;
/// One record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    pub offset: i64,
    /// The producer's time, or the broker's where the topic is set to that; epoch milliseconds.
    pub timestamp_ms: i64,
    /// None for a tombstone. It lives as long as the batch.
    pub value: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
    /// Its headers as Kafka sends them, behind their number.
    pub headers: &'a [u8],
    /// Whether it is the last of its batch.
    pub is_last: bool,
}

impl<'a> Record<'a> {
    /// The value of a header; of several of that name the last.
    pub fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut found = None;
        let mut cursor = Cursor::new(self.headers);
        while let Some((other, value)) = cursor.header() {
            if other == name {
                found = value;
            }
        }
        found
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// The offset to fetch next: after control batches and compaction gaps, too.
    pub next_offset: i64,
    /// Records that were handed over.
    pub records: u64,
    /// What could not be read, in offset order.
    pub skipped: Vec<Skipped>,
    /// Bytes at the end that are no whole batch. If they are all there is, and not none, then the
    /// next batch is larger than what was fetched.
    pub leftover_bytes: usize,
}

/// Offsets that could not be read; none (`first == end`) where all records of a damaged batch were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub first: i64,
    /// The first offset after them.
    pub end: i64,
    pub reason: SkipReason,
}

impl ReadSummary {
    /// The rest of a batch cannot be read.
    pub(super) fn skip(&mut self, frame: &Frame, header: &Header, reason: SkipReason) {
        let (first, end) = self.offsets_left(frame, header);
        self.next_offset = end;
        match self.skipped.last_mut() {
            Some(last) if last.reason == reason && last.end == first => last.end = end,
            _ => self.skipped.push(Skipped { first, end, reason }),
        }
    }

    /// The offsets of a batch that were not read yet. A header that contradicts itself stands for
    /// one offset; none claims those of the batch behind it.
    pub(super) fn offsets_left(&self, frame: &Frame, header: &Header) -> (i64, i64) {
        let first = self.next_offset.max(header.base_offset);
        let end = header
            .next_offset()
            .unwrap_or_else(|| first.saturating_add(1));
        let end = frame
            .following_offset
            .map_or(end, |following| end.min(following))
            .max(first);
        (first, end)
    }
}

/// Hands over the records from `summary.next_offset` on, up to the first that is damaged; some at
/// a time.
pub(super) fn read(
    body: &[u8],
    header: &Header,
    summary: &mut ReadSummary,
    on_records: &mut impl FnMut(&[Record]),
) -> Result<(), SkipReason> {
    let mut block = SmallVec::<[Record; BLOCK]>::new();
    let result = read_blocks(body, header, summary, &mut block, on_records);
    if !block.is_empty() {
        on_records(&block);
    }
    result
}

fn read_blocks<'a>(
    body: &'a [u8],
    header: &Header,
    summary: &mut ReadSummary,
    block: &mut SmallVec<[Record<'a>; BLOCK]>,
    on_records: &mut impl FnMut(&[Record]),
) -> Result<(), SkipReason> {
    let mut cursor = Cursor::new(body);
    let fixed_ms = header
        .is_log_append_time()
        .then_some(header.max_timestamp_ms);
    for n in 1..=header.count {
        let record = cursor
            .record()
            .and_then(|record| parse(record, header, fixed_ms));
        let mut record = record.ok_or(SkipReason::Damaged)?;
        record.is_last = n == header.count;
        if record.offset >= summary.next_offset {
            summary.next_offset = record.offset + 1;
            summary.records += 1;
            block.push(record);
            if block.len() == BLOCK {
                on_records(block);
                block.clear();
            }
        }
    }
    if cursor.rest.is_empty() {
        Ok(())
    } else {
        Err(SkipReason::Damaged)
    }
}

/// A record of its own bytes; None where it has too few or too many, or an impossible offset.
fn parse<'a>(mut cursor: Cursor<'a>, header: &Header, fixed_ms: Option<i64>) -> Option<Record<'a>> {
    let (timestamp_delta, offset_delta) = cursor.deltas()?;
    if !(0..=i64::from(header.last_offset_delta)).contains(&offset_delta) {
        return None;
    }
    let key = cursor.nullable_bytes()?;
    let value = cursor.nullable_bytes()?;
    let count = cursor.varint()?;
    if count < 0 {
        return None;
    }
    let headers = cursor.rest;
    for _ in 0..count {
        cursor.header()?;
    }
    cursor.rest.is_empty().then_some(Record {
        offset: header.base_offset.checked_add(offset_delta)?,
        timestamp_ms: fixed_ms
            .unwrap_or_else(|| header.first_timestamp_ms.wrapping_add(timestamp_delta)),
        value,
        key,
        headers,
        is_last: false,
    })
}

/// Bytes that are read from the front.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The bytes of the next record, behind its length.
    pub fn record(&mut self) -> Option<Cursor<'a>> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length).map(Cursor::new)
    }

    /// Reads what a record begins with: attributes, which have no meaning yet, and the deltas of
    /// its timestamp and offset.
    pub fn deltas(&mut self) -> Option<(i64, i64)> {
        self.take(1)?;
        Some((self.varint()?, self.varint()?))
    }

    /// Name and value of the next header.
    pub fn header(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        Some((self.nullable_bytes()??, self.nullable_bytes()?))
    }

    /// Bytes behind their length; `Some(None)` for null, whose length is below 0.
    pub fn nullable_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match usize::try_from(self.varint()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Some(None),
        }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    fn varint(&mut self) -> Option<i64> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(zigzag(u64::from(first)));
        }
        self.long_varint()
    }

    /// At most ten bytes, as 64 bits need.
    fn long_varint(&mut self) -> Option<i64> {
        let mut value = 0;
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f).wrapping_shl(7 * i as u32);
            if byte < 0x80 {
                self.rest = self.rest.get(i + 1..)?;
                return Some(zigzag(value));
            }
        }
        None
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
