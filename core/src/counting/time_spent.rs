//! Time spent: reports of feedback and sessions, made viewings.

use super::Counting;
use super::viewings::viewing_key;
use crate::attribution::pending::Feedback;
use crate::changes::{Combination, Dwell};
use crate::counting::sums::Change;
use crate::counting::viewings::{Report, Viewing};

impl Counting {
    /// What feedback reports of time spent, when it is emitted first.
    pub fn dwell_of_feedback(&mut self, feedback: &Feedback) {
        let Some(dwell_ms) = feedback.dwell_ms else {
            return;
        };
        if !feedback.has_request() {
            self.dwell(&dwell_of(feedback, dwell_ms, 1));
            return;
        }
        let report = Report {
            dwell_ms,
            event_ms: feedback.event_ms,
            offset: feedback.offset,
            combination: feedback.combination,
            user: feedback.user,
        };
        let viewing = Viewing {
            by_feedback: Some(report),
            by_session: None,
        };
        self.viewing(viewing_key(feedback.slate_key, feedback.pair), viewing);
    }

    /// Feedback that reports time spent was emitted under another combination before.
    pub fn dwell_moved(&mut self, feedback: &Feedback, before: Combination) {
        let Some(dwell_ms) = feedback.dwell_ms else {
            return;
        };
        if !feedback.has_request() {
            self.dwell(&Dwell {
                combination: before,
                ..dwell_of(feedback, dwell_ms, -1)
            });
            self.dwell(&dwell_of(feedback, dwell_ms, 1));
            return;
        }
        let key = viewing_key(feedback.slate_key, feedback.pair);
        let mut changes = Vec::new();
        let (offset, combination) = (feedback.offset, feedback.combination);
        let dimensions = &mut self.dimensions;
        self.viewings
            .move_feedback(key, offset, combination, dimensions, |_, dwell| {
                changes.push(*dwell);
            });
        for change in &changes {
            self.dwell(change);
        }
    }

    /// A report of an item of a request.
    pub fn viewing(&mut self, key: u64, viewing: Viewing) {
        let mut changes = smallvec::SmallVec::<[Dwell; 4]>::new();
        self.viewings
            .report(key, viewing, &mut self.dimensions, |_, dwell| {
                changes.push(*dwell)
            });
        for change in &changes {
            self.dwell(change);
        }
    }

    /// A session event reports time spent on an item without a request: a viewing of its own.
    pub fn single_dwell(&mut self, change: &Dwell) {
        self.dwell(change);
        self.settle(&Change::Dwell(*change));
    }

    /// Forgets viewings that no report can join any more: they count since the start.
    pub fn expire_viewings(&mut self, clock_ms: i64) {
        let (statistics, panes) = (&self.statistics, &mut self.panes);
        self.viewings
            .expire(clock_ms, &mut self.dimensions, |dwell| {
                statistics.settle(panes, &Change::Dwell(*dwell));
            });
    }
}

pub(super) fn dwell_of(feedback: &Feedback, dwell_ms: i64, sign: i64) -> Dwell {
    Dwell {
        event_ms: feedback.event_ms,
        combination: feedback.combination,
        user: feedback.user,
        dwell_ms,
        sign,
    }
}
