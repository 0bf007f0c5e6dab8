//! Dimension values and segments: combinations of values, numbered; values bounded by their hashes.
//!
//! Of the values that the settings do not name, each dimension keeps those with the smallest hashes,
//! so that the outcome does not depend on the order of arrival; all others are `other`. A value that
//! is pushed out becomes `other`, in every segment that has it: the numbers of its segments stay, so
//! several numbers may stand for one segment, and readers add up what has equal values.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::changes::Segment;
use crate::hash::{HashKey, mix};
use crate::panes::groups::SegmentCodes;
use crate::spec;

/// Codes that every dimension has: no value given, and values beyond the bound.
pub const UNKNOWN: u32 = 0;
pub const OTHER: u32 = 1;
const CACHED: usize = 65_536;

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
        }
    }

    /// The code of a value, and the code that it pushed out.
    fn code(&mut self, key: &HashKey, text: &str) -> (u32, Option<u32>) {
        if text.is_empty() {
            return (UNKNOWN, None);
        }
        if let Some(code) = self.codes.get(text) {
            return (*code, None);
        }
        if self.spec.values.iter().any(|value| value == text) {
            return (self.add(text), None);
        }
        let digest = key.of(text.as_bytes());
        let mut gone = None;
        if self.hashes.len() >= self.spec.max_values {
            match self.hashes.last_key_value() {
                Some(((largest, _), _)) if *largest > digest => gone = self.push_out(),
                _ => return (OTHER, None),
            }
        }
        let code = self.add(text);
        self.hashes.insert((digest, text.to_owned()), code);
        (code, gone)
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

/// Texts whose segment is known.
#[derive(Debug)]
struct Cached {
    hash: u64,
    texts: Box<[Box<str>]>,
    segment: Segment,
}

/// What is stored of a dimension: text of each code, events that carried it, and kept values.
pub type StoredValues = (Vec<String>, Vec<u64>, Vec<String>);

/// The segments of one partition.
#[derive(Debug)]
pub struct Dimensions {
    key: HashKey,
    pub values: Vec<DimensionValues>,
    limit: usize,
    /// Times that a segment beyond the bound was asked for: it became all `other`.
    pub overflowed: u64,
    /// Codes of each segment, one after another.
    codes: Vec<u32>,
    count: usize,
    numbers: HashTable<Segment>,
    /// Segments by texts: a cache, emptied when full.
    cache: HashTable<Cached>,
    hashing: DefaultHashBuilder,
    /// How often values were pushed out: what is derived of segments is stale after that.
    pub folds: u64,
    /// Segments whose values changed since they were last taken.
    folded: Vec<bool>,
}

impl Dimensions {
    pub fn new(key: HashKey, dimensions: &[spec::Dimension], limit: usize) -> Self {
        Self {
            key,
            values: dimensions
                .iter()
                .cloned()
                .map(DimensionValues::new)
                .collect(),
            limit,
            overflowed: 0,
            codes: Vec::new(),
            count: 0,
            numbers: HashTable::new(),
            cache: HashTable::new(),
            hashing: DefaultHashBuilder::default(),
            folds: 0,
            folded: Vec::new(),
        }
    }

    fn width(&self) -> usize {
        self.values.len()
    }

    /// The hash of a value.
    pub fn hash_of(&self, text: &str) -> u64 {
        self.key.of(text.as_bytes())
    }

    /// How many numbers of segments were given out.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The segment of an accepted event with these texts ("": unknown), which is counted.
    pub fn segment_of<'a>(&mut self, texts: impl Iterator<Item = &'a str> + Clone) -> Segment {
        let hash = self.hash_of_texts(texts.clone());
        let is_it = |known: &Cached| known.texts.iter().map(|text| &**text).eq(texts.clone());
        if let Some(known) = self.cache.find(hash, is_it) {
            let segment = known.segment;
            self.count(segment);
            return segment;
        }
        self.register(hash, texts)
    }

    /// The texts are hashed where they are: what was just written is read again only after all that
    /// was written before it.
    fn hash_of_texts<'a>(&self, texts: impl Iterator<Item = &'a str>) -> u64 {
        let mut hasher = self.hashing.build_hasher();
        for text in texts {
            hasher.write(text.as_bytes());
            hasher.write_u8(0xff);
        }
        hasher.finish()
    }

    fn count(&mut self, segment: Segment) {
        let width = self.width();
        let first = segment as usize * width;
        for (at, values) in self.values.iter_mut().enumerate() {
            values.events[self.codes[first + at] as usize] += 1;
        }
    }

    #[cold]
    fn register<'a>(&mut self, hash: u64, texts: impl Iterator<Item = &'a str> + Clone) -> Segment {
        let mut given = texts.clone();
        let mut codes = Vec::with_capacity(self.width());
        let mut is_cached = true;
        for at in 0..self.width() {
            let text = given.next().unwrap_or("");
            let (code, gone) = self.values[at].code(&self.key, text);
            self.values[at].events[code as usize] += 1;
            is_cached &= code != OTHER;
            codes.push(code);
            if let Some(gone) = gone {
                self.fold(at, gone);
            }
        }
        let segment = self.number(codes);
        if is_cached {
            if self.cache.len() >= CACHED {
                self.cache.clear();
            }
            let known = Cached {
                hash,
                texts: texts.map(Into::into).collect(),
                segment,
            };
            self.cache.insert_unique(hash, known, |known| known.hash);
        }
        segment
    }

    /// A code was pushed out: every segment that has it has `other` from now on.
    fn fold(&mut self, at: usize, gone: u32) {
        let (width, segments) = (self.width(), self.len());
        self.folded.resize(segments, false);
        let segments = self.codes.chunks_exact_mut(width).zip(&mut self.folded);
        for (codes, is_folded) in segments.filter(|(codes, _)| codes[at] == gone) {
            codes[at] = OTHER;
            *is_folded = true;
        }
        self.renumber();
    }

    /// Finds segments by their codes as they are now: of equal ones the first number counts.
    fn renumber(&mut self) {
        self.numbers.clear();
        self.cache.clear();
        self.folds += 1;
        for segment in 0..self.len() as Segment {
            if self.find(self.codes(segment)).is_none() {
                let hash = hash_of(self.codes(segment));
                let (codes, width) = (&self.codes, self.values.len());
                self.numbers.insert_unique(hash, segment, |other| {
                    hash_of(&codes[*other as usize * width..][..width])
                });
            }
        }
    }

    /// Which segments got other values since the last call, if any did.
    pub fn take_folded(&mut self) -> Option<Vec<bool>> {
        (!self.folded.is_empty()).then(|| std::mem::take(&mut self.folded))
    }

    fn find(&self, codes: &[u32]) -> Option<Segment> {
        self.numbers
            .find(hash_of(codes), |other| self.codes(*other) == codes)
            .copied()
    }

    fn number(&mut self, mut codes: Vec<u32>) -> Segment {
        if let Some(segment) = self.find(&codes) {
            return segment;
        }
        if self.len() >= self.limit {
            self.overflowed += 1;
            codes.fill(OTHER);
            if let Some(segment) = self.find(&codes) {
                return segment;
            }
        }
        let segment = self.len() as Segment;
        self.codes.extend_from_slice(&codes);
        self.count += 1;
        let (all, width) = (&self.codes, self.values.len());
        self.numbers
            .insert_unique(hash_of(&codes), segment, |other| {
                hash_of(&all[*other as usize * width..][..width])
            });
        segment
    }

    /// The value codes of a segment.
    pub fn codes(&self, segment: Segment) -> &[u32] {
        let width = self.width();
        &self.codes[segment as usize * width..][..width]
    }

    /// The first number of the segment with the same values.
    pub fn resolve(&self, segment: Segment) -> Segment {
        if self.folds == 0 {
            segment
        } else {
            self.find(self.codes(segment)).unwrap_or(segment)
        }
    }

    /// Whether every dimension has a value.
    pub fn is_complete(&self, segment: Segment) -> bool {
        self.codes(segment).iter().all(|code| *code != UNKNOWN)
    }

    /// A segment with its unknown values taken from another one.
    pub fn filled(&mut self, own: Segment, inherited: Segment) -> Segment {
        if self.is_complete(own) {
            return own;
        }
        let codes = self.codes(own).iter().zip(self.codes(inherited));
        let codes = codes.map(|(mine, theirs)| if *mine == UNKNOWN { *theirs } else { *mine });
        let codes = codes.collect();
        self.number(codes)
    }

    /// Takes over stored values of each dimension, and the codes of each segment.
    pub fn load(&mut self, values: Vec<StoredValues>, tuples: &[Vec<u32>]) {
        for (ours, (texts, events, kept)) in self.values.iter_mut().zip(values) {
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
        (self.codes, self.count) = (tuples.concat(), tuples.len());
        for at in 0..self.width() {
            // Values that the settings named then, and do not now.
            while self.values[at].hashes.len() > self.values[at].spec.max_values {
                if let Some(gone) = self.values[at].push_out() {
                    self.fold(at, gone);
                }
            }
        }
        self.folded.clear();
        self.renumber();
    }

    /// The codes of all segments, one after another.
    pub fn all_codes(&self) -> &[u32] {
        &self.codes
    }
}

