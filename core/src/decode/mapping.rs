//! Records of other shapes: where our fields stand in them, compiled once.
//!
//! 1. One pass notes where the value of every path begins. What stands beside a record (headers, its
//!    key, constants) is appended to it as JSON first.
//! 2. The kind of the event is read.
//! 3. The fields of that kind are read as those of a flat record: of several paths the first counts
//!    that leads to a value.

mod paths;

use super::draft::{Draft, NativeEvent, Place, Reading};
use super::fields::Field;
use super::names::Names;
use super::{Action, EventKind, Reason, Rules};
use crate::changes::Kind;
use crate::json::Reader;
use crate::kafka::Record;
use crate::spec::records::{
    FieldSpec, FieldsSpec, KindRuleSpec, KindSpec, MappingSpec, MetaFieldSpec, Unit, ValueSettings,
};
pub(super) use paths::{Found, Paths};

/// A shape, compiled.
#[derive(Debug)]
pub(super) struct Mapping {
    paths: Paths,
    beside: Vec<MetaField>,
    kind: KindOf,
    /// In the order of `EventKind::ALL`.
    kinds: [Option<Fields>; 4],
    /// Whether clicks may stand in the records of their impressions.
    has_shown: bool,
}

#[derive(Debug)]
enum KindOf {
    Fixed(KindRule),
    By(Vec<usize>, Names<Option<KindRule>>),
}

#[derive(Clone, Copy, Debug)]
struct KindRule {
    kind: EventKind,
    feedback: Option<Kind>,
    action: Option<Action>,
    is_shown: bool,
}

#[derive(Debug)]
pub(super) struct Fields {
    pub fields: Vec<Wanted>,
    pub items: Option<MappedItems>,
}

#[derive(Debug)]
pub(super) struct MappedItems {
    pub values: Vec<usize>,
    pub paths: Paths,
    pub fields: Vec<Wanted>,
}

/// A field that is read, and from where.
#[derive(Debug)]
pub(super) struct Wanted {
    pub field: Field,
    /// `,"name":` with our name, as events in our shape have it.
    pub key: String,
    pub values: Vec<usize>,
    pub times: Vec<usize>,
    pub units: Vec<Unit>,
}

impl Mapping {
    /// Compiles a shape; an error where it names what there is not. `field_of`: our fields by kind
    /// and name.
    pub fn new(
        spec: &MappingSpec,
        feedback: &[String],
        field_of: &impl Fn(EventKind, &str) -> Option<Field>,
    ) -> Result<Self, String> {
        let mut has_shown = false;
        let mut rule = |spec: &KindRuleSpec| {
            has_shown |= spec.shown;
            let place = |name: &String| feedback.iter().position(|other| other == name);
            let kind_of = |name| place(name).map_or(Kind::Other, |i| Kind::Configured(i as u8));
            let feedback = spec.feedback.as_ref().map(kind_of);
            Ok::<_, String>(KindRule {
                kind: kind_named(&spec.kind)?,
                feedback,
                action: spec.action.as_deref().and_then(Action::of),
                is_shown: spec.shown,
            })
        };
        let kind = match &spec.kind {
            KindSpec::Fixed(spec) => KindOf::Fixed(rule(spec)?),
            KindSpec::By {
                values,
                rules,
                ignored,
            } => {
                let mut known = Vec::new();
                for (text, spec) in rules {
                    known.push((text.as_str(), Some(rule(spec)?)));
                }
                known.extend(ignored.iter().map(|text| (text.as_str(), None)));
                KindOf::By(values.clone(), Names::new(known))
            }
        };
        let mut kinds = [None, None, None, None];
        for (name, spec) in &spec.kinds {
            let kind = kind_named(name)?;
            kinds[kind as usize] = Some(Fields::new(kind, spec, field_of)?);
        }
        Ok(Self {
            paths: Paths::new(&spec.paths),
            beside: spec.beside.iter().map(MetaField::new).collect(),
            kind,
            kinds,
            has_shown,
        })
    }

