//! Columns of the core as numpy arrays, and back.

use std::collections::{BTreeMap, HashMap};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::{ColumnValues, Columns};

pub fn as_arrays<'py>(py: Python<'py>, columns: Columns) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, values) in columns.0 {
        match values {
            ColumnValues::U64(values) => found.set_item(name, values.into_pyarray(py))?,
            ColumnValues::I64(values) => found.set_item(name, values.into_pyarray(py))?,
            ColumnValues::I32(values) => found.set_item(name, values.into_pyarray(py))?,
            ColumnValues::I16(values) => found.set_item(name, values.into_pyarray(py))?,
            ColumnValues::F64(values) => found.set_item(name, values.into_pyarray(py))?,
            ColumnValues::Bool(values) => found.set_item(name, values.into_pyarray(py))?,
        }
    }
    Ok(found)
}

/// Columns of each value of a dimension.
pub type ByValue<'py> = HashMap<String, Bound<'py, PyDict>>;

/// The same of each value of a dimension.
pub fn each_as_arrays<'py>(
    py: Python<'py>,
    found: BTreeMap<String, Columns>,
) -> PyResult<ByValue<'py>> {
    let arrays = |(value, columns)| Ok((value, as_arrays(py, columns)?));
    found.into_iter().map(arrays).collect()
}

/// Long enough for a thread that waits for the interpreter to wake up and take it.
const TURN: std::time::Duration = std::time::Duration::from_micros(50);

/// Copies columns; other threads get their turn then.
pub fn from_arrays(dict: &Bound<'_, PyDict>) -> PyResult<Columns> {
    let mut columns = Columns::default();
    for (name, array) in dict.iter() {
        columns.0.push((name.extract()?, values_of(&array)?));
    }
    dict.py().detach(|| std::thread::sleep(TURN));
    Ok(columns)
}

fn values_of(array: &Bound<'_, PyAny>) -> PyResult<ColumnValues> {
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, u64>>() {
        return Ok(ColumnValues::U64(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, i64>>() {
        return Ok(ColumnValues::I64(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, i32>>() {
        return Ok(ColumnValues::I32(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, i16>>() {
        return Ok(ColumnValues::I16(found.as_slice()?.to_vec()));
    }
    if let Ok(found) = array.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(ColumnValues::F64(found.as_slice()?.to_vec()));
    }
    let found = array.extract::<PyReadonlyArray1<'_, bool>>()?;
    Ok(ColumnValues::Bool(found.as_slice()?.to_vec()))
}
