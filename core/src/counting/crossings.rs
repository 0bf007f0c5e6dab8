//! Crossings: one metric by all dimensions together, for its window and the one before.
//!
//! Their product is too large to be kept: rows are bounded, and beyond the bound those users stay
//! whose hashes begin with enough zero bits, which is a uniform sample of the users. A row is of the
//! users of one group who have the same leading zero bits, so that sums of groups vary as users do,
//! and half of the users can leave.

use std::hash::{Hash, Hasher};

use crate::changes::UserAt;
use crate::counting::statistics::{GROUPS, group_of};
use crate::hash::mix;
use crate::panes::dimensions::Dimensions;
use crate::panes::item_rows::{KeyedCounts, PLACE_BITS, SAMPLE_PLACE};
use crate::panes::pane_map::PaneMap;
use crate::panes::rings::{Rings, number_of};
use crate::panes::{MAX_SUM, Overflow, PaneColumns, PaneStore};
use crate::spec::CrossingsSpec;

/// Hashes of users have other bits for groups below these.
const MAX_BITS: u32 = 20;
/// Places in a row: the group of users and their leading zero bits, the sums, and the codes of all
/// dimensions. What may be 0 and says something is stored as 1 more.
const WHO: usize = 0;
const SUMS: usize = 1;
const CODES: usize = 4;

/// The hash of a row's users and codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

impl Key {
    fn of(who: i64, codes: impl Iterator<Item = u32>) -> Self {
        Self(codes.fold(mix(1, who as u64), |hash, code| mix(hash, u64::from(code))))
    }
}

/// Group and leading zero bits of a user, as rows have them.
fn who_of(user: u64) -> i64 {
    let bits = user.leading_zeros().min(MAX_BITS);
    i64::from(bits * GROUPS + group_of(user)) + 1
}

fn is_in_sample(row: &[i64], bits: u32) -> bool {
    (row[WHO] - 1) / i64::from(GROUPS) >= i64::from(bits)
}

fn counts(row: &[i64]) -> bool {
    row[SUMS..CODES].iter().any(|sum| *sum != 0)
}

/// One pane: of its users those in the sample of so many bits.
#[derive(Debug)]
struct Pane {
    rows: KeyedCounts<Key>,
    bits: u32,
}

/// The crossings of one metric in one partition.
#[derive(Debug)]
pub struct Crossings {
    spec: CrossingsSpec,
    width: usize,
    rings: Rings,
    panes: PaneMap<Pane>,
    /// Sample bits that new panes begin with.
    bits: u32,
    has_overflowed: bool,
}

impl Crossings {
    /// `dimensions`: how many there are.
    pub fn new(spec: &CrossingsSpec, dimensions: usize) -> Self {
        Self {
            width: CODES + dimensions,
            rings: Rings::new(&[spec.ring]),
            panes: PaneMap::default(),
            bits: 0,
            has_overflowed: false,
            spec: spec.clone(),
        }
    }

    /// Adds an amount of one sum.
    pub fn add(&mut self, dimensions: &Dimensions, sum: usize, at: UserAt, amount: i64) {
        let mut parts = self.spec.ratio.parts(sum).peekable();
        let pane = at.event_ms.div_euclid(self.spec.ring.pane_ms);
        if parts.peek().is_none() || self.rings.is_gone(1, pane) {
            return;
        }
        let who = who_of(at.user);
        let (bits, width) = (self.bits, self.width);
        let found = self.panes.find_or(number_of(1, pane), || Pane {
            rows: KeyedCounts::new(width),
            bits,
        });
        if !is_in_sample(&[who], found.pane().bits) {
            return;
        }
        let codes = dimensions.codes(at.combination)[..width - CODES]
            .iter()
            .copied();
        let row = found.change().rows.row(Key::of(who, codes.clone()));
        if row[WHO] == 0 {
            row[WHO] = who;
            for (place, code) in row[CODES..].iter_mut().zip(codes) {
                *place = i64::from(code) + 1;
            }
        }
        for part in parts {
            let held = &mut row[SUMS + part];
            *held += amount;
            self.has_overflowed |= held.unsigned_abs() > MAX_SUM.unsigned_abs();
        }
    }

    /// Forgets old panes, and users beyond the bound.
    pub fn fold(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        if self.has_overflowed {
            return Err(Overflow);
        }
        if self.rings.advance(stream_ms) {
            self.panes.expire(&self.rings, |_| ());
            if self.len() < self.spec.limit / 8 {
                self.bits = self.bits.saturating_sub(1);
            }
        }
        while self.len() > self.spec.limit && self.bits < MAX_BITS {
            self.bits += 1;
            let bits = self.bits;
            self.panes.each(|found| {
                if found.pane().bits < bits {
                    let pane = found.change();
                    pane.bits = bits;
                    pane.rows
                        .retain(|_, row| is_in_sample(row, bits) && counts(row));
                }
            });
        }
        Ok(())
    }

    /// Rows of all panes.
    fn len(&self) -> usize {
        self.panes
            .iter()
            .map(|(_, pane)| pane.rows.places.len())
            .sum()
    }

    pub fn bytes(&self) -> usize {
        self.panes.iter().map(|(_, pane)| pane.rows.bytes()).sum()
    }
}

impl PaneStore for Crossings {
    fn take_changed(&mut self) -> Vec<u64> {
        self.panes.take_changed()
    }

    fn live(&self) -> Vec<u64> {
        self.panes.live()
    }

