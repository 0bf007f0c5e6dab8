//! What joins, slates, sessions and viewings say changed: the one thing that statistics, users,
//! experiments and alert series are counted from. `sign` is 1 where a change is emitted and -1
//! where an earlier one is retracted.

use crate::weights::Weight;

/// Number of a combination of dimension values (see `dimensions`).
pub type Combination = u32;
/// User, time and combination.
pub type UserAt = (u64, i64, Combination);
/// What orders rows: event time, offset, place in the event.
pub type Age = (i64, i64, u16);
/// Before any time.
pub const NEVER: i64 = -(1 << 62);

/// How many kinds of events there are.
pub const KINDS: usize = 5;

/// What an event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Impressions,
    Clicks,
    Conversions,
    Sessions,
    /// A user is put into an arm of an experiment; nothing is counted of it.
    Exposures,
}

impl EventKind {
    pub const ALL: [Self; KINDS] = [
        Self::Impressions,
        Self::Clicks,
        Self::Conversions,
        Self::Sessions,
        Self::Exposures,
    ];

    /// Its name in settings and labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Impressions => "impressions",
            Self::Clicks => "clicks",
            Self::Conversions => "conversions",
            Self::Sessions => "sessions",
            Self::Exposures => "exposures",
        }
    }

    /// What `type` says in an event of it.
    pub fn event_type(self) -> &'static str {
        match self {
            Self::Impressions => "impression",
            Self::Clicks => "click",
            Self::Conversions => "conversion",
            Self::Sessions => "session",
            Self::Exposures => "exposure",
        }
    }

    /// The kind of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a feedback event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A configured kind of the clicks topic, by its place in the settings; 0 is `click`.
    Configured(u8),
    /// A kind that is not configured: counted as `other`, joins nothing.
    Other,
    /// A kind that was configured when the event came: it still joins and is counted as nothing.
    Gone,
    /// An event of the conversions topic, which is one order: what it bought, or of several lines
    /// the first.
    Conversion,
    /// A further line of such an order.
    ConversionLine,
}

impl Kind {
    /// Whether it is of an order: the order itself, or a further line.
    pub fn is_conversion(self) -> bool {
        matches!(self, Self::Conversion | Self::ConversionLine)
    }
}

/// One shown item (repeats within a slate, too).
#[derive(Clone, Copy, Debug)]
pub struct ImpressionChange {
    pub event_ms: i64,
    pub combination: Combination,
    /// From 1; 0: missing.
    pub position: u32,
    pub user: u64,
    /// (user, item) in one hash.
    pub pair: u64,
    /// What the model predicted; NaN: nothing.
    pub score: f64,
}

/// A shown item, as metrics of items see it.
#[derive(Clone, Copy, Debug)]
pub struct ItemShown {
    pub event_ms: i64,
    pub combination: Combination,
    /// From 1; 0: missing.
    pub position: u32,
    pub item: ItemOf,
}

/// What an impression shows: hashes of the item and of its category; `hash::NONE` without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemOf {
    pub item: u64,
    pub category: u64,
}

impl ItemOf {
    pub fn new(item: u64, category: u64) -> Self {
        Self { item, category }
    }
}

/// The items of a slate in the order shown, under its time and combination.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    pub slate: SlateChange,
    pub items: &'a [ItemOf],
}

/// Feedback under its effective combination and position.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackChange {
    pub event_ms: i64,
    pub combination: Combination,
    /// From 1; 0: missing.
    pub position: u32,
    pub kind: Kind,
    pub value_micros: i64,
    pub user: u64,
    pub sign: i64,
}

/// An impression whose outcome changed: +1, 0 or -1 each.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeChange {
    pub event_ms: i64,
    pub combination: Combination,
    pub user: u64,
    /// What the model predicted; NaN: nothing.
    pub score: f64,
    pub clicked: i64,
    pub converted: i64,
}

/// What an impression says of a policy: under its own time and combination.
#[derive(Clone, Copy, Debug)]
pub struct PolicyChange {
    pub event_ms: i64,
    pub combination: Combination,
    pub user: u64,
    /// Its place in the settings.
    pub policy: usize,
    pub weight: Weight,
    pub of: PolicyOutcome,
}

/// What happened to a weighed impression.
#[derive(Clone, Copy, Debug)]
pub enum PolicyOutcome {
    /// It is shown, as not clicked: whether its weight is clipped, and its doubly robust value.
    Shown { is_clipped: bool, unclicked: i64 },
    /// It is clicked (1), or is not any more (-1).
    Clicked(i64),
}

/// The value of an event for a custom metric.
#[derive(Clone, Copy, Debug)]
pub struct CustomChange {
    pub event_ms: i64,
    pub combination: Combination,
    pub user: u64,
    /// Its place in the settings.
    pub metric: usize,
    /// In `custom::UNIT`.
    pub value: i64,
    pub sign: i64,
}

/// A viewing: time spent on one item.
#[derive(Clone, Copy, Debug)]
pub struct Dwell {
    pub event_ms: i64,
    pub combination: Combination,
    pub user: u64,
    pub dwell_ms: i64,
    pub sign: i64,
}

/// A session, under the time at which it ends.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub event_ms: i64,
    pub combination: Combination,
    pub user: u64,
    pub length_ms: i64,
    pub views: i64,
    pub sign: i64,
}

/// A slate, under the time and combination of its earliest member.
#[derive(Clone, Copy, Debug)]
pub struct SlateChange {
    pub event_ms: i64,
    pub combination: Combination,
    pub user: u64,
    pub sign: i64,
}

/// A shown item of a slate that is ranked; they stand in the order shown.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// 0: no feedback with a gain; else a place among the gains, from 1.
    pub grade: u8,
    pub is_clicked: bool,
    /// What the model predicted; NaN: nothing.
    pub score: f64,
    /// Its rank in the brute-force list of the slate; 0: it is not in it.
    pub listed: u16,
    pub is_held_out: bool,
}

/// What a slate is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probed {
    /// Items that brute force gives; 0: there is no list.
    pub reference_size: usize,
    /// Whether an item was held out among sampled ones.
    pub has_held_out: bool,
}
