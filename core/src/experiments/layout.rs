//! Where the sums of measures stand among the statistics of an arm on a day.

use crate::experiments::user_state::moments;
use crate::spec::experiments::MeasureSpec;

#[derive(Clone, Debug)]
pub struct Layout {
    /// The first statistic of each measure.
    pub firsts: Vec<usize>,
    /// How many statistics each measure has, in each bucket.
    pub moments: Vec<usize>,
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
        Self {
            firsts,
            stats,
            moments,
        }
    }
}
