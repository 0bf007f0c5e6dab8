//! What joins, slates, sessions and viewings say changed: the one thing that statistics, users,
//! experiments and alert series are counted from.

use crate::columns::stored_row;
use crate::kinds::FeedbackKind;
use crate::slates::values::SlateContext;
use crate::weights::Weight;

/// Number of a combination of dimension values (see `dimensions`).
pub type Combination = u32;
/// What orders rows: event time, offset, place in the event.
pub type Age = (i64, i64, u16);
/// Before any time.
pub const NEVER: i64 = -(1 << 62);

/// Who, when and under which combination: what a change counts under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserAt {
    pub user: u64,
    pub event_ms: i64,
    pub combination: Combination,
}

impl UserAt {
    pub fn new(user: u64, event_ms: i64, combination: Combination) -> Self {
        Self {
            user,
            event_ms,
            combination,
        }
    }
}

/// A fact counts, or does not any more.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub at: UserAt,
    /// 1 where the fact is new, -1 where an earlier one is retracted.
    pub sign: i64,
    pub what: Fact<'a>,
}

impl<'a> Change<'a> {
    pub fn new(at: UserAt, sign: i64, what: Fact<'a>) -> Self {
        Self { at, sign, what }
    }
}

/// What counts.
#[derive(Clone, Copy, Debug)]
#[repr(u8)] // its kind is looked at for every change: no field's spare bits hold it
pub enum Fact<'a> {
    /// An item is shown (repeats within a slate, too). `position`: from 1; 0: missing. `score`: what
    /// the model predicted; NaN: nothing.
    Impression { position: u32, score: f64 },
    /// Feedback under its effective position: from 1; 0: missing.
    Feedback {
        kind: FeedbackKind,
        position: u32,
        amounts: Amounts,
    },
    /// The outcome of an impression changes: by 1, 0 or -1 each.
    Outcome {
        score: f64,
        clicked: i64,
        converted: i64,
    },
    /// A rating, in millionths, is given to an impression with a score.
    Rating { score: f64, rating: i64 },
    /// Time is spent on one item.
    Viewing { dwell_ms: i64 },
    /// A session, under the time at which it ends.
    Session { length_ms: i64, views: i64 },
    /// A slate, under the time and combination of its earliest member, as the following two; an
    /// empty one under its event's.
    Slate { is_empty: bool },
    /// The items of a slate in the order shown.
    List(&'a [ItemOf]),
    /// The values of a slate with feedback or probes.
    RankedSlate(&'a SlateContext),
    /// What an impression says of a policy, by its place in the settings.
    PolicyWeight {
        policy: usize,
        weight: Weight,
        outcome: PolicyOutcome,
    },
    /// What an event adds to an own sum, by its place; in `own_sums::UNIT`.
    OwnValue { sum: usize, value: i64 },
}

stored_row! {
    /// What feedback says besides what it is on: decoded of a line, kept while the feedback is
    /// pending, stored with it, and counted.
    pub struct Amounts {
        /// Millionths of a currency unit, ties to even; 0 where it is missing.
        value_micros: i64,
        /// Of conversions: 1 of an order, -1 of one that is refunded, 0 of other refunds.
        orders: i16,
        /// The time spent on the item.
        dwell_ms: Option<i64>,
        /// See `Amounts::rating`; 0: none.
        rating: i32,
    }
}

/// What a stored rating of 0 is: the largest magnitude of a rating is below it.
const RATING_OF_0: i32 = 1 << 30;

impl Amounts {
    /// How a rating is kept; ties to even.
    pub fn rating_code(rating: Option<f64>) -> i32 {
        rating.map_or(0, |x| (x * 1e6).round_ties_even() as i32 + RATING_OF_0)
    }

    /// The rating, in millionths.
    pub fn rating(&self) -> Option<i64> {
        (self.rating != 0).then(|| i64::from(self.rating - RATING_OF_0))
    }
}

stored_row! {
    /// What an impression shows: hashes of the item and of its category; `hash::NONE` without one.
    pub struct ItemOf {
        item: u64,
        category: u64,
    }
}

/// What happened to a weighed impression.
#[derive(Clone, Copy, Debug)]
pub enum PolicyOutcome {
    /// It is shown, as not clicked: whether its weight is clipped, and its doubly robust value.
    Shown {
        is_clipped: bool,
        unclicked: i64,
    },
    Clicked,
}
