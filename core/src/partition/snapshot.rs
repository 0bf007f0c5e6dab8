//! What is stored of a partition: which rows changed, as columns.
//!
//! Rows of logs never change: those with numbers in a range are asked for. Other rows change and are
//! stored in versions: those that last changed in a range of epochs are asked for, and of the
//! versions with one id the newest counts.

use crate::attribution::pair_log::OfPair;
use crate::changes::{Amounts, ItemOf, NEVER};
use crate::columns::{Columns, LoadError, StoredRow};
use crate::counting::intervals::{Row, Summary};
use crate::counting::sessions::Visit;
use crate::counting::viewings::{Report, Viewing};
use crate::hash::NONE;
use crate::kinds::EventKind;
use crate::kinds::FeedbackKind;
use crate::own_sums::Values;
use crate::partition::Partition;
use crate::partition::event_ids::{EventId, EventIds, Order};
use crate::partition::tables::{
    FeedbackRow, ImpressionRow, IntervalRow, ProbeRow, RetainedRow, Table, amount_column,
    code_column, final_column, store_met, store_weights,
};
use crate::weights::Weights;

/// How a kind of feedback is stored: its place, or these.
const OTHER: i16 = -1;
const CONVERSION: i16 = -2;
const CONVERSION_LINE: i16 = -4;
pub(super) const GONE: i16 = -3;
/// Of feedback that left before its time: it does not come back.
pub(super) const LEFT: i16 = -5;

impl Partition {
    /// All tables under their names, in the order in which they are loaded.
    pub fn tables(&self) -> impl Iterator<Item = (String, Table)> {
        Table::all(self.logs.len()).map(|table| match table {
            Table::EventIds(place) => {
                let of = ["ids", "conversion_ids"][place % 2];
                (format!("{of}_{}", self.logs[place / 2].name), table)
            }
            _ => (table.name().to_owned(), table),
        })
    }

