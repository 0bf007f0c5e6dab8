//! What Python calls fields, logs, tables and errors.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::decode::Decoder;
use crate::decode::fields::{Field, Limit};
use crate::decode::rejected::Rejected;
use crate::kinds::EventKind;
use crate::panes::Overflow;
use crate::partition::Partition;
use crate::partition::tables::Table;

/// A number, and the name of the bound that it is to be multiplied by.
type NamedLimit = (f64, &'static str);
/// Name, kinds that have it, those whose elements of `items` have it, what it may hold: in a word,
/// between what, and in words; the reason of refusals; what it is.
type DeclaredField = (
    &'static str,
    Vec<&'static str>,
    Vec<&'static str>,
    &'static str,
    Option<(NamedLimit, NamedLimit)>,
    String,
    &'static str,
    &'static str,
);

/// What is declared of each field.
pub fn fields() -> Vec<DeclaredField> {
    let limit = |limit: Limit| (limit.times, limit.name);
    let declared = Field::ALL.iter().map(|field| field.declared());
    let rows = declared.map(|field| {
        let kinds = field.of.kinds().iter().copied();
        let in_items = kinds.clone().filter(|kind| field.of.is_of_element(*kind));
        let range = field.holds.range();
        (
            field.name,
            kinds.map(EventKind::name).collect(),
            in_items.map(EventKind::name).collect(),
            field.holds.name(),
            range.map(|(low, high)| (limit(low), limit(high))),
            field.holds.expected(),
            field.reason,
            field.about.trim(),
        )
    });
    rows.collect()
}

/// Log, offset, timestamp, reason, value, key, headers.
pub type RejectedRecord<'py> = (
    String,
    i64,
    i64,
    &'static str,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyBytes>,
);

/// Records that do not count since the last call, and how many more there were.
pub fn take_rejected<'py>(
    py: Python<'py>,
    partition: &mut Partition,
) -> (Vec<RejectedRecord<'py>>, u64) {
    let (rejected, omitted) = partition.rejected.take();
    let name_of = |record: &Rejected| partition.logs[record.log].name.as_str();
    let kept = rejected.iter().map(|x| handed_over(py, name_of(x), x));
    (kept.collect(), omitted)
}

/// A record of a log that does not count, as Python sees it.
pub fn handed_over<'py>(py: Python<'py>, log: &str, record: &Rejected) -> RejectedRecord<'py> {
    let bytes = |of: &Option<Box<[u8]>>| of.as_ref().map(|bytes| PyBytes::new(py, bytes));
    (
        log.to_owned(),
        record.offset,
        record.timestamp_ms,
        record.reason,
        bytes(&record.value),
        bytes(&record.key),
        PyBytes::new(py, &record.headers),
    )
}

pub fn overflow(_: Overflow) -> PyErr {
    PyOverflowError::new_err("a sum would pass 2**62")
}

/// The place of a log.
pub fn log_of(partition: &Partition, name: &str) -> PyResult<usize> {
    place_of(partition.logs.iter().map(|log| &log.name), name)
}

/// A decoder, and the names of the logs that it decodes, by source.
pub struct LogDecoder {
    pub decoder: Decoder,
    pub names: Vec<String>,
}

impl LogDecoder {
    /// The source of a log.
    pub fn source_of(&self, log: &str) -> PyResult<usize> {
        place_of(self.names.iter(), log)
    }
}

fn place_of<'a>(mut logs: impl Iterator<Item = &'a String>, name: &str) -> PyResult<usize> {
    logs.position(|log| log == name)
        .ok_or_else(|| PyValueError::new_err(format!("no log {name:?}")))
}

pub fn table_of(partition: &Partition, name: &str) -> PyResult<Table> {
    let found = partition.tables().find(|(known, _)| known == name);
    found
        .map(|(_, table)| table)
        .ok_or_else(|| PyValueError::new_err(format!("no table {name:?}")))
}
