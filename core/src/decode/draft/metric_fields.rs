//! What an event says to policies and to own sums, item by item.

use crate::decode::event::Item;
use crate::decode::fields::Field;
use crate::hash::HashKey;
use crate::kinds::{EventKind, KINDS};
use crate::own_sums::{MAX_AMOUNTS, Values, places};
use crate::spec::records::{FieldCondition, OwnFields, Policies, Test};
use crate::weights::{Propensities, WeighedItem};

/// Where a number stands that own sums add up or ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFrom {
    /// In a field of its own, by the place of the amount.
    Own(usize),
    /// In a field that events have anyway.
    Score,
    Dwell,
    Rating,
    Value,
    Position,
}

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A field of its own, which is known by the first condition on it.
    Field(usize),
    Number(NumberFrom),
    /// A value of a dimension, as the event says it.
    Dimension(usize),
    /// Hashes of ids.
    Item,
    Category,
}

/// What own sums want of a kind of events.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub amounts: Vec<(usize, NumberFrom)>,
    /// Conditions that follow from what is read anyway, each with its place.
    pub derived: Vec<(usize, Asked)>,
    pub is_any: bool,
}

/// Which fields of which kinds of events own sums look at.
#[derive(Clone, Debug, Default)]
pub(in crate::decode) struct OwnNumbers {
    by_kind: [Wanted; KINDS],
    /// Our names of fields that nothing else reads, by kind.
    names: Vec<(EventKind, String, Field)>,
    tests: Vec<Test>,
    /// By the first condition on a field of its own: all on it, a bit each.
    of_field: Vec<u32>,
    /// By condition: hashes of the texts that it allows.
    ids: Vec<Vec<u64>>,
}

impl OwnNumbers {
    /// An error where there are too many, or a kind is unknown.
    pub fn new(fields: &OwnFields, dimensions: &[&str], key: &HashKey) -> Result<Self, String> {
        if fields.amounts.len() > MAX_AMOUNTS || fields.conditions.len() > u32::BITS as usize {
            return Err("too many fields of own sums".to_owned());
        }
        let mut found = Self::default();
        for (at, amount) in fields.amounts.iter().enumerate() {
            let kind = EventKind::named(&amount.kind)?;
            let from = known_number(kind, &amount.field).unwrap_or(NumberFrom::Own(at));
            if from == NumberFrom::Own(at) {
                let name = amount.field.clone();
                found.names.push((kind, name, Field::Amount(at as u8)));
            }
            let wanted = &mut found.by_kind[kind as usize];
            wanted.amounts.push((at, from));
            wanted.is_any = true;
        }
        for (at, condition) in fields.conditions.iter().enumerate() {
            let (of, test) = (&condition.of, condition.test.clone());
            let kind = EventKind::named(&of.kind)?;
            let number = fields.amounts.iter().position(|amount| amount == of);
            let number = known_number(kind, &of.field).or(number.map(NumberFrom::Own));
            let dimension = dimensions.iter().position(|name| *name == of.field);
            let same = |other: &FieldCondition| other.of == *of;
            let first = fields.conditions.iter().position(same).unwrap_or(at);
            let asked = match (of.field.as_str(), number, dimension) {
                (_, Some(number), _) => Asked::Number(number),
                (_, _, Some(dimension)) => Asked::Dimension(dimension),
                ("item_id", ..) => Asked::Item,
                ("item_category", ..) => Asked::Category,
                _ => Asked::Field(first),
            };
            let wanted = &mut found.by_kind[kind as usize];
            wanted.is_any = true;
            found.of_field.push(0);
            match asked {
                Asked::Field(first) => found.of_field[first] |= 1 << at,
                _ => wanted.derived.push((at, asked)),
            }
            if asked == Asked::Field(at) {
                let name = of.field.clone();
                found.names.push((kind, name, Field::Asked(at as u8)));
            }
            found.ids.push(match &test {
                Test::Among { texts, .. } => texts.iter().map(|x| key.of(x.as_bytes())).collect(),
                Test::Bounds(_) => Vec::new(),
            });
            found.tests.push(test);
        }
        Ok(found)
    }

