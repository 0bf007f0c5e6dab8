"""The bins of scores, and how far an AUC made of them can be off."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamer.encoding.arrays import F64
from streamer.metrics.calibration import _pairs
from streamer.metrics.score_sums import EDGES, names
from streamer.metrics.scores import CLASSES, _correlation
from streamer.settings.load import parse

N = 200_000


def test_there_are_128_bins() -> None:
    assert len(EDGES) == 127
    assert all(low < high for low, high in pairwise(EDGES))
    fine = [edge for edge in EDGES if 0.001 <= edge <= 0.5]
    assert len(fine) == 82
    assert all(1.04 < high / low < 1.12 for low, high in pairwise(fine))
    assert set(CLASSES) <= set(EDGES)


def simulated(rate: float, spread: float) -> tuple[F64, F64]:
    """Calibrated scores whose log-odds are normal, and clicks."""
    dice = np.random.default_rng(5)
    log_odds = np.log(rate / (1 - rate)) + spread * dice.standard_normal(N)
    scores = 1 / (1 + np.exp(-log_odds))
    return scores, dice.random(N) < scores


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1])
@pytest.mark.parametrize(("spread", "said"), [(0.5, 0.025), (1.0, 0.012), (1.5, 0.008)])
def test_the_error_bound_of_simulated_models(rate: float, spread: float, said: float) -> None:
    scores, clicked = simulated(rate, spread)
    bins = np.digitize(scores, EDGES)
    counts = [np.bincount(some, minlength=len(EDGES) + 1) for some in (bins, bins[clicked])]
    pairs = _pairs(np.concatenate(counts)[None, :])
    auc = float(((pairs.won + pairs.tied / 2) / pairs.all)[0])
    bound = float((pairs.tied / 2 / pairs.all)[0])
    assert bound < said
    error = abs(auc - float(roc_auc_score(clicked, scores)))
    assert error < 0.001
    assert error < bound


def test_a_correlation_needs_scores_that_differ() -> None:
    third = 333_333_333
    square = round(third**2 / 1e9)
    assert _correlation(4, 2, 4 * third, 2 * third, 4 * square) is None
    assert _correlation(2, 2, 10**9, 10**9, 10**9) is None
    assert _correlation(2, 1, 10**9, 10**9, 10**9) == 1.0


def test_sums_are_those_of_the_families() -> None:
    def of(*families: str) -> tuple[str, ...]:
        return names(parse({"metrics": {"families": families, "thresholds": [0.1, 0.5]}}))

    assert of("traffic", "intervals") == ()
    assert of("calibration") == ("scores.probabilities", "scores.positives", "scores.score")
    assert len(of("scores")) == len(of("calibration", "scores")) == 12
    assert of("scores")[-1] == "scores.true_positives@0.5"