    fn dump(&self, numbers: &[u64]) -> PaneColumns {
        let mut columns = PaneColumns::default();
        for number in numbers {
            let Some(pane) = self.panes.get(*number) else {
                continue;
            };
            let mut push = |code: u64, value| columns.push(*number, code as i64, value);
            push(SAMPLE_PLACE, i64::from(pane.bits));
            let rows = pane.rows.iter().map(|(_, row)| row);
            let mut rows: Vec<&[i64]> = rows.filter(|row| counts(row)).collect();
            rows.sort_unstable();
            for (number, row) in (1..).zip(rows) {
                for (place, value) in (0..).zip(row) {
                    push(number << PLACE_BITS | place, *value);
                }
            }
        }
        columns
    }

    fn load(&mut self, number: u64, codes: &[i64], values: &[i64]) -> Result<(), Overflow> {
        let mut pane = Pane {
            rows: KeyedCounts::new(self.width),
            bits: 0,
        };
        let stored: Vec<(u64, u64, i64)> = codes
            .iter()
            .zip(values)
            .map(|(code, value)| {
                let code = *code as u64;
                (code >> PLACE_BITS, code & SAMPLE_PLACE, *value)
            })
            .collect();
        for row in stored.chunk_by(|a, b| a.0 == b.0) {
            let mut held = vec![0; self.width];
            for (_, place, value) in row {
                match held.get_mut(*place as usize) {
                    Some(held) => *held = *value,
                    None => pane.bits = *value as u32,
                }
            }
            if held[WHO] != 0 {
                let codes = held[CODES..].iter().map(|code| (*code - 1) as u32);
                let key = Key::of(held[WHO], codes);
                pane.rows.row(key).copy_from_slice(&held);
            }
        }
        self.bits = self.bits.max(pane.bits);
        self.panes.insert(number, pane);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKey;
    use crate::spec;

    fn crossings(limit: usize) -> Crossings {
        let ring = spec::Ring {
            pane_ms: 1_000,
            panes: 3,
        };
        let ratio = spec::RatioSums {
            above: 4,
            below: 7,
            high: None,
            below_high: None,
        };
        let spec = CrossingsSpec { ratio, ring, limit };
        Crossings::new(&spec, 2)
    }

    fn dimensions() -> Dimensions {
        let dimension = spec::Dimension {
            name: String::new(),
            max_values: 100,
            is_sampled: false,
            values: Vec::new(),
        };
        Dimensions::new(HashKey(1, 2), &[dimension.clone(), dimension])
    }

    /// Σ of a place over all rows.
    fn total(crossings: &Crossings, place: u64) -> i64 {
        let found = crossings.dump(&crossings.live());
        let of = found.code.iter().zip(&found.value);
        let of = of.filter(|(code, _)| **code as u64 & SAMPLE_PLACE == place);
        of.map(|(_, value)| value).sum()
    }

    #[test]
    fn rows_are_of_values_and_users_and_leave_with_their_panes() {
        let (mut dimensions, mut crossings) = (dimensions(), crossings(1_000));
        let mut of = |texts: [&str; 2]| dimensions.combination_of(texts.into_iter(), |_, _| ());
        let places = [of(["a", "x"]), of(["a", "y"])];
        for (sum, place, event_ms, amount) in [
            (7, 0, 500, 2),
            (7, 1, 500, 3),
            (4, 1, 500, 1),
            (5, 1, 500, 9),
            (7, 0, 1_500, 1),
            (7, 0, 1_500, -1),
        ] {
            let at = UserAt::new(u64::MAX, event_ms, places[place]);
            crossings.add(&dimensions, sum, at, amount);
        }
        crossings.fold(1_500).unwrap();
        assert_eq!((total(&crossings, 1), total(&crossings, 2)), (1, 5));
        let stored = crossings.dump(&crossings.live());
        let mut loaded = self::crossings(1_000);
        loaded
            .load(number_of(1, 0), &stored.code, &stored.value)
            .unwrap();
        loaded.add(&dimensions, 4, UserAt::new(u64::MAX, 500, places[0]), 1);
        crossings.add(&dimensions, 4, UserAt::new(u64::MAX, 500, places[0]), 1);
        assert_eq!(
            loaded.dump(&loaded.live()),
            crossings.dump(&[number_of(1, 0)])
        );
        crossings.fold(3_000).unwrap();
        crossings.add(&dimensions, 7, UserAt::new(1, 500, places[0]), 1);
        assert_eq!(total(&crossings, 2), 0);
    }

    #[test]
    fn beyond_the_bound_a_sample_of_the_users_stays() {
        let (mut dimensions, mut crossings) = (dimensions(), crossings(400));
        let place = dimensions.combination_of(["a", "x"].into_iter(), |_, _| ());
        let key = HashKey(3, 4);
        let users: Vec<u64> = (0..4_000u32).map(|i| key.of(&i.to_le_bytes())).collect();
        for (i, user) in users.iter().enumerate() {
            let text = (i % 50).to_string();
            let at = dimensions.combination_of(["a", &text].into_iter(), |_, _| ());
            crossings.add(&dimensions, 7, UserAt::new(*user, 500, at), 1);
            crossings.fold(500).unwrap();
        }
        assert!(crossings.len() <= 400 && crossings.bits > 0);
        let bits = crossings.bits;
        let sampled = users.iter().filter(|user| user.leading_zeros() >= bits);
        assert_eq!(total(&crossings, 2), sampled.count() as i64);
        crossings.add(&dimensions, 7, UserAt::new(u64::MAX, 500, place), 5);
        assert_eq!(total(&crossings, 127), i64::from(bits));
        crossings.fold(9_000).unwrap();
        assert_eq!(crossings.bits, bits - 1);
    }
}
