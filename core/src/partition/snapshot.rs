//! Tables as they are stored: which rows changed, as columns.
//!
//! Rows of logs never change: those with numbers in a range are asked for. Other rows change and are
//! stored in versions: those that last changed in a range of epochs are asked for, and of the
//! versions with one id the newest counts.

use crate::attribution::pair_log::OfPair;
use crate::attribution::retained::Retained;
use crate::changes::Kind;
use crate::columns::{Columns, Values};
use crate::counting::intervals::{Row, Summary};
use crate::counting::viewings::Report;
use crate::decode::Topic;
use crate::experiments;
use crate::hash::NONE;
use crate::partition::Partition;
use crate::partition::admission::NEVER;
use crate::users::items;

/// A stored table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    EventIds(Topic),
    Impressions,
    Retained,
    Feedback,
    Sessions,
    Viewings,
    UserItems,
    OfExperiments(experiments::Table),
}

/// How a kind of feedback is stored: its place, or these.
const OTHER: i16 = -1;
const CONVERSION: i16 = -2;

impl Table {
    /// The table of a name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "impressions" => Self::Impressions,
            "retained" => Self::Retained,
            "feedback" => Self::Feedback,
            "sessions" => Self::Sessions,
            "viewings" => Self::Viewings,
            "user_items" => Self::UserItems,
            "user_exposures" => Self::OfExperiments(experiments::Table::Exposures),
            "user_days" => Self::OfExperiments(experiments::Table::Days),
            "user_pending" => Self::OfExperiments(experiments::Table::Pending),
            _ => Self::EventIds(Topic::of(name.strip_prefix("ids_")?)?),
        })
    }
}

/// Collects one column of rows.
macro_rules! column {
    ($columns:ident, $kind:ident, $rows:expr, $name:literal, $of:expr) => {
        $columns.add($name, Values::$kind($rows.iter().map($of).collect()))
    };
}

impl Partition {
    /// First and next number (or epoch) of a table's rows.
    pub fn serials(&self, table: Table) -> (u64, u64) {
        match table {
            Table::EventIds(topic) => {
                let log = &self.logs[topic as usize].ids.log;
                (log.first(), log.next())
            }
            Table::Impressions => {
                let log = &self.attribution.impressions.log;
                (log.first(), log.next())
            }
            Table::Retained => (0, u64::from(self.attribution.retained.epoch)),
            Table::Feedback => (0, u64::from(self.attribution.pending.epoch)),
            Table::Sessions => (0, u64::from(self.sessions.rows.epoch)),
            Table::Viewings => (0, u64::from(self.counting.viewings.rows.epoch)),
            Table::UserItems => (
                0,
                self.counting.users.as_ref().map_or(0, |x| x.epoch().into()),
            ),
            Table::OfExperiments(table) => (0, u64::from(self.counting.experiments.epoch(table))),
        }
    }

    /// Rows whose latest time is before this cannot matter any more; none: it is known by number.
    pub fn horizon_ms(&self, table: Table) -> Option<i64> {
        let gap_ms = self.counting.viewings.gap_ms();
        let late_ms = self.time().max_lateness_ms;
        let rules = &self.attribution.rules;
        match table {
            Table::EventIds(_) | Table::Impressions => None,
            Table::Retained => Some(self.join_clock_ms() - rules.retained_ms),
            Table::Feedback => Some(self.feedback_clock_ms(true) - late_ms),
            Table::Sessions => {
                Some(self.logs[Topic::Sessions as usize].arrival_ms - gap_ms - late_ms)
            }
            Table::Viewings => Some(self.viewing_clock_ms() - 2 * gap_ms - late_ms),
            Table::UserItems => {
                let users = self.counting.users.as_ref();
                Some(users.map_or(NEVER, |users| users.oldest_unit(self.stream_ms)))
            }
            Table::OfExperiments(table) => Some(self.counting.experiments.horizon_ms(table)),
        }
    }

    /// What changes from now on belongs to the next commit.
    pub fn seal(&mut self) {
        self.attribution.retained.seal();
        self.attribution.pending.seal();
        self.sessions.rows.seal();
        self.counting.viewings.rows.seal();
        if let Some(users) = &mut self.counting.users {
            users.seal();
        }
        self.counting.experiments.seal();
    }

    /// What is stored of the rows with numbers (or epochs) in [first, end).
    pub fn rows(&self, table: Table, first: u64, end: u64) -> Columns {
        let (since, until) = (first as u32, end.min(u64::from(u32::MAX)) as u32);
        match table {
            Table::EventIds(topic) => self.event_ids(topic, first, end),
            Table::Impressions => self.impressions(first, end),
            Table::Retained => self.retained(since, until),
            Table::Feedback => self.feedback(since, until),
            Table::Sessions => self.visits(since, until),
            Table::Viewings => self.viewings(since, until),
            Table::UserItems => self.user_items(since, until),
            Table::OfExperiments(table) => self.counting.experiments.changed(table, since, until),
        }
    }

