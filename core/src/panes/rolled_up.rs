//! Panes of windows, and the totals since the start, kept by segment of each rollup.
//!
//! What events add is gathered under their combination of values, and shared out to the segments of
//! all rollups when it is folded: each keeps those statistics that it shows. What the total alone
//! keeps is gathered under no combination.

use super::cells::places;
use super::dimensions::CombinationCodes;
use super::order::Order;
use super::rings::BLOCK;
use super::segments::Segments;
use super::{Fold, GATHERED_ROWS, GatheredCells, Overflow, PaneColumns, PaneStore, Panes, Rings};
use super::{Key, STAT_BITS, key, moment_of, places_of};
use crate::changes::Combination;
use crate::panes::rings::Cell;
use crate::spec::Since;

/// In place of a combination: what is gathered is of the total alone.
const NONE: Combination = Combination::MAX;

/// The panes of windows, and the totals.
#[derive(Debug)]
pub struct RolledUpPanes {
    pub segments: Segments,
    order: Order,
    panes: Panes,
    gathered: GatheredCells,
    totals: GatheredCells,
}

impl RolledUpPanes {
    /// ``order``: that of the rings, times and segments.
    pub fn new(rings: Rings, since: Since, segments: Segments, order: Order) -> Self {
        let of_rollups = segments.rollups.iter().flat_map(|rollup| rollup.times());
        Self {
            panes: Panes::since(rings, since, of_rollups),
            segments,
            order,
            gathered: GatheredCells::default(),
            totals: GatheredCells::default(),
        }
    }

    /// Milliseconds of the greatest common divisor of all pane lengths.
    pub fn unit_ms(&self) -> i64 {
        self.panes.unit_ms()
    }

    /// Adds to one statistic at a time.
    #[inline]
    pub fn add(&mut self, event_ms: i64, combination: Combination, stat: u32, amount: i64) {
        let unit = event_ms.div_euclid(self.panes.unit_ms()) as u64;
        let place = self.order.place(stat);
        let key = self.key(unit, place, combination);
        self.gathered.row(key)[place as usize % BLOCK] += amount;
    }

    /// Adds to a wide statistic.
    pub fn add_wide(
        &mut self,
        event_ms: i64,
        combination: Combination,
        stat: u32,
        amounts: &[i64],
        sign: i64,
    ) {
        for (stat, amount) in (stat..).zip(amounts).filter(|(_, amount)| **amount != 0) {
            self.add(event_ms, combination, stat, sign * amount);
        }
    }

    /// Adds to one statistic since the start.
    pub fn add_total(&mut self, combination: Combination, stat: u32, amount: i64) {
        let place = self.order.place(stat);
        let key = self.key(0, place, combination);
        self.totals.row(key)[place as usize % BLOCK] += amount;
    }

    #[inline]
    fn key(&self, unit: u64, place: u32, combination: Combination) -> Key {
        let block = place / BLOCK as u32;
        let is_split = (block as usize) < self.segments.split_blocks();
        key(unit, block, if is_split { combination } else { NONE })
    }

    /// Whether so much is gathered that it should be folded before more is.
    pub fn is_full(&self) -> bool {
        self.gathered.rows.len() >= GATHERED_ROWS
    }

    /// Folds what was gathered into every ring that covers its time; forgets old panes.
    pub fn fold(
        &mut self,
        combinations: &impl CombinationCodes,
        stream_ms: i64,
    ) -> Result<(), Overflow> {
        self.share_out(combinations, stream_ms, Fold::All)?;
        let totals = std::mem::take(&mut self.totals);
        for (key, row) in totals.keys.iter().zip(&totals.rows) {
            let ((_, block), codes) = (moment_of(key), codes_of(combinations, key.1));
            let filled = places_of(row);
            for rollup in 0..self.segments.rollups.len() {
                let places = self.segments.rollups[rollup].kept(block) & filled;
                if places != 0 {
                    let segment = self.segments.learn(rollup, codes);
                    self.panes.add_to_totals(segment, block, row, places)?;
                }
            }
        }
        self.totals = totals;
        self.totals.clear();
        self.panes.fold(stream_ms)
    }

    /// Whether something is here that was not when rows were stored.
    pub fn has_new(&self) -> bool {
        self.panes.has_new() || self.segments.rollups.iter().any(|x| x.has_new())
    }

    /// Folds what was gathered where it is new only: all else counted it before.
    pub fn fold_new(
        &mut self,
        combinations: &impl CombinationCodes,
        stream_ms: i64,
    ) -> Result<(), Overflow> {
        if self.has_new() {
            self.share_out(combinations, stream_ms, Fold::NewOnly)?;
        }
        self.gathered.clear();
        Ok(())
    }

    /// Adds what was gathered to the segments of one rollup after another: what falls into one
    /// segment is added up before it is folded into the rings.
    fn share_out(
        &mut self,
        combinations: &impl CombinationCodes,
        stream_ms: i64,
        part: Fold,
    ) -> Result<(), Overflow> {
        let gathered = std::mem::take(&mut self.gathered);
        let filled: Vec<u64> = gathered.rows.iter().map(places_of).collect();
        for rollup in 0..self.segments.rollups.len() {
            // What is new in a rollup is so as a whole.
            for (part, is_new) in [(part, false), (Fold::All, true)] {
                if is_new && !self.segments.rollups[rollup].has_new() {
                    continue;
                }
                for ((key, row), filled) in gathered.keys.iter().zip(&gathered.rows).zip(&filled) {
                    let (unit, block) = moment_of(key);
                    let at_ms = unit as i64 * self.unit_ms();
                    let counted = self.segments.rollups[rollup].counted(block, at_ms, is_new);
                    if counted & filled != 0 {
                        let codes = codes_of(combinations, key.1);
                        let segment = self.segments.learn(rollup, codes);
                        let sums = self.panes.gathered.row((key.0, segment));
                        for place in places(counted & filled) {
                            sums[place] += row[place];
                        }
                    }
                }
                self.panes.fold_gathered(part, stream_ms)?;
            }
        }
        self.gathered = gathered;
        self.gathered.clear();
        Ok(())
    }

