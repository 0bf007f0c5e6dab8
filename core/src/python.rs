//! The class that Python sees: one partition number. Work is done with the interpreter released.

mod arrays;
pub mod arrow;
pub mod evaluator;
mod feeding;
pub mod names;
pub mod ratio_cells;
pub mod records;
mod records_from_python;
pub mod rekeying;
pub mod stamping;
mod state;
pub mod table_rows;
pub mod unit_sums;

use std::collections::{BTreeMap, HashMap};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::attribution::trace::{Traced, traced};
use crate::columns::Columns;
use crate::decode::Decoder;
use crate::experiments::found::{FoundExperiment, Named};
use crate::formats::{SchemaId, SchemaText};
use crate::kafka;
use crate::panes;
use crate::partition::Partition;
use crate::partition::counters;
use crate::partition::migration::TableMigration;
use crate::spec::{Limits, Spec};
use arrays::{ByValue, as_arrays, each_as_arrays, from_arrays};
use feeding::{Fed, Feeding};
pub use feeding::{scan_batches, verify_batches};
use names::{RejectedRecord, log_of, overflow, table_of};
use records_from_python::{GivenRecords, RecordMeta, make_known};
use state::{labels_of, panes_mut, panes_of};

/// Slot, key, arms, first and last day, code.
type FoundRow = (usize, Vec<String>, Vec<u64>, (i64, i64), i64);
type Array<'py, T> = Bound<'py, PyArray1<T>>;
/// See `Core::take_ratio_rows`.
type RatioColumns<'py> = (
    Vec<Array<'py, u16>>,
    Array<'py, u32>,
    Array<'py, bool>,
    [Array<'py, f64>; 2],
    u32,
);

/// The counted state of one partition number, over all topics. One thread at a time may use it.
#[pyclass]
pub struct Core {
    decoder: Decoder,
    partition: Partition,
    scratch: kafka::Scratch,
    limits: Limits,
}

#[pymethods]
impl Core {
    /// An empty partition. `spec`: JSON of settings and statistics; ValueError where it asks for
    /// what there is not. `is_traced`: it is fed a sample, of which `joins` is asked,
    /// and counts it by no dimension.
    #[new]
    #[pyo3(signature = (spec, is_traced=false))]
    fn new(spec: &[u8], is_traced: bool) -> PyResult<Self> {
        let mut spec: Spec = serde_json::from_slice(spec)
            .map_err(|error| PyValueError::new_err(format!("spec of the core: {error}")))?;
        if is_traced {
            spec.rollups.truncate(1);
        }
        let mut partition = Partition::new(&spec).map_err(PyValueError::new_err)?;
        if is_traced {
            partition.trace();
        }
        Ok(Self {
            decoder: Decoder::of(&spec).map_err(PyValueError::new_err)?,
            limits: spec.limits,
            partition,
            scratch: kafka::Scratch::default(),
        })
    }

    // Feeding

    /// Takes in records of a log, in offset order, from its next offset on; `beside`: their keys and
    /// headers (as Kafka sends them, behind their number), where there are any. Returns what was
    /// fed, and the schema without which it is not all. OverflowError where a sum would pass 2**62.
    #[pyo3(signature = (log, offsets, record_ms, values, beside=Vec::new()))]
    fn feed_records(
        &mut self,
        py: Python<'_>,
        log: &str,
        offsets: PyReadonlyArray1<'_, i64>,
        record_ms: PyReadonlyArray1<'_, i64>,
        values: Vec<Option<PyBackedBytes>>,
        beside: RecordMeta,
    ) -> PyResult<Fed> {
        let log = log_of(&self.partition, log)?;
        let records = GivenRecords::new(&offsets, &record_ms, values, beside)?;
        let to = Feeding::new(log, &mut self.decoder, &mut self.partition, &self.limits);
        py.detach(move || to.records(&records)).map_err(overflow)
    }

