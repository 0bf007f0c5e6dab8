"""Scores against clicks, over all impressions together: is the model's order right, is its level?

An impression with a `score` was clicked or not: by attribution, under the impression's own time
and segment. Only scores from 0 to 1 are compared with clicks as probabilities; the AUC takes every
score. Sources: P the recommender-evaluation primer, G Gorse's evaluation page, J Jurity's metric
page, H He et al., *Practical Lessons from Predicting Clicks on Ads at Facebook*, 2014.

Two of four impressions are clicked. Of the pairs of a clicked and another one, three of four have
the higher score on the clicked one; predicted were 0.9 + 0.5 + 0.3 + 0.1 = 1.8 clicks:

    >>> from streamer.testing.readings import value_of
    >>> scores = {"a": 0.9, "b": 0.5, "c": 0.3, "d": 0.1}
    >>> shown = [{"item_id": item, "score": score} for item, score in scores.items()]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": item} for item in "ac"]
    >>> def read(name, **labels):
    ...     families = {"metrics": {"families": ["calibration", "scores"]}}
    ...     found = value_of(events, name, families, maturity="provisional", **labels)
    ...     return round(found, 6)
    >>> read("auc_ratio"), read("auc_error_ratio"), read("calibration_ratio")
    (0.75, 0.0, 0.9)

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
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.metrics.definition import Declarations, Family, Series, Sums, ratio
from streamer.metrics.ratios import Quantity, declare_ratio, matured, maturities
from streamer.metrics.score_ratios import (
    BY_THRESHOLD,
    CALIBRATION,
    HORIZON,
    LOG_LOSS,
    MSE,
    POSITIVES,
    PROBABILITIES,
    RATIOS,
    SCORE,
)
from streamer.metrics.score_sums import BINS, CURVE, CURVE_BINS, EDGES, UNIT, name_of, stats

_NO_INTERVAL = "It has no interval."
_MATURITY = ("maturity",)


def _matured(w: Sums, *names: str) -> Iterator[tuple[dict[str, str], list[I64]]]:
    return matured(w, HORIZON, *names)


def _count(values: I64, labels: dict[str, str]) -> Series:
    return Series(labels, values, values != 0)


# Calibration -------------------------------------------------------------------------------------

metric = calibration = Declarations()


@dataclass(frozen=True)
class Pairs:
    """Pairs of a clicked impression and another one: ``won`` where the clicked one is in a higher
    bin, ``tied`` where both are in one."""

    won: F64
    tied: F64
    all: F64


def _pairs(bins: I64) -> Pairs:
    shown, clicked = np.split(bins, 2, axis=1)
    others = shown - clicked
    below = np.cumsum(others, axis=1) - others
    weights = clicked.astype(np.float64)
    every = weights.sum(axis=1) * others.sum(axis=1)
    return Pairs((weights * below).sum(axis=1), (weights * others).sum(axis=1), every)


_BOTH = "absent without scored impressions clicked and not clicked"


@metric(
    "auc_ratio",
    formula="probability that a clicked impression has a higher score than another, ties one half",
    unit="ratio",
    empty=_BOTH,
    source="P G J",
    labels=_MATURITY,
    doc="Area under the ROC curve over all impressions together, from 128 bins of scores;"
    f" `auc_error_ratio` bounds how far it is from the exact one. {_NO_INTERVAL}",
)
def auc(w: Sums) -> Iterator[Series]:
    for labels, (bins,) in _matured(w, BINS):
        pairs = _pairs(bins)
        yield ratio(pairs.won + pairs.tied / 2, pairs.all, **labels)


@metric(
    "auc_error_ratio",
    formula="half the share of the pairs (clicked, other) that are in one bin",
    unit="ratio",
    empty=_BOTH,
    labels=_MATURITY,
)
def auc_error(w: Sums) -> Iterator[Series]:
    """Bound of the error of `auc_ratio`. On simulated models with 1 to 10 % of clicks it is at most
    0.012 at an AUC of 0.75, and 0.025 at 0.63; the error itself was below 0.001."""
    for labels, (bins,) in _matured(w, BINS):
        pairs = _pairs(bins)
        yield ratio(pairs.tied / 2, pairs.all, **labels)


declare_ratio(metric, CALIBRATION)


@metric(
    "window_scored_impressions",
    formula="impressions with a score",
    unit="impressions",
    empty="absent where it is 0",
    labels=_MATURITY,
)
def scored(w: Sums) -> Iterator[Series]:
    """Support of auc_ratio."""
    for labels, (bins,) in _matured(w, BINS):
        yield _count(bins[:, : len(EDGES) + 1].sum(axis=1), labels)


def _support(name: str, of: Quantity, doc: str) -> None:
    """Declare a count."""

    def series(w: Sums) -> Iterator[Series]:
        for labels, (sums,) in _matured(w, of.name):
            yield _count(sums, labels)

    metric(
        name,
        formula=of.text,
        unit="impressions",
        empty="absent where it is 0",
        labels=_MATURITY,
        doc=doc,
    )(series)


_support(
    *("window_probability_impressions", PROBABILITIES),
    "Support of the means over scores: only scores from 0 to 1 count there.",
)
_support("window_probability_clicked", POSITIVES, "Denominator of calibration_ratio.")


# Scores ------------------------------------------------------------------------------------------

metric = errors = Declarations()
for each in RATIOS:
    if each is not CALIBRATION:
        declare_ratio(metric, each)


@metric(
    "rmse",
    formula="square root of mse",
    unit="score",
    empty=f"absent without {PROBABILITIES.text}",
    source="P",
    labels=_MATURITY,
)
def rmse(w: Sums) -> Iterator[Series]:
    """Root of the mean squared error; the ends of its interval are the roots of those of mse."""
    for series in MSE.series(w):
        yield replace(series, values=np.sqrt(series.values))


for each_by in BY_THRESHOLD:
    metric(
        each_by.name,
        formula=each_by.formula,
        unit=each_by.unit,
        empty=each_by.empty,
        source="G",
        labels=each_by.labels,
        doc=each_by.doc,
    )(each_by.series)


@metric(
    "log_likelihood",
    formula="- sum of -ln(predicted probability of what happened)",
    unit="nats in all",
    empty=f"absent without {PROBABILITIES.text}",
    source="J",
    labels=_MATURITY,
)
def log_likelihood(w: Sums) -> Iterator[Series]:
    """Logarithm of the probability that the scores gave to all that happened: minus the summed log
    loss. It falls with every impression, so compare it over the same ones only; it has no interval.
    """
    for labels, (loss, n) in _matured(w, LOG_LOSS.name, PROBABILITIES.name):
        yield Series(labels, -loss / UNIT, n != 0)


@metric(
    "normalized_entropy",
    formula="log_loss / entropy of the clicked share",
    unit="log loss per entropy",
    empty="absent without scores from 0 to 1 of impressions clicked and not clicked",
    source="H",
    labels=_MATURITY,
    doc="Log loss over that of predicting the clicked share throughout: below 1 the scores tell"
    f" more than the average does. {_NO_INTERVAL}",
)
def normalized_entropy(w: Sums) -> Iterator[Series]:
    for labels, (loss, n, y) in _matured(w, LOG_LOSS.name, PROBABILITIES.name, POSITIVES.name):
        inside = (y > 0) & (y < n)
        p = np.where(inside, y / np.maximum(n, 1), 0.5)
        entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p))
        values = loss / (UNIT * np.maximum(n, 1) * entropy)
        yield Series(labels, values, inside)


@metric(
    "pearson_r",
    formula="covariance(score, clicked) / root of the product of their variances",
    unit="correlation",
    empty="absent without scores from 0 to 1 that differ, of impressions clicked and not clicked",
    source="J",
    labels=_MATURITY,
    doc="Pearson's correlation of scores and clicks, from squares that are rounded to 1e-9 each:"
    f" coarse where scores are below 0.001. {_NO_INTERVAL}",
)
def pearson(w: Sums) -> Iterator[Series]:
    names = ("probabilities", "positives", "score", "score_of_positives", "score_square")
    for labels, sums in _matured(w, *map(name_of, names)):
        rows = [_correlation(*row) for row in zip(*(x.tolist() for x in sums), strict=True)]
        present = np.array([r is not None for r in rows], bool)
        yield Series(labels, np.array([r or 0.0 for r in rows]), present)


def _correlation(n: int, y: int, s: int, sy: int, ss: int) -> float | None:
    """Pearson's r from exact sums; None where one of both does not vary, as far as rounded squares
    say."""
    variance = n * ss * UNIT - s * s
    if not 0 < y < n or 2 * variance <= n * n * UNIT:
        return None
    r = (n * sy - s * y) / sqrt(variance * y * (n - y))
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
)
def expected_calibration_error(w: Sums) -> Iterator[Series]:
    for labels, (curve,) in _matured(w, CURVE):
        shown, clicked, score = np.split(curve, 3, axis=1)
        apart = np.abs(score - UNIT * clicked).sum(axis=1)
        yield ratio(apart, UNIT * shown.sum(axis=1), **labels)


def _curve(name: str, formula: str, unit: str, doc: str, read_bins: Any) -> None:
    """Declare a series for each bin of the calibration curve."""

    def series(w: Sums) -> Iterator[Series]:
        for labels, (curve,) in _matured(w, CURVE):
            columns = [part.T for part in np.split(curve, 3, axis=1)]
            for i, parts in enumerate(zip(*columns, strict=True), 1):
                yield read_bins(*parts, {**labels, "bin": f"{i / CURVE_BINS:g}"})

    empty = "absent without impressions in the bin"
    labels = ("bin", *_MATURITY)
    metric(name, formula=formula, unit=unit, empty=empty, labels=labels, doc=doc)(series)


_curve(
    "calibration_predicted_ratio",
    "sum of scores in the bin / impressions in it",
    "ratio",
    "Calibration curve: mean score of ten bins of equal width, called by their upper bounds.",
    lambda shown, clicked, score, labels: ratio(score, UNIT * shown, **labels),
)
_curve(
    "calibration_observed_ratio",
    "clicked ones in the bin / impressions in it",
    "ratio",
    "Calibration curve: clicked share of each bin; equal to the mean score where it is calibrated.",
    lambda shown, clicked, score, labels: ratio(clicked, shown, **labels),
)
_curve(
    "window_calibration_impressions",
    "impressions with a score in the bin",
    "impressions",
    "Support of the calibration curve.",
    lambda shown, clicked, score, labels: _count(shown, labels),
)


@metric(
    "fairness_loss",
    formula="sum over pairs of values of (mean score of one - mean score of the other)²",
    unit="squared score",
    empty="absent without two values that have scores from 0 to 1",
    source="J",
    labels=("dimension", *_MATURITY),
    doc="How far the values of a dimension are apart in their mean scores, over its kept values and"
    f" of the total only. {_NO_INTERVAL}",
)
def fairness_loss(w: Sums) -> Iterator[Series]:
    for labels, horizon_ms in maturities(w, HORIZON):
        score, shown = (w.by_value(of.name, horizon_ms) for of in (SCORE, PROBABILITIES))
        for dimension, sums in score.items():
            n = shown[dimension]
            means = np.sort(sums[n > 0] / (UNIT * n[n > 0]))  # whatever the order of the values
            apart = len(means) * np.sum((means - means.sum() / max(len(means), 1)) ** 2)
            rows = len(w(SCORE.name))
            present = np.full(rows, len(means) > 1)
            yield Series({**labels, "dimension": dimension}, np.full(rows, apart), present)


CLASSES = (
    *(-1.0, 0.0, 0.0001, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(0.75, 0.9, 0.99, 1.0, 8.0),
)
"""Upper bounds of the classes of scores, of the edges of bins; one more is beyond them all."""


@metric(
    "window_score_impressions",
    formula="impressions with a score from the class before's bound up to below this one's",
    unit="impressions",
    empty="absent where it is 0",
    labels=("upto", *_MATURITY),
)
def score_histogram(w: Sums) -> Iterator[Series]:
    """Scores by class, for heat maps: exact counts, not cumulative."""
    first = [0, *(EDGES.index(bound) + 1 for bound in CLASSES)]
    for labels, (bins,) in _matured(w, BINS):
        shown = np.add.reduceat(bins[:, : len(EDGES) + 1], first, axis=1)
        for bound, column in zip((*CLASSES, "inf"), shown.T, strict=True):
            upto = bound if isinstance(bound, str) else f"{bound:g}"
            yield _count(column, labels | {"upto": upto})


FAMILIES = (
    Family("calibration", stats, tuple(calibration.metrics)),
    Family("scores", stats, tuple(errors.metrics)),
)
