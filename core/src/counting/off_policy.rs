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
