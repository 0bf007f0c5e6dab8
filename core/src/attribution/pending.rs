//! Pending feedback: what may still join another impression than it does now.
//!
//! It counts at once in the windows, under its effective combination and position, and is corrected when
//! its join changes. Once its join is final it leaves.

use std::collections::{BTreeSet, VecDeque};

use crate::changes::{Amounts, Change, Combination, Fact, UserAt};

use crate::hash::{HashMap, NONE};
use crate::kinds::FeedbackKind;
use crate::log::NO_ROW;
use crate::own_sums::{Values, places};
use crate::spec::records::OwnFields;

/// One feedback event.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// A number of its own.
    pub id: u64,
    pub user: u64,
    /// What it joins by: the id of its impression, else its person and item.
    pub pair: u64,
    /// Its person and item; without an item the impression.
    pub item_pair: u64,
    /// Hash of its user and request; `hash::NONE` without one.
    pub slate_key: u64,
    pub event_ms: i64,
    /// The time as of which it joins: of a refund that of its order, if that is earlier.
    pub joins_ms: i64,
    pub offset: i64,
    /// Of its event among those of its record.
    pub number: u32,
    pub kind: FeedbackKind,
    pub amounts: Amounts,
    pub own_combination: Combination,
    pub own_position: u32,
    /// Whether its own dimensions are all given.
    pub is_complete: bool,
    /// The retained impression that it joins; `NO_ROW`: none.
    pub joined: u32,
    /// Under what it was emitted.
    pub combination: Combination,
    pub position: u32,
    /// The conditions of own sums that its impression meets.
    pub met_by_joined: u32,
    /// Whether it was counted since the start.
    pub is_settled: bool,
    /// Epoch in which what is stored of it last changed.
    pub epoch: u32,
}

impl Feedback {
    pub fn is_conversion(&self) -> bool {
        self.kind.is_conversion()
    }

    /// What it counts as: 1, of a conversion that many orders.
    pub fn orders(&self) -> i32 {
        match self.is_conversion() {
            true => self.amounts.orders.into(),
            false => 1,
        }
    }

    /// Whether it says in which request its item was shown.
    pub fn has_request(&self) -> bool {
        self.slate_key != NONE
    }

    /// Whether it joins by its request: not where it says its impression.
    pub fn joins_by_request(&self) -> bool {
        self.has_request() && !self.has_impression()
    }

    /// Whether it says which impression it joins.
    pub fn has_impression(&self) -> bool {
        self.pair != self.item_pair
    }

    pub fn is_joined(&self) -> bool {
        self.joined != NO_ROW
    }

    /// Under what it was emitted.
    pub fn at(&self) -> UserAt {
        UserAt::new(self.user, self.event_ms, self.combination)
    }

    /// Whether another join made it count as something else.
    pub fn is_counted_otherwise(&self, before: &Self) -> bool {
        (self.combination, self.position, self.met_by_joined)
            != (before.combination, before.position, before.met_by_joined)
    }

    /// What it counts as, at a position.
    pub fn change(&self, sign: i64, position: u32) -> Change<'static> {
        let what = Fact::Feedback {
            kind: self.kind,
            position,
            amounts: self.amounts,
        };
        Change::new(self.at(), sign, what)
    }
}

/// The pending feedback of one topic, found by pair and time.
#[derive(Debug, Default)]
struct Waiting {
    /// Places of each pair's, ascending by time.
    by_pair: HashMap<Vec<(i64, u32)>>,
    by_time: BTreeSet<(i64, u32)>,
    /// No feedback here is later: most impressions are, and look for nothing.
    newest_ms: Option<i64>,
}

/// Feedback that left before its time: it is stored that it did.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    pub id: u64,
    pub event_ms: i64,
    pub epoch: u32,
}

/// So many of those that left are remembered even where less may be pending.
const LEAST_LEFT: usize = 1024;

