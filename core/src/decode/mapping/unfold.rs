//! Texts that hold other values: JSON in a text, or several values with something between them.

use super::paths::Paths;
use super::push_json;
use crate::json::Reader;
use crate::spec::records::UnfoldSpec;

/// A text that is taken apart.
#[derive(Debug)]
pub(super) struct Unfold {
    paths: Paths,
    split: Vec<String>,
}

impl Unfold {
    pub fn new(spec: &UnfoldSpec) -> Self {
        Self {
            paths: Paths::new(std::slice::from_ref(&spec.path)),
            split: spec.split.clone(),
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