    /// Fills a draft, which is empty but for the text that was made of a record, and returns the kind
    /// of its event. `text`: that of the record, where the draft has none.
    pub fn fill(
        &self,
        draft: &mut Draft,
        record: &Record,
        text: &str,
        (rules, values): (&Rules, &ValueSettings),
    ) -> Result<EventKind, Reason> {
        if self.beside.is_empty() && draft.text.is_empty() {
            return self.fill_from(draft, (text, text.len()), (rules, values));
        }
        let mut own = std::mem::take(&mut draft.text);
        own.push_str(text);
        let end = own.len();
        for beside in &self.beside {
            own.push('\n');
            draft.beside.push(own.len() as u32 + 1);
            beside.append(record, &mut own);
        }
        let filled = self.fill_from(draft, (&own, end), (rules, values));
        (draft.text, draft.has_own_text) = (own, true);
        filled
    }

    /// Writes the event that `fill` has read from a record in our shape. `id`: its id where it has
    /// none of its own.
    pub fn write(
        &self,
        draft: &Draft,
        (kind, text): (EventKind, &str),
        (rules, values): (&Rules, &ValueSettings),
        id: &str,
        to: &mut NativeEvent,
    ) -> Result<(), Reason> {
        let reading = reading(draft.text_of(text), kind, rules, values);
        let fields = self.fields_of(kind)?;
        draft.write_native(fields, &reading, (id, self.has_shown), to)?;
        match draft.has_click {
            true => {
                let clicks = self.fields_of(EventKind::Clicks)?;
                draft.write_click((fields, clicks), &reading, id, to)
            }
            false => Ok(()),
        }
    }

    /// `end`: where the record ends in the text, and what stands beside it begins.
    fn fill_from(
        &self,
        draft: &mut Draft,
        (text, end): (&str, usize),
        (rules, values): (&Rules, &ValueSettings),
    ) -> Result<EventKind, Reason> {
        let record = text.get(..end).unwrap_or_default();
        let mut found = std::mem::take(&mut draft.found);
        found.clear();
        found.resize(self.paths.count, 0);
        let mut reader = Reader::new(record, rules.limits.max_depth);
        let is_object = reader.peek() == b'{';
        let searched = self
            .paths
            .find(&mut reader, 0, (text, &mut draft.unescaped), &mut found);
        found.append(&mut draft.beside);
        let filled = searched.and_then(|()| match (reader.is_at_end(), is_object) {
            (false, _) => Err(Reason::Json),
            (true, false) => Err(Reason::Object),
            (true, true) => self.read(draft, text, &found, (rules, values)),
        });
        draft.found = found;
        filled
    }

    fn read(
        &self,
        draft: &mut Draft,
        text: &str,
        found: &Found,
        (rules, values): (&Rules, &ValueSettings),
    ) -> Result<EventKind, Reason> {
        let max_depth = rules.limits.max_depth;
        let rule = match &self.kind {
            KindOf::Fixed(rule) => *rule,
            KindOf::By(places, known) => {
                draft.place = Place::missing(Field::Type);
                let (_, at) = first(places, found, (text, &values.missing)).ok_or(Reason::Kind)?;
                draft.place = Place::value(Field::Type, at);
                let mut reader = Reader::starting(text, at, max_depth);
                let name = match reader.peek() {
                    b'"' => reader.text(&mut draft.unescaped)?,
                    _ => {
                        reader.skip(1)?;
                        reader.raw_since(at)
                    }
                };
                let rule = known.get(name.of(text, &draft.unescaped));
                rule.ok_or(Reason::Kind)?.ok_or(Reason::Ignored)?
            }
        };
        let (kind, feedback) = match rule.is_shown {
            true => (EventKind::Impressions, None),
            false => (rule.kind, rule.feedback),
        };
        draft.kind = Some(kind);
        let fields = self.fields_of(kind)?;
        let reading = reading(text, kind, rules, values);
        draft.set_by_kind(feedback, rule.action);
        draft.read_mapped(fields, found, &reading)?;
        draft.check(&reading)?;
        if rule.is_shown {
            let clicks = self.fields_of(EventKind::Clicks)?;
            draft.read_click(clicks, rule.feedback, found, &reading)?;
        }
        Ok(kind)
    }

    fn fields_of(&self, kind: EventKind) -> Result<&Fields, Reason> {
        self.kinds[kind as usize].as_ref().ok_or(Reason::Kind)
    }
}

fn reading<'a>(
    record: &'a str,
    kind: EventKind,
    rules: &'a Rules,
    values: &'a ValueSettings,
) -> Reading<'a> {
    Reading {
        record,
        kind,
        rules,
        values,
        items: &rules.no_names,
        unit: Unit::Any,
    }
}

