//! Dimension values, and combinations of them: what an event says of all dimensions, numbered.
//!
//! Of the values that the settings do not name, each dimension keeps those with the smallest hashes,
//! so that the outcome does not depend on the order of arrival; all others are `other`. A value that
//! is pushed out becomes `other`, in every combination that has it: their numbers stay, so several
//! numbers may stand for one combination. Where a dimension is sampled, one bit more of the hash has
//! to be 0 each time that there are too many.
//!
//! A combination is kept as long as a row refers to it: `sweep` frees the numbers of all others.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};

use crate::changes::Combination;
use crate::columns::LoadError;
use crate::hash::{HashKey, in_sample, mix};
use crate::spec;

/// Codes that every dimension has: no value given, and values beyond the bound.
pub const UNKNOWN: u32 = 0;
pub const OTHER: u32 = 1;
const CACHED: usize = 65_536;
/// Of a hash, that a dimension that is sampled looks at.
const MAX_BITS: u32 = 48;

/// The value of each dimension of a combination, as a code.
pub trait CombinationCodes {
    fn codes(&self, combination: Combination) -> &[u32];
}

/// The values of one dimension.
#[derive(Debug)]
pub struct DimensionValues {
    spec: spec::Dimension,
    /// Text of each code, and accepted events that carried it.
    pub texts: Vec<String>,
    pub events: Vec<u64>,
    codes: HashMap<String, u32>,
    /// Hashes of the kept values that the settings do not name, with their codes.
    hashes: std::collections::BTreeMap<(u64, String), u32>,
    /// Of a dimension that is sampled: so many bits of a hash are 0.
    bits: u32,
}

impl DimensionValues {
    fn new(spec: spec::Dimension) -> Self {
        let texts = vec!["unknown".to_owned(), "other".to_owned()];
        Self {
            spec,
            texts,
            events: vec![0, 0],
            codes: HashMap::new(),
            hashes: Default::default(),
            bits: 0,
        }
    }

    /// The code of a value, and the codes that it pushed out.
    fn code(&mut self, key: &HashKey, text: &str) -> (u32, Vec<u32>) {
        if text.is_empty() {
            return (UNKNOWN, Vec::new());
        }
        if let Some(code) = self.codes.get(text) {
            return (*code, Vec::new());
        }
        if self.spec.values.iter().any(|value| value == text) {
            return (self.add(text), Vec::new());
        }
        let digest = key.of(text.as_bytes());
        let mut gone = Vec::new();
        if self.spec.is_sampled {
            if in_sample(digest, self.bits) {
                gone = self.make_room(self.spec.max_values.saturating_sub(1));
            }
            if !in_sample(digest, self.bits) {
                return (OTHER, gone);
            }
        } else if self.hashes.len() >= self.spec.max_values {
            match self.hashes.last_key_value() {
                Some(((largest, _), _)) if *largest > digest => gone.extend(self.push_out()),
                _ => return (OTHER, gone),
            }
        }
        let code = self.add(text);
        self.hashes.insert((digest, text.to_owned()), code);
        (code, gone)
    }

    /// Lets no more than so many values be kept that the settings do not name; returns the codes of
    /// those that are pushed out.
    fn make_room(&mut self, most: usize) -> Vec<u32> {
        let mut gone = Vec::new();
        while self.hashes.len() > most {
            if !self.spec.is_sampled || self.bits >= MAX_BITS {
                gone.extend(self.push_out());
                continue;
            }
            self.bits += 1;
            while let Some(((largest, _), _)) = self.hashes.last_key_value()
                && !in_sample(*largest, self.bits)
            {
                gone.extend(self.push_out());
            }
        }
        gone
    }

    /// So many bits are 0 of the hashes of values that are kept whenever they come.
    pub fn bits(&self) -> u32 {
        let is_full = self.hashes.len() >= self.spec.max_values;
        match self.hashes.last_key_value() {
            _ if self.spec.is_sampled => self.bits,
            Some(((largest, _), _)) if is_full => largest.leading_zeros() + 1,
            _ => 0,
        }
    }

    /// Values with other hashes are `other` from now on.
    pub fn set_bits(&mut self, bits: u32) {
        if self.spec.is_sampled {
            self.bits = self.bits.max(bits.min(MAX_BITS));
        }
    }

    fn add(&mut self, text: &str) -> u32 {
        let code = self.texts.len() as u32;
        self.codes.insert(text.to_owned(), code);
        self.texts.push(text.to_owned());
        self.events.push(0);
        code
    }

