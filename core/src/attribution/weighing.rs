//! Weights of impressions, kept apart from them and only where there are policies: rows have the
//! numbers of the impressions.

use crate::attribution::ShownItem;
use crate::changes::{Outcome, Weighing, WeighingOf};
use crate::counting::Counting;
use crate::log::Log;
use crate::weights::{MAX_POLICIES, WeighedItem, Weight, Weights};

/// Those of one partition.
#[derive(Debug)]
pub struct WeightLogs {
    /// How many policies there are.
    pub policies: usize,
    /// Of open impressions, and of retained ones.
    pub open: Log<Weights>,
    pub retained: Log<Weights>,
}

impl WeightLogs {
    pub fn new(policies: usize) -> Self {
        Self {
            policies,
            open: Log::default(),
            retained: Log::default(),
        }
    }

    /// A new open impression.
    pub(super) fn push_open(&mut self, item: Option<&WeighedItem>) {
        let weights = item.map(|weighed| weighed.map(|found| found.weight));
        self.load_open(weights.unwrap_or([Weight::NONE; MAX_POLICIES]));
    }

    /// An open impression is retained.
    pub(super) fn retain(&mut self, open: u32) {
        let weights = self.open.get(open).copied();
        self.load_retained(weights.unwrap_or([Weight::NONE; MAX_POLICIES]));
    }

    /// Emits what a shown item says of each policy.
    pub(super) fn emit_shown(&self, item: &ShownItem, of: &WeighedItem, counting: &mut Counting) {
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

    /// A stored open impression, and a retained one.
    pub fn load_open(&mut self, weights: Weights) {
        if self.policies > 0 {
            self.open.push(weights);
        }
    }

    pub fn load_retained(&mut self, weights: Weights) {
        if self.policies > 0 {
            self.retained.push(weights);
        }
    }

    pub fn bytes(&self) -> usize {
        self.open.bytes() + self.retained.bytes()
    }
}
