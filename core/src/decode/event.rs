//! Typed events: what a record says, ids as hashes.

use super::arms::ArmTexts;
use crate::changes::Amounts;
use crate::hash::{NONE, mix};
use crate::json::Text;
use crate::kinds::{Action, EventKind, FeedbackKind};
use crate::own_sums::Values;
use crate::weights::WeighedItem;

/// One event. It borrows from the record and the decoder.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Epoch milliseconds.
    pub event_ms: i64,
    /// `hash::NONE` where it is missing, as the following ids.
    pub user: u64,
    /// Who the person is in place of the user.
    pub join: u64,
    pub event_id: u64,
    pub request: u64,
    /// The user as it is written; "" where it is missing, as the id of joins.
    pub user_id: &'a str,
    pub join_id: &'a str,
    pub dimensions: DimensionTexts<'a>,
    /// What it says of arms of experiments.
    pub arms: ArmTexts<'a>,
    /// How many values of dimensions were cut, as they are too long.
    pub cut: u32,
    /// The number of the element of its record that it stands in, where that says other events, too.
    pub shared: Option<u32>,
    /// What each item or line (of sessions: the event) says to own sums; empty where there
    /// are none.
    pub values: &'a [Values],
    pub body: Body<'a>,
}

/// What events of each kind have besides.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    Impressions {
        /// In the order shown; none of an empty slate.
        items: &'a [Item],
        /// Whether the event has a list, of which it may be the only item.
        is_list: bool,
        /// What each item says of policies; empty where there are none.
        weights: &'a [WeighedItem],
        /// The list that brute force gives, as items; empty where there is none.
        reference: &'a [u64],
        /// The item that was held out among sampled ones; `hash::NONE` where there is none.
        held_out: u64,
    },
    Click {
        /// One at least, as of conversions.
        lines: &'a [Line],
        kind: FeedbackKind,
    },
    Conversion {
        lines: &'a [Line],
        /// Whether the event has a list, of which it may be the only line.
        is_list: bool,
    },
    Session {
        session: u64,
        action: Action,
        /// `hash::NONE` where it is missing.
        item: u64,
        dwell_ms: Option<i64>,
    },
    Exposure {
        /// As the experiment and the arm are written.
        experiment: &'a str,
        arm: &'a str,
    },
}

/// A shown item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    pub item: u64,
    /// What feedback joins it by; `hash::NONE`: the item.
    pub impression: u64,
    /// From 1; 0: missing.
    pub position: u32,
    /// NaN: missing.
    pub score: f64,
    /// Hash of its category; `hash::NONE`: missing.
    pub category: u64,
}

/// What was clicked, or bought.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// `hash::NONE`: that of the impression.
    pub item: u64,
    /// The impression that it joins; `hash::NONE`: any of the item.
    pub impression: u64,
    /// From 1; 0: missing.
    pub position: u32,
    pub amounts: Amounts,
}

impl Line {
    /// Its item; without one its impression.
    pub fn of(&self) -> u64 {
        match self.item {
            NONE => self.impression,
            item => item,
        }
    }
}

/// What lines are worth together, in millionths of a currency unit.
pub fn worth_of(lines: &[Line]) -> i64 {
    let values = lines.iter().map(|line| line.amounts.value_micros);
    let total: i128 = values.map(i128::from).sum();
    total.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The values of the dimensions in the order of the settings; "" is unknown.
#[derive(Clone, Copy, Debug)]
pub struct DimensionTexts<'a> {
    pub(super) texts: &'a [Text],
    pub(super) record: &'a str,
    pub(super) unescaped: &'a str,
}

/// How an id of joins begins that is no person: it names the record of which several events of
/// nobody are, which join each other.
pub(in crate::decode) const OF_RECORD: &str = "record:";

/// Makes ids of refunds.
const REFUND: u64 = 0xC2B2_AE3D_27D4_EB4F;

impl Event<'_> {
    /// Who it is of as that is written: the id of joins, else the user.
    pub fn key(&self) -> &str {
        match self.join {
            NONE => self.user_id,
            _ => self.join_id,
        }
    }

    /// Whether it is of no person.
    pub fn is_anonymous(&self) -> bool {
        match self.join {
            NONE => self.user == NONE,
            _ => self.user == NONE && self.join_id.starts_with(OF_RECORD),
        }
    }

    /// What copies of it have: its id, of a conversion that of its order and, where it has no list of
    /// lines, its item, by which rows of one order differ, and of refunds the amounts; an empty slate
    /// without an id has its person's request; else `hash::NONE`.
    pub fn dedup_id(&self) -> u64 {
        match (&self.body, self.event_id) {
            (Body::Impressions { items: [], .. }, NONE) if self.request != NONE => {
                let who = if self.join == NONE {
                    self.user
                } else {
                    self.join
                };
                mix(who, self.request)
            }
            (_, NONE) => NONE,
            (Body::Conversion { lines, is_list }, id) => {
                let item = lines.first().map_or(NONE, Line::of);
                let id = if *is_list { id } else { mix(id, item) };
                match lines.first().is_some_and(|line| line.amounts.orders < 1) {
                    true => lines.iter().fold(mix(id, REFUND), |id, line| {
                        mix(id, line.amounts.value_micros as u64)
                    }),
                    false => id,
                }
            }
            (_, id) => id,
        }
    }

    /// The ids that the order of a refunded item may have: as a row of its own, or with lines.
    pub fn ids_of_order(&self, item: u64) -> [u64; 2] {
        match self.event_id {
            NONE => [NONE; 2],
            id => [mix(id, item), id],
        }
    }

    /// What it is of.
    pub fn kind(&self) -> EventKind {
        match self.body {
            Body::Impressions { .. } => EventKind::Impressions,
            Body::Click { .. } => EventKind::Clicks,
            Body::Conversion { .. } => EventKind::Conversions,
            Body::Session { .. } => EventKind::Sessions,
            Body::Exposure { .. } => EventKind::Exposures,
        }
    }
}

impl<'a> DimensionTexts<'a> {
    /// All values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> + Clone + use<'a> {
        let Self {
            texts,
            record,
            unescaped,
        } = *self;
        texts.iter().map(|text| text.of(record, unescaped))
    }
}
