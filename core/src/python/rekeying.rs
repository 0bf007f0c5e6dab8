//! Rewriting records of other shapes for the four topics, keyed by user. Work is done with the
//! interpreter released.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::names::{LogDecoder, RejectedRecord, handed_over};
use super::records::DecodingSpec;
use super::records_from_python::{GivenRecords, RecordMeta, make_known};
use crate::decode::Reason;
use crate::decode::rejected::Rejected;
use crate::formats::{SchemaId, SchemaText, UnknownSchemas};
use crate::kafka;

/// Timestamp, key, value.
type Written<'py> = (i64, Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);
/// By kind of events and partition what is to be written; what is rejected; how many are ignored;
/// offset and timestamp of the first record after the time, or whose schema is not known; the ids of
/// that schema and of others that are not; skipped ranges.
type Rekeyed<'py> = (
    Vec<(usize, usize, Vec<Written<'py>>)>,
    Vec<RejectedRecord<'py>>,
    u64,
    Option<(i64, i64)>,
    Vec<SchemaId>,
    Vec<(i64, i64, &'static str)>,
);

/// Rewrites records of mapped logs.
#[pyclass]
pub struct Rekeyer {
    logs: LogDecoder,
    partitions: u32,
    max_inflated_bytes: usize,
    scratch: kafka::Scratch,
}

/// Where records come from, and the newest time (epoch ms) of those that are wanted.
struct RecordSource<'a> {
    source: usize,
    topic: &'a str,
    partition: i32,
    until_ms: i64,
}

/// What became of some records.
#[derive(Default)]
struct Found {
    /// By kind and partition: timestamp, key ("": none), value.
    written: Vec<Vec<(i64, String, String)>>,
    rejected: Vec<Rejected>,
    ignored: u64,
    rest: Option<(i64, i64)>,
    unknown: UnknownSchemas,
    skipped: Vec<(i64, i64, &'static str)>,
}

#[pymethods]
impl Rekeyer {
    /// `spec_json`: as of `RecordDecoder`; `partitions`: of each topic that is written;
    /// `max_inflated_bytes`: what one record batch may inflate to. ValueError where it asks for what
    /// there is not.
    #[new]
    fn new(spec_json: &[u8], partitions: u32, max_inflated_bytes: usize) -> PyResult<Self> {
        Ok(Self {
            logs: DecodingSpec::read(spec_json)?.decoder()?,
            partitions: partitions.max(1),
            max_inflated_bytes,
            scratch: kafka::Scratch::default(),
        })
    }

    /// Makes a schema of a log known: see `Core.set_schema`.
    fn set_schema(
        &mut self,
        py: Python<'_>,
        log: &str,
        id: SchemaId,
        schema: Option<SchemaText>,
    ) -> PyResult<()> {
        let source = self.logs.source_of(log)?;
        make_known(py, self.logs.decoder.format(source), id, schema)
    }

