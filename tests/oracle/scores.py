"""Scores against clicks, impression by impression: what each adds to sums, and what is shown.

Sums are integers of 1e-9, each addend rounded once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from streamer.metrics.score_sums import EDGES
from streamer.settings.model import Settings

from .dimensions import Kept, Segment
from .joining import Joins
from .ranking import rounded
from .shape import Row
from .sink import Sink
from .span import Span
from .values import MAX_RATING

UNIT = 10**9
LEAST = 1e-15
BINS = 10
CLASSES = (
    *("-1", "0", "0.0001", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2"),
    *("0.5", "0.75", "0.9", "0.99", "1", "8", "inf"),
)
Pair = tuple[str, str]
"""Components: numerator and denominator."""


RATING_UNIT = 10**6


class Scored(NamedTuple):
    """An impression with a score, and the ratings that it got."""

    score: float
    clicked: bool
    ratings: tuple[float, ...] = ()

    @property
    def rated(self) -> list[tuple[int, int]]:
        """Score and rating, where both are within the bound of ratings."""
        if abs(self.score) > MAX_RATING:
            return []
        score = rounded(self.score * 1e6)
        return [(score, round(rating * 1e6)) for rating in self.ratings]

    @property
    def is_probability(self) -> bool:
        return 0 <= self.score <= 1

    @property
    def units(self) -> int:
        return rounded(self.score * 1e9)

    @property
    def error(self) -> int:
        return self.units - UNIT * self.clicked

    @property
    def loss(self) -> int:
        p = min(max(self.score, LEAST), 1.0 - LEAST)
        return rounded(-math.log(p if self.clicked else 1.0 - p) * 1e9)


def scored_of(row: Row) -> Scored:
    given = (event.rating for event in row.feedback)
    ratings = tuple(rating for rating in given if rating is not None)
    assert row.shown.score is not None
    return Scored(row.shown.score, row.clicked, ratings)


def square(units: int) -> int:
    """The square of a number of 1e-9, in the same unit: halves go up."""
    return product(units, units, UNIT)


def product(a: int, b: int, unit: int) -> int:
    return math.floor(Fraction(a * b, unit) + Fraction(1, 2))


def threshold_units(text: str) -> int:
    return round(Fraction(text) * UNIT)


def amount(component: str, scored: Scored) -> int:
    """What an impression adds to a sum; only scores that are probabilities add, but to sums of
    ratings."""
    if component.startswith("ratings "):
        of_rating: dict[str, Callable[[int], int]] = {
            "all": lambda error: 1,
            "absolute": abs,
            "squared": lambda error: product(error, error, RATING_UNIT),
        }
        added = of_rating[component.removeprefix("ratings ")]
        return sum(added(score - rating) for score, rating in scored.rated)
    if not scored.is_probability:
        return 0
    kind, _, at = component.removeprefix("scores ").partition("@")
    is_predicted = bool(at) and scored.units >= threshold_units(at)
    of: dict[str, Callable[[], int]] = {
        "all": lambda: 1,
        "clicked": lambda: int(scored.clicked),
        "sum": lambda: scored.units,
        "absolute": lambda: abs(scored.error),
        "squared": lambda: square(scored.error),
        "loss": lambda: scored.loss,
        "predicted": lambda: int(is_predicted),
        "found": lambda: int(is_predicted and scored.clicked),
    }
    return of[kind]()


# Ratios of sums -------------------------------------------------------------------------------


def thresholds(settings: Settings) -> list[str]:
    return [repr(t).removesuffix(".0") for t in settings.metrics.thresholds]


def ratios(settings: Settings) -> dict[str, Pair]:
    """Metric → its components, whatever the families."""
    found = {
        "calibration_ratio": ("scores sum", "scores clicked"),
        "log_loss": ("scores loss", "scores all"),
        "mse": ("scores squared", "scores all"),
        "mae": ("scores absolute", "scores all"),
        "rating_mse": ("ratings squared", "ratings all"),
        "rating_mae": ("ratings absolute", "ratings all"),
    }
    for t in thresholds(settings):
        of = f"scores found@{t}"
        found[f"classifier_precision_ratio@{t}"] = (of, f"scores predicted@{t}")
        found[f"classifier_recall_ratio@{t}"] = (of, "scores clicked")
    return found


def unit_of(metric: str) -> int:
    """How many units of a numerator are 1."""
    if metric.startswith("rating_"):
        return RATING_UNIT
    return 1 if metric.startswith("classifier") else UNIT


def shown_ratios(settings: Settings) -> dict[str, Pair]:
    """Those of the settings' families."""
    return {
        name: pair
        for name, pair in ratios(settings).items()
        if family_of(name) in settings.metrics.families
    }


