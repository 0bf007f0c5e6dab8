//! Offline evaluation, as Python sees it. Tables are read and values computed with the interpreter
//! released.

use std::sync::Arc;

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::Schema;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use super::arrow::batches_of;
use crate::evaluation::mean_sums::MeanSums;
use crate::evaluation::relevant_items::{ClickColumns, RelevantItems};
use crate::evaluation::shown_lists::{ShownColumns, ShownLists};
use crate::evaluation::{Means, MeansSpec, SegmentTotals, evaluate};
use crate::hash::HashKey;
use crate::slates::values::Tables;
use crate::spec::sums::TableSpec;

/// Rows that are read at once: their hashes fit memory easily, and a dictionary is hashed rarely.
const PART_ROWS: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvaluatorSpec {
    hash_key: HashKey,
    impressions: ShownColumns,
    clicks: ClickColumns,
    /// Columns that somebody named: they must be there.
    asked: (Vec<String>, Vec<String>),
    means: MeansSpec,
}

/// Lists and users of a mean, and sums as decimal digits: of x, x², x n and n².
type MeanRow = (i64, i64, String, String, String, String);
/// Items, their counts one after another, and the counts of no item.
type ExposureRow<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
);

/// The lists of a table of impressions, and the relevant items of a table of clicks.
#[pyclass(module = "streamer._core")]
pub struct Evaluator {
    lists: ShownLists,
    relevant: RelevantItems,
    means: Means,
}

#[pymethods]
impl Evaluator {
    /// Reads both tables to their ends. `spec`: JSON. TypeError where something is no table,
    /// ValueError where it cannot be read.
    #[new]
    fn new(
        py: Python<'_>,
        spec: &[u8],
        impressions: &Bound<'_, PyAny>,
        clicks: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let spec: EvaluatorSpec = serde_json::from_slice(spec)
            .map_err(|error| PyValueError::new_err(format!("spec of an evaluation: {error}")))?;
        let mut lists = ShownLists::new(spec.impressions, spec.hash_key);
        let mut relevant = RelevantItems::new(spec.clicks, spec.hash_key);
        let means = Means::new(spec.means).map_err(PyValueError::new_err)?;
        // One after the other: a connection of DuckDB has one open result.
        let shown = batches_of(impressions)?;
        py.detach(|| read_impressions(shown, &mut lists, &spec.asked.0))
            .map_err(PyValueError::new_err)?;
        let clicked = batches_of(clicks)?;
        py.detach(|| read_clicks(clicked, &mut relevant, &lists, &spec.asked.1))
            .map_err(PyValueError::new_err)?;
        Ok(Self {
            lists,
            relevant,
            means,
        })
    }

    /// The grades above 0 of the clicks, ascending.
    #[getter]
    fn gains(&self) -> Vec<f64> {
        self.relevant.gains().to_vec()
    }

    /// Rows, lists and users of the impressions; rows of the clicks, and those without a list.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, usize, usize) {
        let (lists, relevant) = (&self.lists, &self.relevant);
        let shown = (lists.rows(), lists.lists(), lists.users());
        let (rows, without_list) = (relevant.rows(), relevant.without_list);
        (shown.0, shown.1, shown.2, rows, without_list)
    }

    /// The labels of each segment.
    #[getter]
    fn segments(&self) -> Vec<Vec<String>> {
        self.lists.segments()
    }

    /// The sums of all lists, then of each segment: a row a mean, and the counts of items, where
    /// they are wanted. `tables`: JSON, with the gains. ValueError where they do not fit.
    fn sums<'py>(
        &self,
        py: Python<'py>,
        tables: &[u8],
    ) -> PyResult<Vec<(Vec<MeanRow>, Option<ExposureRow<'py>>)>> {
        let tables: TableSpec = serde_json::from_slice(tables)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let tables = Arc::new(Tables::new(tables).map_err(PyValueError::new_err)?);
        let totals = py.detach(|| evaluate(&self.lists, &self.relevant, &self.means, tables));
        Ok(totals.iter().map(|of| row_of(py, of)).collect())
    }
}

fn read_impressions(
    batches: RecordBatchStreamReader,
    lists: &mut ShownLists,
    asked: &[String],
) -> Result<(), String> {
    let schema = batches.schema();
    lists.settle(&names_of(&schema), asked)?;
    for_each_part(batches, "impressions", |part| lists.add(part))
}

fn read_clicks(
    batches: RecordBatchStreamReader,
    relevant: &mut RelevantItems,
    lists: &ShownLists,
    asked: &[String],
) -> Result<(), String> {
    let schema = batches.schema();
    relevant.settle(&names_of(&schema), asked, lists);
    for_each_part(batches, "clicks", |part| relevant.add(part, lists))?;
    relevant.finish(lists);
    Ok(())
}

fn names_of(schema: &Schema) -> Vec<&str> {
    schema
        .fields()
        .iter()
        .map(|of| of.name().as_str())
        .collect()
}

/// Hands on the rows of a table in parts; an error, in words, names the table.
fn for_each_part(
    batches: RecordBatchStreamReader,
    table: &str,
    mut add: impl FnMut(&RecordBatch) -> Result<(), String>,
) -> Result<(), String> {
    for batch in batches {
        let batch = batch.map_err(|error| format!("{table}: {error}"))?;
        parts_of(&batch).try_for_each(|part| add(&part))?;
    }
    Ok(())
}

/// A batch in parts, without a copy: some libraries have a whole table in one.
fn parts_of(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let firsts = (0..rows).step_by(PART_ROWS);
    firsts.map(move |first| batch.slice(first, PART_ROWS.min(rows - first)))
}

fn row_of<'py>(py: Python<'py>, of: &SegmentTotals) -> (Vec<MeanRow>, Option<ExposureRow<'py>>) {
    let row = |sums: &MeanSums| {
        let [total, squares, products, sizes] =
            [sums.total, sums.squares, sums.products, sums.sizes].map(|sum| sum.to_string());
        (sums.lists, sums.users, total, squares, products, sizes)
    };
    let exposure = of.exposure.as_ref().map(|exposure| {
        let (items, counts) = exposure.sorted();
        let every = exposure.every().to_vec();
        (
            items.into_pyarray(py),
            counts.into_pyarray(py),
            every.into_pyarray(py),
        )
    });
    (of.means.iter().map(row).collect(), exposure)
}
