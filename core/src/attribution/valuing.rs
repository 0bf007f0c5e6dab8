//! Custom values of pending feedback, kept apart from it and only where there are custom metrics of
//! feedback: they have its places.

use crate::custom::Values;
use crate::spec::records::CustomField;

/// Those of one partition.
#[derive(Debug)]
pub struct PendingValues {
    /// Places of the metrics of feedback.
    pub metrics: Vec<usize>,
    rows: Vec<Values>,
}

impl PendingValues {
    pub fn new(fields: &[CustomField]) -> Self {
        let metrics = fields.iter().enumerate();
        Self {
            metrics: metrics
                .filter(|(_, field)| field.is_of_feedback())
                .map(|(metric, _)| metric)
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Those of the feedback at a place.
    pub fn get(&self, place: u32) -> Option<&Values> {
        self.rows.get(place as usize)
    }

    /// New feedback is at a place.
    pub(super) fn set(&mut self, place: u32, values: Option<&Values>) {
        if self.metrics.is_empty() {
            return;
        }
        let at = place as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, Values::NONE);
        }
        self.rows[at] = values.copied().unwrap_or(Values::NONE);
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Values>()
    }
}
