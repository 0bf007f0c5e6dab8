//! Viewings: what feedback and sessions report of the time spent on one item of one request.
//!
//! Both may report the same viewing, and more than once: the longest time counts, once. A report
//! covers its time, up to the session gap (at most the dwell) before it, and the dwell after it;
//! reports less than the gap apart are of one viewing. Reports without a request count by
//! themselves.

use smallvec::SmallVec;

use crate::changes::{Change, Combination, Fact, UserAt};
use crate::columns::stored_row;
use crate::counting::intervals::{Intervals, Row, Summary};
use crate::hash::NONE;
use crate::panes::dimensions::Dimensions;

stored_row! {
    /// The longest report of one source; of equal ones the earliest.
    pub struct Report {
        /// -1 where the source reports nothing.
        dwell_ms: i64,
        event_ms: i64,
        offset: i64,
        /// Of the event among those of its record.
        number: u32,
        combination: Combination,
        user: u64,
    }
}

impl Report {
    /// Of a source that reports nothing.
    pub const NONE: Self = Self {
        dwell_ms: -1,
        event_ms: 0,
        offset: 0,
        number: 0,
        combination: 0,
        user: NONE,
    };
}

/// The viewings that a report changed, as they were and as they are.
type Changes = SmallVec<[Change<'static>; 4]>;

/// What is said of a viewing: by feedback, and by session events.
#[derive(Clone, Copy, Debug)]
pub struct Viewing {
    pub by_feedback: Option<Report>,
    pub by_session: Option<Report>,
}

fn longer(a: Option<Report>, b: Option<Report>) -> Option<Report> {
    let rank = |report: &Report| {
        let (event_ms, offset) = (report.event_ms, report.offset);
        (-report.dwell_ms, event_ms, offset, report.number)
    };
    [a, b].into_iter().flatten().min_by_key(rank)
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
    pub fn report(&mut self, key: u64, viewing: Viewing, dimensions: &mut Dimensions) -> Changes {
        let Some(report) = viewing.by_feedback.or(viewing.by_session) else {
            return Changes::new();
        };
        let (event_ms, dwell_ms) = (report.event_ms, report.dwell_ms);
        let low_ms = event_ms - dwell_ms.min(self.gap_ms);
        let merged = self.rows.merge(key, low_ms, event_ms + dwell_ms, viewing);
        let retracted = merged.before.iter().map(|row| (row, -1));
        retracted
            .chain([(&merged.after, 1)])
            .map(|(row, sign)| change_of(row, dimensions, sign))
            .collect()
    }

    /// Feedback has got another combination: it matters where it is the longest report of its source.
    pub fn move_feedback(
        &mut self,
        key: u64,
        (offset, number): (i64, u32),
        combination: Combination,
        dimensions: &mut Dimensions,
    ) -> Changes {
        let changed = self
            .rows
            .change(key, |viewing| match &mut viewing.by_feedback {
                Some(report) if (report.offset, report.number) == (offset, number) => {
                    report.combination = combination;
                    true
                }
                _ => false,
            });
        let rows = changed
            .iter()
            .flat_map(|(before, after)| [(before, -1), (after, 1)]);
        rows.map(|(row, sign)| change_of(row, dimensions, sign))
            .collect()
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
        mut settled: impl FnMut(&Change),
    ) {
        self.rows
            .expire(clock_ms, |row| settled(&change_of(row, dimensions, 1)));
    }
}

/// The longer report counts, feedback's if they are equal; a dimension that it does not give is
/// taken from the other one.
fn change_of(row: &Row<Viewing>, dimensions: &mut Dimensions, sign: i64) -> Change<'static> {
    let (feedback, session) = (row.summary.by_feedback, row.summary.by_session);
    let dwell_ms = |report: Option<Report>| report.map_or(-1, |found| found.dwell_ms);
    let (best, other) = if dwell_ms(feedback) >= dwell_ms(session) {
        (feedback, session)
    } else {
        (session, feedback)
    };
    let none = Report {
        event_ms: row.low_ms,
        dwell_ms: 0,
        ..Report::NONE
    };
    let best = best.unwrap_or(none);
    let at = UserAt {
        user: best.user,
        event_ms: best.event_ms,
        combination: other.map_or(best.combination, |found| {
            dimensions.filled(best.combination, found.combination)
        }),
    };
    let dwell_ms = best.dwell_ms;
    Change::new(at, sign, Fact::Viewing { dwell_ms })
}

/// The key of the viewings of an item of a request.
pub fn viewing_key(slate_key: u64, pair: u64) -> u64 {
    crate::hash::mix(slate_key, pair)
}
