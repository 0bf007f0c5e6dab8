//! What an event says to custom metrics, item by item.

use super::{Draft, EventKind};
use crate::custom::{MAX_CUSTOM, Values};
use crate::spec::records::CustomField;

/// Where the value of a metric stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// In a field of its own, which is known by the first metric that reads it.
    Own(usize),
    /// In a field that events have anyway.
    Score,
    Dwell,
    Value,
    /// Nowhere: each event is 1.
    One,
}

/// Which values of which kinds of events are looked at.
#[derive(Clone, Debug)]
pub(in crate::decode) struct CustomFields(Vec<(Option<EventKind>, From)>);

impl CustomFields {
    pub fn new(fields: &[CustomField]) -> Self {
        let mut found = Vec::new();
        for (metric, field) in fields.iter().enumerate().take(MAX_CUSTOM) {
            let same =
                |other: &CustomField| (&other.kind, &other.field) == (&field.kind, &field.field);
            let first = fields.iter().position(same).unwrap_or(metric);
            let kind = EventKind::of(&field.kind);
            let from = match (field.field.as_deref(), kind) {
                (None, _) => From::One,
                (Some("score"), Some(EventKind::Impressions)) => From::Score,
                (Some("dwell_ms"), Some(EventKind::Clicks | EventKind::Sessions)) => From::Dwell,
                (Some("value"), Some(EventKind::Conversions)) => From::Value,
                (Some(_), _) => From::Own(first),
            };
            found.push((kind, from));
        }
        Self(found)
    }

    /// Names of fields of a kind of events that nothing else reads, each with its metric.
    pub fn own<'a>(
        &'a self,
        kind: EventKind,
        fields: &'a [CustomField],
    ) -> impl Iterator<Item = (&'a str, usize)> {
        let numbered = self.0.iter().enumerate();
        let own =
            numbered.filter(move |(metric, source)| **source == (Some(kind), From::Own(*metric)));
        own.filter_map(|(metric, _)| Some((fields[metric].field.as_deref()?, metric)))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The fields of one event or item; NaN: nothing.
type Given = [f64; MAX_CUSTOM];
const NOTHING: Given = [f64::NAN; MAX_CUSTOM];

/// What is read, and what follows from it.
#[derive(Debug)]
pub(super) struct Custom {
    /// Of the event, of the element that is read, and of each of a list.
    single: Given,
    element: Given,
    pub items: Vec<Given>,
    pub values: Vec<Values>,
}

impl Custom {
    /// None where there are no metrics.
    pub fn new(sources: &CustomFields) -> Option<Box<Self>> {
        let empty = Self {
            single: NOTHING,
            element: NOTHING,
            items: Vec::new(),
            values: Vec::new(),
        };
        (!sources.is_empty()).then(|| Box::new(empty))
    }

    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        (self.single, self.element) = (NOTHING, NOTHING);
        self.items.clear();
        self.values.clear();
    }

    /// Takes the value of a field.
    pub fn set(&mut self, field: usize, is_element: bool, value: Option<f64>) {
        let given = match is_element {
            true => &mut self.element,
            false => &mut self.single,
        };
        given[field] = value.unwrap_or(f64::NAN);
    }

    /// An element of a list ends.
    pub fn end_element(&mut self) {
        self.items
            .push(std::mem::replace(&mut self.element, NOTHING));
    }
}

impl Draft {
    /// The values of a checked event: those of each item or line, or of the event. What stands
    /// beside lines is of all of them together: it counts with the first, where no line has its own.
    pub(super) fn fill_custom(&mut self, kind: EventKind, fields: &CustomFields) {
        let Some(custom) = &mut self.custom else {
            return;
        };
        let count = match kind {
            EventKind::Impressions => self.items.len(),
            EventKind::Clicks | EventKind::Conversions => self.lines.len(),
            EventKind::Sessions => 1,
        };
        let is_order = kind != EventKind::Impressions && self.head.has_list;
        for at in 0..count {
            let own = custom.items.get(at).filter(|_| self.head.has_list);
            let mut values = Values::NONE;
            for (metric, (of, from)) in fields.0.iter().enumerate() {
                if *of != Some(kind) {
                    continue;
                }
                let found = match *from {
                    From::Own(field) => match own.map_or(f64::NAN, |given| given[field]) {
                        of_item if !of_item.is_nan() => of_item,
                        _ if !is_order => custom.single[field],
                        _ if at > 0 || custom.items.iter().any(|i| !i[field].is_nan()) => f64::NAN,
                        _ => custom.single[field],
                    },
                    From::Score => self.items[at].score,
                    From::Dwell if at > 0 => f64::NAN,
                    From::Dwell => self.head.dwell_ms.map_or(f64::NAN, |ms| ms as f64),
                    From::Value => self.values[at].unwrap_or(f64::NAN),
                    From::One => 1.0,
                };
                values.set(metric, found);
            }
            custom.values.push(values);
        }
    }
}