/// The pending feedback of one partition.
#[derive(Debug, Default)]
pub struct Pending {
    pub left: VecDeque<Left>,
    places: Vec<Option<Feedback>>,
    free: Vec<u32>,
    clicks: Waiting,
    conversions: Waiting,
    pub epoch: u32,
    has_changed: bool,
}

impl Pending {
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn get(&self, place: u32) -> Option<&Feedback> {
        self.places.get(place as usize)?.as_ref()
    }

    /// Writes feedback back to its place; what is stored of it changes if it was settled since.
    pub fn set(&mut self, place: u32, mut feedback: Feedback) {
        if let Some(Some(held)) = self.places.get_mut(place as usize) {
            if held.is_settled != feedback.is_settled {
                feedback.epoch = self.epoch;
                self.has_changed = true;
            }
            *held = feedback;
        }
    }

    fn waiting(&self, is_conversion: bool) -> &Waiting {
        if is_conversion {
            &self.conversions
        } else {
            &self.clicks
        }
    }

    fn waiting_mut(&mut self, is_conversion: bool) -> &mut Waiting {
        if is_conversion {
            &mut self.conversions
        } else {
            &mut self.clicks
        }
    }

    pub fn insert(&mut self, mut feedback: Feedback) -> u32 {
        feedback.epoch = self.epoch;
        self.has_changed = true;
        self.put(feedback)
    }

    /// Adds feedback as it is.
    pub fn put(&mut self, feedback: Feedback) -> u32 {
        let at = self.free.pop().unwrap_or(self.places.len() as u32);
        if at as usize == self.places.len() {
            self.places.push(None);
        }
        self.places[at as usize] = Some(feedback);
        let waiting = self.waiting_mut(feedback.is_conversion());
        let of_pair = waiting.by_pair.entry(feedback.pair).or_default();
        let key = (feedback.joins_ms, at);
        of_pair.insert(of_pair.partition_point(|other| *other < key), key);
        waiting.by_time.insert(key);
        waiting.newest_ms = waiting.newest_ms.max(Some(feedback.joins_ms));
        at
    }

    pub fn remove(&mut self, place: u32) -> Option<Feedback> {
        let feedback = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        let (pair, key) = (feedback.pair, (feedback.joins_ms, place));
        let waiting = self.waiting_mut(feedback.is_conversion());
        waiting.by_time.remove(&key);
        if waiting.by_time.is_empty() {
            waiting.newest_ms = None;
        }
        if let Some(of_pair) = waiting.by_pair.get_mut(&pair) {
            if let Ok(at) = of_pair.binary_search(&key) {
                of_pair.remove(at);
            }
            if of_pair.is_empty() {
                waiting.by_pair.remove(&pair);
            }
        }
        Some(feedback)
    }

    /// Places of a pair's feedback in the times [from, to], the earliest first.
    pub fn of_pair(
        &self,
        is_conversion: bool,
        pair: u64,
        from_ms: i64,
        to_ms: i64,
    ) -> impl Iterator<Item = u32> {
        let waiting = self.waiting(is_conversion);
        let of_pair: &[(i64, u32)] = match waiting.newest_ms < Some(from_ms) {
            true => &[],
            false => waiting.by_pair.get(&pair).map_or(&[], Vec::as_slice),
        };
        let first = of_pair.partition_point(|(event_ms, _)| *event_ms < from_ms);
        let within = of_pair[first..]
            .iter()
            .take_while(move |(event_ms, _)| *event_ms <= to_ms);
        within.map(|(_, place)| *place)
    }

    /// The earliest of the same pair and topic, where there are more than `most`.
    pub fn beyond(&self, feedback: &Feedback, most: usize) -> Option<u32> {
        let waiting = self.waiting(feedback.is_conversion());
        let of_pair = waiting.by_pair.get(&feedback.pair)?;
        let (_, first) = of_pair.first()?;
        (of_pair.len() > most).then_some(*first)
    }

