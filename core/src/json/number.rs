//! Numbers: integers as they are written, and the nearest double.

use super::Reader;
use crate::decode::reason::Reason;

/// Powers of ten that doubles hold exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// Digits whose integer a double holds exactly.
const EXACT_DIGITS: usize = 15;
/// Digits that cannot overflow 64 bits.
const SAFE_DIGITS: usize = 18;

/// A number of a record.
#[derive(Clone, Copy, Debug)]
pub struct Number<'a> {
    text: &'a str,
    is_negative: bool,
    is_integer: bool,
    has_exponent: bool,
    /// All digits before an exponent as one integer, where they are few.
    digits: u64,
    digit_count: usize,
    fraction_digits: usize,
}

impl Number<'_> {
    /// Its value, where it is written without fraction and exponent and fits.
    #[inline]
    pub fn integer(&self) -> Option<i64> {
        if !self.is_integer {
            return None;
        }
        if self.digit_count > SAFE_DIGITS {
            return self.text.parse().ok();
        }
        let value = self.digits as i64;
        Some(if self.is_negative { -value } else { value })
    }

    /// Its value times a power of ten from -6 to 6, rounded down, where it fits.
    pub fn scaled(&self, exponent: i32) -> Option<i64> {
        if self.has_exponent || self.digit_count > SAFE_DIGITS {
            let value = self.double()? * 10f64.powi(exponent);
            return (value.abs() < 9e18).then(|| value.floor() as i64);
        }
        if exponent == 0 && self.is_integer {
            return self.integer();
        }
        let digits = match self.is_negative {
            true => -i128::from(self.digits),
            false => i128::from(self.digits),
        };
        let exponent = exponent - self.fraction_digits as i32;
        let scale = 10i128.pow(exponent.unsigned_abs());
        let value = match exponent {
            0.. => digits * scale,
            _ => digits.div_euclid(scale),
        };
        i64::try_from(value).ok()
    }

    /// Whether it is written without fraction and exponent.
    pub fn is_integer(&self) -> bool {
        self.is_integer
    }

    /// The number as it is written.
    pub fn text(&self) -> &str {
        self.text
    }

    /// The nearest double, where it is finite.
    #[inline]
    pub fn double(&self) -> Option<f64> {
        let scale = TENS.get(self.fraction_digits);
        if let Some(scale) = scale
            && self.digit_count <= EXACT_DIGITS
            && !self.has_exponent
        {
            // Both are exact, so that the quotient is rounded once.
            let value = self.digits as f64 / scale;
            // The integer -0 is 0.
            let is_negative = self.is_negative && !(self.is_integer && self.digits == 0);
            return Some(if is_negative { -value } else { value });
        }
        self.text
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
    }
}

impl<'a> Reader<'a> {
    /// The number that comes next.
    #[inline]
    pub fn number(&mut self) -> Result<Number<'a>, Reason> {
        self.peek();
        let start = self.at;
        let is_negative = self.byte() == b'-';
        self.at += usize::from(is_negative);
        let is_zero = self.byte() == b'0';
        let mut digits = 0;
        let whole = self.digits(&mut digits)?;
        if is_zero && whole > 1 {
            return Err(Reason::Json);
        }
        let mut fraction_digits = 0;
        if self.byte() == b'.' {
            self.at += 1;
            fraction_digits = self.digits(&mut digits)?;
        }
        let has_exponent = matches!(self.byte(), b'e' | b'E');
        if has_exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), b'+' | b'-'));
            self.digits(&mut 0)?;
        }
        let text = self.record.get(start..self.at).unwrap_or_default();
        let is_integer = fraction_digits == 0 && !has_exponent;
        let digit_count = whole + fraction_digits;
        Ok(Number {
            text,
            is_negative,
            is_integer,
            has_exponent,
            digits,
            digit_count,
            fraction_digits,
        })
    }

    /// Appends the digits that come next, one at least, to a number that may overflow.
    #[inline]
    fn digits(&mut self, number: &mut u64) -> Result<usize, Reason> {
        let (mut value, mut count) = (*number, 0);
        for byte in self.rest() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            count += 1;
        }
        *number = value;
        self.at += count;
        if count == 0 {
            Err(Reason::Json)
        } else {
            Ok(count)
        }
    }

    /// An integer within bounds; None for null.
    #[inline]
    pub fn integer(&mut self, low: i64, high: i64, reason: Reason) -> Result<Option<i64>, Reason> {
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
    pub fn double(
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