    /// Bytes of all cells.
    pub fn bytes(&self) -> usize {
        let gathered = self.gathered.rows.capacity() + self.totals.rows.capacity();
        self.panes.bytes() + gathered * size_of::<Cell>()
    }
}

/// The codes of what was gathered: none of what is of the total alone.
fn codes_of(combinations: &impl CombinationCodes, of: Combination) -> &[u32] {
    if of == NONE {
        &[]
    } else {
        combinations.codes(of)
    }
}

impl PaneStore for RolledUpPanes {
    fn take_changed(&mut self) -> Vec<u64> {
        self.panes.take_changed()
    }

    fn live(&self) -> Vec<u64> {
        self.panes.live()
    }

    fn dump(&self, numbers: &[u64]) -> PaneColumns {
        let mut columns = self.panes.dump(numbers);
        for code in &mut columns.code {
            let (segment, place) = (*code >> STAT_BITS, *code & ((1 << STAT_BITS) - 1));
            *code = segment << STAT_BITS | i64::from(self.order.code(place as u32));
        }
        columns
    }

    fn load(&mut self, number: u64, codes: &[i64], values: &[i64]) -> Result<(), Overflow> {
        let place = |code: &i64| {
            let (segment, stat) = (code >> STAT_BITS, code & ((1 << STAT_BITS) - 1));
            segment << STAT_BITS | i64::from(self.order.place(stat as u32))
        };
        let places: Vec<i64> = codes.iter().map(place).collect();
        self.panes.load(number, &places, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{self, CountFrom, Ring};

    struct Codes([[u32; 2]; 3]);

    impl CombinationCodes for Codes {
        fn codes(&self, combination: Combination) -> &[u32] {
            &self.0[combination as usize]
        }
    }

    const CODES: Codes = Codes([[2, 2], [2, 3], [3, 2]]);

    fn panes(since: Vec<(u32, u32, CountFrom)>) -> RolledUpPanes {
        let rollup = |dimensions: &[usize], kept: &[(u32, u32)], since| spec::RollupSpec {
            dimensions: dimensions.to_vec(),
            kept: kept.to_vec(),
            has_users: false,
            since,
        };
        let rollups = [
            rollup(&[], &[(0, 200)], Vec::new()),
            rollup(&[0], &[(100, 102), (199, 200)], since),
        ];
        let ring = Ring {
            pane_ms: 1_000,
            panes: 60,
        };
        let order = Order::new(&rollups);
        let segments = Segments::new(&rollups, &order, 10);
        RolledUpPanes::new(Rings::new(&[ring]), Since::default(), segments, order)
    }

    /// Pane, segment, code and sum.
    fn sums(panes: &RolledUpPanes) -> Vec<(i64, i64, i64, i64)> {
        let found = panes.dump(&panes.live());
        let codes = found.code.iter();
        let parts = codes.map(|code| (code >> STAT_BITS, code & ((1 << STAT_BITS) - 1)));
        let pane = found.pane.iter().map(|number| number & 0xFFFF_FFFF);
        let rows = pane.zip(parts).zip(&found.value);
        let mut rows: Vec<_> = rows
            .map(|((pane, (segment, code)), value)| (pane, segment, code, *value))
            .collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn each_rollup_keeps_what_it_shows() {
        let mut panes = panes(Vec::new());
        panes.add(7_000, 0, 101, 2);
        panes.add(7_100, 1, 101, 3);
        panes.add(7_900, 2, 5, 4);
        panes.add_wide(8_000, 2, 198, &[7, 9], -1);
        panes.add_total(1, 199, 6);
        panes.fold(&CODES, 8_000).unwrap();
        let expected = [
            (0, 0, 199, 6),
            (0, 1, 199, 6),
            (7, 0, 5, 4),
            (7, 0, 101, 5),
            (7, 1, 101, 5),
            (8, 0, 198, -7),
            (8, 0, 199, -9),
            (8, 2, 199, -9),
        ];
        assert_eq!(sums(&panes), expected);
        let stored = panes.dump(&panes.live());
        let mut loaded = self::panes(Vec::new());
        for ((pane, code), value) in stored.pane.iter().zip(&stored.code).zip(&stored.value) {
            loaded.load(*pane as u64, &[*code], &[*value]).unwrap();
        }
        assert_eq!(sums(&loaded), expected);
    }

    #[test]
    fn what_is_new_in_a_rollup_is_folded_there_alone() {
        let from = CountFrom {
            since_ms: 8_000,
            is_new: true,
        };
        let mut panes = panes(vec![(101, 102, from)]);
        assert!(panes.has_new());
        for at_ms in [7_000, 9_000] {
            panes.add(at_ms, 0, 101, 2);
            panes.add(at_ms, 0, 199, 3);
        }
        panes.fold_new(&CODES, 9_000).unwrap();
        assert_eq!(sums(&panes), [(9, 1, 101, 2)]);
        assert_eq!(panes.segments.rows()[1].0, 1);
    }
}
