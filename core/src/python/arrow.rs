//! Tables of other libraries, by Arrow's PyCapsule interface: pandas, Polars, pyarrow and DuckDB
//! have it. No column is copied.

use std::ffi::CStr;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const METHOD: &str = "__arrow_c_stream__";
const NAME: &CStr = c"arrow_array_stream";

/// The record batches of a table. TypeError where it has no Arrow stream, ValueError where its schema
/// cannot be read.
pub fn batches_of(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    if !table.hasattr(METHOD)? {
        let kind = table.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "{kind} is no table: it has no {METHOD}"
        )));
    }
    let capsule = table.call_method0(METHOD)?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(NAME))?;
    let stream = stream.cast::<FFI_ArrowArrayStream>().as_ptr();
    // The capsule, which lives until the end of this function, holds a stream, as its name says. The
    // reader takes the stream out of it.
    #[expect(unsafe_code)]
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream) };
    reader.map_err(|error| PyValueError::new_err(error.to_string()))
}
