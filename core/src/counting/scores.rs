//! Scores against clicks: what each impression with a score adds to sums, from which the errors and
//! the calibration of a model are read. Formulas stand in `streamer/metrics/scores.py`, sources in
//! `calibration.py` beside it.
//!
//! All but the bins are over probabilities: scores from 0 to 1. An impression adds its amounts as not
//! clicked when it is shown, and the difference when that changes. Amounts are integers, so nothing
//! depends on the order.

use crate::logarithms::minus_log;

/// Units of a score that is 1.
const UNIT: i64 = 1_000_000_000;
/// Units of a rating that is 1.
const RATING_UNIT: i64 = 1_000_000;
/// Predictions of 0 and of 1 are taken as so far from it: their loss is finite.
const LEAST: f64 = 1e-15;

/// What is added up over pairs of a score and what it predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairAmount {
    Count,
    Score,
    Label,
    Product,
    ScoreSquare,
    LabelSquare,
    AbsoluteError,
    SquaredError,
}

impl PairAmount {
    /// What a pair adds, both in units that are 1 / `unit`.
    fn of(self, score: i64, label: i64, unit: i64) -> i64 {
        match self {
            Self::Count => 1,
            Self::Score => score,
            Self::Label => label,
            Self::Product => product(score, label, unit),
            Self::ScoreSquare => product(score, score, unit),
            Self::LabelSquare => product(label, label, unit),
            Self::AbsoluteError => (score - label).abs(),
            Self::SquaredError => product(score - label, score - label, unit),
        }
    }

    /// What a rating of so many millionths adds.
    pub fn of_rating(self, score: f64, rating: i64) -> i64 {
        let score = (score * RATING_UNIT as f64 + 0.5).floor() as i64;
        self.of(score, rating, RATING_UNIT)
    }
}

/// What is added up over impressions whose score is a probability; in units of 1e-9 where it is no
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreAmount {
    /// Of the score and 1 or 0: clicked or not.
    Pair(PairAmount),
    /// Impressions that were clicked.
    Positives,
    LogLoss,
    /// Impressions with a score of at least this, in units, and those of them that were clicked.
    Predicted(i64),
    TruePositives(i64),
}

impl ScoreAmount {
    /// What an impression adds.
    pub fn amount(self, score: f64, is_clicked: bool) -> i64 {
        let Some(units) = units_of(score) else {
            return 0;
        };
        match self {
            Self::Pair(amount) => amount.of(units, UNIT * i64::from(is_clicked), UNIT),
            Self::Positives => i64::from(is_clicked),
            Self::LogLoss => loss(score, is_clicked),
            Self::Predicted(least) => i64::from(units >= least),
            Self::TruePositives(least) => i64::from(is_clicked && units >= least),
        }
    }

    /// What the clicks of an impression add: one more or less, or none.
    pub fn of_clicks(self, score: f64, clicked: i64) -> i64 {
        match clicked {
            0 => 0,
            sign => sign * (self.amount(score, true) - self.amount(score, false)),
        }
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
#[derive(Clone, Debug)]
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

/// The bin of a probability among so many of equal width, the upper one on an edge; none where a
/// score is no probability.
pub fn bin_of(score: f64, bins: u32) -> Option<u32> {
    let units = units_of(score)?;
    Some(((units / (UNIT / i64::from(bins))) as u32).min(bins - 1))
}

/// The product of two integers of units that are 1 / `unit`, in the same unit; halves go up.
pub fn product(a: i64, b: i64, unit: i64) -> i64 {
    (a * b + unit / 2).div_euclid(unit)
}
