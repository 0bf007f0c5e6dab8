//! Attribution: which impression each feedback belongs to, and what is emitted when that changes.
//!
//! 1. A shown item counts at once. In its slate it is placed unless it stands there already: then it
//!    is an impression only, and nothing joins it. Pending feedback that fits it better moves to it.
//! 2. Feedback of a configured kind joins the newest impression of the item in its request's slates,
//!    or without a request of all that the user saw, at or before it and within the click horizon.
//! 3. A conversion joins likewise, within its own horizon, an impression that has feedback no later
//!    than it. It is looked at again whenever the first feedback of such an impression changes. A
//!    refund joins as its order did, if that impression is within the horizon of the refund, too.
//! 4. Feedback counts under its own dimensions and position; its impression's fill what is missing.
//! 5. A join is final when no impression (for conversions: no feedback, either) can come any more
//!    that would change it. A join by request is final at once where the request id cannot come back
//!    for another slate in time.
//! 6. Feedback is settled, and counts since the start, when its dimensions are complete, when its
//!    request names its impression (conversions wait for final feedback), or when its join is final.
//!
//! Windows follow every move; what is settled stays, and a move of it is counted.

pub mod emitted;
pub mod impressions;
mod joins;
pub mod pair_log;
pub mod pending;
pub mod retained;
mod slates;
pub mod trace;

use crate::attribution::emitted::{Emitted, ShownItem, Sink};
use crate::attribution::impressions::{Impression, Impressions, SideLog};
use crate::attribution::pair_log::{OfPair, PairSearch};
use crate::attribution::pending::{Feedback, Pending, PendingValues};
use crate::attribution::retained::{Retained, RetainedImpressions};
use crate::changes::{Combination, ItemOf};
use crate::hash::NONE;
use crate::kinds::FeedbackKind;
use crate::log::NO_ROW;
use crate::own_sums::Values;
use crate::slates::{NO_SLATE, Slates};
use crate::spec::Spec;
use crate::weights::Weights;

/// Times and bounds that the rules depend on.
#[derive(Debug)]
pub struct Rules {
    pub click_ms: i64,
    pub conversion_ms: i64,
    pub lateness_ms: i64,
    /// How long, by the arrival clock, a request id belongs to the slate that it opened.
    pub window_ms: i64,
    /// How long after their time retained impressions stay.
    pub retained_ms: i64,
    /// Grade that each kind gives, that of conversions last.
    pub grades: Vec<u8>,
    /// Whether slates are graded by conversions, when their impressions have left.
    pub grades_conversions: bool,
    /// Whether any metric looks at slates, and the margin of their loss.
    pub looks_at_slates: bool,
    pub margin: f64,
    /// Largest magnitude of ratings, and of the scores that they are compared with.
    pub max_rating: f64,
    pub slate_items: u32,
    pub max_open: usize,
    pub max_retained: usize,
    pub max_pending: usize,
    /// Pending feedback of one topic on one item by one person.
    pub max_pending_of_pair: usize,
}

impl Rules {
    pub fn new(spec: &Spec) -> Self {
        let (time, join) = (&spec.time, &spec.attribution);
        let (late_ms, skew_ms) = (time.max_lateness_ms, time.max_skew_ms);
        let opening_ms = late_ms + join.click_ms + late_ms + 2 * skew_ms;
        let graded_ms = opening_ms + join.feedback_horizon_ms + late_ms;
        Self {
            click_ms: join.click_ms,
            conversion_ms: join.conversion_ms,
            lateness_ms: late_ms,
            window_ms: join.click_ms + late_ms + skew_ms,
            retained_ms: graded_ms.max(join.conversion_ms + late_ms),
            grades: spec.feedback.grades.clone(),
            grades_conversions: spec.feedback.grades.last().is_some_and(|grade| *grade > 0)
                && !spec.slates.families.is_empty(),
            looks_at_slates: !spec.slates.families.is_empty(),
            margin: spec.slates.tables.margin,
            max_rating: spec.limits.rating,
            slate_items: spec.limits.slate_items as u32,
            max_open: spec.limits.open_impressions,
            max_retained: usize::MAX,
            max_pending: spec.limits.open_feedback,
            max_pending_of_pair: spec.limits.pair_feedback,
        }
    }
}

