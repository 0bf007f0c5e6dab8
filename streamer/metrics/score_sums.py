"""What the core adds up over impressions with a score, and the bins that it counts them in.

Sums and curve are over *probabilities*, scores from 0 to 1; bins take every score. An impression is
*clicked* when a click is attributed to it. Amounts are whole numbers of 1e-9, each rounded once.
"""

from __future__ import annotations

from typing import Any

from streamer.metrics.layout import Stat
from streamer.metrics.named_sums import NamedSums
from streamer.settings import limits
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


def _octaves(first: int, stop: int) -> list[float]:
    """Lower edges of bins of magnitudes from 2^first to 2^stop: evenly spaced in each octave.

    >>> _octaves(-4, -3)[:3], len(_octaves(-4, -3)), len(_octaves(-3, -2))
    ([0.0625, 0.0703125, 0.078125], 8, 32)
    """
    edges = []
    for octave in range(first, stop):
        is_fine = octave in range(*limits.FINE_SCORE_OCTAVES)
        bins = limits.SCORE_BINS_AN_OCTAVE[is_fine]
        edges += [2.0**octave * (1 + i / bins) for i in range(bins)]
    return edges


def _edges() -> tuple[float, ...]:
    first, stop = limits.SCORE_OCTAVES
    negative = [-edge for edge in _octaves(first, stop)]
    up_to_half, from_half = _octaves(first, -1), [0.5]
    near_one = [1 - distance for distance in _octaves(-10, -1)]
    return tuple(
        sorted({*negative, *up_to_half, *from_half, *near_one, *_octaves(0, stop), *CLASSES})
    )


CLASSES = (
    *(-1.0, 0.0, 0.0001, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(0.75, 0.9, 0.99, 1.0, 8.0),
)
"""Upper bounds of the classes of the score histogram, which are edges of bins; one more class is
beyond them all."""
EDGES = _edges()
"""Inner edges of the bins of scores: a score on an edge is in the bin above it. Bins are narrow
relative to the score, whatever its scale: by sign, exponent and the first bits of the mantissa; and
between 1/2 and 1 relative to the distance from 1. Stored panes are counted by them."""


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