impl Fields {
    fn new(
        kind: EventKind,
        spec: &FieldsSpec,
        field_of: &impl Fn(EventKind, &str) -> Option<Field>,
    ) -> Result<Self, String> {
        let wanted = |specs: &[FieldSpec]| {
            let made = specs.iter().map(|spec| {
                let field = field_of(kind, &spec.field)
                    .ok_or_else(|| format!("{} have no field {:?}", kind.name(), spec.field))?;
                let mut key = String::from(",");
                push_json(&spec.field, &mut key);
                key.push(':');
                Ok::<_, String>(Wanted {
                    field,
                    key,
                    values: spec.values.clone(),
                    times: spec.times.clone(),
                    units: spec.units.clone(),
                })
            });
            made.collect::<Result<Vec<_>, _>>()
        };
        let items = spec.items.as_ref().map(|items| {
            Ok::<_, String>(MappedItems {
                values: items.values.clone(),
                paths: Paths::new(&items.paths),
                fields: wanted(&items.fields)?,
            })
        });
        Ok(Self {
            fields: wanted(&spec.fields)?,
            items: items.transpose()?,
        })
    }
}

/// Which of some values is the first that is neither missing, null nor an empty text, and where it
/// begins. `missing`: texts that stand for no value.
pub(super) fn first(
    places: &[usize],
    found: &Found,
    (text, missing): (&str, &[String]),
) -> Option<(usize, usize)> {
    let numbered = places.iter().enumerate();
    let mut begins =
        numbered.filter_map(|(i, place)| Some((i, found.get(*place)?.checked_sub(1)? as usize)));
    begins.find(|(_, at)| {
        let rest = text.as_bytes().get(*at..).unwrap_or_default();
        !rest.starts_with(b"null")
            && !rest.starts_with(b"\"\"")
            && (missing.is_empty() || !is_one_of(missing, text, *at))
    })
}

/// Whether the value that begins at a place is one of some texts.
fn is_one_of(texts: &[String], record: &str, at: usize) -> bool {
    let mut reader = Reader::starting(record, at, 1);
    let mut unescaped = String::new();
    reader.peek() == b'"'
        && reader.text(&mut unescaped).is_ok_and(|text| {
            let text = text.of(record, &unescaped);
            texts.iter().any(|each| each == text)
        })
}

fn kind_named(name: &str) -> Result<EventKind, String> {
    EventKind::of(name).ok_or_else(|| format!("there are no {name:?}"))
}

/// What stands beside the value of a record: a constant, a header, its key or its timestamp.
#[derive(Debug)]
struct MetaField(MetaFieldSpec);

impl MetaField {
    fn new(spec: &MetaFieldSpec) -> Self {
        Self(spec.clone())
    }

    /// Appends JSON of its value; null where a record has none, or no text.
    fn append(&self, record: &Record, to: &mut String) {
        let value = match &self.0 {
            MetaFieldSpec::Constant(json) => return to.push_str(json),
            MetaFieldSpec::Timestamp => return to.push_str(&record.timestamp_ms.to_string()),
            MetaFieldSpec::Header(name) => record.header(name.as_bytes()),
            MetaFieldSpec::Key => record.key,
        };
        match value.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(text) => push_json(text, to),
            None => to.push_str("null"),
        }
    }
}

/// Appends a text as JSON.
pub(super) fn push_json(text: &str, to: &mut String) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_stand_for_no_value_are_none() {
        let record = r#"{"a": "(not set)", "b": "n\/a", "c": "(not set) ", "d": 5}"#;
        let at = |name: &str| record.find(name).unwrap() as u32 + 5 + 1;
        let found = vec![at("\"a\""), at("\"b\""), at("\"c\""), at("\"d\"")];
        let missing = ["(not set)".to_owned(), "n/a".to_owned()];
        let of = |places: &[usize], missing: &[String]| {
            first(places, &found, (record, missing)).map(|(i, _)| i)
        };
        assert_eq!(of(&[0, 1, 2, 3], &[]), Some(0));
        assert_eq!(of(&[0, 1, 2, 3], &missing), Some(2));
        assert_eq!(of(&[0, 1, 3], &missing), Some(2));
        assert_eq!(of(&[1], &missing), None);
    }
}
