//! Records of another shape: their fields are read once it is known where they stand, and what they
//! say is written as an event in our own shape, as the four topics hold it.
//!
//! Only an event that was read and checked is written. Ids, texts and numbers are copied as they
//! stand in the record; times, positions, values, and what follows from the kind are those of the
//! draft, so that reading the written event gives the same one.

use std::fmt::Write;

use super::{Action, Click, Draft, EventKind, Head, Kind, Place, Reading, Shown, times};
use crate::decode::mapping::{Fields, Found, MappedItems, Wanted, first, push_json};
use crate::decode::{Field, Reason};
use crate::hash::NONE;
use crate::json::Reader;

/// An event in our shape, and the buffers that writing it needs.
#[derive(Debug, Default)]
pub struct NativeEvent {
    /// A JSON object.
    pub json: String,
    /// The id of its user, else that of its request, else "".
    pub key: String,
    /// The click that stands in the record of the event, as another object; "" where there is none.
    pub click: String,
    unescaped: String,
    found: Vec<u32>,
}

impl NativeEvent {
    fn clear(&mut self) {
        self.json.clear();
        self.key.clear();
        self.click.clear();
        self.unescaped.clear();
    }

    /// Appends `,"name":`, which begins a field; without the comma where it is the first.
    fn push_key(&mut self, key: &str) {
        let is_first = self.json.ends_with('{');
        self.json.push_str(&key[usize::from(is_first)..]);
    }

    /// Copies the value that begins at a place.
    fn copy(&mut self, key: &str, at: usize, reading: &Reading) {
        let mut reader = reader_at(at, reading);
        if reader.skip(1).is_ok() {
            self.push_key(key);
            self.json.push_str(&reading.record[at..reader.at()]);
        }
    }

    /// Finds the fields of an object in a list: their places are in `found`.
    fn find(
        &mut self,
        items: &MappedItems,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.found.clear();
        self.found.resize(items.paths.count, 0);
        let source = (reading.record, &mut self.unescaped);
        items.paths.find(reader, 2, source, &mut self.found)
    }

    /// Makes an id that was read the key.
    fn set_key(&mut self, at: usize, reading: &Reading) {
        let mut reader = reader_at(at, reading);
        if reader.peek() != b'"' {
            let number = reader.number();
            self.key = number.map_or_else(|_| String::new(), |number| number.text().to_owned());
        } else if let Ok(text) = reader.text(&mut self.unescaped) {
            self.key = text.of(reading.record, &self.unescaped).to_owned();
        }
    }
}

impl Draft {
    /// What follows from the kind of the event.
    pub fn set_by_kind(&mut self, feedback: Option<Kind>, action: Option<Action>) {
        (self.head.feedback_kind, self.head.action) = (feedback, action);
    }

    /// Reads all fields of a kind.
    pub fn read_mapped(
        &mut self,
        fields: &Fields,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        for wanted in &fields.fields {
            if !wanted.times.is_empty() {
                let value = self.product(wanted, found, reading)?;
                self.head.shown.value = value.or(self.head.shown.value);
            } else if wanted.field != Field::Value || self.head.shown.value.is_none() {
                self.read_wanted(wanted, found, reading)?;
            }
        }
        match &fields.items {
            Some(items) => self.read_mapped_items(items, found, reading),
            None => Ok(()),
        }
    }

    /// Reads a field from the first of its places that has a value.
    pub(super) fn read_wanted(
        &mut self,
        wanted: &Wanted,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let Some((i, at)) = first(&wanted.values, found, reading.texts()) else {
            return Ok(());
        };
        let mut reader = reader_at(number_at(wanted.field, at, reading), reading);
        let unit = wanted.units.get(i).copied().unwrap_or_default();
        self.read(wanted.field, &mut reader, &Reading { unit, ..*reading })
    }

