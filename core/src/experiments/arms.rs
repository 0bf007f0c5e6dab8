//! Arms: which values of a dimension experiments compare, and the arm of each label.

use crate::panes::dimensions::Dimensions;
use crate::panes::labels::Labels;

/// The arms of a dimension; several experiments may have the same.
#[derive(Debug)]
pub struct Arms {
    pub dimension: usize,
    /// The control first.
    pub values: Vec<String>,
    /// Which of them are kept, not folded into `other`.
    is_kept: Vec<bool>,
    of_label: Vec<u8>,
}

impl Arms {
    /// An error where there are more than fit a byte.
    pub fn new(dimension: usize, values: Vec<String>) -> Result<Self, String> {
        if values.len() >= usize::from(u8::MAX) {
            return Err(format!("an experiment has {} arms", values.len()));
        }
        Ok(Self {
            dimension,
            is_kept: vec![false; values.len()],
            values,
            of_label: Vec::new(),
        })
    }

    /// Look at which values are kept. Returns whether a known label has another arm now.
    pub fn look(&mut self, dimensions: &Dimensions, labels: &Labels) -> bool {
        let values = dimensions.values.get(self.dimension);
        let mut is_other = false;
        for (text, is_kept) in self.values.iter().zip(&mut self.is_kept) {
            let now = values.is_some_and(|values| values.is_kept(text));
            is_other |= std::mem::replace(is_kept, now) != now;
        }
        if !is_other {
            return false;
        }
        let before = std::mem::take(&mut self.of_label);
        self.learn(labels);
        self.of_label[..before.len()] != before
    }

    /// Give new labels their arms.
    pub fn learn(&mut self, labels: &Labels) {
        for label in self.of_label.len()..labels.known.len() {
            let text = labels.text(label, self.dimension);
            let found = self
                .values
                .iter()
                .position(|value| Some(value.as_str()) == text);
            let found = found.filter(|arm| self.is_kept[*arm]);
            self.of_label.push(found.map_or(0, |arm| arm as u8 + 1));
        }
    }

    /// The arm of a label, from 1; 0: it has none.
    pub fn of(&self, label: u32) -> usize {
        self.of_label
            .get(label as usize)
            .map_or(0, |arm| usize::from(*arm))
    }
}
