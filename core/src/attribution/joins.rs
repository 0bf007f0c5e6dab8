//! Joins of feedback: what it counts as, and when it is final and settled: rules 4 to 6.

use super::Attribution;
use crate::attribution::emitted::{Emitted, Sink};
use crate::attribution::pair_log::NOT_YET;
use crate::attribution::pending::Feedback;
use crate::attribution::retained::Outcome;
use crate::changes::{Change, Fact, UserAt};
use crate::kinds::FeedbackKind;
use crate::own_sums::Values;
use crate::slates::NO_SLATE;

impl Attribution {
    /// New feedback counts; it stays pending unless its join is final already.
    pub(super) fn take_in(
        &mut self,
        mut feedback: Feedback,
        values: Option<&Values>,
        sink: &mut impl Sink,
    ) {
        feedback.id = self.next_id;
        self.next_id += 1;
        feedback.is_complete = sink.dimensions().is_complete(feedback.own_combination);
        self.make_effective(&mut feedback, sink);
        sink.emit(Emitted::Feedback(&feedback, values));
        let is_final = self.is_final_at_once(&feedback);
        let may_settle = is_final || self.may_settle(&feedback);
        if may_settle {
            sink.emit(Emitted::Settled(&feedback));
        }
        let is_fixed = is_final || feedback.is_complete;
        sink.emit(Emitted::OfUser(&feedback, is_fixed));
        feedback.is_settled = may_settle;
        if !is_final {
            let place = self.pending.insert(feedback);
            self.values.set(place, values);
        }
        if feedback.is_joined() {
            self.credit(feedback.joined, &feedback, 1, sink);
            if is_final {
                self.count_final(&feedback, sink);
            }
        }
        let most = self.rules.max_pending_of_pair;
        let beyond = || self.pending.beyond(&feedback, most);
        if let Some(place) = (!is_final).then(beyond).flatten() {
            self.evict_pending(place, sink);
        } else {
            self.bound_pending(sink);
        }
    }

    /// Beyond the bound the earliest pending feedback is final before its time.
    pub(super) fn bound_pending(&mut self, sink: &mut impl Sink) {
        while self.pending.len() > self.rules.max_pending {
            let clicks = self.pending.earliest(false);
            let conversions = self.pending.earliest(true);
            let Some((_, place)) = clicks.into_iter().chain(conversions).min() else {
                return;
            };
            self.evict_pending(place, sink);
        }
    }

    /// Combination and position of feedback are its own, with what is missing from its impression,
    /// whose conditions it has, too.
    fn make_effective(&self, feedback: &mut Feedback, sink: &mut impl Sink) {
        (feedback.combination, feedback.position) =
            (feedback.own_combination, feedback.own_position);
        feedback.met_by_joined = 0;
        let Some(row) = self.retained.get(feedback.joined) else {
            return;
        };
        if !feedback.is_complete {
            let (own, inherited) = (feedback.own_combination, row.combination);
            feedback.combination = sink.dimensions().filled(own, inherited);
        }
        if feedback.own_position == 0 {
            feedback.position = u32::from(row.position);
        }
        let met = self.met.retained.get(feedback.joined);
        feedback.met_by_joined = met.copied().unwrap_or_default();
    }

    /// Pending feedback joins another impression: what it counted as is retracted.
    pub(super) fn rejoin(&mut self, place: u32, joined: u32, sink: &mut impl Sink) {
        let Some(mut feedback) = self.pending.get(place).copied() else {
            return;
        };
        let before = feedback;
        feedback.joined = joined;
        self.make_effective(&mut feedback, sink);
        if feedback.is_counted_otherwise(&before) {
            sink.emit(Emitted::Moved {
                before: &before,
                now: &feedback,
                values: self.values.get(place),
            });
        }
        if feedback.combination != before.combination {
            let dimensions = sink.dimensions();
            let is_same =
                dimensions.resolve(feedback.combination) == dimensions.resolve(before.combination);
            self.settled_moved += u64::from(feedback.is_settled && !is_same);
        }
        self.pending.set(place, feedback);
        if before.is_joined() {
            self.credit(before.joined, &before, -1, sink);
        }
        if feedback.is_joined() {
            self.credit(joined, &feedback, 1, sink);
        }
        self.of_user(&feedback, sink);
        self.settle_if_due(place, sink);
    }

