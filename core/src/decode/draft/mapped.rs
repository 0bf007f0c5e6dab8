//! Reading the fields of a record of another shape, once it is known where they stand.

use super::{Action, Draft, Field, Kind, Place, Reading, Shown};
use crate::decode::Reason;
use crate::decode::mapping::{Fields, Found, Items, Wanted, first};
use crate::json::Reader;

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
        let most = reading.rules.limits.max_value;
        let is_right = |value: f64| (0.0..=most).contains(&value);
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
            let factor = reader.double(is_right, Reason::Value)?;
            value *= factor.unwrap_or(0.0);
        }
        if is_right(value) {
            Ok(Some(value))
        } else {
            Err(Reason::Value)
        }
    }

    fn read_mapped_items(
        &mut self,
        items: &Items,
        found: &Found,
        reading: &Reading,
    ) -> Result<(), Reason> {
        let Some((_, at)) = first(&items.values, found, reading.texts()) else {
            return Ok(());
        };
        self.place = Place::value(Field::Items, at);
        let mut list = reader_at(at, reading);
        if list.peek() != b'[' {
            return Err(Reason::Items);
        }
        self.clear_list();
        self.head.has_list = true;
        self.head.list_at = at as u32;
        let mut found = std::mem::take(&mut self.found_in_element);
        let count = list.list(|reader, i| {
            if i >= reading.rules.limits.max_items {
                return Err(Reason::Items);
            }
            self.place = Place::element(i, reader.at());
            let shown = self.read_mapped_element(items, reader, &mut found, reading)?;
            self.push_element(reading.kind, shown)
        });
        self.found_in_element = found;
        match count? {
            0 => Err(Reason::Items),
            _ => Ok(()),
        }
    }

    /// An object, or the id alone.
    fn read_mapped_element(
        &mut self,
        items: &Items,
        reader: &mut Reader,
        found: &mut Vec<u32>,
        reading: &Reading,
    ) -> Result<Shown, Reason> {
        let mut shown = Shown::default();
        if reader.peek() != b'{' {
            shown.item = self.read_id(reader, reading, Reason::Items)?;
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

fn reader_at<'a>(at: usize, reading: &Reading<'a>) -> Reader<'a> {
    Reader::starting(reading.record, at, reading.rules.limits.max_depth)
}
