//! Since when what panes hold is counted, after settings were changed: what is new counts nothing of
//! the time before, so that what was counted without it is never retracted from it.

use crate::spec::{CountFrom, ItemsSince, Since};

use crate::panes::rings::BLOCK;

impl ItemsSince {
    /// All times, which panes may not straddle.
    pub fn times(&self) -> impl Iterator<Item = i64> {
        let every = [&self.rings_ms, &self.cutoffs_ms, &self.lists_ms];
        every
            .into_iter()
            .flatten()
            .copied()
            .chain([self.clicked_ms, self.people_ms, self.pairs_ms])
    }

    /// From when on a ring counts.
    pub fn of_ring(&self, place: usize) -> i64 {
        self.rings_ms.get(place).copied().unwrap_or(0)
    }
}

/// Which parts of an amount count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Those that count by now.
    All,
    /// Of them those that are new.
    NewOnly,
}

impl Since {
    /// All times, which panes may not straddle.
    pub fn times(&self) -> impl Iterator<Item = i64> {
        let of_rings = self.rings.iter().map(|(_, from)| from.since_ms);
        let of_statistics = self.statistics.iter().map(|(.., from)| from.since_ms);
        of_rings
            .chain(of_statistics)
            .chain(self.users_ms.iter().copied())
    }

    /// Whether anything is new.
    pub fn has_new(&self) -> bool {
        self.rings.iter().any(|(_, from)| from.is_new)
            || self.statistics.iter().any(|(.., from)| from.is_new)
    }

    fn of_ring(&self, number: u64) -> CountFrom {
        let found = self.rings.iter().find(|(other, _)| *other == number);
        found.map_or_else(CountFrom::default, |(_, from)| *from)
    }

    /// Whether everything counts at this time.
    pub fn is_over(&self, at_ms: i64) -> bool {
        self.times().all(|since_ms| since_ms <= at_ms)
    }

    /// The places of a block that count in a ring at a time, as bits.
    pub fn counted(&self, (ring, block, at_ms): (u64, usize, i64), part: Fold) -> u64 {
        let from = self.of_ring(ring);
        if at_ms < from.since_ms {
            return 0;
        }
        let is_counted = part == Fold::All || from.is_new;
        let mut counted = if is_counted { u64::MAX } else { 0 };
        for (first, stop, of_statistic) in &self.statistics {
            let (start, end) = (block * BLOCK, (block + 1) * BLOCK);
            for code in start.max(*first as usize)..end.min(*stop as usize) {
                if at_ms < of_statistic.since_ms {
                    counted &= !(1 << (code - start));
                } else if of_statistic.is_new {
                    counted |= 1 << (code - start);
                }
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panes::cells::places;

    fn since() -> Since {
        let from = |since_ms, is_new| CountFrom { since_ms, is_new };
        Since {
            rings: vec![(2, from(5_000, true))],
            statistics: vec![(1, 3, from(6_000, true)), (70, 71, from(4_000, false))],
            ..Since::default()
        }
    }

    fn of(ring: u64, block: usize, at_ms: i64, part: Fold) -> Vec<usize> {
        places(since().counted((ring, block, at_ms), part)).collect()
    }

    #[test]
    fn nothing_of_the_time_before_counts() {
        let of = |ring, at_ms| {
            let first = of(ring, 0, at_ms, Fold::All).into_iter();
            first.take_while(|place| *place < 4).collect::<Vec<_>>()
        };
        assert_eq!(of(1, 5_999), [0, 3]);
        assert_eq!(of(1, 6_000), [0, 1, 2, 3]);
        assert!(of(2, 4_999).is_empty());
        assert_eq!(of(2, 5_000), [0, 3]);
        assert!(since().is_over(6_000) && !since().is_over(5_999));
    }

    #[test]
    fn what_is_new_is_told_apart() {
        let of = |ring, block, at_ms| of(ring, block, at_ms, Fold::NewOnly);
        assert_eq!(of(1, 0, 7_000), [1, 2]);
        assert!(of(1, 0, 5_000).is_empty());
        assert!(of(1, 1, 7_000).is_empty());
        assert_eq!(of(2, 1, 7_000).len(), BLOCK);
        assert_eq!(of(2, 0, 5_500).len(), BLOCK - 2);
    }
}
