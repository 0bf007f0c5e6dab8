//! Where the sums of measures stand among the statistics of an arm on a day.

use crate::experiments::user_state::moments;
use crate::spec::experiments::MeasureSpec;

/// Statistics that are added to at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub first: usize,
    pub width: usize,
}

#[derive(Clone, Debug)]
pub struct Layout {
    /// The first statistics.
    pub counts: Block,
    /// The first statistic of each measure.
    pub firsts: Vec<usize>,
    /// How many statistics each measure has, in each bucket.
    pub moments: Vec<usize>,
    /// The block of each measure without buckets, which it shares with its neighbours.
    shared: Vec<Option<Block>>,
    /// How many statistics an arm has on a day.
    pub stats: usize,
}

impl Layout {
    /// `counts`: how many statistics there are before those of measures.
    pub fn new(measures: &[MeasureSpec], counts: usize, has_covariates: bool) -> Self {
        let of_measure = |measure| moments(measure, has_covariates);
        let moments: Vec<usize> = measures.iter().map(of_measure).collect();
        let (mut firsts, mut stats) = (Vec::new(), counts);
        for (measure, moments) in measures.iter().zip(&moments) {
            firsts.push(stats);
            stats += moments * measure.cap.buckets();
        }
        let mut found = Self {
            counts: Block {
                first: 0,
                width: counts,
            },
            shared: vec![None; firsts.len()],
            firsts,
            stats,
            moments,
        };
        found.share(measures);
        found
    }

    /// Neighbours without buckets share a block.
    fn share(&mut self, measures: &[MeasureSpec]) {
        let is_plain = |measure: &MeasureSpec| measure.cap.buckets() == 1;
        let mut number = 0;
        for run in measures.chunk_by(|a, b| is_plain(a) && is_plain(b)) {
            let places = number..number + run.len();
            number = places.end;
            if is_plain(&run[0]) {
                let block = Block {
                    first: self.firsts[places.start],
                    width: self.moments[places.clone()].iter().sum(),
                };
                self.shared[places].fill(Some(block));
            }
        }
    }

    /// The block of a measure's bucket, and where in it its statistics begin.
    pub fn block(&self, measure: usize, bucket: usize) -> (Block, usize) {
        let (first, width) = (self.firsts[measure], self.moments[measure]);
        match self.shared[measure] {
            Some(block) => (block, first - block.first),
            None => {
                let first = first + bucket * width;
                (Block { first, width }, 0)
            }
        }
    }
}
