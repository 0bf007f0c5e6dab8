//! Labels: values of the dimensions of some rollups, numbered for good.
//!
//! A combination of values has a label of each rollup, in which dimensions outside of it are `all`.
//! Each rollup has a bound of its own, beyond which what is new is `other` there, and nowhere else.
//!
//! A value may become `other` in its combinations; a label keeps the values that it was made with, so
//! that rows can be stored under its number for long. Readers know which values are kept.

use hashbrown::HashMap;

use crate::changes::Combination;
use crate::panes::dimensions::{Dimensions, UNKNOWN};

const UNSET: u32 = u32::MAX;
/// Stands for all values of a dimension.
const ALL: &str = "all";

/// One rollup: which of the dimensions it has, and how many labels.
#[derive(Debug)]
struct Rollup {
    has: Vec<bool>,
    count: usize,
}

impl Rollup {
    fn is_of(&self, label: &[String]) -> bool {
        let mut both = self.has.iter().zip(label);
        both.all(|(has, text)| *has == (text != ALL))
    }

    /// What stands for all labels beyond the bound.
    fn other(&self) -> Vec<String> {
        let text = |has: &bool| if *has { "other" } else { ALL };
        self.has.iter().map(|has| text(has).to_owned()).collect()
    }
}

/// The labels of one partition; beyond `limit` all further ones of a rollup are `other`.
#[derive(Debug)]
pub struct Labels {
    /// Those of the dimensions of any rollup, ascending.
    places: Vec<usize>,
    rollups: Vec<Rollup>,
    limit: usize,
    /// Values of each label, in the order of the dimensions.
    pub known: Vec<Vec<String>>,
    numbers: HashMap<Vec<String>, u32>,
    of_combination: Vec<u32>,
    changes: u64,
}

impl Labels {
    /// Those of one rollup. `places`: of its dimensions among all, ascending.
    pub fn new(places: Vec<usize>, limit: usize) -> Self {
        Self::of_rollups(&[places], limit)
    }

    /// Those of several rollups.
    pub fn of_rollups(rollups: &[Vec<usize>], limit: usize) -> Self {
        let mut places = rollups.concat();
        places.sort_unstable();
        places.dedup();
        let rollup = |own: &Vec<usize>| Rollup {
            has: places.iter().map(|place| own.contains(place)).collect(),
            count: 0,
        };
        Self {
            rollups: rollups.iter().map(rollup).collect(),
            places,
            limit,
            known: Vec::new(),
            numbers: HashMap::new(),
            of_combination: Vec::new(),
            changes: 0,
        }
    }

    /// Whether labels beyond the bound of a rollup became `other`; that label may be known
    /// otherwise, and then it may be that none did.
    pub fn is_full(&self) -> bool {
        self.rollups.iter().any(|of| {
            let has_other = of.has.contains(&true) && self.numbers.contains_key(&of.other());
            of.count + usize::from(has_other) > self.limit
        })
    }

    /// How many rollups they are of.
    pub fn rollups(&self) -> usize {
        self.rollups.len()
    }

    /// The label of a combination under the only rollup.
    pub fn of(&mut self, dimensions: &Dimensions, combination: Combination) -> u32 {
        self.of_rollup(dimensions, combination, 0)
    }

    /// The label of a combination under a rollup, by its place.
    pub fn of_rollup(
        &mut self,
        dimensions: &Dimensions,
        combination: Combination,
        rollup: usize,
    ) -> u32 {
        if self.changes != dimensions.changes {
            self.of_combination.clear();
            self.changes = dimensions.changes;
        }
        let first = combination as usize * self.rollups.len();
        if first >= self.of_combination.len() {
            let end = first + self.rollups.len();
            self.of_combination.resize(end, UNSET);
        }
        let at = first + rollup;
        if self.of_combination[at] == UNSET {
            let codes = dimensions.codes(combination);
            self.of_combination[at] = self.learn(dimensions, codes, rollup);
        }
        self.of_combination[at]
    }

    /// The label of unknown values under a rollup.
    pub fn unknown(&mut self, dimensions: &Dimensions, rollup: usize) -> u32 {
        self.learn(dimensions, &vec![UNKNOWN; dimensions.values.len()], rollup)
    }

