//! Which field of ours a name of theirs is: a table without collisions, made once.

const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

type Slots<T> = Vec<Option<(Box<str>, T)>>;

/// Names and what they stand for.
#[derive(Debug)]
pub struct Names<T> {
    seed: u64,
    mask: usize,
    longest: usize,
    slots: Slots<T>,
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
        let longest = given.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut size = (given.len() * 4).next_power_of_two();
        let mut seed = MIX;
        loop {
            // A larger table from time to time: some seed has no collision.
            for _ in 0..100 {
                if let Some(slots) = placed(&given, seed, size) {
                    return Self {
                        seed,
                        mask: size - 1,
                        longest,
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
        if name.len() > self.longest {
            return None;
        }
        match self.slots.get(place(self.seed, name, self.mask)) {
            Some(Some((known, value))) if **known == *name => Some(*value),
            _ => None,
        }
    }
}

fn placed<T: Copy>(given: &[(&str, T)], seed: u64, size: usize) -> Option<Slots<T>> {
    let mut slots: Slots<T> = (0..size).map(|_| None).collect();
    for &(name, value) in given {
        let slot = slots.get_mut(place(seed, name, size - 1))?;
        if slot.is_some() {
            return None;
        }
        *slot = Some((name.into(), value));
    }
    Some(slots)
}

#[inline]
fn place(seed: u64, name: &str, mask: usize) -> usize {
    let mut hash = seed ^ name.len() as u64;
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
        hash ^= hash >> 29;
    }
    let last = rest
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    hash = (hash ^ last).wrapping_mul(seed | 1);
    (hash >> 32) as usize & mask
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
        assert_eq!(table.get(""), None);
        assert_eq!(Names::<u8>::new([]).get("ts"), None);
    }
}
