//! Sums over users from which arms are compared.
//!
//! Each day has the differences between it and a user's day before, of sums from the first day on, of
//! their squares and of their products: so the sum of the days up to one is that over users of sums up
//! to it. Within a day a sum has a key, which says of which experiment and arm it is.
//!
//! No sum can pass 256 bits. A row's sums are at most 2^62, and so what is above is at most
//! 2^62 + 2^94 in one, and 2^113 for a user, who has at most 2^18 rows in two tables of 100,000.
//! There are at most 2^33 rows: over all users the numerators are at most 2^128, and so the squares
//! at most 2^113 * 2^128 = 2^241, of now and of before 2^242.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ethnum::I256;
use hashbrown::HashTable;

use crate::columns::Columns;
use crate::hash::mix;
use crate::limbs;

/// Blocks that may hold nothing before they are forgotten, beyond as many as hold something.
const EMPTY_BLOCKS: usize = 1024;

/// Integers that are added to at once: they have the keys from the first on.
#[derive(Clone, Copy, Debug)]
struct Block {
    key: i64,
    /// Where its integers stand.
    start: usize,
    width: usize,
}

/// The sums of one day: blocks of integers.
#[derive(Clone, Debug, Default)]
struct DaySums {
    blocks: Vec<Block>,
    values: Vec<I256>,
    table: HashTable<u32>,
    /// The block that was looked for last.
    last: usize,
    /// Blocks that held something when they were counted last.
    held: usize,
}

impl DaySums {
    /// The block of a key, which is made with this width where it is missing.
    fn block(&mut self, key: i64, width: usize) -> &mut [I256] {
        let Self {
            blocks,
            values,
            table,
            last,
            ..
        } = self;
        if let Some(block) = blocks.get(*last).filter(|block| block.key == key) {
            return &mut values[block.start..][..block.width];
        }
        let is_it = |block: &u32| blocks[*block as usize].key == key;
        let found = table.find(hash_of(key), is_it).copied();
        let number = found.unwrap_or_else(|| {
            let number = blocks.len() as u32;
            let start = values.len();
            blocks.push(Block { key, start, width });
            values.resize(start + width, I256::ZERO);
            table.insert_unique(hash_of(key), number, |block| {
                hash_of(blocks[*block as usize].key)
            });
            number
        });
        *last = number as usize;
        let block = blocks[*last];
        &mut values[block.start..][..block.width]
    }

    fn each(&self) -> impl Iterator<Item = (i64, &[I256])> {
        let blocks = self.blocks.iter();
        blocks.map(|block| (block.key, &self.values[block.start..][..block.width]))
    }

    /// Keys and sums that are not 0.
    fn sums(&self) -> impl Iterator<Item = (i64, I256)> {
        let of_block = |(key, values): (i64, &[I256])| {
            let sums: Vec<(i64, I256)> = (key..).zip(values.iter().copied()).collect();
            sums
        };
        let sums = self.each().flat_map(of_block);
        sums.filter(|(_, value)| *value != I256::ZERO)
    }

    /// Adds all of another's. Returns whether anything is different now.
    fn add(&mut self, other: &Self) -> bool {
        let mut is_changed = false;
        for (key, values) in other.each() {
            if values.iter().any(|value| *value != I256::ZERO) {
                is_changed = true;
                let own = self.block(key, values.len());
                for (sum, value) in own.iter_mut().zip(values) {
                    *sum += *value;
                }
            }
        }
        if self.blocks.len() > 2 * self.held + EMPTY_BLOCKS {
            self.compact();
        }
        is_changed
    }

    fn compact(&mut self) {
        let mut kept = Self::default();
        for (key, values) in self.each() {
            if values.iter().any(|value| *value != I256::ZERO) {
                kept.block(key, values.len()).copy_from_slice(values);
            }
        }
        kept.held = kept.blocks.len();
        *self = kept;
    }

    fn nbytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
            + self.values.capacity() * size_of::<I256>()
            + self.table.allocation_size()
    }
}

/// The sums of all experiments in one partition, by day.
#[derive(Clone, Debug, Default)]
pub struct ExperimentSums {
    days: BTreeMap<i64, DaySums>,
}

impl ExperimentSums {
    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.days.values().map(DaySums::nbytes).sum()
    }

    /// Adds `sign` times these to sums of a day: those of the block of a key, which is so wide, from a
    /// place on.
    pub fn add(
        &mut self,
        day: i64,
        (key, width, offset): (i64, usize, usize),
        values: &[I256],
        sign: i64,
    ) {
        let block = self.days.entry(day).or_default().block(key, width);
        for (sum, value) in block[offset..].iter_mut().zip(values) {
            if sign > 0 {
                *sum += *value;
            } else {
                *sum -= *value;
            }
        }
    }

    /// Adds all of another's, which is empty afterwards. Returns the days that are different now.
    pub fn take(&mut self, other: &mut Self) -> BTreeSet<i64> {
        let mut changed = BTreeSet::new();
        for (day, sums) in std::mem::take(&mut other.days) {
            if self.days.entry(day).or_default().add(&sums) {
                changed.insert(day);
            }
        }
        changed
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.days.clear();
    }

    /// The days that have sums.
    pub fn days(&self) -> impl Iterator<Item = i64> {
        self.days.keys().copied()
    }

    /// Columns `key`, ascending, and limbs of the sums of a day that are not 0.
    pub fn of_day(&self, day: i64) -> Columns {
        let sums = self.days.get(&day).into_iter().flat_map(DaySums::sums);
        columns(sums.collect())
    }

    /// Day, key and sum of those days and keys.
    pub fn within(
        &self,
        days: &Range<i64>,
        keys: Range<i64>,
    ) -> impl Iterator<Item = (i64, i64, I256)> {
        let some = self.days.range(days.start..days.end.max(days.start));
        some.flat_map(move |(day, sums)| {
            let keys = keys.clone();
            let sums = sums.sums().filter(move |(key, _)| keys.contains(key));
            sums.map(|(key, sum)| (*day, key, sum))
        })
    }
}

/// Columns `key`, ascending, and limbs of sums; those of one key are added up.
pub fn columns(mut sums: Vec<(i64, I256)>) -> Columns {
    sums.sort_unstable_by_key(|(key, _)| *key);
    sums.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 += next.1;
        }
        is_same
    });
    sums.retain(|(_, sum)| *sum != I256::ZERO);
    limbs::columns(sums)
}

fn hash_of(key: i64) -> u64 {
    mix(key as u64, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_became_empty_are_forgotten() {
        let (mut sums, mut delta) = (ExperimentSums::default(), ExperimentSums::default());
        for number in 0..10_000 {
            let values = [I256::from(number), I256::from(1)];
            delta.add(7, (2 * number, 2, 0), &values, 1);
            if number > 0 {
                let before = [I256::from(number - 1), I256::from(1)];
                delta.add(7, (2 * number - 2, 2, 0), &before, -1);
            }
            delta.add(7, (1_000_000 + 2 * (number % 3), 2, 1), &values[1..], -1);
            assert!(sums.take(&mut delta).contains(&7));
            assert!(sums.days[&7].blocks.len() < 3 * EMPTY_BLOCKS);
        }
        assert!(sums.take(&mut delta).is_empty());
        let found = sums.of_day(7);
        let keys = [19_998, 19_999, 1_000_001, 1_000_003, 1_000_005];
        assert_eq!(found.get::<i64>("key").unwrap(), keys);
        assert_eq!(
            found.get::<i64>("limb_0").unwrap(),
            [9_999, 1, -3334, -3333, -3333]
        );
    }
}
