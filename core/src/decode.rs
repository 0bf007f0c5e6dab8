//! One record → a typed event, or the reason why it is none. A record is gone over once; nothing is
//! allocated for an event, as all buffers are the decoder's.

mod draft;
mod event;
mod names;
mod reason;
pub mod rejected;
mod settings;
mod times;

use draft::{Draft, Field, Source, Sources};
pub use event::{Action, Body, Dimensions, Event, Item, Topic};
use names::Names;
pub use reason::Reason;
pub use settings::{RecordLimits, RecordSettings};

use smallvec::SmallVec;

use crate::hash::HashKey;
use crate::json::{self, Reader};
use crate::kafka::BLOCK;
use crate::spec::Spec;
use crate::weights::Policies;

/// Ranks in a brute-force list are 16-bit integers times three.
const MAX_RANK: usize = 10_000;

/// The event of a record, or the reason why it is none; one of several where it has several defects.
pub type Decoded<'a> = Result<Event<'a>, Reason>;

/// Decodes the records of all topics.
#[derive(Debug)]
pub struct Decoder {
    /// One table a topic, in the order of `Topic::ALL`.
    fields: [Names<Field>; 4],
    /// Fields of an element of `items`.
    item_fields: Names<Field>,
    rules: Rules,
    /// One for each record that is decoded at a time.
    drafts: Vec<Draft>,
}

/// What settings say, besides names.
#[derive(Debug)]
struct Rules {
    key: HashKey,
    feedback: Vec<String>,
    limits: RecordLimits,
    policies: Policies,
    custom: Sources,
}

impl Decoder {
    /// A decoder for a partition.
    pub fn of(spec: &Spec) -> Self {
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
    ) -> Self {
        let custom = Sources::new(&settings.custom);
        let of_custom = |topic: Topic| {
            let own = custom.own(topic, &settings.custom);
            own.map(move |(ours, i)| (settings.name_of(topic.name(), ours), Field::Custom(i)))
        };
        let fields = Topic::ALL.map(|topic| {
            let kind = topic.name();
            let own = Field::of_topic(topic)
                .iter()
                .map(|field| (settings.name_of(kind, field.name()), *field));
            let others = (0..).zip(dimensions);
            let others =
                others.map(|(i, ours)| (settings.name_of(kind, ours), Field::Dimension(i)));
            let of_policies = of_policies(settings)
                .into_iter()
                .filter(|_| topic == Topic::Impressions);
            Names::new(own.chain(others).chain(of_policies).chain(of_custom(topic)))
        });
        let kind = Topic::Impressions.name();
        let of_items = Field::OF_ITEM.iter();
        let of_items = of_items.map(|field| (settings.name_of(kind, field.name()), *field));
        let item_fields = Names::new(
            of_items
                .chain(of_policies(settings))
                .chain(of_custom(Topic::Impressions)),
        );
        let mut limits = settings.limits;
        limits.max_items = limits.max_items.min(MAX_RANK);
        let has_policies = !settings.policies.policies.is_empty();
        let drafts = (0..BLOCK).map(|_| Draft::new(dimensions.len(), has_policies, &custom));
        let drafts = drafts.collect();
        let rules = Rules {
            key,
            feedback: feedback.to_vec(),
            limits,
            policies: settings.policies.clone(),
            custom,
        };
        Self {
            fields,
            item_fields,
            rules,
            drafts,
        }
    }

    /// The event of a record.
    ///
    /// # Errors
    /// The reason why it is none; one of several where it has several defects.
    pub fn decode<'a>(
        &'a mut self,
        topic: Topic,
        record: Option<&'a [u8]>,
    ) -> Result<Event<'a>, Reason> {
        let mut found = SmallVec::new();
        self.decode_all(topic, std::iter::once(record), &mut found);
        found.pop().unwrap_or(Err(Reason::Json))
    }

    /// Appends the events of some records, at most `kafka::BLOCK`; others are left out.
    pub fn decode_all<'a>(
        &'a mut self,
        topic: Topic,
        records: impl Iterator<Item = Option<&'a [u8]>>,
        events: &mut SmallVec<[Decoded<'a>; BLOCK]>,
    ) {
        let fields = &self.fields[topic as usize];
        let (items, rules) = (&self.item_fields, &self.rules);
        for (draft, record) in self.drafts.iter_mut().zip(records) {
            events.push(match rules.read(topic, fields, items, draft, record) {
                Ok(text) => Ok(draft.event(topic, text)),
                Err(reason) => Err(reason),
            });
        }
    }
}

/// Their names of the fields of policies.
fn of_policies(settings: &RecordSettings) -> Vec<(&str, Field)> {
    let name_of = |ours| settings.name_of(Topic::Impressions.name(), ours);
    let mut found = Vec::new();
    for (i, policy) in settings.policies.policies.iter().enumerate() {
        let target = policy.propensity.as_deref();
        found.extend(target.map(|ours| (name_of(ours), Field::Target(i))));
        let estimate = policy.estimate.as_deref();
        found.extend(estimate.map(|ours| (name_of(ours), Field::Estimate(i))));
    }
    found
}

impl Rules {
    fn read<'a>(
        &self,
        topic: Topic,
        fields: &Names<Field>,
        items: &Names<Field>,
        draft: &mut Draft,
        record: Option<&'a [u8]>,
    ) -> Result<&'a str, Reason> {
        let record = record.ok_or(Reason::Json)?;
        if record.len() > self.limits.max_bytes {
            return Err(Reason::TooLarge);
        }
        let text = std::str::from_utf8(record).map_err(|_| Reason::Json);
        let source = |text| Source {
            record: text,
            rules: self,
            items,
        };
        match text.and_then(|text| draft.fill(topic, fields, &source(text)).map(|()| text)) {
            Err(_) if json::depth(record) > self.limits.max_depth => Err(Reason::TooDeep),
            found => found,
        }
    }
}

impl Draft {
    fn fill(&mut self, topic: Topic, fields: &Names<Field>, source: &Source) -> Result<(), Reason> {
        let record = source.record;
        let mut reader = Reader::new(record, source.rules.limits.max_depth);
        if reader.peek() != b'{' {
            reader.skip(0)?;
            return Err(if reader.is_at_end() {
                Reason::Object
            } else {
                Reason::Json
            });
        }
        self.clear();
        reader.object(
            self,
            |reader, draft| reader.text(&mut draft.unescaped),
            |reader, draft, name| match fields.get(name.of(record, &draft.unescaped)) {
                Some(field) => draft.read(field, topic, reader, source),
                None => reader.skip(1),
            },
        )?;
        if !reader.is_at_end() {
            return Err(Reason::Json);
        }
        self.check(topic, source)
    }
}

#[cfg(test)]
mod tests;