    /// Feedback counts for its user, for good where its join cannot change.
    pub(super) fn of_user(&self, feedback: &Feedback, sink: &mut impl Sink) {
        if !feedback.is_complete {
            let is_fixed = self.is_final_at_once(feedback);
            sink.emit(Emitted::OfUser(feedback, is_fixed));
        }
    }

    /// Adds feedback to an impression (or takes it away), with what follows for its outcome, its
    /// slate and its conversions.
    pub(super) fn credit(
        &mut self,
        row: u32,
        feedback: &Feedback,
        amount: i32,
        sink: &mut impl Sink,
    ) {
        if let Some(rating) = feedback.amounts.rating() {
            self.rate(row, rating, amount, sink);
        }
        let counts = amount * feedback.orders();
        self.retained
            .count(row, self.kind_of(feedback.kind), counts);
        let Some(before) = self
            .retained
            .get(row)
            .map(|found| (found.pair, found.first_ms))
        else {
            return;
        };
        let mut first_ms = before.1;
        if !feedback.is_conversion() {
            first_ms = match amount > 0 {
                true => first_ms.min(feedback.event_ms),
                false if feedback.event_ms > first_ms => first_ms,
                false => self.first_feedback_ms(row),
            };
        }
        let rows = &mut self.retained.rows;
        rows.change_first(row, |found| found.first_ms = first_ms);
        self.emit_outcome(row, sink);
        if first_ms != before.1 {
            let (from_ms, to_ms) = (first_ms.min(before.1), first_ms.max(before.1));
            self.convert_again(before.0, from_ms, to_ms, sink);
        }
        if amount > 0 && !feedback.is_conversion() && feedback.joins_by_request() {
            self.settle_conversions(feedback, sink);
        }
    }

    /// A rating of an impression counts beside its score, or does not any more.
    fn rate(&self, row: u32, rating: i64, amount: i32, sink: &mut impl Sink) {
        if let Some(found) = self.retained.get(row)
            && found.score.abs() <= self.rules.max_rating
        {
            let at = UserAt::new(found.user, found.event_ms, found.combination);
            let score = found.score;
            let what = Fact::Rating { score, rating };
            sink.emit(Emitted::Rated(Change::new(at, amount.into(), what)));
        }
    }

    pub(crate) fn kind_of(&self, kind: FeedbackKind) -> usize {
        match kind {
            FeedbackKind::Configured(place) => usize::from(place),
            FeedbackKind::Gone => usize::MAX, // it counts for no outcome
            _ => self.rules.grades.len() - 1,
        }
    }

    /// The time of the first feedback of an impression that some has left.
    pub(super) fn first_feedback_ms(&self, row: u32) -> i64 {
        let Some(found) = self.retained.get(row) else {
            return NOT_YET;
        };
        let to_ms = found.event_ms + self.rules.click_ms;
        let mut pending = self
            .pending
            .of_pair(false, found.pair, found.event_ms, to_ms)
            .filter_map(|place| self.pending.get(place));
        let first = pending.find(|x| x.joined == row);
        first
            .map_or(NOT_YET, |x| x.event_ms)
            .min(found.final_first_ms)
    }

