"""Errors of scores that are probabilities of a click, over all impressions together.

Only scores from 0 to 1 count; see ``calibration`` for what an impression is and for the sources.
Scores of 0.9, 0.5, 0.3 and 0.1, of which the first and the third are clicked:

    >>> from streamer.testing import value_of
    >>> scores = {"a": 0.9, "b": 0.5, "c": 0.3, "d": 0.1}
    >>> shown = [{"item_id": item, "score": score} for item, score in scores.items()]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": item} for item in "ac"]
    >>> def read(name, **labels):
    ...     settings = {"metrics": {"families": ["scores"]}}
    ...     return round(value_of(events, name, settings, **labels), 6)

The log loss is -(ln 0.9 + ln 0.5 + ln 0.3 + ln 0.9) / 4, half of all were clicked, so that their
entropy is ln 2; errors are 0.1, 0.5, 0.7 and 0.1:

    >>> read("log_loss"), read("normalized_entropy"), read("log_likelihood")
    (0.52696, 0.760243, -2.107841)
    >>> read("mae"), read("mse"), read("rmse"), read("expected_calibration_error")
    (0.35, 0.19, 0.43589, 0.35)
    >>> read("pearson_r")
    0.507093

At the threshold 0.5 two are predicted to be clicked, of which one is, and of the clicked ones half:

    >>> read("classifier_precision_ratio", threshold="0.5")
    0.5
    >>> read("classifier_recall_ratio", threshold="0.5")
    0.5

Feedback may carry a `rating`; with the score of its impression it is a pair, under the impression's
time and segment. A rating given again is another pair. Both are from -100 to 100. Predicted were 4
and 2 stars, given 5, 1 and 2; errors are 1, 1 and 0:

    >>> shown = [{"item_id": "a", "score": 4}, {"item_id": "b", "score": 2}]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "item_id": i, "rating": int(n)} for i, n in ("a5", "b1", "b2")]
    >>> read("rating_mse"), read("rating_rmse"), read("rating_mae"), read("rating_pearson_r")
    (0.666667, 0.816497, 0.666667, 0.970725)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics import score_drift
from streamer.metrics.definition import (
    Declarations,
    Declared,
    Family,
    Series,
    Variant,
    count,
    ratio,
)
from streamer.metrics.ratios import Ratio, declare, matured, maturities
from streamer.metrics.reads import ByValue, Rows
from streamer.metrics.score_ratios import (
    BY_THRESHOLD,
    CALIBRATION,
    HORIZON,
    LOG_LOSS,
    MSE,
    POSITIVES,
    PROBABILITIES,
    RATING_MSE,
    RATINGS,
    RATIOS,
    SCORE,
)
from streamer.metrics.score_sums import (
    BINS,
    CLASSES,
    CURVE,
    CURVE_BINS,
    EDGES,
    RATING_UNIT,
    UNIT,
    name_of,
    stats,
)

metric = Declarations()
_NO_INTERVAL = "It has no interval."
_MATURITY = ("maturity",)

declare(metric, *(each for each in RATIOS if each is not CALIBRATION))


def _root(of: Ratio, above: I64, below: I64) -> Iterator[Series]:
    mean = of.of(above, below)
    yield Series({}, np.sqrt(mean.values), mean.present)


for name, of_squares, unit in (("rmse", MSE, "score"), ("rating_rmse", RATING_MSE, "rating")):
    metric(
        name,
        formula=f"square root of {of_squares.name}",
        unit=unit,
        empty=of_squares.absent,
        source="P",
        labels=_MATURITY,
        doc="Root of the mean squared error. The ends of its interval are the roots of the ends of"
        f" {of_squares.name}.",
        support=of_squares.support if of_squares is RATING_MSE else "",
        reads=of_squares.reads,
    )(partial(_root, of_squares))


declare(metric, *BY_THRESHOLD)


@metric(
    "log_likelihood",
    formula="- sum of -ln(predicted probability of what happened)",
    unit="nats in all",
    empty=f"absent without {PROBABILITIES.text}",
    source="P",
    labels=_MATURITY,
    reads=matured(HORIZON, LOG_LOSS.name, PROBABILITIES.name),
)
def log_likelihood(loss: I64, n: I64) -> Iterator[Series]:
    """Logarithm of the probability that the scores gave to all observed clicks and non-clicks:
    minus the summed log loss. It falls with every impression, so compare it only over the same
    impressions. It has no interval."""
    yield Series({}, -loss / UNIT, n != 0)


@metric(
    "normalized_entropy",
    formula="log_loss / entropy of the clicked share",
    unit="log loss per entropy",
    empty="absent without scores from 0 to 1 of impressions clicked and not clicked",
    source="H",
    labels=_MATURITY,
    doc="Log loss divided by the log loss of always predicting the clicked share. Below 1 the"
    f" scores are more informative than the average. {_NO_INTERVAL}",
    reads=matured(HORIZON, LOG_LOSS.name, PROBABILITIES.name, POSITIVES.name),
)
def normalized_entropy(loss: I64, n: I64, y: I64) -> Iterator[Series]:
    inside = (y > 0) & (y < n)
    p = np.where(inside, y / np.maximum(n, 1), 0.5)
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p))
    yield Series({}, loss / (UNIT * np.maximum(n, 1) * entropy), inside)


@metric(
    "pearson_r",
    formula="covariance(score, clicked) / root of the product of their variances",
    unit="correlation",
    empty="absent without scores from 0 to 1 that differ, of impressions clicked and not clicked",
    source="P",
    labels=_MATURITY,
    doc="Pearson's correlation of scores and clicks, from squares that are rounded to 1e-9 each:"
    f" coarse where scores are below 0.001. {_NO_INTERVAL}",
    reads=matured(
        HORIZON,
        *(name_of(each) for each in ("probabilities", "positives", "score")),
        *(name_of(each) for each in ("score_of_positives", "score_square")),
    ),
)
def pearson(n: I64, clicked: I64, score: I64, product: I64, square: I64) -> Iterator[Series]:
    ones = UNIT * clicked
    yield _correlations(UNIT, 0, n, score, ones, product, square, ones)


@metric(
    "rating_pearson_r",
    formula="covariance(score, rating) / root of the product of their variances",
    unit="correlation",
    empty="absent without scores and ratings that differ",
    source="P",
    labels=_MATURITY,
    doc="Pearson's correlation of scores and ratings, from products that are rounded to 1e-6 each."
    f" {_NO_INTERVAL}",
    support="window_ratings",
    reads=matured(
        HORIZON,
        *(f"ratings.{each}" for each in ("ratings", "score", "rating")),
        *(f"ratings.{each}" for each in ("product", "score_square", "rating_square")),
    ),
)
def rating_pearson(*sums: I64) -> Iterator[Series]:
    yield _correlations(RATING_UNIT, RATING_UNIT, *sums)


metric.count(
    "window_ratings",
    formula=RATINGS.text,
    unit="ratings",
    labels=_MATURITY,
    doc="Support of the metrics of ratings: both score and rating are from -100 to 100.",
    reads=matured(HORIZON, RATINGS.name),
)


def _correlations(unit: int, rounding: int, *sums: I64) -> Series:
    rows = zip(*(x.tolist() for x in sums), strict=True)
    found = [_correlation(unit, rounding, *row) for row in rows]
    present = np.array([r is not None for r in found], bool)
    return Series({}, np.array([r or 0.0 for r in found]), present)


def _correlation(
    unit: int, rounding: int, n: int, x: int, y: int, xy: int, xx: int, yy: int
) -> float | None:
    """Pearson's r from exact sums of this unit; None where one of both does not vary, as far as
    squares say, which are rounded (of y by ``rounding``)."""
    of_x, of_y = n * xx * unit - x * x, n * yy * unit - y * y
    if 2 * of_x <= n * n * unit or 2 * of_y <= n * n * rounding:
        return None
    r = (n * xy * unit - x * y) / sqrt(of_x * of_y)
    return min(max(r, -1.0), 1.0)


@metric(
    "expected_calibration_error",
    formula="sum over bins of |sum of scores - clicked ones| / impressions with a score from 0 to"
    " 1",
    unit="score",
    empty=f"absent without {PROBABILITIES.text}",
    labels=_MATURITY,
    doc="Mean distance of the calibration curve from the diagonal, over its ten bins of equal"
    f" width. {_NO_INTERVAL}",
    support="window_probability_impressions",
    reads=matured(HORIZON, CURVE),
)
def expected_calibration_error(curve: I64) -> Iterator[Series]:
    shown, clicked, score = np.split(curve, 3, axis=1)
    distance = np.abs(score - UNIT * clicked).sum(axis=1)
    yield ratio(distance, UNIT * shown.sum(axis=1))


def _curve(name: str, formula: str, unit: str, doc: str, read_bins: Any) -> None:
    """Declare a series for each bin of the calibration curve."""

    def series(curve: I64) -> Iterator[Series]:
        columns = [part.T for part in np.split(curve, 3, axis=1)]
        for i, parts in enumerate(zip(*columns, strict=True), 1):
            yield read_bins(*parts, {"bin": f"{i / CURVE_BINS:g}"})

    metric.row(
        *(name, unit, formula, doc, series),
        empty="absent without impressions in the bin",
        labels=("bin", *_MATURITY),
        reads=matured(HORIZON, CURVE),
    )


_curve(
    "calibration_predicted_ratio",
    "sum of scores in the bin / impressions in it",
    "ratio",
    "Calibration curve: mean score of ten bins of equal width, named by their upper bounds.",
    lambda shown, clicked, score, labels: ratio(score, UNIT * shown, **labels),
)
_curve(
    "calibration_observed_ratio",
    "clicked ones in the bin / impressions in it",
    "ratio",
    "Calibration curve: clicked share of each bin. It equals the mean score if the scores are "
    "calibrated.",
    lambda shown, clicked, score, labels: ratio(clicked, shown, **labels),
)
_curve(
    "window_calibration_impressions",
    "impressions with a score in the bin",
    "impressions",
    "Support of the calibration curve.",
    lambda shown, clicked, score, labels: count(shown, None, **labels),
)


def _by_value(of: Declared) -> Iterator[Variant]:
    for labels, horizon_ms in maturities(of.settings, HORIZON):
        reads = (ByValue(each.name, horizon_ms) for each in (SCORE, PROBABILITIES))
        yield Variant(labels, (Rows(), *reads))


@metric(
    "fairness_loss",
    formula="sum over pairs of values of (mean score of one - mean score of the other)²",
    unit="squared score",
    empty="absent without two values that have scores from 0 to 1",
    source="P",
    labels=("dimension", *_MATURITY),
    doc="Distance between the mean scores of a dimension's values, over its kept values and for the"
    f" total only. {_NO_INTERVAL}",
    reads=_by_value,
)
def fairness_loss(
    rows: int, score: Mapping[str, I64], shown: Mapping[str, I64]
) -> Iterator[Series]:
    for dimension in score.keys() & shown.keys():
        n = shown[dimension]
        # whatever the order of the values
        means = np.sort(score[dimension][n > 0] / (UNIT * n[n > 0]))
        loss = len(means) * np.sum((means - means.sum() / max(len(means), 1)) ** 2)
        present = np.full(rows, len(means) > 1)
        yield Series({"dimension": dimension}, np.full(rows, loss), present)


@metric(
    "window_score_impressions",
    formula="impressions with a score from the class before's bound up to below this one's",
    unit="impressions",
    labels=("upto", *_MATURITY),
    reads=matured(HORIZON, BINS),
)
def score_histogram(bins: I64) -> Iterator[Series]:
    """Scores by class, for heat maps: exact counts, not cumulative."""
    first = [0, *(EDGES.index(bound) + 1 for bound in CLASSES)]
    shown = np.add.reduceat(bins[:, : len(EDGES) + 1], first, axis=1)
    for bound, column in zip((*CLASSES, "inf"), shown.T, strict=True):
        upto = bound if isinstance(bound, str) else f"{bound:g}"
        yield count(column, None, upto=upto)


FAMILY = Family("scores", (*metric.series, *score_drift.metric.series), stats)
