//! Bounds of memory: beyond the limit a sample of the users stays.

use super::Experiments;
use crate::experiments::sums::Sums;
use crate::hash::in_sample;

const MAX_SAMPLE_BITS: u32 = 63;

impl Experiments {
    /// Beyond the bound keep half of the users. Returns whether users were left out: the sums have
    /// to be refreshed at once then.
    pub fn shrink(&mut self) -> bool {
        let before = self.sample_bits;
        while self.rows() > self.limit && self.sample_bits < MAX_SAMPLE_BITS {
            self.keep_sample(self.sample_bits + 1);
        }
        self.sample_bits > before
    }

    /// Keep the users whose hash begins with so many zeros.
    pub fn keep_sample(&mut self, bits: u32) {
        let bits = bits.min(MAX_SAMPLE_BITS);
        self.sample_bits = bits;
        self.tables.keep(|user| in_sample(user, bits));
        self.make_stale();
        self.must_refresh = self.is_stale;
    }

    /// Users whose hash begins with so many zeros are kept: all at 0.
    pub fn sample_bits(&self) -> u32 {
        self.sample_bits
    }

    /// For each of what exposes, when it exposed a user first; None where it did not yet.
    pub fn first_exposures_ms(&self) -> Vec<Option<i64>> {
        let places = 0..self.exposures.len();
        places
            .map(|place| self.tables.exposures.earliest_ms(place))
            .collect()
    }

    /// No impression before this time (ms) can come any more, as of the last settling.
    pub fn final_ms(&self) -> i64 {
        self.final_ms
    }

    /// Amounts that were not kept because their user had too many rows.
    pub fn dropped_rows(&self) -> u64 {
        self.tables.days.dropped_rows + self.tables.pending.dropped_rows
    }

    /// Number of rows that the limit bounds: by day or by time, whichever are more.
    pub fn rows(&self) -> usize {
        self.tables.days.len().max(self.tables.pending.len())
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let sums = self.sums.iter().chain(&self.delta);
        let sums: usize = sums.map(Sums::nbytes).sum();
        self.tables.nbytes() + sums + self.dirty.allocation_size()
    }
}
