//! Alert series: the sums of one metric over time, by groups of users or pane by pane.
//!
//! By groups: all that a user did is in one of 16 groups in every pane, so that sums of groups vary
//! as users do. By time: a cell holds 16 consecutive panes, one place each. A series is kept apart
//! from everything else, so that others stay when one comes or goes.

use crate::changes::UserAt;
use crate::counting::statistics::{GROUPS, group_of};
use crate::panes::dimensions::Dimensions;
use crate::panes::labels::Labels;
use crate::panes::rings::Rings;
use crate::panes::{Overflow, Panes};
use crate::spec;

/// One series of one partition.
#[derive(Debug)]
pub struct Series {
    spec: spec::SeriesSpec,
    pub labels: Labels,
    pub panes: Panes,
}

impl Series {
    pub fn new(spec: &spec::SeriesSpec, max_labels: usize) -> Self {
        let labels = Labels::new(spec.dimensions.clone(), max_labels);
        Self {
            spec: spec.clone(),
            labels,
            panes: Panes::new(Rings::new(&spec.rings)),
        }
    }

    /// Adds an amount of one sum.
    pub fn add(&mut self, dimensions: &Dimensions, sum: usize, at: UserAt, amount: i64) {
        for part in self.spec.ratio.parts(sum) {
            let place = match self.spec.by_time_ms {
                Some(pane_ms) => at
                    .event_ms
                    .div_euclid(pane_ms)
                    .rem_euclid(i64::from(GROUPS)) as u32,
                None => group_of(at.user),
            };
            let label = self.labels.of(dimensions, at.combination);
            self.panes
                .add(at.event_ms, label, part as u32 * GROUPS + place, amount);
        }
    }

    /// Brings what was added into the panes.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        self.panes.fold(stream_ms)
    }
}
