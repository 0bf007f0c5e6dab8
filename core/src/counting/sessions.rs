//! Sessions: events of one (user, session id), each less than the gap after the one before.
//!
//! A session ends where its last event is an `end`, else the gap after it: it counts under that
//! time, which may lie ahead, and anew when an event re-opens it or joins it with another.

use crate::changes::{Combination, Session};
use crate::counting::intervals::{Intervals, Row, Summary};

/// What is said of a session.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    pub user: u64,
    /// Offset and combination of its first event; of equal times the lowest offset.
    pub offset: i64,
    pub combination: Combination,
    pub views: i64,
    /// Whether an `end` is among the events of its last moment.
    pub is_end: bool,
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
    pub fn take(&mut self, key: u64, event_ms: i64, visit: Visit, mut emit: impl FnMut(&Session)) {
        let merged = self.rows.merge(key, event_ms, event_ms, visit);
        for before in &merged.before {
            emit(&change_of(self.gap_ms, before, -1));
        }
        emit(&change_of(self.gap_ms, &merged.after, 1));
    }

    /// Every session as it counts now.
    pub fn emit_all(&self, mut emit: impl FnMut(&Session)) {
        self.rows
            .alive()
            .for_each(|row| emit(&change_of(self.gap_ms, row, 1)));
    }

    /// Forgets sessions that no event can join any more; `settled` is called with each.
    pub fn expire(&mut self, clock_ms: i64, mut settled: impl FnMut(&Session)) {
        let gap_ms = self.gap_ms;
        self.rows
            .expire(clock_ms, |row| settled(&change_of(gap_ms, row, 1)));
    }
}

fn change_of(gap_ms: i64, row: &Row<Visit>, sign: i64) -> Session {
    let visit = &row.summary;
    Session {
        event_ms: row.high_ms + if visit.is_end { 0 } else { gap_ms },
        combination: visit.combination,
        user: visit.user,
        length_ms: row.high_ms - row.low_ms,
        views: visit.views,
        sign,
    }
}
