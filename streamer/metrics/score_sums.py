"""What the core adds up over impressions with a score, and the bins that it counts them in.

Sums and curve are over *probabilities*, scores from 0 to 1; bins take every score. An impression is
*clicked* when a click is attributed to it. Amounts are whole numbers of 1e-9, each rounded once.
Ratings have sums of their own, in whole numbers of 1e-6.
"""

from __future__ import annotations

from streamer.metrics.layout import Stat
from streamer.metrics.sums import UNITS, named
from streamer.settings import limits
from streamer.settings.model import Settings

UNIT = UNITS["scores.score"]
"""Units of a score, an error or a loss that is 1."""
BINS, CURVE = "score_bins", "score_curve"
CURVE_BINS = 10
"""Bins of the calibration curve: of equal width, from 0 to 1; a score on an edge is in the upper
one."""
_FOR_CALIBRATION = ("probabilities", "positives", "score")
_FOR_SCORES = (
    *("score_of_positives", "score_square", "absolute_error", "squared_error", "log_loss"),
)
_BY_THRESHOLD = ("predicted", "true_positives")
_FOR_RATINGS = (
    *("ratings", "score", "rating", "product", "score_square", "rating_square"),
    *("absolute_error", "squared_error"),
)
_FOR_CURVE = ("probabilities", "positives", "score")
_LARGEST_LOSS = 35 * UNIT
"""Of a click that was predicted with a probability of 1e-15 or less."""
RATING_UNIT = UNITS["ratings.rating"]
"""Units of a rating that is 1."""
_LARGEST_OF_RATINGS = round(4 * limits.MAX_RATING**2) * RATING_UNIT
"""The square of the largest error."""


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
    """The name of a sum over scores.

    >>> name_of("log_loss"), name_of("predicted", 0.5)
    ('scores.log_loss', 'scores.predicted@0.5')
    """
    base = f"scores.{kind}"
    return base if threshold is None else named(base, f"{threshold:.9g}")


def names(settings: Settings) -> tuple[str, ...]:
    """The sums that the settings' families need."""
    if "scores" in settings.metrics.families:
        at = settings.metrics.thresholds
        of_thresholds = [name_of(kind, t) for t in at for kind in _BY_THRESHOLD]
        of_ratings = (f"ratings.{kind}" for kind in _FOR_RATINGS)
        of_scores = map(name_of, (*_FOR_CALIBRATION, *_FOR_SCORES))
        return (*of_scores, *of_ratings, *of_thresholds)
    if "calibration" in settings.metrics.families:
        return tuple(map(name_of, _FOR_CALIBRATION))
    return ()


def stats(settings: Settings) -> tuple[Stat, ...]:
    """The statistics of both families, as far as the settings need them: sums; impressions by bin,
    clicked ones by bin; impressions, clicked ones and scores by bin of the calibration curve."""
    found = [Stat(name, _largest(name)) for name in names(settings)]
    by_score = {"score": EDGES}
    bins = (("impressions", by_score), ("clicked", by_score))
    found.append(Stat(BINS, width=2 * len(EDGES) + 2, of=bins))
    if "scores" in settings.metrics.families:
        by_probability = {"probability": CURVE_BINS}
        curve = tuple((name_of(each), by_probability) for each in _FOR_CURVE)
        found.append(Stat(CURVE, largest=UNIT, width=len(curve) * CURVE_BINS, of=curve))
    return tuple(found)


def _largest(name: str) -> int:
    base = name.partition("@")[0]
    if base.startswith("ratings."):
        return _LARGEST_OF_RATINGS
    return _LARGEST_LOSS if base == name_of("log_loss") else UNITS[base]
