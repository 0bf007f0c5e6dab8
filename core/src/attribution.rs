//! Attribution: which impression each feedback belongs to, and what is emitted when that changes.
//!
//! 1. A shown item counts at once. In its slate it is placed unless it stands there already: then it
//!    is an impression only, and nothing joins it. Pending feedback that fits it better moves to it.
//! 2. Feedback of a configured kind joins the newest impression of the item in its request's slates,
//!    or without a request of all that the user saw, at or before it and within the click horizon.
//! 3. A conversion joins likewise, within its own horizon, an impression that has feedback no later
//!    than it. It is looked at again whenever the first feedback of such an impression changes.
//! 4. Feedback counts under its own dimensions and position; its impression's fill what is missing.
//! 5. A join is final when no impression (for conversions: no feedback, either) can come any more
//!    that would change it. A join by request is final at once where the request id cannot come back
//!    for another slate in time.
//! 6. Feedback is settled, and counts since the start, when its dimensions are complete, when its
//!    request names its impression (conversions wait for final feedback), or when its join is final.
//!
//! Windows follow every move; what is settled stays, and a move of it is counted.

use crate::changes::{Kind, Outcome, Segment, Shown, Slate as SlateChange};
use crate::counting::Counting;
use crate::hash::NONE;
use crate::impressions::{Impression, Impressions};
use crate::log::NO_ROW;
use crate::pair_log::OfPair;
use crate::pending::{Feedback, Pending};
use crate::retained::{NOT_YET, Outcome as Counts, Retained, RetainedImpressions};
use crate::slates::{NO_SLATE, Slates};
use crate::spec::Spec;

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
    pub slate_items: u32,
    pub max_open: usize,
    pub max_pending: usize,
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
            slate_items: spec.limits.slate_items as u32,
            max_open: spec.limits.open_impressions,
            max_pending: spec.limits.open_feedback,
        }
    }
}

/// One shown item of an accepted event.
#[derive(Clone, Copy, Debug)]
pub struct ShownItem {
    pub user: u64,
    pub pair: u64,
    /// `hash::NONE` without a slate.
    pub slate_key: u64,
    pub event_ms: i64,
    pub arrival_ms: i64,
    pub offset: i64,
    pub index: u16,
    pub position: u16,
    pub segment: Segment,
    pub score: f64,
    pub probe: i16,
}

/// What left before its time, because a bound of memory was hit.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvictedEarly {
    pub impressions: u64,
    pub retained: u64,
    pub feedback: u64,
}

/// The impressions of one partition and the feedback that joins them.
#[derive(Debug)]
pub struct Attribution {
    pub rules: Rules,
    pub impressions: Impressions,
    pub slates: Slates,
    pub retained: RetainedImpressions,
    pub pending: Pending,
    /// Feedback and conversions whose join is final, and is none.
    pub unattributed: [u64; 2],
    /// Settled feedback that moved to another segment since.
    pub settled_moved: u64,
    pub evicted_early: EvictedEarly,
    pub next_id: u64,
    /// Stream time, as far as it is known.
    pub stream_ms: i64,
}

impl Attribution {
    pub fn new(spec: &Spec) -> Self {
        Self {
            rules: Rules::new(spec),
            impressions: Impressions::default(),
            slates: Slates::default(),
            retained: RetainedImpressions::new(spec.feedback.grades.len()),
            pending: Pending::default(),
            unattributed: [0, 0],
            settled_moved: 0,
            evicted_early: EvictedEarly::default(),
            next_id: 0,
            stream_ms: 0,
        }
    }

    // 1. Shown items

    /// Takes in a shown item.
    pub fn show(&mut self, item: &ShownItem, counting: &mut Counting) {
        let shown = Shown {
            event_ms: item.event_ms,
            segment: item.segment,
            position: u32::from(item.position),
            user: item.user,
            pair: item.pair,
        };
        counting.shown(&shown, self.stream_ms);
        let mut slate = NO_SLATE;
        if item.slate_key != NONE {
            let window_ms = self.rules.window_ms;
            slate = self
                .slates
                .of_arrival(item.slate_key, item.user, item.arrival_ms, window_ms);
            if self.is_repeat(item.pair, slate) {
                return;
            }
        }
        let row = self.place(item, slate, counting);
        self.attract(row, item, counting);
    }

    fn is_repeat(&self, pair: u64, slate: u32) -> bool {
        let first = self
            .slates
            .get(slate)
            .map_or(NO_ROW, |found| found.first_row);
        first != NO_ROW
            && self
                .impressions
                .has_since(pair, first, |row| row.slate == slate)
    }

