//! An event while its record is read.

use super::event::{Action, Body, Click, Dimensions, Event, Item, Line};
use super::{Names, Rules, times};
use crate::changes::{EventKind, Kind};
use crate::hash::NONE;
use crate::json::Text;
use crate::spec::records::{Unit, ValueSettings};

mod checking;
mod clicked;
mod custom;
mod field;
mod items;
mod mapped;
mod moments;
mod native;
mod said;
mod values;

use custom::Custom;
pub(super) use custom::CustomFields;
pub(super) use field::Field;
use moments::Moment;
pub use native::NativeEvent;
use said::Said;

/// What reading needs besides the record.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub record: &'a str,
    pub kind: EventKind,
    pub rules: &'a Rules,
    pub values: &'a ValueSettings,
    /// Fields of an element of a list that stand at its top.
    pub items: &'a Names<Field>,
    /// Of the time that is read.
    pub unit: Unit,
}

impl<'a> Reading<'a> {
    /// The record, and the texts in it that stand for no value.
    pub fn texts(&self) -> (&'a str, &'a [String]) {
        (self.record, &self.values.missing)
    }
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

    /// A field that has no value, or not the one that the other fields ask for.
    pub fn missing(field: Field) -> Self {
        Self {
            at: u32::MAX,
            ..Self::value(field, 0)
        }
    }
}

/// An event as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    head: Head,
    dimensions: Vec<Text>,
    items: Vec<Item>,
    lines: Vec<Line>,
    /// What each line says that it is worth.
    values: Vec<Option<f64>>,
    /// Where there are policies.
    said: Option<Box<Said>>,
    /// Where there are custom metrics.
    custom: Option<Box<Custom>>,
    /// The items that brute force gives, best first.
    reference: Vec<u64>,
    /// Texts of the record that have escapes.
    pub unescaped: String,
    pub place: Place,
    /// What the record is, as far as that is known.
    pub kind: Option<EventKind>,
    /// The record with what stands beside it, where that is read, too.
    pub text: String,
    pub has_own_text: bool,
    /// Where the values of a mapped record were found, and those of an element of its list.
    pub found: Vec<u32>,
    found_in_element: Vec<u32>,
    /// Where what stands beside the record begins.
    pub beside: Vec<u32>,
    /// The click that stands in the record of its impression, where there is one, and what it was
    /// read into.
    pub has_click: bool,
    click: Click,
    clicked: Option<Box<Self>>,
}

/// The fields that have one value: the last of each name. `NONE` and None are null or missing.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    ts: Option<Moment>,
    user: u64,
    user_text: Text,
    /// The id that was read last.
    id: Text,
    event_id: u64,
    request: u64,
    /// The item that is not in a list.
    shown: Shown,
    session: u64,
    held_out: u64,
    dwell_ms: Option<i64>,
    start: Option<Moment>,
    end: Option<Moment>,
    feedback: Option<Text>,
    action: Option<Action>,
    has_list: bool,
    /// Where the list stands.
    list_at: u32,
    has_reference: bool,
    /// Values of dimensions that were cut.
    cut: u32,
    feedback_kind: Option<Kind>,
}

/// Fields that an item or a line has wherever it stands.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    item: u64,
    position: u32,
    score: Option<f64>,
    category: u64,
    value: Option<f64>,
}

impl Shown {
    fn item(self) -> Item {
        let score = self.score.unwrap_or(f64::NAN);
        Item {
            item: self.item,
            position: self.position,
            score,
            category: self.category,
        }
    }

    fn line(self) -> Line {
        Line {
            item: self.item,
            position: self.position,
            value_micros: (self.value.unwrap_or(0.0) * 1e6).round_ties_even() as i64,
        }
    }
}

impl Draft {
    pub fn new(dimensions: usize, has_policies: bool, custom: &CustomFields) -> Self {
        Self {
            dimensions: vec![Text::EMPTY; dimensions],
            said: has_policies.then(Box::default),
            custom: Custom::new(custom),
            ..Self::default()
        }
    }

    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        self.head = Head::default();
        self.dimensions.fill(Text::EMPTY);
        self.clear_list();
        if let Some(said) = &mut self.said {
            said.clear();
        }
        if let Some(custom) = &mut self.custom {
            custom.clear();
        }
        self.unescaped.clear();
        (self.place, self.kind) = (Place::default(), None);
        self.text.clear();
        self.has_own_text = false;
        self.beside.clear();
        self.has_click = false;
    }

    /// What was read of a record: its text, with what stands beside it where that is read, too.
    pub fn text_of<'a>(&'a self, record: &'a str) -> &'a str {
        match self.has_own_text {
            true => &self.text,
            false => record,
        }
    }

    /// The event of a kind, once it is checked; `record` is what it was read from.
    pub fn event<'a>(&'a self, kind: EventKind, record: &'a str) -> Event<'a> {
        let record = self.text_of(record);
        let body = match kind {
            EventKind::Impressions => Body::Impressions {
                items: &self.items,
                is_list: self.head.has_list,
                weights: self.said.as_ref().map_or(&[], |said| &said.weights),
                reference: match self.head.has_reference {
                    true => &self.reference,
                    false => &[],
                },
                held_out: self.head.held_out,
            },
            EventKind::Clicks => Body::Click {
                lines: &self.lines,
                kind: self.head.feedback_kind.unwrap_or(Kind::Other),
                dwell_ms: self.head.dwell_ms,
            },
            EventKind::Conversions => Body::Conversion { lines: &self.lines },
            EventKind::Sessions => Body::Session {
                session: self.head.session,
                action: self.head.action.unwrap_or(Action::View),
                item: self.head.shown.item,
                dwell_ms: self.head.dwell_ms,
            },
        };
        Event {
            event_ms: self.head.ts.map_or(0, |ts| ts.ms),
            user: self.head.user,
            user_id: self.head.user_text.of(record, &self.unescaped),
            custom: self.custom.as_ref().map_or(&[], |custom| &custom.values),
            event_id: self.head.event_id,
            request: self.head.request,
            dimensions: Dimensions {
                texts: &self.dimensions,
                record,
                unescaped: &self.unescaped,
            },
            cut: self.head.cut,
            click: self.has_click.then_some(&self.click),
            body,
        }
    }
}
