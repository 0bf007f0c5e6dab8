//! The rows of tables, as Python iterates over them. Lines are written with the interpreter released.

use std::sync::Mutex;

use arrow_array::RecordBatch;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::arrow::batches_of;
use crate::rows::JsonRows;

/// Rows of one list of lines, at most.
const MAX_ROWS: usize = 4096;
/// Bytes of text from which on a list of lines is whole.
const WHOLE_BYTES: usize = 1 << 20;

/// Iterates over the rows of a table: lists of lines of JSON.
#[pyclass]
pub struct TableRows {
    /// Locked by nobody: it is not `Sync`, and classes of Python must be.
    batches: Mutex<RecordBatchStreamReader>,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    row: usize,
    lines: Lines,
    max_line_bytes: usize,
}

/// Lines in one buffer.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

#[pymethods]
impl TableRows {
    /// `table`: anything with `__arrow_c_stream__`; of a line at most `max_line_bytes` are kept.
    /// TypeError where it is no table, ValueError where its schema cannot be read.
    #[new]
    fn new(table: &Bound<'_, PyAny>, max_line_bytes: usize) -> PyResult<Self> {
        Ok(Self {
            batches: Mutex::new(batches_of(table)?),
            batch: None,
            row: 0,
            lines: Lines::default(),
            max_line_bytes,
        })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// The next lines; ValueError where a column cannot be read.
    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        py.detach(|| self.read()).map_err(PyValueError::new_err)?;
        if self.lines.ends.is_empty() {
            return Ok(None);
        }
        let lines = self.lines.iter().map(|line| PyBytes::new(py, line));
        PyList::new(py, lines.collect::<Vec<_>>()).map(Some)
    }
}

impl TableRows {
    /// Reads the next lines; none at the end of the table.
    fn read(&mut self) -> Result<(), String> {
        self.lines.clear();
        while self.lines.ends.is_empty() {
            let batch = match self.batch.take() {
                Some(batch) => batch,
                None => {
                    self.row = 0;
                    let batches = self.batches.get_mut().map_err(|error| error.to_string())?;
                    match batches.next() {
                        Some(batch) => batch.map_err(|error| error.to_string())?,
                        None => return Ok(()),
                    }
                }
            };
            self.write(&batch)?;
            self.batch = (self.row < batch.num_rows()).then_some(batch);
        }
        Ok(())
    }

    /// Writes rows of a batch from the next on.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let rows = JsonRows::of(batch)?;
        let end = batch.num_rows().min(self.row + MAX_ROWS);
        let Lines { text, ends } = &mut self.lines;
        while self.row < end && text.len() < WHOLE_BYTES {
            let start = text.len();
            rows.write(self.row, text);
            text.truncate(start.saturating_add(self.max_line_bytes));
            ends.push(text.len());
            self.row += 1;
        }
        Ok(())
    }
}

impl Lines {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(&start, &end)| &self.text[start..end])
    }
}
