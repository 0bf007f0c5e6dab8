//! What Python says of records: the names of their fields, and their bounds.

use std::collections::HashMap;

use serde::Deserialize;

use crate::custom::CustomField;
use crate::weights::Policies;

/// A part of the spec.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSettings {
    /// Kind of event → our name of a field or dimension → theirs; a name that is missing is ours.
    pub fields: HashMap<String, HashMap<String, String>>,
    pub limits: RecordLimits,
    /// Of which policies events say something.
    pub policies: Policies,
    /// What custom metrics read.
    #[serde(default)]
    pub custom: Vec<CustomField>,
}

impl RecordSettings {
    /// Their name of a field.
    pub fn name_of<'a>(&'a self, kind: &str, ours: &'a str) -> &'a str {
        self.fields
            .get(kind)
            .and_then(|names| names.get(ours))
            .map_or(ours, String::as_str)
    }
}

/// Bounds of one record, all inclusive.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordLimits {
    pub max_bytes: usize,
    /// Nested lists and objects; a bare object is 1.
    pub max_depth: usize,
    pub max_event_ms: i64,
    /// Integers from here to `max_seconds` are no times: they look like epoch seconds.
    pub min_seconds: i64,
    pub max_seconds: i64,
    pub max_id_chars: usize,
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
