//! Segments: values of the dimensions of one rollup, numbered. Sums are kept by them.
//!
//! A combination of values of all dimensions belongs to one segment of each rollup. The total and
//! rollups of one dimension have as many segments as values are kept; one of several has a bound of
//! its own, beyond which what is new is `other` there, and nowhere else.

use hashbrown::HashMap;

use crate::changes::Combination;
use crate::panes::dimensions::{CombinationCodes, OTHER};
use crate::panes::order::Order;
use crate::panes::rings::BLOCK;
use crate::spec::{self, CountFrom};

const UNSET: u32 = u32::MAX;
/// Segments of all rollups: their numbers have to fit the keys of the sums over users.
pub const MAX_SEGMENTS: usize = 1 << crate::users::sums::SEGMENT_BITS;

fn is_set(number: &u32) -> bool {
    *number != UNSET
}

/// How the segment of a combination is found.
#[derive(Debug)]
enum Numbers {
    Total(Option<u32>),
    /// By code of the one dimension.
    Alone(Vec<u32>),
    Several(HashMap<Box<[u32]>, u32>),
}

/// One rollup.
#[derive(Debug)]
pub struct Rollup {
    /// Places of its dimensions, ascending.
    places: Vec<usize>,
    numbers: Numbers,
    /// How many segments it has, and may have.
    count: usize,
    limit: usize,
    /// Times that a segment beyond the bound was asked for.
    pub overflowed: u64,
    /// Places of statistics that count only from some time on, [first, stop).
    since: Vec<(u32, u32, CountFrom)>,
    /// The statistics that are kept, by block: a bit for each place.
    kept: Vec<u64>,
}

impl Rollup {
    fn new(spec: &spec::RollupSpec, order: &Order, limit: usize) -> Self {
        Self {
            places: spec.dimensions.clone(),
            numbers: match spec.dimensions.len() {
                0 => Numbers::Total(None),
                1 => Numbers::Alone(Vec::new()),
                _ => Numbers::Several(HashMap::new()),
            },
            count: 0,
            limit: if spec.dimensions.len() > 1 {
                limit
            } else {
                MAX_SEGMENTS
            },
            overflowed: 0,
            since: order.places(&spec.since),
            kept: order.bits(&spec.kept),
        }
    }

    /// The places of a block that are kept, as bits.
    pub fn kept(&self, block: usize) -> u64 {
        self.kept.get(block).copied().unwrap_or(0)
    }

    /// Those of them that count at a time, and are new or are not.
    pub fn counted(&self, block: usize, at_ms: i64, is_new: bool) -> u64 {
        let kept = self.kept(block);
        if self.since.is_empty() || kept == 0 {
            return if is_new { 0 } else { kept };
        }
        let mut counted = if is_new { 0 } else { kept };
        for (first, stop, from) in &self.since {
            let (start, end) = (block * BLOCK, (block + 1) * BLOCK);
            for code in start.max(*first as usize)..end.min(*stop as usize) {
                let bit = kept & 1 << (code - start);
                let counts = from.is_new == is_new && from.since_ms <= at_ms;
                counted = if counts {
                    counted | bit
                } else {
                    counted & !bit
                };
            }
        }
        counted
    }

    /// From when on its parts count.
    pub fn times(&self) -> impl Iterator<Item = i64> {
        self.since.iter().map(|(.., from)| from.since_ms)
    }

    /// Whether anything of it is new.
    pub fn has_new(&self) -> bool {
        self.since.iter().any(|(.., from)| from.is_new)
    }

    fn find(&self, codes: &[u32]) -> Option<u32> {
        match self.find_own(codes) {
            None if self.is_full() => self.find_other(),
            found => found,
        }
    }

    fn is_full(&self) -> bool {
        self.count >= self.limit
    }

    fn find_other(&self) -> Option<u32> {
        match &self.numbers {
            Numbers::Total(number) => *number,
            Numbers::Alone(numbers) => numbers.get(OTHER as usize).copied().filter(is_set),
            Numbers::Several(numbers) => numbers.get(&self.other()).copied(),
        }
    }

