//! The class that Python sees: one partition number. Work is done with the interpreter released.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};

use crate::columns::{Columns, Values};
use crate::decode::Topic;
use crate::kafka;
use crate::panes::{self, Overflow};
use crate::partition::Partition;
use crate::snapshot::Table;
use crate::spec::Spec;

/// A range of lost offsets and why.
type Skipped = (i64, i64, &'static str);
type Array<'py, T> = Bound<'py, PyArray1<T>>;

/// The counted state of one partition number, over all four topics. One thread at a time may use it.
#[pyclass]
pub struct Core {
    partition: Partition,
    scratch: kafka::Scratch,
}

fn overflow(_: Overflow) -> PyErr {
    PyOverflowError::new_err("a sum would pass 2**62")
}

fn topic_of(name: &str) -> PyResult<Topic> {
    Topic::of(name).ok_or_else(|| PyValueError::new_err(format!("no topic {name:?}")))
}

fn topics_of(names: &[String]) -> PyResult<Vec<Topic>> {
    names.iter().map(|name| topic_of(name)).collect()
}

fn table_of(name: &str) -> PyResult<Table> {
    Table::of(name).ok_or_else(|| PyValueError::new_err(format!("no table {name:?}")))
}

#[pymethods]
impl Core {
    /// An empty partition. `spec`: JSON of settings and statistics; ValueError where it asks for
    /// what there is not.
    #[new]
    fn new(spec: &[u8]) -> PyResult<Self> {
        let spec: Spec = serde_json::from_slice(spec)
            .map_err(|error| PyValueError::new_err(format!("spec of the core: {error}")))?;
        let partition = Partition::new(&spec).map_err(PyValueError::new_err)?;
        Ok(Self {
            partition,
            scratch: kafka::Scratch::default(),
        })
    }

    // Feeding

    /// Takes in records of a topic, in offset order. OverflowError where a sum would pass 2**62.
    fn feed_records(
        &mut self,
        py: Python<'_>,
        kind: &str,
        offsets: PyReadonlyArray1<'_, i64>,
        record_ms: PyReadonlyArray1<'_, i64>,
        values: Vec<Option<PyBackedBytes>>,
    ) -> PyResult<()> {
        let topic = topic_of(kind)?;
        let offsets = offsets.as_slice()?.to_vec();
        let record_ms = record_ms.as_slice()?.to_vec();
        let partition = &mut self.partition;
        py.detach(move || {
            let records = offsets.iter().zip(&record_ms).zip(&values);
            for ((offset, at_ms), value) in records {
                partition.feed(topic, *offset, *at_ms, value.as_deref())?;
            }
            Ok(())
        })
        .map_err(overflow)
    }

    /// Takes in record batches as Kafka sent them, from the topic's next offset on. Returns the
    /// number of records, and ranges of lost offsets (first, end, reason). ValueError where the
    /// format is not read.
    #[pyo3(signature = (kind, blob, aborted, check_crcs=true))]
    fn feed_batches(
        &mut self,
        py: Python<'_>,
        kind: &str,
        blob: PyBackedBytes,
        aborted: Vec<(i64, i64)>,
        check_crcs: bool,
    ) -> PyResult<(u64, Vec<Skipped>)> {
        let topic = topic_of(kind)?;
        let (partition, scratch) = (&mut self.partition, &mut self.scratch);
        let found = py.detach(move || {
            let options = kafka::ReadOptions {
                next_offset: partition.logs[topic as usize].next_offset,
                check_crcs,
                is_read_committed: true,
                aborted: &aborted,
                max_inflated_bytes: kafka::MAX_INFLATED_BYTES,
            };
            let mut fed = Ok(());
            let read = kafka::read(&blob, &options, scratch, |record| {
                if fed.is_ok() {
                    fed = partition.feed(topic, record.offset, record.timestamp_ms, record.value);
                }
            });
            fed.map_err(overflow)?;
            read.map_err(|error| PyValueError::new_err(error.to_string()))
        })?;
        let log = &mut self.partition.logs[topic as usize];
        log.next_offset = log.next_offset.max(found.next_offset);
        let skipped = found
            .skipped
            .iter()
            .map(|s| (s.first, s.end, s.reason.name()))
            .collect();
        Ok((found.records, skipped))
    }

    /// What was fed is taken in; `at_end`: topics of which everything was read.
    fn end_apply(&mut self, py: Python<'_>, at_end: Vec<String>) -> PyResult<()> {
        let topics = topics_of(&at_end)?;
        let partition = &mut self.partition;
        py.detach(move || partition.end_apply(&topics))
            .map_err(overflow)
    }

    /// Brings the sums over users up to date.
    fn refresh_user_sums(&mut self, py: Python<'_>) -> PyResult<()> {
        let partition = &mut self.partition;
        py.detach(move || partition.refresh_user_sums())
            .map_err(overflow)
    }

    /// Whether something changed that the sums over users do not show yet.
    #[getter]
    fn is_dirty(&self) -> bool {
        self.partition.counting.is_dirty()
    }

    /// Records that do not count since the last call: kind, offset, reason.
    fn take_rejected(&mut self) -> Vec<(&'static str, i64, &'static str)> {
        let rejected = std::mem::take(&mut self.partition.rejected);
        rejected
            .iter()
            .map(|x| (x.topic.name(), x.offset, x.reason))
            .collect()
    }

    // What is counted

    #[getter]
    fn stream_ms(&self) -> i64 {
        self.partition.stream_ms
    }

    /// Next offset, arrival clock and clock of joins of a topic.
    fn topic(&self, kind: &str) -> PyResult<(i64, i64, i64)> {
        let log = &self.partition.logs[topic_of(kind)? as usize];
        Ok((log.next_offset, log.arrival_ms, log.clock_ms()))
    }

    /// Whether all sums over users are to be computed anew, at once.
    #[getter]
    fn is_stale(&self) -> bool {
        self.partition.counting.is_stale()
    }

    /// Stream time at which the sums over users were last up to date.
    #[getter]
    fn refreshed_ms(&self) -> i64 {
        let users = self.partition.counting.users.as_ref();
        users.map_or(0, |users| users.refreshed_ms())
    }

    /// The slowest clock of the topics that joins depend on.
    #[getter]
    fn join_clock_ms(&self) -> i64 {
        self.partition.join_clock_ms()
    }

    /// Everything that is counted besides tables and panes, by name.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let attribution = &self.partition.attribution;
        let found = PyDict::new(py);
        found.set_item("stream_ms", self.partition.stream_ms)?;
        let topics = PyDict::new(py);
        for topic in Topic::ALL {
            topics.set_item(topic.name(), self.of_topic(py, topic)?)?;
        }
        found.set_item("topics", topics)?;
        let [clicks, conversions] = attribution.unattributed;
        found.set_item(
            "unattributed",
            dict(py, &[("clicks", clicks), ("conversions", conversions)])?,
        )?;
        found.set_item("unsettled", self.unsettled(py)?)?;
        found.set_item("settled_moved", attribution.settled_moved)?;
        found.set_item("evicted_early", self.evicted_early(py)?)?;
        found.set_item(
            "segments_overflowed",
            self.partition.counting.dimensions.overflowed,
        )?;
        let users = self.partition.counting.users.as_ref();
        found.set_item("sample_bits", users.map_or(0, |x| x.sample_bits()))?;
        found.set_item("dropped_user_rows", users.map_or(0, |x| x.dropped_rows()))?;
        let experiments = &self.partition.counting.experiments;
        found.set_item("exposures_final_ms", experiments.final_ms())?;
        found.set_item("day_sample_bits", experiments.sample_bits())?;
        found.set_item("dropped_day_rows", experiments.dropped_rows())?;
        found.set_item("users_refreshed_ms", users.map_or(0, |x| x.refreshed_ms()))?;
        Ok(found)
    }

    /// Sets what `counters` and `dimensions` gave, before tables are loaded.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let partition = &mut self.partition;
        partition.stream_ms = item(state, "stream_ms")?;
        partition.attribution.stream_ms = partition.stream_ms;
        let topics: BTreeMap<String, Bound<'_, PyDict>> = item(state, "topics")?;
        for (name, stored) in &topics {
            let log = &mut partition.logs[topic_of(name)? as usize];
            log.next_offset = item(stored, "next_offset")?;
            log.arrival_ms = item(stored, "arrival_ms")?;
            log.idle_ms = item(stored, "idle_ms")?;
            log.accepted = item(stored, "accepted")?;
            log.duplicates = item(stored, "duplicates")?;
            log.late = item(stored, "late")?;
            log.join_gap = item(stored, "join_gap")?;
            log.ids.evicted_early = item(stored, "evicted_early")?;
            let rejected: BTreeMap<String, u64> = item(stored, "rejected")?;
            for (reason, count) in rejected {
                log.restore_rejected(&reason, count);
            }
        }
        let unattributed: BTreeMap<String, u64> = item(state, "unattributed")?;
        for (at, topic) in ["clicks", "conversions"].into_iter().enumerate() {
            partition.attribution.unattributed[at] = unattributed.get(topic).copied().unwrap_or(0);
        }
        partition.attribution.settled_moved = item(state, "settled_moved")?;
        let early: BTreeMap<String, u64> = item(state, "evicted_early")?;
        let of = |name: &str| early.get(name).copied().unwrap_or(0);
        partition.attribution.evicted_early.impressions = of("impressions");
        partition.attribution.evicted_early.retained = of("retained");
        partition.attribution.evicted_early.feedback = of("feedback");
        partition.sessions.rows.evicted_early = of("sessions");
        partition.counting.viewings.rows.evicted_early = of("viewings");
        partition.counting.dimensions.overflowed = item(state, "segments_overflowed")?;
        if let Some(users) = &mut partition.counting.users {
            users.set_sample_bits(item(state, "sample_bits")?);
        }
        Ok(())
    }

    /// Goes on at another offset of a topic's log.
    fn seek(&mut self, kind: &str, next_offset: i64) -> PyResult<()> {
        self.partition.logs[topic_of(kind)? as usize].next_offset = next_offset;
        Ok(())
    }

    /// Values of each dimension (texts, events, kept), and codes of each segment.
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dimensions = &self.partition.counting.dimensions;
        let values = PyList::empty(py);
        for of_one in &dimensions.values {
            let entry = PyDict::new(py);
            entry.set_item("texts", &of_one.texts)?;
            entry.set_item("events", &of_one.events)?;
            entry.set_item("kept", of_one.kept())?;
            entry.set_item("unnamed", of_one.unnamed())?;
            values.append(entry)?;
        }
        let found = PyDict::new(py);
        found.set_item("values", values)?;
        let width = dimensions.values.len().max(1);
        let tuples: Vec<Vec<u32>> = dimensions
            .all_codes()
            .chunks(width)
            .map(<[u32]>::to_vec)
            .collect();
        let none = vec![Vec::new(); dimensions.len()];
        let is_none = dimensions.values.is_empty();
        found.set_item("tuples", if is_none { none } else { tuples })?;
        Ok(found)
    }

    /// Takes over what `dimensions` gave: (texts, events, kept) of each dimension, codes of segments.
    fn restore_dimensions(
        &mut self,
        values: Vec<(Vec<String>, Vec<u64>, Vec<String>)>,
        tuples: Vec<Vec<u32>>,
    ) {
        self.partition.counting.dimensions.load(values, &tuples);
    }

    // Panes: those of windows and totals, or of an alert series by its place

    /// The panes (ring << 32 | pane) that changed since the last call.
    fn take_changed_panes(&mut self, series: Option<usize>) -> PyResult<Vec<u64>> {
        Ok(self.panes_mut(series)?.take_changed())
    }

    fn live_panes(&self, series: Option<usize>) -> PyResult<Vec<u64>> {
        Ok(self.panes(series)?.live())
    }

    /// Sums of panes that are not 0: pane, code (segment or label << 14 | statistic), value.
    #[allow(clippy::type_complexity)]
    fn dump_panes<'py>(
        &self,
        py: Python<'py>,
        panes: Vec<u64>,
        series: Option<usize>,
    ) -> PyResult<(Array<'py, i64>, Array<'py, i64>, Array<'py, i64>)> {
        let panes::Columns { pane, code, value } = self.panes(series)?.dump(&panes);
        Ok((
            pane.into_pyarray(py),
            code.into_pyarray(py),
            value.into_pyarray(py),
        ))
    }

    /// Puts back what was dumped of one pane.
    fn load_pane(
        &mut self,
        pane: u64,
        codes: PyReadonlyArray1<'_, i64>,
        values: PyReadonlyArray1<'_, i64>,
        series: Option<usize>,
    ) -> PyResult<()> {
        let (codes, values) = (codes.as_slice()?, values.as_slice()?);
        self.panes_mut(series)?
            .load(pane, codes, values)
            .map_err(overflow)
    }

    /// Labels of an alert series, by number: values in the order of its dimensions.
    fn series_labels(&self, series: usize) -> PyResult<Vec<Vec<String>>> {
        let found = self.partition.counting.series.get(series);
        found.map(|s| s.labels.known.clone()).ok_or_else(no_series)
    }

    fn restore_series_labels(&mut self, series: usize, labels: Vec<Vec<String>>) -> PyResult<()> {
        let found = self.partition.counting.series.get_mut(series);
        found.ok_or_else(no_series)?.labels.load(labels);
        Ok(())
    }

    // Users

    /// The rings whose sums over users changed since the last call.
    fn take_changed_rings(&mut self) -> Vec<usize> {
        self.partition
            .counting
            .users
            .as_mut()
            .map(|x| x.take_changed_rings())
            .unwrap_or_default()
    }

    /// Sums over users of a ring: keys and values.
    fn user_sums<'py>(&self, py: Python<'py>, ring: usize) -> (Array<'py, i64>, Array<'py, i64>) {
        let sums = self
            .partition
            .counting
            .users
            .as_ref()
            .and_then(|users| users.sums(ring));
        let sums = sums.cloned().unwrap_or_default();
        (sums.key.into_pyarray(py), sums.value.into_pyarray(py))
    }

    /// The value codes of each segment group (-1: outside the rollup).
    fn user_groups(&self) -> Vec<Vec<i64>> {
        let groups = self
            .partition
            .counting
            .users
            .as_ref()
            .map(|users| users.groups());
        groups
            .unwrap_or_default()
            .iter()
            .map(|codes| codes.to_vec())
            .collect()
    }

    // Experiments

    /// The experiments whose sums changed since the last call.
    fn take_changed_experiments(&mut self) -> Vec<usize> {
        self.partition.counting.experiments.take_changed()
    }

    /// The sums of an experiment: columns `key` and `limb_0`, ….
    fn experiment_sums<'py>(
        &self,
        py: Python<'py>,
        experiment: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.partition.counting.experiments.sums(experiment);
        found.map(|columns| as_arrays(py, columns)).transpose()
    }

    /// Likewise over the days [from, to), computed from the rows.
    fn experiment_sums_of_days<'py>(
        &mut self,
        py: Python<'py>,
        experiment: usize,
        days: (i64, i64),
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let counting = &mut self.partition.counting;
        let found = counting
            .experiments
            .of_range(&counting.dimensions, experiment, days);
        found.map(|columns| as_arrays(py, columns)).transpose()
    }

    /// Labels of users' days: values of the dimensions that experiments look at.
    fn experiment_labels(&self) -> Vec<Vec<String>> {
        self.partition.counting.experiments.labels.known.clone()
    }

    /// Sets what is stored of experiments beside rows, before they are loaded.
    fn restore_experiments(&mut self, labels: Vec<Vec<String>>, final_ms: i64, sample_bits: u32) {
        self.partition
            .counting
            .experiments
            .restore(labels, final_ms, sample_bits);
    }

    // Tables

    /// What changes from now on belongs to the next commit.
    fn seal(&mut self) {
        self.partition.seal();
    }

    /// First and next number (or epoch) of a table's rows.
    fn serials(&self, table: &str) -> PyResult<(u64, u64)> {
        Ok(self.partition.serials(table_of(table)?))
    }

    /// Rows whose latest time is before this cannot matter any more; None: it is known by number.
    fn horizon_ms(&self, table: &str) -> PyResult<Option<i64>> {
        Ok(self.partition.horizon_ms(table_of(table)?))
    }

    /// What is stored of the rows with numbers (or epochs) in [first, end).
    fn rows<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        first: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        as_arrays(py, self.partition.rows(table_of(table)?, first, end))
    }

    /// How many rows last changed from each of these epochs on, before the next; None for logs.
    fn live(&self, table: &str, firsts: Vec<u32>) -> PyResult<Option<Vec<u64>>> {
        Ok(self.partition.live(table_of(table)?, &firsts))
    }

    /// Takes over the blobs of one table, the oldest first: impressions before what is retained of
    /// them, feedback after both. Returns the first number (or epoch) of each and the one after its
    /// last. ValueError where columns do not fit.
    fn load(
        &mut self,
        py: Python<'_>,
        table: &str,
        blobs: Vec<Bound<'_, PyDict>>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let table = table_of(table)?;
        let blobs: Vec<Columns> = blobs.iter().map(from_arrays).collect::<PyResult<_>>()?;
        let partition = &mut self.partition;
        py.detach(move || partition.load(table, &blobs))
            .map_err(PyValueError::new_err)
    }

    /// All tables are loaded.
    fn finish_load(&mut self) {
        self.partition.finish_load();
    }

    /// Bytes and rows of what is held, by name.
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (attribution, counting) = (&self.partition.attribution, &self.partition.counting);
        let ids: usize = self.partition.logs.iter().map(|log| log.ids.bytes()).sum();
        let users = counting.users.as_ref();
        let sizes = [
            ("event_ids", ids),
            (
                "event_ids_rows",
                self.partition
                    .logs
                    .iter()
                    .map(|log| log.ids.log.len())
                    .sum(),
            ),
            ("impressions", attribution.impressions.bytes()),
            ("impressions_rows", attribution.impressions.log.len()),
            ("slates", attribution.slates.bytes()),
            ("slates_rows", attribution.slates.len()),
            ("retained", attribution.retained.bytes()),
            ("retained_rows", attribution.retained.rows.log.len()),
            ("sessions", self.partition.sessions.rows.bytes()),
            ("sessions_rows", self.partition.sessions.rows.len()),
            ("viewings", counting.viewings.rows.bytes()),
            ("viewings_rows", counting.viewings.rows.len()),
            ("feedback_rows", attribution.pending.len()),
            ("users", users.map_or(0, |users| users.nbytes())),
            ("users_rows", users.map_or(0, |users| users.rows())),
            ("user_days", counting.experiments.nbytes()),
            ("user_days_rows", counting.experiments.rows()),
            ("panes", counting.panes.bytes()),
        ];
        let found = PyDict::new(py);
        for (name, size) in sizes {
            found.set_item(name, size)?;
        }
        Ok(found)
    }
}

