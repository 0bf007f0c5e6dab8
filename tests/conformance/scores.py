"""Pooled metrics of scores beside scikit-learn and SciPy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import numpy as np
from scipy import stats
from sklearn import calibration, metrics

from streamer.metrics.score_sums import EDGES
from streamer.settings.load import parse
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from tests.conformance.cases import START_MS
from tests.conformance.comparisons import SCIPY, SKLEARN

THRESHOLD = 0.2
N = 4000
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Impressions:
    """Scores of impressions, which were clicked, and their ratings; ``then``: scores of the same
    hour a day before."""

    name: str
    score: list[float]
    clicked: list[bool]
    then: list[float]
    rating: list[float]

    @property
    def probable(self) -> Impressions:
        """Those whose score is a probability."""
        some = [(s, c) for s, c in zip(self.score, self.clicked, strict=True) if 0 <= s <= 1]
        return replace(self, score=[s for s, _ in some], clicked=[c for _, c in some])


@dataclass(frozen=True)
class Comparison:
    """``within``: what may bound the difference beside rounding, a metric's name."""

    metric: str
    package: str
    function: str
    value: Callable[[Impressions], float]
    labels: tuple[tuple[str, str], ...] = ()
    within: str = ""
    has_maturity: bool = True


def _predicted(of: Impressions) -> list[bool]:
    return [score >= THRESHOLD for score in of.score]


def _mean_entropy(of: Impressions) -> float:
    share = np.full(len(of.score), np.mean(of.clicked))
    return float(metrics.log_loss(of.clicked, of.score) / metrics.log_loss(of.clicked, share))


def _curve(number: int, part: int) -> Callable[[Impressions], float]:
    """A point of the curve: bins that have impressions only are in scikit-learn's."""

    def value(of: Impressions) -> float:
        curve = calibration.calibration_curve(of.clicked, of.score, n_bins=10)
        filled = sorted({min(int(score * 10), 9) for score in of.score})
        return float(curve[part][filled.index(number)])

    return value


def _entropies(of: Impressions) -> float:
    """Both divergences of the shares of eleven classes: tenths of the day before, and beyond."""
    now, then = (np.digitize(scores, EDGES) for scores in (of.score, of.then))
    middle = [(np.sum(then < b) + np.sum(then <= b)) / 2 for b in range(len(EDGES) + 1)]
    tenth = np.floor(10 * np.array(middle) / len(then)).astype(int)
    p, q = (np.bincount(tenth[bins], minlength=11) + 0.5 for bins in (now, then))
    return float(stats.entropy(p, q) + stats.entropy(q, p))


_AT = (("threshold", f"{THRESHOLD:g}"),)
COMPARISONS = (
    Comparison(
        "auc_ratio",
        SKLEARN,
        "`roc_auc_score`",
        lambda of: float(metrics.roc_auc_score(of.clicked, of.score)),
        within="auc_error_ratio",
    ),
    Comparison(
        "auc_ratio",
        SKLEARN,
        "`roc_auc_score` of the bins",
        lambda of: float(metrics.roc_auc_score(of.clicked, np.digitize(of.score, EDGES))),
    ),
    Comparison(
        *("log_loss", SKLEARN, "`log_loss`"),
        lambda of: float(metrics.log_loss(of.clicked, of.score)),
    ),
    Comparison(
        *("normalized_entropy", SKLEARN, "`log_loss`, quotient of two"),
        _mean_entropy,
    ),
    Comparison(
        *("log_likelihood", SKLEARN, "−`log_loss(normalize=False)`"),
        lambda of: -float(metrics.log_loss(of.clicked, of.score, normalize=False)),
    ),
    Comparison(
        *("mse", SKLEARN, "`brier_score_loss`"),
        lambda of: float(metrics.brier_score_loss(of.clicked, of.score)),
    ),
    Comparison(
        *("rmse", SKLEARN, "`root_mean_squared_error`"),
        lambda of: float(metrics.root_mean_squared_error(of.clicked, of.score)),
    ),
    Comparison(
        *("mae", SKLEARN, "`mean_absolute_error`"),
        lambda of: float(metrics.mean_absolute_error(of.clicked, of.score)),
    ),
    Comparison(
        *("classifier_precision_ratio", SKLEARN, "`precision_score`"),
        lambda of: float(metrics.precision_score(of.clicked, _predicted(of))),
        _AT,
    ),
    Comparison(
        *("classifier_recall_ratio", SKLEARN, "`recall_score`"),
        lambda of: float(metrics.recall_score(of.clicked, _predicted(of))),
        _AT,
    ),
    Comparison(
        *("calibration_observed_ratio", SKLEARN, "`calibration_curve`, first bin"),
        _curve(0, 0),
        (("bin", "0.1"),),
    ),
    Comparison(
        *("calibration_predicted_ratio", SKLEARN, "`calibration_curve`, first bin"),
        _curve(0, 1),
        (("bin", "0.1"),),
    ),
    Comparison(
        *("pearson_r", SCIPY, "`pearsonr`"),
        lambda of: float(stats.pearsonr(of.score, of.clicked).statistic),
    ),
    Comparison(
        *("rating_mse", SKLEARN, "`mean_squared_error` of ratings"),
        lambda of: float(metrics.mean_squared_error(of.rating, of.score)),
    ),
    Comparison(
        *("rating_rmse", SKLEARN, "`root_mean_squared_error` of ratings"),
        lambda of: float(metrics.root_mean_squared_error(of.rating, of.score)),
    ),
    Comparison(
        *("rating_mae", SKLEARN, "`mean_absolute_error` of ratings"),
        lambda of: float(metrics.mean_absolute_error(of.rating, of.score)),
    ),
    Comparison(
        *("rating_pearson_r", SCIPY, "`pearsonr` of ratings"),
        lambda of: float(stats.pearsonr(of.score, of.rating).statistic),
    ),
    Comparison(
        *("score_drift", SCIPY, "`entropy` to and fro, of tenths"),
        _entropies,
        has_maturity=False,
    ),
)