    fn find_own(&self, codes: &[u32]) -> Option<u32> {
        match &self.numbers {
            Numbers::Total(number) => *number,
            Numbers::Alone(numbers) => {
                let number = numbers.get(codes[self.places[0]] as usize).copied();
                number.filter(is_set)
            }
            Numbers::Several(numbers) => numbers.get(&self.own(codes)).copied(),
        }
    }

    fn other(&self) -> Box<[u32]> {
        vec![OTHER; self.places.len()].into()
    }

    /// The codes of its dimensions.
    fn own(&self, codes: &[u32]) -> Box<[u32]> {
        self.places.iter().map(|place| codes[*place]).collect()
    }

    fn put(&mut self, own: &[u32], number: u32) {
        self.count += 1;
        match &mut self.numbers {
            Numbers::Total(total) => *total = Some(number),
            Numbers::Alone(numbers) => {
                let code = own[0] as usize;
                if code >= numbers.len() {
                    numbers.resize(code + 1, UNSET);
                }
                if numbers[code] == UNSET {
                    numbers[code] = number;
                }
            }
            Numbers::Several(numbers) => {
                numbers.entry(own.into()).or_insert(number);
            }
        }
    }
}

/// The segments of one partition.
#[derive(Debug)]
pub struct Segments {
    pub rollups: Vec<Rollup>,
    /// The rollup of each, and the codes of its dimensions.
    rows: Vec<(u32, Box<[u32]>)>,
    split_blocks: usize,
}

impl Segments {
    /// `limit`: of segments of a rollup of several dimensions.
    pub fn new(rollups: &[spec::RollupSpec], order: &Order, limit: usize) -> Self {
        let rollups = rollups.iter().map(|spec| Rollup::new(spec, order, limit));
        let rollups: Vec<Rollup> = rollups.collect();
        let split = rollups.iter().filter(|rollup| !rollup.places.is_empty());
        Self {
            split_blocks: split.map(|rollup| rollup.kept.len()).max().unwrap_or(0),
            rollups,
            rows: Vec::new(),
        }
    }

    /// How many blocks, the first ones, hold what a rollup of any dimension keeps.
    pub fn split_blocks(&self) -> usize {
        self.split_blocks
    }

    /// The segment of a combination with these codes under a rollup, if it was learnt.
    pub fn find(&self, rollup: usize, codes: &[u32]) -> Option<u32> {
        self.rollups[rollup].find(codes)
    }

    /// Likewise, which is numbered if it is new.
    pub fn learn(&mut self, rollup: usize, codes: &[u32]) -> u32 {
        let is_full = self.rows.len() >= MAX_SEGMENTS;
        let of = &mut self.rollups[rollup];
        if let Some(number) = of.find_own(codes) {
            return number;
        }
        if !of.is_full() && !is_full {
            let own = of.own(codes);
            return self.number(rollup, own);
        }
        of.overflowed += 1;
        let (other, found) = (of.other(), of.find_other());
        found.unwrap_or_else(|| self.number(rollup, other))
    }

    fn number(&mut self, rollup: usize, own: Box<[u32]>) -> u32 {
        let number = self.rows.len() as u32;
        self.rollups[rollup].put(&own, number);
        self.rows.push((rollup as u32, own));
        number
    }

    /// The place of its rollup, and the codes of its dimensions, by number.
    pub fn rows(&self) -> &[(u32, Box<[u32]>)] {
        &self.rows
    }

    /// Takes over segments under the numbers that they have. An error where there is no such rollup.
    pub fn load(&mut self, rows: Vec<(u32, Vec<u32>)>) -> Result<(), String> {
        for (rollup, codes) in rows {
            let of = self.rollups.get(rollup as usize);
            if of.is_none_or(|of| of.places.len() != codes.len()) {
                return Err(format!("a stored segment has the rollup {rollup}"));
            }
            self.number(rollup as usize, codes.into());
        }
        Ok(())
    }
}

