//! Times as RFC 3339 texts; also with a space, with an offset like +0100, and without one.

const DAY_MS: i64 = 86_400_000;
/// 0001-01-01 and the end of 9999: years have four digits, and there is no year 0.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_402_300_799_999;

/// The zone of times without an offset.
#[derive(Clone, Copy, Debug)]
pub struct Zone<'a> {
    /// (UTC ms from which on, offset in ms), ascending; UTC where it is empty.
    pub offsets: &'a [(i64, i64)],
    /// The time (epoch ms) near which they are.
    pub near_ms: i64,
}

impl Zone<'_> {
    /// Epoch ms of what clocks show. Where they go back, they show it twice: the time nearest to
    /// `near_ms`, of two as near the first. What they skip has the offset of before.
    fn epoch_ms(&self, local_ms: i64) -> i64 {
        let has_begun = |(from_ms, offset_ms): &(i64, i64)| local_ms - offset_ms >= *from_ms;
        let at = self.offsets.partition_point(has_begun).saturating_sub(1);
        let Some((from_ms, offset_ms)) = self.offsets.get(at) else {
            return local_ms;
        };
        let second = local_ms - offset_ms;
        let before = at.checked_sub(1).map(|before| self.offsets[before].1);
        let first = before.map_or(second, |offset_ms| local_ms - offset_ms);
        let is_nearer = self.near_ms.abs_diff(first) <= self.near_ms.abs_diff(second);
        match first < *from_ms && is_nearer {
            true => first,
            false => second,
        }
    }
}

/// Epoch milliseconds, rounded down from microseconds; further digits are rounded. 23:59:60 UTC is
/// the second that follows, where leap seconds are allowed; any other second 60 is no time.
pub fn epoch_ms(text: &[u8], allows_leap: bool, zone: Zone) -> Option<i64> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let [
        y1,
        y2,
        y3,
        y4,
        b'-',
        mo1,
        mo2,
        b'-',
        d1,
        d2,
        b'T' | b't' | b' ',
        h1,
        h2,
        b':',
        mi1,
        mi2,
        b':',
        s1,
        s2,
    ] = *head
    else {
        return None;
    };
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    let (month, day) = (two(mo1, mo2)?, two(d1, d2)?);
    let (hour, minute, second) = (two(h1, h2)?, two(mi1, mi2)?, two(s1, s2)?);
    let is_leap = second == 60 && allows_leap;
    let local_ms = shown_ms(
        [year, month, day],
        [hour, minute, second - i64::from(is_leap)],
    )?;
    let local_ms = local_ms + 1000 * i64::from(is_leap);
    let (micros, offset) = fraction(tail)?;
    let ms = match offset {
        [] => zone.epoch_ms(local_ms),
        offset => local_ms - offset_ms(offset)?,
    };
    if is_leap && (ms % DAY_MS != 0 || !(FIRST_MS + 1000..=LAST_MS).contains(&ms)) {
        return None;
    }
    // Rounding up to the year 10000 is refused.
    (local_ms + micros / 1000 <= LAST_MS || is_leap).then_some(ms + micros / 1000)
}

fn two(tens: u8, ones: u8) -> Option<i64> {
    let is_number = tens.is_ascii_digit() && ones.is_ascii_digit();
    is_number.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

/// Microseconds, and what follows them.
fn fraction(tail: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = tail.split_first() else {
        return Some((0, tail));
    };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, zone) = rest.split_at_checked(count)?;
    let digit = |i| i64::from(digits.get(i).map_or(0, |byte: &u8| *byte - b'0'));
    let tenths = (0..7).fold(0, |value, i| value * 10 + digit(i));
    (count > 0).then_some(((tenths + 5) / 10, zone))
}

