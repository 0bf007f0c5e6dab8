//! What attribution emits, and to whom: it decides, and what counts follows from it elsewhere.

use crate::attribution::ShownItem;
use crate::attribution::pending::Feedback;
use crate::changes::{Listed, Member, Outcome, Probed, Slate};
use crate::custom::Values;
use crate::panes::dimensions::Dimensions;
use crate::slates::scoring::PairLosses;
use crate::weights::Weights;

/// A decision.
#[derive(Clone, Copy, Debug)]
pub enum Emitted<'a> {
    /// An item is shown.
    Shown(&'a ShownItem<'a>),
    /// A slate counts under its earliest member, or does not any more.
    Slate(Slate),
    /// The values of a slate with feedback or probes, whose members stand in the order shown.
    Ranked {
        slate: Slate,
        members: &'a [Member],
        probed: Probed,
        losses: Option<PairLosses>,
    },
    /// A list is shown as it is now, or is not any more.
    Listed(Listed<'a>),
    /// Feedback is new.
    Feedback(&'a Feedback, Option<&'a Values>),
    /// Feedback has another segment or position than it was emitted under.
    Moved {
        before: &'a Feedback,
        now: &'a Feedback,
        values: Option<&'a Values>,
    },
    /// Feedback counts since the start from now on.
    Settled(&'a Feedback),
    /// Feedback counts for its user; whether it cannot move any more.
    OfUser(&'a Feedback, bool),
    /// An impression is clicked or converted, or is not any more; what else is kept of it.
    Outcome {
        change: Outcome,
        item: Option<u64>,
        weights: Option<&'a Weights>,
    },
}

/// Takes what is emitted, at once and in this order.
pub trait Sink {
    /// The segments, to which feedback adds what it takes over from its impression.
    fn dimensions(&mut self) -> &mut Dimensions;

    fn emit(&mut self, emitted: Emitted);
}
