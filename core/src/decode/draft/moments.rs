//! Times: numbers in a unit, and RFC 3339 texts.

use crate::spec::records::Unit;

use super::{Draft, Reading, times};
use crate::decode::Reason;
use crate::json::Reader;

/// A time, and whether it is written as a number of milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub ms: i64,
    pub is_number: bool,
    /// Where it stands.
    pub at: u32,
}

impl Unit {
    /// Which power of ten milliseconds are of it.
    fn exponent(self) -> i32 {
        match self {
            Self::S => 3,
            Self::Us => -3,
            Self::Ns => -6,
            Self::Any | Self::Ms | Self::Iso => 0,
        }
    }
}

impl Draft {
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
        reader.peek();
        let at = reader.at() as u32;
        match reader.peek() {
            b'-' | b'0'..=b'9' => {
                let ms = reader.number()?.scaled(reading.unit.exponent());
                number(ms, at, reading).ok_or(reason)
            }
            b'"' => {
                let text = reader.text(&mut self.unescaped)?;
                let found = text.of(reading.record, &self.unescaped);
                if found
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
                {
                    let mut digits = Reader::new(found, 0);
                    let scaled = digits.number().ok().and_then(|number| {
                        let is_whole = digits.is_at_end();
                        number.scaled(reading.unit.exponent()).filter(|_| is_whole)
                    });
                    return number(scaled, at, reading).ok_or(reason);
                }
                if !matches!(reading.unit, Unit::Any | Unit::Iso) {
                    return Err(reason);
                }
                let zone = &reading.values.zone;
                let ms = times::epoch_ms(found.as_bytes(), !text.is_unescaped(), zone);
                let is_number = false;
                let moment = |ms| Moment { ms, is_number, at };
                ms.map(moment).ok_or(reason)
            }
            _ => Err(reader.refusal(reason)),
        }
    }
}

/// A time that is a number; none where it is plainly in another unit.
fn number(ms: Option<i64>, at: u32, reading: &Reading) -> Option<Moment> {
    let limits = &reading.rules.limits;
    let ms = ms.filter(|ms| (0..=limits.max_event_ms).contains(ms))?;
    let is_number = true;
    let is_right = match reading.unit {
        Unit::Iso => false,
        Unit::Any => true,
        _ => ms >= limits.min_seconds * 1000,
    };
    is_right.then_some(Moment { ms, is_number, at })
}
