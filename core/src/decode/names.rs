//! Which field of ours a name of theirs is: a table without collisions, made once.
//!
//! A log writes its records alike, so the table learns which name comes after which, and tries that
//! one first: it is compared as it stands in the record, quotation marks included.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::decode::reason::Reason;
use crate::json::Reader;

const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Names and what they stand for.
#[derive(Debug)]
pub struct Names<T> {
    seed: u64,
    mask: usize,
    slots: Vec<Option<Slot<T>>>,
    /// The slot of the name that came after that of each slot, and, in front, after none. Atomic for
    /// sharing only: it is a guess, and any is right.
    after: Vec<AtomicU32>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    ends: Ends,
    name: Box<str>,
    quoted: Quoted,
    value: T,
}

/// A name as JSON writes it, in one word; `length` is 0 where it does not fit, or needs escapes.
#[derive(Clone, Copy, Debug, Default)]
struct Quoted {
    word: u128,
    mask: u128,
    length: usize,
}

impl Quoted {
    fn new(name: &str) -> Self {
        let length = name.len() + 2;
        let is_plain = |byte| byte >= b' ' && byte != b'"' && byte != b'\\';
        if length > WHOLE_BYTES || !name.bytes().all(is_plain) {
            return Self::default();
        }
        let mut bytes = [0; WHOLE_BYTES];
        for (to, byte) in bytes.iter_mut().zip(format!("\"{name}\"").bytes()) {
            *to = byte;
        }
        Self {
            word: u128::from_le_bytes(bytes),
            mask: u128::MAX >> (8 * (WHOLE_BYTES - length)),
            length,
        }
    }

    /// How many bytes it takes where the record goes on with it.
    #[inline]
    fn at(&self, reader: &Reader) -> Option<usize> {
        let word = u128::from_le_bytes(*reader.rest().first_chunk()?);
        (self.length > 0 && word & self.mask == self.word).then_some(self.length)
    }
}

/// Where one is in the names of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last(usize);

/// The first bytes of a name, the last ones, and how many it has: all of it, up to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends(u64, u64, usize);

const WHOLE_BYTES: usize = 16;

impl Ends {
    #[inline]
    fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let (first, last) =
            if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
                (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
            } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
                (
                    u32::from_le_bytes(*first).into(),
                    u32::from_le_bytes(*last).into(),
                )
            } else {
                (
                    bytes
                        .iter()
                        .fold(0, |word, byte| word << 8 | u64::from(*byte)),
                    0,
                )
            };
        Self(first, last, bytes.len())
    }

    #[inline]
    fn place(self, name: &str, seed: u64, mask: usize) -> usize {
        let Self(first, last, length) = self;
        let first = first.wrapping_mul(seed) ^ length as u64;
        let mut hash = (first.rotate_left(32) ^ last).wrapping_mul(seed);
        if length > WHOLE_BYTES {
            for byte in name.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(seed);
            }
        }
        (hash >> 40) as usize & mask
    }
}

impl<T: Copy> Names<T> {
    /// A table of names, all different; of equal ones the first counts.
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, T)>) -> Self {
        let mut given: Vec<(&str, T)> = Vec::new();
        for (name, value) in names {
            if given.iter().all(|(other, _)| *other != name) {
                given.push((name, value));
            }
        }
        let mut size = (given.len() * 4).next_power_of_two();
        let mut seed = MIX;
        loop {
            // A larger table from time to time: some seed has no collision.
            for _ in 0..100 {
                if let Some(slots) = placed(&given, seed, size) {
                    return Self {
                        seed,
                        mask: size - 1,
                        slots,
                        after: (0..=size).map(|_| AtomicU32::new(0)).collect(),
                    };
                }
                seed = seed.wrapping_mul(MIX).wrapping_add(2);
            }
            size *= 2;
        }
    }

    /// What a name stands for.
    #[inline]
    pub fn get(&self, name: &str) -> Option<T> {
        self.find(name).map(|(_, value)| value)
    }

    #[inline]
    fn find(&self, name: &str) -> Option<(usize, T)> {
        let ends = Ends::of(name);
        let place = ends.place(name, self.seed, self.mask);
        let slot = self.slots.get(place)?.as_ref()?;
        let is_equal = slot.ends == ends && (ends.2 <= WHOLE_BYTES || *slot.name == *name);
        is_equal.then_some((place, slot.value))
    }

    /// Reads the name that comes next in a record; returns what it stands for.
    ///
    /// # Errors
    /// `Json` where no text comes next.
    #[inline]
    pub fn read(
        &self,
        last: &mut Last,
        reader: &mut Reader,
        unescaped: &mut String,
    ) -> Result<Option<T>, Reason> {
        reader.peek();
        let guess = match self.after.get(last.0) {
            Some(after) => after.load(Relaxed) as usize,
            None => 0,
        };
        if let Some(Some(slot)) = self.slots.get(guess)
            && let Some(length) = slot.quoted.at(reader)
        {
            *last = Last(guess + 1);
            reader.step(length);
            return Ok(Some(slot.value));
        }
        self.read_unexpected(last, reader, unescaped)
    }

    /// Reads a name that the table did not expect, and expects it from now on.
    #[inline(never)]
    fn read_unexpected(
        &self,
        last: &mut Last,
        reader: &mut Reader,
        unescaped: &mut String,
    ) -> Result<Option<T>, Reason> {
        let text = reader.text(unescaped)?;
        let Some((place, value)) = self.find(text.of(reader.record(), unescaped)) else {
            return Ok(None);
        };
        if let Some(after) = self.after.get(last.0) {
            after.store(place as u32, Relaxed);
        }
        *last = Last(place + 1);
        Ok(Some(value))
    }
}

