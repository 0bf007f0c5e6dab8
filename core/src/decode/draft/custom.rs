//! What an event says to custom metrics, item by item.

use super::{Draft, Topic};
use crate::custom::{CustomField, MAX_CUSTOM, Values};

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

/// Which values of which topics are looked at.
#[derive(Clone, Debug)]
pub(in crate::decode) struct Sources(Vec<(Option<Topic>, From)>);

impl Sources {
    pub fn new(fields: &[CustomField]) -> Self {
        let mut found = Vec::new();
        for (metric, field) in fields.iter().enumerate().take(MAX_CUSTOM) {
            let same =
                |other: &CustomField| (&other.kind, &other.field) == (&field.kind, &field.field);
            let first = fields.iter().position(same).unwrap_or(metric);
            let topic = Topic::of(&field.kind);
            let from = match (field.field.as_deref(), topic) {
                (None, _) => From::One,
                (Some("score"), Some(Topic::Impressions)) => From::Score,
                (Some("dwell_ms"), Some(Topic::Clicks | Topic::Sessions)) => From::Dwell,
                (Some("value"), Some(Topic::Conversions)) => From::Value,
                (Some(_), _) => From::Own(first),
            };
            found.push((topic, from));
        }
        Self(found)
    }

    /// Names of fields of a topic that nothing else reads, each with its metric.
    pub fn own<'a>(
        &'a self,
        topic: Topic,
        fields: &'a [CustomField],
    ) -> impl Iterator<Item = (&'a str, usize)> {
        let numbered = self.0.iter().enumerate();
        let own =
            numbered.filter(move |(metric, source)| **source == (Some(topic), From::Own(*metric)));
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
    pub fn new(sources: &Sources) -> Option<Box<Self>> {
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
    /// The values of a checked event: those of each item, or of the event.
    pub(super) fn fill_custom(&mut self, topic: Topic, sources: &Sources) {
        let Some(custom) = &mut self.custom else {
            return;
        };
        let is_shown = topic == Topic::Impressions;
        for at in 0..if is_shown { self.items.len() } else { 1 } {
            let own = custom.items.get(at).filter(|_| self.has_list);
            let mut values = Values::NONE;
            for (metric, (of, from)) in sources.0.iter().enumerate() {
                if *of != Some(topic) {
                    continue;
                }
                let found = match *from {
                    From::Own(field) => match own.map_or(f64::NAN, |given| given[field]) {
                        of_item if of_item.is_nan() => custom.single[field],
                        of_item => of_item,
                    },
                    From::Score => self.items[at].score,
                    From::Dwell => self.dwell_ms.map_or(f64::NAN, |ms| ms as f64),
                    From::Value => self.value.unwrap_or(f64::NAN),
                    From::One => 1.0,
                };
                values.set(metric, found);
            }
            custom.values.push(values);
        }
    }
}
