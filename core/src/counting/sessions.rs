//! Sessions: events of one (user, session id), each less than the gap after the one before.
//!
//! A session ends where its last event is an `end`, else the gap after it: it counts under that
//! time, which may lie ahead, and anew when an event re-opens it or joins it with another.

use crate::changes::{Change, Combination, Fact, UserAt};
use crate::columns::stored_row;
use crate::counting::intervals::{Intervals, Row, Summary};

stored_row! {
    /// What is said of a session, stored beside its interval.
    pub struct Visit {
        user: u64,
        /// Offset and combination of its first event; of equal times the lowest offset.
        offset: i64,
        combination: Combination,
        views: i64,
        /// Whether an `end` is among the events of its last moment.
        is_end: bool,
    }
}

impl Summary for Visit {
    fn join(&mut self, mine: (i64, i64), other: &Self, theirs: (i64, i64)) {
        // Of one record the older row, which is the other here, is the first.
        if (theirs.0, other.offset) <= (mine.0, self.offset) {
            (self.user, self.offset, self.combination) =
                (other.user, other.offset, other.combination);
        }
        self.views += other.views;
        self.is_end = (self.is_end && mine.1 >= theirs.1) || (other.is_end && theirs.1 >= mine.1);
    }
}

/// The sessions of one partition that events can still join.
#[derive(Debug)]
pub struct Sessions {
    gap_ms: i64,
    pub rows: Intervals<Visit>,
}

impl Sessions {
    pub fn new(gap_ms: i64, lateness_ms: i64, limit: usize) -> Self {
        Self {
            gap_ms,
            rows: Intervals::new(gap_ms, gap_ms + lateness_ms, limit),
        }
    }

    /// Takes in an event; `emit` is called with what changed.
    pub fn take(&mut self, key: u64, event_ms: i64, visit: Visit, mut emit: impl FnMut(&Change)) {
        let merged = self.rows.merge(key, event_ms, event_ms, visit);
        for before in &merged.before {
            emit(&change_of(self.gap_ms, before, -1));
        }
        emit(&change_of(self.gap_ms, &merged.after, 1));
    }

    /// Every session as it counts now.
    pub fn emit_all(&self, mut emit: impl FnMut(&Change)) {
        self.rows
            .alive()
            .for_each(|row| emit(&change_of(self.gap_ms, row, 1)));
    }

    /// Forgets sessions that no event can join any more; `settled` is called with each.
    pub fn expire(&mut self, clock_ms: i64, mut settled: impl FnMut(&Change)) {
        let gap_ms = self.gap_ms;
        self.rows
            .expire(clock_ms, |row| settled(&change_of(gap_ms, row, 1)));
    }
}

fn change_of(gap_ms: i64, row: &Row<Visit>, sign: i64) -> Change<'static> {
    let (visit, views) = (&row.summary, row.summary.views);
    let end_ms = row.high_ms + if visit.is_end { 0 } else { gap_ms };
    let at = UserAt::new(visit.user, end_ms, visit.combination);
    let length_ms = row.high_ms - row.low_ms;
    Change::new(at, sign, Fact::Session { length_ms, views })
}
