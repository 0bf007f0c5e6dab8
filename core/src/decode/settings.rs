//! What Python says of records: where their fields stand, and their bounds.

use std::collections::HashMap;

use serde::Deserialize;

use crate::custom::CustomField;
use crate::decode::mapping::MappingSpec;
use crate::formats::Format;
use crate::weights::Policies;

/// A part of the spec.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSettings {
    pub sources: Vec<SourceSpec>,
    pub limits: RecordLimits,
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
    pub max_bytes: usize,
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
    pub max_position: u32,
    /// Elements of `items` and of `reference`.
    pub max_items: usize,
    /// Magnitude of a score.
    pub max_score: f64,
    /// In currency units.
    pub max_value: f64,
    pub max_dwell_ms: i64,
    /// Magnitude of a field of custom metrics.
    pub max_custom: f64,
}