    /// Lets the kept value with the largest hash be `other`; returns its code.
    fn push_out(&mut self) -> Option<u32> {
        let ((_, text), code) = self.hashes.pop_last()?;
        self.codes.remove(&text);
        let at = code as usize;
        self.events[OTHER as usize] += std::mem::take(&mut self.events[at]);
        self.texts[at] = self.texts[OTHER as usize].clone();
        Some(code)
    }

    /// The values that are kept, sorted.
    pub fn kept(&self) -> Vec<&str> {
        let mut kept: Vec<&str> = self.codes.keys().map(String::as_str).collect();
        kept.sort_unstable();
        kept
    }

    /// Kept values that the settings do not name, with their hashes, by which readers choose among
    /// those of all partitions; sorted.
    pub fn unnamed(&self) -> Vec<(&str, u64)> {
        let found = self
            .hashes
            .keys()
            .map(|(hash, text)| (text.as_str(), *hash));
        let mut found: Vec<(&str, u64)> = found.collect();
        found.sort_unstable();
        found
    }

    /// Whether a value is kept.
    pub fn is_kept(&self, text: &str) -> bool {
        self.codes.contains_key(text)
    }
}

/// Texts whose combination is known.
#[derive(Debug)]
struct Cached {
    hash: u64,
    /// One after another, each with `END` after it.
    texts: Box<[u8]>,
    combination: Combination,
}

/// No UTF-8 has this byte.
const END: u8 = 0xff;

impl Cached {
    fn is_of<'a>(&self, texts: impl Iterator<Item = &'a str>) -> bool {
        let mut rest = &*self.texts;
        for text in texts {
            let found = rest.strip_prefix(text.as_bytes());
            let Some(after) = found.and_then(|after| after.strip_prefix(&[END])) else {
                return false;
            };
            rest = after;
        }
        rest.is_empty()
    }
}

/// What is stored of a dimension: text of each code, events that carried it, and kept values.
pub type StoredValues = (Vec<String>, Vec<u64>, Vec<String>);

/// Combinations that are swept only when there are more.
const SWEPT: usize = 65_536;

/// Values and combinations of one partition.
#[derive(Debug)]
pub struct Dimensions {
    key: HashKey,
    pub values: Vec<DimensionValues>,
    /// Codes of each combination, one after another.
    codes: Vec<u32>,
    /// The epoch in which each was last changed; `FREE`: its number is free.
    epochs: Vec<u32>,
    free: Vec<Combination>,
    pub epoch: u32,
    has_changed: bool,
    /// How many there may be before they are swept.
    sweep_at: usize,
    numbers: HashTable<Combination>,
    /// Combinations by texts: a cache, emptied when full.
    cache: HashTable<Cached>,
    hashing: DefaultHashBuilder,
    /// How often numbers got other values: what is derived of them is stale after that.
    pub changes: u64,
}

const FREE: u32 = u32::MAX;

/// A value was pushed out: the place of its dimension, and its code.
pub type PushedOut = (usize, u32);

impl Dimensions {
    pub fn new(key: HashKey, dimensions: &[spec::Dimension]) -> Self {
        Self {
            key,
            values: dimensions
                .iter()
                .cloned()
                .map(DimensionValues::new)
                .collect(),
            codes: Vec::new(),
            epochs: Vec::new(),
            free: Vec::new(),
            epoch: 0,
            has_changed: false,
            sweep_at: SWEPT,
            numbers: HashTable::new(),
            cache: HashTable::new(),
            hashing: DefaultHashBuilder::default(),
            changes: 0,
        }
    }

    fn width(&self) -> usize {
        self.values.len()
    }

    /// The hash of a value.
    pub fn hash_of(&self, text: &str) -> u64 {
        self.key.of(text.as_bytes())
    }

