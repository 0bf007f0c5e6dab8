//! Record batches and single records as commands and tests look at them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::names::LogDecoder;
use crate::decode::{Body, Decoded, Decoder, Event, Reason};
use crate::experiments::assignments::{self, ArmAssignment};
use crate::formats::SchemaText;
use crate::hash::HashKey;
use crate::json;
use crate::kafka;
use crate::kinds::{EventKind, FeedbackKind};
use crate::own_sums::MAX_AMOUNTS;
use crate::partition::events;
use crate::spec::records::RecordSettings;

pub type Read<'py> = (
    i64,
    Vec<(i64, i64, Option<Bound<'py, PyBytes>>)>,
    Vec<(i64, i64, &'static str)>,
);

/// The next offset, the records (offset, timestamp, value) and the skipped
/// ranges (first, end, reason) of a fetched blob; ValueError where it is of no format that is
/// read.
#[pyfunction]
#[pyo3(signature = (blob, next_offset, check_crcs, aborted, is_read_committed=true, max_inflated_bytes=kafka::MAX_INFLATED_BYTES))]
pub fn read_batches<'py>(
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
    let summary = kafka::read(blob, &options, &mut kafka::Scratch::default(), |some| {
        records.extend(some.iter().map(|record| {
            let value = record.value.map(|value| PyBytes::new(py, value));
            (record.offset, record.timestamp_ms, value)
        }));
    })
    .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let skipped = summary
        .skipped
        .iter()
        .map(|s| (s.first, s.end, s.reason.name()))
        .collect();
    Ok((summary.next_offset, records, skipped))
}

/// What decoding needs of a spec.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecodingSpec {
    hash_key: HashKey,
    dimensions: Vec<String>,
    feedback_kinds: Vec<String>,
    records: RecordSettings,
    /// The name of each source.
    logs: Vec<String>,
}

impl DecodingSpec {
    pub fn read(json: &[u8]) -> PyResult<Self> {
        serde_json::from_slice(json).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Bytes of a record, at most.
    pub fn max_record_bytes(&self) -> usize {
        self.records.limits.max_record_bytes
    }

    pub fn decoder(self) -> PyResult<LogDecoder> {
        let dimensions: Vec<&str> = self.dimensions.iter().map(String::as_str).collect();
        let kinds = &self.feedback_kinds;
        let decoder = Decoder::new(self.hash_key, &dimensions, kinds, &self.records);
        Ok(LogDecoder {
            decoder: decoder.map_err(PyValueError::new_err)?,
            names: self.logs,
        })
    }
}

/// For tests and tools: decodes records, one by one.
#[pyclass]
pub struct RecordDecoder {
    logs: LogDecoder,
    key: HashKey,
    /// (log, id) → the text of a schema with its references, or None.
    schema_of: Option<Py<PyAny>>,
}

/// Reason (None: it is an event), kind of the event, the text that says it; of each value that was
/// found our name of the field, the number of its form, its JSON, and epoch ms of a time; our name of
/// the field that the reason is about, number of the element of a list, and the value there.
type TracedEvent = (
    Option<&'static str>,
    Option<&'static str>,
    Option<String>,
    Vec<(String, usize, String, Option<i64>)>,
    (String, Option<u32>, Option<String>),
);

#[pymethods]
impl RecordDecoder {
    /// `schema_of`: called with a log and the id of a schema that is met for the first time; gives
    /// what `Core.set_schema` takes.
    #[new]
    #[pyo3(signature = (spec_json, schema_of=None))]
    fn new(spec_json: &[u8], schema_of: Option<Py<PyAny>>) -> PyResult<Self> {
        let spec = DecodingSpec::read(spec_json)?;
        let key = spec.hash_key;
        let logs = spec.decoder()?;
        Ok(Self {
            logs,
            key,
            schema_of,
        })
    }

    /// The values of the events of a log in a record, and the reasons why others are none. Ids are
    /// hashes.
    #[pyo3(signature = (log, value, key=None, headers=None, timestamp_ms=0))]
    fn decode_all<'py>(
        &mut self,
        py: Python<'py>,
        log: &str,
        value: Option<&[u8]>,
        key: Option<&[u8]>,
        headers: Option<&[u8]>,
        timestamp_ms: i64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let source = self.ready(py, log, value)?;
        let record = record_of(value, key, headers, timestamp_ms);
        let decoded = self.logs.decoder.decode_all(source, &[record]);
        decoded.iter().map(|(_, event)| said(py, event)).collect()
    }

