//! Cells: the integers of a block that something was added to, side by side.
//!
//! Of most cells few places are filled: a bit for each says which, and their integers stand one
//! after another in a slot of a power of two.

use super::rings::{BLOCK, Cell};
use crate::panes::addition::{Overflow, add_up};

/// Integers of a line of a processor's cache.
const LINE: usize = 8;
/// Slots of 1, 2, 4, … integers.
const SIZES: usize = BLOCK.ilog2() as usize + 1;

/// One cell: its filled places as bits, and its slot among those of its size.
#[derive(Clone, Copy, Debug)]
struct Head {
    filled: u64,
    slot: u32,
    size: u8,
}

/// The slots of one size.
#[derive(Debug, Default)]
struct Slots {
    values: Vec<i64>,
    free: Vec<u32>,
}

impl Slots {
    fn take(&mut self, size: u8) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = (self.values.len() >> size) as u32;
            self.values.resize(self.values.len() + (1 << size), 0);
            slot
        })
    }

    fn get(&self, head: &Head) -> &[i64] {
        let first = (head.slot as usize) << head.size;
        &self.values[first..first + head.filled.count_ones() as usize]
    }

    fn get_mut(&mut self, head: &Head) -> &mut [i64] {
        let first = (head.slot as usize) << head.size;
        &mut self.values[first..first + head.filled.count_ones() as usize]
    }
}

/// Many cells, by number.
#[derive(Debug, Default)]
pub struct Cells {
    heads: Vec<Head>,
    free: Vec<u32>,
    slots: [Slots; SIZES],
}

impl Cells {
    /// The number of a cell in which nothing is filled.
    pub fn make(&mut self) -> u32 {
        let head = Head {
            filled: 0,
            slot: self.slots[0].take(0),
            size: 0,
        };
        match self.free.pop() {
            Some(free) => {
                self.heads[free as usize] = head;
                free
            }
            None => {
                self.heads.push(head);
                self.heads.len() as u32 - 1
            }
        }
    }

    /// Forgets a cell, whose number is used again.
    pub fn leave(&mut self, cell: u32) {
        let head = self.heads[cell as usize];
        self.slots[head.size as usize].free.push(head.slot);
        self.free.push(cell);
    }

    /// Fetches a cell: see `Partition::warm_up`.
    #[inline]
    pub fn warm_up(&self, cell: u32) -> u64 {
        let head = &self.heads[cell as usize];
        let sums = self.slots[head.size as usize].get(head);
        let lines = sums.iter().step_by(LINE);
        lines.fold(head.filled, |warm, sum| warm ^ *sum as u64)
    }

    /// Adds the amounts at some places.
    pub fn add(&mut self, cell: u32, amounts: &Cell, bits: u64) -> Result<(), Overflow> {
        if bits & !self.heads[cell as usize].filled != 0 {
            self.fill(cell, bits);
        }
        let head = self.heads[cell as usize];
        let sums = self.slots[head.size as usize].get_mut(&head);
        for place in places(bits) {
            let before = head.filled & ((1 << place) - 1);
            let at = before.count_ones() as usize;
            add_up(&mut sums[at..=at], &amounts[place..=place])?;
        }
        Ok(())
    }

    /// Makes room for more places, which are 0.
    fn fill(&mut self, cell: u32, bits: u64) {
        let old = self.heads[cell as usize];
        let filled = old.filled | bits;
        let size = filled.count_ones().next_power_of_two().ilog2() as u8;
        let mut held = [0; BLOCK];
        let count = old.filled.count_ones() as usize;
        held[..count].copy_from_slice(self.slots[old.size as usize].get(&old));
        let slot = if size == old.size {
            old.slot
        } else {
            self.slots[old.size as usize].free.push(old.slot);
            self.slots[size as usize].take(size)
        };
        let head = Head { filled, slot, size };
        let mut held = held[..count].iter();
        for (place, sum) in places(filled).zip(self.slots[size as usize].get_mut(&head)) {
            let is_held = old.filled >> place & 1 == 1;
            *sum = if is_held {
                held.next().copied().unwrap_or(0)
            } else {
                0
            };
        }
        self.heads[cell as usize] = head;
    }

    /// The filled places of a cell, and their sums.
    pub fn get(&self, cell: u32) -> impl Iterator<Item = (usize, i64)> {
        let head = self.heads[cell as usize];
        let sums = self.slots[head.size as usize].get(&head).iter().copied();
        places(head.filled).zip(sums)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.heads.len() - self.free.len()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let slots = self.slots.iter();
        let slots = slots.map(|slots| slots.values.capacity() * 8 + slots.free.capacity() * 4);
        self.heads.capacity() * size_of::<Head>() + self.free.capacity() * 4 + slots.sum::<usize>()
    }
}

/// The places of bits, ascending.
pub(super) fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < BLOCK).then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panes::MAX_SUM;

    #[test]
    fn sums_stand_where_they_were_added() {
        let mut cells = Cells::default();
        let amounts: Cell = std::array::from_fn(|place| place as i64 + 1);
        let (a, b) = (cells.make(), cells.make());
        let mut expected = [0; BLOCK];
        for bits in [1 << 63, 0b101, 0b111, u64::MAX >> 30, 1 << 40 | 1, u64::MAX] {
            cells.add(a, &amounts, bits).unwrap();
            cells.add(b, &amounts, 1 << 7).unwrap();
            for place in places(bits) {
                expected[place] += amounts[place];
            }
            let mut sums = [0; BLOCK];
            for (place, sum) in cells.get(a) {
                sums[place] = sum;
            }
            assert_eq!(sums, expected);
        }
        assert_eq!(cells.get(b).collect::<Vec<_>>(), [(7, 48)]);
        cells.leave(a);
        let again = cells.make();
        assert_eq!((again, cells.get(again).count(), cells.len()), (a, 0, 2));
    }

    #[test]
    fn no_sum_wraps() {
        let mut cells = Cells::default();
        let cell = cells.make();
        let mut amounts = [0; BLOCK];
        amounts[3] = MAX_SUM;
        assert_eq!(cells.add(cell, &amounts, 8), Ok(()));
        amounts[3] = 1;
        assert_eq!(cells.add(cell, &amounts, 8), Err(Overflow));
    }
}
