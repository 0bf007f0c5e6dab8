//! Texts: in place where they have no escapes, else unescaped behind those of the same record.

use super::Reader;
use crate::decode::reason::Reason;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Where a text is: in the record, or in the buffer of unescaped texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    start: u32,
    end: u32,
    is_unescaped: bool,
}

impl Text {
    pub const EMPTY: Self = Self {
        start: 0,
        end: 0,
        is_unescaped: false,
    };

    /// The text itself.
    #[inline]
    pub fn of<'a>(&self, record: &'a str, unescaped: &'a str) -> &'a str {
        let source = if self.is_unescaped { unescaped } else { record };
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// Its first bytes; `end` is between characters.
    pub fn cut(self, end: usize) -> Self {
        let end = self.start + end as u32;
        Self { end, ..self }
    }

    /// A text that the record does not hold as it is.
    pub fn push(unescaped: &mut String, text: &str) -> Self {
        let start = unescaped.len() as u32;
        unescaped.push_str(text);
        Self {
            start,
            end: unescaped.len() as u32,
            is_unescaped: true,
        }
    }

    /// Whether the record has escapes in it.
    pub fn is_unescaped(&self) -> bool {
        self.is_unescaped
    }
}

impl Reader<'_> {
    /// What was read from a place on, as it stands in the record.
    pub fn raw_since(&self, start: usize) -> Text {
        Text {
            start: start as u32,
            end: self.at as u32,
            is_unescaped: false,
        }
    }

    /// The text that comes next; where it has escapes it is appended to `unescaped`.
    #[inline]
    pub fn text(&mut self, unescaped: &mut String) -> Result<Text, Reason> {
        self.expect(b'"')?;
        let start = self.at;
        self.skip_plain();
        if self.byte() != b'"' {
            return self.escaped_text(start, unescaped);
        }
        let text = Text {
            start: start as u32,
            end: self.at as u32,
            is_unescaped: false,
        };
        self.at += 1;
        Ok(text)
    }

    #[cold]
    fn escaped_text(&mut self, start: usize, unescaped: &mut String) -> Result<Text, Reason> {
        let first = unescaped.len();
        unescaped.push_str(self.record.get(start..self.at).unwrap_or_default());
        loop {
            match self.byte() {
                b'"' => break,
                b'\\' => unescaped.push(self.escape()?),
                _ => return Err(Reason::Json),
            }
            let start = self.at;
            self.skip_plain();
            unescaped.push_str(self.record.get(start..self.at).unwrap_or_default());
        }
        self.at += 1;
        Ok(Text {
            start: first as u32,
            end: unescaped.len() as u32,
            is_unescaped: true,
        })
    }

    /// Passes over a text, escapes checked.
    pub(super) fn skip_text(&mut self) -> Result<(), Reason> {
        self.expect(b'"')?;
        loop {
            self.skip_plain();
            match self.byte() {
                b'"' => break,
                b'\\' => _ = self.escape()?,
                _ => return Err(Reason::Json),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Goes to the next quotation mark, backslash or control character, or to the end.
    #[inline]
    fn skip_plain(&mut self) {
        let mut rest = self.rest();
        while let Some((word, others)) = rest.split_first_chunk() {
            let found = special(u64::from_le_bytes(*word));
            if found != 0 {
                self.at += (found.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
            rest = others;
        }
        let is_plain = |byte: &&u8| **byte >= b' ' && !matches!(byte, b'"' | b'\\');
        self.at += rest.iter().take_while(is_plain).count();
    }

    /// The character that an escape stands for.
    fn escape(&mut self) -> Result<char, Reason> {
        self.at += 1;
        let escaped = self.byte();
        self.at += 1;
        Ok(match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(Reason::Json),
        })
    }

    /// The character of four hexadecimal digits, or of two surrogates.
    fn unicode_escape(&mut self) -> Result<char, Reason> {
        let first = self.four_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).ok_or(Reason::Json);
        }
        self.word("\\u")?;
        let second = self.four_digits()?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(Reason::Json);
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or(Reason::Json)
    }

    fn four_digits(&mut self) -> Result<u32, Reason> {
        let digits = self
            .record
            .as_bytes()
            .get(self.at..self.at + 4)
            .ok_or(Reason::Json)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, &digit| {
            char::from(digit)
                .to_digit(16)
                .map(|digit| value << 4 | digit)
                .ok_or(Reason::Json)
        })
    }
}

/// The high bits of bytes that end a run of plain characters; the lowest of them is never wrong.
#[inline]
fn special(word: u64) -> u64 {
    let is_zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    let is_quote = is_zero(word ^ (ONES * u64::from(b'"')));
    let is_backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
    (is_control | is_quote | is_backslash) & HIGHS
}

/// Appends a text as JSON.
pub fn push_json(text: &str, to: &mut String) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\u{0}'..'\u{20}' => to.push_str(&format!("\\u{:04x}", c as u32)),
            c => to.push(c),
        }
    }
    to.push('"');
}
