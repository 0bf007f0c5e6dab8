//! What an event says of policies, item by item.

use super::Field;
use crate::decode::event::Item;
use crate::spec::records::Policies;
use crate::weights::{Propensities, WeighedItem};

/// What is read, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Of the item that is not in a list, of the element that is read, and of each of a list.
    single: Propensities,
    element: Propensities,
    pub items: Vec<Propensities>,
    pub weights: Vec<WeighedItem>,
}

impl Said {
    /// Forgets all but the memory.
    pub fn clear(&mut self) {
        (self.single, self.element) = Default::default();
        self.items.clear();
        self.weights.clear();
    }

    /// Takes the value of a field.
    pub fn set(&mut self, field: Field, is_element: bool, value: Option<f64>) {
        let said = match is_element {
            true => &mut self.element,
            false => &mut self.single,
        };
        let place = match field {
            Field::Target(i) => &mut said.targets[i],
            Field::Estimate(i) => &mut said.estimates[i],
            Field::RewardEstimate => &mut said.reward_estimate,
            _ => &mut said.shown,
        };
        *place = value.unwrap_or(f64::NAN);
    }

    /// An element of a list ends.
    pub fn end_element(&mut self) {
        self.items.push(std::mem::take(&mut self.element));
    }

    /// Weighs the items of a list, or the single one, once their positions are known.
    pub fn weigh(&mut self, policies: &Policies, items: &[Item], is_list: bool) {
        if !is_list {
            self.items.clear();
            self.items.push(self.single);
        }
        let pairs = items.iter().zip(&self.items);
        let weighed = pairs.map(|(item, said)| policies.weigh(said, item.position));
        self.weights.extend(weighed);
    }
}
