//! What one user contributes to the sums of all rings and rollups.
//!
//! Of n(s) items seen in pane s or later p(s) were given feedback of a kind: the positive rate is
//! p(s) / n(s). An item that the user met in several combinations of a segment is one there, with its last
//! times. Panes are coarser times, so all is sorted by time once for all rings; and segments of the same
//! rows, as those of rollups of other dimensions often are, have the same profile.

use crate::changes::Combination;
use crate::panes::dimensions::CombinationCodes;
use crate::panes::segments::{Placement, Segments};
use crate::users::sums::{Change, HITS, RingSums, USERS, positive_users, rate_squares, rate_sum};

/// Positive rates are integers of 1e-9, rounded once for a user and a first pane; so are the squares
/// of these integers.
pub const RATE_UNIT: i64 = 1_000_000_000;

/// The segments that some combinations belong to, or all of a user's; `except` of others.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub of: Option<&'a [Combination]>,
    pub except: &'a [Combination],
}

/// The rows of one user at a time; its buffers are used again.
#[derive(Debug)]
pub struct Contribution {
    /// 1 + the kinds of feedback.
    width: usize,
    /// Items.
    pairs: Vec<u64>,
    /// `width` a row.
    times: Vec<u32>,
    /// Rows of one combination, one after another: the combination, and the first row.
    runs: Vec<(Combination, u32)>,
    /// Whether no item can have several rows of one combination.
    is_distinct: bool,
    /// Segments that are wanted, and that are not.
    wanted: Vec<u32>,
    unwanted: Vec<u32>,
    /// Segment, run.
    by_segment: Vec<(u32, u32)>,
    /// Segments of the same runs; the runs, and their rows.
    alike: Vec<u32>,
    of: Vec<u32>,
    rows: Vec<u32>,
    profile: Profile,
    changes: Vec<Change>,
}

impl Contribution {
    /// `kinds`: of feedback.
    pub fn new(kinds: usize) -> Self {
        Self {
            width: 1 + kinds,
            pairs: Vec::new(),
            times: Vec::new(),
            runs: Vec::new(),
            is_distinct: true,
            wanted: Vec::new(),
            unwanted: Vec::new(),
            by_segment: Vec::new(),
            alike: Vec::new(),
            of: Vec::new(),
            rows: Vec::new(),
            profile: Profile::new(kinds),
            changes: Vec::new(),
        }
    }

    /// Begin another user.
    pub fn clear(&mut self) {
        self.pairs.clear();
        self.times.clear();
        self.runs.clear();
        self.is_distinct = true;
    }

    /// A row of the user.
    pub fn push(&mut self, pair: u64, combination: Combination, times: &[u32]) {
        self.begin_row(pair, combination);
        self.times.extend_from_slice(times);
    }

    /// Another row with one time.
    pub fn push_one(&mut self, pair: u64, combination: Combination, column: usize, time: u32) {
        self.begin_row(pair, combination);
        self.is_distinct = false;
        let of_row = (0..self.width).map(|place| if place == column { time } else { 0 });
        self.times.extend(of_row);
    }

    fn begin_row(&mut self, pair: u64, combination: Combination) {
        if self.runs.last().is_none_or(|last| last.0 != combination) {
            self.runs.push((combination, self.pairs.len() as u32));
        }
        self.pairs.push(pair);
    }

    /// Make the segments of the rows known that are not: what is full was so for an event before.
    pub fn learn(&self, segments: &mut Segments, rollups: &[usize], codes: &impl CombinationCodes) {
        for (combination, _) in &self.runs {
            let codes = codes.codes(*combination);
            for rollup in rollups {
                if segments.find(*rollup, codes).is_none() {
                    segments.learn(*rollup, codes);
                }
            }
        }
    }

