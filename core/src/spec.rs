//! What Python says once, when a partition is made: settings, and which statistics the metrics need.

pub mod experiments;
pub mod records;
pub mod sums;

use serde::Deserialize;

use crate::hash::HashKey;
use crate::spec::experiments::ExperimentsSpec;
use crate::spec::records::RecordSettings;
use crate::spec::sums::SlatesSpec;
use crate::spec::sums::{OwnSum, Statistic, SumSpec};

/// The whole; times are in milliseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub hash_key: HashKey,
    pub time: Time,
    pub attribution: AttributionSpec,
    pub feedback: FeedbackSpec,
    pub dimensions: Vec<Dimension>,
    pub limits: Limits,
    /// Where fields stand in records, and their bounds.
    pub records: RecordSettings,
    pub logs: Vec<LogSpec>,
    /// One ring of panes for each window length.
    pub rings: Vec<Ring>,
    /// What is kept of the same windows a day before.
    #[serde(default)]
    pub day_before: DayBefore,
    /// What is counted only from some time on.
    #[serde(default)]
    pub since: Since,
    pub rollups: Vec<RollupSpec>,
    /// Which families of metrics are computed.
    pub families: Vec<String>,
    /// Where each statistic stands in a cell.
    pub statistics: Vec<Statistic>,
    pub items: ItemMetricsSpec,
    #[serde(default)]
    pub own_sums: Vec<OwnSum>,
    pub alerts: Alerts,
    pub slates: SlatesSpec,
    #[serde(default)]
    pub experiments: ExperimentsSpec,
}

/// A topic that is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSpec {
    pub name: String,
    /// Place among `records.sources`.
    pub source: usize,
    /// Of topics that hold events of one kind, each has another one.
    pub rank: u16,
    /// Which events it holds.
    pub kinds: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    pub max_lateness_ms: i64,
    pub max_skew_ms: i64,
    pub dedup_horizon_ms: i64,
    pub conversion_dedup_horizon_ms: i64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributionSpec {
    pub click_ms: i64,
    pub conversion_ms: i64,
    pub session_gap_ms: i64,
    /// How long after an impression feedback can still change its grade.
    pub feedback_horizon_ms: i64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackSpec {
    /// Configured kinds of the clicks topic; `click` is the first.
    pub kinds: Vec<String>,
    /// Grade that each kind gives, that of conversions last; 0: none.
    pub grades: Vec<u8>,
    /// Kinds that the metrics of users look at; conversions come last, if they are among them.
    pub user_kinds: usize,
    pub counts_conversions_of_users: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    pub name: String,
    /// Values that are always kept.
    pub values: Vec<String>,
    /// How many others are kept.
    pub max_values: usize,
    /// Whether of too many others a sample stays: half of them each time that there are too many.
    /// Else those with the smallest hashes stay.
    #[serde(default)]
    pub is_sampled: bool,
}

/// Bounds of memory: beyond one a counter rises.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Segments of a rollup of several dimensions.
    pub segments: usize,
    pub open_impressions: usize,
    pub open_feedback: usize,
    pub pair_feedback: usize,
    pub open_sessions: usize,
    pub user_items: usize,
    pub user_days: usize,
    /// Rows of one user in each table of users.
    pub user_rows: u32,
    pub event_ids: usize,
    /// Members of a slate.
    pub slate_items: usize,
    /// Magnitude of ratings, and of the scores that they are compared with.
    pub rating: f64,
    /// Combinations of values that an alert watches.
    pub series_labels: usize,
    /// Bytes of one record batch, inflated.
    pub inflated_bytes: usize,
    pub rejected: RejectedLimits,
}

/// How much of what is fetched may be kept.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedLimits {
    /// So many records of each fetch …
    pub records: usize,
    /// … and one more for so many fetched bytes, …
    pub fetched_bytes_a_record: usize,
    /// … at most so many.
    pub most_records: usize,
    /// So many bytes of each fetch …
    pub bytes: usize,
    /// … and so many for each fetched one.
    pub bytes_a_fetched_byte: usize,
}

/// A bound of rows, beyond which a sample of the users is kept, and of those of one user.
#[derive(Clone, Copy, Debug)]
pub struct RowLimit {
    pub rows: usize,
    pub of_a_user: u32,
}

impl Limits {
    /// Of what users saw and did last.
    pub fn of_items(&self) -> RowLimit {
        self.limit(self.user_items)
    }

