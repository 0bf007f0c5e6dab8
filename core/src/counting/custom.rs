//! Custom metrics: which events count by their segment, and what they add to sums and sketches.
//! Formulas stand in `streamer/metrics/custom.py`.

use serde::Deserialize;

use super::Counting;
use crate::changes::{Segment, Valued};
use crate::counting::components::Change;
use crate::counting::named_sums::NamedSums;
use crate::counting::statistics::{Places, limbs};
use crate::custom::Values;
use crate::hash::is_anonymous;
use crate::panes::Panes;
use crate::panes::dimensions::Dimensions;
use crate::spec::{Named, Spec};

/// What is added up for a metric.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Events,
    /// Low and high limb of the values; the low one is not below 0.
    Sum,
    SumHigh,
    /// Likewise of the events that have a user.
    SumOfUsers,
    SumOfUsersHigh,
}

/// A sum; `metric`: its place in the settings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct CustomSum {
    pub metric: usize,
    pub quantity: Quantity,
}

impl CustomSum {
    /// What a change adds.
    pub fn amount(self, change: &Valued) -> i64 {
        if self.metric != change.metric {
            return 0;
        }
        let of_user = i64::from(!is_anonymous(change.user));
        let (high, low) = limbs(change.value);
        change.sign
            * match self.quantity {
                Quantity::Events => 1,
                Quantity::Sum => low,
                Quantity::SumHigh => high,
                Quantity::SumOfUsers => of_user * low,
                Quantity::SumOfUsersHigh => of_user * high,
            }
    }
}

/// What Python says of custom metrics.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomSpec {
    pub metrics: Vec<MetricSpec>,
    pub sums: Vec<Named<CustomSum>>,
    /// Upper bounds of the buckets of magnitudes, ascending; up to the first a value counts as 0.
    pub upper: Vec<i64>,
}

/// One metric.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    /// Places of dimensions, and the values under which events count.
    pub only: Vec<(usize, Vec<String>)>,
    /// The statistic of its sketch.
    pub sketch: Option<String>,
}

/// A segment that was not looked at yet.
const NOT_YET: u16 = u16::MAX;

/// Which metrics count under a segment.
#[derive(Debug)]
pub(super) struct Filters {
    metrics: Vec<MetricSpec>,
    /// Bits of the metrics, by segment. They stay: values that are named are always kept.
    known: Vec<u16>,
}

impl Filters {
    pub fn new(spec: &CustomSpec) -> Self {
        Self {
            metrics: spec.metrics.clone(),
            known: Vec::new(),
        }
    }

    fn of(&mut self, segment: Segment, dimensions: &Dimensions) -> u16 {
        let at = segment as usize;
        if at >= self.known.len() {
            self.known.resize(dimensions.len().max(at + 1), NOT_YET);
        }
        if self.known[at] == NOT_YET {
            self.known[at] = self.look(dimensions, segment);
        }
        self.known[at]
    }

    fn look(&self, dimensions: &Dimensions, segment: Segment) -> u16 {
        let codes = dimensions.codes(segment);
        let counts = |metric: &MetricSpec| {
            metric.only.iter().all(|(dimension, values)| {
                values.contains(&dimensions.values[*dimension].texts[codes[*dimension] as usize])
            })
        };
        let bits = (0..).zip(&self.metrics);
        bits.map(|(bit, metric)| u16::from(counts(metric)) << bit)
            .sum()
    }
}

/// Statistics of the metrics, and where they stand.
#[derive(Debug)]
pub(super) struct Customs {
    sums: NamedSums<CustomSum>,
    /// The first bucket of each metric that has a sketch.
    sketches: Vec<Option<u32>>,
    upper: Vec<i64>,
}

impl Customs {
    /// None where there are no metrics.
    pub fn of(spec: &Spec, places: &Places<'_>) -> Result<Option<Self>, String> {
        let spec = &spec.custom;
        let width = 2 * spec.upper.len().max(1) - 1;
        let at = |metric: &MetricSpec| match &metric.sketch {
            None => Ok(None),
            Some(name) => places.wide(name, width),
        };
        let sketches = spec.metrics.iter().map(at).collect::<Result<_, String>>()?;
        let sums = NamedSums::of(&spec.sums, "custom_by_user_group", places)?;
        Ok(sums.map(|sums| Self {
            sums,
            sketches,
            upper: spec.upper.clone(),
        }))
    }

    pub fn add(&self, panes: &mut Panes, change: &Valued) {
        let place = (change.event_ms, change.segment, change.user);
        self.sums.add(panes, place, |sum| sum.amount(change));
        if let Some(first) = self.sketches[change.metric] {
            let bucket = bucket_of(&self.upper, change.value);
            let (event_ms, segment) = (change.event_ms, change.segment);
            panes.add(event_ms, segment, first + bucket, change.sign);
        }
    }
}

/// The bucket of a value: negative ones come first, the largest magnitude foremost, then those that
/// count as 0. What is beyond the last bound is in its bucket.
fn bucket_of(upper: &[i64], value: i64) -> u32 {
    let last = upper.len() as u32 - 1;
    let magnitude = upper.partition_point(|bound| *bound < value.abs()) as u32;
    match value < 0 {
        true => last - magnitude.min(last),
        false => last + magnitude.min(last),
    }
}

impl Counting {
    /// The values of an event count, or are retracted; `place`: time, segment and user.
    pub fn valued(
        &mut self,
        values: Option<&Values>,
        (event_ms, segment, user): (i64, Segment, u64),
        sign: i64,
    ) {
        let Some(values) = values else {
            return;
        };
        let counts = self.filters.of(segment, &self.dimensions);
        for (metric, value) in values
            .iter()
            .filter(|(metric, _)| counts >> metric & 1 == 1)
        {
            let change = Valued {
                event_ms,
                segment,
                user,
                metric,
                value,
                sign,
            };
            self.statistics.valued(&mut self.panes, &change);
            self.change(&Change::Valued(change));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::components::LIMB_BITS;
    use crate::hash::anonymous;

    #[test]
    fn limbs_of_negative_values_add_up() {
        let of = |user: u64, value: i64, sign: i64, quantity| {
            let sum = CustomSum {
                metric: 1,
                quantity,
            };
            sum.amount(&Valued {
                event_ms: 0,
                segment: 0,
                user,
                metric: 1,
                value,
                sign,
            })
        };
        for value in [0, 1, -1, 5_000_000_000, -5_000_000_000, 1 << 59, -(1 << 59)] {
            let sums = [
                (Quantity::Sum, Quantity::SumHigh, value),
                (Quantity::SumOfUsers, Quantity::SumOfUsersHigh, 0),
            ];
            for (low, high, of_nobody) in sums {
                for (user, expected) in [(2, value), (anonymous(2), of_nobody)] {
                    let found = (of(user, value, 1, low), of(user, value, 1, high));
                    assert!(found.0 >= 0);
                    assert_eq!((found.1 << LIMB_BITS) + found.0, expected);
                    assert_eq!(of(user, value, -1, low), -found.0);
                }
            }
        }
        assert_eq!(of(2, 7, -1, Quantity::Events), -1);
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
