//! The header of a record batch: 61 bytes, integers in network order.

use super::errors::ReadError;

/// Base offset and length, which all formats have.
const OVERHEAD: usize = 12;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const HEADER_BYTES: usize = 61;
/// The shortest message of format 0; anything shorter is damage.
const MIN_OLD_BYTES: usize = 26;

const CODEC: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

/// The bytes of one batch, and the offset with which the one behind it begins, if it can be.
pub(super) struct Frame<'a> {
    /// At least as many as a header has.
    pub bytes: &'a [u8],
    pub following_offset: Option<i64>,
}

impl<'a> Frame<'a> {
    /// The batch that begins at a byte; None where the rest is no whole batch.
    pub fn at(blob: &'a [u8], at: usize) -> Result<Option<Self>, ReadError> {
        let rest = blob.get(at..).unwrap_or_default();
        if rest.len() < OVERHEAD {
            return Ok(None);
        }
        let length = i32::from_be_bytes(array(rest, 8));
        let Some(end) = usize::try_from(length)
            .ok()
            .and_then(|n| n.checked_add(OVERHEAD))
        else {
            return Err(ReadError::Length { at });
        };
        let Some(bytes) = rest.get(..end) else {
            return Ok(None);
        };
        match bytes.get(MAGIC_AT) {
            Some(2) if end >= HEADER_BYTES => {
                let behind = rest.get(end..).unwrap_or_default();
                let base_offset = i64::from_be_bytes(array(bytes, 0));
                let following_offset = (behind.len() >= 8)
                    .then(|| i64::from_be_bytes(array(behind, 0)))
                    .filter(|&offset| offset > base_offset);
                Ok(Some(Self {
                    bytes,
                    following_offset,
                }))
            }
            Some(&magic) if magic != 2 && end >= MIN_OLD_BYTES => Err(ReadError::Format { magic }),
            _ => Err(ReadError::Length { at }),
        }
    }

    /// What follows the header: the records, maybe compressed.
    pub fn records(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

/// The header's fields that are used.
pub(super) struct Header {
    pub base_offset: i64,
    crc: u32,
    attributes: i16,
    pub last_offset_delta: i32,
    pub first_timestamp_ms: i64,
    pub max_timestamp_ms: i64,
    pub producer_id: i64,
    pub count: i32,
}

impl Header {
    /// The header of a frame.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(array(bytes, 0)),
            crc: u32::from_be_bytes(array(bytes, CRC_AT)),
            attributes: i16::from_be_bytes(array(bytes, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(array(bytes, 23)),
            first_timestamp_ms: i64::from_be_bytes(array(bytes, 27)),
            max_timestamp_ms: i64::from_be_bytes(array(bytes, 35)),
            producer_id: i64::from_be_bytes(array(bytes, 43)),
            count: i32::from_be_bytes(array(bytes, 57)),
        }
    }

    /// The offset after the batch; None where its offsets cannot be.
    pub fn next_offset(&self) -> Option<i64> {
        if self.base_offset < 0 || self.last_offset_delta < 0 {
            return None;
        }
        self.base_offset
            .checked_add(i64::from(self.last_offset_delta))?
            .checked_add(1)
    }

    /// Its records, at most: never more than it has offsets.
    pub fn most_records(&self) -> u64 {
        let offsets = self.last_offset_delta.max(0) as u64 + 1;
        u64::try_from(self.count).unwrap_or(0).min(offsets)
    }

    /// The timestamp of its first record.
    pub fn first_record_ms(&self) -> i64 {
        if self.is_log_append_time() {
            self.max_timestamp_ms
        } else {
            self.first_timestamp_ms
        }
    }

    /// Whether the checksum, which begins behind itself, is that of the bytes.
    pub fn has_right_crc(&self, bytes: &[u8]) -> bool {
        crc32c::crc32c(bytes.get(ATTRIBUTES_AT..).unwrap_or_default()) == self.crc
    }

    /// The number of the compression; 0: none.
    pub fn codec(&self) -> u8 {
        (self.attributes & CODEC) as u8
    }

    /// Whether all records have the time at which the broker appended the batch.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether its records are markers of transactions.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }
}

/// The bytes at a place; zeros where there are none.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .unwrap_or([0; N])
}
