//! Texts that hold other values: JSON in a text, several values with something between them, or a
//! decimal number as bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::paths::Paths;
use crate::json::{Reader, push_json};
use crate::spec::records::UnfoldSpec;

/// A text that is taken apart.
#[derive(Debug)]
pub(super) struct Unfold {
    paths: Paths,
    split: Vec<String>,
    decimals: Option<u32>,
    comma: bool,
}

impl Unfold {
    pub fn new(spec: &UnfoldSpec) -> Self {
        Self {
            paths: Paths::new(std::slice::from_ref(&spec.path)),
            split: spec.split.clone(),
            decimals: spec.decimals,
            comma: spec.comma,
        }
    }

    /// Writes a record with the values of the text in its place; false, and nothing, where it has no
    /// such text. `max_bytes`: what is longer stays as it is.
    pub fn take_apart(
        &self,
        record: &str,
        (max_depth, max_bytes): (usize, usize),
        to: &mut String,
    ) -> bool {
        to.clear();
        let (mut found, mut unescaped) = ([0], String::new());
        let source = (record, &mut unescaped);
        let mut reader = Reader::new(record, max_depth);
        if self.paths.find(&mut reader, 0, source, &mut found).is_err() {
            return false;
        }
        let Some(start) = found[0].checked_sub(1).map(|at| at as usize) else {
            return false;
        };
        let mut reader = Reader::starting(record, start, max_depth);
        let is_text = reader.peek() == b'"';
        let text = match is_text {
            true => reader.text(&mut unescaped),
            false => reader.skip(0).map(|()| reader.raw_since(start)),
        };
        let Ok(text) = text else { return false };
        let text = text.of(record, &unescaped);
        let is_number = record[start..].starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if !(is_text || (is_number && !self.split.is_empty())) {
            return false;
        }
        to.push_str(&record[..start]);
        if !self.split.is_empty() {
            push_pieces(text, &self.split, to);
        } else if self.comma || self.decimals.is_some() {
            let decimals = self.decimals.map(|digits| decimal(text, digits));
            let Some(number) = decimals.unwrap_or_else(|| with_point(text)) else {
                to.clear();
                return false;
            };
            to.push_str(&number);
        } else if is_json(text, max_depth) {
            to.push_str(text);
        } else {
            to.clear();
            return false;
        }
        to.push_str(&record[reader.at()..]);
        to.len() <= max_bytes
    }
}

/// The number that base64 of an integer stands for, most significant byte first, with so many
/// digits behind the point.
fn decimal(text: &str, decimals: u32) -> Option<String> {
    let bytes = STANDARD.decode(text).ok()?;
    let first = *bytes.first()?;
    if bytes.len() > size_of::<i128>() {
        return None;
    }
    let sign = if first >= 0x80 { -1 } else { 0 };
    let whole = bytes
        .iter()
        .fold(sign, |n: i128, byte| n << 8 | i128::from(*byte));
    let digits = format!(
        "{:0>width$}",
        whole.unsigned_abs(),
        width = decimals as usize + 1
    );
    let (before, behind) = digits.split_at(digits.len() - decimals as usize);
    let point = if decimals > 0 { "." } else { "" };
    let minus = if whole < 0 { "-" } else { "" };
    Some(format!("{minus}{before}{point}{behind}"))
}

/// The number that a text with a decimal comma stands for, whose thousands may be apart.
fn with_point(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once(',').unwrap_or((digits, "0"));
    let groups: Vec<&str> = whole
        .split(['.', ' ', '\'', '\u{a0}', '\u{202f}'])
        .collect();
    let are_thousands = groups.len() == 1
        || (groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3));
    let mut parts = groups.iter().chain([&fraction]);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|x| x.is_ascii_digit());
    if !are_thousands || !parts.all(|part| is_digits(part)) {
        return None;
    }
    let minus = if digits.len() < text.len() { "-" } else { "" };
    let whole = groups.concat();
    let whole = whole.trim_start_matches('0');
    Some(format!(
        "{minus}{}.{fraction}",
        if whole.is_empty() { "0" } else { whole }
    ))
}

