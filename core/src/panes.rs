//! Panes: additive integers by (ring, pane, segment), and since the state began.
//!
//! A ring holds the panes of one window length. A cell is a row of 64 integers of one (ring, pane,
//! segment, block); only blocks that something was added to exist. What is added is gathered first
//! at the resolution of the greatest common divisor of all pane lengths, then folded into the rings.

pub mod addition;
pub mod cells;
pub mod dimensions;
pub mod item_rows;
pub mod labels;
pub mod order;
pub mod pane_map;
pub mod rings;
pub mod rolled_up;
pub mod segments;
pub mod since;

use hashbrown::HashTable;

use crate::hash::mix;
pub use crate::panes::addition::{MAX_SUM, Overflow, add_up};
use crate::panes::cells::Cells;
use crate::panes::pane_map::PaneMap;
pub use crate::panes::rings::{BLOCK, Cell, TOTALS};
use crate::panes::rings::{Rings, gcd, number_of};
use crate::panes::since::Fold;
use crate::spec::Since;

const BLOCK_BITS: u32 = 9;
const GATHERED_ROWS: usize = 8192;
/// Bits of a place in a cell.
const PLACE_BITS: u32 = BLOCK.ilog2();
/// Bits of a statistic in a code, below its segment.
pub const STAT_BITS: u32 = BLOCK_BITS + PLACE_BITS;

/// Rows of integers by key, added up in place.
#[derive(Debug, Default)]
struct GatheredCells {
    rows: Vec<Cell>,
    keys: Vec<Key>,
    places: HashTable<u32>,
    last: Option<(Key, u32)>,
}

/// What rows are found by: a unit of time and a block, and a segment or a combination.
type Key = (u64, u32);

fn key(unit: u64, block: u32, of: u32) -> Key {
    (unit << BLOCK_BITS | u64::from(block), of)
}

/// Unit and block of a row.
fn moment_of((high, _): &Key) -> (u64, usize) {
    (high >> BLOCK_BITS, *high as usize & ((1 << BLOCK_BITS) - 1))
}

impl GatheredCells {
    fn row(&mut self, key: Key) -> &mut Cell {
        let at = match self.last {
            Some((last, at)) if last == key => at,
            _ => self.find(key),
        };
        &mut self.rows[at as usize]
    }

    fn find(&mut self, key: Key) -> u32 {
        let (next, keys) = (self.rows.len() as u32, &self.keys);
        let hash_of = |key: Key| mix(key.0, u64::from(key.1));
        let found = self.places.entry(
            hash_of(key),
            |at| keys[*at as usize] == key,
            |at| hash_of(keys[*at as usize]),
        );
        let at = *found.or_insert(next).get();
        if at == next {
            self.rows.push([0; BLOCK]);
            self.keys.push(key);
        }
        self.last = Some((key, at));
        at
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.keys.clear();
        self.places.clear();
        self.last = None;
    }
}

/// Sums are kept by it: a segment of a rollup, or a label.
type Segment = u32;
/// The places of the cells of one pane by segment << BLOCK_BITS | block.
type Pane = hashbrown::HashMap<u32, u32>;

/// All rings of a partition, and the totals.
#[derive(Debug)]
pub struct Panes {
    rings: Rings,
    unit_ms: i64,
    gathered: GatheredCells,
    panes: PaneMap<Pane>,
    cells: Cells,
    /// Cells that are added to: number, row and places.
    wanted: Vec<(u32, u32, u64)>,
    since: Since,
}

/// The places of a cell that are not 0, as bits.
fn places_of(cell: &Cell) -> u64 {
    let bits = cell.iter().enumerate();
    bits.fold(0, |bits, (place, sum)| bits | u64::from(*sum != 0) << place)
}

impl Panes {
    pub fn new(rings: Rings) -> Self {
        Self::since(rings, Since::default(), std::iter::empty())
    }

    /// Of which some count only from some time on; `others`: more times that no unit may straddle.
    pub fn since(rings: Rings, since: Since, others: impl Iterator<Item = i64>) -> Self {
        Self {
            unit_ms: since.times().chain(others).fold(rings.unit_ms(), gcd),
            rings,
            gathered: GatheredCells::default(),
            panes: PaneMap::default(),
            cells: Cells::default(),
            wanted: Vec::new(),
            since,
        }
    }

    /// Milliseconds of the greatest common divisor of all pane lengths.
    pub fn unit_ms(&self) -> i64 {
        self.unit_ms
    }

    /// The block that a statistic stands in, at a time.
    #[inline]
    pub fn at(&mut self, event_ms: i64, segment: Segment, stat: u32) -> &mut Cell {
        let unit = event_ms.div_euclid(self.unit_ms) as u64;
        self.gathered.row(key(unit, stat / BLOCK as u32, segment))
    }

    /// Adds to one statistic at a time.
    #[inline]
    pub fn add(&mut self, event_ms: i64, segment: Segment, stat: u32, amount: i64) {
        self.at(event_ms, segment, stat)[stat as usize % BLOCK] += amount;
    }

    /// Whether so much is gathered that it should be folded before more is.
    pub fn is_full(&self) -> bool {
        self.gathered.rows.len() >= GATHERED_ROWS
    }

