//! Times, numbers and ids by themselves.

use crate::decode::fields::Field;
use crate::decode::reading::Reading;
use crate::decode::reason::Reason;
use crate::decode::times::Zone;
use crate::json::Reader;
use crate::spec::records::Unit;

/// A time, and whether it is written as a number of milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub ms: i64,
    pub is_number: bool,
    /// Where it stands.
    pub at: u32,
}

impl Moment {
    pub fn of_text(ms: Option<i64>, at: u32) -> Option<Self> {
        let is_number = false;
        ms.map(|ms| Self { ms, is_number, at })
    }
}

impl Reading<'_> {
    pub(super) fn zone(&self) -> Zone<'_> {
        Zone {
            offsets: &self.values.zone,
            near_ms: self.timestamp_ms,
        }
    }

    /// An id as it is compared: where ids are whole without decimals that are all 0.
    #[inline]
    pub(super) fn id_of<'a>(&self, text: &'a str) -> &'a str {
        match self.values.whole_ids {
            true => whole(text),
            false => text,
        }
    }
}

impl Unit {
    /// Which power of ten milliseconds are of it.
    pub(super) fn exponent(self) -> i32 {
        match self {
            Self::S => 3,
            Self::Us => -3,
            Self::Ns => -6,
            Self::Any | Self::Ms | Self::Iso => 0,
        }
    }
}

/// A position, counted from 1; 0: missing.
#[inline]
pub(super) fn read_position(
    reader: &mut Reader,
    reading: &Reading,
    reason: Reason,
) -> Result<u32, Reason> {
    let (_, most) = reading.rules.ranges.of(Field::Position);
    let from = i64::from(reading.values.positions_from);
    let position = reader.integer(from, most as i64 + from - 1, reason)?;
    Ok(position.map_or(0, |position| position - from + 1) as u32)
}

/// An integer within the range of a field, or null; a scaled number is rounded.
#[inline]
pub(super) fn read_integer(
    field: Field,
    reader: &mut Reader,
    reading: &Reading,
) -> Result<Option<i64>, Reason> {
    if reading.form.scale.is_some() {
        let scaled = read_number(field, reader, reading, Reason::Of(field))?;
        return Ok(scaled.map(|number| number.round() as i64));
    }
    let (low, high) = reading.rules.ranges.of(field);
    reader.integer(low as i64, high as i64, Reason::Of(field))
}

/// A number within the range of a field once it is scaled, or null.
#[inline]
pub(super) fn read_number(
    field: Field,
    reader: &mut Reader,
    reading: &Reading,
    reason: Reason,
) -> Result<Option<f64>, Reason> {
    let ranges = &reading.rules.ranges;
    match reading.form.scale {
        None => reader.double(|number| ranges.contain(field, number), reason),
        Some(scale) => {
            let is_right = |number| ranges.contain(field, number * scale);
            let number = reader.double(is_right, reason)?;
            Ok(number.map(|number| number * scale))
        }
    }
}

/// An id without decimals that are all 0: 78.0 is 78.
pub(super) fn whole(id: &str) -> &str {
    let Some((number, decimals)) = id.split_once('.') else {
        return id;
    };
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let is_whole = !digits.is_empty()
        && digits.bytes().all(is_digit)
        && !decimals.is_empty()
        && decimals.bytes().all(|byte| byte == b'0');
    if is_whole { number } else { id }
}

/// A time that is a number; none where it is plainly in another unit.
pub(super) fn number(ms: Option<i64>, at: u32, reading: &Reading) -> Option<Moment> {
    let limits = &reading.rules.limits;
    if let Some(from_ms) = reading.form.from_ms {
        return Moment::of_text(ms?.checked_add(from_ms), at);
    }
    let ms = ms.filter(|ms| (0..=limits.max_event_ms).contains(ms))?;
    let is_number = true;
    let is_right = match reading.form.unit {
        Unit::Iso => false,
        Unit::Any => true,
        _ => ms >= limits.min_seconds * 1000,
    };
    is_right.then_some(Moment { ms, is_number, at })
}
