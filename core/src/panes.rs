//! Panes: additive integers by (ring, pane, segment), and since the state began.
//!
//! A ring holds the panes of one window length. A cell is a row of 64 integers of one (ring, pane,
//! segment, block); only blocks that something was added to exist. What is added is gathered first
//! at the resolution of the greatest common divisor of all pane lengths, then folded into the rings.

pub mod dimensions;
pub mod groups;
pub mod item_rows;
pub mod labels;
pub mod pane_map;
pub mod rings;
pub mod since;

use crate::changes::Segment;
use crate::hash::{HashMap, mix};
use crate::panes::pane_map::PaneMap;
pub use crate::panes::rings::{BLOCK, Cell, TOTALS};
use crate::panes::rings::{Rings, gcd, number_of};
use crate::panes::since::Fold;
use crate::spec::Since;

/// No sum passes this: beyond it is an error, never a wrap.
pub const MAX_SUM: i64 = 1 << 62;
const BLOCK_BITS: u32 = 9;
const SEGMENT_BITS: u32 = 15;
const GATHERED_ROWS: usize = 8192;
/// Bits of a place in a cell.
const PLACE_BITS: u32 = BLOCK.ilog2();
/// Bits of a statistic in a code, below its segment.
pub const STAT_BITS: u32 = BLOCK_BITS + PLACE_BITS;

/// Rows of integers by key, added up in place.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Cell>,
    keys: Vec<u64>,
    places: HashMap<u32>,
    last: Option<(u64, u32)>,
}

impl Rows {
    fn row(&mut self, key: u64) -> &mut Cell {
        let at = match self.last {
            Some((last, at)) if last == key => at,
            _ => self.find(key),
        };
        &mut self.rows[at as usize]
    }