    /// Folds what was gathered into every ring that covers its time; forgets old panes.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        self.fold_gathered(Fold::All, stream_ms)?;
        self.expire(stream_ms);
        Ok(())
    }

    /// Adds what was gathered to the panes of every ring that cover its times.
    fn fold_gathered(&mut self, part: Fold, stream_ms: i64) -> Result<(), Overflow> {
        let gathered = std::mem::take(&mut self.gathered);
        let filled: Vec<u64> = gathered.rows.iter().map(places_of).collect();
        let mut wanted = std::mem::take(&mut self.wanted);
        let mut at = 0;
        while let Some((number, ring)) = self.rings.get(at) {
            at += 1;
            let oldest = ring.oldest(stream_ms);
            wanted.clear();
            for (row, (key, filled)) in (0..).zip(gathered.keys.iter().zip(&filled)) {
                let (unit, block) = moment_of(key);
                let at_ms = unit as i64 * self.unit_ms;
                let pane = at_ms.div_euclid(ring.pane_ms);
                if pane < oldest {
                    continue;
                }
                let mut places = filled & self.rings.kept(number, block);
                if part != Fold::All || !self.since.is_over(at_ms) {
                    places &= self.since.counted((number, block, at_ms), part);
                }
                if places != 0 {
                    let cell = self.cell(number_of(number, pane), key.1, block);
                    wanted.push((cell, row, places));
                }
            }
            // What is added to is fetched from memory for all at the same time, not one by one.
            let warm = wanted.iter().map(|(cell, ..)| self.cells.warm_up(*cell));
            std::hint::black_box(warm.fold(0, u64::wrapping_add));
            for (cell, row, places) in &wanted {
                self.cells
                    .add(*cell, &gathered.rows[*row as usize], *places)?;
            }
        }
        self.wanted = wanted;
        self.gathered = gathered;
        self.gathered.clear();
        Ok(())
    }

    /// The cell of a block of a segment in a pane, which has changed.
    fn cell(&mut self, number: u64, segment: Segment, block: usize) -> u32 {
        let pane = self.panes.find_or(number, Pane::default).change();
        let cell = (segment << BLOCK_BITS) | block as u32;
        *pane.entry(cell).or_insert_with(|| self.cells.make())
    }

    fn add_to_pane(
        &mut self,
        number: u64,
        segment: Segment,
        block: usize,
        row: &Cell,
        places: u64,
    ) -> Result<(), Overflow> {
        let cell = self.cell(number, segment, block);
        self.cells.add(cell, row, places)
    }

    /// Adds a row to the totals of a segment.
    fn add_to_totals(
        &mut self,
        segment: Segment,
        block: usize,
        row: &Cell,
        places: u64,
    ) -> Result<(), Overflow> {
        self.add_to_pane(number_of(TOTALS, 0), segment, block, row, places)
    }

    /// Whether something is here that was not when rows were stored.
    pub fn has_new(&self) -> bool {
        self.since.has_new()
    }

    /// Forgets the panes that no window at or after `stream_ms` covers.
    fn expire(&mut self, stream_ms: i64) {
        if self.rings.advance(stream_ms) {
            self.panes.expire(&self.rings, |pane| {
                pane.values().for_each(|cell| self.cells.leave(*cell));
            });
        }
    }
}

/// What is stored of panes: one entry for each sum that is not 0, in the order of (pane, segment).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PaneColumns {
    /// Ring and pane, in `PANE_BITS`.
    pub pane: Vec<i64>,
    /// Segment and statistic, in `STAT_BITS`.
    pub code: Vec<i64>,
    pub value: Vec<i64>,
}

impl PaneColumns {
    /// A sum of a pane, unless it is 0.
    pub fn push(&mut self, pane: u64, code: i64, value: i64) {
        if value != 0 {
            self.pane.push(pane as i64);
            self.code.push(code);
            self.value.push(value);
        }
    }
}

/// Panes that are stored: by number, as integers by code.
pub trait PaneStore: Sync {
    /// The numbers of the panes that changed since the last call, ascending.
    fn take_changed(&mut self) -> Vec<u64>;
    /// The panes that are here, ascending.
    fn live(&self) -> Vec<u64>;
    /// The sums of some panes.
    fn dump(&self, numbers: &[u64]) -> PaneColumns;
    /// Puts back what `dump` gave of one pane.
    fn load(&mut self, number: u64, codes: &[i64], values: &[i64]) -> Result<(), Overflow>;
}

impl PaneStore for Panes {
    fn take_changed(&mut self) -> Vec<u64> {
        self.panes.take_changed()
    }

    fn live(&self) -> Vec<u64> {
        self.panes.live()
    }

    fn dump(&self, numbers: &[u64]) -> PaneColumns {
        let mut columns = PaneColumns::default();
        for number in numbers {
            let Some(pane) = self.panes.get(*number) else {
                continue;
            };
            let mut cells: Vec<(u32, u32)> = pane.iter().map(|(c, at)| (*c, *at)).collect();
            cells.sort_unstable();
            for (cell, at) in cells {
                for (place, value) in self.cells.get(at) {
                    let code = i64::from(cell) << PLACE_BITS | place as i64;
                    columns.push(*number, code, value);
                }
            }
        }
        columns
    }

    fn load(&mut self, number: u64, codes: &[i64], values: &[i64]) -> Result<(), Overflow> {
        let mut amounts = [0; BLOCK];
        for (code, value) in codes.iter().zip(values) {
            let (cell, place) = (code >> PLACE_BITS, (code & (BLOCK as i64 - 1)) as usize);
            let (segment, block) = (cell >> BLOCK_BITS, cell as usize & ((1 << BLOCK_BITS) - 1));
            amounts[place] = *value;
            self.add_to_pane(number, segment as Segment, block, &amounts, 1 << place)?;
        }
        Ok(())
    }
}

impl Panes {
    /// Bytes of all cells.
    pub fn bytes(&self) -> usize {
        let panes = self.panes.iter().map(|(_, pane)| pane.allocation_size());
        let gathered = self.gathered.rows.capacity() * size_of::<Cell>();
        self.cells.bytes() + panes.sum::<usize>() + gathered
    }
}

#[cfg(test)]
mod tests;
