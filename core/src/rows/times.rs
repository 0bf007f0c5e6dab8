//! Times as texts.

/// Of a day.
pub(super) const DAY_MS: i64 = 86_400_000;
const DAY_SECONDS: i64 = 86_400;
const MICROS: i64 = 1_000_000;
const SECOND_MICROS: u128 = 1_000_000;
const DAY_MICROS: u128 = 86_400 * SECOND_MICROS;

/// Appends a date in quotes, given its number since 1970-01-01.
pub(super) fn date(day: i64, out: &mut Vec<u8>) {
    out.push(b'"');
    plain_date(day, out);
    out.push(b'"');
}

/// Appends a moment in quotes, given parts of seconds since 1970; with `Z` where it is in UTC.
pub(crate) fn moment(value: i64, per_second: i64, is_zoned: bool, out: &mut Vec<u8>) {
    let (seconds, micros) = split(value, per_second);
    out.push(b'"');
    plain_date(seconds.div_euclid(DAY_SECONDS), out);
    out.push(b'T');
    clock(seconds.rem_euclid(DAY_SECONDS), micros, out);
    out.extend_from_slice(if is_zoned { b"Z\"" } else { b"\"" });
}

/// Appends a time of a day in quotes, given parts of seconds since midnight.
pub(super) fn time_of_day(value: i64, per_second: i64, out: &mut Vec<u8>) {
    let (seconds, micros) = split(value, per_second);
    out.push(b'"');
    clock(seconds.rem_euclid(DAY_SECONDS), micros, out);
    out.push(b'"');
}

/// Appends a duration of ISO 8601 in quotes: days, and what is left in seconds.
pub(super) fn duration(value: i64, per_second: i64, out: &mut Vec<u8>) {
    let (seconds, micros) = split(value, per_second);
    let micros = i128::from(seconds) * i128::from(MICROS) + i128::from(micros);
    let (days, left) = (
        micros.unsigned_abs() / DAY_MICROS,
        micros.unsigned_abs() % DAY_MICROS,
    );
    let mut text = String::from(if micros < 0 { "\"-P" } else { "\"P" });
    if days > 0 || left == 0 {
        text += &format!("{days}D");
    }
    if left > 0 {
        text += &format!("T{}", left / SECOND_MICROS);
        if left % SECOND_MICROS > 0 {
            let fraction = format!(".{:06}", left % SECOND_MICROS);
            text += fraction.trim_end_matches('0');
        }
        text.push('S');
    }
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Seconds and microseconds; what is finer is left out.
fn split(value: i64, per_second: i64) -> (i64, i64) {
    let rest = value.rem_euclid(per_second);
    let micros = match per_second {
        1..=MICROS => rest * (MICROS / per_second),
        _ => rest / (per_second / MICROS),
    };
    (value.div_euclid(per_second), micros)
}

/// Appends a time of a day, with microseconds where there are any.
fn clock(second: i64, micros: i64, out: &mut Vec<u8>) {
    digits::<2>(second / 3600, out);
    out.push(b':');
    digits::<2>(second / 60 % 60, out);
    out.push(b':');
    digits::<2>(second % 60, out);
    if micros > 0 {
        out.push(b'.');
        digits::<6>(micros, out);
    }
}

/// Appends a date of the Gregorian calendar: years before 0 have a sign, those after 9999 more digits,
/// which no reader of RFC 3339 takes.
fn plain_date(day: i64, out: &mut Vec<u8>) {
    // Years begin in March, so that a day of a leap year is the last: eras of 400 years are alike.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    match year {
        0..=9999 => digits::<4>(year, out),
        _ => out.extend_from_slice(year.to_string().as_bytes()),
    }
    out.push(b'-');
    digits::<2>(month, out);
    out.push(b'-');
    digits::<2>(day, out);
}

/// Appends the last digits of a number that is not negative.
fn digits<const N: usize>(mut number: i64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits);
}
