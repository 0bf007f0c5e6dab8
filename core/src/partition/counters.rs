//! Counters. Each is a row of a table: its name, its unit, how it is shown, how partitions add up, and
//! where it is. The comment above it is its help text. Python has the rows from here: manifests,
//! readers and `/metrics` follow. What counts is a field that is added to where it happens.

use std::collections::BTreeMap;

use crate::kinds::FeedbackKind;
use crate::panes::labels::Labels;
use crate::partition::Partition;
use crate::partition::admission::TopicLog;

/// A counter of a `T`.
pub struct Counter<T> {
    /// Its name, under which it is stored; its unit; help text, kind and formula of its series (where
    /// none shows it: hidden); how partitions add up, sum or max. Those with one text before a dot are
    /// one series, with what stands behind the dot as label.
    declared: [&'static str; 6],
    get: fn(&T) -> u64,
    /// None: it follows from what is loaded.
    set: Option<fn(&mut T, u64)>,
}

/// Makes counters of rows: `name = unit, kind(formula), how partitions add up, at(where);`. That is a
/// place, or what reads it, and what puts it back where it does not follow from what is loaded.
macro_rules! counters {
    ($($(#[doc = $about:literal])+
        $name:literal = $unit:literal, $kind:ident $(($formula:literal))?, $over:ident,
            at($($access:tt)+);
    )+) => {
        &[$(Counter {
            declared: [
                $name,
                $unit,
                concat!($($about),+),
                stringify!($kind),
                concat!($($formula)?),
                stringify!($over),
            ],
            get: get!($($access)+),
            set: set!($($access)+),
        }),+]
    };
}

macro_rules! get {
    ($of:ident . $($place:tt)+) => { |$of| $of.$($place)+ };
    ($get:expr $(, $set:expr)?) => { $get };
}

macro_rules! set {
    ($of:ident . $($place:tt)+) => { Some(|$of, n| $of.$($place)+ = n) };
    ($get:expr, $set:expr) => { Some($set) };
    ($get:expr) => { None };
}

/// Of each log.
pub const OF_LOG: &[Counter<TopicLog>] = counters! {
    /// Events that were accepted and counted.
    "accepted" = "events", counter("accepted events"), sum, at(log.accepted);
    /// Copies of an accepted event_id within the horizon.
    "duplicates" = "events",
        counter("events whose event_id was accepted within dedup_horizon"), sum,
        at(log.duplicates);
    /// Events later than max_lateness; dead-lettered.
    "late" = "events", counter("events with arrival clock - ts > max_lateness"), sum, at(log.late);
    /// Records that a source excludes from counting.
    "ignored" = "records", counter("records of a kind in kind.ignored"), sum, at(log.ignored);
    /// Accepted events without a user. They count in no metric of users.
    "anonymous" = "events", counter("accepted events without a user"), sum, at(log.anonymous);
    /// Values of dimensions that were cut because they are too long.
    "cut_values" = "values",
        counter("values of dimensions of more than 128 characters, in accepted events"), sum,
        at(log.cut_values);
    /// Records below the watermark that it took while it was idle.
    "join_gap" = "records", hidden, sum, at(log.join_gap);
    /// Event ids that were forgotten because there were too many.
    "evicted_early" = "ids", hidden, sum, at(forgotten_ids, |log, n| log.ids[0].evicted_early = n);
};

/// Of the whole partition.
pub const OF_PARTITION: &[Counter<Partition>] = counters! {
    /// Feedback that joined no impression and can no longer join one.
    "unattributed.clicks" = "events", counter("final and joined to nothing"), sum,
        at(of.attribution.unattributed[0]);
    /// Likewise conversions.
    "unattributed.conversions" = "events", counter("final and joined to nothing"), sum,
        at(of.attribution.unattributed[1]);
    /// Feedback whose dimensions may still change; not in the totals yet.
    "unsettled.clicks" = "events", gauge("accepted feedback - settled feedback"), sum,
        at(|of| unsettled(of, false));
    /// Likewise conversions.
    "unsettled.conversions" = "events", gauge("accepted feedback - settled feedback"), sum,
        at(|of| unsettled(of, true));
    /// Records older than the watermark of their topic while it was idle. Joins may have missed
    /// them.
    "join_gap" = "records", counter("records below the watermark of an idle topic"), sum,
        at(|of| of.logs.iter().map(|log| log.join_gap).sum());
    /// Feedback whose segment changed after it was settled, because its request id came back for
    /// another slate. Windows follow the change, totals do not.
    "settled_moved" = "events",
        counter("settled feedback that joined another impression later"), sum,
        at(of.attribution.settled_moved);
    /// What left memory before its time, because a bound was hit.
    "evicted_early.event_ids" = "ids", hidden, sum,
        at(|of| of.logs.iter().map(forgotten_ids).sum());
    /// Likewise open impressions.
    "evicted_early.impressions" = "rows", hidden, sum, at(of.attribution.evicted_early.impressions);
    /// Likewise impressions that their slates wait for.
    "evicted_early.retained" = "rows", hidden, sum, at(of.attribution.evicted_early.retained);
    /// Likewise feedback.
    "evicted_early.feedback" = "rows", hidden, sum, at(of.attribution.evicted_early.feedback);
    /// Likewise what slates did not show.
    "evicted_early.probes" = "rows", hidden, sum, at(of.attribution.evicted_early.probes);
    /// Likewise sessions.
    "evicted_early.sessions" = "rows", hidden, sum, at(of.sessions.rows.evicted_early);
    /// Likewise viewings.
    "evicted_early.viewings" = "rows", hidden, sum, at(of.counting.viewings.rows.evicted_early);
    /// Times that a segment beyond limits.segments was asked for, in all rollups.
    "segments_overflowed" = "times", hidden, sum,
        at(|of| of.counting.panes.segments.rollups.iter().map(|of| of.overflowed).sum());
    /// Rows that were not kept because their user had too many.
    "dropped_user_rows" = "rows", hidden, sum,
        at(|of| of.counting.users.as_ref().map_or(0, |users| users.items.dropped_rows),
            |of, n| of.counting.users.iter_mut().for_each(|users| users.items.dropped_rows = n));
    /// Likewise days of users, and of other units.
    "dropped_day_rows" = "rows", hidden, sum,
        at(|of| of.counting.experiments.dropped_rows() + of.counting.units.dropped_rows(),
            |of, n| of.counting.experiments.set_dropped_rows(n));
    /// Alert series of which some labels are `other` because there are too many.
    "full_alert_series" = "series", hidden, sum,
        at(|of| full(of.counting.series.iter().map(|of| &of.labels)));
    /// Likewise counts of items.
    "full_item_counts" = "series", hidden, sum,
        at(|of| full(of.counting.listing.counts.iter().map(|of| &of.labels)));
    /// Events that named an experiment for which there was no room, or that put another out.
    "left_out_experiments" = "events", hidden, sum, at(of.counting.experiments.found.left_out);
    /// Users in the sums over users are one in 2 to the power of these.
    "sample_bits" = "bits", hidden, max,
        at(|of| of.counting.users.as_ref().map_or(0, |users| users.sample_bits()).into(),
            |of, n| of.counting.users.iter_mut().for_each(|users| users.set_sample_bits(n as u32)));
    /// Likewise users in the sums of experiments.
    "day_sample_bits" = "bits", hidden, max,
        at(|of| of.counting.experiments.sample_bits().into(),
            |of, n| of.counting.experiments.restore_sample(n as u32));
    /// Numbers of combinations of values that were given out.
    "combinations" = "numbers", hidden, sum,
        at(|of| of.counting.dimensions.len() as u64,
            |of, n| of.counting.dimensions.resize(n as usize));
};

fn forgotten_ids(log: &TopicLog) -> u64 {
    log.ids.iter().map(|ids| ids.evicted_early).sum()
}

fn unsettled(partition: &Partition, of_conversions: bool) -> u64 {
    let pending = partition.attribution.pending.iter();
    let counted = pending.filter(|(_, feedback)| {
        !feedback.is_settled
            && feedback.kind != FeedbackKind::ConversionLine
            && feedback.is_conversion() == of_conversions
    });
    counted.count() as u64
}

fn full<'a>(labels: impl Iterator<Item = &'a Labels>) -> u64 {
    labels.filter(|labels| labels.is_full()).count() as u64
}

/// What is declared of them, for Python.
pub fn declared<T>(counters: &[Counter<T>]) -> Vec<[&'static str; 6]> {
    counters.iter().map(|counter| counter.declared).collect()
}

/// The counters of one, by name.
pub fn values<T>(counters: &[Counter<T>], of: &T) -> BTreeMap<&'static str, u64> {
    let values = counters.iter();
    values
        .map(|counter| (counter.declared[0], (counter.get)(of)))
        .collect()
}

/// Puts back what `values` gave; one that was not stored stays as it is.
pub fn restore<T>(counters: &[Counter<T>], of: &mut T, stored: &BTreeMap<String, u64>) {
    for counter in counters {
        if let (Some(set), Some(value)) = (counter.set, stored.get(counter.declared[0])) {
            set(of, *value);
        }
    }
}