    /// How each event of a record was read: see `Decoder::trace`.
    #[pyo3(signature = (log, value, key=None, headers=None, timestamp_ms=0))]
    fn trace(
        &mut self,
        py: Python<'_>,
        log: &str,
        value: Option<&[u8]>,
        key: Option<&[u8]>,
        headers: Option<&[u8]>,
        timestamp_ms: i64,
    ) -> PyResult<Vec<TracedEvent>> {
        let source = self.ready(py, log, value)?;
        let record = record_of(value, key, headers, timestamp_ms);
        let traced = self.logs.decoder.trace(source, &record);
        let decoder = &self.logs.decoder;
        let events = traced.into_iter().map(|event| {
            let values = event.values.into_iter();
            let values = values.map(|x| (decoder.name_of(x.field), x.form, x.json, x.ms));
            let (reason, kind) = (event.reason.map(Reason::name), event.kind);
            let field = event
                .field
                .map_or_else(String::new, |field| decoder.name_of(field));
            (
                reason,
                kind.map(EventKind::name),
                event.kind_text,
                values.collect(),
                (field, event.element, event.found),
            )
        });
        Ok(events.collect())
    }

    /// The text of a record, whatever its format, with what its texts hold in their place; None where
    /// it has none.
    fn text<'py>(
        &mut self,
        py: Python<'py>,
        log: &str,
        value: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let source = self.ready(py, log, Some(value))?;
        let found = self.logs.decoder.text(source, value);
        Ok(found.map(|text| PyBytes::new(py, &text)))
    }

    /// A record once for each event that it holds: see `Decoder::split`.
    fn split<'py>(
        &self,
        py: Python<'py>,
        log: &str,
        value: &[u8],
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let source = self.logs.source_of(log)?;
        let alone = self.logs.decoder.split(source, value);
        Ok(alone
            .iter()
            .map(|text| PyBytes::new(py, text.as_bytes()))
            .collect())
    }

    /// What a record is keyed by: see `Decoder::key`.
    #[pyo3(signature = (log, value, timestamp_ms=0))]
    fn key<'py>(
        &mut self,
        py: Python<'py>,
        log: &str,
        value: &[u8],
        timestamp_ms: i64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let source = self.ready(py, log, Some(value))?;
        let record = record_of(Some(value), None, None, timestamp_ms);
        let key = self.logs.decoder.key(source, &record);
        Ok((!key.is_empty()).then(|| PyBytes::new(py, key.as_bytes())))
    }

    /// The hash of an id.
    fn hash(&self, text: &str) -> u64 {
        self.key.of(text.as_bytes())
    }
}

impl RecordDecoder {
    /// The source of a log, once the schema of a value is known or refused.
    fn ready(&mut self, py: Python<'_>, log: &str, value: Option<&[u8]>) -> PyResult<usize> {
        let source = self.logs.source_of(log)?;
        let format = self.logs.decoder.format(source);
        if let Some(id) = format.unknown(&record_of(value, None, None, 0)) {
            let schema_of = self.schema_of.as_ref();
            let found = schema_of.map(|schema_of| schema_of.call1(py, (log, id)));
            let found = found.transpose()?;
            let schema: Option<SchemaText> = found.map_or(Ok(None), |found| found.extract(py))?;
            _ = format.set(id, schema.as_ref()); // what cannot be used is rejected
        }
        Ok(source)
    }
}

fn record_of<'a>(
    value: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    headers: Option<&'a [u8]>,
    timestamp_ms: i64,
) -> kafka::Record<'a> {
    kafka::Record {
        timestamp_ms,
        value,
        key,
        headers: headers.unwrap_or_default(),
        ..kafka::Record::default()
    }
}

/// The number of a kind of feedback in the settings; -1: none of them.
fn feedback_code(kind: FeedbackKind) -> i16 {
    match kind {
        FeedbackKind::Configured(i) => i16::from(i),
        FeedbackKind::Other
        | FeedbackKind::Gone
        | FeedbackKind::Conversion
        | FeedbackKind::ConversionLine => -1,
    }
}

/// The values of an event, or the name of the reason why it is none.
fn said<'py>(py: Python<'py>, event: &Decoded) -> PyResult<Bound<'py, PyAny>> {
    match event {
        Ok(event) => Ok(as_dict(py, event)?.into_any()),
        Err(reason) => Ok(reason.name().into_pyobject(py)?.into_any()),
    }
}

