//! Rows in the order of their numbers: appended at the end, dropped from the front.
//!
//! They stand in chunks, so that growth copies nothing and what is dropped is freed at once.
//! A row is referred to by the low 32 bits of its number: far fewer rows are live at a time.

use std::collections::VecDeque;

const CHUNK_ROWS: usize = 4096;

/// Refers to no row.
pub const NO_ROW: u32 = u32::MAX;

#[derive(Debug)]
pub struct Log<T> {
    chunks: VecDeque<Vec<T>>,
    /// Number of the first row of the first chunk, of the first live row, and of the next one.
    base: u64,
    first: u64,
    next: u64,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self {
            chunks: VecDeque::new(),
            base: 0,
            first: 0,
            next: 0,
        }
    }
}

impl<T> Log<T> {
    pub fn len(&self) -> usize {
        (self.next - self.first) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.next == self.first
    }

    /// Number of the first row that is here.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number that the next row gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds a row; returns what refers to it.
    pub fn push(&mut self, row: T) -> u32 {
        if self.next as u32 == NO_ROW {
            self.next += 1; // it refers to no row: once in 2^32 rows a chunk has a hole at its end
        }
        if (self.next - self.base) as usize / CHUNK_ROWS >= self.chunks.len() {
            self.chunks.push_back(Vec::with_capacity(CHUNK_ROWS));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push(row);
        }
        self.next += 1;
        (self.next - 1) as u32
    }

    /// The number of a row that is here.
    fn number(&self, row: u32) -> Option<u64> {
        let back = u64::from((self.next as u32).wrapping_sub(row));
        (row != NO_ROW && back > 0 && back <= self.next - self.first).then(|| self.next - back)
    }

    fn place(&self, number: u64) -> (usize, usize) {
        let at = (number - self.base) as usize;
        (at / CHUNK_ROWS, at % CHUNK_ROWS)
    }

    /// A row, unless it was dropped.
    #[inline]
    pub fn get(&self, row: u32) -> Option<&T> {
        let (chunk, at) = self.place(self.number(row)?);
        self.chunks.get(chunk)?.get(at)
    }

    #[inline]
    pub fn get_mut(&mut self, row: u32) -> Option<&mut T> {
        let (chunk, at) = self.place(self.number(row)?);
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    /// The first row and what refers to it.
    pub fn front(&self) -> Option<(u32, &T)> {
        let row = self.first as u32;
        self.get(row).map(|found| (row, found))
    }

    /// Drops the first row.
    pub fn drop_front(&mut self) {
        if self.is_empty() {
            return;
        }
        self.first += 1;
        if self.first as u32 == NO_ROW && self.first < self.next {
            self.first += 1;
        }
        while self.first - self.base >= CHUNK_ROWS as u64 && !self.chunks.is_empty() {
            self.chunks.pop_front();
            self.base += CHUNK_ROWS as u64;
        }
    }

    /// References to the rows with numbers in [first, end) that are here, in order.
    pub fn range(&self, first: u64, end: u64) -> impl Iterator<Item = u32> + use<T> {
        (first.max(self.first)..end.min(self.next)).map(|number| number as u32)
    }

    /// The rows that are here with what refers to them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.range(self.first, self.next)
            .filter_map(|row| Some((row, self.get(row)?)))
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK_ROWS * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_until_they_are_dropped() {
        let mut log = Log::<u64>::default();
        let rows: Vec<u32> = (0..10_000u64).map(|i| log.push(i)).collect();
        for _ in 0..5_000 {
            log.drop_front();
        }
        assert_eq!(log.len(), 5_000);
        assert_eq!(log.get(rows[4_999]), None);
        assert_eq!(log.get(rows[5_000]), Some(&5_000));
        assert_eq!(log.get(rows[9_999]), Some(&9_999));
        assert_eq!(log.get(NO_ROW), None);
        assert_eq!(
            log.iter().map(|(_, x)| *x).sum::<u64>(),
            (5_000..10_000u64).sum::<u64>()
        );
        assert_eq!(log.range(0, 5_002).count(), 2);
    }

    #[test]
    fn an_empty_log_begins_again() {
        let mut log = Log::<u64>::default();
        for i in 0..4096 {
            log.push(i);
        }
        while !log.is_empty() {
            log.drop_front();
        }
        let row = log.push(7);
        assert_eq!(log.get(row), Some(&7));
        assert_eq!(log.front(), Some((row, &7)));
    }

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let start = (1 << 32) - CHUNK_ROWS as u64;
        let mut log = Log {
            chunks: VecDeque::new(),
            base: start,
            first: start,
            next: start,
        };
        let rows: Vec<u32> = (0..10_000u64).map(|i| log.push(i)).collect();
        assert!(!rows.contains(&NO_ROW));
        assert!(
            rows.iter()
                .enumerate()
                .all(|(i, row)| log.get(*row) == Some(&(i as u64)))
        );
        for i in 0..9_999 {
            assert_eq!(log.front().map(|(_, x)| *x), Some(i));
            log.drop_front();
        }
        assert_eq!(log.front().map(|(_, x)| *x), Some(9_999));
    }
}
