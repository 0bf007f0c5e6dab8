//! What shown items and lists add: counts of items, and how diverse lists are by themselves.

use crate::changes::ItemOf;
use crate::counting::item_counts::ItemCounts;
use crate::hash::NONE;
use crate::spec::Spec;

/// Units of a diversity that is 1.
pub const DIVERSITY_UNIT: i64 = 1_000_000;

/// What is added up over lists that are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListAmount {
    /// Lists with two items that have a category, at least.
    Lists,
    /// Of these the share of the pairs whose categories differ.
    Diversity,
}

impl ListAmount {
    /// What the first `k` items of a list add.
    pub fn amount(self, k: usize, items: &[ItemOf]) -> i64 {
        let mut categories: Vec<u64> = items
            .iter()
            .take(k)
            .map(|item| item.category)
            .filter(|category| *category != NONE)
            .collect();
        let pairs = pairs_of(categories.len());
        if pairs == 0 {
            return 0;
        }
        match self {
            Self::Lists => 1,
            Self::Diversity => {
                categories.sort_unstable();
                let alike = categories.chunk_by(|a, b| a == b);
                let equal: i64 = alike.map(|some| pairs_of(some.len())).sum();
                ((pairs - equal) * DIVERSITY_UNIT + pairs / 2) / pairs
            }
        }
    }
}

fn pairs_of(n: usize) -> i64 {
    (n * n.saturating_sub(1) / 2) as i64
}

/// What items are counted in.
#[derive(Debug)]
pub struct Listing {
    pub counts: Option<ItemCounts>,
    /// The place of the dimension that is the category of items.
    pub category: Option<usize>,
}

impl Listing {
    pub fn new(spec: &Spec) -> Self {
        let counts = spec.items.counts.as_ref();
        Self {
            counts: counts
                .map(|counts| ItemCounts::new(counts, spec.items.has_lists, &spec.since.items)),
            category: spec.items.category,
        }
    }
}
