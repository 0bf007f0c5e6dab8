//! Records of another shape: their fields are read once it is known where they stand, and what they
//! say is written as an event in our own shape, as the four topics hold it.
//!
//! Only an event that was read and checked is written. Ids, texts and numbers are copied as they
//! stand in the record; times, positions, values, and what follows from the kind are those of the
//! draft, so that reading the written event gives the same one.

use std::fmt::Write;

use super::scalars::whole;
use super::{Draft, Shown};
use crate::decode::arms;
use crate::decode::event::OF_RECORD;
use crate::decode::fields::{Field, Holds};
use crate::decode::mapping::{Fields, KindRule, Levels, MappedField, MappedList, Scope};
use crate::decode::reading::{Place, Reading};
use crate::decode::reason::Reason;
use crate::hash::NONE;
use crate::json::{Reader, push_json};
use crate::kinds::{EventKind, FeedbackKind, REFUND};
use crate::rows::times::moment;

/// An event in our shape.
#[derive(Debug)]
pub struct NativeEvent {
    pub kind: EventKind,
    /// A JSON object.
    pub json: String,
    /// The id that its joins depend on, else that of its user or request, else "".
    pub key: String,
}

impl NativeEvent {
    pub fn new(kind: EventKind) -> Self {
        Self {
            kind,
            json: String::new(),
            key: String::new(),
        }
    }

    /// Appends `,"name":`, which begins a field; without the comma where it is the first.
    fn push_key(&mut self, key: &str) {
        let is_first = self.json.ends_with('{');
        self.json.push_str(&key[usize::from(is_first)..]);
    }

    /// Copies a value that begins at a place: one of ids as it is read, a number as it is scaled.
    fn copy(&mut self, wanted: &MappedField, (i, at): (usize, usize), reading: &Reading) {
        let mut reader = reader_at(number_at(wanted.field, at, reading), reading);
        let start = reader.at();
        if let Some(scale) = wanted.form(i).scale {
            if let Ok(number) = reader.number() {
                self.push_key(&wanted.key);
                let _ = write!(self.json, "{:?}", number.double().unwrap_or(0.0) * scale);
            }
        } else if reader.skip(1).is_ok() {
            self.push_key(&wanted.key);
            let (json, mut value) = (&mut self.json, reader_at(start, reading));
            match wanted.field.declared().holds {
                Holds::Id if reading.values.whole_ids => push_id(&mut value, reading.record, json),
                Holds::Ids if reading.values.whole_ids => {
                    push_ids(&mut value, reading.record, json)
                }
                _ => json.push_str(&reading.record[start..reader.at()]),
            }
        }
    }

    /// Makes an id that was read the key.
    fn set_key(&mut self, at: usize, reading: &Reading) {
        let mut reader = reader_at(at, reading);
        if reader.peek() != b'"' {
            let number = reader.number();
            self.key = number.map_or_else(|_| String::new(), |number| number.text().to_owned());
        } else {
            let mut unescaped = String::new();
            if let Ok(text) = reader.text(&mut unescaped) {
                self.key = text.of(reading.record, &unescaped).to_owned();
            }
        }
        self.key.truncate(reading.id_of(&self.key).len());
    }
}

impl Draft {
    /// What follows from the kind of the event.
    pub fn set_by_kind(&mut self, rule: KindRule) {
        (self.head.feedback_kind, self.head.action) = (rule.feedback, rule.action);
        self.head.is_refund = rule.is_refund;
    }

    /// Reads all fields of a kind. An event that is not `needed` is ignored where it has no item.
    pub fn read_mapped(
        &mut self,
        (fields, levels): (&Fields, &Levels),
        scope: &mut Scope,
        reading: &Reading,
        is_needed: bool,
    ) -> Result<(), Reason> {
        let mut lists = fields.lists.iter();
        let list = lists.find_map(|list| Some((list, levels.list_at(list.levels[0], scope)?)));
        if !is_needed && !has_item(fields, levels, list.map(|(list, _)| list), scope)? {
            return Err(Reason::Ignored);
        }
        for wanted in &fields.fields {
            if !wanted.times.is_empty() {
                let value = self.product(wanted, scope, reading)?;
                self.head.shown.value = value.or(self.head.shown.value);
            } else if says_item(wanted.field) && list.is_some() {
                continue;
            } else if wanted.field != Field::Value || self.head.shown.value.is_none() {
                self.read_wanted(wanted, scope, reading)?;
            }
        }
        match list {
            Some((list, at)) => self.read_mapped_items((list, levels), at, scope, reading),
            None => Ok(()),
        }
    }

