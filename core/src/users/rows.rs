//! Rows of users, those of one user together: they are found and read without going back and forth
//! in memory. A user's rows stand in a block of a power of two; a user of many has an index, too.
//!
//! A row has a key (pair, combination), the epoch of its last change, and times.

use hashbrown::{HashMap, HashTable};

use crate::changes::Combination;
use crate::hash::mix;

/// Words of a row before its times: the pair in two, the combination, the epoch.
const HEAD: usize = 4;
/// Rows of a user beyond which they are indexed: fewer are looked at one after another.
const SCANNED: usize = 64;

/// Where the rows of a user are.
#[derive(Clone, Copy, Debug)]
struct User {
    user: u64,
    /// The first row of the block, and how many are used.
    start: u32,
    len: u32,
    /// The newest epoch of the rows.
    epoch: u32,
}

/// One row, as it stands in memory.
#[derive(Clone, Copy, Debug)]
pub struct UserRow<'a>(&'a [u32]);

impl<'a> UserRow<'a> {
    pub fn pair(&self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    pub fn combination(&self) -> Combination {
        self.0[2]
    }

    pub fn epoch(&self) -> u32 {
        self.0[3]
    }

    pub fn times(&self) -> &'a [u32] {
        &self.0[HEAD..]
    }

    fn is_of(&self, pair: u64, combination: Combination) -> bool {
        self.pair() == pair && self.combination() == combination
    }
}

/// The rows of all users.
#[derive(Debug)]
pub struct UserRows {
    /// Words of a row.
    width: usize,
    users: HashTable<User>,
    words: Vec<u32>,
    /// Starts of blocks of 1, 2, 4, … rows that nobody has.
    free: Vec<Vec<u32>>,
    /// Of users with many rows: places among them, by key.
    indexes: HashMap<u64, HashTable<u32>>,
    len: usize,
}

impl UserRows {
    /// `times`: of each row.
    pub fn new(times: usize) -> Self {
        Self {
            width: HEAD + times,
            users: HashTable::new(),
            words: Vec::new(),
            free: Vec::new(),
            indexes: HashMap::new(),
            len: 0,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory.
    pub fn nbytes(&self) -> usize {
        let free: usize = self.free.iter().map(Vec::capacity).sum();
        let indexes: usize = self.indexes.values().map(HashTable::allocation_size).sum();
        self.users.allocation_size() + indexes + (self.words.capacity() + free) * size_of::<u32>()
    }

    // Reading

    fn user(&self, user: u64) -> Option<&User> {
        self.users.find(spread(user), |found| found.user == user)
    }

    fn rows_of(&self, user: &User) -> impl Iterator<Item = UserRow<'_>> {
        let (first, end) = (user.start as usize, (user.start + user.len) as usize);
        self.words[first * self.width..end * self.width]
            .chunks_exact(self.width)
            .map(UserRow)
    }

    /// How many rows a user has.
    pub fn count(&self, user: u64) -> usize {
        self.user(user).map_or(0, |found| found.len as usize)
    }

    /// The rows of a user.
    pub fn of(&self, user: u64) -> impl Iterator<Item = UserRow<'_>> {
        self.user(user)
            .into_iter()
            .flat_map(|user| self.rows_of(user))
    }

    /// Every user with the newest epoch of his rows.
    pub fn users(&self) -> impl Iterator<Item = (u64, u32)> {
        self.users.iter().map(|user| (user.user, user.epoch))
    }

    /// Every row with its user.
    pub fn iter(&self) -> impl Iterator<Item = (u64, UserRow<'_>)> {
        let users = self.users.iter();
        users.flat_map(|user| self.rows_of(user).map(|row| (user.user, row)))
    }

    /// Where the row of a key is.
    pub fn find(&self, user: u64, pair: u64, combination: Combination) -> Option<usize> {
        let found = self.user(user)?;
        let start = found.start as usize;
        if found.len as usize > SCANNED {
            let index = self.indexes.get(&user)?;
            let is_it = |place: &u32| self.row(start + *place as usize).is_of(pair, combination);
            let place = index.find(hash_of(pair, combination), is_it)?;
            return Some(start + *place as usize);
        }
        let place = self
            .rows_of(found)
            .position(|row| row.is_of(pair, combination))?;
        Some(start + place)
    }