fn placed<T: Copy>(given: &[(&str, T)], seed: u64, size: usize) -> Option<Vec<Option<Slot<T>>>> {
    let place = |name: &str| Ends::of(name).place(name, seed, size - 1);
    let mut is_taken = vec![false; size];
    for (name, _) in given {
        if std::mem::replace(is_taken.get_mut(place(name))?, true) {
            return None;
        }
    }
    let mut slots = vec![None; size];
    for &(name, value) in given {
        *slots.get_mut(place(name))? = Some(Slot {
            ends: Ends::of(name),
            name: name.into(),
            quoted: Quoted::new(name),
            value,
        });
    }
    Some(slots)
}

#[cfg(test)]
mod tests {
    use super::{Last, Names};
    use crate::json::Reader;

    #[test]
    fn names_are_read_in_any_order_and_however_they_are_written() {
        let long = "a_name_of_more_than_sixteen";
        let odd = "a\"b";
        let given = ["ts", "user_id", long, odd, ""];
        let table = Names::new(given.iter().copied().zip(0..));
        for record in [
            r#"{"ts":1,"user_id":2,"a_name_of_more_than_sixteen":3,"a\"b":4,"":5,"tsx":6}"#,
            r#"{"user_id":2,"ts":1,"ts":1}"#,
            r#"{ "user_id" : 2, "u\u0073er_id": 2 ,"ts" :1 }"#,
            r#"{"ts":1,"us":2,"user_id":3}"#,
        ] {
            for _ in 0..3 {
                let (mut last, mut unescaped) = (Last::default(), String::new());
                let (mut found, mut wanted) = (Vec::new(), Vec::new());
                let mut reader = Reader::new(record, 8);
                let read = reader.object(
                    &mut (&mut found, &mut unescaped),
                    |reader, (_, unescaped)| table.read(&mut last, reader, unescaped),
                    |reader, (found, _), value| {
                        found.push(value);
                        reader.skip(1)
                    },
                );
                read.unwrap();
                let mut reader = Reader::new(record, 8);
                let read = reader.object(
                    &mut (&mut wanted, &mut unescaped),
                    |reader, (_, unescaped)| reader.text(unescaped),
                    |reader, (wanted, unescaped), name| {
                        wanted.push(table.get(name.of(record, unescaped)));
                        reader.skip(1)
                    },
                );
                read.unwrap();
                assert_eq!(found, wanted, "{record}");
            }
        }
        for broken in [r#"{"ts""#, r#"{ts:1}"#, r#"{"ts:1}"#, r#"{"#] {
            let (mut last, mut unescaped) = (Last::default(), String::new());
            let mut reader = Reader::new(broken, 8);
            reader.expect(b'{').unwrap();
            let read = table.read(&mut last, &mut reader, &mut unescaped);
            assert_eq!(read.is_ok(), broken == r#"{"ts""#);
        }
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        let names: Vec<String> = (0..60)
            .map(|i| format!("{}{i}", "field_".repeat(i % 4)))
            .collect();
        let table = Names::new(names.iter().map(String::as_str).zip(0..));
        for (name, i) in names.iter().zip(0..) {
            assert_eq!(table.get(name), Some(i));
            assert_eq!(table.get(&format!("{name}x")), None);
        }
        let long = |middle: &str| format!("12345678{middle}12345678");
        let alike = [long("a"), long("b"), long("a much longer one")];
        let table = Names::new(alike.iter().map(String::as_str).zip(0..));
        assert_eq!(
            [0, 1, 2].map(|i: usize| table.get(&alike[i])),
            [0, 1, 2].map(Some)
        );
        assert_eq!(table.get(&long("c")), None);
        assert_eq!(table.get(""), None);
        assert_eq!(Names::<u8>::new([]).get("ts"), None);
    }
}
