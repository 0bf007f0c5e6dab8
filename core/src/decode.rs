//! One record → a typed event, or the reason why it is none. A record is gone over once; nothing is
//! allocated for an event, as all buffers are the decoder's.

mod arms;
mod draft;
mod drafts;
mod event;
pub mod fields;
mod mapping;
mod names;
mod reading;
pub mod reason;
pub mod rejected;
mod times;

use arms::ArmFields;
pub use arms::ArmTexts;
pub use draft::NativeEvent;
use draft::traced::Trace;
pub use draft::traced::Traced;
use draft::{Form, OwnNumbers};
use drafts::{Drafts, End, Native};
pub use event::{Body, Event, Line, worth_of};
use fields::{Field, Ranges};
use mapping::{Mapping, Opened};
use names::Names;
use reading::{ElementKind, EventRules, Reading};
pub use reason::Reason;

use smallvec::SmallVec;

use crate::formats::{FormatReader, Payload};
use crate::hash::HashKey;
use crate::json::{self, Reader};
use crate::kafka::{BLOCK, Record};
use crate::kinds::EventKind;
use crate::spec::Spec;
use crate::spec::records::{FlatSpec, Format, LayoutSpec, RecordSettings, ValueSettings};

/// Ranks in a brute-force list are 16-bit integers times three.
const MAX_RANK: usize = 10_000;

/// An event of a record, or the reason why it is none; one of several where it has several defects.
pub type Decoded<'a> = Result<Event<'a>, Reason>;

/// Events of some records, in their order, each with the place of its record. A record has one, or
/// several where it is mapped so.
pub type DecodedEvents<'a> = SmallVec<[(usize, Decoded<'a>); BLOCK]>;

/// Decodes the records of all sources.
#[derive(Debug)]
pub struct Decoder {
    sources: Vec<Source>,
    /// Fields whose names are settings.
    names: Vec<(String, Field)>,
    rules: EventRules,
    drafts: Drafts,
    /// The records that are decoded at a time.
    opened: Vec<Opened>,
}

/// Records of one shape.
#[derive(Debug)]
struct Source {
    values: ValueSettings,
    format: FormatReader,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    Flat(Flat),
    Mapped(Box<Mapping>),
}

/// Events of one kind, all fields at the top.
#[derive(Debug)]
struct Flat {
    kind: EventKind,
    fields: Names<Field>,
    /// Fields of an element of `items`.
    items: Names<Field>,
    /// Fields that say who the person is.
    keys: Names<Field>,
}

/// A dimension of this name is not read: it is the user.
const USER_ID: &str = "user_id";

impl Decoder {
    /// A decoder for a partition; an error where a source names what there is not.
    pub fn of(spec: &Spec) -> Result<Self, String> {
        let dimensions: Vec<&str> = spec.dimensions.iter().map(|d| d.name.as_str()).collect();
        Self::new(
            spec.hash_key,
            &dimensions,
            &spec.feedback.kinds,
            &spec.records,
        )
    }

    /// A decoder by what it needs of a spec.
    pub fn new(
        key: HashKey,
        dimensions: &[&str],
        feedback: &[String],
        settings: &RecordSettings,
    ) -> Result<Self, String> {
        let known = KnownFields {
            dimensions,
            settings,
            own: OwnNumbers::new(&settings.own, dimensions, &key)?,
            arms: ArmFields::new(&settings.arms)?,
        };
        let mut sources = Vec::new();
        for source in &settings.sources {
            let layout = match &source.layout {
                LayoutSpec::Flat(spec) if source.format == Format::Json => {
                    Layout::Flat(Flat::new(spec, &known)?)
                }
                LayoutSpec::Flat(_) => return Err("only mapped sources have a format".to_owned()),
                LayoutSpec::Mapped(spec) => {
                    let field_of = |kind, name: &str| known.find(kind, name);
                    let mapping = Mapping::new(spec, feedback, &field_of)?;
                    Layout::Mapped(Box::new(mapping))
                }
            };
            sources.push(Source {
                values: source.values.clone(),
                format: FormatReader::new(source.format, settings.limits.max_refused_schemas),
                layout,
            });
        }
        let mut limits = settings.limits;
        limits.max_items = limits.max_items.min(MAX_RANK);
        let has_policies = !settings.policies.policies.is_empty();
        let names = EventKind::ALL
            .into_iter()
            .flat_map(|kind| known.of_event(kind));
        let names = names.filter(|(_, field)| field.name().is_empty());
        let names = names
            .map(|(name, field)| (name.to_owned(), field))
            .collect();
        let (own, arms) = (known.own, known.arms);
        Ok(Self {
            sources,
            names,
            drafts: Drafts::new(dimensions.len(), has_policies, &own),
            opened: (0..BLOCK).map(|_| Opened::default()).collect(),
            rules: EventRules {
                key,
                feedback: feedback.to_vec(),
                limits,
                ranges: Ranges::new(&settings.bounds)?,
                policies: settings.policies.clone(),
                own,
                arms,
                no_names: Names::new([]),
                user_place: dimensions.iter().position(|name| *name == USER_ID),
            },
        })
    }

