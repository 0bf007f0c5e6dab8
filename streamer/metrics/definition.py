"""How a metric is declared: a function of window sums, with what the documentation needs.

A metric yields ``Series``: extra labels and one value a segment, NaN or masked where it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from streamer.encoding.arrays import I64, Bools
from streamer.encoding.limbs import joined
from streamer.metrics.item_counts import ItemTable
from streamer.metrics.layout import Layout, Stat
from streamer.settings import limits

Values = npt.NDArray[Any]
DIMENSIONS = "<dimension>"
"""Among the labels of a series: one for each dimension."""
Form = Literal["percent", "seconds", "number"]
"""How values of a metric are written."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one label set (beyond window and dimensions), a row for each segment. ``suffix``:
    which series of a histogram it is."""

    labels: Mapping[str, str]
    values: Values
    present: Bools
    suffix: str = ""


class Sums(Protocol):
    """Sums of a window (or of the totals), one row for each segment shown."""

    def __call__(self, name: str) -> I64:
        """A statistic: (segments,) or (segments, width)."""
        ...

    def overall(self, name: str) -> I64:
        """The statistic over all segments: () or (width,)."""
        ...

    def users(self, stat: int) -> I64:
        """A statistic of ``metrics.user_sums``, scaled to all users: (segments,)."""
        ...

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        """Over those panes only that are mature for the horizon; None where there is none."""
        ...

    def part(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        """Some of the integers of a wide statistic: (segments, …); over mature panes only where a
        horizon is given, None where there is none."""
        ...

    def day_before(self, name: str, horizon_ms: int | None) -> I64 | None:
        """The same window a day before, of those panes that are mature now for a horizon (None: of
        all); None where it is not kept. Only what ``Catalogue.day_before`` names is there."""
        ...

    def by_value(self, name: str, horizon_ms: int | None) -> Mapping[str, I64]:
        """Of the total: each dimension, and a statistic by those of its values that are kept;
        over mature panes only where a horizon is given. Nothing in other rollups."""
        ...

    def items(
        self, places: Sequence[int], horizon_ms: int | None = None
    ) -> Mapping[int, ItemTable]:
        """Row → the items of its segment, to read these counts of; over mature panes only where a
        horizon is given. Nothing where they are not counted by these dimensions, or no pane is
        mature."""
        ...

    @property
    def rows(self) -> Sequence[Any]:
        """The segments, of which each has a row."""
        ...

    @property
    def all_items(self) -> ItemTable | None:
        """All items of the longest window; None where they are not counted."""
        ...

    def users_of_longest(self, stat: int) -> I64:
        """``users`` over the longest window, of the same segments."""
        ...

    @property
    def memo(self) -> dict[str, Any]:
        """What several metrics are made of."""
        ...

    @property
    def since_ms(self) -> int:
        """Since when everything counts that was read; 0: always."""
        ...

    def note(self, since_ms: int) -> None:
        """Something was read that counts since then."""
        ...

    def apart(self) -> AbstractContextManager[None]:
        """What is read within has no part in what is yielded afterwards."""
        ...

    @property
    def user_sample_ratio(self) -> float:
        """Share of the users that statistics of users are made of."""
        ...

    @property
    def layout(self) -> Layout:
        """Where statistics stand, of which these are the sums."""
        ...

    @property
    def settings(self) -> Any:
        """The settings (``Settings``): feedback kinds, cut-offs, conventions."""
        ...

    @property
    def composites(self) -> Mapping[str, Sequence[Any]]:
        """Composite → its parts: see ``composite_parts.Part``."""
        ...


Sample = tuple[tuple[str, ...], int | float] | tuple[tuple[str, ...], int | float, str]
"""Values of the labels, the value, and of a histogram the suffix; where there are fewer values than
labels, the last labels are not set."""
Formula = Callable[[Sums], Iterator[Series]]
Read = TypeVar("Read", bound=Callable[..., Iterator[Any]])
"""What makes the values of a series."""


class Noted:
    """What ``Sums`` know of since when what was read counts."""

    since_ms = 0

    def note(self, since_ms: int) -> None:
        self.since_ms = max(self.since_ms, since_ms)

    @contextmanager
    def apart(self) -> Iterator[None]:
        before = self.since_ms
        yield
        self.since_ms = before


_T = TypeVar("_T")


def remembered(w: Sums, name: str, made: Callable[[Sums], Iterable[_T]]) -> Iterator[_T]:
    """What several metrics are made of, which is made once."""
    if name not in w.memo:
        w.memo[name] = [(each, w.since_ms) for each in made(w)]
    for each, since_ms in w.memo[name]:
        with w.apart():
            w.note(since_ms)
            yield each


@dataclass(frozen=True)
class Brief:
    """Series that are shown in every rollup of at most so many dimensions: those with these
    labels, or all."""

    labels: Mapping[str, str] = field(default_factory=dict)
    dimensions: int = limits.MAX_DIMENSIONS


@dataclass(frozen=True)
class DeclaredSeries(Generic[Read]):
    """A series of ``/metrics``: what is said of it everywhere, and the function that makes it.

    ``name`` without prefix; ``kind`` counter, gauge or histogram; ``scope`` window or total;
    ``labels`` without the window and the dimensions.
    """

    name: str
    kind: str
    scope: str
    formula: str
    unit: str
    empty: str
    source: str
    doc: str
    labels: tuple[str, ...]
    series: Read
    brief: Brief | None = None
    """What is shown in rollups that are not detailed; None: nothing."""
    support: str = ""
    """The series that counts what it is a share or a mean of; "": nothing counts that."""


Metric = DeclaredSeries[Formula]
"""A series of a window, or of the totals: one value for each segment."""


def shown_series(
    metric: Metric, sums: Sums, dimensions: int, is_detailed: bool
) -> Iterator[Series]:
    """What a rollup of so many dimensions shows of a metric."""
    if is_detailed:
        yield from metric.series(sums)
    elif metric.brief is not None and dimensions <= metric.brief.dimensions:
        only = metric.brief.labels.items()
        yield from (series for series in metric.series(sums) if only <= series.labels.items())


def _no_stats(settings: Any) -> tuple[Stat, ...]:
    return ()


@dataclass(frozen=True)
class Family(Generic[Read]):
    """Series that stand together. Metrics of a family share statistics, which the core counts."""

    name: str
    metrics: tuple[DeclaredSeries[Read], ...]
    stats: Callable[[Any], tuple[Stat, ...]] = _no_stats
    """Those of the settings."""


class SeriesDeclarations(Generic[Read]):
    """Collects the series of one module; ``scope``: theirs, where they do not say."""

    def __init__(self, scope: str = "window") -> None:
        self.scope = scope
        self.series: list[DeclaredSeries[Read]] = []

    def __call__(
        self,
        name: str,
        *,
        formula: str,
        unit: str,
        empty: str,
        source: str = "",
        labels: tuple[str, ...] = (),
        scope: str = "",
        kind: str = "",
        brief: Brief | None = None,
        doc: str = "",
        support: str = "",
    ) -> Callable[[Read], Read]:
        """Declare what the decorated function makes; ``kind``: by default a counter where the name
        ends with ``_total``, else a gauge; ``doc``: instead of the function's docstring."""

        def declare(series: Read) -> Read:
            by_name = "counter" if name.endswith("_total") else "gauge"
            text = " ".join((doc or series.__doc__ or "").split())
            self.series.append(
                DeclaredSeries(
                    *(name, kind or by_name, scope or self.scope, formula, unit, empty, source),
                    *(text, labels, series, brief, support),
                )
            )
            return series

        return declare


