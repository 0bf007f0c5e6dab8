//! Custom metrics: sums over any numeric field of events, as the settings name them. Formulas stand
//! in `streamer/metrics/custom.py`.

use crate::spec::records::CustomField;

use crate::kinds::EventKind;

/// Custom metrics at most.
pub const MAX_CUSTOM: usize = 8;
/// Units of a value that is 1.
pub const UNIT: i64 = 1_000_000;
/// Stands for a value that an event does not carry.
pub const NO_VALUE: i64 = i64::MIN;

impl CustomField {
    /// Whether it is over events of a topic.
    pub fn is_of(&self, topic: EventKind) -> bool {
        self.kind == topic.name()
    }

    /// Whether it is over events that join impressions.
    pub fn is_of_feedback(&self) -> bool {
        self.is_of(EventKind::Clicks) || self.is_of(EventKind::Conversions)
    }
}

/// What an event, or one of its items, says to each metric, in the order of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values([i64; MAX_CUSTOM]);

impl Values {
    pub const NONE: Self = Self([NO_VALUE; MAX_CUSTOM]);

    /// Takes a number; NaN: missing. Ties are rounded to even.
    pub fn set(&mut self, metric: usize, value: f64) {
        if !value.is_nan() {
            self.0[metric] = (value * UNIT as f64).round_ties_even() as i64;
        }
    }

    /// The metrics that it has a value for, and the values in `UNIT`.
    pub fn iter(&self) -> impl Iterator<Item = (usize, i64)> + use<> {
        let values = self.0.into_iter().enumerate();
        values.filter(|(_, value)| *value != NO_VALUE)
    }

    /// As it is stored.
    pub fn code(&self, metric: usize) -> i64 {
        self.0[metric]
    }

    pub fn set_code(&mut self, metric: usize, code: i64) {
        self.0[metric] = code;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_once_and_may_be_missing() {
        let mut values = Values::NONE;
        values.set(0, -1.5);
        values.set(1, f64::NAN);
        values.set(2, 0.000_000_5);
        values.set(7, 1e12);
        let found: Vec<_> = values.iter().collect();
        assert_eq!(
            found,
            [(0, -1_500_000), (2, 0), (7, 1_000_000_000_000 * UNIT)]
        );
        let mut stored = Values::NONE;
        (0..MAX_CUSTOM).for_each(|metric| stored.set_code(metric, values.code(metric)));
        assert_eq!(stored, values);
    }
}