    /// The events of some records, at most `kafka::BLOCK`; others are left out.
    pub fn decode_all<'a>(
        &'a mut self,
        source: usize,
        records: &[Record<'a>],
    ) -> DecodedEvents<'a> {
        let (source, rules) = (&self.sources[source], &self.rules);
        self.drafts.clear();
        let mut texts = SmallVec::<[&'a str; BLOCK]>::new();
        for (place, (opened, record)) in self.opened.iter_mut().zip(records).enumerate() {
            self.drafts.set_record(place);
            texts.push(source.read(rules, (opened, &mut self.drafts), record));
        }
        let (drafts, opened) = (&self.drafts, &self.opened);
        let events = drafts.ends.iter().map(|end| {
            let text = opened[end.record].text_of(texts[end.record]);
            let event = end.read.map(|of| drafts.get(end.draft).event(of, text));
            (end.record, event)
        });
        events.collect()
    }

    /// The text of a record of a source, with what its texts hold in their place; None where it has
    /// none.
    pub fn text(&self, source: usize, value: &[u8]) -> Option<Vec<u8>> {
        let (limits, mut own) = (&self.rules.limits, String::new());
        let source = &self.sources[source];
        let text = match source.format.text(value, limits.max_record_bytes, &mut own) {
            Ok(Payload::Here(text)) => text.to_owned(),
            Ok(Payload::Written) => own.into_bytes(),
            Err(_) => return None,
        };
        if let (Layout::Mapped(mapping), Ok(held)) = (&source.layout, std::str::from_utf8(&text)) {
            let (mut apart, mut spare) = (String::new(), String::new());
            mapping.take_apart(held, (&mut apart, &mut spare), limits);
            if !apart.is_empty() {
                return Some(apart.into_bytes());
            }
        }
        Some(text)
    }

    /// A record of a source once for each event that it holds, each time with that alone; nothing
    /// where it cannot be read, or is one event.
    pub fn split(&self, source: usize, value: &[u8]) -> Vec<String> {
        let text = self
            .text(source, value)
            .and_then(|text| String::from_utf8(text).ok());
        let source = &self.sources[source];
        match (&source.layout, text) {
            (Layout::Mapped(mapping), Some(text)) => {
                mapping.split(&text, (&self.rules, &source.values))
            }
            _ => Vec::new(),
        }
    }

    /// What a record of a source is keyed by: its id of joins, else its user; of a flat record if it
    /// can be read whatever else is wrong, of others where they are events. "" where there is none.
    pub fn key(&mut self, source: usize, record: &Record) -> String {
        let Layout::Flat(flat) = &self.sources[source].layout else {
            let decoded = self.decode_all(source, std::slice::from_ref(record));
            let event = decoded.first().and_then(|(_, event)| event.as_ref().ok());
            return event.map_or("", Event::key).to_owned();
        };
        let value = record.value.unwrap_or_default();
        let is_read = value.len() <= self.rules.limits.max_record_bytes;
        let Ok(text) = std::str::from_utf8(if is_read { value } else { b"" }) else {
            return String::new();
        };
        self.drafts.clear();
        let draft = self.drafts.begin();
        let reading = flat.reading(text, (&self.rules, &self.sources[source].values), 0);
        match draft.read_all(&reading, &flat.keys) {
            Ok(()) => draft.key(text).to_owned(),
            Err(_) => String::new(),
        }
    }

    /// The format of a source, and its schemas.
    pub fn format(&mut self, source: usize) -> &mut FormatReader {
        &mut self.sources[source].format
    }
}

