//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing else here knows Python.

pub mod changes;
pub mod hash;
pub mod spec;

use pyo3::prelude::*;

#[pymodule]
mod _core {}
