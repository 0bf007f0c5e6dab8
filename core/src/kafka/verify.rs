//! Whether fetched batches arrived as they were sent. A connection may damage them, so whoever
//! fetches asks before anything is taken in, and fetches again.

use super::errors::ReadError;
use super::header::{Frame, Header};

/// Where the checksum of a message before format 2 stands; it covers what follows itself.
const OLD_CRC_AT: usize = 12;

/// The first batch of a blob that is not as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The bytes before it, which are whole.
    pub whole_bytes: usize,
    /// The offset that was expected there.
    pub offset: i64,
    /// Whether its frame can be read, so that `read` can pass it over.
    pub has_frame: bool,
}

/// Compares all checksums of a blob fetched from an offset, and its offsets with each other and the
/// log's end. They are outside the checksums: one that became a little smaller looks like a gap.
///
/// Bytes behind whole batches that are no whole batch are no damage: a fetch may end anywhere.
pub fn verify(blob: &[u8], next_offset: i64, end_offset: i64) -> Option<Damage> {
    let (mut at, mut offset) = (0, next_offset);
    loop {
        let damage = |has_frame| {
            Some(Damage {
                whole_bytes: at,
                offset,
                has_frame,
            })
        };
        match Frame::at(blob, at) {
            Ok(Some(frame)) => {
                let behind = &blob[at + frame.bytes.len()..];
                let following = behind.first_chunk().map(|&first| i64::from_be_bytes(first));
                let most = following.unwrap_or(end_offset).min(end_offset);
                match next_of(&frame, most) {
                    Some(next) => {
                        at += frame.bytes.len();
                        offset = offset.max(next);
                    }
                    None => return damage(true),
                }
            }
            Ok(None) if at > 0 || blob.is_empty() => return None,
            Err(ReadError::Format { magic: 0 | 1 }) if is_old(&blob[at..]) => return None,
            Ok(None) | Err(_) => return damage(false),
        }
    }
}

/// The offset after a batch, `most` at most; None where the batch is not as it was sent.
fn next_of(frame: &Frame, most: i64) -> Option<i64> {
    let header = Header::of(frame.bytes);
    let next = header.next_offset().filter(|&next| next <= most)?;
    header.has_right_crc(frame.bytes).then_some(next)
}

/// Whether a message before format 2 has its checksum, CRC-32.
fn is_old(message: &[u8]) -> bool {
    let Some((head, _)) = message.split_first_chunk::<{ OLD_CRC_AT + 4 }>() else {
        return false;
    };
    let length = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    let crc = u32::from_be_bytes([head[12], head[13], head[14], head[15]]);
    let end = usize::try_from(length).map_or(0, |length| length.saturating_add(OLD_CRC_AT));
    let mut found = flate2::Crc::new();
    found.update(message.get(OLD_CRC_AT + 4..end).unwrap_or_default());
    found.sum() == crc
}
