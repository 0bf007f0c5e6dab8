//! Open impressions: shown items that feedback can still join.

use crate::attribution::pair_log::{Link, NOT_YET, OfPair, PairLog};
use crate::changes::{Age, Combination};
use crate::log::{Log, NO_ROW};
use crate::slates::NO_SLATE;

/// One shown item: 64 bytes, and 5 to 12 in the table that finds it.
#[derive(Clone, Copy, Debug)]
pub struct Impression {
    pub pair: u64,
    /// Who was shown it: of one pair not always the same, where joins have ids of their own.
    pub user: u64,
    /// NaN: none.
    pub score: f64,
    pub event_ms: i64,
    pub offset: i64,
    /// Place among the items of its event, and flags.
    index_and_flags: u16,
    /// From 1; 0: missing.
    pub position: u16,
    pub combination: Combination,
    /// The slate that it is shown in; `NO_SLATE`: none.
    pub slate: u32,
    /// The member of the slate before it.
    pub prev_in_slate: u32,
    /// What is retained of it since it has feedback; `NO_ROW`: nothing.
    pub retained: u32,
    prev_of_pair: u32,
}

const NEWEST: u16 = 1 << 15;
const MEMBER: u16 = 1 << 14;
const INDEX: u16 = MEMBER - 1;

impl Impression {
    /// How many of one record can be told apart.
    pub const MOST_OF_RECORD: usize = INDEX as usize;

    /// An impression that is linked to nothing yet.
    pub fn new(pair: u64, user: u64, (event_ms, offset, index): Age) -> Self {
        Self {
            pair,
            user,
            score: f64::NAN,
            event_ms,
            offset,
            index_and_flags: index & INDEX,
            position: 0,
            combination: 0,
            slate: NO_SLATE,
            prev_in_slate: NO_ROW,
            retained: NO_ROW,
            prev_of_pair: NO_ROW,
        }
    }

    pub fn index(&self) -> u16 {
        self.index_and_flags & INDEX
    }

    /// Whether it is graded with its slate: those beyond the bound of a slate are not.
    pub fn is_member(&self) -> bool {
        self.index_and_flags & MEMBER != 0
    }

    pub fn set_member(&mut self, is_member: bool) {
        self.index_and_flags &= !MEMBER;
        self.index_and_flags |= if is_member { MEMBER } else { 0 };
    }
}

impl OfPair for Impression {
    fn pair(&self) -> u64 {
        self.pair
    }
    fn age(&self) -> Age {
        (self.event_ms, self.offset, self.index())
    }
    fn group(&self) -> u64 {
        u64::from(self.slate)
    }
    fn first_ms(&self) -> i64 {
        NOT_YET // what is retained of it says when
    }
    fn link(&self) -> Link {
        Link {
            prev: self.prev_of_pair,
            is_newest_so_far: self.index_and_flags & NEWEST != 0,
        }
    }
    fn set_link(&mut self, link: Link) {
        self.prev_of_pair = link.prev;
        self.index_and_flags &= !NEWEST;
        self.index_and_flags |= if link.is_newest_so_far { NEWEST } else { 0 };
    }
}

/// The open impressions of one partition.
pub type Impressions = PairLog<Impression>;

const _: () = assert!(size_of::<Impression>() == 64);

/// What some metrics need of impressions, kept only where it is asked for: two logs whose rows have the numbers of the impressions.
#[derive(Debug)]
pub struct SideLog<T> {
    pub is_kept: bool,
    /// Of open impressions, and of retained ones.
    pub open: Log<T>,
    pub retained: Log<T>,
}

impl<T: Copy + Default> SideLog<T> {
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
            let mut logs = SideLog::new(is_kept);
            logs.load_open(7);
            logs.retain(0);
            logs.retain(1); // there is none: as the default
            assert_eq!(logs.open.len(), usize::from(is_kept));
            let retained: Vec<i32> = logs.retained.iter().map(|(_, row)| *row).collect();
            assert_eq!(retained, if is_kept { vec![7, 0] } else { vec![] });
        }
    }
}
