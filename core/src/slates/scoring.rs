//! Scores: how well the model's scores separate what users respond to within a slate, over the
//! members that carry one. Formulas, sources and names stand in `streamer/metrics/scoring.py`.

use crate::slates::values::{Convention, SlateContext, quotient, rounded};

/// Probability that a clicked item has a higher score than another one, ties one half.
pub fn grouped_auc(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    let clicked = slate.scored_clicked;
    quotient(slate.won, 2 * clicked * (slate.scored_count - clicked))
}

/// Mean over pairs of -ln sigmoid(relevant - other).
pub fn bpr(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    rounded(slate.losses.mean(0))
}

/// Mean over pairs of max(0, 1 - (relevant - other)).
pub fn hinge(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    rounded(slate.losses.mean(1))
}

/// Mean over pairs of max(0, margin - (relevant - other)).
pub fn margin(slate: &SlateContext, _: i64, _: Convention) -> i64 {
    rounded(slate.losses.mean(2))
}