    /// Add `sign` times what the user contributes to a part of the segments of some rollups.
    pub fn add(
        &mut self,
        segments: Placement<'_, impl CombinationCodes>,
        rollups: &[usize],
        rings: &mut [RingSums],
        (part, sign): (Part<'_>, i64),
    ) {
        self.of.clear();
        let mut by_segment = std::mem::take(&mut self.by_segment);
        for rollup in rollups.iter().copied() {
            self.find_segments(segments, rollup, part, &mut by_segment);
            for runs in by_segment.chunk_by(|a, b| a.0 == b.0) {
                let of = runs.iter().map(|(_, run)| *run);
                if !self.of.iter().copied().eq(of.clone()) {
                    self.add_profile(rings, sign);
                    self.of.clear();
                    self.of.extend(of);
                }
                self.alike.push(runs[0].0);
            }
        }
        self.add_profile(rings, sign);
        self.by_segment = by_segment;
    }

    /// Add the profile of some runs to the segments that have no other ones.
    fn add_profile(&mut self, rings: &mut [RingSums], sign: i64) {
        if self.alike.is_empty() {
            return;
        }
        self.read();
        for ring in rings {
            self.profile.changes(ring, sign, &mut self.changes);
            ring.add(&self.alike, &mut self.changes);
        }
        self.alike.clear();
    }

    /// The segments of a part under a rollup, each with its runs.
    fn find_segments(
        &mut self,
        segments: Placement<'_, impl CombinationCodes>,
        rollup: usize,
        part: Part<'_>,
        by_segment: &mut Vec<(u32, u32)>,
    ) {
        let find = |found: &mut Vec<u32>, of: &[Combination]| {
            found.clear();
            found.extend(of.iter().filter_map(|each| segments.of(*each, rollup)));
        };
        find(&mut self.wanted, part.of.unwrap_or(&[]));
        find(&mut self.unwanted, part.except);
        by_segment.clear();
        for (run, (combination, _)) in (0..).zip(&self.runs) {
            if let Some(segment) = segments.of(*combination, rollup)
                && (part.of.is_none() || self.wanted.contains(&segment))
                && !self.unwanted.contains(&segment)
            {
                by_segment.push((segment, run));
            }
        }
        by_segment.sort_unstable();
    }

    /// Read the profile of the runs.
    fn read(&mut self) {
        self.rows.clear();
        for run in &self.of {
            let first = self.runs[*run as usize].1;
            let next = self.runs.get(*run as usize + 1);
            let end = next.map_or(self.pairs.len() as u32, |(_, first)| *first);
            self.rows.extend(first..end);
        }
        if self.of.len() > 1 || !self.is_distinct {
            self.rows
                .sort_unstable_by_key(|row| self.pairs[*row as usize]);
        }
        self.profile.clear();
        let mut last = None;
        for row in self.rows.iter().map(|row| *row as usize) {
            let times = &self.times[row * self.width..][..self.width];
            self.profile.push(times, last == Some(self.pairs[row]));
            last = Some(self.pairs[row]);
        }
        self.profile.sort();
    }
}

/// What a user did in one segment.
#[derive(Debug)]
struct Profile {
    /// Last times of the item that rows are being read of.
    item: Vec<u32>,
    /// Times of the items seen; after `sort` descending.
    seen: Vec<u32>,
    /// For each kind of feedback the times of the items seen and given it, the earlier of the two.
    liked: Vec<Vec<u32>>,
    last_click: u32,
}

impl Profile {
    fn new(kinds: usize) -> Self {
        let liked = vec![Vec::new(); kinds];
        Self {
            item: vec![0; 1 + kinds],
            seen: Vec::new(),
            liked,
            last_click: 0,
        }
    }

    fn clear(&mut self) {
        self.item.fill(0);
        self.seen.clear();
        self.liked.iter_mut().for_each(Vec::clear);
        self.last_click = 0;
    }

    /// Another row, of the same item as the one before it or of another.
    fn push(&mut self, times: &[u32], is_same: bool) {
        if !is_same {
            self.end_item();
        }
        for (time, other) in self.item.iter_mut().zip(times) {
            *time = if is_same { (*time).max(*other) } else { *other };
        }
    }

    fn end_item(&mut self) {
        let Some((shown, given)) = self.item.split_first() else {
            return;
        };
        self.last_click = self.last_click.max(given.first().copied().unwrap_or(0));
        if *shown == 0 {
            return;
        }
        self.seen.push(*shown);
        for (liked, given) in self
            .liked
            .iter_mut()
            .zip(given)
            .filter(|(_, given)| **given > 0)
        {
            liked.push(*shown.min(given));
        }
    }

    /// All rows were read.
    fn sort(&mut self) {
        self.end_item();
        self.seen.sort_unstable_by(|a, b| b.cmp(a));
        for liked in &mut self.liked {
            liked.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// `sign` times what this contributes to each segment in a ring.
    fn changes(&self, ring: &RingSums, sign: i64, changes: &mut Vec<Change>) {
        changes.clear();
        let Some(last_seen) = self.seen.first() else {
            return;
        };
        let of = |time: u32, stat| ring.pane(time).map(|pane| (pane, stat, sign));
        changes.extend(of(*last_seen, USERS));
        changes.extend(of(self.last_click.min(*last_seen), HITS));
        for (kind, liked) in self.liked.iter().enumerate() {
            if let Some(time) = liked.first() {
                changes.extend(of(*time, positive_users(kind)));
                add_rates(ring, [&self.seen, liked], (kind, sign), changes);
            }
        }
    }
}

/// Positive rates by pane, as differences to that of the next one. Times of what was seen and liked
/// descend; for each liked one there is one seen that is not before it.
fn add_rates(
    ring: &RingSums,
    [seen, liked]: [&[u32]; 2],
    (kind, sign): (usize, i64),
    changes: &mut Vec<Change>,
) {
    let (mut n, mut p, mut later) = (0, 0, 0);
    while let Some(time) = seen.get(n).max(liked.get(p))
        && let Some(pane) = ring.pane(*time)
    {
        let first = ring.first_time(pane);
        n += seen
            .iter()
            .skip(n)
            .take_while(|time| **time >= first)
            .count();
        p += liked
            .iter()
            .skip(p)
            .take_while(|time| **time >= first)
            .count();
        let (above, below) = (p as i64, (n as i64).max(1));
        let rate = (2 * RATE_UNIT * above + below) / (2 * below);
        if rate != later {
            changes.push((pane, rate_sum(kind), sign * (rate - later)));
            let more = square(rate) - square(later);
            changes.push((pane, rate_squares(kind), sign * more));
        }
        later = rate;
    }
}

/// The square of a rate in the same unit, rounded half up.
fn square(rate: i64) -> i64 {
    (rate * rate + RATE_UNIT / 2) / RATE_UNIT
}
