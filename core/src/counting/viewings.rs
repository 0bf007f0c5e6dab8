//! Viewings: what feedback and sessions report of the time spent on one item of one request.
//!
//! Both may report the same viewing, and more than once: the longest time counts, once. A report
//! covers its time, up to the session gap (at most the dwell) before it, and the dwell after it;
//! reports less than the gap apart are of one viewing. Reports without a request count by
//! themselves.

use crate::changes::{Combination, Dwell};
use crate::counting::intervals::{Intervals, Row, Summary};
use crate::hash::NONE;
use crate::panes::dimensions::Dimensions;

/// The longest report of one source; of equal ones the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    pub dwell_ms: i64,
    pub event_ms: i64,
    pub offset: i64,
    pub combination: Combination,
    pub user: u64,
}

/// What is said of a viewing: by feedback, and by session events.
#[derive(Clone, Copy, Debug)]
pub struct Viewing {
    pub by_feedback: Option<Report>,
    pub by_session: Option<Report>,
}

fn longer(a: Option<Report>, b: Option<Report>) -> Option<Report> {
    let rank = |report: &Report| (-report.dwell_ms, report.event_ms, report.offset);
    // Of reports of one record the first is the older row, which comes second here.
    [b, a].into_iter().flatten().min_by_key(rank)
}

impl Summary for Viewing {
    fn join(&mut self, _: (i64, i64), other: &Self, _: (i64, i64)) {
        self.by_feedback = longer(self.by_feedback, other.by_feedback);
        self.by_session = longer(self.by_session, other.by_session);
    }
}

/// The viewings of one partition that reports can still join.
#[derive(Debug)]
pub struct Viewings {
    gap_ms: i64,
    pub rows: Intervals<Viewing>,
}

impl Viewings {
    pub fn new(gap_ms: i64, lateness_ms: i64, limit: usize) -> Self {
        Self {
            gap_ms,
            rows: Intervals::new(gap_ms, 2 * gap_ms + lateness_ms, limit),
        }
    }

    /// Milliseconds between reports of different viewings.
    pub fn gap_ms(&self) -> i64 {
        self.gap_ms
    }

    /// Takes in a report of an item of a request; `key` is a hash of both.
    pub fn report(
        &mut self,
        key: u64,
        viewing: Viewing,
        dimensions: &mut Dimensions,
        mut emit: impl FnMut(&mut Dimensions, &Dwell),
    ) {
        let Some(report) = viewing.by_feedback.or(viewing.by_session) else {
            return;
        };
        let low_ms = report.event_ms - report.dwell_ms.min(self.gap_ms);
        let merged = self
            .rows
            .merge(key, low_ms, report.event_ms + report.dwell_ms, viewing);
        for before in &merged.before {
            let change = change_of(before, dimensions, -1);
            emit(dimensions, &change);
        }
        let change = change_of(&merged.after, dimensions, 1);
        emit(dimensions, &change);
    }

    /// Feedback has got another combination: it matters where it is the longest report of its source.
    pub fn move_feedback(
        &mut self,
        key: u64,
        offset: i64,
        combination: Combination,
        dimensions: &mut Dimensions,
        mut emit: impl FnMut(&mut Dimensions, &Dwell),
    ) {
        let changed = self
            .rows
            .change(key, |viewing| match &mut viewing.by_feedback {
                Some(report) if report.offset == offset => {
                    report.combination = combination;
                    true
                }
                _ => false,
            });
        for (before, after) in &changed {
            for (row, sign) in [(before, -1), (after, 1)] {
                let change = change_of(row, dimensions, sign);
                emit(dimensions, &change);
            }
        }
    }

    /// Calls its argument with the combination of every report.
    pub fn each_combination(&self, visit: &mut dyn FnMut(Combination)) {
        for row in self.rows.alive() {
            let reports = [row.summary.by_feedback, row.summary.by_session];
            let reports = reports.into_iter().flatten();
            reports.for_each(|report| visit(report.combination));
        }
    }

    /// Forgets viewings that no report can join any more; `settled` is called with each.
    pub fn expire(
        &mut self,
        clock_ms: i64,
        dimensions: &mut Dimensions,
        mut settled: impl FnMut(&Dwell),
    ) {
        self.rows
            .expire(clock_ms, |row| settled(&change_of(row, dimensions, 1)));
    }
}

/// The longer report counts, feedback's if they are equal; a dimension that it does not give is
/// taken from the other one.
fn change_of(row: &Row<Viewing>, dimensions: &mut Dimensions, sign: i64) -> Dwell {
    let (feedback, session) = (row.summary.by_feedback, row.summary.by_session);
    let dwell_ms = |report: Option<Report>| report.map_or(-1, |found| found.dwell_ms);
    let (best, other) = if dwell_ms(feedback) >= dwell_ms(session) {
        (feedback, session)
    } else {
        (session, feedback)
    };
    let none = Report {
        dwell_ms: 0,
        event_ms: row.low_ms,
        offset: 0,
        combination: 0,
        user: NONE,
    };
    let best = best.unwrap_or(none);
    let combination = other.map_or(best.combination, |found| {
        dimensions.filled(best.combination, found.combination)
    });
    Dwell {
        event_ms: best.event_ms,
        combination,
        user: best.user,
        dwell_ms: best.dwell_ms,
        sign,
    }
}

/// The key of the viewings of an item of a request.
pub fn viewing_key(slate_key: u64, pair: u64) -> u64 {
    crate::hash::mix(slate_key, pair)
}
