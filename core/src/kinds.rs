//! Kinds: of events, of feedback, and what a session event says.

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

/// What `type` says in a conversion that gives back an order, or lines of it.
pub const REFUND: &str = "refund";

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

    /// The kind of a name, or an error that names it.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::of(name).ok_or_else(|| format!("there are no {name:?}"))
    }
}

/// What a feedback event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackKind {
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

impl FeedbackKind {
    /// Whether it is of an order: the order itself, or a further line.
    pub fn is_conversion(self) -> bool {
        matches!(self, Self::Conversion | Self::ConversionLine)
    }
}

/// What a session event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start,
    View,
    Dwell,
    End,
}

impl Action {
    /// In the order of their numbers in Python.
    pub const ALL: [Self; 4] = [Self::Start, Self::View, Self::Dwell, Self::End];

    /// The action of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// As it stands in an event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::View => "view",
            Self::Dwell => "dwell",
            Self::End => "end",
        }
    }
}