/// What left before its time, because a bound of memory was hit.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvictedEarly {
    pub impressions: u64,
    pub retained: u64,
    pub feedback: u64,
    pub probes: u64,
}

/// The impressions of one partition and the feedback that joins them.
#[derive(Debug)]
pub struct Attribution {
    pub rules: Rules,
    pub impressions: Impressions,
    pub slates: Slates,
    pub retained: RetainedImpressions,
    pub pending: Pending,
    /// How many policies there are.
    pub policies: usize,
    pub weights: SideLog<Weights>,
    pub items: SideLog<ItemOf>,
    /// The conditions of own sums that impressions meet.
    pub met: SideLog<u32>,
    pub values: PendingValues,
    /// Feedback and conversions whose join is final, and is none.
    pub unattributed: [u64; 2],
    /// Settled feedback that moved to another combination since.
    pub settled_moved: u64,
    pub evicted_early: EvictedEarly,
    pub next_id: u64,
    /// All feedback with its item, where somebody asks what became of it: see `trace`.
    pub traced: Option<Vec<(Feedback, u64)>>,
}

impl Attribution {
    /// Calls its argument with every combination that rows refer to.
    pub fn each_combination(&self, visit: &mut dyn FnMut(Combination)) {
        let open = self.impressions.log.iter().map(|(_, row)| row.combination);
        let retained = self.retained.rows.log.iter();
        let retained = retained.map(|(_, row)| row.combination);
        let pending = self.pending.iter();
        let pending = pending.flat_map(|(_, row)| [row.own_combination, row.combination]);
        let slates = self.slates.iter().map(|slate| slate.earliest_combination);
        open.chain(retained)
            .chain(pending)
            .chain(slates)
            .for_each(visit);
    }

    pub fn new(spec: &Spec) -> Self {
        let policies = spec.records.policies.policies.len();
        Self {
            rules: Rules::new(spec),
            impressions: Impressions::default(),
            slates: Slates::default(),
            retained: RetainedImpressions::new(spec.feedback.grades.len()),
            pending: Pending::default(),
            policies,
            weights: SideLog::new(policies > 0),
            items: SideLog::new(spec.items.has_lists),
            met: SideLog::new(spec.records.own.of_joined != 0),
            values: PendingValues::new(&spec.records.own),
            unattributed: [0, 0],
            settled_moved: 0,
            evicted_early: EvictedEarly::default(),
            next_id: 0,
            traced: None,
        }
    }

    /// Notes feedback, by the first line of its event.
    pub fn note(&mut self, feedback: &Feedback, item: u64, line: usize) {
        let is_first = line == 0 && feedback.orders() > 0;
        if let Some(traced) = self.traced.as_mut().filter(|_| is_first) {
            traced.push((*feedback, item));
        }
    }

    // 1. Shown items

    /// Takes in a shown item.
    pub fn show(&mut self, item: &ShownItem, sink: &mut impl Sink) {
        sink.emit(Emitted::Shown(item));
        let mut slate = NO_SLATE;
        if item.slate_key != NONE {
            let window_ms = self.rules.window_ms;
            slate =
                self.slates
                    .of_arrival(item.slate_key, item.at.user, item.arrival_ms, window_ms);
            if self.is_repeat(item.pair, slate) {
                return;
            }
        }
        let row = self.place(item, slate, sink);
        self.attract(row, item, sink);
    }

    fn is_repeat(&mut self, pair: u64, slate: u32) -> bool {
        let first = self
            .slates
            .get(slate)
            .map_or(NO_ROW, |found| found.first_row);
        first != NO_ROW && self.impressions.has_group(pair, u64::from(slate), first)
    }

