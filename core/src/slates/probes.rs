//! What slates are compared with: the list that brute force gives, and the item that was held out
//! among sampled ones. Both belong to the slate: those of its earliest member whose event has them.

use crate::changes::Age;
use crate::hash::{HashMap, HashSet, NONE, mix};

/// What an event has of both, by items.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventProbes<'a> {
    /// What makes an item a (user, item) pair.
    pub apart: u64,
    /// Best first; empty without.
    pub reference: &'a [u64],
    /// `hash::NONE` without.
    pub held_out: u64,
}

impl EventProbes<'_> {
    pub fn is_empty(&self) -> bool {
        self.reference.is_empty() && self.held_out == NONE
    }
}

/// What a slate has of both, as (user, item) pairs, each with the age of the member that has it.
#[derive(Debug, Default)]
pub struct Probes {
    /// Best first, each once.
    reference: Option<(Age, Vec<u64>)>,
    held_out: Option<(Age, u64)>,
}

impl Probes {
    /// Another member has probes; whether any of them are the slate's now.
    pub fn take(&mut self, age: Age, probes: EventProbes) -> bool {
        let pair = |item: u64| mix(probes.apart, item);
        let has_reference = !probes.reference.is_empty() && is_earlier(age, &self.reference);
        if has_reference {
            let mut seen = HashSet::default();
            let once = probes.reference.iter().filter(|item| seen.insert(**item));
            let mut pairs: Vec<u64> = once.map(|item| pair(*item)).collect();
            pairs.shrink_to_fit();
            self.reference = Some((age, pairs));
        }
        let has_held_out = probes.held_out != NONE && is_earlier(age, &self.held_out);
        if has_held_out {
            self.held_out = Some((age, pair(probes.held_out)));
        }
        has_reference || has_held_out
    }

    /// A stored pair of a member; those of a list come in its order.
    pub fn load(&mut self, age: Age, is_held_out: bool, pair: u64) {
        if is_held_out {
            if is_earlier(age, &self.held_out) {
                self.held_out = Some((age, pair));
            }
            return;
        }
        match &mut self.reference {
            Some((of_age, pairs)) if *of_age == age => pairs.push(pair),
            reference if is_earlier(age, reference) => *reference = Some((age, vec![pair])),
            _ => {}
        }
    }

    /// Whether a pair is the held-out one, and the pair, of what comes from a member of this age.
    pub fn of_member(&self, age: Age) -> impl Iterator<Item = (bool, u64)> {
        let held_out = self.held_out.iter().filter(move |(from, _)| *from == age);
        let reference = self.reference.iter().filter(move |(from, _)| *from == age);
        let pairs = reference.flat_map(|(_, pairs)| pairs);
        held_out
            .map(|(_, pair)| (true, *pair))
            .chain(pairs.map(|pair| (false, *pair)))
    }

    /// How many items brute force gives.
    pub fn listed(&self) -> usize {
        self.reference.as_ref().map_or(0, |(_, pairs)| pairs.len())
    }
}

fn is_earlier<T>(age: Age, than: &Option<(Age, T)>) -> bool {
    than.as_ref().is_none_or(|(known, _)| age < *known)
}

/// Finds what the probes of a slate say of its members.
#[derive(Default)]
pub struct Lookup {
    /// Pair → its rank in the brute-force list, from 1.
    ranks: HashMap<u16>,
    held_out: u64,
}

impl Lookup {
    pub fn new(probes: Option<&Probes>) -> Self {
        let Some(probes) = probes else {
            return Self::default();
        };
        let reference = probes.reference.iter().flat_map(|(_, pairs)| pairs);
        Self {
            ranks: reference.copied().zip(1..).collect(),
            held_out: probes.held_out.map_or(NONE, |(_, pair)| pair),
        }
    }

    /// Items that brute force gives; 0: there is no list.
    pub fn reference_size(&self) -> usize {
        self.ranks.len()
    }

    pub fn has_held_out(&self) -> bool {
        self.held_out != NONE
    }

    /// The rank of a pair in the brute-force list; 0: it is not in it.
    pub fn rank(&self, pair: u64) -> u16 {
        self.ranks.get(&pair).copied().unwrap_or(0)
    }

    pub fn is_held_out(&self, pair: u64) -> bool {
        self.has_held_out() && self.held_out == pair
    }
}

/// Where the probes of a slate come from: one row for each member whose probes became the slate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbedBy {
    pub slate: u32,
    pub key: u64,
    pub opened_ms: i64,
    pub age: Age,
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: Age = (5, 9, 0);
    const LATE: Age = (6, 1, 0);

    fn probes(reference: &[u64], held_out: u64) -> EventProbes<'_> {
        EventProbes {
            apart: 3,
            reference,
            held_out,
        }
    }

    #[test]
    fn the_earliest_member_that_has_them_counts_in_any_order() {
        let mut found = Probes::default();
        assert!(found.take(LATE, probes(&[7, 8, 7, 9], NONE)));
        assert!(!found.take((7, 0, 0), probes(&[1], NONE)));
        assert!(found.take(EARLY, probes(&[], 8)));
        let lookup = Lookup::new(Some(&found));
        assert_eq!(lookup.reference_size(), 3);
        assert_eq!(
            [7, 8, 9, 1].map(|item| lookup.rank(mix(3, item))),
            [1, 2, 3, 0]
        );
        assert!(lookup.is_held_out(mix(3, 8)) && !lookup.is_held_out(mix(3, 7)));
        assert!(found.take(EARLY, probes(&[9], 8)));
        assert_eq!(Lookup::new(Some(&found)).rank(mix(3, 9)), 1);
    }

    #[test]
    fn what_is_stored_is_loaded_in_any_order() {
        let mut early = Probes::default();
        early.take(EARLY, probes(&[4, 5], NONE));
        let mut late = Probes::default();
        late.take(LATE, probes(&[6], 7));
        let stored = |age, from: &Probes, into: &mut Probes| {
            for (is_held_out, pair) in from.of_member(age) {
                into.load(age, is_held_out, pair);
            }
        };
        for order in [[EARLY, LATE], [LATE, EARLY]] {
            let mut found = Probes::default();
            for age in order {
                let from = if age == EARLY { &early } else { &late };
                stored(age, from, &mut found);
            }
            let lookup = Lookup::new(Some(&found));
            assert_eq!(lookup.rank(mix(3, 5)), 2);
            assert_eq!(lookup.rank(mix(3, 6)), 0);
            assert!(lookup.is_held_out(mix(3, 7)));
            assert_eq!(found.of_member(LATE).count(), 1);
        }
    }
}
