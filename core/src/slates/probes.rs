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