    /// Emits what changed in what an impression counts as.
    pub(super) fn emit_outcome(&mut self, row: u32, sink: &mut impl Sink) {
        let Some(found) = self.retained.get(row) else {
            return;
        };
        let before = found.outcome;
        let now = self.retained.outcome(found, &self.rules.grades);
        if now == before {
            return;
        }
        let slate = found.slate;
        let at = UserAt::new(found.user, found.event_ms, found.combination);
        let score = found.score;
        let clicked = i64::from(now.is_clicked) - i64::from(before.is_clicked);
        let converted = i64::from(now.is_converted) - i64::from(before.is_converted);
        let is_ranked =
            found.is_member && (now.is_clicked, now.grade) != (before.is_clicked, before.grade);
        if is_ranked {
            self.retract_values(slate, sink);
            self.mark(slate, &before, &now);
        }
        if let Some(found) = self.retained.get_mut(row) {
            found.outcome = now;
        }
        if (clicked, converted) != (0, 0) {
            let what = Fact::Outcome {
                score,
                clicked,
                converted,
            };
            sink.emit(Emitted::Outcome {
                change: Change::new(at, 1, what),
                item: self.items.retained.get(row).map(|of| of.item),
                weights: self.weights.retained.get(row),
            });
        }
    }

    pub(super) fn mark(&mut self, slate: u32, before: &Outcome, now: &Outcome) {
        if let Some(found) = self.slates.get_mut(slate) {
            found.marked += u32::from(now.is_ranked());
            found.marked -= u32::from(before.is_ranked());
        }
    }

    // 5. Finality

    /// Whether a join by request is final as soon as it is made: no later slate of the request can
    /// hold an impression that is not after the feedback, and no earlier one is known.
    pub(super) fn is_final_at_once(&self, feedback: &Feedback) -> bool {
        let Some(row) = self.retained.get(feedback.joined) else {
            return false;
        };
        let Some(slate) = self.slates.get(row.slate) else {
            return false;
        };
        let until_ms = slate.opened_ms + self.rules.window_ms - self.rules.lateness_ms;
        let is_only = slate.older == NO_SLATE && !slate.is_closed;
        feedback.joins_by_request()
            && is_only
            && feedback.joins_ms <= until_ms
            && (!feedback.is_conversion()
                || self.has_feedback(feedback, |click| self.is_final_at_once(click)))
    }

    /// Lets feedback be final whose join no later event can change, by the clocks.
    pub fn finalise(&mut self, impressions_ms: i64, clicks_ms: i64, sink: &mut impl Sink) {
        let clocks = [impressions_ms, impressions_ms.min(clicks_ms)];
        self.pending.forget_left(clocks[1] - self.rules.lateness_ms);
        for (is_conversion, clock_ms) in [false, true].into_iter().zip(clocks) {
            while let Some((event_ms, place)) = self.pending.earliest(is_conversion) {
                if event_ms >= clock_ms - self.rules.lateness_ms {
                    break;
                }
                self.make_final(place, sink);
            }
        }
    }

    pub(super) fn make_final(&mut self, place: u32, sink: &mut impl Sink) {
        let Some(mut feedback) = self.pending.remove(place) else {
            return;
        };
        if !feedback.is_settled {
            feedback.is_settled = true;
            sink.emit(Emitted::Settled(&feedback));
        }
        if !feedback.is_complete {
            sink.emit(Emitted::OfUser(&feedback, true));
        }
        if feedback.is_joined() {
            self.count_final(&feedback, sink);
        } else if feedback.kind != FeedbackKind::ConversionLine {
            self.unattributed[usize::from(feedback.is_conversion())] += 1;
        }
    }

    /// Final feedback is kept with its impression; conversions may have waited for it.
    pub(super) fn count_final(&mut self, feedback: &Feedback, sink: &mut impl Sink) {
        let first_ms = (!feedback.is_conversion()).then_some(feedback.event_ms);
        let row = feedback.joined;
        self.retained.count_final(
            row,
            self.kind_of(feedback.kind),
            feedback.orders(),
            first_ms,
        );
        if first_ms.is_some() {
            self.settle_conversions(feedback, sink);
        }
    }

    /// Beyond a bound pending feedback is final before its time.
    pub(super) fn evict_pending(&mut self, place: u32, sink: &mut impl Sink) {
        self.evicted_early.feedback += 1;
        if let Some(feedback) = self.pending.get(place).copied() {
            let bound = self.rules.max_pending;
            self.pending.remember_left(&feedback, bound);
        }
        self.make_final(place, sink);
    }