    /// How many numbers of combinations were given out, free ones included.
    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let rows = (self.codes.capacity() + self.epochs.capacity() + self.free.capacity()) * 4;
        rows + self.numbers.allocation_size()
            + self.cache.len() * (size_of::<Cached>() + 16 * self.width())
    }

    /// The combination of an accepted event with these texts ("": unknown), which is counted.
    /// `before`: what to do before the codes of combinations with a value that is pushed out change.
    pub fn combination_of<'a>(
        &mut self,
        texts: impl Iterator<Item = &'a str> + Clone,
        before: impl FnMut(&Self, PushedOut),
    ) -> Combination {
        let hash = self.hash_of_texts(texts.clone());
        let is_it = |known: &Cached| known.is_of(texts.clone());
        if let Some(known) = self.cache.find(hash, is_it) {
            let combination = known.combination;
            self.count(combination);
            return combination;
        }
        self.register(hash, texts, before)
    }

    /// The texts are hashed where they are: what was just written is read again only after all that
    /// was written before it.
    fn hash_of_texts<'a>(&self, texts: impl Iterator<Item = &'a str>) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        for text in texts {
            hasher.write(text.as_bytes());
            hasher.write_u8(END);
        }
        hasher.finish()
    }

    fn count(&mut self, combination: Combination) {
        let width = self.width();
        let first = combination as usize * width;
        for (at, values) in self.values.iter_mut().enumerate() {
            values.events[self.codes[first + at] as usize] += 1;
        }
    }

    #[cold]
    fn register<'a>(
        &mut self,
        hash: u64,
        texts: impl Iterator<Item = &'a str> + Clone,
        mut before: impl FnMut(&Self, PushedOut),
    ) -> Combination {
        let mut given = texts.clone();
        let mut codes = Vec::with_capacity(self.width());
        let mut is_cached = true;
        for at in 0..self.width() {
            let text = given.next().unwrap_or("");
            let (code, gone) = self.values[at].code(&self.key, text);
            self.values[at].events[code as usize] += 1;
            is_cached &= code != OTHER;
            codes.push(code);
            if !gone.is_empty() {
                gone.iter().for_each(|code| before(self, (at, *code)));
                self.fold(at, &gone);
            }
        }
        let combination = self.number(&codes);
        if is_cached {
            if self.cache.len() >= CACHED {
                self.cache.clear();
            }
            let bytes: Vec<u8> = texts.flat_map(|text| text.bytes().chain([END])).collect();
            let known = Cached {
                hash,
                texts: bytes.into(),
                combination,
            };
            self.cache.insert_unique(hash, known, |known| known.hash);
        }
        combination
    }

    /// Codes were pushed out: every combination that has one has `other` from now on.
    fn fold(&mut self, at: usize, gone: &[u32]) {
        let gone: HashSet<u32> = gone.iter().copied().collect();
        let of_it = self.codes.iter().skip(at).step_by(self.width());
        let changed = (0..).zip(of_it.zip(&self.epochs));
        let changed = changed.filter(|(_, (code, epoch))| gone.contains(*code) && **epoch != FREE);
        let changed: Vec<Combination> = changed.map(|(combination, _)| combination).collect();
        for combination in changed {
            let hash = hash_of(self.codes(combination));
            if let Ok(entry) = self.numbers.find_entry(hash, |other| *other == combination) {
                entry.remove();
            }
            let width = self.width();
            self.codes[combination as usize * width + at] = OTHER;
            self.epochs[combination as usize] = self.epoch;
            if self.find(self.codes(combination)).is_none() {
                self.insert(combination);
            }
        }
        self.has_changed = true;
        self.cache.clear();
        self.changes += 1;
    }

    /// Finds combinations by their codes as they are now: of equal ones the first number counts.
    fn renumber(&mut self) {
        self.numbers.clear();
        self.cache.clear();
        self.changes += 1;
        for combination in 0..self.len() as Combination {
            let is_free = self.epochs[combination as usize] == FREE;
            if !is_free && self.find(self.codes(combination)).is_none() {
                self.insert(combination);
            }
        }
    }

    fn insert(&mut self, combination: Combination) {
        let hash = hash_of(self.codes(combination));
        let (codes, width) = (&self.codes, self.values.len());
        self.numbers.insert_unique(hash, combination, |other| {
            hash_of(&codes[*other as usize * width..][..width])
        });
    }

    fn find(&self, codes: &[u32]) -> Option<Combination> {
        self.numbers
            .find(hash_of(codes), |other| self.codes(*other) == codes)
            .copied()
    }

    fn number(&mut self, codes: &[u32]) -> Combination {
        if let Some(combination) = self.find(codes) {
            return combination;
        }
        let width = self.width();
        self.has_changed = true;
        let combination = match self.free.pop() {
            Some(free) => {
                self.codes[free as usize * width..][..width].copy_from_slice(codes);
                self.epochs[free as usize] = self.epoch;
                free
            }
            None => {
                self.codes.extend_from_slice(codes);
                self.epochs.push(self.epoch);
                self.len() as Combination - 1
            }
        };
        self.insert(combination);
        combination
    }

    // Leaving

    /// Whether there are so many that those that nothing refers to should be looked for.
    pub fn is_crowded(&self) -> bool {
        self.len() - self.free.len() > self.sweep_at
    }

    /// Frees the numbers that nothing refers to; `refer` calls its argument with all others.
    pub fn sweep(&mut self, refer: impl FnOnce(&mut dyn FnMut(Combination))) {
        let mut is_used = vec![false; self.len()];
        refer(&mut |combination| {
            if let Some(used) = is_used.get_mut(combination as usize) {
                *used = true;
            }
        });
        for (combination, is_used) in (0..).zip(is_used) {
            let epoch = &mut self.epochs[combination as usize];
            if !is_used && *epoch != FREE {
                *epoch = FREE;
                self.free.push(combination);
            }
        }
        self.sweep_at = SWEPT.max(2 * (self.len() - self.free.len()));
        self.renumber();
    }

    /// The value codes of a combination.
    pub fn codes(&self, combination: Combination) -> &[u32] {
        let width = self.width();
        &self.codes[combination as usize * width..][..width]
    }

    /// The first number of the combination with the same values.
    pub fn resolve(&self, combination: Combination) -> Combination {
        if self.changes == 0 {
            combination
        } else {
            self.find(self.codes(combination)).unwrap_or(combination)
        }
    }

    /// Whether every dimension has a value.
    pub fn is_complete(&self, combination: Combination) -> bool {
        self.codes(combination).iter().all(|code| *code != UNKNOWN)
    }

    /// A combination with its unknown values taken from another one.
    pub fn filled(&mut self, own: Combination, inherited: Combination) -> Combination {
        if self.is_complete(own) {
            return own;
        }
        let codes = self.codes(own).iter().zip(self.codes(inherited));
        let codes = codes.map(|(mine, theirs)| if *mine == UNKNOWN { *theirs } else { *mine });
        let codes: Vec<u32> = codes.collect();
        self.number(&codes)
    }

    // Stored form

    /// Takes over stored values of each dimension.
    pub fn load_values(&mut self, values: Vec<StoredValues>) {
        for (ours, (texts, events, kept)) in self.values.iter_mut().zip(values) {
            let kept: HashSet<String> = kept.into_iter().collect();
            for (code, text) in texts.iter().enumerate().skip(OTHER as usize + 1) {
                if kept.contains(text) {
                    ours.codes.insert(text.clone(), code as u32);
                    if !ours.spec.values.contains(text) {
                        let digest = self.key.of(text.as_bytes());
                        ours.hashes.insert((digest, text.clone()), code as u32);
                    }
                }
            }
            (ours.texts, ours.events) = (texts, events);
        }
        for values in &mut self.values {
            // Values that the settings named then, and do not now.
            values.make_room(values.spec.max_values);
        }
    }

    /// So many numbers were given out.
    pub fn resize(&mut self, len: usize) {
        self.codes.resize(len * self.width(), UNKNOWN);
        self.epochs.resize(len, FREE);
    }

    /// Takes over a stored combination, as of this epoch. An error where it has no such number.
    pub fn load(
        &mut self,
        combination: Combination,
        codes: impl Iterator<Item = u32>,
    ) -> Result<(), LoadError> {
        let (at, width) = (combination as usize, self.width());
        if at >= self.len() {
            return Err(format!("a stored combination has the number {combination}"));
        }
        self.epochs[at] = self.epoch;
        let places = self.codes[at * width..][..width].iter_mut();
        for ((place, code), values) in places.zip(codes).zip(&self.values) {
            let text = values.texts.get(code as usize);
            let is_gone = text.is_none_or(|text| *text == values.texts[OTHER as usize]);
            *place = if is_gone { OTHER } else { code };
        }
        Ok(())
    }

    /// All combinations are loaded.
    pub fn finish_load(&mut self) {
        let numbers = (0..).zip(&self.epochs);
        self.free = numbers
            .filter(|(_, epoch)| **epoch == FREE)
            .map(|(at, _)| at)
            .collect();
        self.sweep_at = SWEPT.max(2 * self.len());
        self.renumber();
    }

    /// Changes from now on belong to another epoch.
    pub fn seal(&mut self) {
        self.epoch += u32::from(std::mem::take(&mut self.has_changed));
    }

    /// Number, codes and epoch of those that last changed in the epochs [first, end).
    pub fn changed(
        &self,
        first: u32,
        end: u32,
    ) -> impl Iterator<Item = (Combination, &[u32], u32)> {
        let numbers = (0..).zip(&self.epochs);
        let changed = numbers.filter(move |(_, epoch)| (first..end).contains(*epoch));
        changed.map(|(at, epoch)| (at, self.codes(at), *epoch))
    }

    /// The epochs of all.
    pub fn epochs(&self) -> impl Iterator<Item = u32> {
        self.epochs.iter().copied().filter(|epoch| *epoch != FREE)
    }
}

