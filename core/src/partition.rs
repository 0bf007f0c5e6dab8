//! The whole of one partition number: records of its topics in, counted state kept.
//!
//! Everything is a function of the logs: the order in which the topics' records come, how many are
//! fed at a time, and restarts change nothing of what is stored in the end.

pub mod admission;
pub mod counters;
pub mod event_ids;
pub mod events;
pub mod migration;
pub mod recovery;
pub mod snapshot;
pub mod tables;

use std::collections::HashMap;

use crate::attribution::Attribution;
use crate::changes::NEVER;
use crate::counting::Counting;
use crate::counting::sessions::Sessions;
use crate::decode::rejected::RejectedRecords;
use crate::decode::{Body, Decoded, DecodedEvents, Event, Reason};
use crate::kafka::Record;
use crate::kinds::{EventKind, KINDS};
use crate::panes::Overflow;
use crate::partition::admission::{TopicLog, Verdict};
use crate::spec::{LogSpec, Spec, Time};
use events::{Arrival, Identity, InRecord};

/// State of one partition number, over all topics.
pub struct Partition {
    time: Time,
    pub logs: Vec<TopicLog>,
    /// The logs that hold events of each kind; where there are none, all.
    holders: [Vec<usize>; KINDS],
    /// The logs whose events may expose users to experiments.
    exposing: Vec<usize>,
    /// Largest time accepted, no event's beyond its arrival.
    pub stream_ms: i64,
    /// Smallest and largest time accepted; of an empty one none, and 0.
    pub oldest_ms: Option<i64>,
    pub newest_ms: i64,
    pub counting: Counting,
    pub attribution: Attribution,
    pub sessions: Sessions,
    pub rejected: RejectedRecords,
    /// The wall clock when records are taken in: nothing is stored of it.
    pub wall_ms: i64,
}

