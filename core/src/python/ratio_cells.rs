//! The search for the cell in which a ratio moved, as Python sees it.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::counting::ratio_cells::{CellCodes, RankRule, RowColumns, first};

/// The cell of up to three dimensions that tells most of a change, by half of the people, and how
/// many were looked at. `rule`: see `RankRule`. ValueError where columns differ in length.
#[pyfunction]
pub fn first_cell(
    py: Python<'_>,
    codes: Vec<PyReadonlyArray1<'_, u16>>,
    person: PyReadonlyArray1<'_, u32>,
    is_now: PyReadonlyArray1<'_, bool>,
    sums: (PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>),
    rule: (bool, f64, f64),
) -> PyResult<(Option<CellCodes>, usize)> {
    let codes = codes.iter().map(|of| Ok(of.as_slice()?));
    let codes: Vec<&[u16]> = codes.collect::<PyResult<_>>()?;
    let largest = |codes: &&[u16]| codes.iter().max().map_or(0, |code| usize::from(*code) + 1);
    let rows = RowColumns {
        values: codes.iter().map(largest).collect(),
        codes,
        person: person.as_slice()?,
        is_now: is_now.as_slice()?,
        numerator: sums.0.as_slice()?,
        denominator: sums.1.as_slice()?,
    };
    let lengths = [
        rows.is_now.len(),
        rows.numerator.len(),
        rows.denominator.len(),
    ];
    let n = rows.person.len();
    if lengths != [n; 3] || rows.codes.iter().any(|codes| codes.len() != n) {
        return Err(PyValueError::new_err("columns differ in length"));
    }
    let (is_rise, least, scale) = rule;
    let rule = RankRule {
        is_rise,
        least,
        scale,
    };
    Ok(py.detach(|| first(&rows, rule)))
}