    /// Reads a field from the first of its places that has a value.
    fn read_wanted(
        &mut self,
        wanted: &MappedField,
        scope: &mut Scope,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let Some((i, at)) = scope.first(&wanted.values) else {
            return Ok(());
        };
        let form = wanted.form(i);
        let reading = Reading { form, ..*reading };
        if let Some(time) = form.time {
            let record = &scope.day_and_time(at, time)?;
            let reading = Reading { record, ..reading };
            return self.read(wanted.field, &mut reader_at(0, &reading), &reading);
        }
        let mut reader = reader_at(number_at(wanted.field, at, &reading), &reading);
        self.read(wanted.field, &mut reader, &reading)
    }

    /// A price times a number of pieces, in the bounds of a value; None where either is missing.
    fn product(
        &mut self,
        wanted: &MappedField,
        scope: &Scope,
        reading: &Reading,
    ) -> Result<Option<f64>, Reason> {
        let is_right = |value| reading.rules.ranges.contain(Field::Value, value);
        let mut value = wanted.form(0).scale.unwrap_or(1.0);
        for places in [&wanted.values, &wanted.times] {
            let Some((_, at)) = scope.first(places) else {
                return Ok(None);
            };
            self.place = Place {
                element: self.place.element,
                ..Place::value(wanted.field, at)
            };
            let mut reader = reader_at(number_at(wanted.field, at, reading), reading);
            let factor = reader.double(is_right, Reason::Of(Field::Value))?;
            value *= factor.unwrap_or(0.0);
        }
        if is_right(value) {
            Ok(Some(value))
        } else {
            Err(Reason::Of(Field::Value))
        }
    }

    fn read_mapped_items(
        &mut self,
        (list, levels): (&MappedList, &Levels),
        at: usize,
        scope: &mut Scope,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.place = Place::value(Field::Items, at);
        if reader_at(at, reading).peek() != b'[' {
            return Err(Reason::Of(Field::Items));
        }
        self.clear_list();
        self.head.has_list = true;
        self.head.list_at = at as u32;
        let mut count = 0;
        levels.walk(&list.levels, scope, &mut |scope, at| {
            if count >= reading.rules.limits.max_items {
                return Err(Reason::Of(Field::Items));
            }
            self.place = Place::element(count, at);
            count += 1;
            let shown = self.read_mapped_element(&list.fields, scope, reading)?;
            self.push_element(reading.kind, shown)
        })?;
        match (count, levels.choose(&list.levels)) {
            (0, true) => Err(Reason::Ignored),
            (0, false) if self.head.is_refund => {
                self.head.has_list = false; // it is of all items of its order
                Ok(())
            }
            (0, false) if reading.kind != EventKind::Impressions => Err(Reason::Of(Field::Items)),
            _ => Ok(()),
        }
    }

    fn read_mapped_element(
        &mut self,
        fields: &[MappedField],
        scope: &Scope,
        reading: &Reading,
    ) -> Result<Shown, Reason> {
        let mut shown = Shown::default();
        for wanted in fields {
            if !wanted.times.is_empty() {
                shown.value = self.product(wanted, scope, reading)?.or(shown.value);
            } else if wanted.field == Field::Value && shown.value.is_some() {
                continue;
            } else if let Some((i, at)) = scope.first(&wanted.values) {
                let at = number_at(wanted.field, at, reading);
                let mut reader = reader_at(at, reading);
                let form = wanted.form(i);
                let reading = Reading { form, ..*reading };
                self.read_shown(wanted.field, true, &mut reader, &reading, &mut shown)?;
            }
        }
        Ok(shown)
    }

    // Events in our own shape

    /// Writes the event. `id`: its id where it has none of its own; `shared`: what one joins by that
    /// has neither user nor request, where others stand in the same record.
    pub fn write_native(
        &self,
        (fields, levels): (&Fields, &Levels),
        (id, shared): (&str, Option<&str>),
        (scope, reading): (&mut Scope, &Reading),
        to: &mut NativeEvent,
    ) {
        self.write_checked(reading, to);
        self.write_ids(id, shared, to);
        for wanted in &fields.fields {
            if let Some(place) = scope.first(&wanted.values) {
                self.write_field(wanted, place, reading, to);
            }
        }
        self.write_arms(reading, to);
        if self.head.has_list {
            let mut lists = fields.lists.iter();
            if let Some(list) = lists.find(|x| levels.list_at(x.levels[0], scope).is_some()) {
                self.write_items((list, levels), (scope, reading), to);
            }
        }
        to.json.push('}');
    }

