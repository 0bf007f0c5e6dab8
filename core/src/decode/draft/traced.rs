//! How a record was read, for those who explain it: what says the kind of each of its events, and
//! what stands where the fields of each are looked for.

use super::Draft;
use super::mapped::{number_at, reader_at};
use crate::decode::fields::Field;
use crate::decode::mapping::{Fields, Levels, MappedField, Scope};
use crate::decode::reading::Reading;
use crate::decode::reason::Reason;
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
pub struct Trace {
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

/// Notes the values of all fields of an event that was read, valid or not.
pub fn trace_values(
    draft: &Draft,
    (fields, levels): (&Fields, &Levels),
    scope: &mut Scope,
    reading: &Reading,
    to: &mut Vec<TracedValue>,
) {
    let values = |fields: &[MappedField], scope: &mut Scope, to: &mut Vec<TracedValue>| {
        to.extend(
            fields
                .iter()
                .filter_map(|x| traced(draft, x, scope, reading)),
        );
    };
    values(&fields.fields, scope, to);
    let mut lists = fields.lists.iter();
    if let Some(list) = lists.find(|x| levels.list_at(x.levels[0], scope).is_some()) {
        let walked = levels.walk(&list.levels, scope, &mut |scope, _| {
            values(&list.fields, scope, to);
            Ok(())
        });
        _ = walked; // what cannot be read is refused, and said
    }
}

fn traced(
    draft: &Draft,
    wanted: &MappedField,
    scope: &mut Scope,
    reading: &Reading,
) -> Option<TracedValue> {
    let (form, at) = scope.first(&wanted.values)?;
    let field = wanted.field;
    let number = |at| {
        let mut reader = reader_at(number_at(field, at, reading), reading);
        let number = reader.number().ok().filter(|_| field.is_number());
        number.and_then(|number| number.double())
    };
    let times = match scope.first(&wanted.times) {
        Some((_, at)) => number(at)?,
        None if wanted.times.is_empty() => 1.0,
        None => return None,
    };
    let how = wanted.form(form);
    let moment = match field {
        Field::Ts => draft.head.ts,
        Field::StartTs => draft.head.start,
        Field::EndTs => draft.head.end,
        _ => None,
    };
    let json = match (number(at), how.time) {
        (Some(number), _) => format!("{:?}", number * times * how.scale.unwrap_or(1.0)),
        (None, Some(time)) => scope.day_and_time(at, time).ok()?,
        (None, None) => {
            let mut reader = reader_at(at, reading);
            reader.skip(1).ok()?;
            reading.record[at..reader.at()].trim().to_owned()
        }
    };
    Some(TracedValue {
        field,
        form,
        json,
        ms: moment.map(|moment| moment.ms),
    })
}
