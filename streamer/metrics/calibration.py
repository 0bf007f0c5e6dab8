"""Scores against clicks, over all impressions together: is the model's order right, and its level?

An impression with a `score` was clicked or not: by attribution, under the impression's own time
and segment. The AUC takes every score; as probabilities of a click only those from 0 to 1 are
taken. Sources: P the recommender-evaluation primer, G Gorse's evaluation page, J Jurity's metric
page, H He et al., *Practical Lessons from Predicting Clicks on Ads at Facebook*, 2014.

Two of four impressions are clicked. Of the four pairs of a clicked and another one, two have the
higher score on the clicked one and one is in a bin; predicted were 0.9 + 0.4 + 0.3 + 0.3 clicks:

    >>> from streamer.testing import value_of
    >>> scores = {"a": 0.9, "b": 0.4, "c": 0.3, "d": 0.3}
    >>> shown = [{"item_id": item, "score": score} for item, score in scores.items()]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": item} for item in "ac"]
    >>> value_of(events, "auc_ratio"), value_of(events, "auc_error_ratio")
    (0.625, 0.125)
    >>> value_of(events, "calibration_ratio")
    0.95
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.metrics.definition import Declarations, Family, Series, count, ratio
from streamer.metrics.ratios import declare, matured
from streamer.metrics.score_ratios import CALIBRATION, HORIZON, POSITIVES, PROBABILITIES
from streamer.metrics.score_sums import BINS, EDGES, stats

metric = Declarations()
_MATURITY = ("maturity",)


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


_OF_BINS = matured(HORIZON, BINS)
_BOTH = "absent without scored impressions clicked and not clicked"


@metric(
    "auc_ratio",
    formula="probability that a clicked impression has a higher score than another, ties one half",
    unit="ratio",
    empty=_BOTH,
    source="G J",
    labels=_MATURITY,
    doc="Area under the ROC curve over all impressions together, from bins of scores: 3 % wide"
    " from 1/8 to 1000, and 12 % beyond. `auc_error_ratio` bounds how far it is from the exact one."
    " It has no interval.",
    reads=_OF_BINS,
)
def auc(bins: I64) -> Iterator[Series]:
    pairs = _pairs(bins)
    yield ratio(pairs.won + pairs.tied / 2, pairs.all)


@metric(
    "auc_error_ratio",
    formula="half the share of the pairs (clicked, other) that are in one bin",
    unit="ratio",
    empty=_BOTH,
    labels=_MATURITY,
    reads=_OF_BINS,
)
def auc_error(bins: I64) -> Iterator[Series]:
    """Bound of the error of `auc_ratio`. On simulated probabilities of 0.0001 to 0.5, logits, dot
    products, cosines, ratings and BM25 it was at most 0.05, and the error itself below 0.005. It is
    large where all scores lie within a few percent, as 1000 ± 10 do: then subtract the mean."""
    pairs = _pairs(bins)
    yield ratio(pairs.tied / 2, pairs.all)


declare(metric, CALIBRATION)


def _scored(bins: I64) -> Iterator[Series]:
    yield count(bins[:, : len(EDGES) + 1].sum(axis=1))


_support = partial(metric.count, unit="impressions", labels=_MATURITY)
_support(
    "window_scored_impressions",
    formula="impressions with a score",
    doc="Support of auc_ratio.",
    reads=_OF_BINS,
    series=_scored,
)
_support(
    "window_probability_impressions",
    formula=PROBABILITIES.text,
    doc="Support of the means over scores: only scores from 0 to 1 count there.",
    reads=matured(HORIZON, PROBABILITIES.name),
)
_support(
    "window_probability_clicked",
    formula=POSITIVES.text,
    doc="Denominator of calibration_ratio.",
    reads=matured(HORIZON, POSITIVES.name),
)

FAMILY = Family("calibration", tuple(metric.series), stats)