    /// A price times a number of pieces, in the bounds of a value; None where either is missing.
    fn product(
        &mut self,
        wanted: &Wanted,
        found: &Found,
        reading: &Reading,
    ) -> Result<Option<f64>, Reason> {
        let is_right = |value| reading.rules.ranges.contain(Field::Value, value);
        let mut value = 1.0;
        for places in [&wanted.values, &wanted.times] {
            let Some((_, at)) = first(places, found, reading.texts()) else {
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
        items: &MappedItems,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let Some((_, at)) = first(&items.values, found, reading.texts()) else {
            return Ok(());
        };
        self.place = Place::value(Field::Items, at);
        let mut list = reader_at(at, reading);
        if list.peek() != b'[' {
            return Err(Reason::Of(Field::Items));
        }
        self.clear_list();
        self.head.has_list = true;
        self.head.list_at = at as u32;
        let mut found = std::mem::take(&mut self.found_in_element);
        let count = list.list(|reader, i| {
            if i >= reading.rules.limits.max_items {
                return Err(Reason::Of(Field::Items));
            }
            self.place = Place::element(i, reader.at());
            let shown = self.read_mapped_element(items, reader, &mut found, reading)?;
            self.push_element(reading.kind, shown)
        });
        self.found_in_element = found;
        match count? {
            0 => Err(Reason::Of(Field::Items)),
            _ => Ok(()),
        }
    }

    /// An object, or the id alone.
    fn read_mapped_element(
        &mut self,
        items: &MappedItems,
        reader: &mut Reader,
        found: &mut Vec<u32>,
        reading: &Reading,
    ) -> Result<Shown, Reason> {
        let mut shown = Shown::default();
        if reader.peek() != b'{' {
            shown.item = self.read_id(reader, reading, Reason::Of(Field::Items))?;
            return Ok(shown);
        }
        found.clear();
        found.resize(items.paths.count, 0);
        let source = (reading.record, &mut self.unescaped);
        items.paths.find(reader, 2, source, found)?;
        for wanted in &items.fields {
            if !wanted.times.is_empty() {
                shown.value = self.product(wanted, found, reading)?.or(shown.value);
            } else if wanted.field == Field::Value && shown.value.is_some() {
                continue;
            } else if let Some((_, at)) = first(&wanted.values, found, reading.texts()) {
                let at = number_at(wanted.field, at, reading);
                let mut reader = reader_at(at, reading);
                self.read_shown(wanted.field, true, &mut reader, reading, &mut shown)?;
            }
        }
        Ok(shown)
    }

    // The click that stands in the record of its impression

    /// Reads what a click has besides its impression, which is read and checked: time, user,
    /// request, item and position are the impression's.
    pub fn read_click(
        &mut self,
        fields: &Fields,
        feedback: Option<Kind>,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let [item] = self.items[..] else {
            self.place = Place::value(Field::Items, self.head.list_at as usize);
            return Err(Reason::Of(Field::Items));
        };
        let own = || Box::new(Self::new(0, false, &reading.rules.custom));
        let mut click = self.clicked.take().unwrap_or_else(own);
        click.clear();
        click.head = Head {
            ts: self.head.ts,
            feedback_kind: feedback,
            shown: Shown {
                item: item.item,
                position: item.position,
                ..Shown::default()
            },
            ..Head::default()
        };
        let read = click.read_alone(fields, found, reading);
        if read.is_err() {
            self.place = click.place;
        } else if let Some(line) = click.lines.first() {
            let custom = click.custom.as_ref();
            self.click = Click {
                line: *line,
                kind: click.head.feedback_kind.unwrap_or(Kind::Other),
                dwell_ms: click.head.dwell_ms,
                custom: custom.and_then(|custom| custom.values.first().copied()),
            };
            self.has_click = true;
        }
        self.clicked = Some(click);
        read
    }

    fn read_alone(
        &mut self,
        fields: &Fields,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let reading = Reading {
            kind: EventKind::Clicks,
            ..*reading
        };
        let own = fields.fields.iter().filter(|x| x.field.is_of_click_alone());
        for wanted in own {
            self.read_wanted(wanted, found, &reading)?;
        }
        self.check(&reading)
    }

    // Events in our own shape

    /// Writes the event. `id`: its id where it has none of its own; `has_shown`: where an impression
    /// has neither user nor request, this is its request, too, for its click may stand in its record.
    pub fn write_native(
        &self,
        fields: &Fields,
        reading: &Reading,
        (id, has_shown): (&str, bool),
        to: &mut NativeEvent,
    ) -> Result<(), Reason> {
        to.clear();
        self.write_checked(reading, to);
        self.write_ids(id, has_shown && reading.kind == EventKind::Impressions, to);
        for wanted in &fields.fields {
            if let Some((_, at)) = first(&wanted.values, &self.found, reading.texts()) {
                self.write_field(wanted, at, reading, to);
            }
        }
        if let Some(items) = fields.items.as_ref().filter(|_| self.head.has_list) {
            self.write_items(items, reading, to)?;
        }
        to.json.push('}');
        Ok(())
    }

    /// Writes the click that stands in the record of an impression, whose ids it has.
    pub fn write_click(
        &self,
        (fields, clicks): (&Fields, &Fields),
        reading: &Reading,
        id: &str,
        to: &mut NativeEvent,
    ) -> Result<(), Reason> {
        let Some(click) = &self.clicked else {
            return Ok(());
        };
        let impression = std::mem::take(&mut to.json);
        let of_click = Reading {
            kind: EventKind::Clicks,
            ..*reading
        };
        click.write_checked(&of_click, to);
        self.write_ids(id, true, to);
        let shared = fields.fields.iter().filter(|x| x.field.is_of_every_event());
        let own = clicks.fields.iter();
        let own = own.filter(|x| matches!(x.field, Field::Custom(_)));
        for wanted in shared.chain(own) {
            if let Some((_, at)) = first(&wanted.values, &self.found, reading.texts()) {
                self.write_field(wanted, at, reading, to);
            }
        }
        if let Some(items) = fields.items.as_ref().filter(|_| self.head.has_list) {
            self.write_only_item(items, reading, to)?;
        }
        to.json.push('}');
        to.click = std::mem::replace(&mut to.json, impression);
        Ok(())
    }

    /// The id of a list's only item.
    fn write_only_item(
        &self,
        items: &MappedItems,
        reading: &Reading,
        to: &mut NativeEvent,
    ) -> Result<(), Reason> {
        let Some((_, at)) = first(&items.values, &self.found, reading.texts()) else {
            return Ok(());
        };
        reader_at(at, reading).list(|reader, _| {
            let at = reader.at();
            if reader.peek() != b'{' {
                to.copy(",\"item_id\":", at, reading);
                return reader.skip(2);
            }
            to.find(items, reader, reading)?;
            let wanted = items.fields.iter().find(|x| x.field == Field::ItemId);
            let place = wanted.and_then(|x| first(&x.values, &to.found, reading.texts()));
            if let Some((_, at)) = place {
                to.copy(",\"item_id\":", at, reading);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Ids that a record lacks, made of `id`: its own, and where it is asked for the request of
    /// nobody's.
    fn write_ids(&self, id: &str, with_request: bool, to: &mut NativeEvent) {
        if self.head.event_id == NONE {
            to.json.push_str(",\"event_id\":");
            push_json(id, &mut to.json);
        }
        if with_request && self.head.user == NONE && self.head.request == NONE {
            to.json.push_str(",\"request_id\":");
            push_json(id, &mut to.json);
            id.clone_into(&mut to.key);
        }
    }

    /// What is known besides what stands in the record.
    fn write_checked(&self, reading: &Reading, to: &mut NativeEvent) {
        let (kind, limits, json) = (reading.kind, &reading.rules.limits, &mut to.json);
        let ts_ms = self.head.ts.map_or(0, |ts| ts.ms);
        let looks_like_seconds = (limits.min_seconds..=limits.max_seconds).contains(&ts_ms);
        let _ = write!(json, "{{\"type\":\"{}\",\"ts\":", kind.event_type());
        let _ = match looks_like_seconds {
            true => write!(json, "\"{}\"", times::text_of(ts_ms)),
            false => write!(json, "{ts_ms}"),
        };
        match (kind, self.head.feedback_kind) {
            (EventKind::Clicks, Some(Kind::Configured(i))) if i > 0 => {
                json.push_str(",\"feedback\":");
                push_json(&reading.rules.feedback[usize::from(i)], json);
            }
            (EventKind::Clicks, Some(Kind::Other)) => json.push_str(",\"feedback\":\"other\""),
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

    fn write_field(&self, wanted: &Wanted, at: usize, reading: &Reading, to: &mut NativeEvent) {
        match wanted.field {
            Field::Type | Field::Items | Field::Ts | Field::StartTs | Field::EndTs => {}
            Field::Feedback | Field::Action | Field::DwellMs => {}
            Field::Position | Field::Value => {}
            Field::Dimension(_) if reading.record[at..].starts_with(['{', '[']) => {}
            field => {
                to.copy(&wanted.key, number_at(field, at, reading), reading);
                let is_key = match field {
                    Field::UserId => true,
                    Field::RequestId => self.head.user == NONE,
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
        items: &MappedItems,
        reading: &Reading,
        to: &mut NativeEvent,
    ) -> Result<(), Reason> {
        let Some((_, at)) = first(&items.values, &self.found, reading.texts()) else {
            return Ok(());
        };
        to.json.push_str(",\"items\":[");
        reader_at(at, reading).list(|reader, i| {
            if i > 0 {
                to.json.push(',');
            }
            self.write_element(items, (reader, i), reading, to)
        })?;
        to.json.push(']');
        Ok(())
    }

    /// An object, or the id alone.
    fn write_element(
        &self,
        items: &MappedItems,
        (reader, i): (&mut Reader, usize),
        reading: &Reading,
        to: &mut NativeEvent,
    ) -> Result<(), Reason> {
        let value = self.values.get(i).copied().flatten();
        if reader.peek() != b'{' {
            let at = reader.at();
            reader.skip(2)?;
            let id = &reading.record[at..reader.at()];
            let _ = match value {
                Some(value) => write!(to.json, "{{\"item_id\":{id},\"value\":{value:?}}}"),
                None => write!(to.json, "{id}"),
            };
            return Ok(());
        }
        to.find(items, reader, reading)?;
        to.json.push('{');
        for wanted in &items.fields {
            let Some((_, at)) = first(&wanted.values, &to.found, reading.texts()) else {
                continue;
            };
            match wanted.field {
                Field::Value => {}
                Field::Position => {
                    let of_item = self.items.get(i).map(|item| item.position);
                    let position = of_item.or(self.lines.get(i).map(|line| line.position));
                    to.push_key(&wanted.key);
                    let _ = write!(to.json, "{}", position.unwrap_or_default());
                }
                field => to.copy(&wanted.key, number_at(field, at, reading), reading),
            }
        }
        if let Some(value) = value {
            let _ = write!(to.json, ",\"value\":{value:?}");
        }
        to.json.push('}');
        Ok(())
    }
}

/// Where the value of a field begins: behind the quotation mark, where it is a number that is written
/// as a text.
fn number_at(field: Field, at: usize, reading: &Reading) -> usize {
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

fn reader_at<'a>(at: usize, reading: &Reading<'a>) -> Reader<'a> {
    Reader::starting(reading.record, at, reading.rules.limits.max_depth)
}
