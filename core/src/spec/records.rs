//! What Python says of records: where their fields stand, and their bounds.

use std::collections::HashMap;

use serde::Deserialize;

/// A part of the spec.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSettings {
    pub sources: Vec<SourceSpec>,
    pub limits: RecordLimits,
    /// Those of numbers in fields, by name: see `decode::fields`.
    pub bounds: HashMap<String, f64>,
    /// Of which policies events say something.
    pub policies: Policies,
    /// What custom metrics read.
    #[serde(default)]
    pub custom: Vec<CustomField>,
}

/// Records of one shape.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    pub values: ValueSettings,
    /// Of what is mapped.
    #[serde(default)]
    pub format: Format,
    pub layout: LayoutSpec,
}

/// What values of a source mean.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueSettings {
    /// Which number the first position has: 0 or 1.
    pub positions_from: u32,
    /// The time zone of times without an offset, as (UTC ms from which on, offset in ms), ascending.
    pub zone: Vec<(i64, i64)>,
    /// Texts that stand for no value.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Where the fields of a source stand.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutSpec {
    /// At the top of events of one kind.
    Flat(FlatSpec),
    Mapped(MappingSpec),
}

/// Events of one kind, all fields at the top.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlatSpec {
    pub kind: String,
    /// Our name of a field or dimension → theirs; a name that is missing is ours.
    pub names: HashMap<String, String>,
}

impl FlatSpec {
    /// Their name of a field.
    pub fn name_of<'a>(&'a self, ours: &'a str) -> &'a str {
        self.names.get(ours).map_or(ours, String::as_str)
    }
}

/// Bounds of one record, all inclusive.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordLimits {
    pub max_record_bytes: usize,
    /// Nested lists and objects; a bare object is 1.
    pub max_depth: usize,
    /// Schemas that are not there, of one source.
    pub max_refused_schemas: usize,
    pub max_event_ms: i64,
    /// Integers from here to `max_seconds` are no times: they look like epoch seconds.
    pub min_seconds: i64,
    pub max_seconds: i64,
    /// Of an id in UTF-8.
    pub max_id_bytes: usize,
    /// Of a kind of feedback; values of dimensions are cut there.
    pub max_label_chars: usize,
    /// Elements of `items` and of `reference`.
    pub max_items: usize,
}

/// What Python says of a shape. Values are numbered: those of `paths`, then those of `beside`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingSpec {
    pub paths: Vec<Vec<Step>>,
    pub beside: Vec<MetaFieldSpec>,
    pub kind: KindSpec,
    /// Kind of events → its fields.
    pub kinds: HashMap<String, FieldsSpec>,
}

/// What a record is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindSpec {
    Fixed(KindRuleSpec),
    /// By the text of the first value that is there.
    By {
        values: Vec<usize>,
        rules: HashMap<String, KindRuleSpec>,
        ignored: Vec<String>,
    },
}

/// A kind of events, and for clicks the kind of feedback, for sessions the action, where they follow
/// from it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindRuleSpec {
    pub kind: String,
    pub feedback: Option<String>,
    /// Of sessions.
    pub action: Option<String>,
    /// Of clicks: the record is the impression, too.
    #[serde(default)]
    pub shown: bool,
}

/// Where the fields of a kind stand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldsSpec {
    pub fields: Vec<FieldSpec>,
    pub items: Option<ItemsSpec>,
}

/// A list: where it stands, and the fields of its elements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemsSpec {
    pub values: Vec<usize>,
    /// Into an element.
    pub paths: Vec<Vec<Step>>,
    /// Their values are numbered by these paths.
    pub fields: Vec<FieldSpec>,
}

/// A field: the first of these values that is there, or for `value` the product of two.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldSpec {
    pub field: String,
    pub values: Vec<usize>,
    #[serde(default)]
    pub times: Vec<usize>,
    /// Of times: one for each value.
    #[serde(default)]
    pub units: Vec<Unit>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Into a field of an object.
    Field(String),
    /// Into an element of a list, from 0.
    Element(usize),
    /// Into the element of a list of objects whose field `key` is the text `equals`.
    Where { key: String, equals: String },
}

/// Something beside records.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetaFieldSpec {
    /// JSON of a value that all records have.
    Constant(String),
    /// The text of a header; of several of that name the last.
    Header(String),
    /// The key, as a text.
    Key,
    /// Kafka's time of the record, epoch ms.
    Timestamp,
}

/// How a source writes a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Milliseconds, or RFC 3339.
    #[default]
    Any,
    S,
    Ms,
    Us,
    Ns,
    /// RFC 3339 only.
    Iso,
}

/// How the values of a source are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text, and nothing before it.
    #[default]
    Json,
    /// Text behind the id of its schema, which is not looked at: the text says all.
    JsonSchema,
    Avro,
    Protobuf,
}

/// What is said of policies, and the bound of weights.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policies {
    pub max_weight: f64,
    pub policies: Vec<Policy>,
}

/// A policy, of which a field of events or a table says what it would have shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Our names of the fields of its probability, and of the reward that it expects.
    pub propensity: Option<String>,
    pub estimate: Option<String>,
    /// Its probabilities by position from 1, where no field has them; beyond them 0.
    pub positions: Vec<f64>,
}

/// What a custom metric reads of events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomField {
    /// The topic whose events it is over.
    pub kind: String,
    /// Our name of the field; none: each event counts as 1.
    pub field: Option<String>,
}
