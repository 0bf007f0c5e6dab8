//! A reader of JSON that is steered by who knows which fields there are: it goes over a record once,
//! and what nobody asked for is checked and passed over.
//!
//! It is as strict as RFC 8259: no NaN, no leading zeros, no raw control characters, no surrogate
//! without its other half, also in what is passed over.

mod number;
mod text;

pub use number::Number;
pub use text::{Text, push_json};

use crate::decode::reason::Reason;

/// A place in a record.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    record: &'a str,
    at: usize,
    max_depth: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of a record, whose lists and objects nest at most so deep.
    pub fn new(record: &'a str, max_depth: usize) -> Self {
        Self {
            record,
            at: 0,
            max_depth,
        }
    }

    /// At a place of a record.
    pub fn starting(record: &'a str, at: usize, max_depth: usize) -> Self {
        Self {
            record,
            at,
            max_depth,
        }
    }

    /// Where it is, in bytes from the beginning of the record.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The record that is read.
    #[inline]
    pub fn record(&self) -> &'a str {
        self.record
    }

    /// What of it is not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.record.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Steps over bytes that are known.
    #[inline]
    pub fn step(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// How deep lists and objects may nest.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// The first byte of what comes next, blanks aside; 0 at the end.
    #[inline]
    pub fn peek(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// The byte at the place; 0 at the end.
    #[inline]
    pub(crate) fn byte(&self) -> u8 {
        self.record.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Steps over a byte, which must be the next.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Result<(), Reason> {
        if self.peek() != byte {
            return Err(Reason::Json);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the record ends here, blanks aside.
    pub fn is_at_end(&mut self) -> bool {
        self.peek();
        self.at == self.record.len()
    }

    /// The reason why what comes next is refused where another type is wanted: the field's own, but
    /// for what begins no value.
    pub fn refusal(&mut self, reason: Reason) -> Reason {
        match self.peek() {
            b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => reason,
            _ => Reason::Json,
        }
    }

    /// Steps over `null`; false where something else comes next.
    #[inline]
    pub fn null(&mut self) -> Result<bool, Reason> {
        if self.peek() != b'n' {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// The fields of an object: `name` reads each name, and after it `on_field` the value.
    #[inline]
    pub fn object<S, N>(
        &mut self,
        state: &mut S,
        mut name: impl FnMut(&mut Self, &mut S) -> Result<N, Reason>,
        mut on_field: impl FnMut(&mut Self, &mut S, N) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        self.expect(b'{')?;
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let name = name(self, state)?;
            self.expect(b':')?;
            on_field(self, state, name)?;
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(Reason::Json),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The elements of a list: `on_element` reads each, given its number from 0.
    pub fn list(
        &mut self,
        mut on_element: impl FnMut(&mut Self, usize) -> Result<(), Reason>,
    ) -> Result<usize, Reason> {
        self.expect(b'[')?;
        if self.peek() == b']' {
            self.at += 1;
            return Ok(0);
        }
        for i in 0.. {
            on_element(self, i)?;
            match self.peek() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(i + 1);
                }
                _ => break,
            }
        }
        Err(Reason::Json)
    }

    /// Passes over a value within so many lists and objects.
    pub fn skip(&mut self, depth: usize) -> Result<(), Reason> {
        match self.peek() {
            b'"' => self.skip_text(),
            b'-' | b'0'..=b'9' => self.number().map(|_| ()),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            b'{' | b'[' if depth >= self.max_depth => Err(Reason::TooDeep),
            b'[' => self.list(|reader, _| reader.skip(depth + 1)).map(|_| ()),
            b'{' => self.object(
                &mut (),
                |reader, ()| reader.expect_text(),
                |reader, (), ()| reader.skip(depth + 1),
            ),
            _ => Err(Reason::Json),
        }
    }

    fn expect_text(&mut self) -> Result<(), Reason> {
        if self.peek() == b'"' {
            self.skip_text()
        } else {
            Err(Reason::Json)
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Reason> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(Reason::Json);
        }
        self.at += word.len();
        Ok(())
    }
}

/// Deepest nesting of brackets outside of texts, whether or not a record is JSON.
pub fn depth(record: &[u8]) -> usize {
    let (mut level, mut deepest) = (0isize, 0);
    let mut bytes = record.iter();
    let mut is_text = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => _ = bytes.next(),
            b'[' | b'{' if !is_text => level += 1,
            b']' | b'}' if !is_text => level -= 1,
            _ => {}
        }
        deepest = deepest.max(level);
    }
    deepest.unsigned_abs()
}

#[cfg(test)]
mod tests;
