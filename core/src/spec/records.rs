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
    /// What own sums read.
    #[serde(default)]
    pub own: OwnFields,
    /// Where events say of which arms of experiments they are.
    #[serde(default)]
    pub arms: Vec<ArmPath>,
}

/// A path to a value that says something of arms.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmPath {
    /// As settings have it.
    pub path: String,
    /// Its names, where it has nothing else: by them it is found in events in our shape.
    pub steps: Vec<String>,
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
    /// Whether ids are read without decimals that are all 0: 78.0 is 78.
    #[serde(default)]
    pub whole_ids: bool,
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
    /// Elements of `items` and of `reference`; events of one record.
    pub max_items: usize,
}

/// What Python says of a shape. Values are numbered through: what stands beside records, then those of
/// each level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingSpec {
    /// Texts that are taken apart before anything is looked for, in turn.
    pub unfold: Vec<UnfoldSpec>,
    pub beside: Vec<MetaFieldSpec>,
    /// The record, then elements of lists in it, or in their elements.
    pub levels: Vec<LevelSpec>,
    /// Levels from the record inwards, where each element of the last is an event; none: the record.
    pub each: Vec<usize>,
    pub kind: KindSpec,
    /// Kind of events → its fields.
    pub kinds: HashMap<String, FieldsSpec>,
}

/// A text that holds other values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfoldSpec {
    pub path: Vec<Step>,
    /// What parts its pieces, first those of the whole, then those of each piece.
    #[serde(default)]
    pub split: Vec<String>,
    /// Of a decimal, as Kafka Connect writes it (base64 of an integer): digits behind the point.
    /// Without it and without pieces the text is JSON.
    #[serde(default)]
    pub decimals: Option<u32>,
    /// Of a number with a decimal comma.
    #[serde(default)]
    pub comma: bool,
}

/// What is looked for in a record, or in each element of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelSpec {
    /// The value that is the list; none: the record.
    pub list: Option<usize>,
    /// Which elements count: those of which all this is true.
    pub only: Vec<ConditionSpec>,
    /// Paths of its values, the empty one for the element itself.
    pub paths: Vec<Vec<Step>>,
}

/// What may be true of the first of some values that is there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionSpec {
    pub values: Vec<usize>,
    pub test: TestSpec,
}

/// What it must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestSpec {
    /// One of some texts; numbers, true and false as they are written.
    OneOf(Vec<String>),
    /// Whether there is one.
    Is(bool),
}

/// What a record is: an event of every kind of which a rule is met; without any it is ignored, or
/// rejected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindSpec {
    /// The value whose text says it, the first of these that is there.
    pub by: Vec<usize>,
    pub rules: Vec<KindRuleSpec>,
}

/// A rule: of several for one kind the first counts that is met, those with conditions before those
/// of a value alone.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindRuleSpec {
    /// None: what meets it is ignored.
    pub kind: Option<String>,
    /// What the text must be; none: anything, or nothing.
    pub value: Option<String>,
    pub when: Vec<ConditionSpec>,
    /// Of clicks.
    pub feedback: Option<String>,
    /// Of sessions.
    pub action: Option<String>,
    /// Of conversions: whether it gives back an order, or lines of it.
    #[serde(default)]
    pub refund: bool,
}

/// Where the fields of a kind stand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldsSpec {
    pub fields: Vec<FieldSpec>,
    /// Lists of items, of which the first counts that is there.
    pub lists: Vec<ItemsSpec>,
}

/// A list of items: its levels from the event inwards, and the fields of the elements of the last.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemsSpec {
    pub levels: Vec<usize>,
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
    /// How each value is written.
    #[serde(default)]
    pub forms: Vec<FormSpec>,
}

/// How a value is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FormSpec {
    /// Of times.
    pub unit: Unit,
    /// Of times in no standard format: as `strptime` takes them.
    pub format: Option<String>,
    /// Of times that are numbers: the moment (epoch ms) that they count from; none: 1970.
    pub from_ms: Option<i64>,
    /// Of numbers: what they are multiplied by; of times to milliseconds.
    pub scale: Option<f64>,
    /// Of texts that are days: the value that is the time of day.
    pub time: Option<usize>,
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
    /// The name of the record or message that its schema gives.
    Schema,
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

/// What own sums read of events: numbers that they add up, and what they ask.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFields {
    pub amounts: Vec<FieldOf>,
    pub conditions: Vec<FieldCondition>,
    /// The conditions that feedback asks of the impression that it joins, a bit each.
    pub of_joined: u32,
}

/// A field of a kind of events, by our name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct FieldOf {
    pub kind: String,
    pub field: String,
}

/// A field and what its value has to be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldCondition {
    pub of: FieldOf,
    pub test: Test,
}

/// What a value has to be: one of these, or within all bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    Among {
        texts: Vec<String>,
        numbers: Vec<f64>,
    },
    Bounds(Vec<Bound>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    Above(f64),
    Below(f64),
    AtLeast(f64),
    AtMost(f64),
}
