//! What becomes of an accepted event: the changes that each kind of events makes.

use crate::attribution::Attribution;
use crate::attribution::emitted::ShownItem;
use crate::attribution::pending::Feedback;
use crate::changes::{Combination, Dwell, ItemOf, Kind};
use crate::counting::Counting;
use crate::counting::sessions::{Sessions, Visit};
use crate::counting::viewings::{Report, Viewing, viewing_key};
use crate::decode::{Action, Body, Event, Item, Line};
use crate::hash::{NONE, anonymous, is_anonymous, mix};
use crate::log::NO_ROW;
use crate::slates::probes::EventProbes;
use crate::weights::WeighedItem;

/// Makes the key of a slate that is one event without a request id.
const OWN_SLATE: u64 = 0xA076_1D64_78BD_642F;
/// Makes what tells anonymous events apart.
const NOBODY: u64 = 0xE703_7ED1_A0B4_28DB;
/// Makes what events with an id of joins join by.
const JOIN: u64 = 0xD6E8_FEB8_6659_FD93;
/// Makes what events of nobody join by, where one record, or one element of it, says all of them.
const OWN_RECORD: u64 = 0x8EBC_6AF0_9C88_C6E3;

/// Where an event stands among those of its record.
#[derive(Clone, Copy, Default)]
pub(super) struct InRecord {
    pub number: usize,
    /// Items that were shown by those before it.
    pub shown: usize,
}

/// A hash of a record as that of its first part, and another one for each further part.
fn numbered(of_record: u64, part: u64) -> u64 {
    match part {
        0 => of_record,
        part => mix(of_record, part),
    }
}

/// Where an event stands in its log, and its combination.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub arrival_ms: i64,
    pub position: i64,
    pub place: InRecord,
    pub combination: Combination,
}

/// Whose event it is.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    /// The person: by the id of joins, else by the user; or who stands for the anonymous event, see
    /// `hash::anonymous`.
    pub person: u64,
    /// What joins depend on: the person; without one the request, or else the moment, which joins
    /// nothing as it is another one for each kind of events.
    pub apart: u64,
}

impl Identity {
    pub fn of(event: &Event) -> Self {
        let apart = match (event.join, event.user, event.request) {
            (NONE, NONE, NONE) => mix(event.event_ms as u64, NOBODY ^ event.kind() as u64),
            (NONE, NONE, request) => mix(request, NOBODY),
            (NONE, user, _) => user,
            (join, ..) => mix(join, JOIN),
        };
        let person = match event.is_anonymous() {
            true => anonymous(apart),
            false => apart ^ u64::from(is_anonymous(apart)),
        };
        Self { person, apart }
    }

    /// Of an event that stands at a position: those of one element join, whoever they are of.
    pub fn at(event: &Event, position: i64) -> Self {
        let own = Self::of(event);
        match (event.shared, event.user, event.join, event.request) {
            (Some(element), NONE, NONE, NONE) => {
                let apart = numbered(mix(position as u64, OWN_RECORD), u64::from(element));
                Self { apart, ..own }
            }
            _ => own,
        }
    }

    /// The key of the slate of a request; `NONE` without one.
    pub fn slate_key(self, request: u64) -> u64 {
        if request == NONE {
            NONE
        } else {
            mix(self.apart, request)
        }
    }
}

/// Counts an accepted event.
pub(super) fn count(
    (attribution, counting, sessions): (&mut Attribution, &mut Counting, &mut Sessions),
    event: &Event,
    at: At,
) {
    let who = Identity::at(event, at.position);
    match event.body {
        Body::Impressions {
            items,
            is_list,
            weights,
            reference,
            held_out,
        } => {
            let shown = (items, weights, is_list);
            let probes = match attribution.rules.looks_at_slates {
                true => EventProbes {
                    apart: who.apart,
                    reference,
                    held_out,
                },
                false => EventProbes::default(),
            };
            show(attribution, counting, event, shown, probes, (who, at));
        }
        Body::Click {
            lines,
            kind,
            dwell_ms,
        } => {
            for (number, (line, values)) in lines.iter().zip(values_of(event)).enumerate() {
                let dwell_ms = dwell_ms.filter(|_| number == 0); // of the record, not of each line
                let feedback = feedback_of(event, (line, kind, dwell_ms), (who, at));
                attribution.note(&feedback, line.item, number);
                attribution.give(feedback, values, counting);
            }
        }
        Body::Conversion { lines, .. } => {
            for (number, (line, values)) in lines.iter().zip(values_of(event)).enumerate() {
                let kind = match number {
                    0 => Kind::Conversion,
                    _ => Kind::ConversionLine,
                };
                let feedback = feedback_of(event, (line, kind, None), (who, at));
                attribution.note(&feedback, line.item, number);
                attribution.convert(feedback, values, counting);
            }
        }
        Body::Session {
            session,
            action,
            item,
            dwell_ms,
        } => {
            let place = (event.event_ms, at.combination, who.person);
            counting.valued(event.custom.first(), place, 1);
            let visit = (session, action);
            take_visit(sessions, counting, event, visit, (who, at));
            if let (Action::Dwell, Some(dwell_ms), true) = (action, dwell_ms, item != NONE) {
                view(counting, event, (item, dwell_ms), (who, at));
            }
        }
        Body::Exposure { .. } => {}
    }
}

