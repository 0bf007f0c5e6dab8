//! State, dimensions, panes and sizes of a partition as dictionaries, and back.

use std::collections::BTreeMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::names::log_of;
use crate::counting::Counting;
use crate::panes::PaneStore;
use crate::panes::labels::Labels;
use crate::partition::Partition;
use crate::partition::admission::TopicLog;
use crate::partition::counters;
use crate::partition::event_ids::EventIds;

/// What is stored besides counters, tables and panes, by name.
pub fn state<'py>(partition: &Partition, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("stream_ms", partition.stream_ms)?;
    found.set_item("oldest_ms", partition.oldest_ms)?;
    found.set_item("newest_ms", partition.newest_ms)?;
    let logs = PyDict::new(py);
    for log in &partition.logs {
        logs.set_item(&log.name, of_log(log, py)?)?;
    }
    found.set_item("logs", logs)?;
    let retained = &partition.attribution.retained;
    found.set_item("first_retained", retained.first_kept)?;
    let rollups = partition.counting.panes.segments.rollups.iter();
    let overflowed: Vec<u64> = rollups.map(|rollup| rollup.overflowed).collect();
    found.set_item("segments_overflowed", overflowed)?;
    let experiments = &partition.counting.experiments;
    found.set_item("exposures_final_ms", experiments.final_ms())?;
    found.set_item("first_exposures_ms", experiments.first_exposures_ms())?;
    Ok(found)
}

/// Sets what `state` and `counters` gave, once dimensions are restored and before tables are loaded.
pub fn restore(partition: &mut Partition, state: &Bound<'_, PyDict>) -> PyResult<()> {
    partition.stream_ms = item(state, "stream_ms")?;
    partition.oldest_ms = item(state, "oldest_ms")?;
    partition.newest_ms = item(state, "newest_ms")?;
    partition.counting.stream_ms = partition.stream_ms;
    let logs: BTreeMap<String, Bound<'_, PyDict>> = item(state, "logs")?;
    for (name, stored) in &logs {
        let log = log_of(partition, name)?;
        let log = &mut partition.logs[log];
        log.next_offset = item(stored, "next_offset")?;
        log.arrival_ms = item(stored, "arrival_ms")?;
        log.idle_ms = item(stored, "idle_ms")?;
        counters::restore(counters::OF_LOG, log, &item(stored, "counters")?);
        let rejected: BTreeMap<String, u64> = item(stored, "rejected")?;
        for (reason, count) in rejected {
            log.restore_rejected(&reason, count);
        }
    }
    partition.attribution.retained.first_kept = item(state, "first_retained")?;
    let overflowed: Vec<u64> = item(state, "segments_overflowed")?;
    let rollups = partition.counting.panes.segments.rollups.iter_mut();
    for (rollup, overflowed) in rollups.zip(overflowed) {
        rollup.overflowed = overflowed;
    }
    counters::restore(counters::OF_PARTITION, partition, &item(state, "counters")?);
    Ok(())
}

/// Values of each dimension (texts, events, kept), and the segments: rollup and codes of each.
pub fn dimensions<'py>(counting: &Counting, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let dimensions = &counting.dimensions;
    let values = PyList::empty(py);
    for of_one in &dimensions.values {
        let entry = PyDict::new(py);
        entry.set_item("texts", &of_one.texts)?;
        entry.set_item("events", &of_one.events)?;
        entry.set_item("kept", of_one.kept())?;
        entry.set_item("unnamed", of_one.unnamed())?;
        values.append(entry)?;
    }
    let found = PyDict::new(py);
    found.set_item("values", values)?;
    let segments = counting.panes.segments.rows().iter();
    let segments: Vec<(u32, Vec<u32>)> = segments
        .map(|(rollup, codes)| (*rollup, codes.to_vec()))
        .collect();
    found.set_item("segments", segments)?;
    Ok(found)
}

