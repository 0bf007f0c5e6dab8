//! Weights of impressions, kept only where there are policies.

use crate::attribution::beside::Beside;
use crate::attribution::{Attribution, ShownItem};
use crate::changes::{Outcome, Weighing, WeighingOf};
use crate::counting::Counting;
use crate::weights::{WeighedItem, Weights};

impl Attribution {
    /// Emits what a shown item says of each policy.
    pub(super) fn emit_weights(&self, item: &ShownItem, of: &WeighedItem, counting: &mut Counting) {
        for (policy, weighed) in of.iter().enumerate().take(self.policies) {
            counting.weighed(&Weighing {
                event_ms: item.event_ms,
                segment: item.segment,
                user: item.user,
                policy,
                weight: weighed.weight,
                of: WeighingOf::Shown {
                    is_clipped: weighed.is_clipped,
                    unclicked: weighed.unclicked,
                },
            });
        }
    }
}

impl Beside<Weights> {
    /// Emits what a retained impression says of each policy, where it is clicked now, or is not any
    /// more.
    pub(super) fn emit_outcome(&self, row: u32, change: &Outcome, counting: &mut Counting) {
        let weights = self.retained.get(row).filter(|_| change.clicked != 0);
        for (policy, weight) in weights.into_iter().flatten().enumerate() {
            counting.weighed(&Weighing {
                event_ms: change.event_ms,
                segment: change.segment,
                user: change.user,
                policy,
                weight: *weight,
                of: WeighingOf::Clicked(change.clicked),
            });
        }
    }
}
