//! Rows of counts by a key, and keys of item and label.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use hashbrown::HashMap;

use crate::hash::{Spread, in_sample, mix};

/// Bits of a count's place in a code, and of a label before it; the item's hash begins the code. It
/// has 44 bits: the probability that any two of 150,000 items share one is 0.0006.
pub const PLACE_BITS: u32 = 7;
/// The place of a pane's sample bits, which stand where no row does.
pub const SAMPLE_PLACE: u64 = (1 << PLACE_BITS) - 1;
pub const LABEL_BITS: u32 = 12;
const ITEM_SHIFT: u32 = 64 - (63 - PLACE_BITS - LABEL_BITS);
/// Categories are few, and a sample of them says little: in place of an item they begin with so many
/// zero bits, so that all of them stay where one item in 2^6 does.
pub const CATEGORY_BITS: u32 = 6;

/// Item and label, in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemKey(pub u64);

impl ItemKey {
    pub fn new(item: u64, label: u32) -> Self {
        Self((item >> ITEM_SHIFT) << LABEL_BITS | u64::from(label))
    }

    pub fn of_category(category: u64, label: u32) -> Self {
        Self::new(category >> CATEGORY_BITS, label)
    }

    /// Whether it stands for all items.
    pub fn is_of_no_item(self) -> bool {
        self.0 >> LABEL_BITS == 0
    }

    pub fn is_in_sample(self, bits: u32) -> bool {
        in_sample(self.0 >> LABEL_BITS << ITEM_SHIFT, bits)
    }
}

impl Hash for ItemKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(mix(self.0, 0));
    }
}

/// A key at a time, in units of the panes' common divisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemPane(pub i64, pub ItemKey);

impl Hash for ItemPane {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(mix(self.1.0, self.0 as u64));
    }
}

/// Rows of counts by a key.
#[derive(Debug)]
pub struct KeyedCounts<K> {
    pub places: HashMap<K, u32, BuildHasherDefault<Spread>>,
    pub counts: Vec<i64>,
    pub width: usize,
}

impl<K: Copy + Eq + Hash> KeyedCounts<K> {
    pub fn new(width: usize) -> Self {
        Self {
            places: HashMap::default(),
            counts: Vec::new(),
            width,
        }
    }

    pub fn row(&mut self, key: K) -> &mut [i64] {
        let at = self.place(key);
        &mut self.counts[at..at + self.width]
    }

    /// Where the counts of a key begin.
    pub fn place(&mut self, key: K) -> usize {
        let next = self.places.len() as u32;
        let at = *self.places.entry(key).or_insert(next) as usize * self.width;
        if at == self.counts.len() {
            self.counts.resize(at + self.width, 0);
        }
        at
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &[i64])> {
        let of = |(key, at): (&K, &u32)| {
            let first = *at as usize * self.width;
            (*key, &self.counts[first..first + self.width])
        };
        self.places.iter().map(of)
    }

    pub fn clear(&mut self) {
        self.places.clear();
        self.counts.clear();
    }

    /// Keeps those rows only.
    pub fn retain(&mut self, keep: impl Fn(K, &[i64]) -> bool) {
        let mut kept = Self::new(self.width);
        for (key, counts) in self.iter().filter(|(key, counts)| keep(*key, counts)) {
            kept.row(key).copy_from_slice(counts);
        }
        *self = kept;
    }

    pub fn bytes(&self) -> usize {
        self.places.allocation_size() + self.counts.capacity() * size_of::<i64>()
    }
}
