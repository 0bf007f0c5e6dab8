//! Records of other shapes: where our fields stand in them, compiled once.
//!
//! 1. Texts that hold JSON, or several values, are taken apart. What stands beside a record (headers,
//!    its key, constants) is appended to it as JSON.
//! 2. One pass notes where the value of every path begins. Elements of a list are gone over one by
//!    one, each with values of its own; they may be events, or the items of one.
//! 3. What the record is follows from its values: it may be an event of several kinds.
//! 4. The fields of each kind are read as those of a flat record: of several paths the first counts
//!    that leads to a value.

mod kinds;
mod levels;
mod mapped_fields;
mod paths;
mod scope;
mod unfold;

use super::draft::Form;
use super::drafts::Drafts;
use super::fields::Field;
use super::reading::{ElementKind, EventRules, Place, Reading};
use super::reason::Reason;
use crate::json::push_json;
use crate::kafka::Record;
use crate::kinds::{EventKind, KINDS};
use crate::spec::records::{MappingSpec, MetaFieldSpec, RecordLimits, ValueSettings};
pub(super) use kinds::KindRule;
use kinds::Kinds;
pub(super) use levels::Levels;
pub(super) use mapped_fields::{Fields, MappedField, MappedList};
pub(super) use scope::Scope;
use unfold::Unfold;

/// A shape, compiled.
#[derive(Debug)]
pub(super) struct Mapping {
    unfold: Vec<Unfold>,
    beside: Vec<MetaField>,
    levels: Levels,
    each: Vec<usize>,
    kind: Kinds,
    /// In the order of `EventKind::ALL`.
    kinds: [Option<Fields>; KINDS],
}

/// A record while it is read: its text where that is not the record's own, and where values begin.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The text that was made of the record.
    pub text: String,
    pub has_own_text: bool,
    found: Vec<u32>,
    unescaped: String,
    spare: String,
}

impl Opened {
    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.has_own_text = false;
        self.unescaped.clear();
    }

    /// What was read of a record: its own text, or what was made of it.
    pub fn text_of<'a>(&'a self, record: &'a str) -> &'a str {
        match self.has_own_text {
            true => &self.text,
            false => record,
        }
    }
}

impl Mapping {
    /// Compiles a shape; an error where it names what there is not. `field_of`: our fields by kind
    /// and name.
    pub fn new(
        spec: &MappingSpec,
        feedback: &[String],
        field_of: &impl Fn(EventKind, &str) -> Option<Field>,
    ) -> Result<Self, String> {
        let mut kinds = [const { None }; KINDS];
        for (name, spec) in &spec.kinds {
            let kind = EventKind::named(name)?;
            kinds[kind as usize] = Some(Fields::new(kind, spec, field_of)?);
        }
        Ok(Self {
            unfold: spec.unfold.iter().map(Unfold::new).collect(),
            beside: spec.beside.iter().map(MetaField::new).collect(),
            levels: Levels::new(&spec.levels, spec.beside.len()),
            each: spec.each.clone(),
            kind: Kinds::new(&spec.kind, feedback)?,
            kinds,
        })
    }

    /// Whether the names that schemas give stand for values.
    pub fn reads_schema_names(&self) -> bool {
        let is_name = |beside: &MetaField| matches!(beside.0, MetaFieldSpec::Schema);
        self.beside.iter().any(is_name)
    }

    /// Reads the events of a record. `opened`: empty but for the text that was made of the record;
    /// `text`: that of the record, where there is none; `schema`: the name that its schema gives.
    pub fn read(
        &self,
        opened: &mut Opened,
        record: &Record,
        (text, schema): (&str, Option<&str>),
        (rules, values): (&EventRules, &ValueSettings),
        drafts: &mut Drafts,
    ) {
        let mut own = std::mem::take(&mut opened.text);
        self.take_apart(text, (&mut own, &mut opened.spare), &rules.limits);
        let has_own = !own.is_empty() || !self.beside.is_empty();
        let mut found = std::mem::take(&mut opened.found);
        found.clear();
        let end = if has_own {
            if own.is_empty() {
                own.push_str(text);
            }
            let end = own.len();
            for beside in &self.beside {
                own.push('\n');
                found.push(own.len() as u32 + 1);
                beside.append(record, schema, &mut own);
            }
            end
        } else {
            text.len()
        };
        found.resize(self.levels.values, 0);
        let mut scope = Scope {
            text: if has_own { &own } else { text },
            found: &mut found,
            unescaped: &mut opened.unescaped,
            missing: &values.missing,
            max_depth: rules.limits.max_depth,
            timestamp_ms: record.timestamp_ms,
        };
        if let Err(reason) = self.read_from(&mut scope, end, (rules, values), drafts) {
            drafts.end_record(reason);
        }
        (opened.found, opened.text, opened.has_own_text) = (found, own, has_own);
    }

    /// Writes a text with what its own texts hold in their place; nothing where they hold nothing.
    pub fn take_apart(
        &self,
        text: &str,
        (own, spare): (&mut String, &mut String),
        limits: &RecordLimits,
    ) {
        for unfold in &self.unfold {
            let current = if own.is_empty() { text } else { own.as_str() };
            if unfold.take_apart(current, (limits.max_depth, limits.max_record_bytes), spare) {
                std::mem::swap(own, spare);
            }
        }
    }

