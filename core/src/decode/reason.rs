//! Why a record is no event.

/// A reason; its name is a label of counters and stands in dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Json,
    Object,
    TooLarge,
    TooDeep,
    Type,
    Ts,
    UserId,
    EventId,
    ItemId,
    RequestId,
    Position,
    Score,
    Propensity,
    Items,
    Feedback,
    Dwell,
    Value,
    SessionId,
    Action,
    Future,
    Reference,
    HeldOut,
    RewardEstimate,
    ItemCategory,
    Custom,
    /// What a record is, is not known.
    Kind,
    /// Not in the format of its source, or its schema cannot be used.
    Schema,
    /// Known, and not to be counted: no reject.
    Ignored,
}

impl Reason {
    /// Every reason; their numbers are their places.
    pub const ALL: [Self; 28] = [
        Self::Json,
        Self::Object,
        Self::TooLarge,
        Self::TooDeep,
        Self::Type,
        Self::Ts,
        Self::UserId,
        Self::EventId,
        Self::ItemId,
        Self::RequestId,
        Self::Position,
        Self::Score,
        Self::Propensity,
        Self::Items,
        Self::Feedback,
        Self::Dwell,
        Self::Value,
        Self::SessionId,
        Self::Action,
        Self::Future,
        Self::Reference,
        Self::HeldOut,
        Self::RewardEstimate,
        Self::ItemCategory,
        Self::Custom,
        Self::Kind,
        Self::Schema,
        Self::Ignored,
    ];

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Object => "object",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::Type => "type",
            Self::Ts => "ts",
            Self::UserId => "user_id",
            Self::EventId => "event_id",
            Self::ItemId => "item_id",
            Self::RequestId => "request_id",
            Self::Position => "position",
            Self::Score => "score",
            Self::Propensity => "propensity",
            Self::Items => "items",
            Self::Feedback => "feedback",
            Self::Dwell => "dwell",
            Self::Value => "value",
            Self::SessionId => "session_id",
            Self::Action => "action",
            Self::Future => "future",
            Self::Reference => "reference",
            Self::HeldOut => "held_out",
            Self::RewardEstimate => "reward_estimate",
            Self::ItemCategory => "item_category",
            Self::Custom => "custom",
            Self::Kind => "kind",
            Self::Schema => "schema",
            Self::Ignored => "ignored",
        }
    }
}