    /// Rewrites records of a log, up to the first that is newer than `until_ms`; `beside`: their keys
    /// and headers (as Kafka sends them, behind their number).
    #[allow(clippy::too_many_arguments)]
    fn records<'py>(
        &mut self,
        py: Python<'py>,
        log: &str,
        place: (String, i32),
        offsets: PyReadonlyArray1<'_, i64>,
        record_ms: PyReadonlyArray1<'_, i64>,
        values: Vec<Option<PyBackedBytes>>,
        beside: RecordMeta,
        next_offset: i64,
        until_ms: i64,
    ) -> PyResult<Rekeyed<'py>> {
        let from = self.wanted(log, &place, until_ms)?;
        let records = GivenRecords::new(&offsets, &record_ms, values, beside)?;
        let found = py.detach(|| {
            let mut found = Found::default();
            for record in records.since(next_offset) {
                self.take(&from, &record, &mut found);
            }
            found
        });
        Ok(self.answer(py, found))
    }

    /// Rewrites record batches as Kafka sent them, from an offset on, up to the first record that is
    /// newer than `until_ms`. ValueError where the format is not read.
    #[allow(clippy::too_many_arguments)]
    fn batches<'py>(
        &mut self,
        py: Python<'py>,
        log: &str,
        place: (String, i32),
        blob: PyBackedBytes,
        aborted: Vec<(i64, i64)>,
        next_offset: i64,
        until_ms: i64,
    ) -> PyResult<Rekeyed<'py>> {
        let from = self.wanted(log, &place, until_ms)?;
        let options = kafka::ReadOptions {
            next_offset,
            check_crcs: true,
            is_read_committed: true,
            aborted: &aborted,
            max_inflated_bytes: self.max_inflated_bytes,
        };
        let found = py.detach(|| {
            let (mut found, mut scratch) = (Found::default(), std::mem::take(&mut self.scratch));
            let read = kafka::read(&blob, &options, &mut scratch, |records| {
                for record in records {
                    self.take(&from, record, &mut found);
                }
            });
            scratch.trim();
            self.scratch = scratch;
            let mut skipped = read?.skipped;
            skipped.retain(|s| s.first < s.end);
            if let Some((offset, _)) = found.rest {
                skipped.retain(|s| s.first < offset);
            }
            let skipped = skipped.into_iter();
            found.skipped = skipped.map(|s| (s.first, s.end, s.reason.name())).collect();
            Ok(found)
        });
        let found =
            found.map_err(|error: kafka::ReadError| PyValueError::new_err(error.to_string()));
        Ok(self.answer(py, found?))
    }
}

impl Rekeyer {
    fn wanted<'a>(
        &self,
        log: &str,
        (topic, partition): &'a (String, i32),
        until_ms: i64,
    ) -> PyResult<RecordSource<'a>> {
        Ok(RecordSource {
            source: self.logs.source_of(log)?,
            topic,
            partition: *partition,
            until_ms,
        })
    }

    fn take(&mut self, from: &RecordSource, record: &kafka::Record, found: &mut Found) {
        let format = self.logs.decoder.format(from.source);
        if found.rest.is_some() {
            if !found.unknown.ids.is_empty() {
                found.unknown.note(format, record);
            }
            return;
        }
        if record.timestamp_ms > from.until_ms {
            found.rest = Some((record.offset, record.timestamp_ms));
            return;
        }
        if found.unknown.note(format, record) {
            found.rest = Some((record.offset, record.timestamp_ms));
            return;
        }
        let id = format!("{}/{}/{}", from.topic, from.partition, record.offset);
        let (events, reasons) = self.logs.decoder.rewrite(from.source, record, &id);
        for event in events {
            let partition = match event.key.as_str() {
                "" => (record.offset.unsigned_abs() % u64::from(self.partitions)) as u32,
                key => kafka::partition_of(key.as_bytes(), self.partitions),
            };
            let at = event.kind as usize * self.partitions as usize + partition as usize;
            if found.written.len() <= at {
                found.written.resize_with(at + 1, Vec::new);
            }
            found.written[at].push((record.timestamp_ms, event.key, event.json));
        }
        let ignored = reasons.iter().filter(|x| **x == Reason::Ignored).count();
        found.ignored += ignored as u64;
        if let Some(reason) = reasons.iter().find(|x| **x != Reason::Ignored) {
            let rejected = Rejected::of(from.source, record, reason.name());
            found.rejected.push(rejected);
        }
    }

    fn answer<'py>(&self, py: Python<'py>, found: Found) -> Rekeyed<'py> {
        let bytes = |text: &str| PyBytes::new(py, text.as_bytes());
        let written = found.written.iter().enumerate();
        let written = written
            .filter(|(_, some)| !some.is_empty())
            .map(|(at, some)| {
                let some = some.iter().map(|(ms, key, json)| {
                    let key = (!key.is_empty()).then(|| bytes(key));
                    (*ms, key, bytes(json))
                });
                let partitions = self.partitions as usize;
                (at / partitions, at % partitions, some.collect())
            });
        let names = &self.logs.names;
        let rejected = found
            .rejected
            .iter()
            .map(|x| handed_over(py, &names[x.log], x));
        (
            written.collect(),
            rejected.collect(),
            found.ignored,
            found.rest,
            found.unknown.ids,
            found.skipped,
        )
    }
}
