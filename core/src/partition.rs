//! The whole of one partition number: records of four topics in, counted state kept.
//!
//! Everything is a function of the logs: the order in which the topics' records come, how many are
//! fed at a time, and restarts change nothing of what is stored in the end.

pub mod admission;
mod beside;
pub mod event_ids;
pub mod recovery;
pub mod snapshot;
pub mod tables;

use crate::attribution::pending::Feedback;
use crate::attribution::{Attribution, ShownItem};
use crate::changes::{Dwell, ItemOf, Kind, Segment};
use crate::counting::Counting;
use crate::counting::panes::Overflow;
use crate::counting::sessions::{Sessions, Visit};
use crate::counting::viewings::{Report, Viewing, viewing_key};
use crate::decode::rejected::RejectedRecords;
use crate::decode::{Action, Body, Decoded, Event, Item, Topic};
use crate::hash::{NONE, mix};
use crate::kafka::Record;
use crate::log::NO_ROW;
use crate::partition::admission::{NEVER, TopicLog, Verdict};
use crate::spec::{Spec, Time};
use crate::weights::WeighedItem;

/// Makes the key of a slate that is one event without a request id.
const OWN_SLATE: u64 = 0xA076_1D64_78BD_642F;

/// State of one partition number, over all four topics.
pub struct Partition {
    time: Time,
    /// In the order of `Topic::ALL`.
    pub logs: [TopicLog; 4],
    /// Largest time accepted, no event's beyond its arrival.
    pub stream_ms: i64,
    /// Largest time accepted.
    pub newest_ms: i64,
    pub counting: Counting,
    pub attribution: Attribution,
    pub sessions: Sessions,
    pub rejected: RejectedRecords,
}

