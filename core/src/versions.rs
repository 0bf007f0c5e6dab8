//! Epochs of rows: between which seals a row last changed, and which rows changed lately.

use std::collections::BTreeMap;

/// The epoch of a row that is new.
pub const NEW: u32 = u32::MAX;

/// Counts epochs, and lists the rows that changed in the last two.
#[derive(Debug, Default)]
pub struct Versions {
    epoch: u32,
    open: Vec<u32>,
    /// Rows that changed in the epoch before.
    sealed: Vec<u32>,
    /// How many rows last changed in each epoch; none is 0.
    counts: BTreeMap<u32, u64>,
}

impl Versions {
    /// A row changes now.
    pub fn mark(&mut self, row: u32, epoch: &mut u32) {
        if *epoch != self.epoch {
            self.left(*epoch);
            *epoch = self.epoch;
            *self.counts.entry(self.epoch).or_default() += 1;
            self.open.push(row);
        }
    }

    /// A row with this epoch leaves.
    pub fn left(&mut self, epoch: u32) {
        if let Some(count) = self.counts.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&epoch);
            }
        }
    }

    /// The epoch that changes belong to.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Changes from now on belong to another epoch, whose number is returned.
    pub fn seal(&mut self) -> u32 {
        if !self.open.is_empty() {
            self.sealed = std::mem::take(&mut self.open);
            self.sealed.shrink_to_fit();
            self.epoch += 1;
        }
        self.epoch
    }

    /// Nothing changed since the last seal, and the epoch is another one, further on.
    pub fn advance(&mut self, epoch: u32) {
        if epoch > self.epoch {
            debug_assert!(self.open.is_empty());
            self.sealed.clear();
            self.epoch = epoch;
        }
    }

    /// A row has another number now. Lists may have numbers twice, or of rows that left.
    pub fn moved(&mut self, row: u32, epoch: u32) {
        if epoch == self.epoch {
            self.open.push(row);
        } else if epoch.wrapping_add(1) == self.epoch {
            self.sealed.push(row);
        }
    }

    /// Rows were left out, so that all numbers are others: begins the lists anew.
    pub fn renumber(&mut self, epochs: impl Iterator<Item = u32>) {
        self.open.clear();
        self.sealed.clear();
        self.counts.clear();
        for (row, epoch) in (0..).zip(epochs) {
            *self.counts.entry(epoch).or_default() += 1;
            self.moved(row, epoch);
        }
    }

    /// The rows that last changed in the epochs [first, end), of so many, whose epoch `of` says.
    /// Looks at all rows only where `first` is before the last two epochs.
    pub fn changed(&self, first: u32, end: u32, rows: usize, of: impl Fn(u32) -> u32) -> Vec<u32> {
        let is_in = |row: &u32| (first..end).contains(&of(*row));
        if first.saturating_add(1) < self.epoch {
            return (0..rows as u32).filter(is_in).collect();
        }
        let recent = self.sealed.iter().chain(&self.open).copied();
        let recent = recent.filter(|row| (*row as usize) < rows);
        let mut found: Vec<u32> = recent.filter(is_in).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How many rows last changed from each of these epochs (ascending) on, before the next.
    pub fn live(&self, firsts: &[u32]) -> Vec<u64> {
        let mut live = vec![0; firsts.len()];
        for (epoch, count) in &self.counts {
            let after = firsts.partition_point(|first| first <= epoch);
            if let Some(sum) = after.checked_sub(1).and_then(|at| live.get_mut(at)) {
                *sum += count;
            }
        }
        live
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let lists = (self.open.capacity() + self.sealed.capacity()) * size_of::<u32>();
        lists + 2 * self.counts.len() * size_of::<(u32, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_epochs_have_the_rows_that_last_changed_in_them() {
        let (mut versions, mut epochs) = (Versions::default(), [NEW; 4]);
        for (at, rows) in [vec![0, 1, 2], vec![1, 3], vec![], vec![2]]
            .iter()
            .enumerate()
        {
            for row in rows {
                versions.mark(*row, &mut epochs[*row as usize]);
            }
            assert_eq!(versions.seal(), [1, 2, 2, 3][at]);
        }
        let changed = |a, b| versions.changed(a, b, 4, |row| epochs[row as usize]);
        assert_eq!(changed(0, 1), [0]);
        assert_eq!(changed(1, 2), [1, 3]);
        assert_eq!(changed(2, 3), [2]);
        assert_eq!(changed(0, 9), [0, 1, 2, 3]);
        assert_eq!(versions.live(&[0, 1, 2]), [1, 2, 1]);
        assert_eq!(versions.live(&[1, 1, 5]), [0, 3, 0]);
        versions.left(epochs[3]);
        versions.moved(1, epochs[1]);
        assert_eq!(versions.live(&[0]), [3]);
    }
}
