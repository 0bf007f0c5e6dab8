//! What becomes of an accepted event: the changes that each kind of events makes.

use crate::attribution::Attribution;
use crate::attribution::emitted::ShownItem;
use crate::attribution::pending::Feedback;
use crate::changes::{Combination, ItemOf, UserAt};
use crate::counting::Counting;
use crate::counting::own_sums::Origin;
use crate::counting::sessions::{Sessions, Visit};
use crate::counting::viewings::{Report, Viewing, viewing_key};
use crate::decode::{Body, Event, Line, worth_of};
use crate::hash::{NONE, anonymous, is_anonymous, mix};
use crate::kinds::{Action, FeedbackKind};
use crate::log::NO_ROW;
use crate::partition::admission::TopicLog;
use crate::partition::event_ids::Order;
use crate::slates::probes::EventProbes;

/// Makes the key of a slate that is one event without a request id.
const OWN_SLATE: u64 = 0xA076_1D64_78BD_642F;
/// Makes what tells anonymous events apart.
const NOBODY: u64 = 0xE703_7ED1_A0B4_28DB;
/// Makes what events with an id of joins join by.
const JOIN: u64 = 0xD6E8_FEB8_6659_FD93;
/// Makes what feedback joins by that says which impression it is of.
const BY_IMPRESSION: u64 = 0x589F_3B62_8F6A_1C4D;
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
pub(super) struct Arrival<'a> {
    pub log: &'a TopicLog,
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

fn by_join(join: u64) -> u64 {
    mix(join, JOIN)
}

/// The persons that an id with this hash can be: by the user, and by the id of joins.
pub fn people_of(id: u64) -> [u64; 2] {
    let by_join = by_join(id);
    [id, by_join ^ u64::from(is_anonymous(by_join))]
}

