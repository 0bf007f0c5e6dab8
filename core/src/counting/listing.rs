//! What shown items and lists add: counts of items, and how diverse lists are by themselves.

use serde::Deserialize;

use super::Counting;
use crate::changes::{ItemOf, ItemShown, Listed, Outcome, Slate};
use crate::counting::components::Component;
use crate::counting::item_counts::ItemCounts;
use crate::counting::named_sums::NamedSums;
use crate::counting::statistics::Places;
use crate::hash::NONE;
use crate::panes::Overflow;
use crate::spec::Spec;

/// Units of a diversity that is 1.
pub const DIVERSITY_UNIT: i64 = 1_000_000;

/// What is added up over lists that are cut off at `k`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ListSum {
    pub k: usize,
    pub quantity: Quantity,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Lists with two items that have a category, at least.
    Lists,
    /// Of these the share of the pairs whose categories differ.
    Diversity,
}

impl ListSum {
    /// What a list adds.
    pub fn amount(self, items: &[ItemOf]) -> i64 {
        let mut categories: Vec<u64> = items
            .iter()
            .take(self.k)
            .map(|item| item.category)
            .filter(|category| *category != NONE)
            .collect();
        let pairs = pairs_of(categories.len());
        if pairs == 0 {
            return 0;
        }
        match self.quantity {
            Quantity::Lists => 1,
            Quantity::Diversity => {
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

/// What items and lists are counted in.
#[derive(Debug)]
pub struct Listing {
    pub counts: Option<ItemCounts>,
    sums: Option<NamedSums<ListSum>>,
    /// Components of experiments, and of alert series, with their places.
    of_experiments: Vec<(usize, ListSum)>,
    of_series: Vec<(usize, ListSum)>,
    /// The place of the dimension that is the category of items.
    pub category: Option<usize>,
}

impl Listing {
    pub fn new(spec: &Spec) -> Result<Self, String> {
        let counts = spec.items.counts.as_ref();
        let places = Places(&spec.statistics);
        Ok(Self {
            counts: counts.map(|counts| {
                let has_lists = !spec.items.lists.is_empty();
                ItemCounts::new(counts, has_lists, &spec.since.items)
            }),
            sums: NamedSums::of(&spec.items.lists, "lists_by_user_group", &places)?,
            of_experiments: of_lists(&spec.experiments.components),
            of_series: of_lists(&spec.alerts.components),
            category: spec.items.category,
        })
    }
}

fn of_lists(components: &[Component]) -> Vec<(usize, ListSum)> {
    let found = components.iter().enumerate();
    let sums = found.filter_map(|(place, component)| match component {
        Component::Lists(sum) => Some((place, *sum)),
        _ => None,
    });
    sums.collect()
}

impl Counting {
    /// The category of what an event shows, where a dimension is the category; its values in order.
    pub fn category_of<'a>(&self, mut values: impl Iterator<Item = &'a str>) -> Option<u64> {
        let value = values.nth(self.listing.category?);
        Some(value.map_or(NONE, |text| self.dimensions.hash_of(text)))
    }

    /// An item is shown.
    pub fn item_shown(&mut self, change: &ItemShown) {
        if let Some(counts) = &mut self.listing.counts {
            counts.shown(&self.dimensions, change);
        }
    }

    /// An impression of an item is clicked, or is not any more.
    pub fn item_outcome(&mut self, item: u64, change: &Outcome) {
        if let Some(counts) = self.listing.counts.as_mut().filter(|_| change.clicked != 0) {
            counts.outcome(&self.dimensions, item, change);
        }
    }

    /// A list is shown as it is now, or is not any more.
    pub fn listed(&mut self, change: &Listed) {
        let Slate {
            event_ms,
            segment,
            user,
            sign,
        } = change.slate;
        if let Some(counts) = &mut self.listing.counts {
            counts.listed(&self.dimensions, change);
        }
        let amount = |sum: ListSum| sign * sum.amount(change.items);
        if let Some(sums) = &self.listing.sums {
            sums.add(&mut self.panes, (event_ms, segment, user), amount);
        }
        let at = (user, event_ms, segment);
        for i in 0..self.listing.of_experiments.len() {
            let (place, sum) = self.listing.of_experiments[i];
            self.add_to_experiments(place, at, amount(sum));
        }
        for i in 0..self.listing.of_series.len() {
            let (place, sum) = self.listing.of_series[i];
            self.add_to_series(place, at, amount(sum));
        }
    }

    /// Brings counts of items into their panes.
    pub(super) fn fold_items(&mut self, stream_ms: i64) -> Result<(), Overflow> {
        let counts = self.listing.counts.as_mut();
        counts.map_or(Ok(()), |counts| counts.fold(stream_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diversity_is_the_share_of_pairs_of_different_categories() {
        let item = |category| ItemOf { item: 1, category };
        let items = [item(5), item(NONE), item(7), item(5), item(9)];
        let of = |k, quantity| ListSum { k, quantity }.amount(&items);
        assert_eq!(of(2, Quantity::Lists), 0);
        assert_eq!(of(3, Quantity::Diversity), DIVERSITY_UNIT);
        assert_eq!(of(4, Quantity::Diversity), 666_667);
        assert_eq!(of(9, Quantity::Diversity), 833_333);
        assert_eq!(of(9, Quantity::Lists), 1);
    }
}
