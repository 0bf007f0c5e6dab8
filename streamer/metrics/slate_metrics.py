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

from streamer.metrics.definition import Brief, Form, Formula, Metric, Series, Sums
from streamer.metrics.layout import Stat
from streamer.metrics.moments import Moments
from streamer.metrics.slates import UNIT
from streamer.settings import limits
from streamer.settings.model import CONVENTIONS

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
    """Where the sums of one value begin."""

    metric: SlateMetric
    k: int
    convention: str
    at: int
    moments: Moments

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its series: ``k`` and ``convention``, where it has them."""
        k = {"k": str(self.k)} if self.k else {}
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
        unit: str,
        population: Population,
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
        shared = ("gauge", "window")
        self.series += [
            Metric(name, *shared, f"mean over slates of {formula}", unit, _empty(metric), source,
                   doc, labels, self._means(metric), brief, population.support),
            Metric(f"{name}_stderr", *shared, "standard deviation / sqrt(slates)",
                   f"as {name}", "absent below two slates that it is over", "",
                   f"Standard error of {name}, its slates taken as independent.",
                   labels, self._errors(metric), brief),
        ]  # fmt: skip

    # Counting ------------------------------------------------------------------------------------

    def plan(self, settings: Any) -> ColumnPlan:
        """The columns under these settings."""
        metrics = settings.metrics
        chosen = tuple((name, tuple(sorted(some))) for name, some in metrics.conventions.items())
        return self._plan(tuple(sorted(metrics.k)), settings.gains, chosen, metrics.margin)

    def _planned(
        self, k: tuple[int, ...], gains: tuple[float, ...], chosen: Chosen, margin: float
    ) -> ColumnPlan:
        at = len(self.populations)
        columns = []
        for metric in self.values:
            for cut in k if metric.by_k else (0,):
                for convention in ("", *dict(chosen).get(metric.name, ())):
                    moments = Moments(metric.largest(gains, margin, cut))
                    columns.append(Column(metric, cut, convention, at, moments))
                    at += moments.width
        numbers = {population.name: i for i, population in enumerate(self.populations)}
        return ColumnPlan(numbers, tuple(columns), at)

    def stat(self, settings: Any) -> Stat:
        """The family's statistic."""
        plan = self.plan(settings)
        keys = [f"{self.name}.{population}" for population in plan.populations]
        for column in plan.columns:
            name = f"{column.metric.name}@{column.k}.{column.convention}"
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

    # Reading -------------------------------------------------------------------------------------

    def _means(self, metric: SlateMetric) -> Formula:
        return lambda w: self._series(w, metric, Moments.mean)

    def _errors(self, metric: SlateMetric) -> Formula:
        return lambda w: self._series(w, metric, Moments.stderr)

    def _series(self, w: Sums, metric: SlateMetric, read: Callable[..., Any]) -> Iterator[Series]:
        plan = self.plan(w.settings)
        for maturity, part in self._parts(w, metric.population):
            for column in [each for each in plan.columns if each.metric is metric]:
                with w.apart():
                    held = part(slice(column.at, column.at + column.moments.width))
                    for over in metric.over or (metric.population.name,):
                        size = part(_single(plan.populations[over]))[:, 0]
                        labels = column.labels | ({"over": over} if metric.over else {})
                        yield Series(labels | maturity, *read(column.moments, held, size))

    def _declare_support(self, counted: list[Population]) -> None:
        def series(w: Sums) -> Iterator[Series]:
            for maturity, part in self._parts(w, counted[0]):
                for population in counted:
                    over = {"over": population.name} if population.has_over else {}
                    with w.apart():
                        size = part(_single(self.populations.index(population)))[:, 0]
                        yield Series(over | maturity, size, size > 0)

        labels = _listed(over=counted[0].has_over, maturity=counted[0].has_maturity)
        doc = "; ".join(f"{p.name}: {p.doc}" for p in counted)
        self.series.append(
            Metric(counted[0].support, "gauge", "window", "slates", "slates",
                   "absent where it is 0", "", f"Slates that means are taken over. {doc}.",
                   labels, series, counted[0].brief)
        )  # fmt: skip

    def _parts(
        self, w: Sums, population: Population
    ) -> Iterator[tuple[dict[str, str], Callable[[slice], Any]]]:
        """Labels, and what reads some of the sums: of all panes, and of the mature ones."""
        named = {"provisional": None, "mature": w.settings.feedback_horizon_ms}
        for maturity, horizon_ms in named.items() if population.has_maturity else [("", None)]:

            def part(within: slice, horizon_ms: int | None = horizon_ms) -> Any:
                return w.part(self.name, within, horizon_ms)

            if part(slice(0, 0)) is not None:
                yield {"maturity": maturity} if maturity else {}, part


def _single(place: int) -> slice:
    return slice(place, place + 1)


def _empty(metric: SlateMetric) -> str:
    """When a mean is not shown."""
    own = f"absent without {metric.population.name} slates"
    if "all" not in metric.over:
        return own
    return f"over {metric.population.name}: {own}; over all: absent without slates, else 0"


def _listed(**wanted: Any) -> tuple[str, ...]:
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)
