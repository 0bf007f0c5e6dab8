"""Click-through rates by position, and clicks over the clicks that positions explain.

The statistics are those of ``traffic``; COEC is clicks over expected clicks (Zhang and Jones 2007).

Two requests show two items each; both times the upper one is clicked:

    >>> from streamer.testing import value_of
    >>> shown = [{"item_id": item, "position": i} for i, item in enumerate("ab", 1)]
    >>> events = [{"type": "impression", "request_id": r, "items": shown} for r in "rs"]
    >>> clicked = {"type": "click", "item_id": "a", "position": 1}
    >>> events += [{**clicked, "request_id": r} for r in "rs"]
    >>> value_of(events, "ctr_position_ratio", position="1")
    1.0
    >>> value_of(events, "coec_ratio")  # overall positions explain all of it
    1.0
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamer.encoding.arrays import F64, I64
from streamer.metrics.definition import Declarations, Series, count, ratio
from streamer.metrics.reads import Overall, Statistic
from streamer.settings import limits

POSITIONS = limits.POSITION_CLASSES + 2
"""Classes of positions: 0 missing, 1…50, and one for all that are deeper."""


def by_position_of(name: str) -> str:
    """The statistic that has a sum by position."""
    return f"{name}_by_position"


_CLICKS, _SHOWN = Statistic(by_position_of("clicks")), Statistic(by_position_of("impressions"))
_OF_ALL = Overall(_CLICKS.name), Overall(_SHOWN.name)
metric = Declarations()


def _positions() -> Iterator[tuple[int, str]]:
    for i in range(1, POSITIONS):
        yield i, str(i) if i <= limits.POSITION_CLASSES else "other"


@metric(
    "ctr_position_ratio",
    formula="clicks at the position / impressions at the position",
    unit="ratio",
    empty="absent without impressions there",
    labels=("position",),
    support="window_position_impressions",
    reads=(_CLICKS, _SHOWN),
)
def ctr_position(clicks: I64, shown: I64) -> Iterator[Series]:
    """Click-through rate by position (1 to 50, deeper ones together)."""
    for i, position in _positions():
        yield ratio(clicks[:, i], shown[:, i], position=position)


def _counts(counted: I64) -> Iterator[Series]:
    for i, position in _positions():
        yield count(counted[:, i], position=position)


metric.count(
    *("window_position_impressions", "events", "impressions at the position"),
    "Support of ctr_position_ratio.",
    *((_SHOWN,), _counts),
    labels=("position",),
)
metric.count(
    *("window_position_clicks", "events", "clicks at the position"),
    "Clicks by position: their own, or that of the impression they joined.",
    *((_CLICKS,), _counts),
    labels=("position",),
)


def _expected_clicks(clicks: I64, shown: I64, here: I64) -> F64:
    """Clicks expected if every position had the click rate it has over all segments.

    Summed in the order of positions, so that the same integers give the same float.
    """
    expected = np.zeros(len(here))
    for i in range(1, POSITIONS):
        if shown[i]:
            expected = expected + here[:, i] * (clicks[i] / shown[i])
    return expected


@metric(
    "coec_ratio",
    formula="clicks / clicks expected from the overall CTR of each position",
    unit="ratio",
    empty="absent without expected clicks",
    reads=(_CLICKS, *_OF_ALL, _SHOWN),
)
def coec(clicks: I64, *of_expected: I64) -> Iterator[Series]:
    """Clicks over expected clicks: click rate with the effect of position taken out."""
    yield ratio(clicks[:, 1:].sum(axis=1), _expected_clicks(*of_expected))


@metric(
    "window_coec_expected_clicks",
    formula="sum over positions of impressions * overall CTR",
    unit="clicks",
    reads=(*_OF_ALL, _SHOWN),
)
def coec_expected(*of_expected: I64) -> Iterator[Series]:
    """Denominator of coec_ratio."""
    expected = _expected_clicks(*of_expected)
    yield Series({}, expected, expected != 0)


METRICS = tuple(metric.series)