impl Core {
    fn panes(&self, series: Option<usize>) -> PyResult<&panes::Panes> {
        match series {
            None => Ok(&self.partition.counting.panes),
            Some(at) => {
                let found = self.partition.counting.series.get(at);
                found.map(|series| &series.panes).ok_or_else(no_series)
            }
        }
    }

    fn panes_mut(&mut self, series: Option<usize>) -> PyResult<&mut panes::Panes> {
        match series {
            None => Ok(&mut self.partition.counting.panes),
            Some(at) => {
                let found = self.partition.counting.series.get_mut(at);
                found.map(|series| &mut series.panes).ok_or_else(no_series)
            }
        }
    }

    fn of_topic<'py>(&self, py: Python<'py>, topic: Topic) -> PyResult<Bound<'py, PyDict>> {
        let log = &self.partition.logs[topic as usize];
        let found = PyDict::new(py);
        found.set_item("next_offset", log.next_offset)?;
        found.set_item("arrival_ms", log.arrival_ms)?;
        found.set_item("idle_ms", log.idle_ms)?;
        found.set_item("clock_ms", log.clock_ms())?;
        found.set_item("accepted", log.accepted)?;
        found.set_item("duplicates", log.duplicates)?;
        found.set_item("late", log.late)?;
        found.set_item("rejected", &log.rejected)?;
        found.set_item("join_gap", log.join_gap)?;
        found.set_item("evicted_early", log.ids.evicted_early)?;
        Ok(found)
    }

    fn unsettled<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut counts = [0u64; 2];
        for (_, feedback) in self.partition.attribution.pending.iter() {
            counts[usize::from(feedback.is_conversion())] += u64::from(!feedback.is_settled);
        }
        dict(py, &[("clicks", counts[0]), ("conversions", counts[1])])
    }

    fn evicted_early<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let early = &self.partition.attribution.evicted_early;
        let counts = [
            ("impressions", early.impressions),
            ("retained", early.retained),
            ("feedback", early.feedback),
            ("sessions", self.partition.sessions.rows.evicted_early),
            (
                "viewings",
                self.partition.counting.viewings.rows.evicted_early,
            ),
        ];
        dict(py, &counts)
    }
}