    fn learn(&mut self, dimensions: &Dimensions, codes: &[u32], rollup: usize) -> u32 {
        let of = &self.rollups[rollup];
        let text = |(place, has): (&usize, &bool)| match has {
            true => dimensions.values[*place].texts[codes[*place] as usize].as_str(),
            false => ALL,
        };
        let own = self.places.iter().zip(&of.has);
        let mut label: Vec<String> = own.map(|x| text(x).to_owned()).collect();
        if of.count >= self.limit && !self.numbers.contains_key(&label) {
            label = of.other();
        }
        let next = self.known.len() as u32;
        let number = *self.numbers.entry_ref(&label).or_insert(next);
        if number == next {
            self.known.push(label);
            self.rollups[rollup].count += 1;
        }
        number
    }

    /// Takes over labels under the numbers that they have. Labels made under other dimensions may
    /// be equal under these: each keeps its number, and the first is given to what comes.
    pub fn load(&mut self, known: Vec<Vec<String>>) {
        for label in known {
            let next = self.known.len() as u32;
            if let Some(rollup) = self.rollups.iter_mut().find(|of| of.is_of(&label)) {
                rollup.count += 1;
            }
            self.numbers.entry_ref(&label).or_insert(next);
            self.known.push(label);
        }
    }

    /// The value of a dimension that a label has.
    pub fn text(&self, label: usize, dimension: usize) -> Option<&str> {
        let at = self.places.iter().position(|place| *place == dimension)?;
        let texts = self.known.get(label)?;
        texts.get(at).map(String::as_str)
    }

    /// For each label its value of a dimension: `other` where that is not kept any more, `unknown`
    /// where the label was made without the dimension. None where labels have no such dimension.
    pub fn values_of(&self, dimensions: &Dimensions, dimension: usize) -> Option<Vec<String>> {
        let at = self.places.iter().position(|place| *place == dimension)?;
        let of_label = |label: &Vec<String>| match label[at].as_str() {
            "" | "unknown" => "unknown".to_owned(),
            text if dimensions.values[dimension].is_kept(text) => text.to_owned(),
            _ => "other".to_owned(),
        };
        Some(self.known.iter().map(of_label).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKey;
    use crate::spec;

    /// Two dimensions, and labels of both together and of the second alone.
    fn both(limit: usize) -> (Dimensions, Labels) {
        let dimension = spec::Dimension {
            name: String::new(),
            values: Vec::new(),
            max_values: 100,
            is_sampled: false,
        };
        let dimensions = Dimensions::new(HashKey(1, 2), &[dimension.clone(), dimension]);
        let labels = Labels::of_rollups(&[vec![0, 1], vec![1]], limit);
        (dimensions, labels)
    }

    fn of(dimensions: &mut Dimensions, labels: &mut Labels, texts: [&str; 2]) -> [String; 2] {
        let combination = dimensions.combination_of(texts.into_iter(), |_, _| ());
        [0, 1].map(|rollup| {
            let label = labels.of_rollup(dimensions, combination, rollup);
            labels.known[label as usize].join(" ")
        })
    }

    #[test]
    fn each_rollup_has_labels_and_a_bound_of_its_own() {
        let (mut dimensions, mut labels) = both(2);
        let mut found = |texts| of(&mut dimensions, &mut labels, texts);
        assert_eq!(found(["a", "x"]), ["a x", "all x"]);
        assert_eq!(found(["b", "x"]), ["b x", "all x"]);
        assert_eq!(found(["c", ""]), ["other other", "all unknown"]);
        assert_eq!(found(["a", "x"]), ["a x", "all x"]);
        assert_eq!(found(["d", "y"]), ["other other", "all other"]);
        assert_eq!(labels.known.len(), 6);
    }

    #[test]
    fn loaded_labels_count_for_their_rollup() {
        let (mut dimensions, mut labels) = both(2);
        let known = ["p q", "all x", "r s"].map(|label| label.split(' ').map(String::from));
        labels.load(known.map(Iterator::collect).into());
        let mut found = |texts| of(&mut dimensions, &mut labels, texts);
        assert_eq!(found(["a", "x"]), ["other other", "all x"]);
        assert_eq!(found(["r", "s"]), ["r s", "all s"]);
        assert_eq!(found(["r", "t"]), ["other other", "all other"]);
    }
}
