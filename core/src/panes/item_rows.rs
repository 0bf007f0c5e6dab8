//! Rows of counts by a key, and keys of item and label.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use hashbrown::HashMap;

use crate::hash::{Spread, in_sample, mix};

/// Bits of a count's place in a code, and of a label before it; the item's hash begins the code. It
/// has 44 bits: the probability that any two of 150,000 items share one is 0.0006.
pub const PLACE_BITS: u32 = 7;
/// The places of a pane's sample bits, of items and of pairs, which stand where no row does.
pub const SAMPLE_PLACE: u64 = (1 << PLACE_BITS) - 1;
pub const PAIR_SAMPLE_PLACE: u64 = SAMPLE_PLACE - 1;
pub const LABEL_BITS: u32 = 12;
const ITEM_SHIFT: u32 = 64 - (63 - PLACE_BITS - LABEL_BITS);
/// Bits of an item's hash in the key of a pair, which has two and no label.
pub const PAIR_ITEM_BITS: u32 = (63 - PLACE_BITS) / 2;
/// Marks the key of a pair.
const PAIR: u64 = 1 << 63;
/// In a code it marks the place.
pub const PAIR_PLACE: u64 = 1 << (PLACE_BITS - 1);
/// Categories are few, and a sample of them says little: in place of an item they begin with so many
/// zero bits, so that all of them stay where one item in 2^6 does.
pub const CATEGORY_BITS: u32 = 6;

/// What a row is of; of items and of pairs a pane may hold samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Item,
    Pair,
    /// All items, under a label.
    Every,
}

/// Item and label, or a pair of items, in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemKey(pub u64);

impl ItemKey {
    pub fn new(item: u64, label: u32) -> Self {
        Self((item >> ITEM_SHIFT) << LABEL_BITS | u64::from(label))
    }

    pub fn of_category(category: u64, label: u32) -> Self {
        Self::new(category >> CATEGORY_BITS, label)
    }

    /// Two different items, in whatever order.
    pub fn of_pair(one: u64, other: u64) -> Self {
        let [one, other] = [one, other].map(|item| item >> (64 - PAIR_ITEM_BITS));
        Self(PAIR | one.min(other) << PAIR_ITEM_BITS | one.max(other))
    }

    pub fn counted(self) -> Counted {
        match self.0 {
            key if key & PAIR != 0 => Counted::Pair,
            key if key >> LABEL_BITS == 0 => Counted::Every,
            _ => Counted::Item,
        }
    }

    /// Whether it stays in a pane whose items and pairs are samples of so many bits.
    pub fn is_in_sample(self, bits: [u32; 2]) -> bool {
        match self.counted() {
            Counted::Every => true,
            Counted::Item => in_sample(self.0 >> LABEL_BITS << ITEM_SHIFT, bits[0]),
            // both of its items: the smaller number has at least as many zeros as the larger one
            Counted::Pair => in_sample(self.0 << (64 - PAIR_ITEM_BITS), bits[1]),
        }
    }

    /// The code of a count at a place.
    pub fn code(self, place: u64) -> u64 {
        let mark = if self.0 & PAIR == 0 { 0 } else { PAIR_PLACE };
        (self.0 & !PAIR) << PLACE_BITS | place | mark
    }

    /// Key and place of a code.
    pub fn of_code(code: u64) -> (Self, u64) {
        let (key, place) = (code >> PLACE_BITS, code & SAMPLE_PLACE);
        match place & PAIR_PLACE {
            0 => (Self(key), place),
            _ => (Self(key | PAIR), place & !PAIR_PLACE),
        }
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