/// Bytes and rows of what is held, by name.
pub fn sizes<'py>(partition: &Partition, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (attribution, counting) = (&partition.attribution, &partition.counting);
    let ids = || partition.logs.iter().flat_map(|log| &log.ids);
    let users = counting.users.as_ref();
    let items = counting.listing.counts.as_ref();
    let sizes = [
        ("event_ids", ids().map(EventIds::bytes).sum()),
        ("event_ids_rows", ids().map(|ids| ids.log.len()).sum()),
        ("impressions", attribution.impressions.bytes()),
        ("impressions_rows", attribution.impressions.log.len()),
        ("slates", attribution.slates.bytes()),
        ("slates_rows", attribution.slates.len()),
        ("retained", attribution.retained.bytes()),
        ("weights", attribution.weights.bytes()),
        ("own", attribution.values.bytes() + attribution.met.bytes()),
        ("retained_rows", attribution.retained.rows.log.len()),
        ("sessions", partition.sessions.rows.bytes()),
        ("sessions_rows", partition.sessions.rows.len()),
        ("viewings", counting.viewings.rows.bytes()),
        ("viewings_rows", counting.viewings.rows.len()),
        ("feedback_rows", attribution.pending.len()),
        ("users", users.map_or(0, |users| users.nbytes())),
        ("users_rows", users.map_or(0, |users| users.rows())),
        ("user_days", counting.experiments.nbytes()),
        ("user_days_rows", counting.experiments.user_rows()),
        ("units", counting.units.sizes().1),
        ("units_rows", counting.units.sizes().0),
        ("exposures", counting.experiments.exposure_rows().1),
        ("exposures_rows", counting.experiments.exposure_rows().0),
        ("panes", counting.panes.bytes()),
        ("combinations", counting.dimensions.bytes()),
        ("combinations_rows", counting.dimensions.len()),
        (
            "items",
            items.map_or(0, |items| items.bytes()) + attribution.items.bytes(),
        ),
        ("items_rows", items.map_or(0, |items| items.len())),
    ];
    let found = PyDict::new(py);
    for (name, size) in sizes {
        found.set_item(name, size)?;
    }
    Ok(found)
}

fn of_log<'py>(log: &TopicLog, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("next_offset", log.next_offset)?;
    found.set_item("arrival_ms", log.arrival_ms)?;
    found.set_item("idle_ms", log.idle_ms)?;
    found.set_item("rejected", &log.rejected)?;
    found.set_item("counters", counters::values(counters::OF_LOG, log))?;
    Ok(found)
}

fn item<'py, T: for<'a> FromPyObject<'a, 'py>>(
    dict: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<T> {
    let found = dict.get_item(name)?;
    let found =
        found.ok_or_else(|| PyValueError::new_err(format!("stored state lacks {name:?}")))?;
    found.extract().map_err(Into::into)
}

/// The panes of windows and totals, or of a series by its place: alert series, then those of
/// items.
pub fn panes_of(partition: &Partition, series: Option<usize>) -> PyResult<&dyn PaneStore> {
    let counting = &partition.counting;
    let Some(at) = series else {
        return Ok(&counting.panes);
    };
    let mut found: Vec<&dyn PaneStore> = Vec::new();
    found.extend(counting.series.iter().map(|x| &x.panes as &dyn PaneStore));
    found.extend((counting.listing.counts.iter()).map(|x| x as &dyn PaneStore));
    found.get(at).copied().ok_or_else(no_series)
}

pub fn panes_mut(partition: &mut Partition, series: Option<usize>) -> PyResult<&mut dyn PaneStore> {
    let counting = &mut partition.counting;
    let Some(at) = series else {
        return Ok(&mut counting.panes);
    };
    let mut found: Vec<&mut dyn PaneStore> = Vec::new();
    for series in &mut counting.series {
        found.push(&mut series.panes);
    }
    if let Some(counts) = &mut counting.listing.counts {
        found.push(counts);
    }
    found.into_iter().nth(at).ok_or_else(no_series)
}

/// The labels of a series by its place.
pub fn labels_of(partition: &mut Partition, series: usize) -> PyResult<&mut Labels> {
    let counting = &mut partition.counting;
    let alerts = counting.series.iter_mut().map(|x| &mut x.labels);
    let items = counting.listing.counts.iter_mut().map(|x| &mut x.labels);
    alerts.chain(items).nth(series).ok_or_else(no_series)
}

fn no_series() -> PyErr {
    PyValueError::new_err("no such series")
}
