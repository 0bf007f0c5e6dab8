"""How a metric is declared: a function of window sums, with what the documentation needs.

A metric yields ``Series``: extra labels and one value a segment, NaN or masked where it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from streamer.batch import I64, Bools
from streamer.engine.cells import Deltas
from streamer.engine.facts import Fact
from streamer.engine.integers import joined
from streamer.engine.layout import Layout, Stat

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one label set (beyond window and dimensions), a row for each segment."""

    labels: Mapping[str, str]
    values: Values
    present: Bools


class Sums(Protocol):
    """Sums of a window (or of the totals), one row for each segment shown."""

    def __call__(self, name: str) -> I64:
        """A statistic: (segments,) or (segments, width)."""
        ...

    def overall(self, name: str) -> I64:
        """The statistic over all segments: () or (width,)."""
        ...

    def users(self, stat: int) -> I64:
        """A statistic of ``engine.user_sums``, scaled to all users: (segments,)."""
        ...

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        """Over those panes only that are mature for the horizon; None where there is none."""
        ...

    @property
    def memo(self) -> dict[str, Any]:
        """What several metrics are made of."""
        ...

    @property
    def user_sample_ratio(self) -> float:
        """Share of the users that statistics of users are made of."""
        ...

    @property
    def settings(self) -> Any: ...


Formula = Callable[[Sums], Iterator[Series]]


@dataclass(frozen=True)
class Metric:
    """A metric: ``name`` without prefix; ``kind`` counter or gauge; ``scope`` window or total."""

    name: str
    kind: str
    scope: str
    formula: str
    unit: str
    empty: str
    source: str
    doc: str
    labels: tuple[str, ...]
    series: Formula


@dataclass(frozen=True)
class Family:
    """Metrics that share statistics: what is added for a fact, and what is read from the sums."""

    name: str
    stats: Callable[[Any], tuple[Stat, ...]]
    collect: Callable[[Any, Fact, Layout, Deltas], None]
    metrics: tuple[Metric, ...]


class Declarations:
    """Collects the metrics of one module."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []

    def __call__(
        self,
        name: str,
        *,
        formula: str,
        unit: str,
        empty: str,
        source: str = "",
        labels: tuple[str, ...] = (),
        scope: str = "window",
    ) -> Callable[[Formula], Formula]:
        """Declare the decorated function as a metric."""

        def declare(series: Formula) -> Formula:
            kind = "counter" if scope == "total" else "gauge"
            doc = " ".join((series.__doc__ or "").split())
            self.metrics.append(
                Metric(name, kind, scope, formula, unit, empty, source, doc, labels, series)
            )
            return series

        return declare


def ratio(above: Values, below: Values, **labels: str) -> Series:
    """above / below, absent where below is 0."""
    present = below != 0
    values = np.divide(above, below, out=np.zeros(len(below)), where=present)
    return Series(labels, values, present)


def count(values: I64, present: Bools | None = None, **labels: str) -> Series:
    """A count, absent where it is 0 (or where ``present`` is false)."""
    return Series(labels, values, values != 0 if present is None else present)


def money(high: I64, low: I64) -> Values:
    """Currency units of a sum of micros in two limbs; exact integers until the division."""
    return np.array([micros / 1_000_000 for micros in joined(high, low)], np.float64)