    /// Adds an impression, to its slate if it has one.
    fn place(&mut self, item: &ShownItem, slate: u32, sink: &mut impl Sink) -> u32 {
        let mut row = Impression::new(item.pair, item.at.user, item.age());
        (row.position, row.combination) = (item.position, item.at.combination);
        (row.score, row.slate) = (item.score, slate);
        let weights = item.weights.map(|of| of.map(|weighed| weighed.weight));
        self.weights.load_open(weights.unwrap_or_default());
        self.items.load_open(item.item);
        self.met
            .load_open(item.values.map_or(0, |values| values.met));
        self.retract_list(slate, sink);
        let Some(found) = self.slates.get_mut(slate) else {
            return self.impressions.push(row);
        };
        let is_member = found.takes(self.rules.slate_items);
        found.placed += 1;
        found.latest_event_ms = found.latest_event_ms.max(item.at.event_ms);
        row.set_member(is_member);
        if is_member {
            row.prev_in_slate = found.last_member;
            if found.is_ranked() || !item.probes.is_empty() {
                self.retract_values(slate, sink);
            }
        }
        let added = self.impressions.push(row);
        self.slates.hold(slate);
        if let Some(found) = self.slates.get_mut(slate) {
            if found.first_row == NO_ROW {
                found.first_row = added;
            }
            if is_member {
                found.last_member = added;
            }
        }
        if is_member {
            if !item.probes.is_empty() {
                let (age, most) = (item.age(), self.rules.max_open);
                let is_taken = self.slates.take_probes(slate, age, item.probes, most);
                self.evicted_early.probes += u64::from(!is_taken);
            }
            self.count_slate(slate, item, sink);
            let has_feedback = self
                .slates
                .get(slate)
                .is_some_and(|x| x.last_retained != NO_ROW);
            if has_feedback && self.rules.grades_conversions {
                self.retain_member(added);
            }
        }
        added
    }

    /// A slate counts under its earliest member.
    fn count_slate(&mut self, slate: u32, item: &ShownItem, sink: &mut impl Sink) {
        let Some(found) = self.slates.get_mut(slate) else {
            return;
        };
        if found
            .earliest()
            .is_some_and(|earliest| earliest <= item.age())
        {
            return;
        }
        if let Some(at) = found.at() {
            sink.emit(Emitted::Slate(at, -1));
        }
        found.learn_earliest(item.age(), item.at.combination, item.at.user);
        sink.emit(Emitted::Slate(item.at, 1));
    }

    /// Pending feedback that fits a new impression better than what it joins moves to it.
    fn attract(&mut self, row: u32, item: &ShownItem, sink: &mut impl Sink) {
        let (from_ms, age) = (item.at.event_ms, item.age());
        let to_ms = from_ms + self.rules.click_ms;
        // The latest first: what an impression loses is then not the first feedback that it has, but
        // in the end.
        let places = self
            .pending
            .of_pair(false, item.pair, from_ms, to_ms)
            .collect::<Vec<u32>>();
        for place in places.into_iter().rev() {
            let Some(feedback) = self.pending.get(place) else {
                continue;
            };
            let fits = !feedback.joins_by_request() || feedback.slate_key == item.slate_key;
            let joined = self.retained.get(feedback.joined).map(Retained::age);
            if fits && joined.is_none_or(|joined| joined < age) {
                let retained = self.retain(row);
                self.rejoin(place, retained, sink);
            }
        }
    }

    // 2. Feedback

    /// Takes in feedback, which has no id yet and joins nothing.
    pub fn give(&mut self, mut feedback: Feedback, values: Option<&Values>, sink: &mut impl Sink) {
        if feedback.kind == FeedbackKind::Other {
            sink.emit(Emitted::Feedback(&feedback, values));
            sink.emit(Emitted::Settled(&feedback));
            return;
        }
        if feedback.is_conversion() {
            feedback.joined = self.converted(&feedback, self.rules.conversion_ms);
        } else if let Some(row) =
            self.shown_before(&feedback, feedback.event_ms, self.rules.click_ms)
        {
            feedback.joined = self.retain(row);
        }
        self.take_in(feedback, values, sink);
    }

    /// The newest open impression of feedback, of its request if it has one, at or before a time.
    fn shown_before(&mut self, feedback: &Feedback, at_ms: i64, horizon_ms: i64) -> Option<u32> {
        let (pair, rows) = (feedback.pair, &mut self.impressions);
        let mut newest = |group| {
            let wanted = PairSearch {
                group,
                has_feedback: false,
            };
            let row = rows.newest_before(pair, wanted, at_ms, horizon_ms)?;
            Some((rows.log.get(row)?.age(), row))
        };
        let found = match feedback.joins_by_request() {
            false => newest(None),
            true => {
                let slates = self.slates.of_key(feedback.slate_key);
                slates.filter_map(|x| newest(Some(u64::from(x)))).max()
            }
        };
        found.map(|(_, row)| row)
    }

