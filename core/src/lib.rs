//! The core of streamer: record batches → typed events → counted state of one partition.
//!
//! No I/O, no clock, no settings file: what it counts is a function of the logs. This file is the
//! Python module `streamer._core`; nothing but it and `python` knows Python.

#![cfg_attr(not(feature = "python"), allow(dead_code, unused_imports))] // Python uses all

mod attribution;
mod changes;
mod columns;
mod counting;
mod decode;
mod evaluation;
mod experiments;
mod formats;
mod hash;
mod json;
mod kafka;
mod kinds;
mod limbs;
mod lines;
mod log;
mod logarithms;
mod moments;
mod own_sums;
mod panes;
mod partition;
#[cfg(feature = "python")]
mod python;
mod rows;
mod slates;
mod spec;
mod users;
mod versions;
mod weights;

/// The Python module.
#[cfg(feature = "python")]
#[pyo3::pymodule]
mod _core {
    use crate::counting::{ratio_cells, statistics, sums};
    use crate::decode::fields;
    use crate::experiments;
    use crate::kinds::{Action, EventKind, REFUND};
    use crate::panes::{self, item_rows, rings};
    use crate::partition::counters;
    use crate::partition::tables::Table;
    #[pymodule_export]
    use crate::python::evaluator::Evaluator;
    use crate::python::names;
    #[pymodule_export]
    use crate::python::ratio_cells::first_cell;
    #[pymodule_export]
    use crate::python::records::{
        RecordDecoder, arms_said, depth, hash_of, partition_of, people_of, read_batches,
    };
    #[pymodule_export]
    use crate::python::rekeying::Rekeyer;
    #[pymodule_export]
    use crate::python::stamping::{LineStamper, reason_of_no_topic};
    #[pymodule_export]
    use crate::python::table_rows::TableRows;
    #[pymodule_export]
    use crate::python::unit_sums::UnitSums;
    #[pymodule_export]
    use crate::python::{Core, scan_batches, verify_batches};
    use crate::users::sums as user_sums;
    use pyo3::prelude::*;

    /// Adds what a panic becomes, which derives from `BaseException`; kinds and fields of events; widths
    /// of packed integers; sums over events by name, each with how many of its integers are 1; groups of
    /// users; and the names of the stored tables of experiments and of units, in the order in which they
    /// are loaded.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let panic = module.py().get_type::<pyo3::panic::PanicException>();
        module.add("PanicException", panic)?;
        let kinds = EventKind::ALL.map(|kind| (kind.name(), kind.event_type()));
        module.add("EVENT_KINDS", kinds.to_vec())?;
        module.add("REFUND", REFUND)?;
        module.add("ACTIONS", Action::ALL.map(Action::name).to_vec())?;
        module.add("FIELDS", names::fields())?;
        module.add("FIELD_BOUNDS", fields::bounds().collect::<Vec<_>>())?;
        module.add("PANE_BITS", rings::PANE_BITS)?;
        module.add("STAT_BITS", panes::STAT_BITS)?;
        module.add("PLACE_BITS", item_rows::PLACE_BITS)?;
        module.add("ITEM_LABEL_BITS", item_rows::LABEL_BITS)?;
        module.add("ITEM_CATEGORY_BITS", item_rows::CATEGORY_BITS)?;
        module.add("PAIR_ITEM_BITS", item_rows::PAIR_ITEM_BITS)?;
        module.add("TOTAL_RING", rings::TOTALS)?;
        let units = sums::TABLE.iter().map(|(name, unit, _)| (*name, *unit));
        module.add("SUMS", units.collect::<Vec<_>>())?;
        module.add("COUNTERS", counters::declared(counters::OF_PARTITION))?;
        module.add("LOG_COUNTERS", counters::declared(counters::OF_LOG))?;
        module.add("RATIO_GROUPS", ratio_cells::GROUPS)?;
        module.add("USER_GROUPS", statistics::GROUPS)?;
        module.add("USER_STAT_BITS", user_sums::STAT_BITS)?;
        module.add("USER_SEGMENT_BITS", user_sums::SEGMENT_BITS)?;
        let of_experiments =
            experiments::ExperimentTable::ALL.map(experiments::ExperimentTable::name);
        module.add("EXPERIMENT_TABLES", of_experiments)?;
        let of_units = experiments::units::UnitTable::ALL.map(experiments::units::UnitTable::name);
        module.add("UNIT_TABLES", of_units)?;
        let migrated = Table::all(0).filter(|table| table.is_migrated());
        module.add(
            "MIGRATED_TABLES",
            migrated.map(Table::name).collect::<Vec<_>>(),
        )
    }
}
