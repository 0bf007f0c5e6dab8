//! What events say of the arms of experiments: the values at some paths, as they are written. Nothing
//! of it is refused: who reads the values knows which of them are arms.

use super::reason::Reason;
use crate::hash::HashKey;
use crate::json::{Reader, Text};
use crate::spec::records::ArmPath;

/// The field of events in our shape that has the values of records of another shape, by path.
pub(super) const BY_PATH: &str = "experiment_arms";

/// A value that says something of arms.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmValue {
    /// Place of the field that it was read of.
    field: u8,
    /// Place among the paths of the settings.
    pub path: u8,
    /// Of the value as it is written.
    pub hash: u64,
    pub text: Text,
}

/// What an event says of arms.
#[derive(Clone, Copy, Debug)]
pub struct ArmTexts<'a> {
    pub(super) values: &'a [ArmValue],
    pub(super) record: &'a str,
}

impl<'a> ArmTexts<'a> {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Place of the path and hash of each value, and its JSON.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64, &'a str)> + use<'a> {
        let record = self.record;
        let values = self.values.iter();
        values.map(move |value| {
            let text = value.text.of(record, "");
            (usize::from(value.path), value.hash, text)
        })
    }
}

/// Values that are read of one field.
#[derive(Clone, Debug)]
enum Within {
    /// Each path is the rest of one, behind the field.
    Steps(Vec<(u8, Vec<String>)>),
    /// An object with a value by path.
    ByPath,
}

/// Where values stand that say something of arms.
#[derive(Clone, Debug)]
pub(super) struct ArmFields {
    paths: Vec<String>,
    fields: Vec<Within>,
    /// Names of fields at the top of events in our shape, and places of what is read of them.
    pub flat: Vec<(String, u8)>,
    /// Names by which mappings know a whole path, likewise.
    pub mapped: Vec<(String, u8)>,
}

impl ArmFields {
    /// An error where there are too many.
    pub fn new(paths: &[ArmPath]) -> Result<Self, String> {
        let mut found = Self {
            paths: paths.iter().map(|each| each.path.clone()).collect(),
            fields: Vec::new(),
            flat: Vec::new(),
            mapped: Vec::new(),
        };
        if 2 * paths.len() >= usize::from(u8::MAX) {
            return Err(format!("{} paths of arms", paths.len()));
        }
        for (path, spec) in (0..).zip(paths) {
            let place = found.push(Within::Steps(vec![(path, Vec::new())]));
            found.mapped.push((format!("arm {}", spec.path), place));
            let Some((first, rest)) = spec.steps.split_first() else {
                continue;
            };
            let known = found.flat.iter().find(|(name, _)| name == first);
            let place = known.map(|(_, place)| *place);
            match place.map(|place| &mut found.fields[usize::from(place)]) {
                Some(Within::Steps(paths)) => paths.push((path, rest.to_vec())),
                _ => {
                    let place = found.push(Within::Steps(vec![(path, rest.to_vec())]));
                    found.flat.push((first.clone(), place));
                }
            }
        }
        let is_taken = found.flat.iter().any(|(name, _)| name == BY_PATH);
        if !paths.is_empty() && !is_taken {
            let place = found.push(Within::ByPath);
            found.flat.push((BY_PATH.to_owned(), place));
        }
        Ok(found)
    }

    fn push(&mut self, within: Within) -> u8 {
        self.fields.push(within);
        (self.fields.len() - 1) as u8
    }

    /// Reads a field: appends the values that it has, which replace those of an earlier field of its
    /// name.
    pub fn read(
        &self,
        field: u8,
        reader: &mut Reader,
        key: &HashKey,
        to: &mut Vec<ArmValue>,
    ) -> Result<(), Reason> {
        let is_null = reader.peek() == b'n';
        let (record, at) = (reader.record(), *reader);
        reader.skip(1)?;
        to.retain(|value| value.field != field);
        if is_null {
            return Ok(());
        }
        let mut push = |path: u8, text: Text| {
            let hash = key.of(text.of(record, "").as_bytes());
            to.push(ArmValue {
                field,
                path,
                hash,
                text,
            });
        };
        match &self.fields[usize::from(field)] {
            Within::Steps(paths) => {
                for (path, rest) in paths {
                    if rest.is_empty() {
                        push(*path, reader.raw_since(at.at()));
                    } else if let Some(text) = value_at(at, rest) {
                        push(*path, text);
                    }
                }
            }
            Within::ByPath => {
                for (path, name) in (0..).zip(&self.paths) {
                    if let Some(text) = value_at(at, std::slice::from_ref(name)) {
                        push(path, text);
                    }
                }
            }
        }
        Ok(())
    }

    /// The path of a value.
    pub fn path_of(&self, value: &ArmValue) -> &str {
        &self.paths[usize::from(value.path)]
    }
}

/// The value at the end of some names, from the value on that begins where a reader is; None where
/// there is none, or null.
fn value_at(from: Reader, names: &[String]) -> Option<Text> {
    let (record, max_depth) = (from.record(), from.max_depth());
    let mut at = from.at();
    for name in names {
        let mut reader = Reader::starting(record, at, max_depth);
        if reader.peek() != b'{' {
            return None;
        }
        let (mut found, mut unescaped) = (None, String::new());
        let walked = reader.object(
            &mut (&mut found, &mut unescaped),
            |reader, (_, unescaped)| reader.text(unescaped),
            |reader, (found, unescaped), field| {
                if field.of(record, unescaped) == name {
                    reader.peek();
                    **found = Some(reader.at());
                }
                reader.skip(1)
            },
        );
        debug_assert!(walked.is_ok(), "it was passed over before");
        at = found?;
    }
    let mut reader = Reader::starting(record, at, max_depth);
    let is_null = reader.peek() == b'n';
    let start = reader.at();
    reader.skip(1).ok()?;
    (!is_null).then(|| reader.raw_since(start))
}
