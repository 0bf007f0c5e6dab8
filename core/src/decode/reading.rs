//! What reading a record needs besides it, and where reading is.

use super::arms::ArmFields;
use super::draft::{Form, OwnNumbers};
use super::fields::{Field, Ranges};
use super::names::Names;
use crate::hash::HashKey;
use crate::kinds::EventKind;
use crate::spec::records::{Policies, RecordLimits, ValueSettings};

/// What settings say, besides names.
#[derive(Debug)]
pub(super) struct EventRules {
    pub key: HashKey,
    pub feedback: Vec<String>,
    pub limits: RecordLimits,
    pub ranges: Ranges,
    pub policies: Policies,
    pub own: OwnNumbers,
    pub arms: ArmFields,
    pub no_names: Names<Field>,
    /// Of the dimension that holds the user: the unit of experiments where people are told apart by
    /// another id.
    pub user_place: Option<usize>,
}

/// What reading needs besides the record.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub record: &'a str,
    pub kind: EventKind,
    pub rules: &'a EventRules,
    pub values: &'a ValueSettings,
    /// Of the record: near it are times of which their clock does not tell.
    pub timestamp_ms: i64,
    /// Fields of an element of a list that stand at its top.
    pub items: &'a Names<Field>,
    /// How the value that is read is written.
    pub form: &'a Form,
}

/// Where reading is: for those who explain why a record is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub field: Option<Field>,
    /// Where its value begins; `u32::MAX` where it has none.
    pub at: u32,
    /// Of a list: one more than the number of the element.
    pub element: u32,
}

impl Place {
    /// A value of a field.
    pub fn value(field: Field, at: usize) -> Self {
        Self {
            field: Some(field),
            at: at as u32,
            element: 0,
        }
    }

    /// An element of a list.
    pub fn element(number: usize, at: usize) -> Self {
        Self {
            element: number as u32 + 1,
            ..Self::value(Field::Items, at)
        }
    }

    /// The list of events of a record, or that there is none.
    pub fn list(at: Option<usize>) -> Self {
        at.map_or_else(
            || Self::missing(Field::Items),
            |at| Self::value(Field::Items, at),
        )
    }

    /// A field that has no value, or not the one that the other fields ask for.
    pub fn missing(field: Field) -> Self {
        Self {
            at: u32::MAX,
            ..Self::value(field, 0)
        }
    }
}

/// What an element of a record is, once it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElementKind {
    pub kind: EventKind,
    /// The number of the element that it stands in, where that says other events, too.
    pub shared: Option<u32>,
}
