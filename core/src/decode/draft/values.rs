//! The types of values.

use super::scalars::{Moment, number};
use super::{Draft, Shown};
use crate::decode::fields::Field;
use crate::decode::names::{Last, Names};
use crate::decode::reading::{Place, Reading};
use crate::decode::reason::Reason;
use crate::decode::times;
use crate::hash::NONE;
use crate::json::{Number, Reader, Text};
use crate::kinds::{Action, EventKind, REFUND};
use crate::spec::records::Unit;

impl Draft {
    /// Fills it, which is empty, from an object whose fields stand at its top.
    pub fn fill(&mut self, reading: &Reading, fields: &Names<Field>) -> Result<(), Reason> {
        self.read_all(reading, fields)?;
        self.check(reading)
    }

    /// Reads those of some fields that a record has.
    pub fn read_all(&mut self, reading: &Reading, fields: &Names<Field>) -> Result<(), Reason> {
        let record = reading.record;
        let mut reader = Reader::new(record, reading.rules.limits.max_depth);
        if reader.peek() != b'{' {
            reader.skip(0)?;
            return Err(if reader.is_at_end() {
                Reason::Object
            } else {
                Reason::Json
            });
        }
        let mut last = Last::default();
        reader.object(
            self,
            |reader, draft| fields.read(&mut last, reader, &mut draft.unescaped),
            |reader, draft, field| match field {
                Some(field) => draft.read(field, reader, reading),
                None => reader.skip(1),
            },
        )?;
        match reader.is_at_end() {
            true => Ok(()),
            false => Err(Reason::Json),
        }
    }

    fn read_text(&mut self, reader: &mut Reader, reason: Reason) -> Result<Text, Reason> {
        if reader.peek() != b'"' {
            return Err(reader.refusal(reason));
        }
        reader.text(&mut self.unescaped)
    }

    /// The hash of an id, which is a text or an integer: 17 and "17" are the same. `NONE` for an
    /// empty text.
    #[inline]
    pub(super) fn read_id(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
        reason: Reason,
    ) -> Result<u64, Reason> {
        if reader.peek() == b'"' {
            let text = reader.text(&mut self.unescaped)?;
            let id = text.of(reading.record, &self.unescaped);
            if id.len() > reading.rules.limits.max_id_bytes {
                return Err(reason);
            }
            let id = reading.id_of(id);
            self.head.id = text.cut(id.len());
            return Ok(reading.rules.key.of(id.as_bytes()));
        }
        let start = reader.at();
        if !matches!(reader.peek(), b'-' | b'0'..=b'9') {
            return Err(reader.refusal(reason));
        }
        let number = reader.number()?;
        let id = reading.id_of(number.text());
        let is_whole = number.is_integer() || id.len() < number.text().len();
        self.head.id = reader.raw_since(start).cut(id.len());
        match is_whole && id.len() <= reading.rules.limits.max_id_bytes {
            true => Ok(reading.rules.key.of(id.as_bytes())),
            false => Err(reason),
        }
    }

    #[inline]
    pub(super) fn read_optional_id(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
        reason: Reason,
    ) -> Result<u64, Reason> {
        if reader.null()? {
            Ok(NONE)
        } else {
            self.read_id(reader, reading, reason)
        }
    }

    pub(super) fn read_type(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.head.is_refund = false;
        if reader.null()? {
            return Ok(());
        }
        let text = self.read_text(reader, Reason::Of(Field::Type))?;
        let text = text.of(reading.record, &self.unescaped);
        self.head.is_refund = reading.kind == EventKind::Conversions && text == REFUND;
        if self.head.is_refund || text == reading.kind.event_type() {
            Ok(())
        } else {
            Err(Reason::Of(Field::Type))
        }
    }