def family_of(metric: str) -> str:
    return "calibration" if metric == "calibration_ratio" else "scores"


def components(settings: Settings) -> list[str]:
    """Sums that intervals, experiments and alerts need."""
    of = ratios(settings)
    tested = [metric.name for e in settings.experiments for metric in e.metrics]
    watched = [alert.metric for alert in settings.alerts]
    pairs = [*shown_ratios(settings).values(), *(of[m] for m in (*tested, *watched) if m in of)]
    return sorted({component for pair in pairs for component in pair})


# What is shown --------------------------------------------------------------------------------


@dataclass
class ScoreReadings:
    """What is shown of a log's scores."""

    joins: Joins
    kept: Kept
    settings: Settings

    def read(self, out: Sink, span: Span, stream_ms: int) -> None:
        """All series of a window."""
        times = self.settings.attribution.click_ms + self.settings.time.max_lateness_ms
        whole: dict[tuple[Segment, str], list[Scored]] = defaultdict(list)
        for row in self.joins.rows:
            event = row.event
            if row.shown.score is None or not span.covers(event.event_ms):
                continue
            scored = scored_of(row)
            for segment in self.kept.segments(event.dims):
                whole[segment, "provisional"].append(scored)
                if span.is_mature(event.event_ms, times, stream_ms):
                    whole[segment, "mature"].append(scored)
        if "scores" in self.settings.metrics.families:
            self.read_fairness(out, span, stream_ms)
        for (segment, maturity), some in whole.items():
            labels = {"window": span.label, "maturity": maturity, **dict(segment)}
            probable = [scored for scored in some if scored.is_probability]
            if "calibration" in self.settings.metrics.families:
                read_order(out, labels, some)
                out.support("window_probability_impressions", labels, len(probable))
                clicked = sum(scored.clicked for scored in probable)
                out.support("window_probability_clicked", labels, clicked)
            self.read_ratios(out, labels, some)
            if "scores" in self.settings.metrics.families:
                read_classes(out, labels, some)
                read_errors(out, labels, probable)
                read_curve(out, labels, probable)
                read_ratings(out, labels, some)

    def read_fairness(self, out: Sink, span: Span, stream_ms: int) -> None:
        """How far the values of each dimension are apart."""
        wait_ms = self.settings.attribution.click_ms + self.settings.time.max_lateness_ms
        names = self.settings.dimension_names
        for maturity in ("provisional", "mature"):
            scores: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
            for row in self.joins.rows:
                score, at_ms = row.shown.score, row.event.event_ms
                ripe = maturity == "provisional" or span.is_mature(at_ms, wait_ms, stream_ms)
                if score is None or not 0 <= score <= 1 or not span.covers(at_ms) or not ripe:
                    continue
                for name, value in zip(names, self.kept.shown(row.event.dims), strict=True):
                    if value not in ("other", "unknown"):
                        scores[name][value].append(Scored(score, False).units)
            for name, by_value in scores.items():
                means = [Fraction(sum(its), UNIT * len(its)) for its in by_value.values()]
                if len(means) > 1:
                    loss = sum((a - b) ** 2 for a, b in combinations(means, 2))
                    labels = {"window": span.label, "maturity": maturity, "dimension": name}
                    labels |= dict.fromkeys(names, "all")
                    out.put("fairness_loss", labels, float(loss))

    def read_ratios(self, out: Sink, labels: dict[str, str], some: list[Scored]) -> None:
        for metric, pair in shown_ratios(self.settings).items():
            top, bottom = (sum(amount(component, s) for s in some) for component in pair)
            name, _, threshold = metric.partition("@")
            of = {**labels, "threshold": threshold} if threshold else labels
            out.ratio(name, of, top, bottom * unit_of(metric))
            if metric.endswith("mse") and bottom:
                root = math.sqrt(Fraction(top, bottom * unit_of(metric)))
                out.put(metric.replace("mse", "rmse"), of, root)