# What comes of it -----------------------------------------------------------------------------


@cache
def cases() -> tuple[Impressions, ...]:
    """Rare clicks that are predicted well, even odds, and raw scores beside probabilities."""
    return (
        _case("rare", lambda dice: 1 / (1 + np.exp(3 - dice.gauss(0, 1)))),
        _case("even", lambda dice: dice.random()),
        _case("raw", lambda dice: dice.gauss(0, 2) if dice.random() < 0.5 else dice.random() ** 2),
    )


def _case(name: str, draw: Callable[[Random], float]) -> Impressions:
    dice = Random(name)
    score = [round(float(draw(dice)), 7) for _ in range(N)]
    clicked = [dice.random() < min(max(s, 0.02), 0.98) for s in score]
    then = [round(0.05 + 0.9 * float(draw(dice)), 7) for _ in range(N // 2)]
    rating = [round(2 * s + dice.gauss(1, 1), 3) for s in score]
    return Impressions(name, score, clicked, then, rating)


def _log(of: Impressions) -> Iterator[Line]:
    """An earlier one, impressions of the day before, those of the day one by one, the clicks."""
    first_ms = START_MS - DAY_MS - 7_200_000  # the day before is compared from its beginning on
    yield _line("impressions", first_ms, {"type": "impression", "item_id": "first"})
    for number, score in enumerate(of.then):
        event = {"type": "impression", "item_id": f"then{number}", "score": score}
        yield _line("impressions", START_MS - DAY_MS + number, event)
    for number, score in enumerate(of.score):
        event = {"type": "impression", "item_id": f"i{number}", "score": score}
        yield _line("impressions", START_MS + number, event)
    for number in (n for n, is_clicked in enumerate(of.clicked) if is_clicked):
        yield _line("clicks", START_MS + N + number, {"type": "click", "item_id": f"i{number}"})
    for number, rating in enumerate(of.rating):
        event = {"type": "click", "feedback": "rate", "item_id": f"i{number}", "rating": rating}
        yield _line("clicks", START_MS + 2 * N + number, event)


def _line(kind: str, ms: int, event: dict[str, object]) -> Line:
    return kind, ms, json.dumps(event | {"ts": ms, "user_id": "u"}).encode()


@cache
def readings(number: int) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What streamer reads of a case, by name and labels."""
    families = ["calibration", "scores"]
    feedback = {"click": 1, "rate": 0}
    settings = {"families": families, "thresholds": [THRESHOLD], "feedback": feedback}
    windows = {"lengths": ["1h"], "day_before": ["1h"]}
    replay = Replay(parse({"dimensions": [], "windows": windows, "metrics": settings}))
    replay.feed(list(_log(cases()[number])))
    replay.finish()
    return {
        (reading.name.removeprefix("streamer_"), frozenset(reading.labels.items())): reading.value
        for reading in replay.readout().readings
    }


def ours(
    number: int,
    metric: str,
    labels: tuple[tuple[str, str], ...] = (),
    has_maturity: bool = True,
) -> float:
    """A reading of a case."""
    key = {"window": "1h"} | dict(labels) | ({"maturity": "provisional"} if has_maturity else {})
    return readings(number)[metric, frozenset(key.items())]


@dataclass(frozen=True)
class Found:
    """Values of one case; ``bound``: by how much they may differ, 0 where by rounding alone."""

    case: str
    ours: float
    theirs: float
    bound: float

    @property
    def apart(self) -> float:
        return abs(self.ours - self.theirs)


def found(comparison: Comparison) -> Iterator[Found]:
    """What comes of every case."""
    for number, case in enumerate(cases()):
        has_any = comparison.metric.startswith(("auc_ratio", "score_drift", "rating_"))
        of = case if has_any else case.probable
        bound = ours(number, comparison.within) if comparison.within else 0.0
        bound = 1e-6 if comparison.metric.startswith("rating_") else bound  # their unit
        value = ours(number, comparison.metric, comparison.labels, comparison.has_maturity)
        yield Found(case.name, value, comparison.value(of), bound)
