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
    /// Pane and segment of each block.
    keys: Vec<u64>,
    values: Vec<i64>,
    last: usize,
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
            keys: Vec::new(),
            values: Vec::new(),
            last: 0,
            is_changed: false,
        }
    }

    /// The same, of which nothing before a unit counts.
    pub fn since(self, since: i64) -> Self {
        Self { since, ..self }
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        (self.keys.capacity() + self.values.capacity()) * 8 + self.table.allocation_size()
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

    /// Add to one sum.
    pub fn add(&mut self, pane: i64, segment: u32, stat: usize, value: i64) {
        let key = (pane as u64) << SEGMENT_BITS | u64::from(segment);
        if self.keys.get(self.last) != Some(&key) {
            self.last = self.block(key);
        }
        self.values[self.last * self.stats + stat] += value;
        self.is_changed = true;
    }

    fn block(&mut self, key: u64) -> usize {
        let Self {
            keys,
            values,
            table,
            stats,
            ..
        } = self;
        if let Some(block) = table.find(mix(key, 1), |block| keys[*block as usize] == key) {
            return *block as usize;
        }
        let number = keys.len();
        keys.push(key);
        values.resize(values.len() + *stats, 0);
        table.insert_unique(mix(key, 1), number as u32, |block| {
            mix(keys[*block as usize], 1)
        });
        number
    }

    /// Forget what the window at this time does not cover.
    pub fn advance(&mut self, stream_ms: i64) {
        let oldest = self.ring.oldest(stream_ms);
        if oldest == self.oldest {
            return;
        }
        self.oldest = oldest;
        let (keys, values) = (
            std::mem::take(&mut self.keys),
            std::mem::take(&mut self.values),
        );
        self.table.clear();
        for (key, values) in keys.into_iter().zip(values.chunks_exact(self.stats)) {
            if (key >> SEGMENT_BITS) as i64 >= oldest && values.iter().any(|value| *value != 0) {
                let block = self.block(key);
                self.values[block * self.stats..][..self.stats].copy_from_slice(values);
            }
        }
        self.last = 0;
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        self.table.clear();
        self.keys.clear();
        self.values.clear();
        self.is_changed = true;
    }

    /// The sums, if something was added since the last call.
    pub fn take(&mut self) -> Option<UserSums> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let mut order: Vec<(u64, usize)> = self.keys.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut sums = UserSums::default();
        for (key, block) in order {
            let values = &self.values[block * self.stats..][..self.stats];
            for (stat, value) in (0..).zip(values).filter(|(_, value)| **value != 0) {
                sums.key.push((key << STAT_BITS) as i64 | stat);
                sums.value.push(*value);
            }
        }
        Some(sums)
    }
}
