//! Compressions of record batches. Sizes that the data declares are never believed: output grows as
//! it comes, and ends at the bound.

use std::io::Read;

use zstd::stream::read::Decoder as ZstdDecoder;
use zstd::zstd_safe::{self, DCtx, ResetDirective};

use super::errors::SkipReason;

/// What begins snappy data in the framing of xerial's library, which Kafka's clients use; a version
/// and the lowest version that reads it follow, of four bytes each.
const XERIAL: &[u8] = &[0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER_BYTES: usize = 16;
/// No snappy element of three bytes copies more than 64.
const SNAPPY_MAX_RATIO: usize = 22;
/// Memory that is kept for the next blob.
const KEPT_BYTES: usize = 8 << 20;

/// Buffers that are used again for each batch.
#[derive(Default)]
pub struct Scratch {
    inflated: Vec<u8>,
    zstd: Option<DCtx<'static>>,
    snappy: snap::raw::Decoder,
}

impl Scratch {
    /// Gives back the memory that one large batch needed.
    pub fn trim(&mut self) {
        if self.inflated.capacity() > KEPT_BYTES {
            self.inflated = Vec::new();
        }
    }

    /// The records of a batch: the data itself, or what it inflates to.
    pub(super) fn inflate<'a>(
        &'a mut self,
        codec: u8,
        data: &'a [u8],
        bound: usize,
    ) -> Result<&'a [u8], SkipReason> {
        self.inflated.clear();
        match codec {
            0 => return Ok(data),
            1 => self.stream(flate2::bufread::MultiGzDecoder::new(data), bound)?,
            2 => self.snappy(data, bound)?,
            3 => self.stream(lz4_flex::frame::FrameDecoder::new(data), bound)?,
            4 => self.zstd(data, bound)?,
            _ => return Err(SkipReason::Codec),
        }
        Ok(&self.inflated)
    }

    fn stream(&mut self, reader: impl Read, bound: usize) -> Result<(), SkipReason> {
        fill(&mut self.inflated, reader, bound)
    }

    fn zstd(&mut self, data: &[u8], bound: usize) -> Result<(), SkipReason> {
        if declared_bytes(data).is_some_and(|declared| declared > bound as u64) {
            return Err(SkipReason::TooLarge);
        }
        let context = self.zstd.get_or_insert_with(DCtx::create);
        context
            .reset(ResetDirective::SessionOnly)
            .map_err(|_| SkipReason::Damaged)?;
        let result = fill(
            &mut self.inflated,
            ZstdDecoder::with_context(data, context),
            bound,
        );
        if context.sizeof() > KEPT_BYTES {
            self.zstd = None;
        }
        result
    }

    fn snappy(&mut self, data: &[u8], bound: usize) -> Result<(), SkipReason> {
        if !data.starts_with(XERIAL) || data.len() <= XERIAL_HEADER_BYTES {
            return self.snappy_block(data, bound);
        }
        let mut rest = data.get(XERIAL_HEADER_BYTES..).unwrap_or_default();
        while !rest.is_empty() {
            let (length, behind) = rest.split_first_chunk().ok_or(SkipReason::Damaged)?;
            let length = u32::from_be_bytes(*length) as usize;
            let (block, behind) = behind.split_at_checked(length).ok_or(SkipReason::Damaged)?;
            self.snappy_block(block, bound)?;
            rest = behind;
        }
        Ok(())
    }

    fn snappy_block(&mut self, block: &[u8], bound: usize) -> Result<(), SkipReason> {
        let size = snap::raw::decompress_len(block).map_err(|_| SkipReason::Damaged)?;
        if size > block.len().saturating_mul(SNAPPY_MAX_RATIO) {
            return Err(SkipReason::Damaged);
        }
        let start = self.inflated.len();
        if size > bound.saturating_sub(start) {
            return Err(SkipReason::TooLarge);
        }
        self.inflated.resize(start + size, 0);
        let output = self.inflated.get_mut(start..).unwrap_or_default();
        self.snappy
            .decompress(block, output)
            .map_err(|_| SkipReason::Damaged)?;
        Ok(())
    }
}

/// The size that a zstd frame says it has; it is only believed where it is too large.
fn declared_bytes(data: &[u8]) -> Option<u64> {
    zstd_safe::get_frame_content_size(data).ok().flatten()
}

/// Reads to the end, or to the bound.
fn fill(output: &mut Vec<u8>, reader: impl Read, bound: usize) -> Result<(), SkipReason> {
    let most = (bound as u64).saturating_add(1);
    reader
        .take(most)
        .read_to_end(output)
        .map_err(|_| SkipReason::Damaged)?;
    if output.len() > bound {
        Err(SkipReason::TooLarge)
    } else {
        Ok(())
    }
}
