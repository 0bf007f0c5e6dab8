//! Scores against clicks: what each impression with a score adds to sums, from which the errors and
//! the calibration of a model are read. Formulas stand in `streamer/metrics/scores.py`, sources in
//! `calibration.py` beside it.
//!
//! All but the bins are over probabilities: scores from 0 to 1. An impression adds its amounts as not
//! clicked when it is shown, and the difference when that changes. Amounts are integers, so nothing
//! depends on the order.

use serde::Deserialize;

use crate::changes::{Outcome, Segment, Shown};
use crate::counting::named_sums::{NamedSums, square};
use crate::counting::statistics::Places;
use crate::logarithms::minus_log;
use crate::panes::Panes;
use crate::spec::Spec;

/// Units of a score that is 1.
const UNIT: i64 = 1_000_000_000;
/// Predictions of 0 and of 1 are taken as so far from it: their loss is finite.
const LEAST: f64 = 1e-15;
/// Bins of the calibration curve: of equal width, from 0 to 1.
pub const CURVE_BINS: usize = 10;
/// Columns of the curve: impressions, clicked ones and their scores by bin.
pub const CURVE_WIDTH: usize = 3 * CURVE_BINS;

/// What is added up over impressions whose score is a probability; in units of 1e-9 where it is no
/// count.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScoreSum {
    /// Impressions, and those of them that were clicked.
    Probabilities,
    Positives,
    Score,
    ScoreOfPositives,
    ScoreSquare,
    AbsoluteError,
    SquaredError,
    LogLoss,
    /// Impressions with a score of at least this, in units, and those of them that were clicked.
    Predicted(i64),
    TruePositives(i64),
}

impl ScoreSum {
    /// What an impression adds.
    pub fn amount(self, score: f64, is_clicked: bool) -> i64 {
        let Some(units) = units_of(score) else {
            return 0;
        };
        let error = units - if is_clicked { UNIT } else { 0 };
        match self {
            Self::Probabilities => 1,
            Self::Positives => i64::from(is_clicked),
            Self::Score => units,
            Self::ScoreOfPositives => units * i64::from(is_clicked),
            Self::ScoreSquare => square(units, UNIT),
            Self::AbsoluteError => error.abs(),
            Self::SquaredError => square(error, UNIT),
            Self::LogLoss => loss(score, is_clicked),
            Self::Predicted(least) => i64::from(units >= least),
            Self::TruePositives(least) => i64::from(is_clicked && units >= least),
        }
    }

    /// What a change of an impression adds.
    pub fn of_outcome(self, change: &Outcome) -> i64 {
        match change.clicked {
            0 => 0,
            sign => sign * (self.amount(change.score, true) - self.amount(change.score, false)),
        }
    }

    /// What a new impression adds.
    pub fn of_shown(self, change: &Shown) -> i64 {
        self.amount(change.score, false)
    }
}

/// A probability in units; none where a score is missing, or is no probability.
fn units_of(score: f64) -> Option<i64> {
    let is_probability = (0.0..=1.0).contains(&score); // not so of NaN
    is_probability.then_some((score * UNIT as f64 + 0.5) as i64)
}

fn loss(probability: f64, is_clicked: bool) -> i64 {
    let p = probability.clamp(LEAST, 1.0 - LEAST);
    let likelihood = if is_clicked { p } else { 1.0 - p };
    (minus_log(likelihood) * UNIT as f64 + 0.5) as i64
}

/// Bins of scores, whatever their range.
#[derive(Debug)]
pub struct Bins {
    /// Inner edges, ascending: a score on one is in the bin above it.
    edges: Vec<f64>,
}