    /// Adds an impression, to its slate if it has one.
    fn place(&mut self, item: &ShownItem, slate: u32, counting: &mut Counting) -> u32 {
        let mut row = Impression::new(item.pair, (item.event_ms, item.offset, item.index));
        (row.position, row.segment) = (item.position, item.segment as u16);
        (row.score, row.probe, row.slate) = (item.score, item.probe, slate);
        let Some(found) = self.slates.get_mut(slate) else {
            return self.impressions.push(row);
        };
        found.placed += 1;
        found.latest_event_ms = found.latest_event_ms.max(item.event_ms);
        let is_member = found.placed <= self.rules.slate_items && !found.is_closed;
        row.set_member(is_member);
        if is_member {
            row.prev_in_slate = found.last_member;
            if found.marked > 0 || item.probe > 0 {
                self.retract_values(slate, counting);
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
                found.marked += u32::from(item.probe > 0);
            }
        }
        if is_member {
            self.count_slate(slate, item, counting);
            let has_feedback = self
                .slates
                .get(slate)
                .is_some_and(|x| x.last_retained != NO_ROW);
            if has_feedback && self.rules.grades_conversions {
                self.retain_member(added, item.user);
            }
        }
        added
    }

    /// A slate counts under its earliest member.
    fn count_slate(&mut self, slate: u32, item: &ShownItem, counting: &mut Counting) {
        let Some(found) = self.slates.get_mut(slate) else {
            return;
        };
        let age = (item.event_ms, item.offset, item.index);
        if found.earliest().is_some_and(|earliest| earliest <= age) {
            return;
        }
        if let Some((event_ms, _, _)) = found.earliest() {
            let segment = Segment::from(found.earliest_segment);
            counting.slate(&SlateChange {
                event_ms,
                segment,
                user: found.user,
                sign: -1,
            });
        }
        found.learn_earliest(age, item.segment as u16);
        let (event_ms, segment) = (item.event_ms, item.segment);
        counting.slate(&SlateChange {
            event_ms,
            segment,
            user: found.user,
            sign: 1,
        });
    }

    /// Pending feedback that fits a new impression better than what it joins moves to it.
    fn attract(&mut self, row: u32, item: &ShownItem, counting: &mut Counting) {
        let to_ms = item.event_ms + self.rules.click_ms;
        let age = (item.event_ms, item.offset, item.index);
        for place in self.pending.of_pair(false, item.pair, item.event_ms, to_ms) {
            let Some(feedback) = self.pending.get(place) else {
                continue;
            };
            let fits = !feedback.has_request() || feedback.slate_key == item.slate_key;
            let joined = self.retained.get(feedback.joined).map(Retained::age);
            if fits && joined.is_none_or(|joined| joined < age) {
                let retained = self.retain(row, item.user);
                self.rejoin(place, retained, counting);
            }
        }
    }

    // 2. Feedback of the clicks topic

    /// Takes in feedback of any kind but conversions; it has no id yet and joins nothing.
    pub fn give(&mut self, mut feedback: Feedback, counting: &mut Counting) {
        if feedback.kind == Kind::Other {
            counting.given(&feedback.given(1));
            counting.dwell_of_feedback(&feedback);
            counting.settled(&feedback);
            return;
        }
        let (key, click_ms) = (feedback.slate_key, self.rules.click_ms);
        let row = self
            .impressions
            .newest_before(feedback.pair, feedback.event_ms, click_ms, |x| {
                key == NONE
                    || self
                        .slates
                        .get(x.slate)
                        .is_some_and(|slate| slate.key == key)
            });
        if let Some(row) = row {
            feedback.joined = self.retain(row, feedback.user);
        }
        self.take_in(feedback, counting);
    }

    // 3. Conversions

    /// Takes in a conversion, which has no id yet and joins nothing.
    pub fn convert(&mut self, mut feedback: Feedback, counting: &mut Counting) {
        feedback.joined = self.converted(&feedback);
        self.take_in(feedback, counting);
    }

    /// The impression that a conversion joins.
    pub(crate) fn converted(&self, feedback: &Feedback) -> u32 {
        let (key, event_ms) = (feedback.slate_key, feedback.event_ms);
        let conversion_ms = self.rules.conversion_ms;
        let rows = &self.retained.rows;
        let found = rows.newest_before(feedback.pair, event_ms, conversion_ms, |row| {
            row.first_ms <= event_ms && (key == NONE || row.slate_key == key)
        });
        found.unwrap_or(NO_ROW)
    }

