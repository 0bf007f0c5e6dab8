//! Rows that leave: few of them one by one, or so many that all others are placed anew.

use hashbrown::HashTable;

use super::{END, GROWTH, Head, Row, UserDayKey, UserDays, hash_of};
use crate::users::rows::spread;

/// Up to one row in so many is taken out by itself.
const FEW: usize = 8;

impl UserDays {
    /// Forget rows by time that are before this one. Few are taken out one by one.
    pub fn remove_before(&mut self, at: i64) {
        let gone = self.rows.iter().filter(|row| row.key.at < at).count();
        if gone == 0 {
            return;
        }
        if FEW * gone > self.rows.len() {
            return self.keep(|key| key.at >= at);
        }
        for number in (0..self.rows.len()).rev() {
            if self.rows[number].key.at < at {
                self.remove(number);
            }
        }
    }

    /// Forget a row; the last one takes its place.
    fn remove(&mut self, number: usize) {
        self.unlink(number);
        self.versions.left(self.rows[number].epoch);
        let last = self.rows.len() - 1;
        if number != last {
            self.renumber(last, number);
        }
        self.rows.swap_remove(number);
        let first = last * self.width;
        self.amounts.copy_within(first.., number * self.width);
        self.amounts.truncate(first);
    }

    fn unlink(&mut self, number: usize) {
        let Self {
            rows,
            by_key,
            heads,
            ..
        } = self;
        let Row {
            key, before, next, ..
        } = rows[number];
        let is_it = |row: &u32| *row as usize == number;
        if let Ok(entry) = by_key.find_entry(hash_of(&key), is_it) {
            entry.remove();
        }
        let is_his = |head: &Head| rows[head.row as usize].key.user == key.user;
        if let Ok(mut head) = heads.find_entry(spread(key.user), is_his) {
            head.get_mut().rows -= 1;
            if before == END && next == END {
                head.remove();
            } else if before == END {
                head.get_mut().row = next;
            }
        }
        if before != END {
            rows[before as usize].next = next;
        }
        if next != END {
            rows[next as usize].before = before;
        }
    }

    /// A row gets the number of one that is not linked any more.
    fn renumber(&mut self, number: usize, new: usize) {
        let Self {
            rows,
            by_key,
            heads,
            versions,
            ..
        } = self;
        let (row, new) = (rows[number], new as u32);
        let is_it = |row: &u32| *row as usize == number;
        if let Some(place) = by_key.find_mut(hash_of(&row.key), is_it) {
            *place = new;
        }
        let is_first = |head: &Head| head.row as usize == number;
        if let Some(head) = heads.find_mut(spread(row.key.user), is_first) {
            head.row = new;
        }
        if row.before != END {
            rows[row.before as usize].next = new;
        }
        if row.next != END {
            rows[row.next as usize].before = new;
        }
        versions.moved(new, row.epoch);
    }

    /// Keep some rows.
    pub fn keep(&mut self, is_wanted: impl Fn(&UserDayKey) -> bool) {
        let width = self.width;
        let mut kept = 0;
        for number in 0..self.rows.len() {
            if is_wanted(&self.rows[number].key) {
                let row = Row {
                    before: END,
                    next: END,
                    ..self.rows[number]
                };
                self.rows[kept] = row;
                let first = number * width;
                self.amounts.copy_within(first..first + width, kept * width);
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        self.amounts.truncate(kept * width);
        let room = kept + kept / GROWTH;
        self.rows.shrink_to(room);
        self.amounts.shrink_to(room * width);
        self.by_key = HashTable::with_capacity(kept);
        self.heads = HashTable::new();
        self.most_rows = 0;
        for number in 0..kept {
            self.link(number);
        }
        self.versions
            .renumber(self.rows.iter().map(|row| row.epoch));
    }
}
