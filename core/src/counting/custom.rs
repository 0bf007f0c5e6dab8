//! Custom metrics: which events count by their combination, and what they add.
//! Formulas stand in `streamer/metrics/custom.py`.

use crate::changes::Combination;
use crate::hash::is_anonymous;
use crate::limbs::limbs;
use crate::panes::dimensions::Dimensions;
use crate::spec::sums::CustomFilter;

/// What is added up for a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomAmount {
    Events,
    /// Low and high limb of the values; the low one is not below 0.
    Low,
    High,
    /// Likewise of the events that have a user.
    LowOfUsers,
    HighOfUsers,
}

impl CustomAmount {
    /// What a value of a user adds.
    pub fn of(self, user: u64, value: i64) -> i64 {
        let of_user = i64::from(!is_anonymous(user));
        let (high, low) = limbs(value);
        match self {
            Self::Events => 1,
            Self::Low => low,
            Self::High => high,
            Self::LowOfUsers => of_user * low,
            Self::HighOfUsers => of_user * high,
        }
    }
}

/// A combination that was not looked at yet.
const NOT_YET: u16 = u16::MAX;

/// Which metrics count under a combination.
#[derive(Debug)]
pub(super) struct Filters {
    metrics: Vec<CustomFilter>,
    /// Bits of the metrics, by combination, as long as numbers keep their values.
    known: Vec<u16>,
    changes: u64,
}

impl Filters {
    pub fn new(metrics: &[CustomFilter]) -> Self {
        Self {
            metrics: metrics.to_vec(),
            known: Vec::new(),
            changes: 0,
        }
    }

    pub fn of(&mut self, combination: Combination, dimensions: &Dimensions) -> u16 {
        if std::mem::replace(&mut self.changes, dimensions.changes) != dimensions.changes {
            self.known.clear();
        }
        let at = combination as usize;
        if at >= self.known.len() {
            self.known.resize(dimensions.len().max(at + 1), NOT_YET);
        }
        if self.known[at] == NOT_YET {
            self.known[at] = self.look(dimensions, combination);
        }
        self.known[at]
    }

    fn look(&self, dimensions: &Dimensions, combination: Combination) -> u16 {
        let codes = dimensions.codes(combination);
        let counts = |metric: &CustomFilter| {
            metric.0.iter().all(|(dimension, values)| {
                values.contains(&dimensions.values[*dimension].texts[codes[*dimension] as usize])
            })
        };
        let bits = (0..).zip(&self.metrics);
        bits.map(|(bit, metric)| u16::from(counts(metric)) << bit)
            .sum()
    }
}

/// The bucket of a value: negative ones come first, the largest magnitude foremost, then those that
/// count as 0. What is beyond the last bound is in its bucket.
pub fn bucket_of(upper: &[i64], value: i64) -> u32 {
    let last = upper.len() as u32 - 1;
    let magnitude = upper.partition_point(|bound| *bound < value.abs()) as u32;
    match value < 0 {
        true => last - magnitude.min(last),
        false => last + magnitude.min(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::anonymous;
    use crate::limbs::LIMB_BITS;

    #[test]
    fn limbs_of_negative_values_add_up() {
        for value in [0, 1, -1, 5_000_000_000, -5_000_000_000, 1 << 59, -(1 << 59)] {
            let sums = [
                (CustomAmount::Low, CustomAmount::High, value),
                (CustomAmount::LowOfUsers, CustomAmount::HighOfUsers, 0),
            ];
            for (low, high, of_nobody) in sums {
                for (user, expected) in [(2, value), (anonymous(2), of_nobody)] {
                    let found = (low.of(user, value), high.of(user, value));
                    assert!(found.0 >= 0);
                    assert_eq!((found.1 << LIMB_BITS) + found.0, expected);
                }
            }
        }
        assert_eq!(CustomAmount::Events.of(2, 7), 1);
    }

    #[test]
    fn buckets_mirror_negative_values() {
        let upper = [9, 19, 29];
        let of = |value| bucket_of(&upper, value);
        assert_eq!([0, 9, -9].map(of), [2, 2, 2]);
        assert_eq!([10, 19, 20, 29, 30].map(of), [3, 3, 4, 4, 4]);
        assert_eq!([-10, -19, -20, -1000].map(of), [1, 1, 0, 0]);
    }
}
