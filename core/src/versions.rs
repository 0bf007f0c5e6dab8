//! Epochs of rows: between which seals a row last changed, and which rows changed lately.

/// The epoch of a row that is new.
pub const NEW: u32 = u32::MAX;

/// Counts epochs, and lists the rows that changed in the last two.
#[derive(Debug, Default)]
pub struct Versions {
    epoch: u32,
    open: Vec<u32>,
    /// Rows that changed in the epoch before.
    sealed: Vec<u32>,
}

impl Versions {
    /// A row changes now.
    pub fn mark(&mut self, row: u32, epoch: &mut u32) {
        if *epoch != self.epoch {
            *epoch = self.epoch;
            self.open.push(row);
        }
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
        for (row, epoch) in (0..).zip(epochs) {
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

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        (self.open.capacity() + self.sealed.capacity()) * size_of::<u32>()
    }
}

/// How many rows with these epochs last changed from each of `firsts` (ascending) on, before the
/// next.
pub fn live(firsts: &[u32], epochs: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut counts = vec![0; firsts.len()];
    for epoch in epochs {
        let after = firsts.partition_point(|first| *first <= epoch);
        if let Some(count) = after.checked_sub(1).and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    counts
}
