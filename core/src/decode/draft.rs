//! An event while its record is read, and the rules across its fields.

use super::event::{Action, Body, Dimensions, Event, Item, Topic};
use super::{Names, Reason, Rules, times};
use crate::changes::Kind;
use crate::hash::{self, NONE};
use crate::json::Text;

mod custom;
mod field;
mod items;
mod said;
mod values;

use custom::Custom;
pub(super) use custom::Sources;
pub(super) use field::Field;
use said::Said;

/// What reading needs besides the record.
pub(super) struct Source<'a> {
    pub record: &'a str,
    pub rules: &'a Rules,
    pub items: &'a Names<Field>,
}

/// The fields as far as they are read: the last value of each name. `NONE` and None are null or
/// missing.
#[derive(Debug, Default)]
pub(super) struct Draft {
    ts: Option<Moment>,
    user: u64,
    event_id: u64,
    request: u64,
    /// The item that is not in a list.
    shown: Shown,
    session: u64,
    held_out: u64,
    value: Option<f64>,
    dwell_ms: Option<i64>,
    start: Option<Moment>,
    end: Option<Moment>,
    feedback: Option<Text>,
    action: Option<Action>,
    has_list: bool,
    has_reference: bool,
    dimensions: Vec<Text>,
    items: Vec<Item>,
    /// Where there are policies.
    said: Option<Box<Said>>,
    /// Where there are custom metrics.
    custom: Option<Box<Custom>>,
    /// Item → rank from 1, where it stands first.
    reference: hash::HashMap<i16>,
    kind: Option<Kind>,
    /// Texts of the record that have escapes.
    pub unescaped: String,
}

/// A time, and whether it is written as a number.
#[derive(Clone, Copy, Debug)]
struct Moment {
    ms: i64,
    is_number: bool,
}

/// Fields that an item has wherever it stands.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    item: u64,
    position: u32,
    score: Option<f64>,
    category: u64,
}

impl Shown {
    fn item(self) -> Item {
        let score = self.score.unwrap_or(f64::NAN);
        Item {
            item: self.item,
            position: self.position,
            score,
            probe: 0,
            category: self.category,
        }
    }
}

