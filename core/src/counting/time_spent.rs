//! Time spent: reports of feedback and sessions, made viewings.

use super::Counting;
use super::viewings::viewing_key;
use crate::attribution::pending::Feedback;
use crate::changes::{Change, Fact, UserAt};
use crate::counting::viewings::{Report, Viewing};

impl Counting {
    /// What feedback reports of time spent, when it is emitted first.
    pub fn dwell_of_feedback(&mut self, feedback: &Feedback) {
        let (at, Some(dwell_ms)) = (feedback.at(), feedback.amounts.dwell_ms) else {
            return;
        };
        if !feedback.has_request() {
            self.change(&Change::new(at, 1, Fact::Viewing { dwell_ms }));
            return;
        }
        let report = Report {
            dwell_ms,
            event_ms: at.event_ms,
            offset: feedback.offset,
            number: feedback.number,
            combination: at.combination,
            user: at.user,
        };
        let viewing = Viewing {
            by_feedback: Some(report),
            by_session: None,
        };
        self.viewing(viewing_key(feedback.slate_key, feedback.item_pair), viewing);
    }

    /// Feedback that reports time spent has another combination than before.
    pub fn dwell_moved(&mut self, before: &Feedback, now: &Feedback) {
        let Some(dwell_ms) = now.amounts.dwell_ms else {
            return;
        };
        if !now.has_request() {
            for (feedback, sign) in [(before, -1), (now, 1)] {
                let what = Fact::Viewing { dwell_ms };
                self.change(&Change::new(feedback.at(), sign, what));
            }
            return;
        }
        let key = viewing_key(now.slate_key, now.item_pair);
        let place = (now.offset, now.number);
        let changes =
            self.viewings
                .move_feedback(key, place, now.combination, &mut self.dimensions);
        for change in &changes {
            self.change(change);
        }
    }

    /// A report of an item of a request.
    pub fn viewing(&mut self, key: u64, viewing: Viewing) {
        let changes = self.viewings.report(key, viewing, &mut self.dimensions);
        for change in &changes {
            self.change(change);
        }
    }

    /// A session event reports time spent on an item without a request: a viewing of its own.
    pub fn single_dwell(&mut self, at: UserAt, dwell_ms: i64) {
        let change = Change::new(at, 1, Fact::Viewing { dwell_ms });
        self.change(&change);
        self.settle(&change);
    }

    /// Forgets viewings that no report can join any more: they count since the start.
    pub fn expire_viewings(&mut self, clock_ms: i64) {
        let (statistics, panes) = (&self.statistics, &mut self.panes);
        self.viewings
            .expire(clock_ms, &mut self.dimensions, |change| {
                statistics.settle(panes, change);
            });
    }
}