impl Identity {
    pub fn of(event: &Event) -> Self {
        let apart = match (event.join, event.user, event.request) {
            (NONE, NONE, NONE) => mix(event.event_ms as u64, NOBODY ^ event.kind() as u64),
            (NONE, NONE, request) => mix(request, NOBODY),
            (NONE, user, _) => user,
            (join, ..) => by_join(join),
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

    /// Hash of who joins and an item.
    pub fn pair(self, item: u64) -> u64 {
        mix(self.apart, item)
    }

    /// What an impression and its feedback join by: its id, else who joins and the item.
    pub fn joins_by(self, impression: u64, item: u64) -> u64 {
        match impression {
            NONE => self.pair(item),
            id => mix(id, BY_IMPRESSION),
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

/// What an event is to refunds of it.
pub(super) fn order_of(event: &Event, position: i64) -> Order {
    let Body::Conversion { lines, .. } = event.body else {
        return Order::UNKNOWN;
    };
    let who = Identity::at(event, position);
    let first = lines.first().copied().unwrap_or_default();
    Order {
        event_ms: event.event_ms,
        slate: match first.impression {
            NONE => who.slate_key(event.request),
            _ => NONE,
        },
        pair: who.joins_by(first.impression, first.item),
        value_micros: worth_of(lines),
    }
}

/// Counts an accepted event.
pub(super) fn count(
    attribution: &mut Attribution,
    counting: &mut Counting,
    sessions: &mut Sessions,
    event: &Event,
    arrival: Arrival<'_>,
) {
    let who = Identity::at(event, arrival.position);
    let accepted = Accepted {
        event,
        who,
        at: UserAt::new(who.person, event.event_ms, arrival.combination),
        slate_key: who.slate_key(event.request),
        arrival,
    };
    match event.body {
        Body::Impressions { .. } => accepted.show(attribution, counting),
        Body::Click { lines, kind } => accepted.give(attribution, counting, lines, |_| kind),
        Body::Conversion { lines, .. } => {
            accepted.give(attribution, counting, lines, |number| match number {
                0 => FeedbackKind::Conversion,
                _ => FeedbackKind::ConversionLine,
            });
        }
        Body::Session { .. } => accepted.visit(sessions, counting),
        Body::Exposure { .. } => {}
    }
}

/// An accepted event, and what it counts under.
struct Accepted<'a> {
    event: &'a Event<'a>,
    who: Identity,
    at: UserAt,
    slate_key: u64,
    arrival: Arrival<'a>,
}

impl Accepted<'_> {
    /// It shows items.
    fn show(&self, attribution: &mut Attribution, counting: &mut Counting) {
        let Body::Impressions {
            items,
            is_list,
            weights,
            reference,
            held_out,
        } = self.event.body
        else {
            return;
        };
        if items.is_empty() {
            return counting.show_nothing(self.at);
        }
        let probes = match attribution.rules.looks_at_slates {
            true => EventProbes {
                apart: self.who.apart,
                reference,
                held_out,
            },
            false => EventProbes::default(),
        };
        let (position, place) = (self.arrival.position, self.arrival.place);
        let slate_key = match self.slate_key {
            NONE if is_list => numbered(
                mix(self.who.apart, position as u64 ^ OWN_SLATE),
                place.number as u64,
            ),
            key => key,
        };
        let category = counting.category_of(self.event.dimensions.iter());
        for (index, item) in items.iter().enumerate() {
            let shown = ShownItem {
                at: self.at,
                pair: self.who.joins_by(item.impression, item.item),
                item_pair: self.who.pair(item.item),
                item: ItemOf {
                    item: item.item,
                    category: category.unwrap_or(item.category),
                },
                slate_key,
                arrival_ms: self.arrival.arrival_ms,
                offset: position,
                index: (place.shown + index) as u16,
                position: item.position as u16,
                score: item.score,
                weights: weights.get(index),
                values: self.event.values.get(index),
                probes,
            };
            attribution.show(&shown, counting);
        }
    }

    /// It is feedback on items, each of a kind by its number.
    fn give(
        &self,
        attribution: &mut Attribution,
        counting: &mut Counting,
        lines: &[Line],
        kind_of: impl Fn(usize) -> FeedbackKind,
    ) {
        let refunds_order = self.refunds_order(lines);
        for (number, line) in lines.iter().enumerate() {
            let mut amounts = line.amounts;
            if refunds_order {
                amounts.orders = -1;
            }
            let mut feedback = Feedback {
                id: 0,
                user: self.at.user,
                pair: self.who.joins_by(line.impression, line.item),
                item_pair: self.who.pair(line.of()),
                slate_key: self.slate_key,
                event_ms: self.at.event_ms,
                joins_ms: self.at.event_ms,
                offset: self.arrival.position,
                number: self.arrival.place.number as u32,
                kind: kind_of(number),
                amounts,
                own_combination: self.at.combination,
                own_position: line.position,
                is_complete: false,
                joined: NO_ROW,
                combination: self.at.combination,
                position: line.position,
                met_by_joined: 0,
                is_settled: false,
                epoch: 0,
            };
            if feedback.orders() < 1 {
                self.join_as_order(&mut feedback, line);
            }
            attribution.note(&feedback, line.item, number);
            let who = (feedback.user, feedback.item_pair);
            let before = counting.last_ms(who.0, who.1, true);
            attribution.give(feedback, self.event.values.get(number), counting);
            counting.count_person(who, line.of(), before, true);
        }
    }

    /// Whether it gives back all that its order is worth.
    fn refunds_order(&self, lines: &[Line]) -> bool {
        let worth_micros = worth_of(lines);
        let line = lines.first().filter(|_| worth_micros < 0);
        let order = line.and_then(|line| self.arrival.log.order_of(self.event, line.of()));
        order.is_some_and(|order| order.is_used_up_by(worth_micros))
    }

    /// A refund joins as its order did, or nothing where that is not known.
    fn join_as_order(&self, refund: &mut Feedback, line: &Line) {
        let Some(order) = self.arrival.log.order_of(self.event, line.of()) else {
            refund.pair = mix(refund.offset as u64, NOBODY);
            refund.item_pair = refund.pair;
            return;
        };
        refund.joins_ms = order.event_ms.min(refund.event_ms);
        refund.slate_key = order.slate;
        if line.of() == NONE {
            (refund.pair, refund.item_pair) = (order.pair, order.pair);
        }
    }

    /// It is of a session, and may report time spent on an item.
    fn visit(&self, sessions: &mut Sessions, counting: &mut Counting) {
        let Body::Session {
            session,
            action,
            item,
            dwell_ms,
        } = self.event.body
        else {
            return;
        };
        let UserAt {
            user,
            event_ms,
            combination,
        } = self.at;
        counting.add_values(self.event.values.first(), self.at, 1, Origin::Visit);
        let visit = Visit {
            user,
            offset: self.arrival.position,
            combination,
            views: i64::from(action == Action::View),
            is_end: action == Action::End,
        };
        // Without an id a visit is the person's: the gap parts one from the next.
        let of = match self.event.is_anonymous() {
            true => NONE,
            false => user,
        };
        sessions.take(mix(of, session), event_ms, visit, |change| {
            counting.change(change)
        });
        let (Action::Dwell, Some(dwell_ms), true) = (action, dwell_ms, item != NONE) else {
            return;
        };
        if self.slate_key == NONE {
            return counting.single_dwell(self.at, dwell_ms);
        }
        let report = Report {
            dwell_ms,
            event_ms,
            offset: self.arrival.position,
            number: self.arrival.place.number as u32,
            combination,
            user,
        };
        let viewing = Viewing {
            by_feedback: None,
            by_session: Some(report),
        };
        counting.viewing(viewing_key(self.slate_key, self.who.pair(item)), viewing);
    }
}