    // 6. Settling

    pub(super) fn may_settle(&self, feedback: &Feedback) -> bool {
        let is_named = feedback.joins_by_request() && feedback.is_joined();
        feedback.is_complete
            || is_named
                && (!feedback.is_conversion()
                    || self.has_feedback(feedback, Feedback::joins_by_request))
    }

    /// Whether the impression of a conversion has feedback no later than it that is final, or that
    /// `lasts` though it is pending.
    pub(super) fn has_feedback(
        &self,
        conversion: &Feedback,
        lasts: impl Fn(&Feedback) -> bool,
    ) -> bool {
        let Some(row) = self.retained.get(conversion.joined) else {
            return false;
        };
        if row.final_first_ms <= conversion.joins_ms {
            return true;
        }
        let (pair, to_ms) = (conversion.pair, conversion.joins_ms);
        let pending = self.pending.of_pair(false, pair, row.event_ms, to_ms);
        let mut joined = pending.filter_map(|place| self.pending.get(place));
        joined.any(|click| click.joined == conversion.joined && lasts(click))
    }

    /// Conversions may have waited for this feedback.
    pub(super) fn settle_conversions(&mut self, feedback: &Feedback, sink: &mut impl Sink) {
        let last_ms = feedback.event_ms + self.rules.retained_ms;
        let waiting = self
            .pending
            .of_pair(true, feedback.pair, feedback.event_ms, last_ms);
        for place in waiting.collect::<Vec<u32>>() {
            if let Some(conversion) = self.pending.get(place).copied() {
                self.of_user(&conversion, sink);
            }
            self.settle_if_due(place, sink);
        }
    }

    pub(super) fn settle_if_due(&mut self, place: u32, sink: &mut impl Sink) {
        if let Some(mut feedback) = self.pending.get(place).copied()
            && !feedback.is_settled
            && self.may_settle(&feedback)
        {
            feedback.is_settled = true;
            sink.emit(Emitted::Settled(&feedback));
            self.pending.set(place, feedback);
        }
    }

    // After rows were loaded: joins as they were when the rows were stored; nothing is emitted

    /// Takes pending feedback back: clicks first, then conversions. Whatever it had joined is
    /// retained.
    pub(crate) fn take_back(
        &mut self,
        mut feedback: Feedback,
        values: &Values,
        sink: &mut impl Sink,
    ) {
        feedback.joined = self.rejoined(&feedback);
        self.make_effective(&mut feedback, sink);
        let row = feedback.joined;
        self.retained
            .count(row, self.kind_of(feedback.kind), feedback.orders());
        if !feedback.is_conversion() {
            let rows = &mut self.retained.rows;
            rows.change_first(row, |x| x.first_ms = x.first_ms.min(feedback.event_ms));
        }
        if !feedback.is_complete {
            sink.emit(Emitted::OfUser(&feedback, false));
        }
        let place = self.pending.put(feedback);
        self.values.set(place, Some(values));
    }

    fn rejoined(&mut self, feedback: &Feedback) -> u32 {
        match feedback.is_conversion() {
            true => self.converted(feedback, self.rules.conversion_ms),
            false => self.retained_before(feedback, self.rules.click_ms, false),
        }
    }

    /// What impressions count as now is what was emitted.
    pub(crate) fn learn_outcomes(&mut self) {
        let rows: Vec<u32> = self.retained.rows.log.iter().map(|(row, _)| row).collect();
        for row in rows {
            let Some(found) = self.retained.get(row) else {
                continue;
            };
            let outcome = self.retained.outcome(found, &self.rules.grades);
            let (slate, is_member) = (found.slate, found.is_member);
            if let Some(found) = self.retained.get_mut(row) {
                found.outcome = outcome;
            }
            if is_member
                && outcome.is_ranked()
                && let Some(found) = self.slates.get_mut(slate)
            {
                found.marked += 1;
            }
        }
    }
}