    /// Names of fields of a kind of events that nothing else reads.
    pub fn own(&self, kind: EventKind) -> impl Iterator<Item = (&str, Field)> {
        let own = self.names.iter().filter(move |(of, ..)| *of == kind);
        own.map(|(_, name, field)| (name.as_str(), *field))
    }

    pub(super) fn of(&self, kind: EventKind) -> &Wanted {
        &self.by_kind[kind as usize]
    }

    /// Whether the value of a number, a text or an id passes a condition.
    pub(super) fn passes_number(&self, condition: usize, value: f64) -> bool {
        self.tests[condition].passes_number(value)
    }

    pub(super) fn passes(&self, condition: usize, value: &str) -> bool {
        self.tests[condition].passes(value)
    }

    pub(super) fn passes_id(&self, condition: usize, id: u64) -> bool {
        self.ids[condition].contains(&id)
    }

    fn is_empty(&self) -> bool {
        !self.by_kind.iter().any(|wanted| wanted.is_any)
    }
}

/// A number that events of a kind have anyway.
fn known_number(kind: EventKind, field: &str) -> Option<NumberFrom> {
    match (field, kind) {
        ("score", EventKind::Impressions) => Some(NumberFrom::Score),
        ("position", EventKind::Impressions) => Some(NumberFrom::Position),
        ("dwell_ms", EventKind::Clicks | EventKind::Sessions) => Some(NumberFrom::Dwell),
        ("rating", EventKind::Clicks) => Some(NumberFrom::Rating),
        ("value", EventKind::Conversions) => Some(NumberFrom::Value),
        _ => None,
    }
}

/// What one event or item says in fields of its own: numbers, NaN for nothing; and the conditions that
/// it answers, and meets, a bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSaid {
    numbers: [f64; MAX_AMOUNTS],
    answered: u32,
    met: u32,
}

impl OwnSaid {
    const NOTHING: Self = Self {
        numbers: [f64::NAN; MAX_AMOUNTS],
        answered: 0,
        met: 0,
    };

    pub fn number(&self, amount: usize) -> f64 {
        self.numbers[amount]
    }

    /// The conditions that are met by this, or where it answers them not by what stands beside it.
    pub fn met_or(&self, beside: &Self) -> u32 {
        (self.met & self.answered) | (beside.met & !self.answered)
    }
}

/// What is read, and what follows from it.
#[derive(Debug)]
pub(super) struct OwnValues {
    /// Of the event, of the element that is read, and of each of a list.
    pub single: OwnSaid,
    element: OwnSaid,
    pub items: Vec<OwnSaid>,
    pub values: Vec<Values>,
}

impl OwnValues {
    /// None where there is nothing to read.
    pub fn new(wanted: &OwnNumbers) -> Option<Box<Self>> {
        let empty = Self {
            single: OwnSaid::NOTHING,
            element: OwnSaid::NOTHING,
            items: Vec::new(),
            values: Vec::new(),
        };
        (!wanted.is_empty()).then(|| Box::new(empty))
    }

    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        (self.single, self.element) = (OwnSaid::NOTHING, OwnSaid::NOTHING);
        self.items.clear();
        self.values.clear();
    }

    fn of(&mut self, is_element: bool) -> &mut OwnSaid {
        match is_element {
            true => &mut self.element,
            false => &mut self.single,
        }
    }

    /// Takes the number of a field.
    pub fn set(&mut self, amount: usize, is_element: bool, value: Option<f64>) {
        self.of(is_element).numbers[amount] = value.unwrap_or(f64::NAN);
    }

    /// Takes the value of a field of its own, as it is written; an empty one is missing.
    pub fn ask(&mut self, first: usize, is_element: bool, value: &str, wanted: &OwnNumbers) {
        let conditions = wanted.of_field[first];
        let said = self.of(is_element);
        said.answered &= !conditions;
        said.met &= !conditions;
        if !value.is_empty() {
            said.answered |= conditions;
            for condition in places(conditions).filter(|at| wanted.passes(*at, value)) {
                said.met |= 1 << condition;
            }
        }
    }

    /// An element of a list ends.
    pub fn end_element(&mut self) {
        self.items
            .push(std::mem::replace(&mut self.element, OwnSaid::NOTHING));
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
