"""How a metric of slates is declared: the value of one slate, and over which slates it is averaged.

The core computes the value, which it knows by the metric's name. From it follow two metrics: the
mean over slates, and its standard error. Their sums stand in one wide statistic a family, whose
columns a ``ColumnPlan`` gives out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from streamer.encoding.arrays import I64
from streamer.metrics.definition import (
    Brief,
    Declared,
    Family,
    Form,
    Formula,
    Metric,
    Series,
    Variant,
    count,
)
from streamer.metrics.layout import Stat
from streamer.metrics.moments import Moments
from streamer.metrics.reads import Given, Statistic
from streamer.metrics.slates import UNIT
from streamer.settings import limits
from streamer.settings.model import CONVENTIONS, VISIBLE

Largest = Callable[[tuple[float, ...], float, int], int]
"""Gains, margin and cut-off → the largest value of a slate, in units of 1e-9."""


_SIGNED = ("kendall_tau", "spearman_rho")
"""Of these a value may be below 0."""
BRIEF = Brief({"maturity": "provisional"}, dimensions=1)
"""What every rollup shows of a few metrics of slates; crossings show nothing of them."""


@dataclass(frozen=True)
class Population:
    """Slates over which a mean is taken. ``support``: the metric that counts them, with label
    ``over`` if ``has_over``."""

    name: str
    support: str
    doc: str
    has_over: bool = False
    has_maturity: bool = True
    brief: Brief | None = None


@dataclass(frozen=True)
class SlateMetric:
    """A value of slates, 0 outside ``population``. ``over``: the populations of its label, if it
    has that."""

    name: str
    title: str
    by_k: bool
    conventions: tuple[str, ...]
    over: tuple[str, ...]
    population: Population
    largest: Largest
    form: Form

    def bounds(self, gains: tuple[float, ...], margin: float, k: int) -> tuple[float, float]:
        """The least and the largest value of a slate. ``k``: the cut-off, 0 without one."""
        most = self.largest(gains, margin, k or (limits.MAX_ITEMS if self.by_k else 0))
        return -1.0 if self.name in _SIGNED else 0.0, most / UNIT


@dataclass(frozen=True)
class Column:
    """Where the sums of one value begin. ``cutoff``: the label of ``k``, "0" without one."""

    metric: SlateMetric
    cutoff: str
    k: int
    convention: str
    at: int
    moments: Moments

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its series: ``k`` and ``convention``, where it has them."""
        k = {"k": self.cutoff} if self.k else {}
        return k | ({"convention": self.convention} if self.convention else {})


Chosen = tuple[tuple[str, tuple[str, ...]], ...]
"""Metrics and their conventions besides the default."""


@dataclass(frozen=True)
class ColumnPlan:
    """The columns of a family under some settings: sizes of populations, then the values."""

    populations: dict[str, int]
    columns: tuple[Column, ...]
    width: int


