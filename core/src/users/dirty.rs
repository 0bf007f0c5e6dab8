//! Users whose contribution to some segments is not in the sums: for each the combinations that he
//! was touched in, whose segments these are, or all.

use hashbrown::HashTable;

use crate::changes::Combination;
use crate::users::rows::spread;

/// Combinations of a user beyond which all his segments are taken out at once.
const MAX_COMBINATIONS: usize = 16;
/// Entries for which room is kept.
const KEPT_ENTRIES: usize = 1 << 16;
const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    user: u64,
    /// None: all.
    combination: Option<Combination>,
    /// The entry of the same user before it.
    before: u32,
}

/// The dirty users of one partition.
#[derive(Debug, Default)]
pub struct Dirty {
    entries: Vec<Entry>,
    /// The last entry of each user.
    last: HashTable<u32>,
}

impl Dirty {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.last.allocation_size()
    }

    /// Combinations of a user, the newest first; None: all.
    fn of(&self, user: u64) -> impl Iterator<Item = Option<Combination>> {
        let is_his = |at: &u32| self.entries[*at as usize].user == user;
        let mut next = self.last.find(spread(user), is_his).copied();
        std::iter::from_fn(move || {
            let entry = &self.entries[next? as usize];
            next = (entry.before != END).then_some(entry.before);
            Some(entry.combination)
        })
    }

    /// Whether a user is dirty in a combination.
    pub fn has(&self, user: u64, combination: Option<Combination>) -> bool {
        self.of(user)
            .any(|other| other.is_none() || other == combination)
    }

    /// The combinations in which a user is dirty; false where he is so in all.
    pub fn read(&self, user: u64, combinations: &mut Vec<Combination>) -> bool {
        combinations.clear();
        self.of(user)
            .all(|found| found.map(|each| combinations.push(each)).is_some())
    }

    /// Lets a user be dirty in one combination more, or in all. Returns which: in all where he has
    /// too many to look through.
    pub fn insert(&mut self, user: u64, combination: Option<Combination>) -> Option<Combination> {
        let is_few = self.of(user).take(MAX_COMBINATIONS).count() < MAX_COMBINATIONS;
        let combination = combination.filter(|_| is_few);
        let Self { entries, last } = self;
        let at = entries.len() as u32;
        let is_his = |at: &u32| entries[*at as usize].user == user;
        let before = last
            .find_mut(spread(user), is_his)
            .map(|last| std::mem::replace(last, at));
        entries.push(Entry {
            user,
            combination,
            before: before.unwrap_or(END),
        });
        if before.is_none() {
            last.insert_unique(spread(user), at, |at| spread(entries[*at as usize].user));
        }
        combination
    }

    /// Every dirty user.
    pub fn users(&self) -> impl Iterator<Item = u64> {
        self.last.iter().map(|at| self.entries[*at as usize].user)
    }

    /// User and combination of every entry that is not of all.
    pub fn combinations(&self) -> impl Iterator<Item = (u64, Combination)> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((entry.user, entry.combination?)))
    }

    /// Lets nobody be dirty.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.entries.shrink_to(KEPT_ENTRIES);
        self.last.clear();
        self.last.shrink_to(KEPT_ENTRIES, |_| 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_dirty_in_what_he_was_touched_in_and_in_all_after_many() {
        let mut dirty = Dirty::default();
        for (user, combination) in [(7, 3), (8, 3), (7, 4)] {
            assert_eq!(dirty.insert(user, Some(combination)), Some(combination));
        }
        assert!(dirty.has(7, Some(4)) && !dirty.has(8, Some(4)) && !dirty.has(7, None));
        let mut found = Vec::new();
        assert!(dirty.read(7, &mut found));
        assert_eq!(found, [4, 3]);
        for combination in 10..10 + MAX_COMBINATIONS as u32 - 1 {
            assert_eq!(dirty.insert(8, Some(combination)), Some(combination));
        }
        assert_eq!(dirty.insert(8, Some(99)), None);
        assert!(dirty.has(8, Some(1)) && !dirty.read(8, &mut found));
        let mut users: Vec<u64> = dirty.users().collect();
        users.sort_unstable();
        assert_eq!(users, [7, 8]);
        dirty.clear();
        assert!(dirty.is_empty() && !dirty.has(7, Some(3)));
    }
}
