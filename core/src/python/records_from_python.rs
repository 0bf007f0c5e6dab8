//! Records that Python gives one by one, and the schemas that they need.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::formats::{FormatReader, SchemaId, SchemaText};
use crate::kafka;

/// Keys and headers (as Kafka sends them, behind their number).
pub(super) type RecordMeta = Vec<(Option<PyBackedBytes>, PyBackedBytes)>;

/// Records of a log, in offset order; `beside` may be shorter than the others.
pub(super) struct GivenRecords {
    offsets: Vec<i64>,
    record_ms: Vec<i64>,
    values: Vec<Option<PyBackedBytes>>,
    beside: RecordMeta,
}

impl GivenRecords {
    /// An error of Python where an array is not contiguous.
    pub fn new(
        offsets: &PyReadonlyArray1<'_, i64>,
        record_ms: &PyReadonlyArray1<'_, i64>,
        values: Vec<Option<PyBackedBytes>>,
        beside: RecordMeta,
    ) -> PyResult<Self> {
        Ok(Self {
            offsets: offsets.as_slice()?.to_vec(),
            record_ms: record_ms.as_slice()?.to_vec(),
            values,
            beside,
        })
    }

    /// Those from an offset on.
    pub fn since(&self, next_offset: i64) -> impl Iterator<Item = kafka::Record<'_>> {
        let columns = self.offsets.iter().zip(&self.record_ms).zip(&self.values);
        let records = columns
            .enumerate()
            .map(|(at, ((&offset, &timestamp_ms), value))| {
                let beside = self.beside.get(at);
                kafka::Record {
                    offset,
                    timestamp_ms,
                    value: value.as_deref(),
                    key: beside.and_then(|(key, _)| key.as_deref()),
                    headers: beside.map_or(&[], |(_, headers)| headers),
                    is_last: false,
                }
            });
        records.filter(move |record| record.offset >= next_offset)
    }
}

/// Makes a schema of a format known, other threads going on meanwhile. ValueError: it cannot be
/// used.
pub fn make_known(
    py: Python<'_>,
    format: &mut FormatReader,
    id: SchemaId,
    schema: Option<SchemaText>,
) -> PyResult<()> {
    let set = py.detach(move || format.set(id, schema.as_ref()));
    set.map_err(PyValueError::new_err)
}
