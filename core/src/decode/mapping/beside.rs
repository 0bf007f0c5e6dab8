//! What stands beside the value of a record: constants, headers, its key and its timestamp.

use crate::kafka::Record;
use crate::spec::records::BesideSpec;

#[derive(Debug)]
pub(super) struct Beside(BesideSpec);

impl Beside {
    pub fn new(spec: &BesideSpec) -> Self {
        Self(spec.clone())
    }

    /// Appends JSON of its value; null where a record has none, or no text.
    pub fn append(&self, record: &Record, to: &mut String) {
        let value = match &self.0 {
            BesideSpec::Constant(json) => return to.push_str(json),
            BesideSpec::Timestamp => return to.push_str(&record.timestamp_ms.to_string()),
            BesideSpec::Header(name) => record.header(name.as_bytes()),
            BesideSpec::Key => record.key,
        };
        match value.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(text) => push_json(text, to),
            None => to.push_str("null"),
        }
    }
}

/// Appends a text as JSON.
pub(in crate::decode) fn push_json(text: &str, to: &mut String) {
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