/// Whether a text is a JSON object or list.
fn is_json(text: &str, max_depth: usize) -> bool {
    let mut reader = Reader::new(text, max_depth);
    matches!(reader.peek(), b'{' | b'[') && reader.skip(0).is_ok() && reader.is_at_end()
}

/// Appends the pieces of a text as a list of texts, or of lists of their own pieces.
fn push_pieces(text: &str, split: &[String], to: &mut String) {
    let Some((by, inner)) = split.split_first() else {
        return push_json(text, to);
    };
    to.push('[');
    let before = to.len();
    for piece in text.split(by.as_str()).map(str::trim) {
        if piece.is_empty() {
            continue;
        }
        if to.len() > before {
            to.push(',');
        }
        push_pieces(piece, inner, to);
    }
    to.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(path: &str, split: &[&str], record: &str) -> Option<String> {
        let spec = UnfoldSpec {
            path: serde_json::from_str(path).unwrap(),
            split: split.iter().map(|by| (*by).to_owned()).collect(),
            decimals: None,
            comma: false,
        };
        let mut to = String::new();
        let is_written = Unfold::new(&spec).take_apart(record, (8, 100), &mut to);
        is_written.then_some(to)
    }

    #[test]
    fn json_in_a_text_becomes_the_value() {
        let record = r#"{"a": {"b": "{\"c\": [1, \"x\\u00e9\"]}"}, "d": 1}"#;
        let expected = r#"{"a": {"b": {"c": [1, "x\u00e9"]}}, "d": 1}"#;
        assert_eq!(
            apart(r#"["a", "b"]"#, &[], record).as_deref(),
            Some(expected)
        );
        for other in [
            r#"{"a": "5"}"#,
            r#"{"a": "{]"}"#,
            r#"{"a": 5}"#,
            r#"{"b": 1}"#,
        ] {
            assert_eq!(apart(r#"["a"]"#, &[], other), None, "{other}");
        }
    }

    #[test]
    fn bytes_of_decimals_are_numbers() {
        for (text, decimals, expected) in [
            ("DmI=", 2, "36.82"),
            ("/w==", 2, "-0.01"),
            ("AA==", 0, "0"),
            ("AIA=", 3, "0.128"),
            ("gA==", 0, "-128"),
        ] {
            assert_eq!(decimal(text, decimals).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "DmI", "36.82", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
            assert_eq!(decimal(text, 2), None, "{text}");
        }
    }

    #[test]
    fn a_decimal_comma_is_a_point() {
        for (text, expected) in [
            ("12,50", Some("12.50")),
            ("-1.234.567,8", Some("-1234567.8")),
            ("1 234", Some("1234.0")),
            ("007,5", Some("7.5")),
            ("0,5", Some("0.5")),
            ("12.5", None),
            ("1234.567,8", None),
            ("1,2,3", None),
            ("12,", None),
            (",5", None),
            ("free", None),
        ] {
            assert_eq!(with_point(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn pieces_of_a_text_become_a_list() {
        let record = r#"{"a": "N1-0  N2-1 ", "b": 5, "c": null}"#;
        let expected = r#"{"a": [["N1","0"],["N2","1"]], "b": 5, "c": null}"#;
        let found = apart(r#"["a"]"#, &[" ", "-"], record);
        assert_eq!(found.as_deref(), Some(expected));
        let expected = r#"{"a": "N1-0  N2-1 ", "b": ["5"], "c": null}"#;
        assert_eq!(apart(r#"["b"]"#, &["|"], record).as_deref(), Some(expected));
        assert_eq!(apart(r#"["c"]"#, &["|"], record), None);
        let long = format!(r#"{{"a": "{}"}}"#, "x|".repeat(60));
        assert_eq!(apart(r#"["a"]"#, &["|"], &long), None);
    }
}