    pub(super) fn read_feedback(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<Option<Text>, Reason> {
        if reader.null()? {
            return Ok(None);
        }
        let text = self.read_text(reader, Reason::Of(Field::Feedback))?;
        let max_chars = reading.rules.limits.max_label_chars;
        let given = text.of(reading.record, &self.unescaped);
        match given {
            "" => Ok(None),
            _ if has_chars(given, max_chars) => Ok(Some(text)),
            _ => Err(Reason::Of(Field::Feedback)),
        }
    }

    pub(super) fn read_action(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<Option<Action>, Reason> {
        if reader.null()? {
            return Ok(None);
        }
        let text = self.read_text(reader, Reason::Of(Field::Action))?;
        let name = text.of(reading.record, &self.unescaped);
        Action::of(name).map(Some).ok_or(Reason::Of(Field::Action))
    }

    /// Texts, numbers and booleans as they are written; anything else is no value.
    pub(super) fn read_label(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<Text, Reason> {
        let first = reader.peek();
        let start = reader.at();
        if first == b'"' {
            let text = reader.text(&mut self.unescaped)?;
            return Ok(self.shortened(text, reading));
        }
        reader.skip(1)?;
        let is_value = matches!(first, b'-' | b'0'..=b'9' | b't' | b'f');
        Ok(if is_value {
            reader.raw_since(start)
        } else {
            Text::EMPTY
        })
    }

    /// Gives back the memory of what of a text with escapes is cut anyway: all but the characters that
    /// a label may have, and one more.
    fn shortened(&mut self, text: Text, reading: &Reading) -> Text {
        let whole = text.of(reading.record, &self.unescaped);
        let most = reading.rules.limits.max_label_chars + 1;
        if whole.len() <= most {
            return text;
        }
        let end = whole.char_indices().nth(most).map(|(end, _)| end);
        let Some(end) = end.filter(|_| text.is_unescaped()) else {
            return text;
        };
        let unused = whole.len() - end;
        self.unescaped.truncate(self.unescaped.len() - unused);
        text.cut(end)
    }

    // Times: numbers in a unit, and RFC 3339 texts

    pub(super) fn read_optional_moment(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
        reason: Reason,
    ) -> Result<Option<Moment>, Reason> {
        if reader.null()? {
            Ok(None)
        } else {
            self.read_moment(reader, reading, reason).map(Some)
        }
    }

    /// A number, a text that is one, or an RFC 3339 text, in which only escapes forbid a leap second.
    pub(super) fn read_moment(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
        reason: Reason,
    ) -> Result<Moment, Reason> {
        let first = reader.peek();
        let at = reader.at() as u32;
        let (form, zone) = (reading.form, reading.zone());
        let exponent = form.unit.exponent();
        let scaled = |number: Number| match form.scale {
            Some(scale) => number
                .double()
                .map(|number| (number * scale).round() as i64),
            None => number.scaled(exponent),
        };
        let found = match (first, &form.format) {
            (b'-' | b'0'..=b'9', None) => number(scaled(reader.number()?), at, reading),
            (b'-' | b'0'..=b'9', Some(format)) => {
                Moment::of_text(format.epoch_ms(reader.number()?.text(), zone), at)
            }
            (b'"', format) => {
                let text = reader.text(&mut self.unescaped)?;
                let found = text.of(reading.record, &self.unescaped);
                let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'.';
                match format {
                    Some(format) => Moment::of_text(format.epoch_ms(found, zone), at),
                    None if found.bytes().all(is_digit) => {
                        let mut digits = Reader::new(found, 0);
                        let scaled = digits.number().ok().and_then(scaled);
                        number(scaled.filter(|_| digits.is_at_end()), at, reading)
                    }
                    None if !matches!(form.unit, Unit::Any | Unit::Iso) => None,
                    None => {
                        let allows_leap = !text.is_unescaped();
                        let ms = times::epoch_ms(found.as_bytes(), allows_leap, zone);
                        Moment::of_text(ms, at)
                    }
                }
            }
            _ => return Err(reader.refusal(reason)),
        };
        found.ok_or(reason)
    }

    // Items in a list, and brute-force lists

    /// Reads `items`, or null.
    pub(super) fn read_items(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.clear_list();
        self.head.has_list = !reader.null()?;
        self.head.list_at = reader.at() as u32;
        if !self.head.has_list {
            return Ok(());
        }
        let least = usize::from(reading.kind != EventKind::Impressions);
        read_list((Field::Items, least), reader, reading, |reader, i| {
            self.place = Place::element(i, reader.at());
            let shown = self.read_element(reader, reading)?;
            self.push_element(reading.kind, shown)
        })
    }

    /// Forgets the list that was read.
    pub(super) fn clear_list(&mut self) {
        self.items.clear();
        self.lines.clear();
        self.values.clear();
        if let Some(policies) = &mut self.policies {
            policies.items.clear();
        }
        if let Some(own) = &mut self.own {
            own.items.clear();
        }
    }

    /// Adds an element of a list.
    pub(super) fn push_element(&mut self, kind: EventKind, shown: Shown) -> Result<(), Reason> {
        if !shown.is_of_something() {
            self.place = Place {
                element: self.place.element,
                ..Place::missing(Field::ItemId)
            };
            return Err(Reason::Of(Field::Items));
        }
        self.push_shown(kind, shown);
        if let Some(policies) = &mut self.policies {
            policies.end_element();
        }
        if let Some(own) = &mut self.own {
            own.end_element();
        }
        Ok(())
    }

    pub(super) fn push_shown(&mut self, kind: EventKind, shown: Shown) {
        if kind == EventKind::Impressions {
            self.items.push(shown.item());
        } else {
            self.lines.push(shown.line());
            self.values.push(shown.value);
        }
    }

    /// An object, or the id alone.
    fn read_element(&mut self, reader: &mut Reader, reading: &Reading) -> Result<Shown, Reason> {
        let mut state = (&mut *self, Shown::default());
        if reader.peek() != b'{' {
            let (draft, mut shown) = state;
            shown.item = draft.read_id(reader, reading, Reason::Of(Field::Items))?;
            return Ok(shown);
        }
        let mut last = Last::default();
        reader.object(
            &mut state,
            |reader, (draft, _)| reading.items.read(&mut last, reader, &mut draft.unescaped),
            |reader, (draft, shown), field| match field {
                Some(field) => draft.read_shown(field, true, reader, reading, shown),
                None => reader.skip(3),
            },
        )?;
        Ok(state.1)
    }

    /// Reads `reference`, or null.
    pub(super) fn read_reference(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.reference.clear();
        self.head.has_reference = !reader.null()?;
        if !self.head.has_reference {
            return Ok(());
        }
        read_list((Field::Reference, 1), reader, reading, |reader, i| {
            self.place = Place {
                field: Some(Field::Reference),
                ..Place::element(i, reader.at())
            };
            let item = self.read_id(reader, reading, Reason::Of(Field::Reference))?;
            if item == NONE {
                return Err(Reason::Of(Field::Reference));
            }
            self.reference.push(item);
            Ok(())
        })
    }

    /// Positions of a list without any are its order.
    pub(super) fn finish_items(&mut self) {
        if self.head.has_list && self.items.iter().all(|item| item.position == 0) {
            for (position, item) in (1..).zip(&mut self.items) {
                item.position = position;
            }
        }
    }
}

/// Reads a list of `least` to `max_items` elements.
fn read_list(
    (field, least): (Field, usize),
    reader: &mut Reader,
    reading: &Reading,
    mut element: impl FnMut(&mut Reader, usize) -> Result<(), Reason>,
) -> Result<(), Reason> {
    if reader.peek() != b'[' {
        return Err(reader.refusal(Reason::Of(field)));
    }
    let count = reader.list(|reader, i| match i < reading.rules.limits.max_items {
        true => element(reader, i),
        false => Err(Reason::Of(field)),
    })?;
    (count >= least).then_some(()).ok_or(Reason::Of(field))
}

/// Whether a text has characters, and at most so many.
#[inline]
fn has_chars(text: &str, most: usize) -> bool {
    !text.is_empty() && (text.len() <= most || text.chars().nth(most).is_none())
}