impl Bins {
    pub fn new(edges: Vec<f64>) -> Result<Self, String> {
        if edges.windows(2).all(|pair| pair[0] < pair[1]) {
            Ok(Self { edges })
        } else {
            Err("edges of scores do not ascend".to_owned())
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.edges.len() + 1
    }

    /// The bin of a score; none without one.
    pub fn of(&self, score: f64) -> Option<usize> {
        (!score.is_nan()).then(|| self.edges.partition_point(|edge| *edge <= score))
    }
}

/// The bin of the calibration curve and the score in units; none where a score is no probability.
pub fn of_curve(score: f64) -> Option<(usize, i64)> {
    let units = units_of(score)?;
    let bin = (units / (UNIT / CURVE_BINS as i64)) as usize;
    Some((bin.min(CURVE_BINS - 1), units))
}

/// Sums and bins of impressions with a score, and where they stand.
#[derive(Debug)]
pub(super) struct Scores {
    sums: NamedSums<ScoreSum>,
    /// Impressions by bin, then the clicked ones.
    bins: Option<(u32, Bins)>,
    curve: Option<u32>,
}

impl Scores {
    /// None where no score is looked at.
    pub fn of(spec: &Spec, places: &Places<'_>) -> Result<Option<Self>, String> {
        let sums = NamedSums::of(&spec.scores.sums, "scores_by_user_group", places)?;
        let bins = Bins::new(spec.scores.edges.clone())?;
        let at = places.wide("score_bins", 2 * bins.count())?;
        let curve = places.wide("score_curve", CURVE_WIDTH)?;
        Ok(sums.map(|sums| Self {
            sums,
            bins: at.map(|at| (at, bins)),
            curve,
        }))
    }

    /// An impression is shown, as not clicked.
    pub fn shown(&self, panes: &mut Panes, change: &Shown) {
        let place = (change.event_ms, change.segment, change.user);
        self.sums.add(panes, place, |sum| sum.of_shown(change));
        self.add_bins(panes, place, change.score, false, 1);
    }

    /// An impression is clicked, or is not any more.
    pub fn outcome(&self, panes: &mut Panes, change: &Outcome) {
        let place = (change.event_ms, change.segment, change.user);
        self.sums.add(panes, place, |sum| sum.of_outcome(change));
        self.add_bins(panes, place, change.score, true, change.clicked);
    }

    /// Adds to the bins of a score: of impressions, or of clicked ones.
    fn add_bins(
        &self,
        panes: &mut Panes,
        (event_ms, segment, _): (i64, Segment, u64),
        score: f64,
        of_clicked: bool,
        sign: i64,
    ) {
        if let Some((first, bins)) = &self.bins
            && let Some(bin) = bins.of(score)
        {
            let place = bin + if of_clicked { bins.count() } else { 0 };
            panes.add(event_ms, segment, first + place as u32, sign);
        }
        if let (Some(first), Some((bin, units))) = (self.curve, of_curve(score)) {
            let mut add = |column: usize, amount: i64| {
                let place = first + (column * CURVE_BINS + bin) as u32;
                panes.add(event_ms, segment, place, amount);
            };
            if of_clicked {
                add(1, sign);
            } else {
                add(0, sign);
                add(2, sign * units);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_the_formulas() {
        let of = |sum: ScoreSum| (sum.amount(0.2, false), sum.amount(0.2, true));
        assert_eq!(of(ScoreSum::Probabilities), (1, 1));
        assert_eq!(of(ScoreSum::Positives), (0, 1));
        assert_eq!(of(ScoreSum::Score), (200_000_000, 200_000_000));
        assert_eq!(of(ScoreSum::AbsoluteError), (200_000_000, 800_000_000));
        assert_eq!(of(ScoreSum::SquaredError), (40_000_000, 640_000_000));
        assert_eq!(of(ScoreSum::LogLoss), (223_143_551, 1_609_437_912));
        assert_eq!(of(ScoreSum::Predicted(200_000_000)), (1, 1));
        assert_eq!(of(ScoreSum::TruePositives(200_000_001)), (0, 0));
        for score in [f64::NAN, -0.1, 1.1] {
            assert_eq!(ScoreSum::Probabilities.amount(score, true), 0);
        }
        assert_eq!(ScoreSum::LogLoss.amount(0.0, true), 34_538_776_395);
    }

    #[test]
    fn a_score_on_an_edge_is_in_the_bin_above() {
        let bins = Bins::new(vec![0.0, 0.5]).unwrap();
        assert_eq!(bins.count(), 3);
        assert_eq!(bins.of(-1.0), Some(0));
        assert_eq!(bins.of(0.0), Some(1));
        assert_eq!(bins.of(0.5), Some(2));
        assert_eq!(bins.of(f64::NAN), None);
        assert!(Bins::new(vec![0.5, 0.5]).is_err());
        assert_eq!(of_curve(1.0), Some((9, UNIT)));
        assert_eq!(of_curve(0.1), Some((1, UNIT / 10)));
    }
}
