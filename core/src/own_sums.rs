//! Sums of one's own, numerators and denominators of `[[ratios]]`: what events say to them. What
//! counts stands in `counting/own_sums.rs`, formulas in `streamer/metrics/own_ratios.py`.

use crate::json::Reader;
use crate::spec::records::{Bound, FieldOf, Test};

/// Different fields that are added up, at most.
pub const MAX_AMOUNTS: usize = 8;
/// Units of a value that is 1.
pub const UNIT: i64 = 1_000_000;
/// Stands for a value that an event does not carry.
pub const NO_VALUE: i64 = i64::MIN;

impl FieldOf {
    /// Whether it is of events that join impressions.
    pub fn is_of_feedback(&self) -> bool {
        matches!(self.kind.as_str(), "clicks" | "conversions")
    }
}

impl Test {
    /// Whether a text passes, or a number or a boolean as it is written.
    pub fn passes(&self, value: &str) -> bool {
        match self {
            Self::Among { texts, numbers } => {
                texts.iter().any(|text| text == value)
                    || !numbers.is_empty() && number(value).is_some_and(|x| numbers.contains(&x))
            }
            Self::Bounds(_) => number(value).is_some_and(|x| self.passes_number(x)),
        }
    }

    /// Whether a number passes; NaN, which stands for none, does not.
    pub fn passes_number(&self, value: f64) -> bool {
        match self {
            Self::Among { numbers, .. } => numbers.contains(&value),
            Self::Bounds(bounds) => !value.is_nan() && bounds.iter().all(|x| x.contains(value)),
        }
    }
}

impl Bound {
    fn contains(&self, value: f64) -> bool {
        match self {
            Self::Above(bound) => value > *bound,
            Self::Below(bound) => value < *bound,
            Self::AtLeast(bound) => value >= *bound,
            Self::AtMost(bound) => value <= *bound,
        }
    }
}

/// A text that is a number as JSON writes it.
fn number(text: &str) -> Option<f64> {
    let mut reader = Reader::new(text, 0);
    let is_number = matches!(text.as_bytes(), [b'-' | b'0'..=b'9', ..] if text.trim_end() == text);
    let number = reader.number().ok().filter(|_| is_number)?;
    number.double().filter(|_| reader.is_at_end())
}

/// What an event, or one of its items, says to own sums: the conditions that it meets, a bit each,
/// and the amounts that it has, in the order of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    pub met: u32,
    amounts: [i64; MAX_AMOUNTS],
}

impl Values {
    pub const NONE: Self = Self {
        met: 0,
        amounts: [NO_VALUE; MAX_AMOUNTS],
    };

    /// Takes a number; NaN: missing. Ties are rounded to even.
    pub fn set(&mut self, amount: usize, value: f64) {
        if !value.is_nan() {
            self.amounts[amount] = (value * UNIT as f64).round_ties_even() as i64;
        }
    }

    /// An amount in `UNIT`; without a place each event is 1.
    pub fn amount(&self, amount: Option<usize>) -> Option<i64> {
        let value = amount.map_or(UNIT, |at| self.amounts[at]);
        (value != NO_VALUE).then_some(value)
    }

    /// As it is stored.
    pub fn code(&self, amount: usize) -> i64 {
        self.amounts[amount]
    }

    pub fn set_code(&mut self, amount: usize, code: i64) {
        self.amounts[amount] = code;
    }
}

/// The places of the bits that are set.
pub fn places(bits: u32) -> impl Iterator<Item = usize> {
    (0..u32::BITS as usize).filter(move |place| bits >> place & 1 == 1)
}
