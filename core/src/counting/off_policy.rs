//! What impressions say of other policies: what each with a weight adds to sums. Formulas and
//! sources stand in `streamer/metrics/off_policy.py`.
//!
//! An impression adds its amounts as not clicked when it is shown, and the difference when that
//! changes.

use serde::Deserialize;

use crate::changes::{Weighing, WeighingOf};
use crate::counting::named_sums::square;
use crate::weights::{VALUE_UNIT, WEIGHT_UNIT};

/// What is added up for one policy: counts, weights and their squares in units of 1e-6, doubly
/// robust values in units of 1e-9.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Impressions,
    Clipped,
    Weight,
    WeightSquare,
    /// Weights of clicked impressions.
    ClickedWeight,
    /// Impressions whose reward was estimated, and their values.
    Estimated,
    DoublyRobust,
}

/// A sum; `policy`: its place in the settings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PolicySum {
    pub policy: usize,
    pub quantity: Quantity,
}

impl PolicySum {
    /// What a change adds.
    pub fn amount(self, change: &Weighing) -> i64 {
        let Some(weight) = change
            .weight
            .units()
            .filter(|_| self.policy == change.policy)
        else {
            return 0;
        };
        let is_estimated = change.weight.is_estimated();
        match change.of {
            WeighingOf::Shown {
                is_clipped,
                unclicked,
            } => match self.quantity {
                Quantity::Impressions => 1,
                Quantity::Clipped => i64::from(is_clipped),
                Quantity::Weight => weight,
                Quantity::WeightSquare => square(weight, WEIGHT_UNIT),
                Quantity::ClickedWeight => 0,
                Quantity::Estimated => i64::from(is_estimated),
                Quantity::DoublyRobust => unclicked,
            },
            WeighingOf::Clicked(sign) => match self.quantity {
                Quantity::ClickedWeight => sign * weight,
                Quantity::DoublyRobust if is_estimated => sign * weight * VALUE_UNIT / WEIGHT_UNIT,
                _ => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Weight;

    #[test]
    fn amounts_are_those_of_the_formulas() {
        let change = |code: i32, of| Weighing {
            event_ms: 0,
            segment: 0,
            user: 0,
            policy: 1,
            weight: Weight::of_code(code),
            of,
        };
        let shown = WeighingOf::Shown {
            is_clipped: true,
            unclicked: -7,
        };
        let estimated = 1 << 30;
        let of = |code: i32, quantity| {
            let sum = PolicySum {
                policy: 1,
                quantity,
            };
            let clicked = sum.amount(&change(code, WeighingOf::Clicked(1)));
            assert_eq!(clicked, -sum.amount(&change(code, WeighingOf::Clicked(-1))));
            (sum.amount(&change(code, shown)), clicked)
        };
        let with = estimated | 2_000_001;
        assert_eq!(of(with, Quantity::Impressions), (1, 0));
        assert_eq!(of(with, Quantity::Clipped), (1, 0));
        assert_eq!(of(with, Quantity::Weight), (2_000_001, 0));
        assert_eq!(of(with, Quantity::WeightSquare), (4_000_004, 0));
        assert_eq!(of(with, Quantity::ClickedWeight), (0, 2_000_001));
        assert_eq!(of(with, Quantity::Estimated), (1, 0));
        assert_eq!(of(with, Quantity::DoublyRobust), (-7, 2_000_001_000));
        assert_eq!(of(2_000_001, Quantity::Estimated), (0, 0));
        assert_eq!(of(2_000_001, Quantity::DoublyRobust).1, 0);
        assert_eq!(of(-1, Quantity::Impressions), (0, 0));
        let other = PolicySum {
            policy: 0,
            quantity: Quantity::Impressions,
        };
        assert_eq!(other.amount(&change(5, shown)), 0);
    }
}