impl CombinationCodes for Dimensions {
    fn codes(&self, combination: Combination) -> &[u32] {
        self.codes(combination)
    }
}

fn hash_of(codes: &[u32]) -> u64 {
    codes
        .iter()
        .fold(1, |hash, code| mix(hash, u64::from(*code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(max_values: usize) -> spec::Dimension {
        spec::Dimension {
            name: "variant".into(),
            values: vec!["A".into()],
            max_values,
            is_sampled: false,
        }
    }

    #[test]
    fn the_smallest_hashes_are_kept_in_any_order() {
        let texts: Vec<String> = (0..500).map(|i| format!("value-{i}")).collect();
        let mut kept = Vec::new();
        for order in [texts.clone(), texts.iter().rev().cloned().collect()] {
            let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(10)]);
            for text in &order {
                dimensions.combination_of([text.as_str()].into_iter(), |_, _| ());
            }
            dimensions.combination_of(["A"].into_iter(), |_, _| ());
            assert_eq!(dimensions.values[0].kept().len(), 11);
            let others = dimensions.values[0].events[OTHER as usize];
            assert_eq!(others, 490);
            kept.push(dimensions.values[0].kept().join(","));
        }
        assert_eq!(kept[0], kept[1]);
    }

    #[test]
    fn a_dimension_that_is_sampled_keeps_the_same_in_any_order() {
        let texts: Vec<String> = (0..500).map(|i| format!("value-{i}")).collect();
        let sampled = spec::Dimension {
            is_sampled: true,
            ..dimension(40)
        };
        let mut kept = Vec::new();
        for order in [texts.clone(), texts.iter().rev().cloned().collect()] {
            let mut dimensions = Dimensions::new(HashKey(1, 2), std::slice::from_ref(&sampled));
            for text in &order {
                dimensions.combination_of([text.as_str()].into_iter(), |_, _| ());
            }
            let values = &dimensions.values[0];
            assert!(values.kept().len() <= 40 && values.kept().len() > 15);
            assert!(values.bits() >= 3);
            let is_kept = |text: &&str| in_sample(HashKey(1, 2).of(text.as_bytes()), values.bits());
            let all = texts.iter().map(String::as_str).filter(is_kept);
            assert_eq!(all.count(), values.kept().len());
            kept.push((values.kept().join(","), values.bits()));
        }
        assert_eq!(kept[0], kept[1]);
    }

    #[test]
    fn unknown_values_are_filled() {
        let two = [dimension(10), dimension(10)];
        let mut dimensions = Dimensions::new(HashKey(1, 2), &two);
        let (full, own) = (
            dimensions.combination_of(["A", "x"].into_iter(), |_, _| ()),
            dimensions.combination_of(["", "y"].into_iter(), |_, _| ()),
        );
        assert!(dimensions.is_complete(full) && !dimensions.is_complete(own));
        let filled = dimensions.filled(own, full);
        assert_eq!(dimensions.codes(filled), &[2, 3]);
    }

    #[test]
    fn what_nothing_refers_to_is_swept_and_its_number_used_again() {
        let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(100)]);
        let of = |dimensions: &mut Dimensions, text| {
            dimensions.combination_of([text].into_iter(), |_, _| ())
        };
        let numbers = ["a", "b", "c"].map(|text| of(&mut dimensions, text));
        assert_eq!(numbers, [0, 1, 2]);
        dimensions.seal();
        dimensions.sweep(|is_used| [0, 2].into_iter().for_each(is_used));
        assert_eq!(of(&mut dimensions, "c"), 2);
        assert_eq!(of(&mut dimensions, "d"), 1);
        assert_eq!(of(&mut dimensions, "b"), 3);
        let changed = dimensions.changed(1, 2).map(|(number, ..)| number);
        assert_eq!(changed.collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn combinations_of_a_value_that_is_pushed_out_are_one() {
        let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(1)]);
        let mut gone = Vec::new();
        let mut numbers = Vec::new();
        for i in 0..100 {
            let text = format!("value-{i}");
            let texts = [text.as_str()].into_iter();
            numbers.push(dimensions.combination_of(texts, |before, (at, code)| {
                assert_eq!(at, 0);
                gone.push(before.find(&[code]).unwrap());
            }));
        }
        assert!(gone.len() > 2);
        let others = gone.iter().map(|number| dimensions.codes(*number));
        assert!(others.clone().all(|codes| codes == [OTHER]));
        let first = dimensions.resolve(gone[0]);
        assert!(
            gone.iter()
                .all(|number| dimensions.resolve(*number) == first)
        );
    }
}