    /// Takes in record batches as Kafka sent them, from the log's next offset on. Returns what
    /// was fed. ValueError where the format is not read, OverflowError where a sum would pass 2**62.
    /// `most_ms`: after so long the rest is left for another time.
    #[pyo3(signature = (log, blob, aborted, most_ms=None))]
    fn feed_batches(
        &mut self,
        py: Python<'_>,
        log: &str,
        blob: PyBackedBytes,
        aborted: Vec<(i64, i64)>,
        most_ms: Option<u64>,
    ) -> PyResult<Fed> {
        let log = log_of(&self.partition, log)?;
        let to = Feeding::new(log, &mut self.decoder, &mut self.partition, &self.limits);
        let to = to.within(most_ms);
        let scratch = &mut self.scratch;
        py.detach(move || to.batches(scratch, &blob, &aborted))
    }

    /// Makes a schema of a log known, or its records rejected. ValueError: it cannot be used.
    /// Other threads go on meanwhile.
    fn set_schema(
        &mut self,
        py: Python<'_>,
        log: &str,
        id: SchemaId,
        schema: Option<SchemaText>,
    ) -> PyResult<()> {
        let source = self.partition.logs[log_of(&self.partition, log)?].source;
        make_known(py, self.decoder.format(source), id, schema)
    }

    /// What was fed is taken in; `at_end`: logs of which everything was read.
    fn end_apply(&mut self, py: Python<'_>, at_end: Vec<String>) -> PyResult<()> {
        let partition = &mut self.partition;
        let ended = at_end.iter().map(|name| log_of(partition, name));
        let ended = ended.collect::<PyResult<Vec<_>>>()?;
        py.detach(move || partition.end_apply(&ended))
            .map_err(overflow)
    }

    /// Brings the sums over users up to date.
    fn refresh_user_sums(&mut self, py: Python<'_>) -> PyResult<()> {
        let partition = &mut self.partition;
        py.detach(move || partition.refresh_user_sums())
            .map_err(overflow)
    }

    /// Whether the sums over users do not show everything yet.
    #[getter]
    fn is_dirty(&self) -> bool {
        self.partition.counting.is_dirty()
    }

    /// Sets the wall clock by which records are ahead from now on (epoch ms).
    fn set_wall_clock(&mut self, wall_ms: i64) {
        self.partition.wall_ms = wall_ms;
    }