impl Partition {
    /// An empty one; an error where the spec asks for what there is not.
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let gap_ms = spec.attribution.session_gap_ms;
        let late_ms = spec.time.max_lateness_ms;
        let logs = spec.logs.iter();
        let logs = logs.map(|log| TopicLog::new(log, spec.time, spec.limits.event_ids));
        let holders = EventKind::ALL.map(|kind| {
            let numbered = spec.logs.iter().enumerate();
            let holds = |log: &LogSpec| log.kinds.iter().any(|name| name == kind.name());
            let found: Vec<usize> = numbered.filter(|x| holds(x.1)).map(|x| x.0).collect();
            match found.is_empty() {
                true => (0..spec.logs.len()).collect(),
                false => found,
            }
        });
        let counting = Counting::new(spec)?;
        let exposes = |log: &LogSpec| {
            let kinds = [EventKind::Impressions, EventKind::Exposures].map(EventKind::name);
            let by_kind = log.kinds.iter().any(|name| kinds.contains(&name.as_str()));
            by_kind || counting.experiments.reads_fields()
        };
        let exposing = spec.logs.iter().enumerate().filter(|(_, log)| exposes(log));
        let exposing = exposing.map(|(at, _)| at).collect();
        Ok(Self {
            time: spec.time,
            logs: logs.collect(),
            holders,
            exposing,
            stream_ms: 0,
            oldest_ms: None,
            newest_ms: 0,
            counting,
            attribution: Attribution::new(spec),
            sessions: Sessions::new(gap_ms, late_ms, spec.limits.open_sessions),
            rejected: RejectedRecords::default(),
            wall_ms: i64::MAX,
        })
    }

    /// Keeps all that is fed from now on, however late it comes: see `attribution::trace`.
    pub fn trace(&mut self) {
        let Attribution {
            rules,
            traced,
            items,
            ..
        } = &mut self.attribution;
        (rules.max_pending, rules.max_pending_of_pair) = (usize::MAX, usize::MAX);
        rules.lateness_ms = i64::MAX / 2;
        (*traced, items.is_kept) = (Some(Vec::new()), true);
        for log in &mut self.logs {
            (log.time.max_lateness_ms, log.time.max_skew_ms) = (i64::MAX, i64::MAX);
        }
    }

    /// Takes in records of a log with their events; they come in offset order.
    pub fn feed(
        &mut self,
        log: usize,
        records: &[Record],
        events: &DecodedEvents,
    ) -> Result<(), Overflow> {
        std::hint::black_box(self.warm_up(log, events));
        let (mut last, mut place) = (None, InRecord::default());
        for (at, event) in events {
            match last.replace(*at) == Some(*at) {
                true => place.number += 1,
                false => place = InRecord::default(),
            }
            self.take(log, (&records[*at], place), event)?;
            if let Ok(Event {
                body: Body::Impressions { items, .. },
                ..
            }) = event
            {
                place.shown += items.len();
            }
        }
        Ok(())
    }

    /// Looks up what the events will need, so that the processor fetches it from memory for all of
    /// them at the same time, instead of one after another when each is taken in.
    fn warm_up(&self, log: usize, events: &DecodedEvents) -> usize {
        let log = &self.logs[log];
        let events = events.iter().filter_map(|(_, event)| event.as_ref().ok());
        events
            .map(|event| {
                let mut known = log.ids[TopicLog::ids_of(event)].warm_up(log.id_of(event));
                if let Body::Impressions { items, .. } = event.body {
                    let who = Identity::of(event);
                    known += self
                        .attribution
                        .slates
                        .warm_up(who.slate_key(event.request));
                    known += self.counting.warm_up(who.person);
                    let pairs = items.iter().map(|x| who.joins_by(x.impression, x.item));
                    known += pairs
                        .map(|pair| self.attribution.impressions.warm_up(pair))
                        .sum::<usize>();
                }
                known
            })
            .sum()
    }

    fn take(
        &mut self,
        at: usize,
        (record, place): (&Record, InRecord),
        event: &Decoded,
    ) -> Result<(), Overflow> {
        let offset = record.offset;
        let log = &mut self.logs[at];
        let is_ahead = record.timestamp_ms > self.wall_ms.saturating_add(self.time.max_skew_ms);
        let arrival_ms = match place.number {
            0 if is_ahead => log.pass(offset),
            0 => log.arrive(offset, record.timestamp_ms),
            _ => log.arrival_ms,
        };
        let event = match event {
            Ok(event) => event,
            Err(Reason::Ignored) => {
                log.ignored += 1;
                return Ok(());
            }
            Err(reason) => {
                let reason = reason.name();
                log.reject(reason);
                self.rejected.push(at, record, reason);
                return Ok(());
            }
        };
        let position = log.position(offset);
        let verdict = match is_ahead {
            true => log.refuse_future(),
            false => log.judge(event, events::order_of(event, position)),
        };
        let reason = match verdict {
            Verdict::Accepted => None,
            Verdict::Duplicate => return Ok(()),
            Verdict::Late => Some("late"),
            Verdict::Future => Some("future"),
        };
        if let Some(reason) = reason {
            self.rejected.push(at, record, reason);
            return Ok(());
        }
        self.stream_ms = self.stream_ms.max(event.event_ms.min(arrival_ms));
        let oldest_ms = self
            .oldest_ms
            .map_or(event.event_ms, |ms| ms.min(event.event_ms));
        self.oldest_ms = Some(oldest_ms);
        self.newest_ms = self.newest_ms.max(event.event_ms);
        self.counting.stream_ms = self.stream_ms;
        let combination = self.counting.combination_of(event.dimensions.iter());
        let person = Identity::at(event, position).person;
        let experiments = &mut self.counting.experiments;
        experiments.expose_by_fields(person, event.event_ms, event.arms);
        let named = match event.body {
            Body::Exposure { experiment, arm } => Some((experiment, arm)),
            _ => None,
        };
        if let Some(named) = named {
            experiments.expose_by_event(person, event.event_ms, named);
        }
        let (units, dimensions) = (&mut self.counting.units, &self.counting.dimensions);
        let at_ms = event.event_ms;
        units.accept(dimensions, (at_ms, combination), (event.arms, named));
        let Self {
            logs,
            attribution,
            counting,
            sessions,
            ..
        } = self;
        let arrival = Arrival {
            log: &logs[at],
            arrival_ms,
            position,
            place,
            combination,
        };
        events::count(attribution, counting, sessions, event, arrival);
        self.counting.fold_if_full(self.stream_ms)
    }

    /// The tables whose rows bounds of memory limit, by name, each with its rows: `set_bounds` takes
    /// the names. Slates are those of the impressions, open or retained.
    pub fn bounded(&self) -> Vec<(&'static str, usize)> {
        let (attribution, counting) = (&self.attribution, &self.counting);
        let ids = self.logs.iter().flat_map(|log| &log.ids);
        let ids = ids.map(|ids| ("event_ids", ids.log.len()));
        let users = counting.users.as_ref().map_or(0, |users| users.rows());
        let others = [
            ("impressions", attribution.impressions.log.len()),
            ("slates", attribution.slates.len()),
            ("retained", attribution.retained.rows.log.len()),
            ("feedback", attribution.pending.len()),
            ("sessions", self.sessions.rows.len()),
            ("viewings", counting.viewings.rows.len()),
            ("users", users),
            ("user_days", counting.experiments.rows()),
        ];
        ids.chain(others).collect()
    }

    /// Bounds of rows by table from now on: of each that is not named, as it was.
    pub fn set_bounds(&mut self, rows: &HashMap<String, usize>) {
        let set =
            |name: &str, bound: &mut usize| *bound = rows.get(name).copied().unwrap_or(*bound);
        for ids in self.logs.iter_mut().flat_map(|log| &mut log.ids) {
            set("event_ids", &mut ids.limit);
        }
        let (rules, counting) = (&mut self.attribution.rules, &mut self.counting);
        set("impressions", &mut rules.max_open);
        set("retained", &mut rules.max_retained);
        set("feedback", &mut rules.max_pending);
        set("sessions", &mut self.sessions.rows.limit);
        set("viewings", &mut counting.viewings.rows.limit);
        set("user_days", &mut counting.experiments.limit);
        if let (Some(users), Some(limit)) = (&mut counting.users, rows.get("users")) {
            users.set_limit(*limit);
        }
    }

    /// What was fed is taken in; `at_end`: logs of which everything was read.
    pub fn end_apply(&mut self, at_end: &[usize]) -> Result<(), Overflow> {
        self.advance_idle(at_end);
        let [impressions, clicks, conversions, sessions, _] =
            EventKind::ALL.map(|kind| self.clock_ms(kind));
        let arrivals = EventKind::ALL.map(|kind| self.arrival_ms(kind));
        let counting = &mut self.counting;
        self.attribution.finalise(impressions, clicks, counting);
        self.attribution.leave_early(counting);
        self.attribution.emit_values(counting);
        self.sessions
            .expire(arrivals[EventKind::Sessions as usize], |change| {
                counting.settle(change);
            });
        counting.expire_viewings(impressions.min(clicks).min(sessions));
        counting.fold(self.stream_ms)?;
        let slowest = impressions.min(clicks).min(conversions);
        self.attribution
            .expire(clicks, arrivals[EventKind::Impressions as usize], slowest);
        for log in &mut self.logs {
            for ids in &mut log.ids {
                ids.expire(log.arrival_ms);
            }
        }
        self.counting
            .bound_users(self.stream_ms, self.exposures_final_ms())?;
        if self.counting.dimensions.is_crowded() {
            self.sweep();
        }
        Ok(())
    }

    /// Frees the numbers of combinations that no row refers to.
    fn sweep(&mut self) {
        let Self {
            attribution,
            counting,
            sessions,
            ..
        } = self;
        let Counting {
            dimensions,
            users,
            viewings,
            ..
        } = counting;
        dimensions.sweep(|visit| {
            attribution.each_combination(visit);
            sessions
                .rows
                .alive()
                .for_each(|row| visit(row.summary.combination));
            viewings.each_combination(visit);
            if let Some(users) = users {
                users.each_combination(visit);
            }
        });
    }

    /// Brings the sums over users up to date: everything else is so after each apply.
    pub fn refresh_user_sums(&mut self) -> Result<(), Overflow> {
        self.counting
            .refresh_user_sums(self.stream_ms, self.exposures_final_ms())
    }

    /// No exposure to experiments before this time can be accepted any more.
    fn exposures_final_ms(&self) -> i64 {
        let clocks = self.exposing.iter().map(|log| self.logs[*log].clock_ms());
        clocks.min().unwrap_or(NEVER) - self.time.max_lateness_ms
    }

    /// A log that was read to its end is idle: for joins and expiry its clock follows its siblings',
    /// and where all are idle the newest of them, less the skew.
    fn advance_idle(&mut self, at_end: &[usize]) {
        let arrivals = self.logs.iter().map(|log| log.arrival_ms);
        let newest = arrivals.max().unwrap_or(NEVER);
        for at in at_end {
            let siblings = self
                .logs
                .iter()
                .enumerate()
                .filter(|(other, _)| other != at);
            let clocks = siblings.map(|(other, log)| match at_end.contains(&other) {
                true => newest,
                false => log.arrival_ms,
            });
            let slowest = clocks.min().unwrap_or(NEVER);
            if slowest > NEVER {
                let log = &mut self.logs[*at];
                log.idle_ms = log.idle_ms.max(slowest - self.time.max_skew_ms);
            }
        }
    }

    /// The clock of joins of a kind of events: of several logs with them that of the slowest.
    pub fn clock_ms(&self, kind: EventKind) -> i64 {
        let clocks = self.holders[kind as usize].iter();
        let clocks = clocks.map(|log| self.logs[*log].clock_ms());
        clocks.min().unwrap_or(NEVER)
    }

    /// The arrival clock of a kind of events, likewise.
    pub fn arrival_ms(&self, kind: EventKind) -> i64 {
        let arrivals = self.holders[kind as usize].iter();
        let arrivals = arrivals.map(|log| self.logs[*log].arrival_ms);
        arrivals.min().unwrap_or(NEVER)
    }

    pub fn time(&self) -> &Time {
        &self.time
    }

    /// The clock by which feedback is final: conversions wait for that of the clicks, too.
    pub fn feedback_clock_ms(&self, is_conversion: bool) -> i64 {
        let impressions_ms = self.clock_ms(EventKind::Impressions);
        let clicks_ms = self.clock_ms(EventKind::Clicks);
        if is_conversion {
            impressions_ms.min(clicks_ms)
        } else {
            impressions_ms
        }
    }

    /// The slowest clock of the events that joins depend on.
    pub fn join_clock_ms(&self) -> i64 {
        self.feedback_clock_ms(true)
            .min(self.clock_ms(EventKind::Conversions))
    }

    /// The slowest clock of the events that viewings depend on.
    pub fn viewing_clock_ms(&self) -> i64 {
        self.feedback_clock_ms(true)
            .min(self.clock_ms(EventKind::Sessions))
    }
}