impl Partition {
    /// An empty one; an error where the spec asks for what there is not.
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let gap_ms = spec.attribution.session_gap_ms;
        let late_ms = spec.time.max_lateness_ms;
        Ok(Self {
            time: spec.time,
            logs: [(); 4].map(|()| TopicLog::new(spec.time, spec.limits.event_ids)),
            stream_ms: 0,
            newest_ms: 0,
            counting: Counting::new(spec)?,
            attribution: Attribution::new(spec),
            sessions: Sessions::new(gap_ms, late_ms, spec.limits.open_sessions),
            rejected: RejectedRecords::default(),
        })
    }

    /// Takes in records of a topic with their events; they come in offset order.
    pub fn feed(
        &mut self,
        topic: Topic,
        records: &[Record],
        events: &[Decoded],
    ) -> Result<(), Overflow> {
        std::hint::black_box(self.warm_up(topic, events));
        let mut found = records.iter().zip(events);
        found.try_for_each(|(record, event)| self.take(topic, record, event))
    }

    /// Looks up what the events will need, so that the processor fetches it from memory for all of
    /// them at the same time, instead of one after another when each is taken in.
    fn warm_up(&self, topic: Topic, events: &[Decoded]) -> usize {
        let log = &self.logs[topic as usize];
        let events = events.iter().flatten();
        events
            .map(|event| {
                let mut known = log.ids.warm_up(event.event_id);
                if let Body::Impressions { items, .. } = event.body {
                    let key = slate_key(event.user, event.request);
                    known += self.attribution.slates.warm_up(key);
                    known += self.counting.warm_up(event.user);
                    let pairs = items.iter().map(|item| mix(event.user, item.item));
                    known += pairs
                        .map(|pair| self.attribution.impressions.warm_up(pair))
                        .sum::<usize>();
                }
                known
            })
            .sum()
    }

    fn take(&mut self, topic: Topic, record: &Record, event: &Decoded) -> Result<(), Overflow> {
        let offset = record.offset;
        let log = &mut self.logs[topic as usize];
        let arrival_ms = log.arrive(offset, record.timestamp_ms);
        let event = match event {
            Ok(event) => event,
            Err(reason) => {
                let reason = reason.name();
                log.reject(reason);
                self.rejected.push(topic, offset, reason, record.value);
                return Ok(());
            }
        };
        let reason = match log.judge(event.event_ms, event.event_id) {
            Verdict::Accepted => None,
            Verdict::Duplicate => return Ok(()),
            Verdict::Late => Some("late"),
            Verdict::Future => Some("future"),
        };
        if let Some(reason) = reason {
            self.rejected.push(topic, offset, reason, record.value);
            return Ok(());
        }
        self.stream_ms = self.stream_ms.max(event.event_ms.min(arrival_ms));
        self.newest_ms = self.newest_ms.max(event.event_ms);
        self.attribution.stream_ms = self.stream_ms;
        let segment = self.counting.segment_of(event.dimensions.iter());
        let at = At {
            arrival_ms,
            offset,
            segment,
        };
        self.count(event, at);
        self.counting.fold_if_full(self.stream_ms)
    }

    /// Counts an accepted event.
    fn count(&mut self, event: &Event, at: At) {
        let counting = &mut self.counting;
        match event.body {
            Body::Impressions {
                items,
                is_list,
                weights,
            } => {
                let shown = (items, weights, is_list);
                show(&mut self.attribution, counting, event, shown, at);
            }
            Body::Session {
                session,
                action,
                item,
                dwell_ms,
            } => {
                let visit = (session, action);
                counting.valued(
                    event.custom.first(),
                    (event.event_ms, at.segment, event.user),
                    1,
                );
                take_visit(&mut self.sessions, counting, event, visit, at);
                if let (Action::Dwell, Some(dwell_ms), true) = (action, dwell_ms, item != NONE) {
                    view(counting, event, item, dwell_ms, at);
                }
            }
            body => {
                let (feedback, values) = (feedback_of(event, &body, at), event.custom.first());
                if feedback.is_conversion() {
                    self.attribution.convert(feedback, values, counting);
                } else {
                    self.attribution.give(feedback, values, counting);
                }
            }
        }
    }

    /// What was fed is taken in; `at_end`: topics of which everything was read.
    pub fn end_apply(&mut self, at_end: &[Topic]) -> Result<(), Overflow> {
        self.advance_idle(at_end);
        let [impressions, clicks, conversions, sessions] = Topic::ALL.map(|t| self.clock_ms(t));
        let counting = &mut self.counting;
        self.attribution.finalise(impressions, clicks, counting);
        self.attribution.emit_values(counting);
        let arrivals = Topic::ALL.map(|topic| self.logs[topic as usize].arrival_ms);
        self.sessions
            .expire(arrivals[Topic::Sessions as usize], |change| {
                counting.settled_session(change);
            });
        counting.expire_viewings(impressions.min(clicks).min(sessions));
        counting.fold(self.stream_ms)?;
        let slowest = impressions.min(clicks).min(conversions);
        self.attribution
            .expire(clicks, arrivals[Topic::Impressions as usize], slowest);
        for log in &mut self.logs {
            log.ids.expire(log.arrival_ms);
        }
        self.counting
            .bound_users(self.stream_ms, self.exposures_final_ms())
    }

    /// Brings the sums over users up to date: everything else is so after each apply.
    pub fn refresh_user_sums(&mut self) -> Result<(), Overflow> {
        self.counting
            .refresh_user_sums(self.stream_ms, self.exposures_final_ms())
    }

    /// No impression before this time can be accepted any more.
    fn exposures_final_ms(&self) -> i64 {
        self.clock_ms(Topic::Impressions) - self.time.max_lateness_ms
    }

    /// A topic that was read to its end is idle: for joins and expiry its clock follows its
    /// siblings', and where all are idle the newest of them, less the skew.
    fn advance_idle(&mut self, at_end: &[Topic]) {
        let newest = self
            .logs
            .iter()
            .map(|log| log.arrival_ms)
            .max()
            .unwrap_or(NEVER);
        for topic in at_end {
            let siblings = Topic::ALL.into_iter().filter(|other| other != topic);
            let clocks = siblings.map(|other| match at_end.contains(&other) {
                true => newest,
                false => self.logs[other as usize].arrival_ms,
            });
            let slowest = clocks.min().unwrap_or(NEVER);
            if slowest > NEVER {
                let log = &mut self.logs[*topic as usize];
                log.idle_ms = log.idle_ms.max(slowest - self.time.max_skew_ms);
            }
        }
    }

    pub fn clock_ms(&self, topic: Topic) -> i64 {
        self.logs[topic as usize].clock_ms()
    }

    pub fn time(&self) -> &Time {
        &self.time
    }

    /// The clock by which feedback is final: conversions wait for that of the clicks, too.
    pub fn feedback_clock_ms(&self, is_conversion: bool) -> i64 {
        let impressions_ms = self.clock_ms(Topic::Impressions);
        let clicks_ms = self.clock_ms(Topic::Clicks);
        if is_conversion {
            impressions_ms.min(clicks_ms)
        } else {
            impressions_ms
        }
    }

    /// The slowest clock of the topics that joins depend on.
    pub fn join_clock_ms(&self) -> i64 {
        let topics = [Topic::Impressions, Topic::Clicks, Topic::Conversions];
        topics
            .map(|topic| self.clock_ms(topic))
            .into_iter()
            .min()
            .unwrap_or(NEVER)
    }

    /// The slowest clock of the topics that viewings depend on.
    pub fn viewing_clock_ms(&self) -> i64 {
        let topics = [Topic::Impressions, Topic::Clicks, Topic::Sessions];
        topics
            .map(|topic| self.clock_ms(topic))
            .into_iter()
            .min()
            .unwrap_or(NEVER)
    }
}

