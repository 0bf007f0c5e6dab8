//! Spans of days on which the same exposures are wanted.

use std::ops::Range;

pub const DAY_MS: i64 = 86_400_000;

/// Some days.
#[derive(Clone, Debug)]
pub struct Span {
    /// From 1.
    pub number: u32,
    /// Whether anything wants to know what users did on them.
    pub is_wanted: bool,
    /// The exposures that may begin on them and part what users did, by their places.
    pub open: Vec<u32>,
}

/// Days of an exposure.
#[derive(Clone, Debug)]
pub struct ExposureDays {
    /// Those that are wanted, of covariates too.
    pub wanted: Range<i64>,
    /// The first on which users are exposed.
    pub first: i64,
    /// Whether it parts what its users did into before and after.
    pub parts: bool,
}

/// All days.
#[derive(Debug)]
pub struct Spans {
    /// The first day of each span but the first.
    starts: Vec<i64>,
    spans: Vec<Span>,
    /// The first day that a declared experiment wants.
    first_declared_day: Option<i64>,
}

impl Spans {
    /// `declared`: how many of the exposures, the first ones, are of declared experiments.
    pub fn new(exposures: &[ExposureDays], declared: usize) -> Self {
        let ends = |x: &ExposureDays| [x.wanted.start, x.first, x.wanted.end];
        let mut starts: Vec<i64> = exposures.iter().flat_map(ends).collect();
        starts.sort_unstable();
        starts.dedup();
        let days = std::iter::once(i64::MIN).chain(starts.iter().copied());
        let span = |(number, day): (u32, i64)| {
            let is_open = |x: &ExposureDays| x.parts && x.first <= day && day < x.wanted.end;
            let open = (0..).zip(exposures).filter(|(_, x)| is_open(x));
            Span {
                number,
                is_wanted: exposures.iter().any(|x| x.wanted.contains(&day)),
                open: open.map(|(place, _)| place).collect(),
            }
        };
        let first_days = exposures[..declared].iter().map(|x| x.wanted.start);
        Self {
            first_declared_day: first_days.min(),
            spans: (1..).zip(days).map(span).collect(),
            starts,
        }
    }

    /// The span of a day.
    pub fn of(&self, day: i64) -> &Span {
        &self.spans[self.starts.partition_point(|start| *start <= day)]
    }

    /// The first day that a declared experiment wants.
    pub fn first_declared_day(&self) -> Option<i64> {
        self.first_declared_day
    }

    /// The first day that is wanted.
    pub fn first_day(&self) -> Option<i64> {
        let spans = self.spans.iter().skip(1).zip(&self.starts);
        let mut wanted = spans.filter(|(span, _)| span.is_wanted);
        wanted.next().map(|(_, start)| *start)
    }
}
