//! Experiments of the core, for tests that compare them with a slow recomputation.

use std::collections::HashMap;

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::changes::{Segment, UserAt};
use crate::columns::{ColumnValues, Columns};
use crate::experiments::{ExperimentTable, Experiments};
use crate::hash::HashKey;
use crate::panes::Overflow;
use crate::panes::dimensions::Dimensions;
use crate::spec::{self, RowLimit};

#[pyclass]
pub struct ExperimentsForTests {
    experiments: Experiments,
    dimensions: Dimensions,
}

#[pymethods]
impl ExperimentsForTests {
    /// `dimensions`: name, values of the settings, and how many others are kept.
    #[new]
    fn new(
        spec_json: &str,
        dimensions: Vec<(String, Vec<String>, usize)>,
        limit: (usize, u32),
    ) -> PyResult<Self> {
        let spec = serde_json::from_str(spec_json).map_err(error)?;
        let dimensions: Vec<spec::Dimension> = dimensions
            .into_iter()
            .map(|(name, values, max_values)| spec::Dimension {
                name,
                values,
                max_values,
            })
            .collect();
        let (rows, of_a_user) = limit;
        let limit = RowLimit { rows, of_a_user };
        let experiments = Experiments::bounded(&spec, dimensions.len(), limit);
        Ok(Self {
            experiments: experiments.map_err(error)?,
            dimensions: Dimensions::new(HashKey(1, 2), &dimensions, 20_000),
        })
    }

    fn segment(&mut self, texts: Vec<String>) -> Segment {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.dimensions.segment_of(texts.into_iter())
    }

    fn kept(&self, dimension: usize) -> Vec<String> {
        let kept = self.dimensions.values[dimension].kept();
        kept.into_iter().map(str::to_owned).collect()
    }

    fn add(&mut self, component: usize, place: UserAt, amount: i64) -> PyResult<()> {
        let added = self
            .experiments
            .add(&self.dimensions, component, place, amount);
        added.map_err(overflow)
    }

    fn refresh(&mut self, final_ms: i64) -> PyResult<()> {
        let refreshed = self.experiments.refresh(&self.dimensions, final_ms);
        refreshed.map_err(overflow)
    }

    fn sums<'py>(&self, py: Python<'py>, trial: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.experiments.sums(trial);
        found.map(|columns| to_python(py, columns)).transpose()
    }

    fn of_range<'py>(
        &mut self,
        py: Python<'py>,
        trial: usize,
        days: (i64, i64),
        by: Option<usize>,
    ) -> PyResult<Option<HashMap<String, Bound<'py, PyDict>>>> {
        let found = self.experiments.of_range(&self.dimensions, trial, days, by);
        let to_python = |(value, columns)| Ok((value, to_python(py, columns)?));
        found
            .map(|found| found.into_iter().map(to_python).collect())
            .transpose()
    }

    fn before_start<'py>(
        &mut self,
        py: Python<'py>,
        trial: usize,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.experiments.before_start(trial);
        found.map(|columns| to_python(py, columns)).transpose()
    }

    fn take_changed(&mut self) -> Vec<usize> {
        self.experiments.take_changed()
    }

    fn shrink(&mut self) -> bool {
        self.experiments.shrink()
    }

    /// Rows, bits of the sample, dropped rows, bytes.
    fn state(&self) -> (usize, u32, u64, usize) {
        let found = &self.experiments;
        (
            found.rows(),
            found.sample_bits(),
            found.dropped_rows(),
            found.nbytes(),
        )
    }

    /// Whether dirty, stale, to be refreshed at once.
    fn flags(&self) -> (bool, bool, bool) {
        let found = &self.experiments;
        (found.is_dirty(), found.is_stale(), found.must_refresh())
    }

    fn final_ms(&self) -> i64 {
        self.experiments.final_ms()
    }

    // Stored form -----------------------------------------------------------------------------------

    fn seal(&mut self) -> [u32; 3] {
        self.experiments.seal()
    }

    fn changed<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        first: u32,
        end: u32,
    ) -> PyResult<Bound<'py, PyDict>> {
        to_python(py, self.experiments.changed(table(name)?, first, end))
    }

    fn live(&self, name: &str, firsts: Vec<u32>) -> PyResult<Vec<u64>> {
        Ok(self.experiments.live(table(name)?, &firsts))
    }

    fn labels(&self) -> Vec<Vec<String>> {
        self.experiments.labels.known.clone()
    }

    fn restore(&mut self, labels: Vec<Vec<String>>, final_ms: i64, sample_bits: u32) {
        self.experiments.restore(labels, final_ms, sample_bits);
    }

    fn load(&mut self, name: &str, columns: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut found = Columns::default();
        for (column, values) in columns {
            let column: String = column.extract()?;
            let values = match column.as_str() {
                "user" => ColumnValues::U64(values.extract()?),
                "label" => ColumnValues::I32(values.extract()?),
                _ => ColumnValues::I64(values.extract()?),
            };
            found.0.push((column, values));
        }
        self.experiments.load(table(name)?, &found).map_err(error)
    }
}

fn table(name: &str) -> PyResult<ExperimentTable> {
    let found = ExperimentTable::ALL
        .into_iter()
        .find(|table| table.name() == name);
    found.ok_or_else(|| error(format!("no table {name:?}")))
}

fn to_python(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    for (name, values) in columns.0 {
        match values {
            ColumnValues::U64(values) => found.set_item(name, values)?,
            ColumnValues::I64(values) => found.set_item(name, values)?,
            ColumnValues::I32(values) => found.set_item(name, values)?,
            _ => return Err(error(format!("column {name:?}"))),
        }
    }
    Ok(found)
}

fn error(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
}

fn overflow(_: Overflow) -> PyErr {
    PyOverflowError::new_err("a sum would pass 2**62")
}