    /// Looks again at conversions of a pair, in the times [from, to), whose impressions changed.
    fn convert_again(&mut self, pair: u64, from_ms: i64, to_ms: i64, counting: &mut Counting) {
        for place in self
            .pending
            .of_pair(true, pair, from_ms, to_ms.saturating_sub(1))
        {
            let Some(feedback) = self.pending.get(place).copied() else {
                continue;
            };
            let joined = self.converted(&feedback);
            if joined != feedback.joined {
                self.rejoin(place, joined, counting);
            }
        }
    }

    // 4. What feedback counts as

    /// New feedback counts; it stays pending unless its join is final already.
    fn take_in(&mut self, mut feedback: Feedback, counting: &mut Counting) {
        feedback.id = self.next_id;
        self.next_id += 1;
        feedback.is_complete = counting.dimensions.is_complete(feedback.own_segment);
        (feedback.segment, feedback.position) = self.effective(&feedback, counting);
        counting.given(&feedback.given(1));
        counting.dwell_of_feedback(&feedback);
        let is_final = self.is_final_at_once(&feedback);
        let may_settle = is_final || self.may_settle(&feedback);
        if may_settle {
            counting.settled(&feedback);
        }
        counting.of_user(&feedback, is_final || feedback.is_complete, self.stream_ms);
        feedback.is_settled = may_settle;
        if !is_final {
            self.pending.insert(feedback);
        }
        if feedback.is_joined() {
            self.credit(feedback.joined, &feedback, 1, counting);
            if is_final {
                self.count_final(&feedback, counting);
            }
        }
        if self.pending.len() > self.rules.max_pending {
            self.evict_pending(counting);
        }
    }

    /// Segment and position of feedback: its own, with what is missing from its impression.
    pub(crate) fn effective(&self, feedback: &Feedback, counting: &mut Counting) -> (Segment, u32) {
        let Some(row) = self.retained.get(feedback.joined) else {
            return (feedback.own_segment, feedback.own_position);
        };
        let inherited = Segment::from(row.segment);
        let segment = counting.dimensions.filled(feedback.own_segment, inherited);
        let position = match feedback.own_position {
            0 => u32::from(row.position),
            own => own,
        };
        (segment, position)
    }

    /// Pending feedback joins another impression: what it counted as is retracted.
    fn rejoin(&mut self, place: u32, joined: u32, counting: &mut Counting) {
        let Some(mut feedback) = self.pending.get(place).copied() else {
            return;
        };
        let before = feedback;
        feedback.joined = joined;
        (feedback.segment, feedback.position) = self.effective(&feedback, counting);
        let has_moved = (feedback.segment, feedback.position) != (before.segment, before.position);
        if has_moved {
            counting.given(&before.given(-1));
            counting.given(&feedback.given(1));
        }
        if feedback.segment != before.segment {
            counting.dwell_moved(&feedback, before.segment);
            let dimensions = &counting.dimensions;
            let is_same =
                dimensions.resolve(feedback.segment) == dimensions.resolve(before.segment);
            self.settled_moved += u64::from(feedback.is_settled && !is_same);
        }
        self.pending.set(place, feedback);
        if before.is_joined() {
            self.credit(before.joined, &before, -1, counting);
        }
        if feedback.is_joined() {
            self.credit(joined, &feedback, 1, counting);
        }
        self.of_user(&feedback, counting);
        self.settle_if_due(place, counting);
    }

    /// Feedback counts for its user, for good where its join cannot change.
    fn of_user(&self, feedback: &Feedback, counting: &mut Counting) {
        if !feedback.is_complete {
            let is_fixed = self.is_final_at_once(feedback);
            counting.of_user(feedback, is_fixed, self.stream_ms);
        }
    }

    /// Adds feedback to an impression (or takes it away), with what follows for its outcome, its
    /// slate and its conversions.
    fn credit(&mut self, row: u32, feedback: &Feedback, amount: i32, counting: &mut Counting) {
        self.retained
            .count(row, self.kind_of(feedback.kind), amount);
        let Some(before) = self
            .retained
            .get(row)
            .map(|found| (found.pair, found.first_ms))
        else {
            return;
        };
        let mut first_ms = before.1;
        if !feedback.is_conversion() {
            first_ms = if amount > 0 {
                first_ms.min(feedback.event_ms)
            } else {
                self.first_feedback_ms(row)
            };
        }
        if let Some(found) = self.retained.get_mut(row) {
            found.first_ms = first_ms;
        }
        self.emit_outcome(row, counting);
        if first_ms != before.1 {
            let (from_ms, to_ms) = (first_ms.min(before.1), first_ms.max(before.1));
            self.convert_again(before.0, from_ms, to_ms, counting);
        }
        if amount > 0 && !feedback.is_conversion() && feedback.has_request() {
            self.settle_conversions(feedback, counting);
        }
    }