    /// Ids that a record lacks.
    fn write_ids(&self, id: &str, shared: Option<&str>, to: &mut NativeEvent) {
        // The request of an empty slate is its id.
        let is_empty_slate = self.head.has_list && self.items.is_empty() && self.lines.is_empty();
        let has_id = is_empty_slate && self.head.request != NONE;
        if self.head.event_id == NONE && !has_id {
            to.json.push_str(",\"event_id\":");
            push_json(id, &mut to.json);
        }
        let is_nobodys = self.head.user == NONE
            && self.head.request == NONE
            && self.head.shown.impression == NONE;
        if let Some(request) = shared.filter(|_| is_nobodys && self.head.join == NONE) {
            let id = format!("{OF_RECORD}{request}");
            to.json.push_str(",\"join_id\":");
            push_json(&id, &mut to.json);
            to.key = id;
        }
    }

    /// What says something of arms, by path.
    fn write_arms(&self, reading: &Reading, to: &mut NativeEvent) {
        for (number, value) in self.arms.iter().enumerate() {
            match number {
                0 => {
                    let _ = write!(to.json, ",\"{}\":{{", arms::BY_PATH);
                }
                _ => to.json.push(','),
            }
            push_json(reading.rules.arms.path_of(value), &mut to.json);
            to.json.push(':');
            to.json.push_str(value.text.of(reading.record, ""));
        }
        if !self.arms.is_empty() {
            to.json.push('}');
        }
    }

    /// What is known besides what stands in the record.
    fn write_checked(&self, reading: &Reading, to: &mut NativeEvent) {
        let (kind, limits, json) = (reading.kind, &reading.rules.limits, &mut to.json);
        let ts_ms = self.head.ts.map_or(0, |ts| ts.ms);
        let looks_like_seconds = (limits.min_seconds..=limits.max_seconds).contains(&ts_ms);
        let event_type = if self.head.is_refund {
            REFUND
        } else {
            kind.event_type()
        };
        let _ = write!(json, "{{\"type\":\"{event_type}\",\"ts\":");
        let _ = match looks_like_seconds {
            true => {
                let mut text = Vec::new();
                moment(ts_ms, 1000, true, &mut text);
                write!(json, "{}", String::from_utf8_lossy(&text))
            }
            false => write!(json, "{ts_ms}"),
        };
        match (kind, self.head.feedback_kind) {
            (EventKind::Clicks, Some(FeedbackKind::Configured(i))) if i > 0 => {
                json.push_str(",\"feedback\":");
                push_json(&reading.rules.feedback[usize::from(i)], json);
            }
            (EventKind::Clicks, Some(FeedbackKind::Other)) => {
                json.push_str(",\"feedback\":\"other\"")
            }
            _ => {}
        }
        if let (EventKind::Sessions, Some(action)) = (kind, self.head.action) {
            let _ = write!(json, ",\"action\":\"{}\"", action.name());
        }
        if let Some(dwell_ms) = self.head.dwell_ms {
            let _ = write!(json, ",\"dwell_ms\":{dwell_ms}");
        }
        if !self.head.has_list && self.head.shown.position > 0 {
            let _ = write!(json, ",\"position\":{}", self.head.shown.position);
        }
        if let Some(value) = self.head.shown.value.filter(|_| !self.head.has_list) {
            let _ = write!(json, ",\"value\":{value:?}");
        }
    }

    fn write_field(
        &self,
        wanted: &MappedField,
        (i, at): (usize, usize),
        reading: &Reading,
        to: &mut NativeEvent,
    ) {
        match wanted.field {
            Field::Type | Field::Items | Field::Ts | Field::StartTs | Field::EndTs => {}
            Field::Feedback | Field::Action | Field::DwellMs => {}
            Field::Position | Field::Value => {}
            field if says_item(field) && self.head.has_list => {}
            Field::Arms(_) => {}
            Field::Dimension(_) if reading.record[at..].starts_with(['{', '[']) => {}
            field => {
                to.copy(wanted, (i, at), reading);
                let is_key = match field {
                    Field::JoinId => true,
                    Field::UserId => self.head.join == NONE,
                    Field::ImpressionId => self.head.join == NONE && self.head.user == NONE,
                    Field::RequestId => {
                        let is_of_nobody = self.head.join == NONE && self.head.user == NONE;
                        is_of_nobody && self.head.shown.impression == NONE
                    }
                    _ => false,
                };
                if is_key {
                    to.set_key(at, reading);
                }
            }
        }
    }

