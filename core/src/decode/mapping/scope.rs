//! A record, or an element of one, while it is looked at.

use crate::decode::reason::Reason;
use crate::json::{Reader, push_json};

/// Where values were found, by number: one more than where each begins; 0: nowhere.
pub(in crate::decode) type Found = [u32];

/// A record, or an element of one, while it is looked at.
pub(in crate::decode) struct Scope<'a> {
    pub text: &'a str,
    pub found: &'a mut Found,
    /// Of the text that is looked at.
    pub unescaped: &'a mut String,
    /// Texts that stand for no value.
    pub missing: &'a [String],
    pub max_depth: usize,
    /// Of the record.
    pub timestamp_ms: i64,
}

impl<'a> Scope<'a> {
    /// Which of some values is the first that is neither missing, null nor an empty text, and where
    /// it begins.
    pub fn first(&self, places: &[usize]) -> Option<(usize, usize)> {
        let numbered = places.iter().enumerate();
        let mut begins = numbered
            .filter_map(|(i, place)| Some((i, self.found.get(*place)?.checked_sub(1)? as usize)));
        begins.find(|(_, at)| {
            let rest = self.text.as_bytes().get(*at..).unwrap_or_default();
            !rest.starts_with(b"null")
                && !rest.starts_with(b"\"\"")
                && (self.missing.is_empty() || !self.is_missing(*at))
        })
    }

    /// Whether the value that begins at a place is a text that stands for none.
    fn is_missing(&self, at: usize) -> bool {
        let mut reader = Reader::starting(self.text, at, 1);
        let mut unescaped = String::new();
        reader.peek() == b'"'
            && reader.text(&mut unescaped).is_ok_and(|text| {
                let text = text.of(self.text, &unescaped);
                self.missing.iter().any(|each| each == text)
            })
    }

    /// The text of the value that begins at a place; of another as it is written.
    pub fn text_at(&mut self, at: usize) -> Result<&str, Reason> {
        self.unescaped.clear();
        let mut reader = self.reader_at(at);
        let text = match reader.peek() {
            b'"' => reader.text(self.unescaped)?,
            _ => {
                reader.skip(1)?;
                reader.raw_since(at)
            }
        };
        Ok(text.of(self.text, self.unescaped))
    }

    /// JSON of the text of a day with that of the time of day behind it, if there is one.
    pub fn day_and_time(&mut self, day: usize, time: usize) -> Result<String, Reason> {
        let mut both = self.text_at(day)?.to_owned();
        if let Some((_, at)) = self.first(&[time]) {
            both.push(' ');
            both.push_str(self.text_at(at)?);
        }
        let mut json = String::new();
        push_json(&both, &mut json);
        Ok(json)
    }

    pub fn reader_at(&self, at: usize) -> Reader<'a> {
        Reader::starting(self.text, at, self.max_depth)
    }
}
