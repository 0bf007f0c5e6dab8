"""The bins of scores, and how far an AUC made of them can be off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import roc_auc_score

from streamer.encoding.arrays import F64
from streamer.metrics.calibration import _pairs
from streamer.metrics.score_sums import CLASSES, EDGES, names
from streamer.metrics.scores import _correlation
from streamer.settings import limits
from streamer.settings.load import parse

N = 200_000


def test_bins_are_narrow_at_every_scale_and_bounded() -> None:
    assert len(EDGES) + 1 == 1318
    assert all(low < high for low, high in pairwise(EDGES))
    assert set(CLASSES) <= set(EDGES)
    magnitudes = np.geomspace(1e-5, 0.8 * limits.MAX_SCORE, 999)
    for sign in (1, -1):
        near = np.abs(sign * magnitudes - 0.8) < 0.3  # where distances from 1 count
        above = magnitudes * np.where((magnitudes > 1 / 8) & (magnitudes < 1000), 1.032, 1.126)
        assert (np.digitize(sign * magnitudes, EDGES) != np.digitize(sign * above, EDGES))[
            ~near
        ].all()
    distances = np.geomspace(0.002, 0.49, 99)
    assert (np.digitize(1 - distances, EDGES) != np.digitize(1 - 1.126 * distances, EDGES)).all()
    assert {0, 0.5, 1} <= set(EDGES)


def auc_of(scores: F64, clicked: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """From bins, and the bound of its error."""
    bins = np.digitize(scores, EDGES)
    counts = [np.bincount(some, minlength=len(EDGES) + 1) for some in (bins, bins[clicked])]
    pairs = _pairs(np.concatenate(counts)[None, :])
    auc = float(((pairs.won + pairs.tied / 2) / pairs.all)[0])
    return auc, float((pairs.tied / 2 / pairs.all)[0])


def simulated(rate: float, spread: float) -> tuple[F64, npt.NDArray[np.bool_]]:
    """Calibrated scores whose log-odds are normal, and clicks."""
    dice = np.random.default_rng(5)
    log_odds = np.log(rate / (1 - rate)) + spread * dice.standard_normal(N)
    scores = 1 / (1 + np.exp(-log_odds))
    return scores, dice.random(N) < scores


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1])
@pytest.mark.parametrize(("spread", "said"), [(0.5, 0.025), (1.0, 0.012), (1.5, 0.009)])
def test_the_error_bound_of_simulated_models(rate: float, spread: float, said: float) -> None:
    scores, clicked = simulated(rate, spread)
    auc, bound = auc_of(scores, clicked)
    error = abs(auc - float(roc_auc_score(clicked, scores)))
    assert bound < said
    assert error < 0.001
    assert error < bound


SHAPES: dict[str, Callable[[np.random.Generator, int], tuple[F64, F64]]] = {
    "logits": lambda dice, n: (z := dice.normal(-3, 1.5, n), z),
    "low logits": lambda dice, n: (z := dice.normal(-5, 1, n), z),
    "dot products": lambda dice, n: (z := dice.normal(10, 1, n), z - 12),
    "logarithms of probabilities": lambda dice, n: (z := dice.normal(-40, 3, n), z / 2 + 19),
    "BM25": lambda dice, n: (z := dice.gamma(9, 2, n), z / 4 - 6),
    "ratings": lambda dice, n: (z := np.clip(dice.normal(3.6, 0.6, n), 1, 5), 2 * z - 10),
    "cosines": lambda dice, n: (z := dice.normal(0.8, 0.04, n), 40 * z - 34),
    "about a half": lambda dice, n: (z := dice.uniform(0.45, 0.55, n), 40 * z - 22),
    "near 1": lambda dice, n: (z := dice.beta(60, 2, n), 60 * z - 58),
    "a hundred": lambda dice, n: (z := dice.normal(100, 5, n), z / 4 - 27),
    "pCVR": lambda dice, n: (np.exp(z := np.log(1e-4) + 0.8 * dice.standard_normal(n)), z),
}
"""Kinds of scores: and what the log-odds of a click are then."""


@pytest.mark.parametrize("name", SHAPES)
def test_the_auc_of_scores_of_any_scale_is_that_of_sklearn(name: str) -> None:
    dice = np.random.default_rng(7)
    scores, log_odds = SHAPES[name](dice, 1_000_000 if name == "pCVR" else N)
    clicked = dice.random(len(scores)) < 1 / (1 + np.exp(-log_odds))
    auc, bound = auc_of(scores, clicked)
    error = abs(auc - float(roc_auc_score(clicked, scores)))
    assert error < 0.005
    assert error < bound < 0.05


def test_the_bound_says_where_scores_lie_closer_than_bins() -> None:
    dice = np.random.default_rng(7)
    scores = dice.normal(1000, 10, N)
    clicked = dice.random(N) < 1 / (1 + np.exp((1010 - scores) / 8))
    auc, bound = auc_of(scores, clicked)
    assert 0.02 < abs(auc - float(roc_auc_score(clicked, scores))) < bound


def test_a_correlation_needs_scores_that_differ() -> None:
    third = 333_333_333
    square = round(third**2 / 1e9)
    one, of_clicks = 10**9, partial(_correlation, 10**9, 0)
    assert of_clicks(4, 4 * third, 2 * one, 2 * third, 4 * square, 2 * one) is None
    assert of_clicks(2, one, 2 * one, one, one, 2 * one) is None
    assert of_clicks(2, one, one, one, one, one) == 1.0


def test_a_correlation_needs_ratings_that_differ_by_more_than_rounding() -> None:
    third, square = 333_333, 111_111
    of_ratings = partial(_correlation, 10**6, 10**6)
    assert of_ratings(2, 3 * 10**6, 2 * third, third * 3, 5 * 10**6, 2 * square) is None
    assert of_ratings(2, 3 * 10**6, 3 * 10**6, 5 * 10**6, 5 * 10**6, 5 * 10**6) == 1.0


def test_sums_are_those_of_the_families() -> None:
    def of(*families: str) -> tuple[str, ...]:
        return names(parse({"metrics": {"families": families, "thresholds": [0.1, 0.5]}}))

    assert of("traffic", "intervals") == ()
    assert of("calibration") == ("scores.probabilities", "scores.positives", "scores.score")
    assert len(of("scores")) == len(of("calibration", "scores")) == 20
    assert of("scores")[-1] == "scores.true_positives@0.5"
