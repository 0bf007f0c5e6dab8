//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing else here knows Python, but for `for_tests`.

pub mod changes;
mod for_tests;
pub mod hash;
pub mod moments;
pub mod ranking;
pub mod scoring;
pub mod slate_family;
pub mod slate_values;
pub mod softplus;
pub mod spec;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::for_tests::{slate_amounts, softplus_for_tests};
}
