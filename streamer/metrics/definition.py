"""How a metric is declared: a function of window sums, with what the documentation needs.

A metric yields ``Series``: extra labels and one value a segment, NaN or masked where it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from streamer.encoding.arrays import I64, Bools
from streamer.encoding.limbs import joined
from streamer.metrics.layout import Layout, Stat
from streamer.metrics.reads import Part, Read
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


class Variant(NamedTuple):
    """Series of a metric that are made of the same sums, and the labels that they share."""

    labels: Mapping[str, str]
    reads: tuple[Read, ...]

    def parts(self, layout: Layout) -> Iterator[Part]:
        """What they are made of."""
        return (part for read in self.reads for part in read.parts(layout))


class Declared(Protocol):
    """What variants follow from: a catalogue."""

    @property
    def settings(self) -> Any:
        """The settings (``Settings``): feedback kinds, cut-offs, conventions."""
        ...

    @property
    def layout(self) -> Layout:
        """Where statistics stand."""
        ...

    @property
    def composites(self) -> Mapping[str, Sequence[Any]]:
        """Composite → its parts: see ``composite_parts.Part``."""
        ...


Reads = tuple[Read, ...] | Callable[[Declared], Iterable[Variant]]
"""What a metric reads: always the same, or as settings say, by labels of its series."""
Sample = tuple[tuple[str, ...], int | float] | tuple[tuple[str, ...], int | float, str]
"""Values of the labels, the value, and of a histogram the suffix; where there are fewer values than
labels, the last labels are not set."""
Formula = Callable[..., Iterator[Series]]
"""Makes series of what was read, given one after another."""
Makes = TypeVar("Makes", bound=Callable[..., Iterator[Any]])
"""What makes the values of a series."""


def one(value: float) -> Iterator[Sample]:
    """The samples of a series without labels."""
    yield (), value


@dataclass(frozen=True)
class Brief:
    """Series that are shown in every rollup of at most so many dimensions: those with these
    labels, or all."""

    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    dimensions: int = limits.MAX_DIMENSIONS


@dataclass(frozen=True)
class DeclaredSeries(Generic[Makes]):
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
    series: Makes
    brief: Brief | None = None
    """What is shown in rollups that are not detailed; None: nothing."""
    support: str = ""
    """The series that counts what it is a share or a mean of; "": nothing counts that."""
    reads: Reads = ()
    """What ``series`` is given, where that are sums."""

    def variants(self, of: Declared) -> tuple[Variant, ...]:
        """What it reads under these settings."""
        reads = self.reads
        return (Variant({}, reads),) if isinstance(reads, tuple) else tuple(reads(of))


Metric = DeclaredSeries[Formula]
"""A series of a window, or of the totals: one value for each segment."""


def shown_variants(
    metric: Metric, variants: Sequence[Variant], dimensions: int, is_detailed: bool
) -> Iterator[Variant]:
    """What a rollup of so many dimensions shows of a metric's variants."""
    if is_detailed:
        yield from variants
    elif metric.brief is not None and dimensions <= metric.brief.dimensions:
        only = metric.brief.labels.items()
        yield from (variant for variant in variants if only <= variant.labels.items())


def series_of(metric: Metric, variant: Variant, find: Callable[[Read], Any]) -> Iterator[Series]:
    """The series of a variant; nothing where ``find`` does not find all that it reads."""
    found = [find(read) for read in variant.reads]
    if all(each is not None for each in found):
        for series in metric.series(*found):
            labels = {**variant.labels, **series.labels}
            yield Series(labels, series.values, series.present, series.suffix)


def _no_stats(settings: Any) -> tuple[Stat, ...]:
    return ()


@dataclass(frozen=True)
class Family(Generic[Makes]):
    """Series that stand together. Metrics of a family share statistics, which the core counts."""

    name: str
    metrics: tuple[DeclaredSeries[Makes], ...]
    stats: Callable[[Any], tuple[Stat, ...]] = _no_stats
    """Those of the settings."""


def count(values: Values, present: Bools | None = None, **labels: str) -> Series:
    """A count, absent where it is 0 (or where ``present`` is false)."""
    return Series(labels, values, values != 0 if present is None else present)


def _counted(values: I64) -> Iterator[Series]:
    """The formula of a count."""
    yield count(values)


class SeriesDeclarations(Generic[Makes]):
    """Collects the series of one module; ``scope``, ``empty``: theirs, where they do not say."""

    def __init__(self, scope: str = "window", empty: str = "absent where it is 0") -> None:
        self.scope, self.empty = scope, empty
        self.series: list[DeclaredSeries[Makes]] = []

    def __call__(
        self,
        name: str,
        *,
        formula: str,
        unit: str,
        empty: str = "",
        source: str = "",
        labels: tuple[str, ...] = (),
        scope: str = "",
        kind: str = "",
        brief: Brief | None = None,
        doc: str = "",
        support: str = "",
        reads: Reads = (),
    ) -> Callable[[Makes], Makes]:
        """Declare what the decorated function makes; ``kind``: by default a counter where the name
        ends with ``_total``, else a gauge; ``doc``: instead of the function's docstring."""

        def declare(series: Makes) -> Makes:
            by_name = "counter" if name.endswith("_total") else "gauge"
            absent = empty or self.empty
            text = " ".join((doc or series.__doc__ or "").split())
            self.series.append(
                DeclaredSeries(
                    *(name, kind or by_name, scope or self.scope, formula, unit, absent, source),
                    *(text, labels, series, brief, support, reads),
                )
            )
            return series

        return declare

    def row(
        self, name: str, unit: str, formula: str, doc: str, series: Makes, **others: Any
    ) -> None:
        """Declare a series that needs no function of its own; ``others``: as above."""
        self(name, unit=unit, formula=formula, doc=doc, **others)(series)

    def count(
        self: SeriesDeclarations[Formula],
        name: str,
        unit: str,
        formula: str,
        doc: str,
        reads: Reads,
        series: Formula = _counted,
        **others: Any,
    ) -> None:
        """Declare a count; ``series``: what makes it, where it is not what is read as it is."""
        self.row(name, unit, formula, doc, series, reads=reads, **others)


Declarations = SeriesDeclarations[Formula]
"""Collects the metrics of one module."""


def ratio(above: Values, below: Values, **labels: str) -> Series:
    """above / below, absent where below is 0."""
    present = below != 0
    values = np.divide(above, below, out=np.zeros(len(below)), where=present)
    return Series(labels, values, present)


def quotient(above: Values, below: Values) -> Iterator[Series]:
    """The formula of a ratio."""
    yield ratio(above, below)


def histogram(bounds_seconds: Sequence[int]) -> Formula:
    """What makes the series of a Prometheus histogram of times: cumulative counts up to each bound
    and up to infinity, the sum in seconds and the count; absent where nothing was counted.

    It is given counts above the bound before and up to each bound, and beyond them all, a row for
    each segment; and the sum in milliseconds.
    """

    def series(classes: I64, sum_ms: I64) -> Iterator[Series]:
        total: I64 = np.sum(classes, axis=1)
        present, running = total != 0, np.zeros_like(total)
        bounds = (*map(float, bounds_seconds), "+Inf")
        for label, counted in zip(bounds, classes.T, strict=True):
            running = running + counted
            yield Series({"le": str(label)}, running, present, "_bucket")
        yield Series({}, sum_ms / 1000, present, "_sum")
        yield Series({}, total, present, "_count")

    return series


def money(high: I64, low: I64) -> Values:
    """Currency units of a sum of micros in two limbs; exact integers until the division."""
    return np.array([micros / 1_000_000 for micros in joined(high, low)], np.float64)
