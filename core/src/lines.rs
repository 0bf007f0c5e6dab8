//! Lines of files: which log each belongs to, and the record timestamp that it has there.

use crate::decode::{Decoder, Reason};
use crate::json::{Reader, Text};
use crate::kafka::Record;

/// Lists and objects of a line nest at most so deep: beyond it nobody looks for a type.
const MAX_DEPTH: usize = 1000;

/// How the log of a line is found.
#[derive(Debug)]
pub enum LogRule {
    /// By the text of a field, if it can be read whatever else is wrong.
    ByType {
        field: String,
        logs: Vec<(String, usize)>,
    },
    /// The first log of which a line is an event, or nothing to be counted; else the first of all.
    FirstThatReads { logs: usize },
    /// All lines are of one.
    One(usize),
}

/// Stamps the lines of one file, in their order.
#[derive(Debug)]
pub struct Stamping {
    rule: LogRule,
    decoder: Decoder,
    max_bytes: usize,
    /// The largest time of an event so far that was not beyond the clock; 0 before any. It is the
    /// record timestamp of the line that was read last.
    pub running_ms: i64,
    /// Unescaped texts of a line.
    unescaped: String,
}

impl Stamping {
    pub fn new(rule: LogRule, decoder: Decoder, max_bytes: usize) -> Self {
        Self {
            rule,
            decoder,
            max_bytes,
            running_ms: 0,
            unescaped: String::new(),
        }
    }

    /// The log of the next line, None where it belongs to none, and the time of its latest event;
    /// `now_ms`: beyond it none moves the clock.
    pub fn next(&mut self, line: &[u8], now_ms: i64) -> (Option<usize>, Option<i64>) {
        let (log, event_ms) = match &self.rule {
            LogRule::ByType { field, logs } => {
                let is_read = line.len() <= self.max_bytes;
                let read = is_read.then(|| type_of(line, field, &mut self.unescaped));
                let log = read.flatten().and_then(|found| {
                    let mut logs = logs.iter();
                    logs.find(|(name, _)| name == found).map(|(_, log)| *log)
                });
                (log, log.and_then(|log| self.time_of(log, line).1))
            }
            LogRule::FirstThatReads { logs } => {
                let mut logs = 0..*logs;
                let found = logs.find_map(|log| match self.time_of(log, line) {
                    (true, event_ms) => Some((log, event_ms)),
                    (false, _) => None,
                });
                let (log, event_ms) = found.unwrap_or_else(|| (0, self.time_of(0, line).1));
                (Some(log), event_ms)
            }
            LogRule::One(log) => (Some(*log), self.time_of(*log, line).1),
        };
        if let Some(event_ms) = event_ms.filter(|ms| *ms <= now_ms) {
            self.running_ms = self.running_ms.max(event_ms);
        }
        (log, event_ms)
    }

    /// The events of a line that holds several, each as a line.
    pub fn split(&mut self, line: &[u8]) -> Vec<String> {
        let log = match self.rule {
            LogRule::One(log) => Some(log),
            LogRule::FirstThatReads { logs } => (0..logs).find(|log| self.time_of(*log, line).0),
            LogRule::ByType { .. } => None,
        };
        log.map_or_else(Vec::new, |log| self.decoder.split(log, line))
    }

    /// Whether a line is an event of a log, or nothing to be counted; and the time of its latest event.
    fn time_of(&mut self, log: usize, line: &[u8]) -> (bool, Option<i64>) {
        let record = Record {
            value: Some(line),
            timestamp_ms: self.running_ms,
            ..Record::default()
        };
        let decoded = self.decoder.decode_all(log, std::slice::from_ref(&record));
        let first = decoded.first().map(|(_, event)| event.as_ref());
        let is_read = matches!(first, None | Some(Ok(_) | Err(Reason::Ignored)));
        let events = decoded.iter().filter_map(|(_, event)| event.as_ref().ok());
        (is_read, events.map(|event| event.event_ms).max())
    }
}

/// The text of a field of an object, the last where it has several; None where the line is no object,
/// or there is no text.
fn type_of<'a>(line: &'a [u8], field: &str, unescaped: &'a mut String) -> Option<&'a str> {
    let line = std::str::from_utf8(line).ok()?;
    unescaped.clear();
    let mut reader = Reader::new(line, MAX_DEPTH);
    let mut state = (&mut *unescaped, None);
    let read = reader.object(
        &mut state,
        |reader, (unescaped, _)| reader.text(unescaped),
        |reader, (unescaped, found): &mut (&mut String, Option<Text>), name| {
            if name.of(line, unescaped) == field {
                *found = None;
                if reader.peek() == b'"' {
                    *found = Some(reader.text(unescaped)?);
                    return Ok(());
                }
            }
            reader.skip(1)
        },
    );
    let found = state.1?;
    (read.is_ok() && reader.is_at_end()).then(|| found.of(line, unescaped))
}

/// Why a line belongs to no log: it cannot be read, or has no known type.
pub fn reason_of_no_topic(line: &[u8], max_bytes: usize) -> &'static str {
    if line.len() > max_bytes {
        return Reason::TooLarge.name();
    }
    let Ok(line) = std::str::from_utf8(line) else {
        return Reason::Json.name();
    };
    let mut reader = Reader::new(line, MAX_DEPTH);
    let is_object = reader.peek() == b'{';
    match reader.skip(0) {
        Err(reason) => reason.name(),
        Ok(()) if !reader.is_at_end() => Reason::Json.name(),
        Ok(()) if !is_object => Reason::Object.name(),
        Ok(()) => "type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_line_is_read_whatever_else_is_wrong() {
        let read = |line: &[u8]| type_of(line, "type", &mut String::new()).map(str::to_owned);
        let deep = format!(
            "{{\"type\":\"a\",\"x\":{}{}}}",
            "[".repeat(999),
            "]".repeat(999)
        );
        let good = [
            r#"{"type":"a"}"#,
            r#" { "x" : {"type":"b"} , "typ\u0065" : "\u0061" , "ts": null } "#,
            r#"{"type":"b","type":"a","x":1e400}"#,
            r#"{"type":1e400,"type":"a"}"#,
            &deep,
        ];
        for line in good {
            assert_eq!(read(line.as_bytes()).as_deref(), Some("a"), "{line}");
        }
        let too_deep = deep.replacen('[', "[[", 1).replacen(']', "]]", 1);
        let bad = [
            r#"{"type":"a"} {}"#,
            r#"{"type":"a","type":1}"#,
            r#"{"type":"a","x":01}"#,
            r#"{"type":"a","x":"\ud800"}"#,
            r#"["type"]"#,
            "",
            &too_deep,
        ];
        for line in bad {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
        assert_eq!(read(b"{\"type\":\"a\",\"x\":\"\xff\"}"), None);
    }

    #[test]
    fn a_line_of_no_log_has_a_reason() {
        let reason = |line: &str| reason_of_no_topic(line.as_bytes(), 3000);
        assert_eq!(reason(r#" {"type":"x"} "#), "type");
        assert_eq!(
            (reason("[1]"), reason("  "), reason("{} {}")),
            ("object", "json", "json")
        );
        assert_eq!(reason(&"[".repeat(2000)), "too_deep");
        assert_eq!(reason(&" ".repeat(3001)), "too_large");
    }
}