fn offset_ms(zone: &[u8]) -> Option<i64> {
    let (sign, h1, h2, m1, m2) = match *zone {
        [b'Z' | b'z'] | [b' ', b'U', b'T', b'C'] => return Some(0),
        [b' ', ref offset @ ..] => return offset_ms(offset),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, h1, h2, m1, m2),
        [sign, h1, h2] => (sign, h1, h2, b'0', b'0'),
        _ => return None,
    };
    let (hours, minutes) = (two(h1, h2)?, two(m1, m2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ms = (hours * 60 + minutes) * 60_000;
    match sign {
        b'+' => Some(ms),
        b'-' => Some(-ms),
        _ => None,
    }
}

/// A format of times in the manner of `strptime`.
#[derive(Debug)]
pub struct TimeFormat(Vec<Piece>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// A directive, by its letter.
    Of(u8),
    /// Blanks, none or several.
    Blank,
    Byte(u8),
}

/// Directives that a format may have; `T`, `D` and `F` stand for several.
const DIRECTIVES: &[u8] = b"YymdeHIMSfpbBaAzZ";
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl TimeFormat {
    /// Compiles a format; an error where it has another directive.
    pub fn new(format: &str) -> Result<Self, String> {
        let format = format
            .replace("%T", "%H:%M:%S")
            .replace("%D", "%m/%d/%y")
            .replace("%F", "%Y-%m-%d");
        let (mut pieces, mut bytes) = (Vec::new(), format.bytes());
        while let Some(byte) = bytes.next() {
            pieces.push(match byte {
                b'%' => match bytes.next() {
                    Some(b'%') => Piece::Byte(b'%'),
                    Some(letter) if DIRECTIVES.contains(&letter) => Piece::Of(letter),
                    _ => return Err(format!("{format:?} is no format of times")),
                },
                byte if byte.is_ascii_whitespace() => Piece::Blank,
                byte => Piece::Byte(byte),
            });
        }
        Ok(Self(pieces))
    }

    /// Epoch milliseconds of a text that has this format, whole. Digits behind the third of a
    /// fraction are cut.
    pub fn epoch_ms(&self, text: &str, zone: Zone) -> Option<i64> {
        let mut rest = text.trim().as_bytes();
        let (mut year, mut month, mut day) = (1970, 1, 1);
        let (mut hour, mut minute, mut second, mut ms) = (0, 0, 0, 0);
        let (mut is_afternoon, mut offset) = (None, None);
        for piece in &self.0 {
            match *piece {
                Piece::Blank => rest = rest.trim_ascii_start(),
                Piece::Byte(byte) => rest = rest.strip_prefix(&[byte])?,
                Piece::Of(letter) => match letter {
                    b'Y' => year = digits(&mut rest, 4)?,
                    b'y' => {
                        let short = digits(&mut rest, 2)?;
                        year = if short < 69 {
                            2000 + short
                        } else {
                            1900 + short
                        };
                    }
                    b'm' => month = digits(&mut rest, 2)?,
                    b'd' | b'e' => {
                        rest = rest.trim_ascii_start();
                        day = digits(&mut rest, 2)?;
                    }
                    b'H' | b'I' => hour = digits(&mut rest, 2)?,
                    b'M' => minute = digits(&mut rest, 2)?,
                    b'S' => second = digits(&mut rest, 2)?,
                    b'f' => {
                        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                        let thousandth = |i: usize| match i < count {
                            true => i64::from(rest[i] - b'0'),
                            false => 0,
                        };
                        ms = (0..3).fold(0, |ms, i| ms * 10 + thousandth(i));
                        rest = rest.get(count..).filter(|_| count > 0)?;
                    }
                    b'p' => {
                        let (half, after) = rest.split_at_checked(2)?;
                        is_afternoon = Some(half.eq_ignore_ascii_case(b"pm"));
                        let is_half =
                            is_afternoon == Some(true) || half.eq_ignore_ascii_case(b"am");
                        is_half.then_some(())?;
                        rest = after;
                    }
                    b'b' | b'B' => {
                        let word = word(&mut rest);
                        let place = MONTHS.iter().position(|name| {
                            word.len() >= 3 && name.starts_with(word.to_ascii_lowercase().as_str())
                        });
                        month = 1 + place? as i64;
                    }
                    b'a' | b'A' => _ = word(&mut rest),
                    _ => {
                        let end = rest.iter().position(|byte| byte.is_ascii_whitespace());
                        let (zone, after) = rest.split_at(end.unwrap_or(rest.len()));
                        offset = Some(match zone {
                            b"UTC" | b"GMT" => 0,
                            zone => offset_ms(zone)?,
                        });
                        rest = after;
                    }
                },
            }
        }
        hour = match is_afternoon {
            None => hour,
            Some(_) if !(1..=12).contains(&hour) => return None,
            Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
        };
        let local_ms = shown_ms([year, month, day], [hour, minute, second])? + ms;
        rest.is_empty().then(|| match offset {
            Some(offset_ms) => local_ms - offset_ms,
            None => zone.epoch_ms(local_ms),
        })
    }
}

/// The number of so many digits or fewer that comes next.
fn digits(rest: &mut &[u8], most: usize) -> Option<i64> {
    let found = rest.iter().take(most);
    let count = found.take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The letters that come next.
fn word<'a>(rest: &mut &'a [u8]) -> &'a str {
    let count = rest
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let (word, after) = rest.split_at(count);
    *rest = after;
    std::str::from_utf8(word).unwrap_or_default()
}

