//! Bounds of memory: rows that no window covers leave; beyond the limit a sample of the users stays.

use super::{COMPACT_ROWS, Users};
use crate::hash::in_sample;
use crate::spec::Ring;
use crate::users::sums::RingSums;

const MAX_SAMPLE_BITS: u32 = 63;

impl Users {
    /// The first unit that any window still covers.
    pub fn oldest_unit(&self, stream_ms: i64) -> i64 {
        let units = |ring: &Ring| ring.oldest(stream_ms) * (ring.pane_ms / self.unit_ms);
        self.windows.iter().map(units).min().unwrap_or(0).max(0)
    }

    /// Forget rows that no window covers; beyond the bound keep half of the users. Returns whether
    /// the sums have to be refreshed at once.
    pub fn shrink(&mut self, stream_ms: i64) -> bool {
        let rows = self.items.len();
        if rows <= self.compact_at {
            return false;
        }
        let oldest =
            u32::try_from((self.oldest_unit(stream_ms) + 1 - self.base).max(1)).unwrap_or(u32::MAX);
        if rows > self.limit || 4 * self.items.count_since(oldest) < 3 * rows {
            self.items
                .keep(|_, times| times.iter().any(|time| *time >= oldest));
        }
        while self.items.len() > self.limit && self.sample_bits < MAX_SAMPLE_BITS {
            self.narrow();
        }
        self.compact_at = (2 * self.items.len() + COMPACT_ROWS).min(self.limit);
        self.is_stale
    }

    /// Rows beyond which a sample is kept, from now on.
    pub fn set_limit(&mut self, limit: usize) {
        (self.limit, self.compact_at) = (limit, self.compact_at.min(limit));
    }

    /// Keep half of the users.
    fn narrow(&mut self) {
        self.sample_bits += 1;
        let bits = self.sample_bits;
        self.items.keep(|user, _| in_sample(user, bits));
        let gone = self
            .held
            .iter()
            .filter(|(_, user, _)| !in_sample(*user, bits));
        let gone: Vec<u64> = gone.map(|(serial, _, _)| serial).collect();
        for serial in gone {
            self.held.remove(serial);
        }
        self.is_stale = true;
        self.dirty.clear();
    }

    /// Users whose hash begins with so many zeros are kept: all at 0.
    pub fn sample_bits(&self) -> u32 {
        self.sample_bits
    }

    /// Keep a sample from now on, as it was stored.
    pub fn set_sample_bits(&mut self, bits: u32) {
        self.sample_bits = bits.min(MAX_SAMPLE_BITS);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.items.len()
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let rings: usize = self.rings.iter().map(RingSums::nbytes).sum();
        let sums: usize = self.sums.iter().map(|sums| sums.key.capacity() * 16).sum();
        let dirty = self.dirty.nbytes();
        self.items.nbytes() + self.held.nbytes() + rings + sums + dirty
    }
}
