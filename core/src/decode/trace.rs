//! How a record was read, for those who explain it: what says the kind of each of its events, and
//! what stands where the fields of each are looked for.

use super::fields::Field;
use super::reason::Reason;
use crate::kinds::EventKind;

/// What stands where a field is looked for.
#[derive(Clone, Debug)]
pub struct TracedValue {
    pub field: Field,
    /// Which of the forms of the field it has, of those that stand in one list, or in none.
    pub form: usize,
    /// As the record has it; of numbers that can be read what they are once they are scaled.
    pub json: String,
    /// Of a time that was read: epoch milliseconds.
    pub ms: Option<i64>,
}

/// How an event of a record was read.
#[derive(Debug, Default)]
pub struct Traced {
    /// Why it is none; None where it is one.
    pub reason: Option<Reason>,
    pub kind: Option<EventKind>,
    /// The text that says its kind.
    pub kind_text: Option<String>,
    pub values: Vec<TracedValue>,
    /// The field that the reason is about, of which element of a list, from 0, and what stands
    /// there; None where it is the whole.
    pub field: Option<Field>,
    pub element: Option<u32>,
    pub found: Option<String>,
}

/// The events of a record so far, and the values of the one that is read.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub kind_text: Option<String>,
    pub values: Vec<TracedValue>,
    pub events: Vec<Traced>,
}

impl Trace {
    /// Something became of the event that is read.
    pub fn end(&mut self) {
        self.events.push(Traced {
            kind_text: self.kind_text.clone(),
            values: std::mem::take(&mut self.values),
            ..Traced::default()
        });
    }
}
