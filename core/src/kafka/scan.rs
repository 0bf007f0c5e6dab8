//! What the headers of fetched batches say, without a look at their records.

use super::header::{Frame, Header};
use super::{ReadError, Summary};

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
    let mut summary = Summary {
        next_offset,
        ..Summary::default()
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
