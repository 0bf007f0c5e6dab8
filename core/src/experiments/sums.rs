//! Sums over users from which arms are compared.
//!
//! Under (arm, day) stand differences between a day and a user's day before, of sums from the first
//! day on, of their squares and of their products: so the sum of the days up to one is that over
//! users of sums up to it.
//!
//! No sum can pass 256 bits. A row's sums are at most 2^62, and so what is above is at most
//! 2^62 + 2^94 in one, and 2^113 for a user, who has at most 2^18 rows in two tables of 100,000.
//! There are at most 2^33 rows: over all users the numerators are at most 2^128, and so the squares
//! at most 2^113 * 2^128 = 2^241, of now and of before 2^242.

use ethnum::I256;
use hashbrown::HashTable;

use crate::columns::Columns;
use crate::hash::mix;
use crate::limbs;

/// Blocks that may hold nothing before they are forgotten, beyond as many as hold something.
const EMPTY_BLOCKS: usize = 1024;

/// The sums of one experiment in one partition: blocks of `width` integers under the key of the
/// first.
#[derive(Clone, Debug)]
pub struct ArmSums {
    width: usize,
    keys: Vec<i64>,
    values: Vec<I256>,
    table: HashTable<u32>,
    /// The block that was added to last.
    last: usize,
    /// Blocks that held something when they were counted last.
    held: usize,
}

impl ArmSums {
    pub fn new(width: usize) -> Self {
        Self {
            width,
            keys: Vec::new(),
            values: Vec::new(),
            table: HashTable::new(),
            last: 0,
            held: 0,
        }
    }

    /// Integers of a block.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.keys.capacity() * size_of::<i64>()
            + self.values.capacity() * size_of::<I256>()
            + self.table.allocation_size()
    }

    /// The block of a key.
    fn block(&mut self, key: i64) -> &mut [I256] {
        let Self {
            keys,
            values,
            table,
            width,
            last,
            ..
        } = self;
        if keys.get(*last) == Some(&key) {
            return &mut values[*last * *width..][..*width];
        }
        let is_it = |block: &u32| keys[*block as usize] == key;
        let found = table.find(hash_of(key), is_it).copied();
        let number = found.unwrap_or_else(|| {
            let number = keys.len() as u32;
            keys.push(key);
            values.resize(values.len() + *width, I256::ZERO);
            table.insert_unique(hash_of(key), number, |block| hash_of(keys[*block as usize]));
            number
        });
        *last = number as usize;
        &mut values[*last * *width..][..*width]
    }

    /// Add to one sum of the block of a key.
    pub fn add(&mut self, key: i64, place: usize, value: I256) {
        self.block(key)[place] += value;
    }

    /// Add `sign` times these to the block of a key.
    pub fn add_all(&mut self, key: i64, values: &[I256], sign: i64) {
        for (sum, value) in self.block(key).iter_mut().zip(values) {
            if sign > 0 {
                *sum += *value;
            } else {
                *sum -= *value;
            }
        }
    }

    fn blocks(&self) -> impl Iterator<Item = (i64, &[I256])> {
        let blocks = self.values.chunks_exact(self.width);
        self.keys.iter().copied().zip(blocks)
    }

    /// Add all of another's, which is empty afterwards. Returns whether anything is different now.
    pub fn take(&mut self, other: &mut Self) -> bool {
        let mut is_changed = false;
        for (key, values) in other.blocks() {
            if values.iter().any(|value| *value != I256::ZERO) {
                is_changed = true;
                for (sum, value) in self.block(key).iter_mut().zip(values) {
                    *sum += *value;
                }
            }
        }
        other.clear();
        if self.keys.len() > 2 * self.held + EMPTY_BLOCKS {
            self.compact();
        }
        is_changed
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.table.clear();
        self.held = 0;
    }

    fn compact(&mut self) {
        let mut kept = Self::new(self.width);
        for (key, values) in self.blocks() {
            if values.iter().any(|value| *value != I256::ZERO) {
                kept.block(key).copy_from_slice(values);
            }
        }
        kept.held = kept.keys.len();
        *self = kept;
    }

    /// Columns `key`, ascending, and limbs of the sums that are not 0.
    pub fn columns(&self) -> Columns {
        let mut found = Vec::new();
        for (key, values) in self.blocks() {
            let sums = (key..).zip(values.iter().copied());
            found.extend(sums.filter(|(_, value)| *value != I256::ZERO));
        }
        found.sort_unstable_by_key(|(key, _)| *key);
        limbs::columns(found)
    }
}

fn hash_of(key: i64) -> u64 {
    mix(key as u64, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_became_empty_are_forgotten() {
        let (mut sums, mut delta) = (ArmSums::new(2), ArmSums::new(2));
        for number in 0..10_000 {
            let values = [I256::from(number), I256::from(1)];
            delta.add_all(2 * number, &values, 1);
            if number > 0 {
                delta.add_all(2 * number - 2, &[I256::from(number - 1), I256::from(1)], -1);
            }
            delta.add(1_000_000 + 2 * (number % 3), 1, I256::from(-1));
            assert!(sums.take(&mut delta));
            assert!(sums.keys.len() < 3 * EMPTY_BLOCKS);
        }
        assert!(!sums.take(&mut delta));
        let found = sums.columns();
        let keys = [19_998, 19_999, 1_000_001, 1_000_003, 1_000_005];
        assert_eq!(found.get::<i64>("key").unwrap(), keys);
        assert_eq!(
            found.get::<i64>("limb_0").unwrap(),
            [9999, 1, -3334, -3333, -3333]
        );
    }
}