def read_order(out: Sink, labels: dict[str, str], some: list[Scored]) -> None:
    """AUC from bins: pairs (clicked, other), bin by bin."""
    out.support("window_scored_impressions", labels, len(some))
    clicked = Counter(bisect_right(EDGES, s.score) for s in some if s.clicked)
    others = Counter(bisect_right(EDGES, s.score) for s in some if not s.clicked)
    pairs = clicked.total() * others.total()
    won = sum(n * m for a, n in clicked.items() for b, m in others.items() if a > b)
    tied = sum(n * others[a] for a, n in clicked.items())
    out.ratio("auc_ratio", labels, won + Fraction(tied, 2), pairs)
    out.ratio("auc_error_ratio", labels, Fraction(tied, 2), pairs)


def read_classes(out: Sink, labels: dict[str, str], some: list[Scored]) -> None:
    found = Counter(next(c for c in CLASSES if s.score < float(c)) for s in some)
    for name, n in found.items():
        out.put("window_score_impressions", {**labels, "upto": name}, n)


def read_errors(out: Sink, labels: dict[str, str], some: list[Scored]) -> None:
    n, clicked = len(some), sum(s.clicked for s in some)
    loss = sum(s.loss for s in some)
    if n:
        out.put("log_likelihood", labels, -loss / UNIT)
        bins = by_bin(some).values()
        apart = sum(abs(sum(s.error for s in its)) for its in bins)
        out.put("expected_calibration_error", labels, float(Fraction(apart, UNIT * n)))
    if 0 < clicked < n:
        shares = (clicked / n, 1 - clicked / n)
        entropy = -sum(p * math.log(p) for p in shares)
        out.put("normalized_entropy", labels, loss / UNIT / n / entropy)
        r = correlation(some)
        if r is not None:
            out.put("pearson_r", labels, r)


def correlation(some: list[Scored]) -> float | None:
    """Of scores and clicks."""
    return pearson([(s.units, UNIT * s.clicked) for s in some], UNIT)


def pearson(pairs: list[tuple[int, int]], unit: int) -> float | None:
    """By the definition; None where a variance may come of rounding alone, which moves no 0 or
    1."""
    n = len(pairs)
    mean_x, mean_y = (Fraction(sum(column), n) for column in zip(*pairs, strict=True))
    variances = []
    for column, mean in zip(zip(*pairs, strict=True), (mean_x, mean_y), strict=True):
        squares = sum(product(value, value, unit) for value in column)
        variance = Fraction(squares * unit, n) - mean**2
        is_exact = set(column) <= {0, unit}
        if variance <= (0 if is_exact else Fraction(unit, 2)):
            return None
        variances.append(variance)
    products = Fraction(sum(product(x, y, unit) for x, y in pairs) * unit, n)
    covariance = products - mean_x * mean_y
    size = math.sqrt(covariance**2 / (variances[0] * variances[1]))
    return math.copysign(min(size, 1.0), covariance)


def read_ratings(out: Sink, labels: dict[str, str], some: list[Scored]) -> None:
    pairs = [pair for scored in some for pair in scored.rated]
    out.support("window_ratings", labels, len(pairs))
    r = pearson(pairs, RATING_UNIT) if pairs else None
    if r is not None:
        out.put("rating_pearson_r", labels, r)


def by_bin(some: list[Scored]) -> dict[int, list[Scored]]:
    """Ten bins of equal width, called 1 to 10; 1 is in the last one."""
    found: dict[int, list[Scored]] = defaultdict(list)
    for scored in some:
        found[min(scored.units * BINS // UNIT + 1, BINS)].append(scored)
    return found


def read_curve(out: Sink, labels: dict[str, str], some: list[Scored]) -> None:
    for number, its in by_bin(some).items():
        of = {**labels, "bin": f"{number / 10:g}"}
        out.put("window_calibration_impressions", of, len(its))
        score = sum(s.units for s in its)
        out.ratio("calibration_predicted_ratio", of, score, UNIT * len(its))
        out.ratio("calibration_observed_ratio", of, sum(s.clicked for s in its), len(its))


def added(joins: Joins, settings: Settings) -> Iterator[tuple[Row, str, int]]:
    """(row, component, amount) of what intervals, experiments and alerts need."""
    wanted = components(settings)
    for row in joins.rows if wanted else ():
        if row.shown.score is not None:
            scored = scored_of(row)
            for component in wanted:
                if units := amount(component, scored):
                    yield row, component, units