fn as_dict<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("kind", event.kind().name())?;
    found.set_item("event_ms", event.event_ms)?;
    found.set_item("user", event.user)?;
    found.set_item("user_id", event.user_id)?;
    found.set_item("event_id", event.event_id)?;
    found.set_item("dedup_id", event.dedup_id())?;
    found.set_item("request", event.request)?;
    let said = event.values.iter().map(|said| {
        let amounts = (0..MAX_AMOUNTS).filter_map(|at| Some((at, said.amount(Some(at))?)));
        (said.met, amounts.collect::<Vec<_>>())
    });
    found.set_item("values", said.collect::<Vec<_>>())?;
    found.set_item("dimensions", event.dimensions.iter().collect::<Vec<_>>())?;
    let arms = event.arms.iter().map(|(path, _, json)| (path, json));
    found.set_item("arms", arms.collect::<Vec<_>>())?;
    found.set_item("cut", event.cut)?;
    found.set_item("join", event.join)?;
    found.set_item("key", event.key())?;
    found.set_item("is_shared", event.shared.is_some())?;
    match event.body {
        Body::Impressions {
            items,
            is_list,
            weights,
            reference,
            held_out,
        } => {
            let weights = weights.iter().map(|item| item.map(|x| x.weight.code()));
            found.set_item("weights", weights.collect::<Vec<_>>())?;
            let named = items.iter().map(|i| i.impression);
            found.set_item("impressions", named.collect::<Vec<_>>())?;
            let items = items.iter().map(|i| (i.item, i.position, i.score));
            found.set_item("items", items.collect::<Vec<_>>())?;
            found.set_item("is_list", is_list)?;
            found.set_item("reference", reference)?;
            found.set_item("held_out", held_out)?;
        }
        Body::Click { lines, kind } => {
            let dwell_ms = lines.first().and_then(|line| line.amounts.dwell_ms);
            let ratings = lines.iter().map(|line| line.amounts.rating());
            found.set_item("ratings", ratings.collect::<Vec<_>>())?;
            let named = lines.iter().map(|line| line.impression);
            found.set_item("impressions", named.collect::<Vec<_>>())?;
            let lines = lines.iter().map(|line| (line.item, line.position));
            found.set_item("lines", lines.collect::<Vec<_>>())?;
            found.set_item("feedback", feedback_code(kind))?;
            found.set_item("dwell_ms", dwell_ms)?;
        }
        Body::Conversion { lines, .. } => {
            let named = lines.iter().map(|line| line.impression);
            found.set_item("impressions", named.collect::<Vec<_>>())?;
            let lines = lines
                .iter()
                .map(|line| (line.item, line.amounts.value_micros));
            found.set_item("lines", lines.collect::<Vec<_>>())?;
        }
        Body::Session {
            session,
            action,
            item,
            dwell_ms,
        } => {
            found.set_item("session", session)?;
            found.set_item("action", action as u8)?;
            found.set_item("item", item)?;
            found.set_item("dwell_ms", dwell_ms)?;
        }
        Body::Exposure { experiment, arm } => {
            found.set_item("experiment", experiment)?;
            found.set_item("arm", arm)?;
        }
    }
    Ok(found)
}

/// Deepest nesting of brackets outside of texts.
#[pyfunction]
pub fn depth(record: &[u8]) -> usize {
    json::depth(record)
}

/// The partition of a key by Kafka's default partitioner; 0 without a key.
#[pyfunction]
pub fn partition_of(key: Option<&[u8]>, partitions: u32) -> u32 {
    key.map_or(0, |key| kafka::partition_of(key, partitions))
}

/// The hash of an id under a key.
#[pyfunction]
pub fn hash_of(key: (u64, u64), id: &str) -> u64 {
    HashKey(key.0, key.1).of(id.as_bytes())
}

/// The hashes of the persons that an id with this hash can be.
#[pyfunction]
pub fn people_of(id: u64) -> [u64; 2] {
    events::people_of(id)
}

/// What a value says of arms, as JSON: experiments by their keys (None: the one that it is of) and
/// their arms.
#[pyfunction]
pub fn arms_said(json: &str) -> Vec<(Option<String>, String)> {
    let mut found = Vec::new();
    assignments::each(json, |said| {
        found.push(match said {
            ArmAssignment::Arm(arm) => (None, arm.to_owned()),
            ArmAssignment::Assignment(key, arm) => (Some(key.to_owned()), arm.to_owned()),
        });
    });
    found
}