    /// A row by its place.
    pub fn row(&self, at: usize) -> UserRow<'_> {
        UserRow(&self.words[at * self.width..][..self.width])
    }

    // Changing

    /// Sets a time of a row, in an epoch.
    pub fn set(&mut self, user: u64, at: usize, column: usize, time: u32, epoch: u32) {
        let row = &mut self.words[at * self.width..][..self.width];
        (row[3], row[HEAD + column]) = (epoch, time);
        if let Some(found) = self
            .users
            .find_mut(spread(user), |found| found.user == user)
        {
            found.epoch = found.epoch.max(epoch);
        }
    }

    /// Lets every time be another one.
    pub fn change_times(&mut self, change: impl Fn(u32) -> u32) {
        for row in self.words.chunks_exact_mut(self.width) {
            for time in &mut row[HEAD..] {
                *time = change(*time);
            }
        }
    }

    /// Adds a row of a new key; returns its place.
    pub fn push(&mut self, user: u64, pair: u64, combination: Combination, epoch: u32) -> usize {
        let known = self.users.find(spread(user), |found| found.user == user);
        let (old, len) = known.map_or((0, 0), |found| (found.start, found.len));
        let mut start = old;
        if len == 0 || len.is_power_of_two() {
            start = self.take_block(len);
            self.move_block(old, start, len);
        }
        let at = (start + len) as usize;
        let row = &mut self.words[at * self.width..][..self.width];
        row.fill(0);
        (row[0], row[1], row[2], row[3]) = (pair as u32, (pair >> 32) as u32, combination, epoch);
        let now = User {
            user,
            start,
            len: len + 1,
            epoch,
        };
        self.len += 1;
        match self
            .users
            .find_mut(spread(user), |found| found.user == user)
        {
            Some(found) => *found = now,
            None => {
                self.users
                    .insert_unique(spread(user), now, |found| spread(found.user));
            }
        }
        self.index(&now);
        at
    }

    /// Makes the last row of a user with many known by its key.
    fn index(&mut self, user: &User) {
        let len = user.len as usize;
        if len <= SCANNED {
            return;
        }
        let mut index = self.indexes.remove(&user.user).unwrap_or_default();
        let first = if index.is_empty() { 0 } else { len - 1 };
        let hash = |place: &u32| {
            let row = self.row(user.start as usize + *place as usize);
            hash_of(row.pair(), row.combination())
        };
        for place in first as u32..len as u32 {
            index.insert_unique(hash(&place), place, hash);
        }
        self.indexes.insert(user.user, index);
    }

    /// A block with room for one row more than `len`, which is 0 or fills a block.
    fn take_block(&mut self, len: u32) -> u32 {
        let class = if len == 0 {
            0
        } else {
            len.ilog2() as usize + 1
        };
        if let Some(start) = self.free.get_mut(class).and_then(Vec::pop) {
            return start;
        }
        let first = self.words.len();
        let end = first + (self.width << class);
        if end > self.words.capacity() {
            self.words.reserve_exact(end - first + first / 8 + 1024);
        }
        self.words.resize(end, 0);
        (first / self.width) as u32
    }

    /// Copies the rows of a full block, which is free then.
    fn move_block(&mut self, from: u32, to: u32, len: u32) {
        if len == 0 {
            return;
        }
        let (from_word, count) = (from as usize * self.width, len as usize * self.width);
        self.words
            .copy_within(from_word..from_word + count, to as usize * self.width);
        let class = len.ilog2() as usize;
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push(from);
    }

    /// Keeps the rows that are wanted, in memory of their own.
    pub fn keep(&mut self, is_wanted: impl Fn(u64, &UserRow) -> bool) {
        let mut kept = Self::new(self.width - HEAD);
        for user in &self.users {
            for row in self.rows_of(user).filter(|row| is_wanted(user.user, row)) {
                let at = kept.push(user.user, row.pair(), row.combination(), row.epoch());
                kept.words[at * kept.width..][..kept.width].copy_from_slice(row.0);
                if let Some(found) = kept
                    .users
                    .find_mut(spread(user.user), |x| x.user == user.user)
                {
                    found.epoch = user.epoch;
                }
            }
        }
        *self = kept;
    }
}

fn hash_of(pair: u64, combination: Combination) -> u64 {
    mix(pair, u64::from(combination) + 1)
}

/// Users of a sample share their first bits, which tables look at.
pub fn spread(user: u64) -> u64 {
    mix(user, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> UserRows {
        let mut rows = UserRows::new(2);
        for n in 0..1000u64 {
            let at = rows.push(n % 7 * (n % 3), n, 5, n as u32);
            rows.set(n % 7 * (n % 3), at, 1, n as u32 + 1, n as u32);
        }
        rows
    }

    fn expected(user: u64, is_wanted: impl Fn(u64) -> bool) -> Vec<u64> {
        let of_user = |n: &u64| n % 7 * (n % 3) == user && is_wanted(*n);
        (0..1000).filter(of_user).collect()
    }

    #[test]
    fn every_user_has_his_rows() {
        let rows = filled();
        assert_eq!((rows.len(), rows.iter().count()), (1000, 1000));
        for user in 0..13 {
            let found: Vec<u64> = rows.of(user).map(|row| row.pair()).collect();
            assert_eq!(found, expected(user, |_| true));
            assert_eq!(rows.count(user), found.len());
            for pair in found {
                let row = rows.row(rows.find(user, pair, 5).unwrap());
                assert_eq!(
                    (row.pair(), row.combination(), row.epoch()),
                    (pair, 5, pair as u32)
                );
                assert_eq!(row.times(), [0, pair as u32 + 1]);
            }
            assert_eq!(rows.find(user, 5000, 5), None);
            assert_eq!(rows.find(user, 0, 6), None);
        }
    }

    #[test]
    fn rows_that_are_kept_stay_as_they_were() {
        let mut rows = filled();
        rows.keep(|_, row| row.pair() % 5 == 0);
        for user in 0..13 {
            let found: Vec<u64> = rows.of(user).map(|row| row.pair()).collect();
            assert_eq!(found, expected(user, |n| n % 5 == 0));
            for pair in found {
                assert_eq!(
                    rows.row(rows.find(user, pair, 5).unwrap()).times()[1],
                    pair as u32 + 1
                );
            }
        }
        assert_eq!(rows.len(), 200);
    }
}
