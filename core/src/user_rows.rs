//! Which rows each user has: lists of row numbers in blocks of powers of two. Rows of a user are far
//! apart in memory; a list lets them be fetched together, a chain only one after another.

use hashbrown::HashTable;

use crate::hash::mix;

/// The row number itself where there is one, else where the list begins.
#[derive(Clone, Copy, Debug)]
struct List {
    start: u32,
    len: u32,
}

/// The rows of all users. `user_of` says whose a row is.
#[derive(Debug, Default)]
pub struct UserRows {
    lists: HashTable<List>,
    numbers: Vec<u32>,
    /// Starts of blocks of 2, 4, … numbers that nobody has.
    free: Vec<Vec<u32>>,
}

impl UserRows {
    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        self.lists.allocation_size() + (self.numbers.capacity() + free) * size_of::<u32>()
    }

    /// The rows of a user.
    pub fn of(&self, user: u64, user_of: impl Fn(u32) -> u64) -> &[u32] {
        let is_his = |list: &List| user_of(first(list, &self.numbers)) == user;
        let Some(list) = self.lists.find(spread(user), is_his) else {
            return &[];
        };
        if list.len == 1 {
            return std::slice::from_ref(&list.start);
        }
        &self.numbers[list.start as usize..][..list.len as usize]
    }

    /// A row of each user.
    pub fn firsts(&self) -> impl Iterator<Item = u32> {
        self.lists.iter().map(|list| first(list, &self.numbers))
    }

    /// Another row of a user.
    pub fn push(&mut self, user: u64, row: u32, user_of: impl Fn(u32) -> u64) {
        let Self {
            lists,
            numbers,
            free,
        } = self;
        let is_his = |list: &List| user_of(first(list, numbers)) == user;
        let Some(list) = lists.find_mut(spread(user), is_his) else {
            let hasher = |list: &List| spread(user_of(first(list, numbers)));
            lists.insert_unique(spread(user), List { start: row, len: 1 }, hasher);
            return;
        };
        if list.len.is_power_of_two() {
            let class = list.len.ilog2() as usize;
            let start = take_block(numbers, free, class);
            if class == 0 {
                numbers[start] = list.start;
            } else {
                let old = list.start as usize;
                numbers.copy_within(old..old + list.len as usize, start);
                free[class - 1].push(list.start);
            }
            list.start = start as u32;
        }
        numbers[(list.start + list.len) as usize] = row;
        list.len += 1;
    }
}

/// A block of 2^(class + 1) numbers.
fn take_block(numbers: &mut Vec<u32>, free: &mut Vec<Vec<u32>>, class: usize) -> usize {
    if free.len() <= class {
        free.resize_with(class + 1, Vec::new);
    }
    if let Some(start) = free[class].pop() {
        return start as usize;
    }
    let start = numbers.len();
    let end = start + (2 << class);
    if end > numbers.capacity() {
        numbers.reserve_exact(end - start + start / 8 + 1024);
    }
    numbers.resize(end, 0);
    start
}

fn first(list: &List, numbers: &[u32]) -> u32 {
    if list.len == 1 {
        list.start
    } else {
        numbers[list.start as usize]
    }
}

/// Users of a sample share their first bits, which tables look at.
pub fn spread(user: u64) -> u64 {
    mix(user, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_his_rows() {
        let mut rows = UserRows::default();
        let user_of = |row: u32| u64::from(row % 7) * u64::from(row % 3);
        for row in 0..1000 {
            rows.push(user_of(row), row, user_of);
        }
        for user in 0..13 {
            let expected: Vec<u32> = (0..1000).filter(|row| user_of(*row) == user).collect();
            assert_eq!(rows.of(user, user_of), expected);
        }
        let users: std::collections::BTreeSet<u64> = rows.firsts().map(user_of).collect();
        assert_eq!(users, (0..1000).map(user_of).collect());
    }
}
