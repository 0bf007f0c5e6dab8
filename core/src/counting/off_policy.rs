//! What impressions say of other policies: what each with a weight adds to sums. Formulas and
//! sources stand in `streamer/metrics/off_policy.py`.
//!
//! An impression adds its amounts as not clicked when it is shown, and the difference when that
//! changes.

use crate::changes::PolicyOutcome;
use crate::counting::scores::product;
use crate::weights::{VALUE_UNIT, WEIGHT_UNIT, Weight};

/// What is added up for one policy: counts, weights and their squares in units of 1e-6, doubly
/// robust values in units of 1e-9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyAmount {
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

impl PolicyAmount {
    /// What an outcome of a weighed impression adds.
    pub fn of(self, of_impression: Weight, outcome: PolicyOutcome) -> i64 {
        let Some(weight) = of_impression.units() else {
            return 0;
        };
        let is_estimated = of_impression.is_estimated();
        match outcome {
            PolicyOutcome::Shown {
                is_clipped,
                unclicked,
            } => match self {
                Self::Impressions => 1,
                Self::Clipped => i64::from(is_clipped),
                Self::Weight => weight,
                Self::WeightSquare => product(weight, weight, WEIGHT_UNIT),
                Self::ClickedWeight => 0,
                Self::Estimated => i64::from(is_estimated),
                Self::DoublyRobust => unclicked,
            },
            PolicyOutcome::Clicked => match self {
                Self::ClickedWeight => weight,
                Self::DoublyRobust if is_estimated => weight * VALUE_UNIT / WEIGHT_UNIT,
                _ => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_the_formulas() {
        let shown = PolicyOutcome::Shown {
            is_clipped: true,
            unclicked: -7,
        };
        let estimated = 1 << 30;
        let of = |code: i32, quantity| {
            let amount = |outcome| PolicyAmount::of(quantity, Weight::of_code(code), outcome);
            (amount(shown), amount(PolicyOutcome::Clicked))
        };
        let with = estimated | 2_000_001;
        assert_eq!(of(with, PolicyAmount::Impressions), (1, 0));
        assert_eq!(of(with, PolicyAmount::Clipped), (1, 0));
        assert_eq!(of(with, PolicyAmount::Weight), (2_000_001, 0));
        assert_eq!(of(with, PolicyAmount::WeightSquare), (4_000_004, 0));
        assert_eq!(of(with, PolicyAmount::ClickedWeight), (0, 2_000_001));
        assert_eq!(of(with, PolicyAmount::Estimated), (1, 0));
        assert_eq!(of(with, PolicyAmount::DoublyRobust), (-7, 2_000_001_000));
        assert_eq!(of(2_000_001, PolicyAmount::Estimated), (0, 0));
        assert_eq!(of(2_000_001, PolicyAmount::DoublyRobust).1, 0);
        assert_eq!(of(-1, PolicyAmount::Impressions), (0, 0));
    }
}