impl SegmentCodes for Dimensions {
    fn codes(&self, segment: Segment) -> &[u32] {
        self.codes(segment)
    }
    fn resolve(&self, segment: Segment) -> Segment {
        self.resolve(segment)
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
        }
    }

    #[test]
    fn the_smallest_hashes_are_kept_in_any_order() {
        let texts: Vec<String> = (0..500).map(|i| format!("value-{i}")).collect();
        let mut kept = Vec::new();
        for order in [texts.clone(), texts.iter().rev().cloned().collect()] {
            let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(10)], 20_000);
            for text in &order {
                dimensions.segment_of([text.as_str()].into_iter());
            }
            dimensions.segment_of(["A"].into_iter());
            assert_eq!(dimensions.values[0].kept().len(), 11);
            let others = dimensions.values[0].events[OTHER as usize];
            assert_eq!(others, 490);
            kept.push(dimensions.values[0].kept().join(","));
        }
        assert_eq!(kept[0], kept[1]);
    }

    #[test]
    fn unknown_values_are_filled() {
        let two = [dimension(10), dimension(10)];
        let mut dimensions = Dimensions::new(HashKey(1, 2), &two, 20_000);
        let (full, own) = (
            dimensions.segment_of(["A", "x"].into_iter()),
            dimensions.segment_of(["", "y"].into_iter()),
        );
        assert!(dimensions.is_complete(full) && !dimensions.is_complete(own));
        let filled = dimensions.filled(own, full);
        assert_eq!(dimensions.codes(filled), &[2, 3]);
    }

    #[test]
    fn segments_beyond_the_bound_are_other() {
        let mut dimensions = Dimensions::new(HashKey(1, 2), &[dimension(100)], 3);
        let segments: Vec<Segment> = ["a", "b", "c", "d", "e"]
            .iter()
            .map(|text| dimensions.segment_of([*text].into_iter()))
            .collect();
        assert_eq!(segments, [0, 1, 2, 3, 3]);
        assert_eq!(dimensions.overflowed, 2);
    }
}
