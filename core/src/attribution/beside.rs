//! What some metrics need of impressions, kept apart from them and only where it is asked for.

use crate::log::Log;

/// Two logs whose rows have the numbers of the impressions.
#[derive(Debug)]
pub struct Beside<T> {
    pub is_kept: bool,
    /// Of open impressions, and of retained ones.
    pub open: Log<T>,
    pub retained: Log<T>,
}

impl<T: Copy + Default> Beside<T> {
    pub fn new(is_kept: bool) -> Self {
        Self {
            is_kept,
            open: Log::default(),
            retained: Log::default(),
        }
    }

    /// An open impression is retained.
    pub(super) fn retain(&mut self, open: u32) {
        let row = self.open.get(open).copied().unwrap_or_default();
        self.load_retained(row);
    }

    /// A new or stored open impression, and a retained one.
    pub fn load_open(&mut self, row: T) {
        if self.is_kept {
            self.open.push(row);
        }
    }

    pub fn load_retained(&mut self, row: T) {
        if self.is_kept {
            self.retained.push(row);
        }
    }

    pub fn bytes(&self) -> usize {
        self.open.bytes() + self.retained.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_only_where_they_are_asked_for() {
        for is_kept in [true, false] {
            let mut logs = Beside::new(is_kept);
            logs.load_open(7);
            logs.retain(0);
            logs.retain(1); // there is none: as the default
            assert_eq!(logs.open.len(), usize::from(is_kept));
            let retained: Vec<i32> = logs.retained.iter().map(|(_, row)| *row).collect();
            assert_eq!(retained, if is_kept { vec![7, 0] } else { vec![] });
        }
    }
}