Declarations = SeriesDeclarations[Formula]
"""Collects the metrics of one module."""


def ratio(above: Values, below: Values, **labels: str) -> Series:
    """above / below, absent where below is 0."""
    present = below != 0
    values = np.divide(above, below, out=np.zeros(len(below)), where=present)
    return Series(labels, values, present)


def count(values: I64, present: Bools | None = None, **labels: str) -> Series:
    """A count, absent where it is 0 (or where ``present`` is false)."""
    return Series(labels, values, values != 0 if present is None else present)


def histogram(classes: I64, bounds_seconds: Sequence[int], sum_ms: I64) -> Iterator[Series]:
    """The series of a Prometheus histogram of times: cumulative counts up to each bound and up to
    infinity, the sum in seconds and the count; absent where nothing was counted.

    ``classes``: counts above the bound before and up to each bound, and beyond them all.
    """
    total: I64 = np.sum(classes, axis=0)
    present, running = total != 0, np.zeros_like(total)
    for label, counted in zip((*map(float, bounds_seconds), "+Inf"), classes, strict=True):
        running = running + counted
        yield Series({"le": str(label)}, running, present, "_bucket")
    yield Series({}, sum_ms / 1000, present, "_sum")
    yield Series({}, total, present, "_count")


def money(high: I64, low: I64) -> Values:
    """Currency units of a sum of micros in two limbs; exact integers until the division."""
    return np.array([micros / 1_000_000 for micros in joined(high, low)], np.float64)