impl Draft {
    pub fn new(dimensions: usize, has_policies: bool, sources: &Sources) -> Self {
        Self {
            dimensions: vec![Text::EMPTY; dimensions],
            said: has_policies.then(Box::default),
            custom: Custom::new(sources),
            ..Self::default()
        }
    }

    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        self.dimensions.fill(Text::EMPTY);
        self.items.clear();
        if let Some(said) = &mut self.said {
            said.clear();
        }
        if let Some(custom) = &mut self.custom {
            custom.clear();
        }
        self.unescaped.clear();
        *self = Self {
            dimensions: std::mem::take(&mut self.dimensions),
            items: std::mem::take(&mut self.items),
            said: self.said.take(),
            custom: self.custom.take(),
            reference: std::mem::take(&mut self.reference),
            unescaped: std::mem::take(&mut self.unescaped),
            ..Self::default()
        };
    }

    /// What a field's type cannot say.
    pub fn check(&mut self, topic: Topic, source: &Source) -> Result<(), Reason> {
        let limits = &source.rules.limits;
        let ts = self.ts.ok_or(Reason::Ts)?;
        if self.user == NONE {
            return Err(Reason::UserId);
        }
        self.check_required(topic)?;
        let is_in_seconds =
            |at: Moment| at.is_number && (limits.min_seconds..=limits.max_seconds).contains(&at.ms);
        if is_in_seconds(ts) || !(0..=limits.max_event_ms).contains(&ts.ms) {
            return Err(Reason::Ts);
        }
        if topic == Topic::Impressions {
            self.check_items()?;
            if let Some(said) = &mut self.said {
                said.weigh(&source.rules.policies, &self.items, self.has_list);
            }
        }
        if topic == Topic::Clicks {
            self.kind = Some(self.kind(source)?);
        }
        if topic == Topic::Sessions && self.action == Some(Action::Dwell) && self.shown.item == NONE
        {
            return Err(Reason::ItemId);
        }
        match (self.start, self.end) {
            (None, None) => {}
            (Some(start), Some(end)) if !is_in_seconds(start) && !is_in_seconds(end) => {
                let spent_ms = end.ms - start.ms;
                if !(0..=limits.max_dwell_ms).contains(&spent_ms) {
                    return Err(Reason::Dwell);
                }
                self.dwell_ms = self.dwell_ms.or(Some(spent_ms));
            }
            _ => return Err(Reason::Dwell),
        }
        self.check_dimensions(source)?;
        self.fill_custom(topic, &source.rules.custom);
        Ok(())
    }

    fn check_required(&self, topic: Topic) -> Result<(), Reason> {
        match topic {
            Topic::Impressions => Ok(()),
            Topic::Clicks | Topic::Conversions if self.shown.item == NONE => Err(Reason::ItemId),
            Topic::Clicks | Topic::Conversions => Ok(()),
            Topic::Sessions if self.session == NONE => Err(Reason::SessionId),
            Topic::Sessions if self.action.is_none() => Err(Reason::Action),
            Topic::Sessions => Ok(()),
        }
    }

    fn check_items(&mut self) -> Result<(), Reason> {
        match (self.has_list, self.shown.item) {
            (false, NONE) => return Err(Reason::ItemId),
            (true, NONE) => {}
            (false, _) => self.items.push(self.shown.item()),
            (true, _) => return Err(Reason::Items),
        }
        self.finish_items();
        Ok(())
    }

    /// The kind of a feedback event.
    fn kind(&self, source: &Source) -> Result<Kind, Reason> {
        let Some(feedback) = self.feedback else {
            return Ok(Kind::Configured(0));
        };
        let text = feedback.of(source.record, &self.unescaped);
        if !is_label(text, source.rules.limits.max_label_chars) {
            return Err(Reason::Feedback);
        }
        let mut kinds = (0..).zip(&source.rules.feedback);
        Ok(kinds
            .find(|(_, kind)| *kind == text)
            .map_or(Kind::Other, |(i, _)| Kind::Configured(i)))
    }

    fn check_dimensions(&mut self, source: &Source) -> Result<(), Reason> {
        for text in self
            .dimensions
            .iter_mut()
            .filter(|text| **text != Text::EMPTY)
        {
            let value = text.of(source.record, &self.unescaped);
            if value == "unknown" {
                *text = Text::EMPTY;
            } else if matches!(value, "all" | "other")
                || !is_label(value, source.rules.limits.max_label_chars)
            {
                return Err(Reason::Dimension);
            }
        }
        Ok(())
    }

    /// The event, once it is checked.
    pub fn event<'a>(&'a self, topic: Topic, record: &'a str) -> Event<'a> {
        let item = self.shown.item;
        let body = match topic {
            Topic::Impressions => Body::Impressions {
                items: &self.items,
                is_list: self.has_list,
                weights: self.said.as_ref().map_or(&[], |said| &said.weights),
            },
            Topic::Clicks => Body::Click {
                item,
                position: self.shown.position,
                kind: self.kind.unwrap_or(Kind::Other),
                dwell_ms: self.dwell_ms,
            },
            Topic::Conversions => Body::Conversion {
                item,
                value_micros: (self.value.unwrap_or(0.0) * 1e6).round_ties_even() as i64,
            },
            Topic::Sessions => Body::Session {
                session: self.session,
                action: self.action.unwrap_or(Action::View),
                item,
                dwell_ms: self.dwell_ms,
            },
        };
        Event {
            event_ms: self.ts.map_or(0, |ts| ts.ms),
            user: self.user,
            custom: self.custom.as_ref().map_or(&[], |custom| &custom.values),
            event_id: self.event_id,
            request: self.request,
            dimensions: Dimensions {
                texts: &self.dimensions,
                record,
                unescaped: &self.unescaped,
            },
            body,
        }
    }
}

/// Whether a text may be the value of a label: what no exposition format has to escape.
fn is_label(text: &str, max_chars: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=max_chars).contains(&text.len()) && text.bytes().all(is_plain)
}
