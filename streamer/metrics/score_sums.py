"""What the core adds up over impressions with a score, and the bins that it counts them in.

Sums and curve are over *probabilities*, scores from 0 to 1; bins take every score. An impression is
*clicked* when a click is attributed to it. Amounts are whole numbers of 1e-9, each rounded once.
"""

from __future__ import annotations

from typing import Any

from streamer.metrics.layout import Stat
from streamer.metrics.named_sums import NamedSums
from streamer.settings.model import Settings

UNIT = 1_000_000_000
"""Units of a score, an error or a loss that is 1."""
PREFIX = "scores."
"""How the names of these sums begin."""
BINS, CURVE = "score_bins", "score_curve"
CURVE_BINS = 10
"""Bins of the calibration curve: of equal width, from 0 to 1; a score on an edge is in the upper
one."""
_FOR_CALIBRATION = ("probabilities", "positives", "score")
_FOR_SCORES = (
    *("score_of_positives", "score_square", "absolute_error", "squared_error", "log_loss"),
)
_BY_THRESHOLD = ("predicted", "true_positives")
_COUNTS = ("probabilities", "positives", *_BY_THRESHOLD)
_LARGEST_LOSS = 35 * UNIT
"""Of a click that was predicted with a probability of 1e-15 or less."""


def _steps(per_decade: int, first: int, stop: int) -> list[float]:
    """Powers of ten, evenly spaced by their logarithm and rounded to two digits.

    >>> _steps(10, -3, 1)
    [0.5, 0.63, 0.79, 1.0]
    """
    return [float(f"{10 ** (k / per_decade):.2g}") for k in range(first, stop)]


_SMALL = (*_steps(5, -25, -20), *_steps(10, -40, -30), *_steps(30, -90, -8))
"""From 0.00001, from 0.0001, and from 0.001 up to 1/2."""
_LARGE = tuple(round(1 - x, 4) for x in (*_steps(15, -15, -4), *_steps(5, -15, -5)))
"""The same seen from 1, with wider steps: probabilities of clicks are small."""
_BEYOND = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0)
EDGES = tuple(sorted((*_SMALL, *_LARGE, *_BEYOND)))
"""Inner edges of the 128 bins of scores: a score on an edge is in the bin above it. From 0.001 to
1/2 neighbours differ by 8 %. Stored panes are counted by them."""


def name_of(kind: str, threshold: float | None = None) -> str:
    """The name of a sum: as a statistic, and as a component of experiments and alerts.

    >>> name_of("log_loss"), name_of("predicted", 0.5)
    ('scores.log_loss', 'scores.predicted@0.5')
    """
    return PREFIX + kind + ("" if threshold is None else f"@{threshold:.9g}")


def core_name(name: str, settings: Settings) -> Any:
    """What the core calls the sum of this name.

    >>> core_name("scores.log_loss", Settings()), core_name("scores.predicted@0.5", Settings())
    ('log_loss', {'predicted': 500000000})
    """
    kind, _, threshold = name.removeprefix(PREFIX).partition("@")
    return {kind: round(float(threshold) * UNIT)} if threshold else kind


def names(settings: Settings) -> tuple[str, ...]:
    """The sums that the settings' families need, in the order that they have by group of users."""
    if "scores" in settings.metrics.families:
        at = settings.metrics.thresholds
        of_thresholds = [name_of(kind, t) for t in at for kind in _BY_THRESHOLD]
        return (*map(name_of, (*_FOR_CALIBRATION, *_FOR_SCORES)), *of_thresholds)
    if "calibration" in settings.metrics.families:
        return tuple(map(name_of, _FOR_CALIBRATION))
    return ()


SUMS = NamedSums(PREFIX, "scores", "scores_by_user_group", names, core_name)


def stats(settings: Settings) -> tuple[Stat, ...]:
    """The statistics of both families, as far as the settings need them."""
    found = [_stat(name) for name in names(settings)]
    found.append(Stat(BINS, "impressions by bin, clicked ones by bin", width=2 * len(EDGES) + 2))
    if "scores" in settings.metrics.families:
        unit = "impressions, clicked ones and scores in 1e-9 by bin"
        found.append(Stat(CURVE, unit, largest=UNIT, width=3 * CURVE_BINS))
    return (*found, *SUMS.group_stats(settings, _LARGEST_LOSS))


def _stat(name: str) -> Stat:
    kind = name.removeprefix(PREFIX).partition("@")[0]
    if kind in _COUNTS:
        return Stat(name, "impressions")
    return Stat(name, "1e-9", largest=_LARGEST_LOSS if kind == "log_loss" else UNIT)


def core_spec(settings: Settings) -> dict[str, Any]:
    """The core's spec of sums and bins."""
    return {"sums": SUMS.core_spec(settings), "edges": EDGES}
