//! Which field of ours a name of theirs is: a table without collisions, made once.

const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Names and what they stand for.
#[derive(Debug)]
pub struct Names<T> {
    seed: u64,
    mask: usize,
    slots: Vec<Option<Slot<T>>>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    ends: Ends,
    name: Box<str>,
    value: T,
}

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
        let ends = Ends::of(name);
        let slot = self
            .slots
            .get(ends.place(name, self.seed, self.mask))?
            .as_ref()?;
        let is_equal = slot.ends == ends && (ends.2 <= WHOLE_BYTES || *slot.name == *name);
        is_equal.then_some(slot.value)
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
            value,
        });
    }
    Some(slots)
}

#[cfg(test)]
mod tests {
    use super::Names;

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