    /// Of what users did on each day.
    pub fn of_days(&self) -> RowLimit {
        self.limit(self.user_days)
    }

    fn limit(&self, rows: usize) -> RowLimit {
        RowLimit {
            rows,
            of_a_user: self.user_rows,
        }
    }
}

/// Dimensions by whose values sums are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollupSpec {
    /// Their places, ascending.
    pub dimensions: Vec<usize>,
    /// Codes of the statistics that are kept, [first, stop).
    pub kept: Vec<(u32, u32)>,
    /// Whether sums over users are kept, too.
    pub has_users: bool,
    /// Those that count only from some time on, likewise.
    #[serde(default)]
    pub since: Vec<(u32, u32, CountFrom)>,
}

/// The panes of one window length.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Ring {
    pub pane_ms: i64,
    pub panes: i64,
}

impl Ring {
    /// Number of the oldest pane that the window at `stream_ms` still covers.
    pub fn oldest(&self, stream_ms: i64) -> i64 {
        stream_ms.div_euclid(self.pane_ms) - self.panes + 1
    }
}

/// Windows, by number from 1, that are compared with the same one a day before: each has a ring of a
/// day and a window. It keeps statistics with these codes, [first, stop).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DayBefore {
    pub rings: Vec<(u64, Ring)>,
    pub statistics: Vec<(u32, u32)>,
}

/// From when on (ms) something counts; `is_new`: it was not there when rows were stored.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountFrom {
    pub since_ms: i64,
    pub is_new: bool,
}

/// Of rings by their number, and of statistics by their codes, [first, stop).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    pub rings: Vec<(u64, CountFrom)>,
    pub statistics: Vec<(u32, u32, CountFrom)>,
    /// Of users, by place of the window.
    pub users_ms: Vec<i64>,
    pub items: ItemsSince,
}

/// Of counts of items: by place of their window, and of the cut-off; clicks, lists and people are
/// apart.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemsSince {
    pub rings_ms: Vec<i64>,
    pub cutoffs_ms: Vec<i64>,
    pub clicked_ms: i64,
    pub lists_ms: Vec<i64>,
    pub people_ms: i64,
    pub pairs_ms: i64,
}

/// What is counted of items and lists.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemMetricsSpec {
    /// None: items are not counted one by one.
    pub counts: Option<ItemCountsSpec>,
    /// Whether lists are counted: what impressions show is kept.
    pub has_lists: bool,
    /// The place of the dimension that is the category of items; none: a field says it.
    pub category: Option<usize>,
}

/// Counts of each item.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemCountsSpec {
    /// Places of the dimensions of each rollup by which items are counted, ascending.
    pub rollups: Vec<Vec<usize>>,
    pub rings: Vec<Ring>,
    /// Cut-offs, ascending.
    pub cutoffs: Vec<u32>,
    /// Whether pairs of items are counted, too.
    pub has_pairs: bool,
    /// Labels of each rollup, and rows of the panes of one ring.
    pub labels: usize,
    pub limit: usize,
}

/// What alerts watch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alerts {
    pub sums: Vec<SumSpec>,
    pub series: Vec<SeriesSpec>,
    /// Rows of one ratio, in place of all counts.
    #[serde(default)]
    pub rows: Option<RatioRowsSpec>,
}

/// Places of the sums of a metric: of its numerator, its denominator and the high limbs of both.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioSums {
    pub above: usize,
    pub below: usize,
    pub high: Option<usize>,
    pub below_high: Option<usize>,
}

impl RatioSums {
    /// Which of the four a sum is.
    pub fn parts(self, sum: usize) -> impl Iterator<Item = usize> {
        let parts = [
            Some(self.above),
            Some(self.below),
            self.high,
            self.below_high,
        ];
        (0..parts.len()).filter(move |part| parts[*part] == Some(sum))
    }
}

/// Rows of one ratio by all dimensions together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioRowsSpec {
    pub ratio: RatioSums,
    /// Then and now: from (ms), to before.
    pub periods: [(i64, i64); 2],
    /// Rows beyond which a sample of the people is kept.
    pub limit: usize,
}

/// The sums of one metric by some dimensions, in rings of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesSpec {
    pub ratio: RatioSums,
    /// Places of the dimensions, ascending.
    pub dimensions: Vec<usize>,
    pub rings: Vec<Ring>,
    /// A pane of these milliseconds has one of 16 places of its own; none: places are groups of
    /// users.
    pub by_time_ms: Option<i64>,
}