    /// A record once for each event that it holds, each time with that alone; nothing where it
    /// cannot be read, or is one event. `text`: with its texts taken apart.
    pub fn split(&self, text: &str, (rules, values): (&EventRules, &ValueSettings)) -> Vec<String> {
        let mut scope = Scope {
            text,
            found: &mut vec![0; self.levels.values],
            unescaped: &mut String::new(),
            missing: &values.missing,
            max_depth: rules.limits.max_depth,
            timestamp_ms: 0,
        };
        let mut alone = Vec::new();
        let opened = self.levels.open(&mut scope, text.len(), true);
        if opened.is_ok() && !self.each.is_empty() {
            let whole = (0, text.len());
            self.levels
                .split(&self.each, &mut scope, whole, ("", ""), &mut alone);
        }
        alone
    }

    /// `end`: where the record ends in the text, and what stands beside it begins. An error is of the
    /// record as a whole.
    fn read_from(
        &self,
        scope: &mut Scope,
        end: usize,
        (rules, values): (&EventRules, &ValueSettings),
        drafts: &mut Drafts,
    ) -> Result<(), Reason> {
        drafts.begin();
        self.levels.open(scope, end, !self.each.is_empty())?;
        let Some(list) = self.each.first() else {
            self.read_element(scope, None, (rules, values), drafts);
            return Ok(());
        };
        let at = self.levels.list_at(*list, scope);
        drafts.last().place = Place::list(at);
        if at.is_none_or(|at| !scope.text[at..].starts_with('[')) {
            return Err(Reason::Of(Field::Items));
        }
        let mut number = 0;
        self.levels.walk(&self.each, scope, &mut |scope, _| {
            if number as usize >= rules.limits.max_items {
                return Err(Reason::TooLarge);
            }
            if number > 0 {
                drafts.begin();
            }
            self.read_element(scope, Some(number), (rules, values), drafts);
            number += 1;
            Ok(())
        })
    }

    /// Reads the events of the record, or of one of its elements, into the draft that is begun and
    /// further ones.
    fn read_element(
        &self,
        scope: &mut Scope,
        number: Option<u32>,
        rules: (&EventRules, &ValueSettings),
        drafts: &mut Drafts,
    ) {
        if let Some(trace) = &mut drafts.trace {
            trace.kind_text = self.kind.text_of(scope);
        }
        let said = match self.kind.of(scope) {
            Ok(said) => said,
            Err((reason, place)) => {
                drafts.last().place = place;
                return drafts.end(Err(reason));
            }
        };
        let is_shared = said.iter().flatten().count() > 1;
        let mut is_first = true;
        for (kind, rule) in EventKind::ALL.into_iter().zip(said) {
            let Some(rule) = rule else { continue };
            if !std::mem::take(&mut is_first) {
                drafts.begin();
            }
            let element = ElementKind {
                kind,
                shared: is_shared.then_some(number.unwrap_or(0)),
            };
            self.read_event(scope, (element, rule), rules, drafts);
        }
    }

    fn read_event(
        &self,
        scope: &mut Scope,
        (element, rule): (ElementKind, KindRule),
        (rules, values): (&EventRules, &ValueSettings),
        drafts: &mut Drafts,
    ) {
        let draft = drafts.last();
        draft.kind = Some(element.kind);
        let Some(fields) = &self.kinds[element.kind as usize] else {
            return drafts.end(Err(Reason::Kind));
        };
        let reading = Reading {
            record: scope.text,
            kind: element.kind,
            rules,
            values,
            timestamp_ms: scope.timestamp_ms,
            items: &rules.no_names,
            form: &Form::PLAIN,
        };
        draft.set_by_kind(rule);
        let is_feedback = matches!(element.kind, EventKind::Clicks | EventKind::Conversions);
        let is_needed = element.shared.is_none() || !is_feedback;
        let mapped = (fields, &self.levels);
        let read = draft
            .read_mapped(mapped, scope, &reading, is_needed)
            .and_then(|()| draft.check(&reading));
        drafts.note_values(mapped, scope, &reading);
        if read == Err(Reason::Ignored) && element.shared.is_some() {
            return drafts.discard();
        }
        let shown = drafts.last().shown_items();
        let read = read
            .and_then(|()| drafts.show(shown))
            .and_then(|()| drafts.rewrite(mapped, element, scope, &reading));
        drafts.end(read.map(|()| element));
    }
}

/// What stands beside the value of a record: a constant, a header, its key, its timestamp, or the
/// name of its schema.
#[derive(Debug)]
struct MetaField(MetaFieldSpec);

impl MetaField {
    fn new(spec: &MetaFieldSpec) -> Self {
        Self(spec.clone())
    }

    /// Appends JSON of its value; null where a record has none, or no text.
    fn append(&self, record: &Record, schema: Option<&str>, to: &mut String) {
        let value = match &self.0 {
            MetaFieldSpec::Constant(json) => return to.push_str(json),
            MetaFieldSpec::Timestamp => return to.push_str(&record.timestamp_ms.to_string()),
            MetaFieldSpec::Schema => schema.map(str::as_bytes),
            MetaFieldSpec::Header(name) => record.header(name.as_bytes()),
            MetaFieldSpec::Key => record.key,
        };
        match value.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(text) => push_json(text, to),
            None => to.push_str("null"),
        }
    }
}
