//! Sums over the units of all partitions, as Python sees them.

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;

use super::arrays::{as_arrays, from_arrays};
use super::names::overflow;
use crate::columns::Columns;
use crate::experiments::units;
use crate::hash::HashKey;
use crate::spec::experiments::UnitSpec;

/// What sums over units are made from; `bits`: of each unit the samples of all partitions, values and
/// rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnitSumsSpec {
    hash_key: HashKey,
    dimensions: usize,
    units: Vec<UnitSpec>,
    bits: Vec<(u32, u32)>,
}

/// First key of each experiment, day → columns, first exposures (ms).
type UnitSumsRow<'py> = (
    Bound<'py, numpy::PyArray1<i64>>,
    Vec<(i64, Bound<'py, PyDict>)>,
    Vec<Option<i64>>,
);

/// Adds up the rows of units of all partitions, and makes sums over units of them.
#[pyclass(module = "streamer._core")]
pub struct UnitSums {
    sums: units::UnitTotals,
}

#[pymethods]
impl UnitSums {
    /// Of no partition yet. `spec`: JSON; ValueError where it asks for what there is not.
    #[new]
    fn new(spec: &[u8]) -> PyResult<Self> {
        let spec: UnitSumsSpec = serde_json::from_slice(spec)
            .map_err(|error| PyValueError::new_err(format!("spec of units: {error}")))?;
        let place = (spec.hash_key, spec.dimensions);
        let sums = units::UnitTotals::new(spec.units, place, spec.bits);
        Ok(Self {
            sums: sums.map_err(PyValueError::new_err)?,
        })
    }

    /// Adds the stored rows of a partition, the oldest blobs first. ValueError where columns do not fit.
    fn add(
        &mut self,
        py: Python<'_>,
        exposures: Vec<Bound<'_, PyDict>>,
        days: Vec<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let columns = |blobs: &[Bound<'_, PyDict>]| {
            let columns = blobs.iter().map(from_arrays);
            columns.collect::<PyResult<Vec<Columns>>>()
        };
        let (exposures, days) = (columns(&exposures)?, columns(&days)?);
        let sums = &mut self.sums;
        py.detach(move || sums.add(&exposures, &days))
            .map_err(PyValueError::new_err)
    }

    /// The sums of each unit. OverflowError where one would pass its bound.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<UnitSumsRow<'py>>> {
        let sums = &mut self.sums;
        let found = py.detach(move || sums.finish()).map_err(overflow)?;
        let rows = found.into_iter().map(|of_unit| {
            let days = of_unit.days.into_iter();
            let days = days.map(|(day, columns)| Ok((day, as_arrays(py, columns)?)));
            Ok((
                of_unit.first_keys.into_pyarray(py),
                days.collect::<PyResult<_>>()?,
                of_unit.first_exposures_ms,
            ))
        });
        rows.collect()
    }
}