/// What each line says to custom metrics.
fn values_of<'a>(event: &Event<'a>) -> impl Iterator<Item = Option<&'a crate::custom::Values>> {
    let custom = event.custom;
    (0..).map(move |line: usize| custom.get(line))
}

fn show(
    attribution: &mut Attribution,
    counting: &mut Counting,
    event: &Event<'_>,
    (items, weights, is_list): (&[Item], &[WeighedItem], bool),
    probes: EventProbes<'_>,
    (who, at): (Identity, At),
) {
    let slate_key = match who.slate_key(event.request) {
        NONE if is_list => numbered(
            mix(who.apart, at.position as u64 ^ OWN_SLATE),
            at.place.number as u64,
        ),
        key => key,
    };
    let category = counting.category_of(event.dimensions.iter());
    for (index, item) in items.iter().enumerate() {
        let shown = ShownItem {
            user: who.person,
            pair: mix(who.apart, item.item),
            item: ItemOf::new(item.item, category.unwrap_or(item.category)),
            slate_key,
            event_ms: event.event_ms,
            arrival_ms: at.arrival_ms,
            offset: at.position,
            index: (at.place.shown + index) as u16,
            position: item.position as u16,
            combination: at.combination,
            score: item.score,
            weights: weights.get(index),
            custom: event.custom.get(index),
            probes,
        };
        attribution.show(&shown, counting);
    }
}

fn feedback_of(
    event: &Event<'_>,
    (line, kind, dwell_ms): (&Line, Kind, Option<i64>),
    (who, at): (Identity, At),
) -> Feedback {
    Feedback {
        id: 0,
        user: who.person,
        pair: mix(who.apart, line.item),
        slate_key: who.slate_key(event.request),
        event_ms: event.event_ms,
        offset: at.position,
        number: at.place.number as u32,
        kind,
        value_micros: line.value_micros,
        dwell_ms,
        own_combination: at.combination,
        own_position: line.position,
        is_complete: false,
        joined: NO_ROW,
        combination: at.combination,
        position: line.position,
        is_settled: false,
        epoch: 0,
    }
}

fn take_visit(
    sessions: &mut Sessions,
    counting: &mut Counting,
    event: &Event<'_>,
    (session, action): (u64, Action),
    (who, at): (Identity, At),
) {
    let visit = Visit {
        user: who.person,
        offset: at.position,
        combination: at.combination,
        views: i64::from(action == Action::View),
        is_end: action == Action::End,
    };
    // Without an id a visit is the person's: the gap parts one from the next.
    let of = if event.is_anonymous() {
        NONE
    } else {
        who.person
    };
    let key = mix(of, session);
    sessions.take(key, event.event_ms, visit, |change| {
        counting.session(change)
    });
}

/// A session event reports time spent on an item.
fn view(
    counting: &mut Counting,
    event: &Event<'_>,
    (item, dwell_ms): (u64, i64),
    (who, at): (Identity, At),
) {
    let (user, event_ms, combination) = (who.person, event.event_ms, at.combination);
    match who.slate_key(event.request) {
        NONE => counting.single_dwell(&Dwell {
            event_ms,
            combination,
            user,
            dwell_ms,
            sign: 1,
        }),
        key => {
            let report = Report {
                dwell_ms,
                event_ms,
                offset: at.position,
                number: at.place.number as u32,
                combination,
                user,
            };
            let viewing = Viewing {
                by_feedback: None,
                by_session: Some(report),
            };
            counting.viewing(viewing_key(key, mix(who.apart, item)), viewing);
        }
    }
}
