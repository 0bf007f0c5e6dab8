//! What impressions say of other policies: what each with a weight adds to sums. Formulas and
//! sources stand in `streamer/metrics/off_policy.py`.
//!
//! An impression adds its amounts as not clicked when it is shown, and the difference when that
//! changes.

use crate::changes::{PolicyChange, PolicyOutcome};
use crate::counting::scores::square;
use crate::weights::{VALUE_UNIT, WEIGHT_UNIT};

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
    /// What a change adds for a policy, by its place in the settings.
    pub fn of(self, policy: usize, change: &PolicyChange) -> i64 {
        let Some(weight) = change.weight.units().filter(|_| policy == change.policy) else {
            return 0;
        };
        let is_estimated = change.weight.is_estimated();
        match change.of {
            PolicyOutcome::Shown {
                is_clipped,
                unclicked,
            } => match self {
                Self::Impressions => 1,
                Self::Clipped => i64::from(is_clipped),
                Self::Weight => weight,
                Self::WeightSquare => square(weight, WEIGHT_UNIT),
                Self::ClickedWeight => 0,
                Self::Estimated => i64::from(is_estimated),
                Self::DoublyRobust => unclicked,
            },
            PolicyOutcome::Clicked(sign) => match self {
                Self::ClickedWeight => sign * weight,
                Self::DoublyRobust if is_estimated => sign * weight * VALUE_UNIT / WEIGHT_UNIT,
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
        let change = |code: i32, of| PolicyChange {
            event_ms: 0,
            combination: 0,
            user: 0,
            policy: 1,
            weight: Weight::of_code(code),
            of,
        };
        let shown = PolicyOutcome::Shown {
            is_clipped: true,
            unclicked: -7,
        };
        let estimated = 1 << 30;
        let of = |code: i32, quantity| {
            let amount = |of| PolicyAmount::of(quantity, 1, &change(code, of));
            let clicked = amount(PolicyOutcome::Clicked(1));
            assert_eq!(clicked, -amount(PolicyOutcome::Clicked(-1)));
            (amount(shown), clicked)
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
        assert_eq!(PolicyAmount::Impressions.of(0, &change(5, shown)), 0);
    }
}
