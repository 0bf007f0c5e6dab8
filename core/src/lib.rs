//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing else here knows Python.

pub mod admission;
pub mod changes;
pub mod components;
pub mod dimensions;
pub mod event_ids;
pub mod hash;
pub mod impressions;
pub mod labels;
pub mod log;
pub mod pair_log;
pub mod panes;
pub mod pending;
pub mod retained;
pub mod slates;
pub mod series;
pub mod spec;
pub mod statistics;

use pyo3::prelude::*;

#[pymodule]
mod _core {}
