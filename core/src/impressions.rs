//! Open impressions: shown items that feedback can still join.

use crate::log::NO_ROW;
use crate::pair_log::{Age, Link, OfPair, PairLog};
use crate::slates::NO_SLATE;

/// One shown item: 64 bytes, and 5 to 12 in the table that finds it.
#[derive(Clone, Copy, Debug)]
pub struct Impression {
    pub pair: u64,
    /// NaN: none.
    pub score: f64,
    pub event_ms: i64,
    pub offset: i64,
    /// Place among the items of its event.
    pub index: u16,
    /// From 1; 0: missing.
    pub position: u16,
    pub segment: u16,
    /// What the event says of it beside its place: see `slate_values`.
    pub probe: i16,
    /// The slate that it is shown in; `NO_SLATE`: none.
    pub slate: u32,
    /// The member of the slate before it.
    pub prev_in_slate: u32,
    /// What is retained of it since it has feedback; `NO_ROW`: nothing.
    pub retained: u32,
    /// Whether it is graded with its slate: those beyond the bound of a slate are not.
    pub is_member: bool,
    link: Link,
}

impl Impression {
    /// An impression that is linked to nothing yet.
    pub fn new(pair: u64, (event_ms, offset, index): Age) -> Self {
        Self {
            pair,
            score: f64::NAN,
            event_ms,
            offset,
            index,
            position: 0,
            segment: 0,
            probe: 0,
            slate: NO_SLATE,
            prev_in_slate: NO_ROW,
            retained: NO_ROW,
            is_member: false,
            link: Link::default(),
        }
    }
}

impl OfPair for Impression {
    fn pair(&self) -> u64 {
        self.pair
    }
    fn age(&self) -> Age {
        (self.event_ms, self.offset, self.index)
    }
    fn link(&self) -> Link {
        self.link
    }
    fn set_link(&mut self, link: Link) {
        self.link = link;
    }
}

/// The open impressions of one partition.
pub type Impressions = PairLog<Impression>;

const _: () = assert!(size_of::<Impression>() == 64);