    // 3. Conversions

    /// The impression that a conversion joins within a horizon.
    pub(crate) fn converted(&mut self, feedback: &Feedback, horizon_ms: i64) -> u32 {
        self.retained_before(feedback, horizon_ms, true)
    }

    /// The newest retained impression of feedback, of its request if it has one.
    pub(super) fn retained_before(
        &mut self,
        feedback: &Feedback,
        horizon_ms: i64,
        has_feedback: bool,
    ) -> u32 {
        let wanted = PairSearch {
            group: feedback.joins_by_request().then_some(feedback.slate_key),
            has_feedback,
        };
        let rows = &mut self.retained.rows;
        let horizon_ms = horizon_ms - (feedback.event_ms - feedback.joins_ms);
        let found = rows.newest_before(feedback.pair, wanted, feedback.joins_ms, horizon_ms);
        self.evicted_early.feedback += std::mem::take(&mut rows.cut_short);
        found.unwrap_or(NO_ROW)
    }

    /// Looks again at conversions of a pair, in the times [from, to), whose impressions changed.
    fn convert_again(&mut self, pair: u64, from_ms: i64, to_ms: i64, sink: &mut impl Sink) {
        let to_ms = to_ms.saturating_sub(1);
        let places: Vec<u32> = self.pending.of_pair(true, pair, from_ms, to_ms).collect();
        for place in places {
            let Some(feedback) = self.pending.get(place).copied() else {
                continue;
            };
            let joined = self.converted(&feedback, self.rules.conversion_ms);
            if joined != feedback.joined {
                self.rejoin(place, joined, sink);
            }
        }
    }

    // What is kept of impressions that have feedback

    /// What is retained of an open impression; its slate's other members are retained with the first
    /// one, where conversions may grade them when their impressions have left.
    pub(super) fn retain(&mut self, row: u32) -> u32 {
        let Some(open) = self.impressions.log.get(row) else {
            return NO_ROW;
        };
        let (slate, retained) = (open.slate, open.retained);
        if self.retained.get(retained).is_some() {
            return retained;
        }
        let is_first = self
            .slates
            .get(slate)
            .is_some_and(|found| found.last_retained == NO_ROW);
        let added = self.retain_row(row);
        if is_first && self.rules.grades_conversions {
            let mut member = self
                .slates
                .get(slate)
                .map_or(NO_ROW, |found| found.last_member);
            while let Some(open) = self.impressions.log.get(member) {
                let (before, is_open) = (open.prev_in_slate, open.retained == NO_ROW);
                if is_open {
                    self.retain_member(member);
                }
                member = before;
            }
        }
        added
    }

    /// Retains a member without feedback, within the bound.
    pub(super) fn retain_member(&mut self, row: u32) {
        if self.retained.rows.log.len() < self.rules.max_open.min(self.rules.max_retained) {
            self.retain_row(row);
        } else {
            self.evicted_early.retained += 1;
        }
    }

    pub(super) fn retain_row(&mut self, row: u32) -> u32 {
        let Some(open) = self.impressions.log.get(row).copied() else {
            return NO_ROW;
        };
        let mut made = Retained::new(open.pair, open.user, open.age());
        (made.position, made.combination) = (open.position, open.combination);
        (made.score, made.open) = (open.score, row);
        if let Some(found) = self.slates.get(open.slate) {
            (made.slate, made.slate_key) = (open.slate, found.key);
            made.is_member = open.is_member() && !found.is_closed;
            made.prev_in_slate = found.last_retained;
        }
        let added = self.retained.push(made);
        self.weights.retain(row);
        self.items.retain(row);
        self.met.retain(row);
        if let Some(open) = self.impressions.log.get_mut(row) {
            open.retained = added;
        }
        self.slates.hold(open.slate);
        if let Some(found) = self.slates.get_mut(open.slate) {
            found.last_retained = added;
        }
        added
    }

    // Expiry: what nothing can join any more leaves, by the clocks alone