/// Where combinations stand.
pub struct Placement<'a, C> {
    pub combinations: &'a C,
    pub segments: &'a Segments,
}

impl<C> Clone for Placement<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Placement<'_, C> {}

impl<C: CombinationCodes> Placement<'_, C> {
    /// The segment of a combination that was learnt.
    pub fn of(&self, combination: Combination, rollup: usize) -> Option<u32> {
        self.segments
            .find(rollup, self.combinations.codes(combination))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(limit: usize) -> Segments {
        let rollup = |dimensions: &[usize]| spec::RollupSpec {
            dimensions: dimensions.to_vec(),
            kept: vec![(0, 3)],
            has_users: false,
            since: Vec::new(),
        };
        let rollups = [rollup(&[]), rollup(&[1]), rollup(&[0, 2])];
        Segments::new(&rollups, &Order::new(&rollups), limit)
    }

    #[test]
    fn a_combination_has_a_segment_in_each_rollup() {
        let mut segments = segments(10);
        let codes = [[2, 3, 4], [2, 5, 4], [6, 3, 4]];
        let numbers = codes.map(|codes| [0, 1, 2].map(|rollup| segments.learn(rollup, &codes)));
        assert_eq!(numbers, [[0, 1, 2], [0, 3, 2], [0, 1, 4]]);
        assert_eq!(segments.find(2, &[6, 9, 4]), Some(4));
        assert_eq!(segments.find(1, &[6, 9, 4]), None);
        let rows = segments.rows().iter();
        let rows: Vec<(u32, Vec<u32>)> = rows.map(|(of, codes)| (*of, codes.to_vec())).collect();
        let mut loaded = self::segments(10);
        loaded.load(rows.clone()).unwrap();
        assert_eq!(loaded.find(2, &[6, 9, 4]), Some(4));
        assert!(loaded.load(vec![(1, vec![])]).is_err());
        assert!(loaded.load(vec![(3, vec![])]).is_err());
    }

    #[test]
    fn a_full_rollup_has_other_for_what_is_new_and_others_go_on() {
        let mut segments = segments(2);
        let own: Vec<u32> = (2..6)
            .map(|code| segments.learn(2, &[code, 0, 0]))
            .collect();
        assert_eq!(own, [0, 1, 2, 2]);
        assert_eq!(segments.learn(2, &[2, 7, 0]), 0);
        assert_eq!(segments.find(2, &[9, 0, 0]), Some(2));
        assert_eq!(*segments.rows()[2].1, [OTHER, OTHER]);
        let alone: Vec<u32> = (2..9)
            .map(|code| segments.learn(1, &[0, code, 0]))
            .collect();
        assert_eq!(alone, [3, 4, 5, 6, 7, 8, 9]);
        let overflowed = segments.rollups.iter().map(|rollup| rollup.overflowed);
        assert_eq!(overflowed.collect::<Vec<_>>(), [0, 0, 2]);
    }

    #[test]
    fn what_a_rollup_keeps_counts_from_its_own_time_on() {
        let spec = spec::RollupSpec {
            dimensions: vec![0],
            kept: vec![(0, 4)],
            has_users: false,
            since: vec![
                (
                    1,
                    2,
                    CountFrom {
                        since_ms: 50,
                        is_new: true,
                    },
                ),
                (
                    3,
                    4,
                    CountFrom {
                        since_ms: 70,
                        is_new: false,
                    },
                ),
            ],
        };
        let order = Order::new(std::slice::from_ref(&spec));
        let rollup = Rollup::new(&spec, &order, 10);
        let counted = |at_ms, is_new| rollup.counted(0, at_ms, is_new);
        assert_eq!(
            [40, 60, 80].map(|at_ms| counted(at_ms, false)),
            [0b0101, 0b0101, 0b1101]
        );
        assert_eq!([40, 60].map(|at_ms| counted(at_ms, true)), [0, 0b0010]);
        assert!(rollup.has_new());
    }
}
