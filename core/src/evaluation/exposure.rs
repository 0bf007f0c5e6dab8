//! How often each item was shown, by the places of counts that readers of live panes have: see
//! `streamer/metrics/item_counts.py`.

use crate::counting::item_counts::list_weight;
use crate::evaluation::shown_lists::ShownRow;
use crate::hash::HashMap;

const SHOWN: usize = 0;
const CLICKED: usize = 1;
/// Shown, clicked, and of a category, which nothing here has.
const WITHOUT_CUTOFF: usize = 3;

/// Counts of items over some lists.
#[derive(Debug)]
pub struct Exposure {
    cutoffs: Vec<usize>,
    /// Item → place of its row.
    places: HashMap<u32>,
    /// `width` an item.
    counts: Vec<i64>,
    /// The same of no item: lists, and excess.
    every: Vec<i64>,
}

impl Exposure {
    /// Of no lists. `cutoffs`: ascending.
    pub fn new(cutoffs: Vec<usize>) -> Self {
        let width = WITHOUT_CUTOFF + 3 * cutoffs.len();
        Self {
            cutoffs,
            places: HashMap::default(),
            counts: Vec::new(),
            every: vec![0; width],
        }
    }

    /// Counts of one item.
    pub fn width(&self) -> usize {
        self.every.len()
    }

    /// The counts of no item.
    pub fn every(&self) -> &[i64] {
        &self.every
    }

    /// Items, ascending as signed integers, and their counts one after another.
    pub fn sorted(&self) -> (Vec<i64>, Vec<i64>) {
        let mut items: Vec<(i64, u32)> = self
            .places
            .iter()
            .map(|(item, place)| (*item as i64, *place))
            .collect();
        items.sort_unstable();
        let width = self.width();
        let rows = items.iter().map(|(_, place)| *place as usize * width);
        let counts = rows.flat_map(|at| self.counts[at..at + width].iter().copied());
        (
            items.iter().map(|(item, _)| *item).collect(),
            counts.collect(),
        )
    }

    fn row(&mut self, item: u64) -> &mut [i64] {
        let (width, known) = (self.width(), self.places.len() as u32);
        let place = *self.places.entry(item).or_insert(known) as usize;
        if place * width == self.counts.len() {
            self.counts.resize(self.counts.len() + width, 0);
        }
        &mut self.counts[place * width..(place + 1) * width]
    }

    /// Adds impressions, repeats within a list too.
    pub fn add_rows(&mut self, items: impl Iterator<Item = u64>) {
        for item in items {
            self.row(item)[SHOWN] += 1;
            self.every[SHOWN] += 1;
        }
    }

    /// Adds an impression that was clicked.
    pub fn add_clicked(&mut self, item: u64) {
        self.row(item)[CLICKED] += 1;
        self.every[CLICKED] += 1;
    }

    /// Adds the distinct items of a list, in the order shown.
    pub fn add_list(&mut self, shown: &[ShownRow]) {
        let cutoffs = self.cutoffs.len();
        for at in 0..cutoffs {
            let (top, lists) = (WITHOUT_CUTOFF + at, WITHOUT_CUTOFF + cutoffs + at);
            let within = &shown[..shown.len().min(self.cutoffs[at])];
            let (weight, excess) = list_weight(within.len());
            for item in within {
                let row = self.row(item.item);
                row[top] += 1;
                row[lists] += weight;
            }
            self.every[top] += within.len() as i64;
            self.every[lists] += 1;
            self.every[lists + cutoffs] += excess;
        }
    }

    /// Adds the counts of other lists.
    pub fn add(&mut self, other: &Self) {
        let width = self.width();
        for (item, place) in &other.places {
            let more = &other.counts[*place as usize * width..][..width];
            let row = self.row(*item);
            row.iter_mut()
                .zip(more)
                .for_each(|(count, more)| *count += more);
        }
        self.every
            .iter_mut()
            .zip(&other.every)
            .for_each(|(count, more)| *count += more);
    }
}
