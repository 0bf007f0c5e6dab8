//! The values of fields: their types and bounds.

use super::{Action, Draft, Field, NONE, Place, Reading};
use crate::decode::Reason;
use crate::json::{Reader, Text};

impl Draft {
    /// Reads the value of a field.
    #[inline]
    pub fn read(
        &mut self,
        field: Field,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<(), Reason> {
        self.place = Place::value(field, reader.at());
        let reason = field.reason();
        let limits = &reading.rules.limits;
        match field {
            Field::Ts => self.head.ts = Some(self.read_moment(reader, reading, reason)?),
            Field::UserId => {
                self.head.id = Text::EMPTY;
                self.head.user = self.read_optional_id(reader, reading, reason)?;
                self.head.user_text = self.head.id;
            }
            Field::EventId => {
                self.head.event_id = self.read_optional_id(reader, reading, reason)?
            }
            Field::RequestId => {
                self.head.request = self.read_optional_id(reader, reading, reason)?
            }
            Field::Type => self.read_type(reader, reading)?,
            Field::ItemId
            | Field::Position
            | Field::Score
            | Field::Propensity
            | Field::RewardEstimate
            | Field::ItemCategory
            | Field::Value
            | Field::Target(_)
            | Field::Estimate(_)
            | Field::Custom(_) => {
                let mut shown = self.head.shown;
                self.read_shown(field, false, reader, reading, &mut shown)?;
                self.head.shown = shown;
            }
            Field::Items => self.read_items(reader, reading)?,
            Field::Reference => self.read_reference(reader, reading)?,
            Field::HeldOut => {
                self.head.held_out = self.read_optional_id(reader, reading, reason)?
            }
            Field::Feedback => self.head.feedback = self.read_feedback(reader, reading)?,
            Field::DwellMs => {
                self.head.dwell_ms = reader.integer(0, limits.max_dwell_ms, reason)?
            }
            Field::StartTs => {
                self.head.start = self.read_optional_moment(reader, reading, reason)?
            }
            Field::EndTs => self.head.end = self.read_optional_moment(reader, reading, reason)?,
            Field::SessionId => {
                self.head.session = self.read_optional_id(reader, reading, reason)?
            }
            Field::Action => self.head.action = self.read_action(reader, reading)?,
            Field::Dimension(i) => self.read_dimension(i, reader)?,
        }
        Ok(())
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
            self.head.id = text;
            return Ok(reading.rules.key.of(id.as_bytes()));
        }
        let start = reader.at();
        if !matches!(reader.peek(), b'-' | b'0'..=b'9') {
            return Err(reader.refusal(reason));
        }
        let number = reader.number()?;
        let is_right =
            number.is_integer() && number.text().len() <= reading.rules.limits.max_id_bytes;
        self.head.id = reader.raw_since(start);
        match is_right {
            true => Ok(reading.rules.key.of(number.text().as_bytes())),
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

    fn read_type(&mut self, reader: &mut Reader, reading: &Reading) -> Result<(), Reason> {
        if reader.null()? {
            return Ok(());
        }
        let text = self.read_text(reader, Reason::Type)?;
        let is_right = text.of(reading.record, &self.unescaped) == reading.kind.event_type();
        if is_right { Ok(()) } else { Err(Reason::Type) }
    }

    fn read_feedback(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<Option<Text>, Reason> {
        if reader.null()? {
            return Ok(None);
        }
        let text = self.read_text(reader, Reason::Feedback)?;
        let max_chars = reading.rules.limits.max_label_chars;
        let given = text.of(reading.record, &self.unescaped);
        match given {
            "" => Ok(None),
            _ if has_chars(given, max_chars) => Ok(Some(text)),
            _ => Err(Reason::Feedback),
        }
    }

    fn read_action(
        &mut self,
        reader: &mut Reader,
        reading: &Reading,
    ) -> Result<Option<Action>, Reason> {
        if reader.null()? {
            return Ok(None);
        }
        let text = self.read_text(reader, Reason::Action)?;
        let name = text.of(reading.record, &self.unescaped);
        Action::of(name).map(Some).ok_or(Reason::Action)
    }

    /// Texts, numbers and booleans as they are written; anything else is no value.
    fn read_dimension(&mut self, i: usize, reader: &mut Reader) -> Result<(), Reason> {
        let first = reader.peek();
        let start = reader.at();
        let text = match first {
            b'"' => reader.text(&mut self.unescaped)?,
            _ => {
                reader.skip(1)?;
                let is_value = matches!(first, b'-' | b'0'..=b'9' | b't' | b'f');
                if is_value {
                    reader.raw_since(start)
                } else {
                    Text::EMPTY
                }
            }
        };
        if let Some(value) = self.dimensions.get_mut(i) {
            *value = text;
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// An integer within bounds; None for null.
    #[inline]
    pub(super) fn integer(
        &mut self,
        low: i64,
        high: i64,
        reason: Reason,
    ) -> Result<Option<i64>, Reason> {
        if self.null()? {
            Ok(None)
        } else {
            self.required_integer(low, high, reason).map(Some)
        }
    }

    #[inline]
    fn required_integer(&mut self, low: i64, high: i64, reason: Reason) -> Result<i64, Reason> {
        if !matches!(self.peek(), b'-' | b'0'..=b'9') {
            return Err(self.refusal(reason));
        }
        let value = self
            .number()?
            .integer()
            .filter(|value| (low..=high).contains(value));
        value.ok_or(reason)
    }

    /// A finite number that is right; None for null.
    #[inline]
    pub(super) fn double(
        &mut self,
        is_right: impl Fn(f64) -> bool,
        reason: Reason,
    ) -> Result<Option<f64>, Reason> {
        if self.null()? {
            return Ok(None);
        }
        if !matches!(self.peek(), b'-' | b'0'..=b'9') {
            return Err(self.refusal(reason));
        }
        self.number()?
            .double()
            .filter(|value| is_right(*value))
            .map(Some)
            .ok_or(reason)
    }
}

/// Whether a text has characters, and at most so many.
#[inline]
fn has_chars(text: &str, most: usize) -> bool {
    !text.is_empty() && (text.len() <= most || text.chars().nth(most).is_none())
}
