//! What an event says to policies and to custom metrics, item by item.

use crate::custom::{MAX_CUSTOM, Values};
use crate::decode::event::Item;
use crate::decode::fields::Field;
use crate::kinds::EventKind;
use crate::spec::records::{CustomField, Policies};
use crate::weights::{Propensities, WeighedItem};

/// Where the value of a metric stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFrom {
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
pub(in crate::decode) struct CustomFields(pub(super) Vec<(Option<EventKind>, NumberFrom)>);

impl CustomFields {
    pub fn new(fields: &[CustomField]) -> Self {
        let mut found = Vec::new();
        for (metric, field) in fields.iter().enumerate().take(MAX_CUSTOM) {
            let same =
                |other: &CustomField| (&other.kind, &other.field) == (&field.kind, &field.field);
            let first = fields.iter().position(same).unwrap_or(metric);
            let kind = EventKind::of(&field.kind);
            let from = match (field.field.as_deref(), kind) {
                (None, _) => NumberFrom::One,
                (Some("score"), Some(EventKind::Impressions)) => NumberFrom::Score,
                (Some("dwell_ms"), Some(EventKind::Clicks | EventKind::Sessions)) => {
                    NumberFrom::Dwell
                }
                (Some("value"), Some(EventKind::Conversions)) => NumberFrom::Value,
                (Some(_), _) => NumberFrom::Own(first),
            };
            found.push((kind, from));
        }
        Self(found)
    }

    /// Names of fields of a kind of events that nothing else reads.
    pub fn own<'a>(
        &'a self,
        kind: EventKind,
        fields: &'a [CustomField],
    ) -> impl Iterator<Item = (&'a str, Field)> {
        let numbered = self.0.iter().enumerate();
        let own = numbered
            .filter(move |(metric, source)| **source == (Some(kind), NumberFrom::Own(*metric)));
        own.filter_map(|(metric, _)| {
            let name = fields[metric].field.as_deref()?;
            Some((name, Field::Custom(metric as u8)))
        })
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The fields of one event or item; NaN: nothing.
type Numbers = [f64; MAX_CUSTOM];
const NOTHING: Numbers = [f64::NAN; MAX_CUSTOM];

/// What is read, and what follows from it.
#[derive(Debug)]
pub(super) struct CustomValues {
    /// Of the event, of the element that is read, and of each of a list.
    pub single: Numbers,
    element: Numbers,
    pub items: Vec<Numbers>,
    pub values: Vec<Values>,
}

impl CustomValues {
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

/// What is read, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct PolicyFields {
    /// Of the item that is not in a list, of the element that is read, and of each of a list.
    single: Propensities,
    element: Propensities,
    pub items: Vec<Propensities>,
    pub weights: Vec<WeighedItem>,
}

impl PolicyFields {
    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        (self.single, self.element) = Default::default();
        self.items.clear();
        self.weights.clear();
    }

    /// Takes the value of a field.
    pub fn set(&mut self, field: Field, is_element: bool, value: Option<f64>) {
        let said = match is_element {
            true => &mut self.element,
            false => &mut self.single,
        };
        let place = match field {
            Field::Target(i) => &mut said.targets[usize::from(i)],
            Field::Estimate(i) => &mut said.estimates[usize::from(i)],
            Field::RewardEstimate => &mut said.reward_estimate,
            _ => &mut said.shown,
        };
        *place = value.unwrap_or(f64::NAN);
    }

    /// An element of a list ends.
    pub fn end_element(&mut self) {
        self.items.push(std::mem::take(&mut self.element));
    }

    /// Weighs the items of a list, or the single one, once their positions are known.
    pub fn weigh(&mut self, policies: &Policies, items: &[Item], is_list: bool) {
        if !is_list {
            self.items.clear();
            self.items.push(self.single);
        }
        let pairs = items.iter().zip(&self.items);
        let weighed = pairs.map(|(item, said)| policies.weigh(said, item.position));
        self.weights.extend(weighed);
    }
}