impl Decoder {
    /// The events of a record of a mapped source in our own shape, and the reasons why others are
    /// none; `id` makes ids of those that have none.
    pub fn rewrite(
        &mut self,
        source: usize,
        record: &Record,
        id: &str,
    ) -> (Vec<NativeEvent>, Vec<Reason>) {
        self.drafts.native = Some(Native {
            id: id.to_owned(),
            events: Vec::new(),
        });
        let decoded = self.decode_all(source, std::slice::from_ref(record));
        let mut reasons: Vec<Reason> = decoded.iter().filter_map(|(_, x)| x.err()).collect();
        drop(decoded);
        let native = self.drafts.native.take().unwrap_or_default();
        let max_bytes = self.rules.limits.max_record_bytes;
        let (written, too_large): (Vec<_>, Vec<_>) = native
            .events
            .into_iter()
            .partition(|event| event.json.len() <= max_bytes);
        reasons.extend(too_large.iter().map(|_| Reason::TooLarge));
        (written, reasons)
    }
}

/// Which fields there are: ours by kind and name.
struct KnownFields<'a> {
    dimensions: &'a [&'a str],
    settings: &'a RecordSettings,
    own: OwnNumbers,
    arms: ArmFields,
}

impl KnownFields<'_> {
    /// Those that settings name, of items or lines: of policies, which shown items have, and of
    /// own sums.
    fn of_settings(&self, kind: EventKind) -> Vec<(&str, Field)> {
        let mut found = Vec::new();
        if kind == EventKind::Impressions {
            for (i, policy) in (0..).zip(&self.settings.policies.policies) {
                let target = policy.propensity.as_deref();
                found.extend(target.map(|name| (name, Field::Target(i))));
                let estimate = policy.estimate.as_deref();
                found.extend(estimate.map(|name| (name, Field::Estimate(i))));
            }
        }
        found.extend(self.own.own(kind));
        found
    }

    /// Those of items or lines, wherever they stand.
    fn of_element(&self, kind: EventKind) -> Vec<(&str, Field)> {
        let own = Field::of_element(kind).map(|field| (field.name(), field));
        own.chain(self.of_settings(kind)).collect()
    }

    fn of_event(&self, kind: EventKind) -> Vec<(&str, Field)> {
        let own = Field::of_event(kind).map(|field| (field.name(), field));
        let dimensions = (0..)
            .zip(self.dimensions)
            .filter(|(_, name)| **name != USER_ID);
        let dimensions = dimensions.map(|(i, name)| (*name, Field::Dimension(i)));
        let found = own.chain(dimensions).chain(self.of_settings(kind));
        found.collect()
    }

    fn find(&self, kind: EventKind, name: &str) -> Option<Field> {
        let fields = self.of_event(kind);
        let found = fields.into_iter().find(|(ours, _)| *ours == name);
        let mut arms = self.arms.mapped.iter();
        found.map(|(_, field)| field).or_else(|| {
            let (_, place) = arms.find(|(ours, _)| ours == name)?;
            Some(Field::Arms(*place))
        })
    }
}

impl Flat {
    fn new(spec: &FlatSpec, known: &KnownFields) -> Result<Self, String> {
        let kind = EventKind::of(&spec.kind).ok_or_else(|| format!("no {:?}", spec.kind))?;
        let table = |fields: Vec<(&str, Field)>| {
            let named = fields.into_iter();
            Names::new(named.map(|(ours, field)| (spec.name_of(ours), field)))
        };
        let arms = known.arms.flat.iter();
        let arms = arms.map(|(name, place)| (name.as_str(), Field::Arms(*place)));
        Ok(Self {
            kind,
            fields: table(known.of_event(kind).into_iter().chain(arms).collect()),
            items: table(known.of_element(kind)),
            keys: table([Field::JoinId, Field::UserId].map(|x| (x.name(), x)).into()),
        })
    }

    /// What reading a record needs.
    fn reading<'a>(
        &'a self,
        record: &'a str,
        (rules, values): (&'a EventRules, &'a ValueSettings),
        timestamp_ms: i64,
    ) -> Reading<'a> {
        Reading {
            record,
            kind: self.kind,
            rules,
            values,
            timestamp_ms,
            items: &self.items,
            form: &Form::PLAIN,
        }
    }
}