fn no_series() -> PyErr {
    PyValueError::new_err("no such alert series")
}

fn dict<'py>(py: Python<'py>, entries: &[(&str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, value) in entries {
        found.set_item(name, value)?;
    }
    Ok(found)
}

fn item<'py, T: for<'a> FromPyObject<'a, 'py>>(
    dict: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<T> {
    let found = dict.get_item(name)?;
    let found =
        found.ok_or_else(|| PyValueError::new_err(format!("stored state lacks {name:?}")))?;
    found.extract().map_err(Into::into)
}

fn as_arrays<'py>(py: Python<'py>, columns: Columns) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, values) in columns.0 {
        match values {
            Values::U64(values) => found.set_item(name, values.into_pyarray(py))?,
            Values::I64(values) => found.set_item(name, values.into_pyarray(py))?,
            Values::I32(values) => found.set_item(name, values.into_pyarray(py))?,
            Values::I16(values) => found.set_item(name, values.into_pyarray(py))?,
            Values::F64(values) => found.set_item(name, values.into_pyarray(py))?,
            Values::Bool(values) => found.set_item(name, values.into_pyarray(py))?,
        }
    }
    Ok(found)
}

fn from_arrays(dict: &Bound<'_, PyDict>) -> PyResult<Columns> {
    let mut columns = Columns::default();
    for (name, array) in dict.iter() {
        columns.add(&name.extract::<String>()?, values_of(&array)?);
    }
    Ok(columns)
}

fn values_of(array: &Bound<'_, PyAny>) -> PyResult<Values> {
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, u64>>() {
        return Ok(Values::U64(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, i64>>() {
        return Ok(Values::I64(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, i32>>() {
        return Ok(Values::I32(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, i16>>() {
        return Ok(Values::I16(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(Values::F64(found.as_slice()?.to_vec()));
    }
    let found = array.extract::<PyReadonlyArray1<'_, bool>>()?;
    Ok(Values::Bool(found.as_slice()?.to_vec()))
}