/// Where an event stands in its log, and its segment.
#[derive(Clone, Copy)]
struct At {
    arrival_ms: i64,
    offset: i64,
    segment: Segment,
}

/// The key of the slate of a user's request; `NONE` without one.
fn slate_key(user: u64, request: u64) -> u64 {
    if request == NONE {
        NONE
    } else {
        mix(user, request)
    }
}

fn show(
    attribution: &mut Attribution,
    counting: &mut Counting,
    event: &Event<'_>,
    (items, weights, is_list): (&[Item], &[WeighedItem], bool),
    at: At,
) {
    let slate_key = match slate_key(event.user, event.request) {
        NONE if is_list => mix(event.user, at.offset as u64 ^ OWN_SLATE),
        key => key,
    };
    let category = counting.category_of(event.dimensions.iter());
    for (index, item) in items.iter().enumerate() {
        let shown = ShownItem {
            user: event.user,
            pair: mix(event.user, item.item),
            item: ItemOf::new(item.item, category.unwrap_or(item.category)),
            slate_key,
            event_ms: event.event_ms,
            arrival_ms: at.arrival_ms,
            offset: at.offset,
            index: index as u16,
            position: item.position as u16,
            segment: at.segment,
            score: item.score,
            weights: weights.get(index),
            custom: event.custom.get(index),
            probe: item.probe * i16::from(counting.looks_at_slates),
        };
        attribution.show(&shown, counting);
    }
}

fn feedback_of(event: &Event<'_>, body: &Body<'_>, at: At) -> Feedback {
    let (item, position, kind, value_micros, dwell_ms) = match *body {
        Body::Click {
            item,
            position,
            kind,
            dwell_ms,
        } => (item, position, kind, 0, dwell_ms),
        Body::Conversion { item, value_micros } => (item, 0, Kind::Conversion, value_micros, None),
        _ => (NONE, 0, Kind::Other, 0, None),
    };
    Feedback {
        id: 0,
        user: event.user,
        pair: mix(event.user, item),
        slate_key: slate_key(event.user, event.request),
        event_ms: event.event_ms,
        offset: at.offset,
        kind,
        value_micros,
        dwell_ms,
        own_segment: at.segment,
        own_position: position,
        is_complete: false,
        joined: NO_ROW,
        segment: at.segment,
        position,
        is_settled: false,
        epoch: 0,
    }
}

fn take_visit(
    sessions: &mut Sessions,
    counting: &mut Counting,
    event: &Event<'_>,
    (session, action): (u64, Action),
    at: At,
) {
    let visit = Visit {
        user: event.user,
        offset: at.offset,
        segment: at.segment,
        views: i64::from(action == Action::View),
        is_end: action == Action::End,
    };
    let key = mix(event.user, session);
    sessions.take(key, event.event_ms, visit, |change| {
        counting.session(change)
    });
}

/// A session event reports time spent on an item.
fn view(counting: &mut Counting, event: &Event<'_>, item: u64, dwell_ms: i64, at: At) {
    let (user, event_ms, segment) = (event.user, event.event_ms, at.segment);
    match slate_key(user, event.request) {
        NONE => counting.single_dwell(&Dwell {
            event_ms,
            segment,
            user,
            dwell_ms,
            sign: 1,
        }),
        key => {
            let report = Report {
                dwell_ms,
                event_ms,
                offset: at.offset,
                segment,
            };
            let viewing = Viewing {
                user,
                by_feedback: None,
                by_session: Some(report),
            };
            counting.viewing(viewing_key(key, mix(user, item)), viewing);
        }
    }
}
