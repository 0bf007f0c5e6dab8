//! What one user contributes to the sums of all rings and rollups.
//!
//! Of n(s) items seen in pane s or later p(s) were given feedback of a kind: the positive rate is
//! p(s) / n(s). An item that the user met in several combinations of a segment is one there, with its last
//! times. Panes are coarser times, so all is sorted by time once for all rings.

use crate::changes::Combination;
use crate::panes::dimensions::CombinationCodes;
use crate::panes::segments::{Placement, Segments};
use crate::users::sums::{HITS, RingSums, USERS, positive_users, rate_squares, rate_sum};

/// Positive rates are integers of 1e-9, rounded once for a user and a first pane; so are the squares
/// of these integers.
pub const RATE_UNIT: i64 = 1_000_000_000;

/// The rows of one user at a time; its buffers are used again.
#[derive(Debug)]
pub struct Contribution {
    /// 1 + the kinds of feedback.
    width: usize,
    rows: Vec<(u64, Combination)>,
    /// `width` a row.
    times: Vec<u32>,
    /// Whether all rows have one combination.
    is_single: bool,
    /// Whether no item can have several rows.
    is_distinct: bool,
    /// Rows; where items can have several, in the order of items.
    by_item: Vec<u32>,
    /// Segment, place in `by_item`.
    by_segment: Vec<(u32, u32)>,
    profile: Profile,
}

impl Contribution {
    /// `kinds`: of feedback.
    pub fn new(kinds: usize) -> Self {
        Self {
            width: 1 + kinds,
            rows: Vec::new(),
            times: Vec::new(),
            is_single: true,
            is_distinct: true,
            by_item: Vec::new(),
            by_segment: Vec::new(),
            profile: Profile::new(kinds),
        }
    }

    /// Begin another user.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.times.clear();
        (self.is_single, self.is_distinct) = (true, true);
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
        if self.rows.first().is_some_and(|row| row.1 != combination) {
            (self.is_single, self.is_distinct) = (false, false);
        }
        self.rows.push((pair, combination));
    }

    /// Make the segments of the rows known.
    pub fn learn(&self, segments: &mut Segments, rollups: &[usize], codes: &impl CombinationCodes) {
        for (_, combination) in &self.rows {
            for rollup in rollups {
                segments.learn(*rollup, codes.codes(*combination));
            }
            if self.is_single {
                break;
            }
        }
    }

    /// Add `sign` times what the user contributes to the segments of some rollups.
    pub fn add(
        &mut self,
        segments: Placement<'_, impl CombinationCodes>,
        rollups: &[usize],
        rings: &mut [RingSums],
        sign: i64,
    ) {
        self.by_item.clear();
        self.by_item.extend(0..self.rows.len() as u32);
        if !self.is_distinct {
            self.by_item
                .sort_unstable_by_key(|row| self.rows[*row as usize].0);
        }
        let mut is_of_all = false; // the profile
        for rollup in rollups.iter().copied() {
            if let Some(segment) = self.segment_of_all(segments, rollup) {
                if !is_of_all {
                    self.read((0..self.by_item.len() as u32).map(|place| (segment, place)));
                    is_of_all = true;
                }
                self.profile.add(segment, rings, sign);
            } else {
                self.add_segments(segments, rollup, rings, sign);
                is_of_all = false;
            }
        }
    }

    /// The segment of all rows, if it is one.
    fn segment_of_all(
        &self,
        segments: Placement<'_, impl CombinationCodes>,
        rollup: usize,
    ) -> Option<u32> {
        let segment = segments.of(self.rows.first()?.1, rollup)?;
        let mut others = self.rows.iter().skip(1);
        let is_one =
            self.is_single || others.all(|row| segments.of(row.1, rollup) == Some(segment));
        is_one.then_some(segment)
    }

    fn add_segments(
        &mut self,
        segments: Placement<'_, impl CombinationCodes>,
        rollup: usize,
        rings: &mut [RingSums],
        sign: i64,
    ) {
        let mut by_segment = std::mem::take(&mut self.by_segment);
        by_segment.clear();
        for (place, row) in (0..).zip(&self.by_item) {
            if let Some(segment) = segments.of(self.rows[*row as usize].1, rollup) {
                by_segment.push((segment, place));
            }
        }
        by_segment.sort_unstable();
        for rows in by_segment.chunk_by(|a, b| a.0 == b.0) {
            self.read(rows.iter().copied());
            self.profile.add(rows[0].0, rings, sign);
        }
        self.by_segment = by_segment;
    }

    /// Read the profile of rows: (segment, place in `by_item`).
    fn read(&mut self, rows: impl Iterator<Item = (u32, u32)>) {
        self.profile.clear();
        let mut last = None;
        for (_, place) in rows {
            let row = self.by_item[place as usize] as usize;
            let pair = self.rows[row].0;
            let times = &self.times[row * self.width..][..self.width];
            self.profile.push(times, last == Some(pair));
            last = Some(pair);
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

    /// Add `sign` times what this contributes to a segment.
    fn add(&self, segment: u32, rings: &mut [RingSums], sign: i64) {
        let Some(last_seen) = self.seen.first() else {
            return;
        };
        for ring in rings {
            let Some(pane) = ring.pane(*last_seen) else {
                continue;
            };
            ring.add(pane, segment, USERS, sign);
            if let Some(pane) = ring.pane(self.last_click.min(*last_seen)) {
                ring.add(pane, segment, HITS, sign);
            }
            for (kind, liked) in self.liked.iter().enumerate() {
                if let Some(pane) = liked.first().and_then(|time| ring.pane(*time)) {
                    ring.add(pane, segment, positive_users(kind), sign);
                    add_rates(ring, [&self.seen, liked], segment, kind, sign);
                }
            }
        }
    }
}

/// Positive rates by pane, as differences to that of the next one. Times of what was seen and liked
/// descend; for each liked one there is one seen that is not before it.
fn add_rates(
    ring: &mut RingSums,
    [seen, liked]: [&[u32]; 2],
    segment: u32,
    kind: usize,
    sign: i64,
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
            ring.add(pane, segment, rate_sum(kind), sign * (rate - later));
            let more = square(rate) - square(later);
            ring.add(pane, segment, rate_squares(kind), sign * more);
        }
        later = rate;
    }
}

/// The square of a rate in the same unit, rounded half up.
fn square(rate: i64) -> i64 {
    (rate * rate + RATE_UNIT / 2) / RATE_UNIT
}
