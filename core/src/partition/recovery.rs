//! Recovery: stored tables → the state that they were taken of. What follows from rows and clocks is
//! computed again; nothing is counted, as panes and totals were stored, too.

use hashbrown::HashMap;

use crate::attribution::impressions::Impression;
use crate::attribution::pair_log::OfPair;
use crate::attribution::pending::Feedback;
use crate::attribution::retained::Retained;
use crate::changes::Segment;
use crate::columns::{Columns, LoadError};
use crate::counting::intervals::{Intervals, Row, Summary};
use crate::counting::sessions::Visit;
use crate::counting::viewings::{Report, Viewing};
use crate::decode::Topic;
use crate::hash::NONE;
use crate::log::NO_ROW;
use crate::partition::Partition;
use crate::partition::admission::NEVER;
use crate::partition::event_ids::EventId;
use crate::partition::snapshot::{Table, kind_of};
use crate::slates::NO_SLATE;
use crate::users::items;

impl Partition {
    /// Takes over the blobs of one table, the oldest first; clocks, segments and counters are set
    /// before. Impressions come before what is retained of them, feedback last. Returns the numbers
    /// (or epochs) of the rows of each blob: the first, and the one after the last.
    pub fn load(&mut self, table: Table, blobs: &[Columns]) -> Result<Vec<(u64, u64)>, LoadError> {
        if blobs.is_empty() {
            return Ok(Vec::new());
        }
        match table {
            Table::EventIds(_)
            | Table::Impressions
            | Table::UserItems
            | Table::OfExperiments(_) => {
                let mut spans = Vec::new();
                for columns in blobs {
                    columns.rows()?;
                    let (_, first) = self.serials(table);
                    self.load_rows(table, columns)?;
                    spans.push((first, self.serials(table).1));
                }
                Ok(spans)
            }
            _ => {
                let first = self.serials(table).1 as u32;
                let versions = Versions::new(blobs, first)?;
                self.load_versions(table, &versions)?;
                let epochs = first..first + blobs.len() as u32;
                Ok(epochs
                    .map(|epoch| (u64::from(epoch), u64::from(epoch) + 1))
                    .collect())
            }
        }
    }

    fn load_rows(&mut self, table: Table, columns: &Columns) -> Result<(), LoadError> {
        match table {
            Table::EventIds(topic) => {
                let rows = columns.u64("key")?.iter().zip(columns.i64("arrival_ms")?);
                for (hash, arrival_ms) in rows {
                    let id = EventId {
                        hash: *hash,
                        arrival_ms: *arrival_ms,
                    };
                    self.logs[topic as usize].ids.load(id);
                }
                Ok(())
            }
            Table::Impressions => self.load_impressions(columns),
            Table::OfExperiments(table) => self.counting.experiments.load(table, columns),
            _ => self.load_users(columns),
        }
    }

    fn load_versions(&mut self, table: Table, versions: &Versions) -> Result<(), LoadError> {
        match table {
            Table::Retained => self.load_retained(versions),
            Table::Feedback => self.load_feedback(versions),
            Table::Sessions => {
                let clock_ms = self.logs[Topic::Sessions as usize].arrival_ms;
                let found = visits(&versions.columns)?;
                load_intervals(&mut self.sessions.rows, versions, clock_ms, found)
            }
            _ => {
                let clock_ms = self.viewing_clock_ms();
                let found = viewings(&versions.columns)?;
                load_intervals(&mut self.counting.viewings.rows, versions, clock_ms, found)
            }
        }
    }