impl Source {
    /// Reads the events of a record: of each record one at least has an end. A record without a value
    /// is ignored: a topic that is compacted, or follows a table, has one for what is deleted.
    ///
    /// Returns the text of the record, where it stands in its value.
    fn read<'a>(
        &self,
        rules: &EventRules,
        (opened, drafts): (&mut Opened, &mut Drafts),
        record: &Record<'a>,
    ) -> &'a str {
        opened.clear();
        let first = drafts.ends.len();
        let filled = self.fill(rules, (opened, drafts), record);
        let text = filled.unwrap_or_else(|reason| {
            drafts.begin();
            drafts.end(Err(reason));
            self.text_here(record)
        });
        let ends = &mut drafts.ends[first..];
        if ends.iter().any(End::is_refused)
            && json::depth(opened.text_of(text).as_bytes()) > rules.limits.max_depth
        {
            for end in ends {
                end.read = end.read.map_err(|_| Reason::TooDeep);
            }
        }
        text
    }

    fn fill<'a>(
        &self,
        rules: &EventRules,
        (opened, drafts): (&mut Opened, &mut Drafts),
        record: &Record<'a>,
    ) -> Result<&'a str, Reason> {
        let value = record.value.ok_or(Reason::Ignored)?;
        let max_bytes = rules.limits.max_record_bytes;
        if value.len() > max_bytes {
            return Err(Reason::TooLarge);
        }
        let value = match self.format.text(value, max_bytes, &mut opened.text)? {
            Payload::Here(text) => text,
            Payload::Written => &[],
        };
        let text = std::str::from_utf8(value).map_err(|_| Reason::Json)?;
        match &self.layout {
            Layout::Flat(flat) => {
                let (kind, shared) = (flat.kind, None);
                let draft = drafts.begin();
                let reading = flat.reading(text, (rules, &self.values), record.timestamp_ms);
                let read = draft.fill(&reading, &flat.fields);
                drafts.end(read.map(|()| ElementKind { kind, shared }));
            }
            Layout::Mapped(mapping) => {
                let schema = mapping.reads_schema_names();
                let schema = schema.then(|| self.format.schema_name(record, max_bytes));
                let schema = schema.flatten();
                let text = (text, schema.as_deref());
                mapping.read(opened, record, text, (rules, &self.values), drafts);
                if !drafts.has_ends() {
                    return Err(Reason::Ignored);
                }
            }
        }
        Ok(text)
    }

    /// The text of a record that stands in its value; "" where it has another.
    fn text_here<'a>(&self, record: &Record<'a>) -> &'a str {
        let plain = self.format.plain(record.value.unwrap_or_default());
        std::str::from_utf8(plain).unwrap_or_default()
    }
}

impl Decoder {
    /// How each event of a record was read.
    pub fn trace(&mut self, source: usize, record: &Record) -> Vec<Traced> {
        self.drafts.trace = Some(Trace::default());
        self.decode_all(source, std::slice::from_ref(record));
        let mut traced = self.drafts.trace.take().unwrap_or_default().events;
        let text = self.opened[0].text_of(self.sources[source].text_here(record));
        for (event, end) in traced.iter_mut().zip(&self.drafts.ends) {
            let draft = self.drafts.get(end.draft);
            let place = draft.place;
            (event.reason, event.field) = (end.read.err(), place.field);
            event.kind = match &self.sources[source].layout {
                Layout::Flat(flat) => Some(flat.kind),
                Layout::Mapped(_) => draft.kind,
            };
            event.element = place.element.checked_sub(1);
            let at = place.at as usize;
            let mut reader = Reader::starting(text, at, self.rules.limits.max_depth);
            let is_value = at < text.len() && reader.skip(0).is_ok();
            let found = is_value.then(|| text.get(at..reader.at())).flatten();
            let is_moment = matches!(place.field, Some(Field::Ts | Field::StartTs | Field::EndTs));
            let mut values = event.values.iter().filter(|_| is_moment); // of two texts, maybe
            let time = values.find(|value| Some(value.field) == place.field);
            let whole = |found: &str| time.map_or(found.trim(), |time| &time.json).to_owned();
            event.found = found.map(whole);
        }
        traced
    }

    /// Our name of a field; "" of one that says arms.
    pub fn name_of(&self, field: Field) -> String {
        let known = self.names.iter().find(|(_, other)| *other == field);
        known.map_or_else(|| field.name().to_owned(), |(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests;
