//! What one user contributes to the sums of all rings and rollups.
//!
//! Of n(s) items seen in pane s or later p(s) were given feedback of a kind: the positive rate is
//! p(s) / n(s). An item that the user met in several segments of a group is one there, with its last
//! times. Panes are coarser times, so all is sorted by time once for all rings.

use crate::changes::Segment;
use crate::groups::{Groups, SegmentCodes};
use crate::user_sums::{HITS, RingSums, USERS, positive_users, rate_sum};

/// Positive rates are integers of 1e-9, rounded once for a user and a first pane.
pub const RATE_UNIT: i64 = 1_000_000_000;

/// The rows of one user at a time; its buffers are used again.
#[derive(Debug)]
pub struct Contribution {
    /// 1 + the kinds of feedback.
    width: usize,
    rows: Vec<(u64, Segment)>,
    /// `width` a row.
    times: Vec<u32>,
    /// Rows in the order of their items.
    by_item: Vec<u32>,
    /// Group, place in `by_item`.
    by_group: Vec<(u32, u32)>,
    /// Times of the items of one group, `width` each.
    items: Vec<u32>,
    seen: Vec<u32>,
    liked: Vec<u32>,
}

impl Contribution {
    /// `kinds`: of feedback.
    pub fn new(kinds: usize) -> Self {
        Self {
            width: 1 + kinds,
            rows: Vec::new(),
            times: Vec::new(),
            by_item: Vec::new(),
            by_group: Vec::new(),
            items: Vec::new(),
            seen: Vec::new(),
            liked: Vec::new(),
        }
    }

    /// Begin another user.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.times.clear();
    }

    /// A row of the user.
    pub fn push(&mut self, pair: u64, segment: Segment, times: &[u32]) {
        self.rows.push((pair, segment));
        self.times.extend_from_slice(times);
    }

    /// A row with one time.
    pub fn push_one(&mut self, pair: u64, segment: Segment, column: usize, time: u32) {
        self.rows.push((pair, segment));
        let of_row = (0..self.width).map(|place| if place == column { time } else { 0 });
        self.times.extend(of_row);
    }

    /// Make the groups of the rows known.
    pub fn learn(&self, groups: &mut Groups, codes: &impl SegmentCodes) {
        for (_, segment) in &self.rows {
            groups.learn(*segment, codes);
        }
    }

    /// Add `sign` times what the user contributes.
    pub fn add(&mut self, groups: &Groups, rings: &mut [RingSums], sign: i64) {
        self.by_item.clear();
        self.by_item.extend(0..self.rows.len() as u32);
        self.by_item
            .sort_unstable_by_key(|row| self.rows[*row as usize].0);
        for rollup in 0..groups.rollups() {
            self.sort_by_group(groups, rollup);
            let by_group = std::mem::take(&mut self.by_group);
            for rows in by_group.chunk_by(|a, b| a.0 == b.0) {
                self.merge(rows);
                self.add_group(rows[0].0, rings, sign);
            }
            self.by_group = by_group;
        }
    }

    fn sort_by_group(&mut self, groups: &Groups, rollup: usize) {
        self.by_group.clear();
        for (place, row) in (0..).zip(&self.by_item) {
            if let Some(group) = groups.of(self.rows[*row as usize].1, rollup) {
                self.by_group.push((group, place));
            }
        }
        self.by_group.sort_unstable();
    }

    /// The items of a group's rows.
    fn merge(&mut self, rows: &[(u32, u32)]) {
        self.items.clear();
        let mut last = None;
        for (_, place) in rows {
            let row = self.by_item[*place as usize] as usize;
            let pair = self.rows[row].0;
            let times = &self.times[row * self.width..][..self.width];
            if last == Some(pair) {
                let start = self.items.len() - self.width;
                for (time, other) in self.items[start..].iter_mut().zip(times) {
                    *time = (*time).max(*other);
                }
            } else {
                self.items.extend_from_slice(times);
            }
            last = Some(pair);
        }
    }

    fn add_group(&mut self, group: u32, rings: &mut [RingSums], sign: i64) {
        let items = self.items.chunks_exact(self.width);
        self.seen.clear();
        self.seen
            .extend(items.clone().map(|times| times[0]).filter(|time| *time > 0));
        self.seen.sort_unstable_by(|a, b| b.cmp(a));
        let Some(last_seen) = self.seen.first().copied() else {
            return;
        };
        for ring in rings.iter_mut() {
            add_at(ring, last_seen, group, USERS, sign);
        }
        for kind in 0..self.width - 1 {
            let given = items.clone().map(|times| (times[0], times[1 + kind]));
            if kind == 0 {
                let last_click = given.clone().map(|(_, click)| click).max().unwrap_or(0);
                for ring in rings.iter_mut() {
                    add_at(ring, last_seen.min(last_click), group, HITS, sign);
                }
            }
            self.liked.clear();
            self.liked.extend(
                given
                    .map(|(shown, given)| shown.min(given))
                    .filter(|t| *t > 0),
            );
            self.liked.sort_unstable_by(|a, b| b.cmp(a));
            let Some(last_liked) = self.liked.first().copied() else {
                continue;
            };
            for ring in rings.iter_mut() {
                add_at(ring, last_liked, group, positive_users(kind), sign);
                add_rates(ring, &self.seen, &self.liked, group, rate_sum(kind), sign);
            }
        }
    }
}

fn add_at(ring: &mut RingSums, time: u32, group: u32, stat: usize, sign: i64) {
    if let Some(pane) = ring.pane(time) {
        ring.add(pane, group, stat, sign);
    }
}

/// Positive rates by pane, as differences to that of the next one. Times descend; for each liked
/// one there is one seen that is not before it.
fn add_rates(ring: &mut RingSums, seen: &[u32], liked: &[u32], group: u32, stat: usize, sign: i64) {
    if liked.first().is_none_or(|time| ring.pane(*time).is_none()) {
        return;
    }
    let (mut n, mut p, mut later) = (0, 0, 0);
    while let Some(time) = seen.get(n).max(liked.get(p))
        && let Some(pane) = ring.pane(*time)
    {
        let is_here = |time: &&u32| ring.pane(**time) == Some(pane);
        n += seen.iter().skip(n).take_while(is_here).count();
        p += liked.iter().skip(p).take_while(is_here).count();
        let (above, below) = (p as i64, (n as i64).max(1));
        let rate = (2 * RATE_UNIT * above + below) / (2 * below);
        if rate != later {
            ring.add(pane, group, stat, sign * (rate - later));
        }
        later = rate;
    }
}