    /// How many rows last changed from each of these epochs on, before the next; none for logs.
    pub fn live(&self, table: Table, firsts: &[u32]) -> Option<Vec<u64>> {
        let epochs: Vec<u32> = match table {
            Table::UserItems => {
                return self.counting.users.as_ref().map(|users| users.live(firsts));
            }
            Table::OfExperiments(table) => {
                return Some(self.counting.experiments.live(table, firsts));
            }
            Table::Retained => self
                .attribution
                .retained
                .rows
                .log
                .iter()
                .map(|(_, row)| row.epoch)
                .collect(),
            Table::Feedback => self
                .attribution
                .pending
                .iter()
                .map(|(_, x)| x.epoch)
                .collect(),
            _ => return None,
        };
        let mut counts = vec![0; firsts.len()];
        for epoch in epochs {
            let at = firsts.partition_point(|first| *first <= epoch);
            if let Some(count) = at.checked_sub(1).and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
        Some(counts)
    }

    fn event_ids(&self, topic: Topic, first: u64, end: u64) -> Columns {
        let log = &self.logs[topic as usize].ids.log;
        let rows: Vec<_> = log
            .range(first, end)
            .filter_map(|row| log.get(row))
            .collect();
        let mut columns = Columns::default();
        column!(columns, U64, rows, "key", |row| row.hash);
        column!(columns, I64, rows, "arrival_ms", |row| row.arrival_ms);
        columns
    }

    fn impressions(&self, first: u64, end: u64) -> Columns {
        let (log, slates) = (&self.attribution.impressions.log, &self.attribution.slates);
        let found = log.range(first, end).filter_map(|row| log.get(row));
        let rows: Vec<_> = found.map(|row| (row, slates.get(row.slate))).collect();
        let mut columns = Columns::default();
        column!(columns, U64, rows, "pair", |(row, _)| row.pair);
        column!(columns, I64, rows, "event_ms", |(row, _)| row.event_ms);
        column!(columns, I64, rows, "offset", |(row, _)| row.offset);
        column!(columns, I16, rows, "index", |(row, _)| row.index() as i16);
        column!(columns, I16, rows, "position", |(row, _)| row.position
            as i16);
        column!(columns, I16, rows, "segment", |(row, _)| row.segment as i16);
        column!(columns, F64, rows, "score", |(row, _)| row.score);
        column!(columns, I16, rows, "probe", |(row, _)| row.probe);
        column!(columns, Bool, rows, "is_member", |(row, _)| row.is_member());
        column!(columns, U64, rows, "user", |(_, slate)| slate
            .map_or(NONE, |x| x.user));
        column!(columns, U64, rows, "slate", |(_, slate)| slate
            .map_or(NONE, |x| x.key));
        column!(columns, I64, rows, "opened_ms", |(_, slate)| slate
            .map_or(NEVER, |x| x.opened_ms));
        column!(columns, I64, rows, "arrival_ms", |(_, slate)| {
            slate.map_or(NEVER, |x| x.latest_arrival_ms)
        });
        column!(columns, I32, rows, "placed", |(_, slate)| slate
            .map_or(0, |x| x.placed as i32));
        column!(columns, Bool, rows, "is_closed", |(_, slate)| slate
            .is_some_and(|x| x.is_closed));
        columns
    }

    fn retained(&self, first: u32, end: u32) -> Columns {
        let (retained, slates) = (&self.attribution.retained, &self.attribution.slates);
        let rows: Vec<(u64, &Retained)> = retained.versions(first, end);
        let mut columns = Columns::default();
        column!(columns, U64, rows, "id", |(id, _)| *id);
        column!(columns, U64, rows, "pair", |(_, row)| row.pair);
        column!(columns, U64, rows, "user", |(_, row)| row.user);
        column!(columns, U64, rows, "slate", |(_, row)| row.slate_key);
        column!(columns, I64, rows, "opened_ms", |(_, row)| {
            let slate = slates.get(row.slate).filter(|found| !found.is_closed);
            slate.map_or(NEVER, |found| found.opened_ms)
        });
        column!(columns, I64, rows, "event_ms", |(_, row)| row.event_ms);
        column!(columns, I64, rows, "offset", |(_, row)| row.age().1);
        column!(columns, I16, rows, "index", |(_, row)| row.index as i16);
        column!(columns, I16, rows, "position", |(_, row)| row.position
            as i16);
        column!(columns, I16, rows, "segment", |(_, row)| row.segment as i16);
        column!(columns, F64, rows, "score", |(_, row)| row.score);
        column!(columns, I16, rows, "probe", |(_, row)| row.probe);
        column!(columns, Bool, rows, "is_member", |(_, row)| row.is_member);
        column!(columns, I64, rows, "first_ms", |(_, row)| row
            .final_first_ms);
        for kind in 0..self.attribution.rules.grades.len() {
            let of_kind = |(_, row): &(u64, &Retained)| {
                retained
                    .final_counts(row)
                    .get(kind)
                    .map_or(0, |count| *count as i32)
            };
            columns.add(
                &format!("final_{kind}"),
                Values::I32(rows.iter().map(of_kind).collect()),
            );
        }
        columns
    }

    fn feedback(&self, first: u32, end: u32) -> Columns {
        let within = self.attribution.pending.iter().map(|(_, found)| found);
        let rows: Vec<_> = within.filter(|x| (first..end).contains(&x.epoch)).collect();
        let mut columns = Columns::default();
        column!(columns, U64, rows, "id", |row| row.id);
        column!(columns, I16, rows, "kind", |row| match row.kind {
            Kind::Configured(place) => i16::from(place),
            Kind::Other => OTHER,
            Kind::Conversion => CONVERSION,
        });
        column!(columns, U64, rows, "user", |row| row.user);
        column!(columns, U64, rows, "pair", |row| row.pair);
        column!(columns, U64, rows, "slate", |row| row.slate_key);
        column!(columns, I64, rows, "event_ms", |row| row.event_ms);
        column!(columns, I64, rows, "offset", |row| row.offset);
        column!(columns, I64, rows, "value_micros", |row| row.value_micros);
        column!(columns, I64, rows, "dwell_ms", |row| row
            .dwell_ms
            .unwrap_or(-1));
        column!(columns, I16, rows, "segment", |row| row.own_segment as i16);
        column!(columns, I16, rows, "position", |row| row.own_position
            as i16);
        column!(columns, Bool, rows, "is_settled", |row| row.is_settled);
        columns
    }

    fn visits(&self, first: u32, end: u32) -> Columns {
        let rows: Vec<_> = self.sessions.rows.versions(first, end);
        let mut columns = ends(&rows);
        column!(columns, U64, rows, "user", |row| row.summary.user);
        column!(columns, I64, rows, "offset", |row| row.summary.offset);
        column!(columns, I16, rows, "segment", |row| row.summary.segment
            as i16);
        column!(columns, I64, rows, "views", |row| row.summary.views);
        column!(columns, Bool, rows, "is_end", |row| row.summary.is_end);
        columns
    }

    fn viewings(&self, first: u32, end: u32) -> Columns {
        let rows: Vec<_> = self.counting.viewings.rows.versions(first, end);
        let mut columns = ends(&rows);
        column!(columns, U64, rows, "user", |row| row.summary.user);
        let of_source = |is_feedback: bool| -> Vec<Report> {
            let none = Report {
                dwell_ms: -1,
                event_ms: 0,
                offset: 0,
                segment: 0,
            };
            let all = rows.iter().map(|row| match is_feedback {
                true => row.summary.by_feedback,
                false => row.summary.by_session,
            });
            all.map(|report| report.unwrap_or(none)).collect()
        };
        for (source, is_feedback) in [("click", true), ("session", false)] {
            let reports = of_source(is_feedback);
            let times = reports.iter().map(|x| x.dwell_ms).collect();
            columns.add(&format!("{source}_dwell_ms"), Values::I64(times));
            let times = reports.iter().map(|x| x.event_ms).collect();
            columns.add(&format!("{source}_event_ms"), Values::I64(times));
            let offsets = reports.iter().map(|x| x.offset).collect();
            columns.add(&format!("{source}_offset"), Values::I64(offsets));
            let segments = reports.iter().map(|x| x.segment as i16).collect();
            columns.add(&format!("{source}_segment"), Values::I16(segments));
        }
        columns
    }

    fn user_items(&self, first: u32, end: u32) -> Columns {
        let Some(users) = &self.counting.users else {
            return Columns::default();
        };
        let found: items::Columns = users.changed(first, end);
        let mut columns = Columns::default();
        columns.add("user", Values::U64(found.user));
        columns.add("pair", Values::U64(found.pair));
        columns.add(
            "segment",
            Values::I32(found.segment.iter().map(|x| *x as i32).collect()),
        );
        for (column, times) in found.times.into_iter().enumerate() {
            columns.add(&format!("time_{column}"), Values::I64(times));
        }
        columns
    }
}

fn ends<S: Summary>(rows: &[&Row<S>]) -> Columns {
    let mut columns = Columns::default();
    column!(columns, U64, rows, "id", |row| row.id);
    column!(columns, Bool, rows, "alive", |row| row.is_alive);
    column!(columns, U64, rows, "key", |row| row.key);
    column!(columns, I64, rows, "low_ms", |row| row.low_ms);
    column!(columns, I64, rows, "high_ms", |row| row.high_ms);
    columns
}

/// The kind of feedback that a stored number stands for.
pub fn kind_of(stored: i16) -> Kind {
    match stored {
        CONVERSION => Kind::Conversion,
        place => u8::try_from(place).map_or(Kind::Other, Kind::Configured),
    }
}
