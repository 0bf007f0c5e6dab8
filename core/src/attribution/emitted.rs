//! What attribution emits, and to whom: it decides, and what counts follows from it elsewhere.

use crate::attribution::pending::Feedback;
use crate::changes::{Age, Change, ItemOf, UserAt};
use crate::own_sums::Values;
use crate::panes::dimensions::Dimensions;
use crate::slates::members::{Member, Probed};
use crate::slates::pairs::PairLosses;
use crate::slates::probes::EventProbes;
use crate::weights::{WeighedItem, Weights};

/// One shown item of an accepted event.
#[derive(Clone, Copy, Debug)]
pub struct ShownItem<'a> {
    pub at: UserAt,
    /// What feedback joins it by: its own id, else its person and item.
    pub pair: u64,
    /// Its person and item.
    pub item_pair: u64,
    pub item: ItemOf,
    /// `hash::NONE` without a slate.
    pub slate_key: u64,
    pub arrival_ms: i64,
    pub offset: i64,
    pub index: u16,
    pub position: u16,
    pub score: f64,
    pub probes: EventProbes<'a>,
    /// None where there are no policies.
    pub weights: Option<&'a WeighedItem>,
    /// None where there are no own sums.
    pub values: Option<&'a Values>,
}

impl ShownItem<'_> {
    pub fn age(&self) -> Age {
        (self.at.event_ms, self.offset, self.index)
    }
}

/// A decision. `sign`: 1 where something counts from now on, -1 where it does not any more.
#[derive(Clone, Copy, Debug)]
pub enum Emitted<'a> {
    /// An item is shown.
    Shown(&'a ShownItem<'a>),
    /// A slate, under its earliest member.
    Slate(UserAt, i64),
    /// The values of a slate with feedback or probes, whose members stand in the order shown.
    Ranked {
        at: UserAt,
        sign: i64,
        members: &'a [Member],
        probed: Probed,
        losses: Option<PairLosses>,
    },
    /// The list of a slate.
    List {
        at: UserAt,
        sign: i64,
        items: &'a [ItemOf],
    },
    /// Feedback is new.
    Feedback(&'a Feedback, Option<&'a Values>),
    /// Feedback has another combination, position or impression than it was emitted under.
    Moved {
        before: &'a Feedback,
        now: &'a Feedback,
        values: Option<&'a Values>,
    },
    /// Feedback counts since the start from now on.
    Settled(&'a Feedback),
    /// Feedback counts for its user; whether it cannot move any more.
    OfUser(&'a Feedback, bool),
    /// A rating of an impression.
    Rated(Change<'a>),
    /// An impression is clicked or converted, or is not any more; what else is kept of it.
    Outcome {
        change: Change<'a>,
        item: Option<u64>,
        weights: Option<&'a Weights>,
    },
}

/// Takes what is emitted, at once and in this order.
pub trait Sink {
    /// The combinations, to which feedback adds what it takes over from its impression.
    fn dimensions(&mut self) -> &mut Dimensions;

    fn emit(&mut self, emitted: Emitted);
}