class SlateFamily:
    """Collects the metrics of slates of one family, and lays out its statistic."""

    def __init__(self, name: str, populations: tuple[Population, ...]) -> None:
        self.name, self.populations = name, populations
        self.values: list[SlateMetric] = []
        self.series: list[Metric] = []
        self._plan = lru_cache(maxsize=8)(self._planned)
        for support in dict.fromkeys(p.support for p in populations):
            self._declare_support([p for p in populations if p.support == support])

    def __call__(
        self,
        name: str,
        *,
        title: str,
        formula: str,
        doc: str,
        population: Population,
        unit: str = "ratio",
        source: str = "",
        by_k: bool = False,
        over: tuple[str, ...] = (),
        brief: Brief | None = None,
        largest: Largest = lambda gains, margin, k: UNIT,
        form: Form = "number",
    ) -> None:
        """Declare a value of slates: its mean, and the standard error of that."""
        conventions = CONVENTIONS.get(name, ())
        metric = SlateMetric(name, title, by_k, conventions, over, population, largest, form)
        self.values.append(metric)
        labels = _listed(
            over=over, k=by_k, maturity=population.has_maturity, convention=conventions
        )
        shared, reads = ("gauge", "window"), self._reads(metric)
        self.series += [
            Metric(name, *shared, f"mean over slates of {formula}", unit, _empty(metric), source,
                   doc, labels, _mean, brief, population.support, reads),
            Metric(f"{name}_stderr", *shared, "standard deviation / sqrt(slates)",
                   f"as {name}", "absent below two slates that it is over", "",
                   f"Standard error of {name}, its slates taken as independent.",
                   labels, _error, brief, reads=reads),
        ]  # fmt: skip

    # Counting ------------------------------------------------------------------------------------

    def plan(self, settings: Any) -> ColumnPlan:
        """The columns under these settings."""
        metrics = settings.metrics
        chosen = tuple((name, tuple(sorted(some))) for name, some in metrics.conventions.items())
        cutoffs, most = tuple(metrics.cutoffs.items()), metrics.most_visible
        return self._plan(cutoffs, most, settings.gains, chosen, metrics.margin)

    def _planned(
        self,
        cutoffs: tuple[tuple[str, int], ...],
        most_visible: int,
        gains: tuple[float, ...],
        chosen: Chosen,
        margin: float,
    ) -> ColumnPlan:
        at = len(self.populations)
        columns = []
        for metric in self.values:
            for cutoff, k in cutoffs if metric.by_k else (("0", 0),):
                most = most_visible if k == VISIBLE else k
                for convention in ("", *dict(chosen).get(metric.name, ())):
                    moments = Moments(metric.largest(gains, margin, most))
                    columns.append(Column(metric, cutoff, k, convention, at, moments))
                    at += moments.width
        numbers = {population.name: i for i, population in enumerate(self.populations)}
        return ColumnPlan(numbers, tuple(columns), at)

    def stat(self, settings: Any) -> Stat:
        """The family's statistic."""
        plan = self.plan(settings)
        keys = [f"{self.name}.{population}" for population in plan.populations]
        for column in plan.columns:
            name = f"{column.metric.name}@{column.cutoff}.{column.convention}"
            keys += [f"{self.name}.{name}/{i}" for i in range(column.moments.width)]
        largest, keyed = 1 << 33, tuple(keys)
        return Stat(self.name, largest, width=plan.width, keys=keyed)

    def core_spec(self, settings: Any) -> dict[str, Any]:
        """The spec of the family for the core: which columns stand where."""
        plan = self.plan(settings)
        columns = [
            {
                "name": column.metric.name,
                "k": column.k,
                "convention": column.convention,
                "population": column.metric.population.name,
                "at": column.at,
                "is_single": column.moments.is_single,
                "square_limbs": column.moments.square_limbs,
            }
            for column in plan.columns
        ]
        names = [population.name for population in self.populations]
        return {
            "statistic": self.name,
            "width": plan.width,
            "populations": names,
            "columns": columns,
        }

    def family(self) -> Family[Formula]:
        """Its series, and its statistic."""
        return Family(self.name, tuple(self.series), lambda settings: (self.stat(settings),))

    # Reading -------------------------------------------------------------------------------------

    def _reads(self, metric: SlateMetric) -> Callable[[Declared], Iterator[Variant]]:
        """The columns of a value, and the number of slates that it is over."""

        def variants(of: Declared) -> Iterator[Variant]:
            plan = self.plan(of.settings)
            for maturity, horizon_ms in _maturities(of, metric.population):
                for column in [each for each in plan.columns if each.metric is metric]:
                    held = self.columns(column.at, column.moments.width, horizon_ms)
                    for over in metric.over or (metric.population.name,):
                        size = self.columns(plan.populations[over], 1, horizon_ms)
                        labels = column.labels | ({"over": over} if metric.over else {})
                        yield Variant(labels | maturity, (Given(column.moments), held, size))

        return variants

    def columns(
        self, first: int, width: int, horizon_ms: int | None, is_day_before: bool = False
    ) -> Statistic:
        """What reads some columns."""
        stop = first + width
        return Statistic(self.name, horizon_ms, first, stop, is_day_before=is_day_before)

    def _declare_support(self, counted: list[Population]) -> None:
        def variants(of: Declared) -> Iterator[Variant]:
            for maturity, horizon_ms in _maturities(of, counted[0]):
                for population in counted:
                    over = {"over": population.name} if population.has_over else {}
                    size = self.columns(self.populations.index(population), 1, horizon_ms)
                    yield Variant(over | maturity, (size,))

        labels = _listed(over=counted[0].has_over, maturity=counted[0].has_maturity)
        doc = "; ".join(f"{p.name}: {p.doc}" for p in counted)
        self.series.append(
            Metric(counted[0].support, "gauge", "window", "slates", "slates",
                   "absent where it is 0", "", f"Slates that means are taken over. {doc}.",
                   labels, _support, counted[0].brief, reads=variants)
        )  # fmt: skip


def _mean(moments: Moments, held: I64, size: I64) -> Iterator[Series]:
    yield Series({}, *moments.mean(held, size[:, 0]))


def _error(moments: Moments, held: I64, size: I64) -> Iterator[Series]:
    yield Series({}, *moments.stderr(held, size[:, 0]))


def _support(size: I64) -> Iterator[Series]:
    yield count(size[:, 0], size[:, 0] > 0)


def _maturities(
    of: Declared, population: Population
) -> Iterator[tuple[dict[str, str], int | None]]:
    """Labels, and the horizon for which panes have to be mature; None: all count."""
    if population.has_maturity:
        yield {"maturity": "provisional"}, None
        yield {"maturity": "mature"}, of.settings.feedback_horizon_ms
    else:
        yield {}, None


def _empty(metric: SlateMetric) -> str:
    """When a mean is not shown."""
    own = f"absent without {metric.population.name} slates"
    if "all" not in metric.over:
        return own
    return f"over {metric.population.name}: {own}; over all: absent without slates, else 0"


def _listed(**wanted: Any) -> tuple[str, ...]:
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)
