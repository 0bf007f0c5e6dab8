//! Users of the core, for tests that compare them with a slow recomputation.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::changes::Segment;
use crate::hash::mix;
use crate::panes::groups::SegmentCodes;
use crate::python::arrays::{as_arrays, from_arrays};
use crate::spec::{Ring, RowLimit};
use crate::users::{Touch, Users, UsersSpec};

/// Segments whose codes Python says.
#[derive(Default)]
struct Codes {
    codes: Vec<Vec<u32>>,
    moves: Vec<u32>,
}

impl SegmentCodes for Codes {
    fn codes(&self, segment: Segment) -> &[u32] {
        self.codes.get(segment as usize).map_or(&[], Vec::as_slice)
    }

    fn resolve(&self, segment: Segment) -> Segment {
        self.moves.get(segment as usize).copied().unwrap_or(segment)
    }
}

#[pyclass]
pub struct UsersForTests {
    users: Users,
    codes: Codes,
}

#[pymethods]
impl UsersForTests {
    /// `rings`: milliseconds of a pane, and panes.
    #[new]
    fn new(
        rings: Vec<(i64, i64)>,
        unit_ms: i64,
        rollups: Vec<Vec<usize>>,
        kinds: usize,
        limit: (usize, u32),
    ) -> PyResult<Self> {
        let rings = rings
            .into_iter()
            .map(|(pane_ms, panes)| Ring { pane_ms, panes })
            .collect();
        let (rows, of_a_user) = limit;
        let users = Users::new(UsersSpec {
            rings,
            unit_ms,
            rollups,
            kinds,
            limit: RowLimit { rows, of_a_user },
            since_ms: Vec::new(),
        });
        Ok(Self {
            users: users.map_err(PyValueError::new_err)?,
            codes: Codes::default(),
        })
    }

    /// Codes of each segment, and the segment that each is counted as.
    fn set_codes(&mut self, codes: Vec<Vec<u32>>, moves: Vec<u32>) {
        self.codes = Codes { codes, moves };
    }

    fn touch(&mut self, user: u64, item: u64, place: (u32, i64), column: usize, stream_ms: i64) {
        self.users
            .touch(&touch(user, item, place, column), stream_ms);
    }

    fn hold(&mut self, serial: u64, user: u64, item: u64, place: (u32, i64), column: usize) {
        self.users.hold(serial, &touch(user, item, place, column));
    }

    fn release(&mut self, serial: u64) {
        self.users.release(serial);
    }

    fn refresh(&mut self, stream_ms: i64) {
        self.users.refresh(stream_ms, &self.codes);
    }

    fn before_fold(&mut self, segments: Vec<bool>) {
        self.users.before_fold(&segments);
    }

    fn shrink(&mut self, stream_ms: i64) -> bool {
        self.users.shrink(stream_ms)
    }

    fn sums(&self, ring: usize) -> (Vec<i64>, Vec<i64>) {
        let sums = self.users.sums(ring).cloned().unwrap_or_default();
        (sums.key, sums.value)
    }

    fn groups(&self) -> Vec<Vec<i64>> {
        self.users
            .groups()
            .iter()
            .map(|codes| codes.to_vec())
            .collect()
    }

    fn take_changed_rings(&mut self) -> Vec<usize> {
        self.users.take_changed_rings()
    }

    /// Rows, held feedback, bits of the sample, dropped rows, whether dirty.
    fn state(&self) -> (usize, usize, u32, u64, bool) {
        let users = &self.users;
        let is_dirty = users.is_dirty();
        (
            users.rows(),
            users.held(),
            users.sample_bits(),
            users.dropped_rows(),
            is_dirty,
        )
    }

    fn seal(&mut self) -> u32 {
        self.users.seal()
    }

    fn changed<'py>(&self, py: Python<'py>, first: u32, end: u32) -> PyResult<Bound<'py, PyDict>> {
        as_arrays(py, self.users.changed(first, end))
    }

    fn live(&self, firsts: Vec<u32>) -> Vec<u64> {
        self.users.live(&firsts)
    }

    fn load(&mut self, columns: &Bound<'_, PyDict>, stream_ms: i64) -> PyResult<()> {
        let loaded = self.users.load(&from_arrays(columns)?, stream_ms);
        loaded.map_err(PyValueError::new_err)
    }
}

fn touch(user: u64, item: u64, (segment, event_ms): (u32, i64), column: usize) -> Touch {
    Touch {
        user,
        pair: mix(user, item),
        segment,
        event_ms,
        column,
    }
}
