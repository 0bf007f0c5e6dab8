//! The values of fields: their types and bounds.

use super::{Action, Draft, Field, Moment, NONE, Source, Topic, times};
use crate::decode::Reason;
use crate::json::{Reader, Text};

impl Draft {
    /// Reads the value of a field.
    #[inline]
    pub fn read(
        &mut self,
        field: Field,
        topic: Topic,
        reader: &mut Reader,
        source: &Source,
    ) -> Result<(), Reason> {
        let reason = field.reason();
        let limits = &source.rules.limits;
        match field {
            Field::Ts => self.ts = Some(self.read_moment(reader, source, reason)?),
            Field::UserId => self.user = self.read_id(reader, source, reason)?,
            Field::EventId => self.event_id = self.read_optional_id(reader, source, reason)?,
            Field::RequestId => self.request = self.read_optional_id(reader, source, reason)?,
            Field::Type => self.read_type(topic, reader, source)?,
            Field::ItemId if matches!(topic, Topic::Clicks | Topic::Conversions) => {
                self.shown.item = self.read_id(reader, source, reason)?;
            }
            Field::ItemId
            | Field::Position
            | Field::Score
            | Field::Propensity
            | Field::RewardEstimate
            | Field::ItemCategory
            | Field::Target(_)
            | Field::Estimate(_)
            | Field::Custom(_) => {
                let mut shown = self.shown;
                self.read_shown(field, false, reader, source, &mut shown)?;
                self.shown = shown;
            }
            Field::Items => self.read_items(reader, source)?,
            Field::Reference => self.read_reference(reader, source)?,
            Field::HeldOut => self.held_out = self.read_optional_id(reader, source, reason)?,
            Field::Feedback => self.feedback = self.read_feedback(reader, source)?,
            Field::DwellMs => self.dwell_ms = reader.integer(0, limits.max_dwell_ms, reason)?,
            Field::StartTs => self.start = self.read_optional_moment(reader, source, reason)?,
            Field::EndTs => self.end = self.read_optional_moment(reader, source, reason)?,
            Field::Value => {
                let is_right = |value: f64| (0.0..=limits.max_value).contains(&value);
                self.value = reader.double(is_right, reason)?;
            }
            Field::SessionId => self.session = self.read_id(reader, source, reason)?,
            Field::Action => self.action = Some(self.read_action(reader, source)?),
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

    /// The hash of an id.
    #[inline]
    pub(super) fn read_id(
        &mut self,
        reader: &mut Reader,
        source: &Source,
        reason: Reason,
    ) -> Result<u64, Reason> {
        let text = self.read_text(reader, reason)?;
        let id = text.of(source.record, &self.unescaped);
        if !has_chars(id, source.rules.limits.max_id_chars) {
            return Err(reason);
        }
        Ok(source.rules.key.of(id.as_bytes()))
    }

    pub(super) fn read_optional_id(
        &mut self,
        reader: &mut Reader,
        source: &Source,
        reason: Reason,
    ) -> Result<u64, Reason> {
        if reader.null()? {
            Ok(NONE)
        } else {
            self.read_id(reader, source, reason)
        }
    }

    fn read_optional_moment(
        &mut self,
        reader: &mut Reader,
        source: &Source,
        reason: Reason,
    ) -> Result<Option<Moment>, Reason> {
        if reader.null()? {
            Ok(None)
        } else {
            self.read_moment(reader, source, reason).map(Some)
        }
    }

    /// Epoch milliseconds, or an RFC 3339 text, in which only escapes forbid a leap second.
    fn read_moment(
        &mut self,
        reader: &mut Reader,
        source: &Source,
        reason: Reason,
    ) -> Result<Moment, Reason> {
        if reader.peek() != b'"' {
            let ms = reader.required_integer(0, source.rules.limits.max_event_ms, reason)?;
            return Ok(Moment {
                ms,
                is_number: true,
            });
        }
        let text = reader.text(&mut self.unescaped)?;
        let bytes = text.of(source.record, &self.unescaped).as_bytes();
        let ms = times::epoch_ms(bytes, !text.is_unescaped()).ok_or(reason)?;
        Ok(Moment {
            ms,
            is_number: false,
        })
    }

    fn read_type(
        &mut self,
        topic: Topic,
        reader: &mut Reader,
        source: &Source,
    ) -> Result<(), Reason> {
        if reader.null()? {
            return Ok(());
        }
        let text = self.read_text(reader, Reason::Type)?;
        let is_right = text.of(source.record, &self.unescaped) == topic.event_type();
        if is_right { Ok(()) } else { Err(Reason::Type) }
    }

    fn read_feedback(
        &mut self,
        reader: &mut Reader,
        source: &Source,
    ) -> Result<Option<Text>, Reason> {
        if reader.null()? {
            return Ok(None);
        }
        let text = self.read_text(reader, Reason::Feedback)?;
        let max_chars = source.rules.limits.max_label_chars;
        let is_right = has_chars(text.of(source.record, &self.unescaped), max_chars);
        if is_right {
            Ok(Some(text))
        } else {
            Err(Reason::Feedback)
        }
    }

    fn read_action(&mut self, reader: &mut Reader, source: &Source) -> Result<Action, Reason> {
        let text = self.read_text(reader, Reason::Action)?;
        let name = text.of(source.record, &self.unescaped);
        Action::ALL
            .into_iter()
            .find(|action| action.name() == name)
            .ok_or(Reason::Action)
    }

    fn read_dimension(&mut self, i: usize, reader: &mut Reader) -> Result<(), Reason> {
        let is_null = reader.null()?;
        let text = if is_null {
            Text::EMPTY
        } else {
            self.read_text(reader, Reason::Dimension)?
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
