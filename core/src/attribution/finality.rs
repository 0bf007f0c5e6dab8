//! When a join is final, and when feedback is settled: rules 5 and 6.

use super::Attribution;
use crate::attribution::emitted::{Emitted, Sink};
use crate::attribution::pending::Feedback;
use crate::slates::NO_SLATE;

impl Attribution {
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
        feedback.has_request()
            && is_only
            && feedback.event_ms <= until_ms
            && (!feedback.is_conversion()
                || self.has_feedback(feedback, |click| self.is_final_at_once(click)))
    }

    /// Lets feedback be final whose join no later event can change, by the clocks.
    pub fn finalise(&mut self, impressions_ms: i64, clicks_ms: i64, sink: &mut impl Sink) {
        let clocks = [impressions_ms, impressions_ms.min(clicks_ms)];
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
        } else {
            self.unattributed[usize::from(feedback.is_conversion())] += 1;
        }
    }

    /// Final feedback is kept with its impression; conversions may have waited for it.
    pub(super) fn count_final(&mut self, feedback: &Feedback, sink: &mut impl Sink) {
        let first_ms = (!feedback.is_conversion()).then_some(feedback.event_ms);
        let row = feedback.joined;
        self.retained
            .count_final(row, self.kind_of(feedback.kind), 1, first_ms);
        if first_ms.is_some() {
            self.settle_conversions(feedback, sink);
        }
    }

    /// Beyond the bound the oldest pending feedback is final before its time.
    pub(super) fn evict_pending(&mut self, sink: &mut impl Sink) {
        let clicks = self.pending.earliest(false);
        let conversions = self.pending.earliest(true);
        let oldest = clicks.into_iter().chain(conversions).min();
        if let Some((_, place)) = oldest {
            self.evicted_early.feedback += 1;
            self.make_final(place, sink);
        }
    }

    // 6. Settling

    pub(super) fn may_settle(&self, feedback: &Feedback) -> bool {
        let is_named = feedback.has_request() && feedback.is_joined();
        feedback.is_complete
            || is_named
                && (!feedback.is_conversion() || self.has_feedback(feedback, Feedback::has_request))
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
        if row.final_first_ms <= conversion.event_ms {
            return true;
        }
        let (pair, to_ms) = (conversion.pair, conversion.event_ms);
        let pending = self.pending.of_pair(false, pair, row.event_ms, to_ms);
        let mut joined = pending.iter().filter_map(|place| self.pending.get(*place));
        joined.any(|click| click.joined == conversion.joined && lasts(click))
    }

    /// Conversions may have waited for this feedback.
    pub(super) fn settle_conversions(&mut self, feedback: &Feedback, sink: &mut impl Sink) {
        let last_ms = feedback.event_ms + self.rules.retained_ms;
        for place in self
            .pending
            .of_pair(true, feedback.pair, feedback.event_ms, last_ms)
        {
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
}
