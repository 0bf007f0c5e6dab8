"""Scores: how well the model's scores separate what users respond to, within a slate.

Over the members that carry a score. Sources: P the recommender-evaluation primer, G Gorse's
evaluation page, J Jurity's metric page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamer import limits
from streamer.batch import F64, I64
from streamer.engine.chains import runs_of, spread
from streamer.metrics.declare import Family
from streamer.metrics.slate_metrics import BRIEF, Population, SlateFamily
from streamer.metrics.slates import UNIT, Lists, quotient, rounded
from streamer.metrics.softplus import softplus

_PAIRS_AT_ONCE = 1 << 16
"""So that what is computed of them stays in a processor's cache."""
_PART_BITS = 40
"""Fractions of losses are added in units of 2**-40."""


def _both_classes(lists: Lists) -> Any:
    clicked = lists.total(lists.is_scored & lists.fact.is_clicked)
    return (clicked > 0) & (clicked < lists.total(lists.is_scored))


def _has_pairs(lists: Lists) -> Any:
    relevant = lists.total(lists.is_scored & lists.is_relevant)
    return (relevant > 0) & (relevant < lists.total(lists.is_scored))


GAUC = Population(
    "gauc",
    "window_gauc_slates",
    "with scored items clicked and not clicked",
    _both_classes,
    brief=BRIEF,
)
PAIRED = Population(
    "paired", "window_paired_slates", "with scored items relevant and not relevant", _has_pairs
)
slate_metric = SlateFamily("scoring", (GAUC, PAIRED))


@slate_metric(
    "gauc_ratio",
    brief=BRIEF,
    formula="probability that a clicked item has a higher score than another one, ties one half",
    unit="ratio",
    source="P G J",
    population=GAUC,
)
def grouped_auc(lists: Lists, k: int, convention: str) -> I64:
    """Area under the ROC curve within a slate, over its scored items."""
    scored = np.flatnonzero(lists.is_scored)
    scored = scored[np.lexsort((lists.score[scored], lists.owner[scored]))]
    owner, score = lists.owner[scored], lists.score[scored]
    is_clicked = lists.fact.is_clicked[scored]
    others = np.concatenate(([0], np.cumsum(~is_clicked)))
    is_start = np.ones(len(scored), np.bool_)
    is_start[1:] = (owner[1:] != owner[:-1]) | (score[1:] != score[:-1])
    starts = np.flatnonzero(is_start)
    run = np.cumsum(is_start) - 1
    ends = np.append(starts[1:], len(scored))
    first = np.searchsorted(owner, owner, "left")
    below = others[starts][run] - others[first]
    tied = (others[ends] - others[starts])[run]
    won = np.zeros(len(lists), np.int64)
    np.add.at(won, owner[is_clicked], (2 * below + tied)[is_clicked])
    clicked = lists.total(lists.is_scored & lists.fact.is_clicked)
    return quotient(won, 2 * clicked * (lists.total(lists.is_scored) - clicked))


def _pairs(lists: Lists) -> Iterator[tuple[I64, F64]]:
    """(slate, score of the relevant item minus that of the other one) of every pair."""
    relevant = np.flatnonzero(lists.is_scored & lists.is_relevant)
    others = np.flatnonzero(lists.is_scored & ~lists.is_relevant)
    counts = np.bincount(lists.owner[others], minlength=len(lists))
    starts = np.cumsum(counts) - counts
    paired = counts[lists.owner[relevant]]
    chunk = (np.cumsum(paired) - paired) // _PAIRS_AT_ONCE
    for start, stop in zip(runs_of(chunk), [*runs_of(chunk)[1:], len(relevant)], strict=True):
        some = relevant[start:stop]
        slate = lists.owner[some]
        which, other = spread(starts[slate], counts[slate])
        yield slate[which], lists.score[some][which] - lists.score[others[other]]


_LOSSES: tuple[Callable[[F64, float], F64], ...] = (
    lambda lead, margin: softplus(-lead),
    lambda lead, margin: np.maximum(0.0, 1.0 - lead),
    lambda lead, margin: np.maximum(0.0, margin - lead),
)
_BPR, _HINGE, _MARGIN = range(3)


def _mean_losses(lists: Lists) -> list[I64]:
    """Means over a slate's pairs, all losses at once, and once for a fact. They are added in
    integers, whole numbers and fractions apart."""
    if "losses" not in lists.memo:
        shape = (len(_LOSSES), len(lists))
        whole, part = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        pairs = np.zeros(len(lists), np.int64)
        for slate, lead in _pairs(lists):
            np.add.at(pairs, slate, 1)
            for i, loss in enumerate(_LOSSES):
                value = loss(lead, lists.margin)
                floor = np.floor(value)
                np.add.at(whole[i], slate, floor.astype(np.int64))
                fraction = np.floor((value - floor) * 2.0**_PART_BITS + 0.5)
                np.add.at(part[i], slate, fraction.astype(np.int64))
        total = whole.astype(np.float64) + part.astype(np.float64) / 2.0**_PART_BITS
        lists.memo["losses"] = list(rounded(total / np.maximum(pairs, 1).astype(np.float64)))
    return lists.memo["losses"]


def _largest_loss(gains: tuple[float, ...], margin: float, k: int) -> int:
    return int((2 * limits.MAX_SCORE + 1 + margin) * UNIT)


@slate_metric(
    "bpr_loss",
    formula="mean over pairs (relevant i, other j) of -ln sigmoid(score i - score j)",
    unit="nats",
    source="P",
    population=PAIRED,
    largest=_largest_loss,
)
def bpr(lists: Lists, k: int, convention: str) -> I64:
    """Bayesian personalised ranking loss of a slate's pairs."""
    return _mean_losses(lists)[_BPR]


@slate_metric(
    "hinge_loss",
    formula="mean over pairs (relevant i, other j) of max(0, 1 - (score i - score j))",
    unit="score",
    source="P",
    population=PAIRED,
    largest=_largest_loss,
)
def hinge(lists: Lists, k: int, convention: str) -> I64:
    """Hinge loss of a slate's pairs."""
    return _mean_losses(lists)[_HINGE]


@slate_metric(
    "margin_loss",
    formula="mean over pairs (relevant i, other j) of max(0, margin - (score i - score j))",
    unit="score",
    source="P",
    population=PAIRED,
    largest=_largest_loss,
)
def margin(lists: Lists, k: int, convention: str) -> I64:
    """Margin loss of a slate's pairs, with `metrics.margin`."""
    return _mean_losses(lists)[_MARGIN]


def _stats(settings: Any) -> tuple[Any, ...]:
    return (slate_metric.stat(settings),)


FAMILY = Family("scoring", _stats, slate_metric.collect, tuple(slate_metric.metrics))