    /// First and next number (or epoch) of a table's rows.
    pub fn serials(&self, table: Table) -> (u64, u64) {
        match table {
            Table::Combinations => (0, u64::from(self.counting.dimensions.epoch)),
            Table::EventIds(place) => {
                let log = &self.ids(place).log;
                (log.first(), log.next())
            }
            Table::Impressions => {
                let log = &self.attribution.impressions.log;
                (log.first(), log.next())
            }
            Table::Probes => {
                let log = &self.attribution.slates.probed_by;
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
            Table::OfExperiments(table) => (
                0,
                u64::from(self.counting.experiments.versions(table).epoch()),
            ),
            Table::OfUnits(table) => (0, u64::from(self.counting.units.epoch(table))),
        }
    }

    /// Rows whose latest time is before this cannot matter any more; none: it is known by number.
    pub fn horizon_ms(&self, table: Table) -> Option<i64> {
        let gap_ms = self.counting.viewings.gap_ms();
        let late_ms = self.time().max_lateness_ms;
        let rules = &self.attribution.rules;
        match table {
            Table::Combinations | Table::EventIds(_) | Table::Impressions | Table::Probes => None,
            Table::Retained => Some(self.join_clock_ms() - rules.retained_ms),
            Table::Feedback => Some(self.feedback_clock_ms(true) - late_ms),
            Table::Sessions => Some(self.arrival_ms(EventKind::Sessions) - gap_ms - late_ms),
            Table::Viewings => Some(self.viewing_clock_ms() - 2 * gap_ms - late_ms),
            Table::UserItems => {
                let users = self.counting.users.as_ref();
                Some(users.map_or(NEVER, |users| users.oldest_unit(self.stream_ms)))
            }
            Table::OfExperiments(table) => Some(self.counting.experiments.horizon_ms(table)),
            Table::OfUnits(table) => Some(self.counting.units.horizon_ms(table)),
        }
    }

    /// What changes from now on belongs to the next commit.
    pub fn seal(&mut self) {
        self.counting.dimensions.seal();
        self.attribution.retained.seal();
        self.attribution.pending.seal();
        self.sessions.rows.seal();
        self.counting.viewings.rows.seal();
        if let Some(users) = &mut self.counting.users {
            users.seal();
        }
        self.counting.experiments.seal();
        self.counting.units.seal();
    }

    /// What is stored of the rows with numbers (or epochs) in [first, end).
    pub fn rows(&self, table: Table, first: u64, end: u64) -> Columns {
        let (since, until) = (first as u32, end.min(u64::from(u32::MAX)) as u32);
        match table {
            Table::Combinations => self.combinations(since, until),
            Table::EventIds(place) => self.event_ids(place, first, end),
            Table::Impressions => self.impressions(first, end),
            Table::Retained => self.retained(since, until),
            Table::Probes => self.probes(first, end),
            Table::Feedback => self.feedback(since, until),
            Table::Sessions => self.visits(since, until),
            Table::Viewings => self.viewings(since, until),
            Table::UserItems => {
                let users = self.counting.users.as_ref();
                users.map_or_else(Columns::default, |users| users.changed(since, until))
            }
            Table::OfExperiments(table) => self.counting.experiments.changed(table, since, until),
            Table::OfUnits(table) => self.counting.units.changed(table, since, until),
        }
    }

    /// The time by which a blob of these rows leaves; 0 where it leaves by number.
    pub fn leaves_ms(
        &self,
        table: Table,
        (first, end): (u64, u64),
        rows: &Columns,
    ) -> Result<i64, LoadError> {
        let (since, until) = (first as u32, end.min(u64::from(u32::MAX)) as u32);
        match table {
            Table::Retained => Ok(self.attribution.retained.leaves_ms(since, until)),
            _ => table.latest_ms(rows),
        }
    }

    /// How many rows last changed from each of these epochs on, before the next; none for logs.
    pub fn live(&self, table: Table, firsts: &[u32]) -> Option<Vec<u64>> {
        let epochs: Vec<u32> = match table {
            Table::Combinations => self.counting.dimensions.epochs().collect(),
            Table::UserItems => {
                return self.counting.users.as_ref().map(|users| users.live(firsts));
            }
            Table::OfExperiments(table) => {
                return Some(self.counting.experiments.versions(table).live(firsts));
            }
            Table::OfUnits(table) => return Some(self.counting.units.live(table, firsts)),
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

    fn combinations(&self, first: u32, end: u32) -> Columns {
        let dimensions = &self.counting.dimensions;
        let changed = || dimensions.changed(first, end);
        let mut columns = Columns::default();
        columns.add(
            "number",
            changed().map(|(number, ..)| number as i32).collect(),
        );
        for at in 0..dimensions.values.len() {
            let codes = changed().map(|(_, codes, _)| codes[at] as i32);
            columns.add(&code_column(at), codes.collect());
        }
        columns
    }

    fn ids(&self, place: usize) -> &EventIds {
        &self.logs[place / 2].ids[place % 2]
    }

    fn event_ids(&self, place: usize, first: u64, end: u64) -> Columns {
        let ids = self.ids(place);
        let rows = || ids.log.range(first, end);
        let mut columns = EventId::columns(rows().filter_map(|row| ids.log.get(row)).copied());
        if let Some(orders) = &ids.orders {
            let found = rows().filter_map(|row| orders.get(row)).copied();
            Order::store("", found, &mut columns);
        }
        columns
    }

    fn impressions(&self, first: u64, end: u64) -> Columns {
        let (log, slates) = (&self.attribution.impressions.log, &self.attribution.slates);
        let found = log.range(first, end).filter_map(|row| log.get(row));
        let mut columns = ImpressionRow::columns(found.map(|row| {
            let slate = slates.get(row.slate);
            ImpressionRow {
                pair: row.pair,
                event_ms: row.event_ms,
                offset: row.offset,
                index: row.index(),
                position: row.position,
                combination: row.combination,
                score: row.score,
                is_member: row.is_member(),
                user: row.user,
                slate: slate.map_or(NONE, |x| x.key),
                opened_ms: slate.map_or(NEVER, |x| x.opened_ms),
                arrival_ms: slate.map_or(NEVER, |x| x.latest_arrival_ms),
                placed: slate.map_or(0, |x| x.placed),
                is_closed: slate.is_some_and(|x| x.is_closed),
            }
        }));
        let weights = &self.attribution.weights;
        let rows = weights.open.range(first, end);
        let found: Vec<&Weights> = rows.filter_map(|row| weights.open.get(row)).collect();
        store_weights(&mut columns, self.attribution.policies, &found);
        let items = &self.attribution.items;
        let shown = items.open.range(first, end);
        let shown = shown.filter_map(|row| items.open.get(row)).copied();
        items
            .is_kept
            .then(|| ItemOf::store("", shown, &mut columns));
        let met = &self.attribution.met.open;
        let rows = met.range(first, end);
        let met: Vec<u32> = rows.filter_map(|row| met.get(row)).copied().collect();
        store_met(&mut columns, &self.attribution.values.of_joined, &met);
        columns
    }

    fn retained(&self, first: u32, end: u32) -> Columns {
        let (retained, slates) = (&self.attribution.retained, &self.attribution.slates);
        let rows = retained.versions(first, end);
        let mut columns = RetainedRow::columns(rows.iter().map(|(id, _, row)| {
            let slate = slates.get(row.slate).filter(|found| !found.is_closed);
            RetainedRow {
                id: *id,
                pair: row.pair,
                user: row.user,
                slate: row.slate_key,
                opened_ms: slate.map_or(NEVER, |found| found.opened_ms),
                event_ms: row.event_ms,
                offset: row.age().1,
                index: row.index,
                position: row.position,
                combination: row.combination,
                score: row.score,
                is_member: row.is_member,
                first_ms: row.final_first_ms,
            }
        }));
        for kind in 0..self.attribution.rules.grades.len() {
            let counts = rows.iter().map(|(_, _, row)| {
                let count = retained.final_counts(row).get(kind);
                count.copied().unwrap_or_default()
            });
            columns.add(&final_column(kind), counts.collect());
        }
        let weights = &self.attribution.weights;
        let of_rows = rows
            .iter()
            .filter_map(|(_, row, _)| weights.retained.get(*row));
        store_weights(
            &mut columns,
            self.attribution.policies,
            &of_rows.collect::<Vec<_>>(),
        );
        let items = &self.attribution.items;
        let shown = rows
            .iter()
            .filter_map(|(_, row, _)| items.retained.get(*row))
            .copied();
        items
            .is_kept
            .then(|| ItemOf::store("", shown, &mut columns));
        let met = &self.attribution.met.retained;
        let met = rows.iter().filter_map(|(_, row, _)| met.get(*row)).copied();
        let conditions = &self.attribution.values.of_joined;
        store_met(&mut columns, conditions, &met.collect::<Vec<_>>());
        columns
    }

    fn probes(&self, first: u64, end: u64) -> Columns {
        let slates = &self.attribution.slates;
        let log = &slates.probed_by;
        let sources = log.range(first, end).filter_map(|row| log.get(row));
        ProbeRow::columns(sources.flat_map(|by| {
            let (event_ms, offset, index) = by.age;
            let probes = slates.probed(by).and_then(|found| found.probes.as_deref());
            let of_member = probes
                .into_iter()
                .flat_map(|probes| probes.of_member(by.age));
            of_member.map(move |(is_held_out, pair)| ProbeRow {
                slate: by.key,
                opened_ms: by.opened_ms,
                event_ms,
                offset,
                index,
                is_held_out,
                pair,
            })
        }))
    }

    fn feedback(&self, first: u32, end: u32) -> Columns {
        let (pending, values) = (&self.attribution.pending, &self.attribution.values);
        let changed = || {
            let all = pending.iter();
            all.filter(|(_, x)| (first..end).contains(&x.epoch))
        };
        let left = pending.left.iter();
        let left = left.filter(|x| (first..end).contains(&x.epoch));
        let left: Vec<_> = left.collect();
        let left_rows = left.iter().map(|x| FeedbackRow {
            id: x.id,
            kind: LEFT,
            event_ms: x.event_ms,
            ..FeedbackRow::default()
        });
        let rows = changed().map(|(_, row)| FeedbackRow {
            id: row.id,
            kind: match row.kind {
                FeedbackKind::Configured(place) => i16::from(place),
                FeedbackKind::Other => OTHER,
                FeedbackKind::Gone => GONE,
                FeedbackKind::Conversion => CONVERSION,
                FeedbackKind::ConversionLine => CONVERSION_LINE,
            },
            user: row.user,
            pair: row.pair,
            item_pair: row.item_pair,
            slate: row.slate_key,
            event_ms: row.event_ms,
            joins_ms: row.joins_ms,
            offset: row.offset,
            number: row.number,
            combination: row.own_combination,
            position: row.own_position as u16,
            is_complete: row.is_complete,
            is_settled: row.is_settled,
        });
        let mut columns = FeedbackRow::columns(rows.chain(left_rows));
        let amounts = changed().map(|(_, row)| row.amounts);
        let of_left = left.iter().map(|_| Amounts::default());
        Amounts::store("", amounts.chain(of_left), &mut columns);
        let of_changed = changed().map(|(place, _)| values.get(place).unwrap_or(&Values::NONE));
        let said: Vec<&Values> = of_changed
            .chain(left.iter().map(|_| &Values::NONE))
            .collect();
        for amount in &values.amounts {
            let codes = said.iter().map(|values| values.code(*amount));
            columns.add(&amount_column(*amount), codes.collect());
        }
        let met: Vec<u32> = said.iter().map(|values| values.met).collect();
        store_met(&mut columns, &values.conditions, &met);
        columns
    }

    fn visits(&self, first: u32, end: u32) -> Columns {
        let rows = self.sessions.rows.versions(first, end);
        let mut columns = intervals(&rows);
        Visit::store("", rows.iter().map(|row| row.summary), &mut columns);
        columns
    }

    fn viewings(&self, first: u32, end: u32) -> Columns {
        let rows = self.counting.viewings.rows.versions(first, end);
        let mut columns = intervals(&rows);
        let of = |part: fn(&Viewing) -> Option<Report>| {
            let reports = rows.iter().map(move |row| part(&row.summary));
            reports.map(|report| report.unwrap_or(Report::NONE))
        };
        Report::store("click_", of(|viewing| viewing.by_feedback), &mut columns);
        Report::store("session_", of(|viewing| viewing.by_session), &mut columns);
        columns
    }
}

fn intervals<S: Summary>(rows: &[&Row<S>]) -> Columns {
    IntervalRow::columns(rows.iter().map(|row| IntervalRow {
        id: row.id,
        alive: row.is_alive,
        key: row.key,
        low_ms: row.low_ms,
        high_ms: row.high_ms,
    }))
}

/// The kind of feedback that a stored number stands for.
pub fn kind_of(stored: i16) -> FeedbackKind {
    match stored {
        CONVERSION => FeedbackKind::Conversion,
        CONVERSION_LINE => FeedbackKind::ConversionLine,
        GONE => FeedbackKind::Gone,
        place => u8::try_from(place).map_or(FeedbackKind::Other, FeedbackKind::Configured),
    }
}
