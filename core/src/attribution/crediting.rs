//! What feedback counts as, and for which impression: rule 4.

use super::Attribution;
use crate::attribution::emitted::{Emitted, Sink};
use crate::attribution::pending::Feedback;
use crate::attribution::retained::{NOT_YET, Outcome as Counts};
use crate::changes::{Kind, Outcome, Segment};
use crate::custom::Values;

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
        feedback.is_complete = sink.dimensions().is_complete(feedback.own_segment);
        (feedback.segment, feedback.position) = self.effective(&feedback, sink);
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
        if self.pending.len() > self.rules.max_pending {
            self.evict_pending(sink);
        }
    }

    /// Segment and position of feedback: its own, with what is missing from its impression.
    pub(crate) fn effective(&self, feedback: &Feedback, sink: &mut impl Sink) -> (Segment, u32) {
        let Some(row) = self.retained.get(feedback.joined) else {
            return (feedback.own_segment, feedback.own_position);
        };
        let inherited = Segment::from(row.segment);
        let segment = match feedback.is_complete {
            true => feedback.own_segment,
            false => sink.dimensions().filled(feedback.own_segment, inherited),
        };
        let position = match feedback.own_position {
            0 => u32::from(row.position),
            own => own,
        };
        (segment, position)
    }

    /// Pending feedback joins another impression: what it counted as is retracted.
    pub(super) fn rejoin(&mut self, place: u32, joined: u32, sink: &mut impl Sink) {
        let Some(mut feedback) = self.pending.get(place).copied() else {
            return;
        };
        let before = feedback;
        feedback.joined = joined;
        (feedback.segment, feedback.position) = self.effective(&feedback, sink);
        if (feedback.segment, feedback.position) != (before.segment, before.position) {
            sink.emit(Emitted::Moved {
                before: &before,
                now: &feedback,
                values: self.values.get(place),
            });
        }
        if feedback.segment != before.segment {
            let dimensions = sink.dimensions();
            let is_same =
                dimensions.resolve(feedback.segment) == dimensions.resolve(before.segment);
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
        self.emit_outcome(row, sink);
        if first_ms != before.1 {
            let (from_ms, to_ms) = (first_ms.min(before.1), first_ms.max(before.1));
            self.convert_again(before.0, from_ms, to_ms, sink);
        }
        if amount > 0 && !feedback.is_conversion() && feedback.has_request() {
            self.settle_conversions(feedback, sink);
        }
    }

    pub(crate) fn kind_of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Configured(place) => usize::from(place),
            Kind::Gone => usize::MAX, // it counts for no outcome
            _ => self.rules.grades.len() - 1,
        }
    }

    /// The time of the first feedback of an impression that some has left.
    pub(super) fn first_feedback_ms(&self, row: u32) -> i64 {
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
        let change = Outcome {
            event_ms: found.event_ms,
            segment: Segment::from(found.segment),
            user: found.user,
            score: found.score,
            clicked: i64::from(now.is_clicked) - i64::from(before.is_clicked),
            converted: i64::from(now.is_converted) - i64::from(before.is_converted),
        };
        let is_ranked =
            found.is_member && (now.is_clicked, now.grade) != (before.is_clicked, before.grade);
        if is_ranked {
            self.retract_values(slate, sink);
            self.mark(slate, &before, &now);
        }
        if let Some(found) = self.retained.get_mut(row) {
            found.outcome = now;
        }
        if change.clicked != 0 || change.converted != 0 {
            sink.emit(Emitted::Outcome {
                change,
                item: self.items.retained.get(row).map(|of| of.item),
                weights: self.weights.retained.get(row),
            });
        }
    }

    pub(super) fn mark(&mut self, slate: u32, before: &Counts, now: &Counts) {
        if let Some(found) = self.slates.get_mut(slate) {
            found.marked += u32::from(now.is_ranked());
            found.marked -= u32::from(before.is_ranked());
        }
    }
}