/// What calendar and clock show, in milliseconds since they showed 1970; None where they never do.
fn shown_ms([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<i64> {
    let is_date = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    let seconds = (hour * 60 + minute) * 60 + second;
    (is_date && hour <= 23 && minute <= 59 && second <= 59)
        .then(|| days_before(year, month, day) * DAY_MS + seconds * 1000)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01: years begin in March, so that the leap day is the last.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::{TimeFormat, Zone, epoch_ms};

    const UTC: Zone = Zone {
        offsets: &[],
        near_ms: 0,
    };

    #[test]
    fn formats_are_those_of_strptime() {
        let cases = [
            (
                "%m/%d/%Y %I:%M:%S %p",
                "11/24/2026 7:00:01 AM",
                Some("2026-11-24T07:00:01Z"),
            ),
            (
                "%m/%d/%Y %I:%M:%S %p",
                "11/24/2026 12:00:01 AM",
                Some("2026-11-24T00:00:01Z"),
            ),
            (
                "%m/%d/%Y %I:%M:%S %p",
                "1/4/2026 12:30:00 pm",
                Some("2026-01-04T12:30:00Z"),
            ),
            (
                "%d/%b/%Y:%T %z",
                "04/Nov/2026:23:59:59 +0130",
                Some("2026-11-04T22:29:59Z"),
            ),
            (
                "%a, %e %B %Y %H:%M:%S GMT",
                "Wed,  4 November 2026 01:02:03 GMT",
                Some("2026-11-04T01:02:03Z"),
            ),
            (
                "%F %T.%f",
                "2026-11-04 01:02:03.123987",
                Some("2026-11-04T01:02:03.123Z"),
            ),
            (
                "%Y%m%d%H%M%S",
                "20261104010203",
                Some("2026-11-04T01:02:03Z"),
            ),
            ("%D", "02/29/24", Some("2024-02-29T00:00:00Z")),
            ("%D", "02/29/23", None),
            ("%F", "2026-11-04 ", Some("2026-11-04T00:00:00Z")),
            ("%F", "2026-11-04T", None),
            ("%I %p", "13 PM", None),
            ("%F %T", "2026-11-04 24:00:00", None),
            ("%f", "", None),
            ("%F %T.%f", "2026-11-04 01:02:03.x", None),
            ("%I %p", "01 XM", None),
        ];
        for (format, text, expected) in cases {
            let found = TimeFormat::new(format).unwrap().epoch_ms(text, UTC);
            let expected = expected.map(|text| epoch_ms(text.as_bytes(), true, UTC).unwrap());
            assert_eq!(found, expected, "{format} {text}");
        }
        assert!(TimeFormat::new("%Q").is_err() && TimeFormat::new("%").is_err());
    }
}