    pub(crate) fn kind_of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Configured(place) => usize::from(place),
            _ => self.rules.grades.len() - 1,
        }
    }

    /// The time of the first feedback of an impression that some has left.
    fn first_feedback_ms(&self, row: u32) -> i64 {
        let Some(found) = self.retained.get(row) else {
            return NOT_YET;
        };
        let to_ms = found.event_ms + self.rules.click_ms;
        let pending = self
            .pending
            .of_pair(false, found.pair, found.event_ms, to_ms);
        let joined = pending.iter().filter_map(|place| self.pending.get(*place));
        let times = joined.filter(|x| x.joined == row).map(|x| x.event_ms);
        times.min().unwrap_or(NOT_YET).min(found.final_first_ms)
    }

    /// Emits what changed in what an impression counts as.
    fn emit_outcome(&mut self, row: u32, counting: &mut Counting) {
        let Some(found) = self.retained.get(row) else {
            return;
        };
        let before = found.outcome;
        let now = self.retained.outcome(found, &self.rules.grades);
        if now == before {
            return;
        }
        let (slate, is_probed) = (found.slate, found.probe > 0);
        let change = Outcome {
            event_ms: found.event_ms,
            segment: Segment::from(found.segment),
            user: found.user,
            clicked: i64::from(now.is_clicked) - i64::from(before.is_clicked),
            converted: i64::from(now.is_converted) - i64::from(before.is_converted),
        };
        let is_ranked =
            found.is_member && (now.is_clicked, now.grade) != (before.is_clicked, before.grade);
        if is_ranked {
            self.retract_values(slate, counting);
            self.mark(slate, &before, &now, is_probed);
        }
        if let Some(found) = self.retained.get_mut(row) {
            found.outcome = now;
        }
        if change.clicked != 0 || change.converted != 0 {
            counting.outcome(&change);
        }
    }

    fn mark(&mut self, slate: u32, before: &Counts, now: &Counts, is_probed: bool) {
        if let Some(found) = self.slates.get_mut(slate)
            && !is_probed
        {
            found.marked += u32::from(now.is_ranked());
            found.marked -= u32::from(before.is_ranked());
        }
    }

    // 5. Finality

    /// Whether a join by request is final as soon as it is made: no later slate of the request can
    /// hold an impression that is not after the feedback, and no earlier one is known.
    fn is_final_at_once(&self, feedback: &Feedback) -> bool {
        let Some(row) = self.retained.get(feedback.joined) else {
            return false;
        };
        let Some(slate) = self.slates.get(row.slate) else {
            return false;
        };
        let until_ms = slate.opened_ms + self.rules.window_ms - self.rules.lateness_ms;
        let is_only = slate.older == NO_SLATE && !slate.is_closed;
        feedback.has_request()
            && is_only
            && feedback.event_ms <= until_ms
            && (!feedback.is_conversion()
                || self.has_feedback(feedback, |click| self.is_final_at_once(click)))
    }

    /// Lets feedback be final whose join no later event can change, by the clocks.
    pub fn finalise(&mut self, impressions_ms: i64, clicks_ms: i64, counting: &mut Counting) {
        let clocks = [impressions_ms, impressions_ms.min(clicks_ms)];
        for (is_conversion, clock_ms) in [false, true].into_iter().zip(clocks) {
            while let Some((event_ms, place)) = self.pending.earliest(is_conversion) {
                if event_ms >= clock_ms - self.rules.lateness_ms {
                    break;
                }
                self.make_final(place, counting);
            }
        }
    }

    fn make_final(&mut self, place: u32, counting: &mut Counting) {
        let Some(mut feedback) = self.pending.remove(place) else {
            return;
        };
        if !feedback.is_settled {
            feedback.is_settled = true;
            counting.settled(&feedback);
        }
        if !feedback.is_complete {
            counting.of_user(&feedback, true, self.stream_ms);
        }
        if feedback.is_joined() {
            self.count_final(&feedback, counting);
        } else {
            self.unattributed[usize::from(feedback.is_conversion())] += 1;
        }
    }

    /// Final feedback is kept with its impression; conversions may have waited for it.
    fn count_final(&mut self, feedback: &Feedback, counting: &mut Counting) {
        let first_ms = (!feedback.is_conversion()).then_some(feedback.event_ms);
        let row = feedback.joined;
        self.retained
            .count_final(row, self.kind_of(feedback.kind), 1, first_ms);
        if first_ms.is_some() {
            self.settle_conversions(feedback, counting);
        }
    }

    /// Beyond the bound the oldest pending feedback is final before its time.
    fn evict_pending(&mut self, counting: &mut Counting) {
        let clicks = self.pending.earliest(false);
        let conversions = self.pending.earliest(true);
        let oldest = clicks.into_iter().chain(conversions).min();
        if let Some((_, place)) = oldest {
            self.evicted_early.feedback += 1;
            self.make_final(place, counting);
        }
    }

    // 6. Settling

    fn may_settle(&self, feedback: &Feedback) -> bool {
        let is_named = feedback.has_request() && feedback.is_joined();
        feedback.is_complete
            || is_named
                && (!feedback.is_conversion() || self.has_feedback(feedback, Feedback::has_request))
    }

    /// Whether the impression of a conversion has feedback no later than it that is final, or that
    /// `lasts` though it is pending.
    fn has_feedback(&self, conversion: &Feedback, lasts: impl Fn(&Feedback) -> bool) -> bool {
        let Some(row) = self.retained.get(conversion.joined) else {
            return false;
        };
        if row.final_first_ms <= conversion.event_ms {
            return true;
        }
        let (pair, to_ms) = (conversion.pair, conversion.event_ms);
        let pending = self.pending.of_pair(false, pair, row.event_ms, to_ms);
        let mut joined = pending.iter().filter_map(|place| self.pending.get(*place));
        joined.any(|click| click.joined == conversion.joined && lasts(click))
    }

    /// Conversions may have waited for this feedback.
    fn settle_conversions(&mut self, feedback: &Feedback, counting: &mut Counting) {
        let last_ms = feedback.event_ms + self.rules.retained_ms;
        for place in self
            .pending
            .of_pair(true, feedback.pair, feedback.event_ms, last_ms)
        {
            if let Some(conversion) = self.pending.get(place).copied() {
                self.of_user(&conversion, counting);
            }
            self.settle_if_due(place, counting);
        }
    }

    fn settle_if_due(&mut self, place: u32, counting: &mut Counting) {
        if let Some(mut feedback) = self.pending.get(place).copied()
            && !feedback.is_settled
            && self.may_settle(&feedback)
        {
            feedback.is_settled = true;
            counting.settled(&feedback);
            self.pending.set(place, feedback);
        }
    }

    // Retaining

    /// What is retained of an open impression; its slate's other members are retained with the first
    /// one, where conversions may grade them when their impressions have left.
    fn retain(&mut self, row: u32, user: u64) -> u32 {
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
        let added = self.retain_row(row, user);
        if is_first && self.rules.grades_conversions {
            let mut member = self
                .slates
                .get(slate)
                .map_or(NO_ROW, |found| found.last_member);
            while let Some(open) = self.impressions.log.get(member) {
                let (before, is_open) = (open.prev_in_slate, open.retained == NO_ROW);
                if is_open {
                    self.retain_member(member, user);
                }
                member = before;
            }
        }
        added
    }

    /// Retains a member without feedback, within the bound.
    fn retain_member(&mut self, row: u32, user: u64) {
        if self.retained.rows.log.len() < self.rules.max_open {
            self.retain_row(row, user);
        } else {
            self.evicted_early.retained += 1;
        }
    }

    fn retain_row(&mut self, row: u32, user: u64) -> u32 {
        let Some(open) = self.impressions.log.get(row).copied() else {
            return NO_ROW;
        };
        let mut made = Retained::new(open.pair, user, open.age());
        (made.position, made.segment) = (open.position, open.segment);
        (made.score, made.probe, made.open) = (open.score, open.probe, row);
        if let Some(found) = self.slates.get(open.slate) {
            (made.slate, made.slate_key) = (open.slate, found.key);
            made.is_member = open.is_member() && !found.is_closed;
            made.prev_in_slate = found.last_retained;
        }
        let added = self.retained.push(made);
        if let Some(open) = self.impressions.log.get_mut(row) {
            open.retained = added;
        }
        self.slates.hold(open.slate);
        if let Some(found) = self.slates.get_mut(open.slate) {
            found.last_retained = added;
        }
        added
    }
}