    fn write_items(
        &self,
        (list, levels): (&MappedList, &Levels),
        (scope, reading): (&mut Scope, &Reading),
        to: &mut NativeEvent,
    ) {
        to.json.push_str(",\"items\":[");
        let mut count = 0;
        let walked = levels.walk(&list.levels, scope, &mut |scope, _| {
            if count > 0 {
                to.json.push(',');
            }
            self.write_element(&list.fields, (scope, count), reading, to);
            count += 1;
            Ok(())
        });
        debug_assert!(walked.is_ok(), "it was gone over before");
        to.json.push(']');
    }

    fn write_element(
        &self,
        fields: &[MappedField],
        (scope, i): (&Scope, usize),
        reading: &Reading,
        to: &mut NativeEvent,
    ) {
        to.json.push('{');
        for wanted in fields {
            let Some(place) = scope.first(&wanted.values) else {
                continue;
            };
            match wanted.field {
                Field::Value => {}
                Field::Position => {
                    if let Some(item) = self.items.get(i) {
                        to.push_key(&wanted.key);
                        let _ = write!(to.json, "{}", item.position);
                    }
                }
                _ => to.copy(wanted, place, reading),
            }
        }
        if let Some(line) = self.lines.get(i).filter(|line| line.position > 0) {
            let _ = write!(to.json, ",\"position\":{}", line.position);
        }
        if let Some(value) = self.values.get(i).copied().flatten() {
            let _ = write!(to.json, ",\"value\":{value:?}");
        }
        to.json.push('}');
    }
}

/// Whether a field says which item an event is of, as its list does where it has one.
fn says_item(field: Field) -> bool {
    matches!(field, Field::ItemId | Field::ImpressionId)
}

/// Whether an event has an item, or an impression; or one at least in its list.
fn has_item(
    fields: &Fields,
    levels: &Levels,
    list: Option<&MappedList>,
    scope: &mut Scope,
) -> Result<bool, Reason> {
    let Some(list) = list else {
        let mut items = fields.fields.iter().filter(|x| says_item(x.field));
        return Ok(items.any(|wanted| scope.first(&wanted.values).is_some()));
    };
    let mut has_some = false;
    levels.walk(&list.levels, scope, &mut |_, _| {
        has_some = true;
        Ok(())
    })?;
    Ok(has_some || !levels.is_list(list.levels[0], scope))
}

/// Appends the id that comes next, without decimals that are all 0.
fn push_id(reader: &mut Reader, record: &str, to: &mut String) {
    let (start, mut unescaped) = (reader.at(), String::new());
    if reader.peek() == b'"' {
        if let Ok(text) = reader.text(&mut unescaped) {
            push_json(whole(text.of(record, &unescaped)), to);
        }
    } else if reader.skip(1).is_ok() {
        to.push_str(whole(record[start..reader.at()].trim()));
    }
}

/// Likewise a list of them.
fn push_ids(reader: &mut Reader, record: &str, to: &mut String) {
    to.push('[');
    let walked = reader.list(|reader, i| {
        if i > 0 {
            to.push(',');
        }
        push_id(reader, record, to);
        Ok(())
    });
    debug_assert!(walked.is_ok(), "it was read before");
    to.push(']');
}

/// Where the value of a field begins: behind the quotation mark, where it is a number that is written
/// as a text.
pub(super) fn number_at(field: Field, at: usize, reading: &Reading) -> usize {
    if !field.is_number() || !reading.record[at..].starts_with('"') {
        return at;
    }
    let mut reader = reader_at(at + 1, reading);
    let is_number = matches!(reader.byte(), b'-' | b'0'..=b'9') && reader.number().is_ok();
    match is_number && reader.byte() == b'"' {
        true => at + 1,
        false => at,
    }
}

pub(super) fn reader_at<'a>(at: usize, reading: &Reading<'a>) -> Reader<'a> {
    Reader::starting(reading.record, at, reading.rules.limits.max_depth)
}
