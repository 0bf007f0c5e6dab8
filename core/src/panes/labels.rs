//! Labels: values of some dimensions, numbered for good.
//!
//! A value may become `other` in its combinations; a label keeps the values that it was made with, so
//! that rows can be stored under its number for long. Readers know which values are kept.

use hashbrown::HashMap;

use crate::changes::Combination;
use crate::panes::dimensions::Dimensions;

const UNSET: u32 = u32::MAX;

/// The labels of one partition under some dimensions; beyond `limit` all further ones are `other`.
#[derive(Debug)]
pub struct Labels {
    places: Vec<usize>,
    limit: usize,
    /// Values of each label, in the order of the dimensions.
    pub known: Vec<Vec<String>>,
    numbers: HashMap<Vec<String>, u32>,
    of_combination: Vec<u32>,
    changes: u64,
}

impl Labels {
    /// `places`: those of the dimensions among all, ascending.
    pub fn new(places: Vec<usize>, limit: usize) -> Self {
        let (known, numbers) = (Vec::new(), HashMap::new());
        Self {
            places,
            limit,
            known,
            numbers,
            of_combination: Vec::new(),
            changes: 0,
        }
    }

    /// The label of a combination.
    pub fn of(&mut self, dimensions: &Dimensions, combination: Combination) -> u32 {
        if self.changes != dimensions.changes {
            self.of_combination.clear();
            self.changes = dimensions.changes;
        }
        let at = combination as usize;
        if at >= self.of_combination.len() {
            self.of_combination.resize(at + 1, UNSET);
        }
        if self.of_combination[at] == UNSET {
            let codes = dimensions.codes(combination);
            let text =
                |place: &usize| dimensions.values[*place].texts[codes[*place] as usize].clone();
            let mut label: Vec<String> = self.places.iter().map(text).collect();
            if self.known.len() >= self.limit && !self.numbers.contains_key(&label) {
                label.fill("other".to_owned());
            }
            self.of_combination[at] = self.number(label);
        }
        self.of_combination[at]
    }

    fn number(&mut self, label: Vec<String>) -> u32 {
        let next = self.known.len() as u32;
        let number = *self.numbers.entry_ref(&label).or_insert(next);
        if number == next {
            self.known.push(label);
        }
        number
    }

    /// Takes over labels under the numbers that they have. Labels made under other dimensions may
    /// be equal under these: each keeps its number, and the first is given to what comes.
    pub fn load(&mut self, known: Vec<Vec<String>>) {
        for label in known {
            let next = self.known.len() as u32;
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
