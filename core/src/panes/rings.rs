//! Rings: which panes are kept, and for how long.
//!
//! The rings of windows have the numbers 1, 2, … and keep every statistic as long as their window
//! covers it. Where settings ask for it, a window has a second ring under `TOTALS` + its number,
//! which keeps some statistics for a day and a window: the same window a day before.

use crate::spec::{DayBefore, Ring};

/// The ring of the totals since the state began: it has the one pane 0.
pub const TOTALS: u64 = 9;
/// Integers of a cell.
pub const BLOCK: usize = 64;
/// The integers of a cell.
pub type Cell = [i64; BLOCK];
/// Bits of a pane's index in its number, below its ring.
pub const PANE_BITS: u32 = 32;
/// More than any number of a ring.
const NUMBERS: usize = 2 * TOTALS as usize;

/// The number of a pane among those of all rings.
pub fn number_of(ring: u64, pane: i64) -> u64 {
    ring << PANE_BITS | pane as u64
}

/// The ring of a pane, and its index.
pub fn ring_and_pane(number: u64) -> (u64, i64) {
    (
        number >> PANE_BITS,
        (number & ((1 << PANE_BITS) - 1)) as i64,
    )
}

/// All rings of a partition, or of an alert series.
#[derive(Debug)]
pub struct Rings {
    all: Vec<(u64, Ring)>,
    /// The statistics that are kept for the day before, by block: a bit for each place.
    kept: Vec<u64>,
    /// The oldest pane by number of the ring, as of the last call of `advance`.
    oldest: [i64; NUMBERS],
}

impl Rings {
    /// Those of windows.
    pub fn new(windows: &[Ring]) -> Self {
        Self {
            all: (1..).zip(windows.iter().copied()).collect(),
            kept: Vec::new(),
            oldest: [i64::MIN; NUMBERS],
        }
    }

    /// The same, and those of the day before, which keep these places of each block. An error where a
    /// window has no such number.
    pub fn with_day_before(
        windows: &[Ring],
        spec: &DayBefore,
        kept: Vec<u64>,
    ) -> Result<Self, String> {
        let mut rings = Self::new(windows);
        for (window, ring) in &spec.rings {
            if !(1..=windows.len() as u64).contains(window) {
                return Err(format!("no window has the number {window}"));
            }
            rings.all.push((TOTALS + window, *ring));
        }
        rings.kept = kept;
        Ok(rings)
    }

    /// Milliseconds of the greatest common divisor of all pane lengths.
    pub fn unit_ms(&self) -> i64 {
        let unit = self.all.iter().fold(0, |unit, (_, r)| gcd(unit, r.pane_ms));
        unit.max(1)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Number and ring at a place.
    pub fn get(&self, place: usize) -> Option<(u64, Ring)> {
        self.all.get(place).copied()
    }

    /// The places of a block that a ring keeps, as bits.
    pub fn kept(&self, number: u64, block: usize) -> u64 {
        match number < TOTALS {
            true => u64::MAX,
            false => self.kept.get(block).copied().unwrap_or(0),
        }
    }

    /// The time has moved to this. Returns whether panes have left.
    pub fn advance(&mut self, stream_ms: i64) -> bool {
        let mut has_moved = false;
        for (number, ring) in &self.all {
            let oldest = ring.oldest(stream_ms);
            has_moved |= std::mem::replace(&mut self.oldest[*number as usize], oldest) != oldest;
        }
        has_moved
    }

    /// Whether no window covers a pane any more.
    pub fn is_gone(&self, number: u64, pane: i64) -> bool {
        let oldest = self.oldest.get(number as usize);
        oldest.is_some_and(|oldest| pane < *oldest)
    }
}

/// The greatest common divisor; 0 divides into everything.
pub fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_kept_for_the_day_before() {
        let window = Ring {
            pane_ms: 60_000,
            panes: 60,
        };
        let ring = Ring {
            pane_ms: 60_000,
            panes: 1500,
        };
        let spec = DayBefore {
            rings: vec![(1, ring)],
            statistics: vec![(2, 4), (127, 129)],
        };
        let rings = Rings::with_day_before(&[window], &spec, vec![0b1100, 1 << 63, 1]).unwrap();
        assert_eq!(rings.get(1), Some((TOTALS + 1, ring)));
        let kept = |block| rings.kept(TOTALS + 1, block);
        assert_eq!([0, 1, 2, 3].map(kept), [0b1100, 1 << 63, 1, 0]);
        assert_eq!(rings.kept(1, 3), u64::MAX);
        assert!(Rings::with_day_before(&[], &spec, vec![0b1100, 1 << 63, 1]).is_err());
    }

    #[test]
    fn panes_leave_a_day_and_a_window_later() {
        let ring = |panes| Ring {
            pane_ms: 60_000,
            panes,
        };
        let spec = DayBefore {
            rings: vec![(1, ring(1500))],
            statistics: vec![],
        };
        let mut rings =
            Rings::with_day_before(&[ring(60)], &spec, vec![0b1100, 1 << 63, 1]).unwrap();
        assert!(rings.advance(2000 * 60_000));
        assert!(!rings.advance(2000 * 60_000 + 59_999));
        assert!(rings.is_gone(1, 1940) && !rings.is_gone(1, 1941));
        assert!(rings.is_gone(TOTALS + 1, 500) && !rings.is_gone(TOTALS + 1, 501));
        assert!(!rings.is_gone(TOTALS, 0));
    }
}