    fn load_impressions(&mut self, columns: &Columns) -> Result<(), LoadError> {
        let (pair, event_ms) = (columns.u64("pair")?, columns.i64("event_ms")?);
        let (offset, index) = (columns.i64("offset")?, columns.i16("index")?);
        let (position, segment) = (columns.i16("position")?, columns.i16("segment")?);
        let (score, probe) = (columns.f64("score")?, columns.i16("probe")?);
        let (is_member, is_closed) = (columns.bool("is_member")?, columns.bool("is_closed")?);
        let (user, key) = (columns.u64("user")?, columns.u64("slate")?);
        let (opened_ms, arrival_ms) = (columns.i64("opened_ms")?, columns.i64("arrival_ms")?);
        let placed = columns.i32("placed")?;
        for at in 0..columns.rows()? {
            let mut row = Impression::new(pair[at], (event_ms[at], offset[at], index[at] as u16));
            (row.position, row.segment) = (position[at] as u16, segment[at] as u16);
            (row.score, row.probe) = (score[at], probe[at]);
            row.set_member(is_member[at]);
            if key[at] == NONE {
                self.attribution.impressions.push(row);
                continue;
            }
            let slates = &mut self.attribution.slates;
            let slate = slates.of_opening(key[at], user[at], opened_ms[at]);
            row.slate = slate;
            let Some(found) = slates.get_mut(slate) else {
                continue;
            };
            row.prev_in_slate = found.last_member;
            found.latest_event_ms = found.latest_event_ms.max(event_ms[at]);
            found.latest_arrival_ms = found.latest_arrival_ms.max(arrival_ms[at]);
            found.placed = found.placed.max(placed[at] as u32);
            found.is_closed |= is_closed[at];
            if is_member[at] {
                found.learn_earliest(row.age(), row.segment);
                found.marked += u32::from(row.probe > 0);
            }
            let added = self.attribution.impressions.push(row);
            let slates = &mut self.attribution.slates;
            slates.hold(slate);
            if let Some(found) = slates.get_mut(slate) {
                found.first_row = if found.first_row == NO_ROW {
                    added
                } else {
                    found.first_row
                };
                found.last_member = if is_member[at] {
                    added
                } else {
                    found.last_member
                };
            }
        }
        Ok(())
    }

    fn load_retained(&mut self, versions: &Versions) -> Result<(), LoadError> {
        let columns = &versions.columns;
        let (id, pair, user) = (
            columns.u64("id")?,
            columns.u64("pair")?,
            columns.u64("user")?,
        );
        let (key, opened_ms) = (columns.u64("slate")?, columns.i64("opened_ms")?);
        let (event_ms, offset) = (columns.i64("event_ms")?, columns.i64("offset")?);
        let (index, position) = (columns.i16("index")?, columns.i16("position")?);
        let (segment, score) = (columns.i16("segment")?, columns.f64("score")?);
        let (probe, is_member) = (columns.i16("probe")?, columns.bool("is_member")?);
        let first_ms = columns.i64("first_ms")?;
        let kinds = self.attribution.rules.grades.len();
        let counts: Vec<&[i32]> = (0..kinds)
            .map(|kind| columns.i32(&format!("final_{kind}")))
            .collect::<Result<_, _>>()?;
        let open = self.open_rows();
        let horizon_ms = self.horizon_ms(Table::Retained).unwrap_or(NEVER);
        for at in versions.newest(id) {
            let attribution = &mut self.attribution;
            if attribution.retained.rows.log.is_empty() && event_ms[at] < horizon_ms {
                continue;
            }
            let age = (event_ms[at], offset[at], index[at] as u16);
            let mut row = Retained::new(pair[at], user[at], age);
            (row.slate_key, row.is_member) = (key[at], is_member[at]);
            (row.position, row.segment) = (position[at] as u16, segment[at] as u16);
            (row.score, row.probe, row.final_first_ms) = (score[at], probe[at], first_ms[at]);
            row.epoch = versions.epochs[at];
            row.open = open
                .get(&(offset[at], row.index))
                .copied()
                .unwrap_or(NO_ROW);
            let shown = attribution
                .impressions
                .log
                .get(row.open)
                .map(|found| found.slate);
            row.slate = shown.unwrap_or(NO_SLATE);
            if shown.is_none() && opened_ms[at] > NEVER {
                row.slate = attribution
                    .slates
                    .of_opening(key[at], user[at], opened_ms[at]);
            }
            let (slate, age, row_open) = (row.slate, row.age(), row.open);
            if let Some(found) = attribution.slates.get_mut(slate) {
                row.prev_in_slate = found.last_retained;
                if is_member[at] && row_open == NO_ROW {
                    found.learn_earliest(age, row.segment);
                    found.marked += u32::from(row.probe > 0);
                }
            }
            let counted: Vec<u32> = counts.iter().map(|of_kind| of_kind[at] as u32).collect();
            let added = attribution.retained.load(id[at], row, &counted)?;
            attribution.slates.hold(slate);
            if let Some(found) = attribution.slates.get_mut(slate) {
                found.last_retained = added;
            }
            if let Some(found) = attribution.impressions.log.get_mut(row_open) {
                found.retained = added;
            }
        }
        self.attribution.retained.begin(versions.end);
        Ok(())
    }

