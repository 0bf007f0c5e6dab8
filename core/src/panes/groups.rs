//! Segment groups: segments under one rollup, where the dimensions outside it are `all`. Statistics
//! of users do not add over segments (a user may be in several), so each group has its own.

use std::collections::HashMap;

use crate::changes::Segment;

/// The code of a dimension outside the rollup.
pub const ALL: i64 = -1;
/// Of a segment that was not looked at.
const UNKNOWN: u32 = u32::MAX;

/// What groups need to know of segments.
pub trait SegmentCodes {
    /// The code of each dimension's value.
    fn codes(&self, segment: Segment) -> &[u32];
    /// The segment that this one is counted as, after values were folded into `other`.
    fn resolve(&self, segment: Segment) -> Segment;
}

/// Numbers for the groups of all rollups.
#[derive(Debug)]
pub struct Groups {
    /// Places of the dimensions that each rollup keeps.
    rollups: Vec<Vec<usize>>,
    /// The value codes of each group.
    tuples: Vec<Box<[i64]>>,
    numbers: HashMap<Box<[i64]>, u32>,
    /// The group of each segment, a rollup after another.
    of: Vec<u32>,
}

impl Groups {
    pub fn new(rollups: Vec<Vec<usize>>) -> Self {
        Self {
            rollups,
            tuples: Vec::new(),
            numbers: HashMap::new(),
            of: Vec::new(),
        }
    }

    /// Number of rollups.
    pub fn rollups(&self) -> usize {
        self.rollups.len()
    }

    /// The value codes of each group, by its number.
    pub fn tuples(&self) -> &[Box<[i64]>] {
        &self.tuples
    }

    /// The group of a segment that `learn` was called for.
    pub fn of(&self, segment: Segment, rollup: usize) -> Option<u32> {
        let group = *self
            .of
            .get(segment as usize * self.rollups.len() + rollup)?;
        (group != UNKNOWN).then_some(group)
    }

    /// Look at a segment, if that was not done yet.
    pub fn learn(&mut self, segment: Segment, codes: &impl SegmentCodes) {
        let first = segment as usize * self.rollups.len();
        if self.of.len() <= first {
            self.of.resize(first + self.rollups.len(), UNKNOWN);
        }
        for rollup in 0..self.rollups.len() {
            if self.of[first + rollup] == UNKNOWN {
                let all = codes.codes(codes.resolve(segment));
                self.of[first + rollup] = self.number(rollup, all);
            }
        }
    }

    /// Forget the groups of a segment, whose codes are about to change.
    pub fn forget(&mut self, segment: Segment) {
        let first = segment as usize * self.rollups.len();
        if let Some(groups) = self.of.get_mut(first..first + self.rollups.len()) {
            groups.fill(UNKNOWN);
        }
    }

    fn number(&mut self, rollup: usize, codes: &[u32]) -> u32 {
        let kept = &self.rollups[rollup];
        let masked = codes.iter().enumerate();
        let masked: Box<[i64]> = masked
            .map(|(place, code)| {
                if kept.contains(&place) {
                    i64::from(*code)
                } else {
                    ALL
                }
            })
            .collect();
        if let Some(number) = self.numbers.get(&masked) {
            return *number;
        }
        let number = self.tuples.len() as u32;
        self.tuples.push(masked.clone());
        self.numbers.insert(masked, number);
        number
    }
}