    /// Forgets what nothing can join any more. Clocks are those of joins, but `arrival_ms`: the
    /// arrival clock of the impressions.
    ///
    /// Feedback on a slate's last member may still leave it for a later impression: until both
    /// clocks have passed, its slate is compared as a whole.
    pub fn expire(&mut self, clicks_ms: i64, arrival_ms: i64, slowest_ms: i64) {
        let clock_ms = clicks_ms.min(arrival_ms);
        while self.is_front_past(clock_ms, arrival_ms) {
            self.drop_impression();
        }
        while self.impressions.log.len() > self.rules.max_open {
            self.evict();
        }
        while let Some((_, front)) = self.retained.rows.log.front() {
            if front.event_ms + self.rules.retained_ms >= slowest_ms {
                break;
            }
            self.drop_retained();
        }
        self.slates.expire_probes();
    }

    /// Beyond the bounds the oldest pending feedback is final before its time, and the oldest
    /// impressions that have feedback leave, unless they are open as well.
    pub fn leave_early(&mut self, sink: &mut impl Sink) {
        self.bound_pending(sink);
        while self.retained.rows.log.len() > self.rules.max_retained {
            let Some((row, front)) = self.retained.rows.log.front() else {
                break;
            };
            let (pair, event_ms, slate) = (front.pair, front.event_ms, front.slate);
            if self.impressions.log.get(front.open).is_some() {
                self.evict();
                continue;
            }
            for is_conversion in [false, true] {
                let places = self
                    .pending
                    .of_pair(is_conversion, pair, event_ms, i64::MAX);
                for place in places.collect::<Vec<u32>>() {
                    if self.pending.get(place).is_some_and(|x| x.joined == row) {
                        self.evict_pending(place, sink);
                    }
                }
            }
            self.close_slates(slate);
            self.evicted_early.retained += 1;
            self.retained.leave_early();
            self.drop_retained();
        }
    }

    fn drop_retained(&mut self) {
        let slate = self.retained.rows.log.front().map(|(_, front)| front.slate);
        self.retained.rows.drop_front();
        self.weights.retained.drop_front();
        self.items.retained.drop_front();
        self.met.retained.drop_front();
        self.slates.release(slate.unwrap_or(NO_SLATE));
    }

    fn is_front_past(&self, clock_ms: i64, arrival_ms: i64) -> bool {
        let Some((_, front)) = self.impressions.log.front() else {
            return false;
        };
        let reach_ms = self.rules.click_ms + self.rules.lateness_ms;
        match self.slates.get(front.slate) {
            None => front.event_ms + reach_ms < clock_ms,
            Some(slate) => {
                slate.latest_event_ms + reach_ms < clock_ms
                    && slate.latest_arrival_ms + self.rules.window_ms < arrival_ms
            }
        }
    }

    /// Forgets the first impression. Its slate is not graded any more, unless it is retained.
    fn drop_impression(&mut self) {
        let Some((_, front)) = self.impressions.log.front().map(|(row, x)| (row, *x)) else {
            return;
        };
        self.impressions.drop_front();
        self.weights.open.drop_front();
        self.items.open.drop_front();
        self.met.open.drop_front();
        match self.retained.get_mut(front.retained) {
            Some(retained) if self.rules.grades_conversions => retained.open = NO_ROW,
            _ if front.is_member() => {
                if let Some(slate) = self.slates.get_mut(front.slate) {
                    slate.is_closed = true;
                }
            }
            _ => {}
        }
        self.slates.release(front.slate);
    }

    /// Beyond the bound the oldest impression leaves before its time: its slates close.
    fn evict(&mut self) {
        let slate = self.impressions.log.front().map(|(_, front)| front.slate);
        self.close_slates(slate.unwrap_or(NO_SLATE));
        self.evicted_early.impressions += 1;
        self.drop_impression();
    }

    /// A slate is not graded any more, nor are others of its key.
    fn close_slates(&mut self, slate: u32) {
        if let Some(key) = self.slates.get(slate).map(|slate| slate.key) {
            let slates: Vec<u32> = self.slates.of_key(key).collect();
            for slate in slates {
                if let Some(found) = self.slates.get_mut(slate) {
                    found.is_closed = true;
                }
            }
        }
    }
}