    fn open_rows(&self) -> HashMap<(i64, u16), u32> {
        let log = &self.attribution.impressions.log;
        log.iter()
            .map(|(row, found)| ((found.offset, found.index()), row))
            .collect()
    }

    fn load_feedback(&mut self, versions: &Versions) -> Result<(), LoadError> {
        let columns = &versions.columns;
        let (id, kind, user) = (
            columns.u64("id")?,
            columns.i16("kind")?,
            columns.u64("user")?,
        );
        let (pair, slate) = (columns.u64("pair")?, columns.u64("slate")?);
        let (event_ms, offset) = (columns.i64("event_ms")?, columns.i64("offset")?);
        let (value, dwell_ms) = (columns.i64("value_micros")?, columns.i64("dwell_ms")?);
        let (segment, position) = (columns.i16("segment")?, columns.i16("position")?);
        let is_settled = columns.bool("is_settled")?;
        let late_ms = self.time().max_lateness_ms;
        let mut rows: Vec<usize> = versions.newest(id);
        rows.sort_by_key(|at| {
            (
                kind_of(kind[*at]) == crate::changes::Kind::Conversion,
                id[*at],
            )
        });
        for at in rows {
            let own_segment = Segment::from(segment[at] as u16);
            let feedback = Feedback {
                id: id[at],
                user: user[at],
                pair: pair[at],
                slate_key: slate[at],
                event_ms: event_ms[at],
                offset: offset[at],
                kind: kind_of(kind[at]),
                value_micros: value[at],
                dwell_ms: (dwell_ms[at] >= 0).then_some(dwell_ms[at]),
                own_segment,
                own_position: u32::from(position[at] as u16),
                is_complete: self.counting.dimensions.is_complete(own_segment),
                joined: NO_ROW,
                segment: own_segment,
                position: u32::from(position[at] as u16),
                is_settled: is_settled[at],
                epoch: versions.epochs[at],
            };
            self.attribution.next_id = self.attribution.next_id.max(id[at] + 1);
            let clock_ms = self.feedback_clock_ms(feedback.is_conversion());
            if event_ms[at] >= clock_ms - late_ms {
                self.attribution.take_back(feedback, &mut self.counting);
            }
        }
        self.attribution.pending.begin(versions.end);
        Ok(())
    }

    fn load_users(&mut self, columns: &Columns) -> Result<(), LoadError> {
        let Some(users) = &mut self.counting.users else {
            return Ok(());
        };
        let times = (0..).map_while(|column| columns.i64(&format!("time_{column}")).ok());
        let found = items::Columns {
            user: columns.u64("user")?.to_vec(),
            pair: columns.u64("pair")?.to_vec(),
            segment: columns
                .i32("segment")?
                .iter()
                .map(|segment| *segment as u32)
                .collect(),
            times: times.map(<[i64]>::to_vec).collect(),
        };
        users.load(&found, self.stream_ms)
    }

