//! Events in our own shape: what a mapped record says, as the four topics hold it.
//!
//! Only an event that was read and checked is written. Ids, texts and numbers are copied as they
//! stand in the record; times, positions, values, and what follows from the kind are those of the
//! draft, so that reading the written event gives the same one.

use std::fmt::Write;

use super::mapped::number_at;
use super::{Draft, EventKind, Field, Reading, times};
use crate::changes::Kind;
use crate::decode::Reason;
use crate::decode::mapping::{Fields, Items, Wanted, first, push_json};
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
        items: &Items,
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
        items: &Items,
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
        items: &Items,
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
        items: &Items,
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

fn reader_at<'a>(at: usize, reading: &Reading<'a>) -> Reader<'a> {
    Reader::starting(reading.record, at, reading.rules.limits.max_depth)
}
