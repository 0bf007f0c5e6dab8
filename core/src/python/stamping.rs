//! Lines of a file as commands read them: log and record timestamp of each.

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::Array;
use super::records::DecodingSpec;
use crate::lines::{self, LogRule, Stamping};

/// Stamps the lines of one file, in their order.
#[pyclass]
pub struct LineStamper {
    stamping: Stamping,
}

#[pymethods]
impl LineStamper {
    /// `spec_json`: as of `RecordDecoder`. All lines are of `log` where there is one; else `types`
    /// are the field that says it, and what it says of the log of each number; else the first log is
    /// taken of which a line is an event. ValueError where it asks for what there is not.
    #[new]
    #[pyo3(signature = (spec_json, types=None, log=None))]
    fn new(
        spec_json: &[u8],
        types: Option<(String, Vec<(String, usize)>)>,
        log: Option<&str>,
    ) -> PyResult<Self> {
        let spec = DecodingSpec::read(spec_json)?;
        let max_bytes = spec.max_record_bytes();
        let logs = spec.decoder()?;
        let count = logs.names.len();
        let rule = match (log, types) {
            (Some(log), _) => LogRule::One(logs.source_of(log)?),
            (None, None) => LogRule::FirstThatReads { logs: count },
            (None, Some((_, logs))) if logs.iter().any(|(_, log)| *log >= count) => {
                return Err(PyValueError::new_err("a type of no log"));
            }
            (None, Some((field, logs))) => LogRule::ByType { field, logs },
        };
        Ok(Self {
            stamping: Stamping::new(rule, logs.decoder, max_bytes),
        })
    }

    /// Of each of the next lines the number of its log (-1: none), its record timestamp, and the time
    /// of its latest event (epoch ms; -1: none). `now_ms`: beyond it no event moves the clock;
    /// `begin_ms`: where the clock is at least.
    #[pyo3(signature = (lines, now_ms, begin_ms=0))]
    fn stamp<'py>(
        &mut self,
        py: Python<'py>,
        lines: Vec<PyBackedBytes>,
        now_ms: i64,
        begin_ms: i64,
    ) -> (Array<'py, i16>, Array<'py, i64>, Array<'py, i64>) {
        let stamping = &mut self.stamping;
        stamping.running_ms = stamping.running_ms.max(begin_ms);
        let (mut logs, mut record_ms, mut event_ms) = (Vec::new(), Vec::new(), Vec::new());
        py.detach(|| {
            for line in &lines {
                let (log, ms) = stamping.next(line, now_ms);
                logs.push(log.map_or(-1, |log| i16::try_from(log).unwrap_or(i16::MAX)));
                record_ms.push(stamping.running_ms);
                event_ms.push(ms.unwrap_or(-1));
            }
        });
        let [record_ms, event_ms] = [record_ms, event_ms].map(|ms| ms.into_pyarray(py));
        (logs.into_pyarray(py), record_ms, event_ms)
    }

    /// Lines of one event each, of records that may hold several.
    fn split<'py>(
        &mut self,
        py: Python<'py>,
        lines: Vec<PyBackedBytes>,
    ) -> Vec<Bound<'py, PyBytes>> {
        let stamping = &mut self.stamping;
        let alone: Vec<Vec<String>> =
            py.detach(|| lines.iter().map(|x| stamping.split(x)).collect());
        let made = lines
            .iter()
            .zip(&alone)
            .flat_map(|(line, events)| match events.as_slice() {
                [] | [_] => vec![PyBytes::new(py, line)],
                events => events
                    .iter()
                    .map(|x| PyBytes::new(py, x.as_bytes()))
                    .collect(),
            });
        made.collect()
    }
}

/// Why a line belongs to no log.
#[pyfunction]
pub fn reason_of_no_topic(line: &[u8], max_record_bytes: usize) -> &'static str {
    lines::reason_of_no_topic(line, max_record_bytes)
}
