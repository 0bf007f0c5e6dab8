//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing but it, `python` and `for_tests` knows Python.

pub mod admission;
pub mod arms;
pub mod attribution;
pub mod caps;
pub mod changes;
pub mod columns;
pub mod components;
pub mod contribution;
pub mod counting;
pub mod decode;
pub mod dimensions;
pub mod event_ids;
pub mod experiments;
pub mod experiments_spec;
pub mod expiry;
pub mod exposures;
#[cfg(feature = "python")]
mod for_tests;
#[cfg(feature = "python")]
mod for_tests_decoding;
#[cfg(feature = "python")]
mod for_tests_experiments;
#[cfg(feature = "python")]
mod for_tests_users;
pub mod grading;
pub mod groups;
pub mod hash;
pub mod held;
pub mod impressions;
pub mod intervals;
pub mod json;
pub mod kafka;
pub mod labels;
pub mod limbs;
pub mod log;
pub mod moments;
pub mod pair_log;
pub mod panes;
pub mod partition;
pub mod pending;
#[cfg(feature = "python")]
mod python;
pub mod ranking;
pub mod recovery;
pub mod rejected;
pub mod rejoining;
pub mod retained;
pub mod scoring;
pub mod series;
pub mod sessions;
pub mod slate_family;
pub mod slate_values;
pub mod slates;
pub mod snapshot;
pub mod softplus;
pub mod spec;
pub mod standing;
pub mod statistics;
pub mod trial;
pub mod trial_sums;
pub mod user_days;
pub mod user_items;
pub mod user_rows;
pub mod user_sums;
pub mod users;
pub mod versions;
pub mod viewings;

/// The Python module.
#[cfg(feature = "python")]
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::for_tests::slate_amounts;
    #[pymodule_export]
    use crate::for_tests_decoding::{RecordDecoder, read_batches};
    #[pymodule_export]
    use crate::for_tests_experiments::ExperimentsForTests;
    #[pymodule_export]
    use crate::for_tests_users::UsersForTests;
    #[pymodule_export]
    use crate::python::{Core, scan_batches};
    use pyo3::prelude::*;

    /// What a panic becomes, which derives from `BaseException`.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let panic = module.py().get_type::<pyo3::panic::PanicException>();
        module.add("PanicException", panic)
    }
}
