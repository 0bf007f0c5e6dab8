//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing else here knows Python.

pub mod changes;
pub mod hash;
pub mod kafka;
pub mod spec;

#[pyo3::pymodule]
mod _core {
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    use crate::kafka;

    type Read<'py> = (
        i64,
        Vec<(i64, i64, Option<Bound<'py, PyBytes>>)>,
        Vec<(i64, i64, &'static str)>,
    );

    /// For tests and tools: the next offset, the records (offset, timestamp, value) and the skipped
    /// ranges (first, end, reason) of a fetched blob; ValueError where it is of no format that is
    /// read.
    #[pyfunction]
    #[pyo3(signature = (blob, next_offset, check_crcs, aborted, is_read_committed=true, max_inflated_bytes=kafka::MAX_INFLATED_BYTES))]
    fn read_batches<'py>(
        py: Python<'py>,
        blob: &[u8],
        next_offset: i64,
        check_crcs: bool,
        aborted: Vec<(i64, i64)>,
        is_read_committed: bool,
        max_inflated_bytes: usize,
    ) -> PyResult<Read<'py>> {
        let options = kafka::ReadOptions {
            next_offset,
            check_crcs,
            is_read_committed,
            aborted: &aborted,
            max_inflated_bytes,
        };
        let mut records = Vec::new();
        let summary = kafka::read(blob, &options, &mut kafka::Scratch::default(), |record| {
            let value = record.value.map(|value| PyBytes::new(py, value));
            records.push((record.offset, record.timestamp_ms, value));
        })
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let skipped = summary
            .skipped
            .iter()
            .map(|s| (s.first, s.end, s.reason.name()))
            .collect();
        Ok((summary.next_offset, records, skipped))
    }
}
