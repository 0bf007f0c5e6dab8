//! Means over users from panes that add: what each user contributes, under his last touches.
//!
//! A user counts in a window as if it began at one of his last touches: let v(s) be his value over
//! what he last touched in pane s or later. Under pane s stands v(s) - v(s + 1), so that the sum of
//! the panes from s on is v(s), whatever s: a window is read from its first pane, without an end.

use hashbrown::HashTable;

use crate::hash::mix;
use crate::spec::Ring;

/// Statistic: users with an impression.
pub const USERS: usize = 0;
/// Statistic: those of them who clicked.
pub const HITS: usize = 1;
/// Bits of a statistic in a key.
pub const STAT_BITS: u32 = 8;
/// Statistics that keys have room for.
pub const MAX_STATS: usize = 1 << STAT_BITS;
/// Bits of a segment in a key.
pub const SEGMENT_BITS: u32 = 20;

/// Statistic: sum of the positive rates of a feedback kind.
pub fn rate_sum(kind: usize) -> usize {
    2 + 3 * kind
}

/// Statistic: users with an item seen and given feedback of the kind.
pub fn positive_users(kind: usize) -> usize {
    3 + 3 * kind
}

/// Statistic: sum of the squares of the positive rates of a feedback kind.
pub fn rate_squares(kind: usize) -> usize {
    4 + 3 * kind
}

/// How many statistics there are.
pub fn users_stats(kinds: usize) -> usize {
    2 + 3 * kinds
}

/// A pane, a statistic, and what is added to its sum.
pub type Change = (i64, usize, i64);

/// The sums of a ring: keys of pane, segment and statistic in that order, each once and
/// ascending, and their values, none 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSums {
    pub key: Vec<i64>,
    pub value: Vec<i64>,
}

/// Sums of one ring while they change: a block of statistics for each pane and segment.
#[derive(Debug)]
pub struct RingSums {
    ring: Ring,
    units: u32,
    /// The first unit that counts.
    since: i64,
    /// Units before the first that times count.
    pub base: i64,
    /// Number of the oldest pane that counts.
    pub oldest: i64,
    stats: usize,
    table: HashTable<u32>,
    /// Blocks of a key, which is pane and segment, and the sums.
    rows: Vec<i64>,
    /// Blocks that are added to.
    blocks: Vec<usize>,
    is_changed: bool,
}

impl RingSums {
    /// `unit_ms`: of the times of rows, a divisor of the pane.
    pub fn new(ring: Ring, unit_ms: i64, stats: usize) -> Self {
        Self {
            ring,
            units: (ring.pane_ms / unit_ms) as u32,
            since: 0,
            base: 0,
            oldest: i64::MIN,
            stats,
            table: HashTable::new(),
            rows: Vec::new(),
            blocks: Vec::new(),
            is_changed: false,
        }
    }

    /// The same, of which nothing before a unit counts.
    pub fn since(self, since: i64) -> Self {
        Self { since, ..self }
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.rows.capacity() * 8 + self.table.allocation_size()
    }

    /// The pane of a time from 1; None where it is too old.
    pub fn pane(&self, time: u32) -> Option<i64> {
        let unit = time.checked_sub(1)?;
        let pane = match self.base {
            0 => i64::from(unit / self.units),
            base => (i64::from(unit) + base) / i64::from(self.units),
        };
        let is_counted = self.since == 0 || i64::from(unit) + self.base >= self.since;
        (pane >= self.oldest && is_counted).then_some(pane)
    }

    /// The first time of a pane that has times.
    pub fn first_time(&self, pane: i64) -> u32 {
        let first = (pane * i64::from(self.units)).max(self.since);
        (first - self.base + 1).clamp(1, i64::from(u32::MAX)) as u32
    }

    /// Add the same to the sums of several segments.
    pub fn add(&mut self, segments: &[u32], changes: &mut [Change]) {
        changes.sort_unstable_by_key(|(pane, ..)| *pane);
        let mut blocks = std::mem::take(&mut self.blocks);
        for changes in changes.chunk_by(|a, b| a.0 == b.0) {
            // All are looked up before any is changed: they come from memory at the same time.
            blocks.clear();
            blocks.extend(
                segments
                    .iter()
                    .map(|segment| self.block(changes[0].0 << SEGMENT_BITS | i64::from(*segment))),
            );
            for block in &blocks {
                let sums = &mut self.rows[block + 1..][..self.stats];
                for (_, stat, value) in changes {
                    sums[*stat] += value;
                }
            }
            self.is_changed = true;
        }
        self.blocks = blocks;
    }

    /// Where the block of a key begins.
    fn block(&mut self, key: i64) -> usize {
        let (rows, width) = (&mut self.rows, 1 + self.stats);
        let hash = |key: i64| mix(key as u64, 1);
        let is_it = |block: &u32| rows[*block as usize * width] == key;
        if let Some(block) = self.table.find(hash(key), is_it) {
            return *block as usize * width;
        }
        let begin = rows.len();
        rows.push(key);
        rows.resize(begin + width, 0);
        let number = (begin / width) as u32;
        self.table.insert_unique(hash(key), number, |block| {
            hash(rows[*block as usize * width])
        });
        begin
    }

    fn blocks(&self) -> impl Iterator<Item = (i64, &[i64])> {
        let blocks = self.rows.chunks_exact(1 + self.stats);
        blocks.map(|block| (block[0], &block[1..]))
    }

    /// Forget what the window at this time does not cover.
    pub fn advance(&mut self, stream_ms: i64) {
        let oldest = self.ring.oldest(stream_ms);
        if oldest == self.oldest {
            return;
        }
        self.oldest = oldest;
        let mut kept = Vec::new();
        for (key, values) in self.blocks() {
            if key >> SEGMENT_BITS >= oldest && values.iter().any(|value| *value != 0) {
                kept.push(key);
                kept.extend_from_slice(values);
            }
        }
        self.rows = kept;
        let (rows, width) = (&self.rows, 1 + self.stats);
        let hash = |block: &u32| mix(rows[*block as usize * width] as u64, 1);
        self.table.clear();
        for block in 0..(rows.len() / width) as u32 {
            self.table.insert_unique(hash(&block), block, hash);
        }
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        self.table.clear();
        self.rows.clear();
        self.is_changed = true;
    }

    /// The sums, if something was added since the last call.
    pub fn take(&mut self) -> Option<UserSums> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let mut blocks: Vec<(i64, &[i64])> = self.blocks().collect();
        blocks.sort_unstable_by_key(|(key, _)| *key);
        let mut sums = UserSums::default();
        for (key, values) in blocks {
            for (stat, value) in (0..).zip(values).filter(|(_, value)| **value != 0) {
                sums.key.push(key << STAT_BITS | stat);
                sums.value.push(*value);
            }
        }
        Some(sums)
    }
}