    /// All tables are loaded: what impressions count as is what was emitted.
    pub fn finish_load(&mut self) {
        self.attribution.learn_outcomes();
    }
}

/// Stored versions of rows, of which the newest counts: each is of the epoch of its blob.
struct Versions {
    columns: Columns,
    epochs: Vec<u32>,
    /// The epoch after those of the blobs.
    end: u32,
}

impl Versions {
    fn new(blobs: &[Columns], first: u32) -> Result<Self, LoadError> {
        let mut epochs = Vec::new();
        for (epoch, blob) in (first..).zip(blobs) {
            epochs.extend(std::iter::repeat_n(epoch, blob.rows()?));
        }
        let end = first + blobs.len() as u32;
        Ok(Self {
            columns: Columns::joined(blobs)?,
            epochs,
            end,
        })
    }

    /// Places of the newest version of each id, by ascending id.
    fn newest(&self, id: &[u64]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..id.len()).collect();
        places.sort_by_key(|at| (id[*at], std::cmp::Reverse(*at)));
        places.dedup_by_key(|at| id[*at]);
        places
    }
}

fn load_intervals<S: Summary>(
    rows: &mut Intervals<S>,
    versions: &Versions,
    clock_ms: i64,
    summaries: Vec<S>,
) -> Result<(), LoadError> {
    let columns = &versions.columns;
    let (id, key, alive) = (
        columns.u64("id")?,
        columns.u64("key")?,
        columns.bool("alive")?,
    );
    let (low_ms, high_ms) = (columns.i64("low_ms")?, columns.i64("high_ms")?);
    for at in versions.newest(id) {
        rows.skip_id(id[at]);
        let row = Row {
            key: key[at],
            low_ms: low_ms[at],
            high_ms: high_ms[at],
            summary: summaries[at],
            id: id[at],
            epoch: versions.epochs[at],
            is_alive: alive[at],
            next: NO_ROW,
        };
        rows.load(row, clock_ms);
    }
    rows.begin(versions.end);
    Ok(())
}

fn visits(columns: &Columns) -> Result<Vec<Visit>, LoadError> {
    let (user, offset) = (columns.u64("user")?, columns.i64("offset")?);
    let (segment, views) = (columns.i16("segment")?, columns.i64("views")?);
    let is_end = columns.bool("is_end")?;
    let visit = |at: usize| Visit {
        user: user[at],
        offset: offset[at],
        segment: Segment::from(segment[at] as u16),
        views: views[at],
        is_end: is_end[at],
    };
    Ok((0..columns.rows()?).map(visit).collect())
}

fn viewings(columns: &Columns) -> Result<Vec<Viewing>, LoadError> {
    let user = columns.u64("user")?;
    let reports = |source: &str| -> Result<Vec<Option<Report>>, LoadError> {
        let dwell_ms = columns.i64(&format!("{source}_dwell_ms"))?;
        let event_ms = columns.i64(&format!("{source}_event_ms"))?;
        let offset = columns.i64(&format!("{source}_offset"))?;
        let segment = columns.i16(&format!("{source}_segment"))?;
        let report = |at: usize| Report {
            dwell_ms: dwell_ms[at],
            event_ms: event_ms[at],
            offset: offset[at],
            segment: Segment::from(segment[at] as u16),
        };
        let all = (0..dwell_ms.len()).map(report);
        Ok(all
            .map(|report| (report.dwell_ms >= 0).then_some(report))
            .collect())
    };
    let (by_feedback, by_session) = (reports("click")?, reports("session")?);
    let both = by_feedback.into_iter().zip(by_session).zip(user);
    let viewing = |((by_feedback, by_session), user): (_, &u64)| Viewing {
        user: *user,
        by_feedback,
        by_session,
    };
    Ok(both.map(viewing).collect())
}