    /// The earliest of a topic.
    pub fn earliest(&self, is_conversion: bool) -> Option<(i64, u32)> {
        self.waiting(is_conversion).by_time.first().copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Feedback)> {
        let all = self.places.iter().enumerate();
        all.filter_map(|(at, found)| found.as_ref().map(|feedback| (at as u32, feedback)))
    }

    /// Remembers that feedback left before its time, but for the oldest beyond the bound.
    pub fn remember_left(&mut self, feedback: &Feedback, bound: usize) {
        self.has_changed = true;
        self.left.push_back(Left {
            id: feedback.id,
            event_ms: feedback.event_ms,
            epoch: self.epoch,
        });
        while self.left.len() > bound.max(LEAST_LEFT) {
            self.left.pop_front();
        }
    }

    /// Feedback before a time is final, whether it left or not.
    pub fn forget_left(&mut self, until_ms: i64) {
        while self.left.front().is_some_and(|x| x.event_ms < until_ms) {
            self.left.pop_front();
        }
    }

    /// Rows were loaded; what changes from now on belongs to this epoch.
    pub fn begin(&mut self, epoch: u32) {
        (self.epoch, self.has_changed) = (epoch, false);
    }

    /// What changes from now on belongs to another epoch.
    pub fn seal(&mut self) {
        self.epoch += u32::from(std::mem::take(&mut self.has_changed));
    }
}

/// What the pending feedback of one partition says to own sums, kept apart from it and only where
/// these ask feedback for anything: it has its places.
#[derive(Debug)]
pub struct PendingValues {
    /// Places of the amounts and of the conditions of feedback.
    pub amounts: Vec<usize>,
    pub conditions: Vec<usize>,
    /// Those of impressions that are kept with them.
    pub of_joined: Vec<usize>,
    rows: Vec<Values>,
}

impl PendingValues {
    pub fn new(fields: &OwnFields) -> Self {
        let amounts = fields.amounts.iter().enumerate();
        let conditions = fields.conditions.iter().enumerate();
        let amounts = amounts.filter(|(_, of)| of.is_of_feedback());
        let conditions = conditions.filter(|(_, condition)| condition.of.is_of_feedback());
        Self {
            amounts: amounts.map(|(at, _)| at).collect(),
            conditions: conditions.map(|(at, _)| at).collect(),
            of_joined: places(fields.of_joined).collect(),
            rows: Vec::new(),
        }
    }

    /// Those of the feedback at a place.
    pub fn get(&self, place: u32) -> Option<&Values> {
        self.rows.get(place as usize)
    }

    /// New feedback is at a place.
    pub(super) fn set(&mut self, place: u32, values: Option<&Values>) {
        if self.amounts.is_empty() && self.conditions.is_empty() {
            return;
        }
        let at = place as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, Values::NONE);
        }
        self.rows[at] = values.copied().unwrap_or(Values::NONE);
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Values>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback(event_ms: i64) -> Feedback {
        Feedback {
            id: 0,
            user: 1,
            pair: 7,
            item_pair: 7,
            slate_key: NONE,
            event_ms,
            joins_ms: event_ms,
            offset: 0,
            number: 0,
            kind: FeedbackKind::Configured(0),
            amounts: Amounts::default(),
            own_combination: 0,
            own_position: 0,
            is_complete: true,
            joined: NO_ROW,
            combination: 0,
            position: 0,
            met_by_joined: 0,
            is_settled: false,
            epoch: 0,
        }
    }

    #[test]
    fn the_earliest_of_a_pair_is_beyond_its_bound() {
        let mut pending = Pending::default();
        let places = [50, 10, 30].map(|event_ms| pending.put(feedback(event_ms)));
        assert_eq!(pending.beyond(&feedback(0), 3), None);
        assert_eq!(pending.beyond(&feedback(0), 2), Some(places[1]));
        pending.remove(places[1]);
        assert_eq!(pending.beyond(&feedback(0), 1), Some(places[2]));
    }
}
