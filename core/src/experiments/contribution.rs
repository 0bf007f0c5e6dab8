//! What a user adds to an experiment: it is found once for all experiments that count the same of the
//! user, and then added to the sums of each.

use ethnum::I256;

use crate::experiments::layout::Block;
use crate::experiments::sums::ExperimentSums;

/// Some sums of a day.
#[derive(Clone, Copy, Debug)]
struct Entry {
    day: i64,
    /// Whether they are those of the user's arm, not of none.
    is_of_arm: bool,
    /// The block that they stand in, and where in it.
    block: Block,
    offset: usize,
    /// Where they stand among the values.
    first: usize,
    count: usize,
}

/// What a user adds.
#[derive(Debug, Default)]
pub struct UserAmounts {
    entries: Vec<Entry>,
    values: Vec<I256>,
}

impl UserAmounts {
    /// Nothing.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.values.clear();
    }

    /// Adds to sums of a block.
    pub fn push(
        &mut self,
        (day, is_of_arm): (i64, bool),
        (block, offset): (Block, usize),
        values: impl Iterator<Item = I256>,
    ) {
        let first = self.values.len();
        self.values.extend(values);
        self.entries.push(Entry {
            day,
            is_of_arm,
            block,
            offset,
            first,
            count: self.values.len() - first,
        });
    }

    /// Adds all of it, `sign` times, to sums; `none` and `own`: the first keys of no arm and of the
    /// user's.
    pub fn add_to(&self, sums: &mut ExperimentSums, (none, own): (i64, i64), sign: i64) {
        for entry in &self.entries {
            let first = if entry.is_of_arm { own } else { none };
            let values = &self.values[entry.first..][..entry.count];
            let key = first + entry.block.first as i64;
            sums.add(
                entry.day,
                (key, entry.block.width, entry.offset),
                values,
                sign,
            );
        }
    }
}
