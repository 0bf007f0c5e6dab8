//! How much an impression says of other policies than the one that showed it: importance weights.
//!
//! The weight for a policy is its probability of showing the item there, over that of the policy
//! that did, at most the bound of the settings. Formulas and sources stand in
//! `streamer/metrics/off_policy.py`.

use crate::spec::records::{Policies, Policy};

/// Policies at most.
pub const MAX_POLICIES: usize = 4;
/// Units of a weight that is 1.
pub const WEIGHT_UNIT: i64 = 1_000_000;
/// Units of a doubly robust value that is 1.
pub const VALUE_UNIT: i64 = 1_000_000_000;

/// What an event says of one shown item; NaN: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Propensities {
    pub shown: f64,
    pub reward_estimate: f64,
    pub targets: [f64; MAX_POLICIES],
    pub estimates: [f64; MAX_POLICIES],
}

impl Default for Propensities {
    fn default() -> Self {
        Self {
            shown: f64::NAN,
            reward_estimate: f64::NAN,
            targets: [f64::NAN; MAX_POLICIES],
            estimates: [f64::NAN; MAX_POLICIES],
        }
    }
}

/// The weight of an impression, and whether its reward was estimated, in one integer: -1 without a
/// weight, else units, and a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(i32);

const ESTIMATED: i32 = 1 << 30;

impl Default for Weight {
    fn default() -> Self {
        Self::NONE
    }
}

impl Weight {
    pub const NONE: Self = Self(-1);

    fn new(units: i64, is_estimated: bool) -> Self {
        Self(units as i32 | if is_estimated { ESTIMATED } else { 0 })
    }

    /// As it is stored.
    pub fn code(self) -> i32 {
        self.0
    }

    pub fn of_code(code: i32) -> Self {
        Self(code)
    }

    /// In `WEIGHT_UNIT`; none where the event does not say it.
    pub fn units(self) -> Option<i64> {
        (self.0 >= 0).then_some(i64::from(self.0 & !ESTIMATED))
    }

    /// Whether the event says what reward was expected of the shown item.
    pub fn is_estimated(self) -> bool {
        self.0 >= 0 && self.0 & ESTIMATED != 0
    }
}

/// Weights of an impression, in the order of the policies.
pub type Weights = [Weight; MAX_POLICIES];

/// A weight, and what follows from it when the item is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed {
    pub weight: Weight,
    pub is_clipped: bool,
    /// The doubly robust value while it is not clicked, in `VALUE_UNIT`; 0 without an estimate.
    pub unclicked: i64,
}

impl Weighed {
    pub const NONE: Self = Self {
        weight: Weight::NONE,
        is_clipped: false,
        unclicked: 0,
    };
}

/// What a shown item says of each policy.
pub type WeighedItem = [Weighed; MAX_POLICIES];

impl Policies {
    /// What a shown item says; `position`: from 1, 0: missing.
    pub fn weigh(&self, said: &Propensities, position: u32) -> WeighedItem {
        let mut found = [Weighed::NONE; MAX_POLICIES];
        for (number, (policy, weighed)) in self.policies.iter().zip(&mut found).enumerate() {
            let target = policy.target(said.targets[number], position);
            let ratio = target / said.shown;
            if ratio.is_nan() {
                continue;
            }
            let units = rounded(ratio.min(self.max_weight), WEIGHT_UNIT);
            let estimate = match policy.estimate {
                Some(_) => said.estimates[number],
                None => f64::NAN, // what the logging policy expects is not what this one does
            };
            let weight = units as f64 / WEIGHT_UNIT as f64;
            let unclicked = estimate - weight * said.reward_estimate;
            let is_estimated = !unclicked.is_nan();
            *weighed = Weighed {
                weight: Weight::new(units, is_estimated),
                is_clipped: ratio > self.max_weight,
                unclicked: if is_estimated {
                    rounded(unclicked, VALUE_UNIT)
                } else {
                    0
                },
            };
        }
        found
    }
}

impl Policy {
    fn target(&self, said: f64, position: u32) -> f64 {
        match (&self.propensity, position) {
            (Some(_), _) => said,
            (None, 0) => f64::NAN,
            (None, _) => self
                .positions
                .get(position as usize - 1)
                .copied()
                .unwrap_or(0.0),
        }
    }
}

/// Halves go up.
fn rounded(value: f64, unit: i64) -> i64 {
    (value * unit as f64 + 0.5).floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(propensity: Option<&str>, estimate: Option<&str>) -> Policies {
        Policies {
            max_weight: 10.0,
            policies: vec![Policy {
                propensity: propensity.map(str::to_owned),
                estimate: estimate.map(str::to_owned),
                positions: vec![0.5, 0.25],
            }],
        }
    }

    fn said(shown: f64, target: f64, reward_estimate: f64, estimate: f64) -> Propensities {
        Propensities {
            shown,
            reward_estimate,
            targets: [target; MAX_POLICIES],
            estimates: [estimate; MAX_POLICIES],
        }
    }

    #[test]
    fn weights_are_ratios_up_to_the_bound() {
        let by_field = policies(Some("p_new"), None);
        let of = |shown, target| by_field.weigh(&said(shown, target, f64::NAN, 0.5), 1)[0];
        assert_eq!(of(0.5, 0.25).weight.units(), Some(500_000));
        assert_eq!(of(0.3, 0.2).weight.units(), Some(666_667));
        assert_eq!(of(0.5, 0.0).weight.units(), Some(0));
        assert_eq!(
            of(0.01, 0.1),
            Weighed {
                weight: Weight(10_000_000),
                is_clipped: false,
                unclicked: 0
            }
        );
        assert_eq!(
            of(1e-300, 1.0),
            Weighed {
                weight: Weight(10_000_000),
                is_clipped: true,
                unclicked: 0
            }
        );
        assert_eq!(of(f64::NAN, 0.5), Weighed::NONE);
        assert_eq!(of(0.5, f64::NAN), Weighed::NONE);
        assert_eq!(
            by_field.weigh(&said(0.5, 0.5, 0.1, 0.1), 1)[1],
            Weighed::NONE
        );
    }

    #[test]
    fn a_table_says_probabilities_by_position() {
        let by_position = policies(None, None);
        let of = |position| by_position.weigh(&said(0.5, f64::NAN, f64::NAN, 0.5), position)[0];
        let units = [0, 1, 2, 3].map(|position| of(position).weight.units());
        assert_eq!(units, [None, Some(1_000_000), Some(500_000), Some(0)]);
    }

    #[test]
    fn values_are_those_expected_less_what_was_expected_of_the_shown_item() {
        let of = |estimate: Option<&str>, reward, expected| {
            let found =
                policies(Some("p"), estimate).weigh(&said(0.5, 0.25, reward, expected), 1)[0];
            (
                found.weight.is_estimated(),
                found.weight.units(),
                found.unclicked,
            )
        };
        assert_eq!(of(None, 0.2, 0.05), (false, Some(500_000), 0));
        assert_eq!(of(Some("q"), 0.2, 0.05), (true, Some(500_000), -50_000_000));
        assert_eq!(of(Some("q"), 0.2, f64::NAN), (false, Some(500_000), 0));
        assert_eq!(of(Some("q"), f64::NAN, 0.1), (false, Some(500_000), 0));
        let largest = Weight::new(1000 * WEIGHT_UNIT, true);
        assert_eq!(largest.units(), Some(1000 * WEIGHT_UNIT));
        assert_eq!(Weight::of_code(largest.code()), largest);
    }
}