    fn find(&mut self, key: u64) -> u32 {
        let next = self.rows.len() as u32;
        let at = *self.places.entry(mix(key, 1)).or_insert(next);
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

/// The places of the cells of one pane by segment << BLOCK_BITS | block.
type Pane = hashbrown::HashMap<u32, u32>;

/// All rings of a partition, and the totals.
#[derive(Debug)]
pub struct Panes {
    rings: Rings,
    unit_ms: i64,
    gathered: Rows,
    totals: Rows,
    panes: PaneMap<Pane>,
    cells: Vec<Cell>,
    free: Vec<u32>,
    since: Since,
    /// What is folded now.
    part: Fold,
}

/// A sum would pass `MAX_SUM`.
#[derive(Debug, PartialEq, Eq)]
pub struct Overflow;

/// Adds amounts to sums.
pub fn add_up(sums: &mut [i64], amounts: &[i64]) -> Result<(), Overflow> {
    for (sum, amount) in sums.iter_mut().zip(amounts) {
        *sum = sum.checked_add(*amount).ok_or(Overflow)?;
        if sum.unsigned_abs() > MAX_SUM.unsigned_abs() {
            return Err(Overflow);
        }
    }
    Ok(())
}

impl Panes {
    pub fn new(rings: Rings) -> Self {
        Self::since(rings, Since::default())
    }

    /// Of which some count only from some time on.
    pub fn since(rings: Rings, since: Since) -> Self {
        Self {
            unit_ms: since.times().fold(rings.unit_ms(), gcd),
            rings,
            gathered: Rows::default(),
            totals: Rows::default(),
            panes: PaneMap::default(),
            cells: Vec::new(),
            free: Vec::new(),
            since,
            part: Fold::All,
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
        let cell = (segment << BLOCK_BITS) | (stat / BLOCK as u32);
        self.gathered
            .row(unit << (SEGMENT_BITS + BLOCK_BITS) | u64::from(cell))
    }

    /// Adds to one statistic at a time.
    #[inline]
    pub fn add(&mut self, event_ms: i64, segment: Segment, stat: u32, amount: i64) {
        self.at(event_ms, segment, stat)[stat as usize % BLOCK] += amount;
    }

    /// Adds to a wide statistic, whose first integer begins a block.
    pub fn add_wide(
        &mut self,
        event_ms: i64,
        segment: Segment,
        stat: u32,
        amounts: &[i64],
        sign: i64,
    ) {
        for (block, part) in amounts.chunks(BLOCK).enumerate() {
            if part.iter().any(|amount| *amount != 0) {
                let row = self.at(event_ms, segment, stat + (block * BLOCK) as u32);
                for (sum, amount) in row.iter_mut().zip(part) {
                    *sum += sign * amount;
                }
            }
        }
    }

    /// Adds to one statistic since the start.
    pub fn add_total(&mut self, segment: Segment, stat: u32, amount: i64) {
        let key = u64::from((segment << BLOCK_BITS) | (stat / BLOCK as u32));
        self.totals.row(key)[stat as usize % BLOCK] += amount;
    }

    /// Whether so much is gathered that it should be folded before more is.
    pub fn is_full(&self) -> bool {
        self.gathered.rows.len() >= GATHERED_ROWS
    }

    /// Folds what was gathered into every ring that covers its time; forgets old panes.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        let gathered = std::mem::take(&mut self.gathered);
        for (key, row) in gathered.keys.iter().zip(&gathered.rows) {
            let cell = (key & ((1 << (SEGMENT_BITS + BLOCK_BITS)) - 1)) as u32;
            let at_ms = (key >> (SEGMENT_BITS + BLOCK_BITS)) as i64 * self.unit_ms;
            let block = cell as usize & ((1 << BLOCK_BITS) - 1);
            let for_day_before = self.rings.for_day_before(block, row);
            let is_whole = self.part == Fold::All && self.since.is_over(at_ms);
            let mut place = 0;
            while let Some((number, ring)) = self.rings.get(place) {
                place += 1;
                let pane = at_ms.div_euclid(ring.pane_ms);
                let is_of_window = number < TOTALS;
                let amounts = if is_of_window {
                    Some(row)
                } else {
                    for_day_before.as_ref()
                };
                let Some(amounts) = amounts.filter(|_| pane >= ring.oldest(stream_ms)) else {
                    continue;
                };
                let place = number_of(number, pane);
                if is_whole {
                    add_up(self.cell(place, cell), amounts)?;
                } else {
                    let at = (number, block, at_ms);
                    let counted = self.since.counted(at, amounts, self.part);
                    let added = counted.map(|row| add_up(self.cell(place, cell), &row));
                    added.transpose()?;
                }
            }
        }
        self.gathered = gathered;
        self.gathered.clear();
        let totals = std::mem::take(&mut self.totals);
        for (key, row) in totals.keys.iter().zip(&totals.rows) {
            add_up(self.cell(number_of(TOTALS, 0), *key as u32), row)?;
        }
        self.totals = totals;
        self.totals.clear();
        self.expire(stream_ms);
        Ok(())
    }

    /// Whether something is here that was not when rows were stored.
    pub fn has_new(&self) -> bool {
        self.since.has_new()
    }

    /// Folds what was gathered where it is new only: all else counted it before.
    pub fn fold_new(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        self.part = Fold::NewOnly;
        let folded = self.fold(stream_ms);
        self.part = Fold::All;
        folded
    }

    fn cell(&mut self, number: u64, cell: u32) -> &mut Cell {
        let pane = self.panes.find_or(number, Pane::default).change();
        let at = *pane.entry(cell).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.cells.push([0; BLOCK]);
                self.cells.len() as u32 - 1
            })
        });
        &mut self.cells[at as usize]
    }

    /// Forgets the panes that no window at or after `stream_ms` covers.
    fn expire(&mut self, stream_ms: i64) {
        if self.rings.advance(stream_ms) {
            self.panes.expire(&self.rings, |pane| {
                for at in pane.values() {
                    self.cells[*at as usize] = [0; BLOCK];
                    self.free.push(*at);
                }
            });
        }
    }
}

/// What is stored of panes: one entry for each sum that is not 0, in the order of (pane, code).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PaneColumns {
    /// Ring and pane, in `PANE_BITS`.
    pub pane: Vec<i64>,
    /// Segment and statistic, in `STAT_BITS`.
    pub code: Vec<i64>,
    pub value: Vec<i64>,
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
                let sums = self.cells[at as usize].iter().enumerate();
                for (place, value) in sums.filter(|(_, value)| **value != 0) {
                    columns.pane.push(*number as i64);
                    columns
                        .code
                        .push(i64::from(cell) << PLACE_BITS | place as i64);
                    columns.value.push(*value);
                }
            }
        }
        columns
    }

    fn load(&mut self, number: u64, codes: &[i64], values: &[i64]) -> Result<(), Overflow> {
        for (code, value) in codes.iter().zip(values) {
            let row = self.cell(number, (code >> PLACE_BITS) as u32);
            let sum = &mut row[(code & (BLOCK as i64 - 1)) as usize];
            *sum = sum.checked_add(*value).ok_or(Overflow)?;
        }
        Ok(())
    }
}

impl Panes {
    /// Bytes of all cells.
    pub fn bytes(&self) -> usize {
        let cells = self.cells.len() + self.gathered.rows.capacity() + self.totals.rows.capacity();
        cells * size_of::<Cell>()
    }
}

#[cfg(test)]
mod tests;
