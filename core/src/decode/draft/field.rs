//! The fields of events, by our names.

use super::EventKind;
use crate::decode::Reason;

/// A field; of dimensions, policies and custom metrics the place in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decode) enum Field {
    Ts,
    UserId,
    EventId,
    RequestId,
    Type,
    ItemId,
    Position,
    Score,
    Propensity,
    RewardEstimate,
    ItemCategory,
    Items,
    Reference,
    HeldOut,
    Feedback,
    DwellMs,
    StartTs,
    EndTs,
    Value,
    SessionId,
    Action,
    Dimension(usize),
    /// The probability of a policy, and the reward that it expects.
    Target(usize),
    Estimate(usize),
    Custom(usize),
}

use Field::*;

impl Field {
    /// Those of an element of `items`.
    pub fn of_element(kind: EventKind) -> &'static [Self] {
        match kind {
            EventKind::Impressions => &[
                ItemId,
                Position,
                Score,
                Propensity,
                RewardEstimate,
                ItemCategory,
            ],
            EventKind::Clicks => &[ItemId, Position],
            EventKind::Conversions => &[ItemId, Value],
            EventKind::Sessions => &[],
        }
    }

    /// Those of events of a kind, without those of an element and the dimensions.
    pub fn of_event(kind: EventKind) -> &'static [Self] {
        match kind {
            EventKind::Impressions => &[
                Ts, UserId, EventId, RequestId, Type, Items, Reference, HeldOut,
            ],
            EventKind::Clicks => &[
                Ts, UserId, EventId, RequestId, Type, Items, Feedback, DwellMs, StartTs, EndTs,
            ],
            EventKind::Conversions => &[Ts, UserId, EventId, RequestId, Type, Items],
            EventKind::Sessions => &[
                Ts, UserId, EventId, RequestId, Type, SessionId, Action, ItemId, DwellMs, StartTs,
                EndTs,
            ],
        }
    }

    /// Whether all events about one item have it; it may stand elsewhere in each kind.
    pub fn is_of_every_event(self) -> bool {
        matches!(self, UserId | EventId | RequestId | ItemId | Dimension(_))
    }

    /// Whether a click has it, and an impression does not.
    pub fn is_of_click_alone(self) -> bool {
        matches!(self, Feedback | DwellMs | StartTs | EndTs | Custom(_))
    }

    /// Whether its values are numbers.
    pub fn is_number(self) -> bool {
        let is_one_of_ours = matches!(
            self,
            Position | Score | Propensity | RewardEstimate | DwellMs | Value
        );
        is_one_of_ours || matches!(self, Target(_) | Estimate(_) | Custom(_))
    }

    /// Our name; "" for fields whose names are settings.
    pub fn name(self) -> &'static str {
        match self {
            Ts => "ts",
            UserId => "user_id",
            EventId => "event_id",
            RequestId => "request_id",
            Type => "type",
            ItemId => "item_id",
            Position => "position",
            Score => "score",
            Propensity => "propensity",
            RewardEstimate => "reward_estimate",
            ItemCategory => "item_category",
            Items => "items",
            Reference => "reference",
            HeldOut => "held_out",
            Feedback => "feedback",
            DwellMs => "dwell_ms",
            StartTs => "start_ts",
            EndTs => "end_ts",
            Value => "value",
            SessionId => "session_id",
            Action => "action",
            Dimension(_) | Target(_) | Estimate(_) | Custom(_) => "",
        }
    }

    /// Why a record with a wrong value in it is refused.
    pub fn reason(self) -> Reason {
        match self {
            Ts => Reason::Ts,
            UserId => Reason::UserId,
            EventId => Reason::EventId,
            RequestId => Reason::RequestId,
            Type => Reason::Type,
            ItemId => Reason::ItemId,
            Position => Reason::Position,
            Score => Reason::Score,
            Propensity | Target(_) => Reason::Propensity,
            RewardEstimate | Estimate(_) => Reason::RewardEstimate,
            ItemCategory => Reason::ItemCategory,
            Items => Reason::Items,
            Reference => Reason::Reference,
            HeldOut => Reason::HeldOut,
            Feedback => Reason::Feedback,
            DwellMs | StartTs | EndTs => Reason::Dwell,
            Value => Reason::Value,
            SessionId => Reason::SessionId,
            Action => Reason::Action,
            Dimension(_) => Reason::Json, // no value of theirs is wrong
            Custom(_) => Reason::Custom,
        }
    }
}