    /// Records that do not count since the last call: log, offset, timestamp, reason, value, key,
    /// headers; and how many more there were, for which there was no room.
    fn take_rejected<'py>(&mut self, py: Python<'py>) -> (Vec<RejectedRecord<'py>>, u64) {
        names::take_rejected(py, &mut self.partition)
    }

    // What is counted

    #[getter]
    fn stream_ms(&self) -> i64 {
        self.partition.stream_ms
    }

    /// What became of each feedback event of a sample.
    fn joins(&mut self) -> Vec<Traced> {
        traced(&mut self.partition.attribution)
    }

    /// Next offset, arrival clock and clock of joins of a log.
    fn log(&self, name: &str) -> PyResult<(i64, i64, i64)> {
        let log = &self.partition.logs[log_of(&self.partition, name)?];
        Ok((log.next_offset, log.arrival_ms, log.clock_ms()))
    }

    /// Whether all sums over users are to be computed again, at once.
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

    /// The counters of the partition, by name: see `COUNTERS`.
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        counters::values(counters::OF_PARTITION, &self.partition)
    }

    /// What is stored besides counters, tables and panes, by name.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        state::state(&self.partition, py)
    }

    /// Sets what `state` and `counters` gave, before tables are loaded.
    fn restore(&mut self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        state::restore(&mut self.partition, state)
    }

    /// Goes on at another offset of a log.
    fn seek(&mut self, name: &str, next_offset: i64) -> PyResult<()> {
        let log = log_of(&self.partition, name)?;
        self.partition.logs[log].next_offset = next_offset;
        Ok(())
    }

    /// Values of each dimension (texts, events, kept), and the segments: rollup and codes of each.
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        state::dimensions(&self.partition.counting, py)
    }

    /// Takes over what `dimensions` gave: (texts, events, kept) of each dimension, and the segments.
    fn restore_dimensions(
        &mut self,
        values: Vec<(Vec<String>, Vec<u64>, Vec<String>)>,
        segments: Vec<(u32, Vec<u32>)>,
    ) -> PyResult<()> {
        let counting = &mut self.partition.counting;
        counting.dimensions.load_values(values);
        let loaded = counting.panes.segments.load(segments);
        loaded.map_err(PyValueError::new_err)
    }

    // Panes: those of windows and totals, or of a series by its place in alert series, then items

    /// The numbers of the panes that changed since the last call.
    fn take_changed_panes(&mut self, series: Option<usize>) -> PyResult<Vec<u64>> {
        Ok(panes_mut(&mut self.partition, series)?.take_changed())
    }

    fn live_panes(&self, series: Option<usize>) -> PyResult<Vec<u64>> {
        Ok(panes_of(&self.partition, series)?.live())
    }

    /// Sums of panes that are not 0: pane, code of combination (or label) and statistic, value.
    #[allow(clippy::type_complexity)]
    fn dump_panes<'py>(
        &self,
        py: Python<'py>,
        panes: Vec<u64>,
        series: Option<usize>,
    ) -> PyResult<(Array<'py, i64>, Array<'py, i64>, Array<'py, i64>)> {
        let held = panes_of(&self.partition, series)?;
        let panes::PaneColumns { pane, code, value } = py.detach(|| held.dump(&panes));
        let [pane, code, value] = [pane, code, value].map(|of| of.into_pyarray(py));
        Ok((pane, code, value))
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
        panes_mut(&mut self.partition, series)?
            .load(pane, codes, values)
            .map_err(overflow)
    }

    /// Labels of a series, by number: values in the order of its dimensions.
    fn series_labels(&mut self, series: usize) -> PyResult<Vec<Vec<String>>> {
        Ok(labels_of(&mut self.partition, series)?.known.clone())
    }

    fn restore_series_labels(&mut self, series: usize, labels: Vec<Vec<String>>) -> PyResult<()> {
        labels_of(&mut self.partition, series)?.load(labels);
        Ok(())
    }

    /// The rows of a ratio so far, which are gone here: codes of each dimension, hashes of people,
    /// whether it is now, numerator and denominator; and sample bits. ValueError where none are wanted.
    fn take_ratio_rows<'py>(&mut self, py: Python<'py>) -> PyResult<RatioColumns<'py>> {
        let recorder = self.partition.counting.recorder.as_mut();
        let recorder = recorder.ok_or_else(|| PyValueError::new_err("no rows are wanted"))?;
        let rows = recorder.take();
        let codes = rows.codes.into_iter().map(|codes| codes.into_pyarray(py));
        let (person, is_now) = (rows.person.into_pyarray(py), rows.is_now.into_pyarray(py));
        let sums = [rows.numerator, rows.denominator].map(|of| of.into_pyarray(py));
        Ok((codes.collect(), person, is_now, sums, rows.bits))
    }

    // Users

    /// The rings whose sums over users changed since the last call.
    fn take_changed_rings(&mut self) -> Vec<usize> {
        let users = self.partition.counting.users.as_mut();
        users.map(|x| x.take_changed_rings()).unwrap_or_default()
    }

    /// Sums over users of a ring: keys and values.
    fn user_sums<'py>(&self, py: Python<'py>, ring: usize) -> (Array<'py, i64>, Array<'py, i64>) {
        let users = self.partition.counting.users.as_ref();
        let sums = users.and_then(|users| users.sums(ring));
        let sums = sums.cloned().unwrap_or_default();
        (sums.key.into_pyarray(py), sums.value.into_pyarray(py))
    }

    // Experiments

    /// The days on which sums of experiments changed since the last call.
    fn take_changed_experiment_days(&mut self) -> Vec<i64> {
        self.partition.counting.experiments.take_changed()
    }

    /// The first key that each experiment has on a day.
    fn experiment_keys(&self) -> Vec<i64> {
        self.partition.counting.experiments.first_keys()
    }

    /// The sums of all experiments on a day: columns `key` and `limb_0`, …. Under key 0 stand the
    /// outcomes of all users.
    fn experiment_day<'py>(&self, py: Python<'py>, day: i64) -> PyResult<Bound<'py, PyDict>> {
        as_arrays(py, self.partition.counting.experiments.sums_of_day(day))
    }

    /// The days that have sums of experiments.
    fn experiment_days(&self) -> Vec<i64> {
        self.partition.counting.experiments.days().collect()
    }

    /// The sums of an experiment over the days [from, to), computed from the rows, by value of a
    /// dimension: columns with one key of arm, day and statistic.
    fn experiment_sums_of_days<'py>(
        &mut self,
        py: Python<'py>,
        experiment: usize,
        days: (i64, i64),
        by: Option<usize>,
    ) -> PyResult<Option<ByValue<'py>>> {
        let counting = &mut self.partition.counting;
        let (dimensions, experiments) = (&counting.dimensions, &mut counting.experiments);
        let found = experiments.of_range(dimensions, experiment, days, by);
        found.map(|found| each_as_arrays(py, found)).transpose()
    }

    /// Likewise apart for each arm of another experiment, by its number.
    fn experiment_sums_across<'py>(
        &mut self,
        py: Python<'py>,
        experiment: usize,
        other: usize,
        days: (i64, i64),
    ) -> PyResult<BTreeMap<u32, Bound<'py, PyDict>>> {
        let experiments = &mut self.partition.counting.experiments;
        let found = experiments.across((experiment, other), days);
        let found = found.unwrap_or_default().into_iter();
        found
            .map(|(arm, columns)| Ok((arm, as_arrays(py, columns)?)))
            .collect()
    }

    /// Users who are in two experiments: (first, arm, second, arm, users).
    fn experiment_pairs(&mut self) -> Vec<(usize, u32, usize, u32, u64)> {
        let pairs = self.partition.counting.experiments.pairs().into_iter();
        let row = |((first, a, second, b), users)| (first, a, second, b, users);
        pairs.map(row).collect()
    }

    /// Likewise over the days of its covariates, of everybody; None where there are none.
    fn experiment_sums_before_start<'py>(
        &mut self,
        py: Python<'py>,
        experiment: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.partition.counting.experiments.before_start(experiment);
        found.map(|columns| as_arrays(py, columns)).transpose()
    }

    /// Experiments that were found: slot, key and arms, the smallest hash of a person who named each,
    /// first and last day, code.
    fn found_experiments(&self) -> Vec<FoundRow> {
        let slots = self.partition.counting.experiments.found.slots();
        let found = slots.iter().enumerate();
        let found = found.filter_map(|(slot, found)| Some((slot, found.as_ref()?)));
        let row = |(slot, found): (usize, &FoundExperiment)| {
            let named = || std::iter::once(&found.key).chain(&found.arms);
            let texts = named().map(|named| named.text.clone()).collect();
            let by = named().map(|named| named.by).collect();
            (slot, texts, by, found.days, found.code)
        };
        found.map(row).collect()
    }

    /// Sets what was found, before rows are loaded.
    fn restore_found_experiments(&mut self, rows: Vec<FoundRow>) {
        let found = rows
            .into_iter()
            .filter_map(|(slot, texts, by, days, code)| {
                let named = texts.into_iter().zip(by);
                let mut named = named.map(|(text, by)| Named { text, by });
                let key = named.next()?;
                let arms = named.collect();
                let found = FoundExperiment {
                    key,
                    arms,
                    days,
                    code,
                };
                Some((slot, found))
            });
        let experiments = &mut self.partition.counting.experiments;
        experiments.restore_found(found.collect());
    }

    /// Labels of users' days: values of the dimensions that experiments look at.
    fn experiment_labels(&self) -> Vec<Vec<String>> {
        self.partition.counting.experiments.labels.known.clone()
    }

    /// Sets what is stored of experiments beside rows, before they are loaded.
    fn restore_experiments(&mut self, labels: Vec<Vec<String>>, final_ms: i64) {
        let experiments = &mut self.partition.counting.experiments;
        experiments.restore(labels, final_ms);
    }

    /// Of each unit that is not the user how many bits of the hashes of its values are 0, and of its rows.
    fn unit_bits(&self) -> Vec<(u32, u32)> {
        let counting = &self.partition.counting;
        counting.units.bits(&counting.dimensions)
    }

    /// Sets them, before rows are loaded.
    fn restore_unit_bits(&mut self, bits: Vec<(u32, u32)>) {
        let counting = &mut self.partition.counting;
        counting.units.restore(&mut counting.dimensions, &bits);
    }

    // Tables

    /// The names of the stored tables, in the order in which they are loaded.
    fn tables(&self) -> Vec<String> {
        self.partition.tables().map(|(name, _)| name).collect()
    }

    /// What changes from now on belongs to the next commit.
    fn seal(&mut self) {
        self.partition.seal();
    }

    /// First and next number (or epoch) of a table's rows.
    fn serials(&self, table: &str) -> PyResult<(u64, u64)> {
        Ok(self.partition.serials(table_of(&self.partition, table)?))
    }

    /// Rows whose latest time is before this cannot matter any more; None: it is known by number.
    fn horizon_ms(&self, table: &str) -> PyResult<Option<i64>> {
        Ok(self.partition.horizon_ms(table_of(&self.partition, table)?))
    }

    /// What is stored of the rows with numbers (or epochs) in [first, end), and the time by which a
    /// blob of them leaves.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        first: u64,
        end: u64,
    ) -> PyResult<(Bound<'py, PyDict>, i64)> {
        let (table, partition) = (table_of(&self.partition, table)?, &self.partition);
        let columns = py.detach(|| partition.rows(table, first, end));
        let leaves_ms = partition.leaves_ms(table, (first, end), &columns);
        let leaves_ms = leaves_ms.map_err(PyValueError::new_err)?;
        Ok((as_arrays(py, columns)?, leaves_ms))
    }

    /// How many rows last changed from each of these epochs on, before the next; None for logs.
    fn live(&self, py: Python<'_>, table: &str, firsts: Vec<u32>) -> PyResult<Option<Vec<u64>>> {
        let (table, partition) = (table_of(&self.partition, table)?, &self.partition);
        Ok(py.detach(|| partition.live(table, &firsts)))
    }

    /// Takes over the blobs of one table, the oldest first: impressions before what is retained of
    /// them, feedback after both. Returns the first number (or epoch) of each and the one after its
    /// last. `migration`: how the rows of other settings are mapped, as JSON. ValueError where
    /// columns do not fit.
    #[pyo3(signature = (table, blobs, migration=None))]
    fn load(
        &mut self,
        py: Python<'_>,
        table: &str,
        blobs: Vec<Bound<'_, PyDict>>,
        migration: Option<&str>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let table = table_of(&self.partition, table)?;
        let blobs: Vec<Columns> = blobs.iter().map(from_arrays).collect::<PyResult<_>>()?;
        let migration: Option<TableMigration> = migration
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let partition = &mut self.partition;
        py.detach(move || match migration {
            Some(migration) if table.is_migrated() => {
                let mapped = blobs.iter().map(|blob| migration.apply(table, blob));
                partition.load(table, &mapped.collect::<Result<Vec<_>, _>>()?)
            }
            _ => partition.load(table, &blobs),
        })
        .map_err(PyValueError::new_err)
    }

    /// All tables are loaded.
    fn finish_load(&mut self, py: Python<'_>) -> PyResult<()> {
        let partition = &mut self.partition;
        py.detach(|| partition.finish_load()).map_err(overflow)
    }

    /// Milliseconds of the greatest common divisor of all pane lengths.
    #[getter]
    fn unit_ms(&self) -> i64 {
        self.partition.counting.panes.unit_ms()
    }

    /// Tables with bounds, and the rows of each.
    fn bounded(&self) -> Vec<(&'static str, usize)> {
        self.partition.bounded()
    }

    /// Bounds of rows by table, from now on.
    fn set_bounds(&mut self, rows: HashMap<String, usize>) {
        self.partition.set_bounds(&rows);
    }

    /// Bytes and rows of what is held, by name.
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        state::sizes(&self.partition, py)
    }
}
