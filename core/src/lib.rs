//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing else here knows Python, but for
//! `for_tests` and `for_tests_users`.

pub mod changes;
pub mod contribution;
mod for_tests;
mod for_tests_users;
pub mod groups;
pub mod hash;
pub mod moments;
pub mod pending;
pub mod ranking;
pub mod scoring;
pub mod slate_family;
pub mod slate_values;
pub mod softplus;
pub mod spec;
pub mod user_items;
mod user_rows;
pub mod user_sums;
pub mod users;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::for_tests::{slate_amounts, softplus_for_tests};
    #[pymodule_export]
    use crate::for_tests_users::UsersForTests;
}
