//! Recovery: stored tables → the state that they were taken of. What follows from rows and clocks is
//! computed again; nothing is counted, as panes and totals were stored, too.

use hashbrown::HashMap;

use crate::attribution::impressions::Impression;
use crate::attribution::pair_log::OfPair;
use crate::attribution::pending::{Feedback, Left};
use crate::attribution::retained::Retained;
use crate::changes::{Amounts, Combination, NEVER};
use crate::columns::{Columns, LoadError, StoredRow};
use crate::counting::intervals::{Intervals, Row, Summary};
use crate::counting::sessions::Visit;
use crate::counting::viewings::{Report, Viewing};
use crate::hash::NONE;
use crate::kinds::EventKind;
use crate::log::NO_ROW;
use crate::panes::Overflow;
use crate::partition::Partition;
use crate::partition::event_ids::{EventId, Order};
use crate::partition::snapshot::{LEFT, kind_of};
use crate::partition::tables::{
    FeedbackRow, ImpressionRow, IntervalRow, ProbeRow, RetainedRow, Table, code_column,
    final_column, items_reader, met_reader, values_reader, weights_reader,
};
use crate::slates::NO_SLATE;

impl Partition {
    /// Takes over the blobs of one table, the oldest first; clocks, combinations and counters are set
    /// before. Impressions come before what is retained of them, then what slates
    /// are compared with, feedback last. Returns the numbers
    /// (or epochs) of the rows of each blob: the first, and the one after the last.
    pub fn load(&mut self, table: Table, blobs: &[Columns]) -> Result<Vec<(u64, u64)>, LoadError> {
        if blobs.is_empty() {
            return Ok(Vec::new());
        }
        match table {
            Table::EventIds(_)
            | Table::Impressions
            | Table::Probes
            | Table::UserItems
            | Table::OfExperiments(_)
            | Table::OfUnits(_) => {
                let mut spans = Vec::new();
                for columns in blobs {
                    columns.rows()?;
                    let (_, first) = self.serials(table);
                    self.load_rows(table, columns)?;
                    spans.push((first, self.serials(table).1));
                }
                Ok(spans)
            }
            Table::Combinations => self.load_combinations(blobs),
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

    fn load_combinations(&mut self, blobs: &[Columns]) -> Result<Vec<(u64, u64)>, LoadError> {
        let dimensions = &mut self.counting.dimensions;
        let mut spans = Vec::new();
        for columns in blobs {
            let numbers: &[i32] = columns.get("number")?;
            let codes = (0..dimensions.values.len()).map(|at| columns.get(&code_column(at)));
            let codes: Vec<&[i32]> = codes.collect::<Result<_, _>>()?;
            columns.rows()?;
            for (at, number) in numbers.iter().enumerate() {
                let codes = codes.iter().map(|codes| codes[at] as u32);
                dimensions.load(*number as Combination, codes)?;
            }
            let epoch = u64::from(dimensions.epoch);
            spans.push((epoch, epoch + 1));
            dimensions.epoch += 1;
        }
        dimensions.finish_load();
        Ok(spans)
    }

    fn load_rows(&mut self, table: Table, columns: &Columns) -> Result<(), LoadError> {
        match table {
            Table::EventIds(place) => {
                let ids = &mut self.logs[place / 2].ids[place % 2];
                // Orders of before 20 are not known.
                let is_known = ids.orders.is_some() && columns.has("event_ms");
                let order_at = match is_known {
                    true => Some(Order::reader("", columns)?),
                    false => None,
                };
                for (at, id) in EventId::rows(columns)?.enumerate() {
                    let order = order_at.as_ref().map(|order_at| order_at(at));
                    ids.load(id, order.unwrap_or(Order::UNKNOWN));
                }
                Ok(())
            }
            Table::Impressions => self.load_impressions(columns),
            Table::Probes => {
                for row in ProbeRow::rows(columns)? {
                    let age = (row.event_ms, row.offset, row.index);
                    let by = (row.slate, row.opened_ms, age);
                    let slates = &mut self.attribution.slates;
                    slates.load_probe(by, row.is_held_out, row.pair);
                }
                Ok(())
            }
            Table::OfExperiments(table) => self.counting.experiments.load(table, columns),
            Table::OfUnits(table) => self.counting.units.load(table, columns),
            _ => match &mut self.counting.users {
                Some(users) => users.load(columns, self.stream_ms),
                None => Ok(()),
            },
        }
    }

    fn load_versions(&mut self, table: Table, versions: &Versions) -> Result<(), LoadError> {
        match table {
            Table::Retained => self.load_retained(versions),
            Table::Feedback => self.load_feedback(versions),
            Table::Sessions => {
                let clock_ms = self.arrival_ms(EventKind::Sessions);
                let found = Visit::rows(&versions.columns)?.collect();
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
        let weights_at = weights_reader(columns, self.attribution.policies)?;
        let item_at = items_reader(columns, self.attribution.items.is_kept)?;
        let met_at = met_reader(columns, &self.attribution.values.of_joined)?;
        for (at, stored) in ImpressionRow::rows(columns)?.enumerate() {
            self.attribution.met.load_open(met_at(at));
            self.attribution.items.load_open(item_at(at));
            self.attribution.weights.load_open(weights_at(at));
            let age = (stored.event_ms, stored.offset, stored.index);
            let mut row = Impression::new(stored.pair, stored.user, age);
            (row.position, row.combination) = (stored.position, stored.combination);
            row.score = stored.score;
            row.set_member(stored.is_member);
            if stored.slate == NONE {
                self.attribution.impressions.push(row);
                continue;
            }
            let slates = &mut self.attribution.slates;
            row.slate = slates.of_opening(stored.slate, stored.user, stored.opened_ms);
            let slate = row.slate;
            let Some(found) = slates.get_mut(slate) else {
                continue;
            };
            row.prev_in_slate = found.last_member;
            found.latest_event_ms = found.latest_event_ms.max(stored.event_ms);
            found.latest_arrival_ms = found.latest_arrival_ms.max(stored.arrival_ms);
            found.placed = found.placed.max(stored.placed);
            found.is_closed |= stored.is_closed;
            if stored.is_member {
                found.learn_earliest(row.age(), row.combination, row.user);
            }
            let added = self.attribution.impressions.push(row);
            let slates = &mut self.attribution.slates;
            slates.hold(slate);
            if let Some(found) = slates.get_mut(slate) {
                if found.first_row == NO_ROW {
                    found.first_row = added;
                }
                if stored.is_member {
                    found.last_member = added;
                }
            }
        }
        Ok(())
    }

    fn load_retained(&mut self, versions: &Versions) -> Result<(), LoadError> {
        let columns = &versions.columns;
        let row_at = RetainedRow::reader("", columns)?;
        let kinds = self.attribution.rules.grades.len();
        let counts: Vec<&[i32]> = (0..kinds)
            .map(|kind| columns.get(&final_column(kind)))
            .collect::<Result<_, _>>()?;
        let weights_at = weights_reader(columns, self.attribution.policies)?;
        let item_at = items_reader(columns, self.attribution.items.is_kept)?;
        let met_at = met_reader(columns, &self.attribution.values.of_joined)?;
        let open = self.open_rows();
        let horizon_ms = self.horizon_ms(Table::Retained).unwrap_or(NEVER);
        let newest = versions.newest()?;
        let first_id = self.attribution.retained.first_kept;
        // Rows leave the oldest first: before a gap are those that had left, in a shorter time.
        let is_gap = |pair: &[usize]| row_at(pair[1]).id != row_at(pair[0]).id.wrapping_add(1);
        let gap = newest.windows(2).rposition(is_gap);
        for at in newest.into_iter().skip(gap.map_or(0, |gap| gap + 1)) {
            let stored = row_at(at);
            let attribution = &mut self.attribution;
            let has_left = stored.event_ms < horizon_ms || stored.id < first_id;
            if attribution.retained.rows.log.is_empty() && has_left {
                continue;
            }
            let age = (stored.event_ms, stored.offset, stored.index);
            let mut row = Retained::new(stored.pair, stored.user, age);
            (row.slate_key, row.is_member) = (stored.slate, stored.is_member);
            (row.position, row.combination) = (stored.position, stored.combination);
            (row.score, row.final_first_ms) = (stored.score, stored.first_ms);
            row.epoch = versions.epochs[at];
            row.open = open
                .get(&(stored.offset, row.index))
                .copied()
                .unwrap_or(NO_ROW);
            let shown = attribution
                .impressions
                .log
                .get(row.open)
                .map(|found| found.slate);
            row.slate = shown.unwrap_or(NO_SLATE);
            if shown.is_none() && stored.opened_ms > NEVER {
                let slates = &mut attribution.slates;
                row.slate = slates.of_opening(stored.slate, stored.user, stored.opened_ms);
            }
            let (slate, age, row_open, user) = (row.slate, row.age(), row.open, row.user);
            if let Some(found) = attribution.slates.get_mut(slate) {
                row.prev_in_slate = found.last_retained;
                if stored.is_member && row_open == NO_ROW {
                    found.learn_earliest(age, row.combination, user);
                }
            }
            let counted: Vec<i32> = counts.iter().map(|of_kind| of_kind[at]).collect();
            let added = attribution.retained.load(stored.id, row, &counted)?;
            attribution.weights.load_retained(weights_at(at));
            attribution.items.load_retained(item_at(at));
            attribution.met.load_retained(met_at(at));
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
        let row_at = FeedbackRow::reader("", &versions.columns)?;
        let amounts_at = Amounts::reader("", &versions.columns)?;
        let late_ms = self.time().max_lateness_ms;
        let newest = versions.newest()?.into_iter();
        let values_at = values_reader(&versions.columns, &self.attribution.values)?;
        let found = newest.map(|at| {
            let amounts = (amounts_at(at), values_at(at));
            (row_at(at), amounts, versions.epochs[at])
        });
        let mut rows: Vec<_> = found.collect();
        rows.sort_by_key(|(row, ..)| (kind_of(row.kind).is_conversion(), row.id));
        for (stored, (amounts, values), epoch) in rows {
            let clock_ms = self.feedback_clock_ms(kind_of(stored.kind).is_conversion());
            let is_pending = stored.joins_ms >= clock_ms - late_ms;
            if stored.kind == LEFT {
                let (id, event_ms) = (stored.id, stored.event_ms);
                let pending = &mut self.attribution.pending;
                pending.left.push_back(Left {
                    id,
                    event_ms,
                    epoch,
                });
                continue;
            }
            let (own_combination, own_position) = (stored.combination, u32::from(stored.position));
            let feedback = Feedback {
                id: stored.id,
                user: stored.user,
                pair: stored.pair,
                item_pair: stored.item_pair,
                slate_key: stored.slate,
                event_ms: stored.event_ms,
                joins_ms: stored.joins_ms,
                offset: stored.offset,
                number: stored.number,
                kind: kind_of(stored.kind),
                amounts,
                own_combination,
                own_position,
                is_complete: stored.is_complete,
                joined: NO_ROW,
                combination: own_combination,
                position: own_position,
                met_by_joined: 0,
                is_settled: stored.is_settled,
                epoch,
            };
            self.attribution.next_id = self.attribution.next_id.max(stored.id + 1);
            if is_pending {
                self.attribution
                    .take_back(feedback, &values, &mut self.counting);
            }
        }
        self.attribution.pending.begin(versions.end);
        Ok(())
    }

    /// All tables are loaded: what impressions count as is what was emitted.
    pub fn finish_load(&mut self) -> Result<(), Overflow> {
        self.attribution.learn_outcomes();
        let Self {
            sessions, counting, ..
        } = self;
        counting.load_sessions(|take| sessions.emit_all(take));
        counting.fold_new(self.stream_ms)
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
    fn newest(&self) -> Result<Vec<usize>, LoadError> {
        let id: &[u64] = self.columns.get("id")?;
        let mut places: Vec<usize> = (0..id.len()).collect();
        places.sort_by_key(|at| (id[*at], std::cmp::Reverse(*at)));
        places.dedup_by_key(|at| id[*at]);
        Ok(places)
    }
}

fn load_intervals<S: Summary>(
    rows: &mut Intervals<S>,
    versions: &Versions,
    clock_ms: i64,
    summaries: Vec<S>,
) -> Result<(), LoadError> {
    let row_at = IntervalRow::reader("", &versions.columns)?;
    for at in versions.newest()? {
        let stored = row_at(at);
        rows.skip_id(stored.id);
        let row = Row {
            key: stored.key,
            low_ms: stored.low_ms,
            high_ms: stored.high_ms,
            summary: summaries[at],
            id: stored.id,
            epoch: versions.epochs[at],
            is_alive: stored.alive,
            next: NO_ROW,
        };
        rows.load(row, clock_ms);
    }
    rows.begin(versions.end);
    Ok(())
}

fn viewings(columns: &Columns) -> Result<Vec<Viewing>, LoadError> {
    let (by_feedback, by_session) = (
        Report::reader("click_", columns)?,
        Report::reader("session_", columns)?,
    );
    let reported = |report: Report| Some(report).filter(|report| report.dwell_ms >= 0);
    let viewing = |at| Viewing {
        by_feedback: reported(by_feedback(at)),
        by_session: reported(by_session(at)),
    };
    Ok((0..columns.rows()?).map(viewing).collect())
}
