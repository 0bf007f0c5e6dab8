//! Why a record is no event.

use super::fields::Field;

/// A reason; its name is a label of counters and stands in dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Json,
    Object,
    TooLarge,
    TooDeep,
    /// A field is missing, or its value is wrong.
    Of(Field),
    /// Ahead of its log.
    Future,
    /// What a record is, is not known.
    Kind,
    /// Not in the format of its source, or its schema cannot be used.
    Schema,
    /// Known, and not to be counted: no reject.
    Ignored,
}

impl Reason {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Object => "object",
            Self::TooLarge => "too_large",
            Self::TooDeep => "too_deep",
            Self::Of(field) => field.declared().reason,
            Self::Future => "future",
            Self::Kind => "kind",
            Self::Schema => "schema",
            Self::Ignored => "ignored",
        }
    }

    /// Every name; those of fields may be several times.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let of_records = [
            Self::Json,
            Self::Object,
            Self::TooLarge,
            Self::TooDeep,
            Self::Future,
            Self::Kind,
            Self::Schema,
            Self::Ignored,
        ];
        let of_fields = Field::ALL.iter().map(|field| Self::Of(*field));
        of_records.into_iter().chain(of_fields).map(Self::name)
    }
}
