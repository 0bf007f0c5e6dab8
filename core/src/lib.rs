//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing but it, `python` and `for_tests` knows Python.

pub mod admission;
pub mod attribution;
pub mod changes;
pub mod columns;
pub mod components;
pub mod contribution;
pub mod counting;
pub mod decode;
pub mod dimensions;
pub mod event_ids;
pub mod expiry;
#[cfg(feature = "python")]
mod for_tests;
#[cfg(feature = "python")]
mod for_tests_decoding;
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
pub mod log;
pub mod moments;
pub mod pair_log;
pub mod panes;
pub mod partition;
pub mod pending;
pub mod ranking;
pub mod retained;
pub mod scoring;
pub mod series;
pub mod sessions;
pub mod slate_family;
pub mod slate_values;
pub mod slates;
pub mod softplus;
pub mod spec;
pub mod statistics;
pub mod user_items;
pub mod user_sums;
pub mod users;
pub mod viewings;

#[cfg(feature = "python")]
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::for_tests::{slate_amounts, softplus_for_tests};
    #[pymodule_export]
    use crate::for_tests_decoding::{RecordDecoder, read_batches};
    #[pymodule_export]
    use crate::for_tests_users::UsersForTests;
}
