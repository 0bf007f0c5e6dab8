"""Panels of windowed metrics: a line for each value of the chosen dimension with its interval, and
the support in the tooltip.

The variable ``by`` is the dimension by whose values lines are split; of the others the rollup is
shown. Grafana fills between two series whose names it knows beforehand: values that the settings
name have a colour and a band, of the others the tooltip shows the interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.intervals import name_of
from streamer.monitoring.page import Variable, one_of
from streamer.monitoring.panels import (
    LINE_COLORS,
    SYSTEM,
    Override,
    Panel,
    Query,
    Step,
    bands_of,
    ends_in_tooltip,
    graph,
    over_exporters,
    support,
)
from streamer.monitoring.series import PanelSeries
from streamer.settings.durations import duration_ms
from streamer.settings.model import Dimension, Settings

BANDS = len(LINE_COLORS)
"""So many values of a dimension have a band; more could not be told apart."""
_UNKNOWN = "unknown"
"""The value of what lacks the dimension: too little, mostly, for a line on the others' scale."""
_FIRST_MINUTES_MS = 300_000
_NARROWED = {
    "k": 'k="$k"',
    "over": 'over="$over"',
    "maturity": 'maturity="$maturity"',
    "convention": 'convention=""',
}
"""How labels beside the dimensions are narrowed to one value."""
_COUNTED = {
    "window_category_lists": "lists",
    "window_coec_expected_clicks": "expected clicks",
    "window_gauc_slates": "slates",
    "window_probability_impressions": "scored impressions",
}
"""What a support counts, where its name does not say it."""
_ENDS = {"lower": "low", "upper": "high"}
"""End of an interval → what its line is called."""
_READING = (
    "Band: the 95 % interval, clustered by user; it is for one look at one line. Values that the"
    f" settings name have one, {BANDS} of a dimension; the tooltip shows the ends of the others'"
    " intervals, and the support."
)
_ERRORS = (
    "Band: two standard errors to either side, as if slates were independent; those of one user are"
    " not quite, so it is somewhat too narrow. Values that the settings name have one,"
    f" {BANDS} of a dimension; the tooltip shows the ends of the others' intervals, and the number"
    " of slates."
)


class Windowed:
    """Builds panels of the chosen window for a settings file."""

    def __init__(self, series: Mapping[str, PanelSeries], settings: Settings) -> None:
        self.settings = settings
        self._series = series
        self._dimensions = settings.dimension_names
        self._shown = {metric.name for metric in Catalogue(settings).metrics}

    def has(self, *names: str) -> bool:
        """Whether the settings show all of these metrics."""
        return self._shown.issuperset(names)

    def of(self, name: str) -> PanelSeries:
        """What is declared of a series; ``name``: without prefix."""
        return self._series[name]

    # Variables ------------------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        """The window, and the dimension that splits the lines."""
        windows = list(self.settings.windows.lengths_ms)
        variables = [one_of("window", "window", windows, self._first_window())]
        if self._dimensions:
            variables.append(one_of("by", "split by", self._dimensions))
        return variables

    def _first_window(self) -> str:
        """The longest one that is full within five minutes, else the shortest."""
        lengths = sorted(self.settings.windows.lengths, key=lambda text: duration_ms(text, ""))
        early = [text for text in lengths if duration_ms(text, "") <= _FIRST_MINUTES_MS]
        return (early or lengths[:1])[-1]

    # Queries --------------------------------------------------------------------------------------

    def selector(self, name: str, *more: str, window: str = 'window="$window"') -> str:
        """The series of the chosen window, with its labels narrowed to one value; ``more``: further
        matchers."""
        what = self.of(name)
        where = [_NARROWED[x] for x in what.labels if x in _NARROWED]
        return f"{what.name}{{{', '.join([SYSTEM, window, *where, *more])}}}"

    def total(self, name: str, *more: str, by: Sequence[str] = (), window: str = "") -> str:
        """The rollup: all segments together, a series for each of the labels ``by``."""
        rolled_up = [f'{dimension}="all"' for dimension in self._dimensions]
        window = window or 'window="$window"'
        return over_exporters(self.selector(name, *rolled_up, *more, window=window), *by)

    def totals_with_ends(self, name: str, of: str, *more: str) -> list[Query]:
        """The rollup by the label ``of``, with the ends of its interval where they are shown."""
        ends = ((name_of(name, end), f" {word}") for end, word in _ENDS.items())
        named = [(name, ""), *((end, word) for end, word in ends if self.has(end))]
        return [
            Query(self.total(name, *more, by=[of]), f"{{{{{of}}}}}{word}") for name, word in named
        ]

    def each(self, name: str, *more: str, window: str = "") -> str:
        """All together, and each value of the dimension ``$by`` with the others rolled up;
        nothing of what lacks the dimension."""
        window = window or 'window="$window"'
        conditions = [f'$by!="{_UNKNOWN}"'] if self._dimensions else []
        selected = self.selector(name, *conditions, *more, window=window)
        series = over_exporters(selected, *self._dimensions)
        if len(self._dimensions) < 2:
            return series
        whole = "vector(1)"
        for dimension in self._dimensions:
            whole = f'label_replace({whole}, "{dimension}", "all", "", "")'
        return f"({series} and ignoring ($by) {whole})"

    def legend(self, end: str = "") -> str:
        """The name of a line: the value of the dimension."""
        return f"{'{{$by}}' if self._dimensions else ALL}{end}"

    def bands(self) -> list[Override]:
        """Colours and bands of the rollup and of the values that the settings name."""
        named = dict.fromkeys(itertools.chain(*map(self._named, self.settings.dimensions)))
        return [ends_in_tooltip(), *bands_of([ALL], ["text"]), *bands_of(named)]

    def _named(self, dimension: Dimension) -> list[str]:
        """The first values of a dimension that the settings name, as its own or as arms."""
        arms = (e.shares for e in self.settings.experiments if e.dimension == dimension.name)
        return list(dict.fromkeys([*dimension.values, *itertools.chain(*arms)]))[:BANDS]

    # Panels ---------------------------------------------------------------------------------------

    def split(
        self,
        title: str,
        name: str,
        support_name: str,
        *,
        width: int = 12,
        note: str = "",
        steps: Sequence[Step] = (),
        more: Sequence[str] = (),
        support_more: Sequence[str] = (),
    ) -> list[Panel]:
        """A metric by the chosen dimension, with band and support; nothing where the settings do
        not show it. ``title``: the metric, a colon, and the question that it answers. ``more``:
        further matchers of the metric, ``support_more`` of its support."""
        if not self.has(name):
            return []
        what = self.of(name)
        counted = _COUNTED.get(support_name) or support_name.removeprefix("window_")
        queries = [Query(self.each(name, *more), self.legend())]
        ends = self._ends(name, more)
        queries += [Query(expr, self.legend(f" {word}")) for word, expr in ends.items()]
        overrides = self.bands()
        if self.has(support_name):
            expr = self.each(support_name, *support_more)
            queries.append(Query(expr, self.legend(f": {counted}")))
            overrides.append(support(f": {counted}$"))
        reading = [] if not ends else [_ERRORS if self.has(f"{name}_stderr") else _READING]
        description = "\n\n".join([what.description, *([note] if note else []), *reading])
        if self._dimensions:
            metric, colon, question = title.partition(": ")
            title = f"{metric} by $by{colon}{question}"
        return [
            graph(
                title, description, what.unit, queries, empty=f"no {counted} in this window",
                width=width, steps=steps, overrides=overrides, from_zero=False,
            )
        ]  # fmt: skip

    def _ends(self, name: str, more: Sequence[str]) -> dict[str, str]:
        """Word → expression of the ends of a metric's interval."""
        if self.has(f"{name}_stderr"):
            mean, error = self.each(name, *more), self.each(f"{name}_stderr", *more)
            return {"high": f"({mean} + 2 * {error})", "low": f"({mean} - 2 * {error})"}
        lower, upper = name_of(name, "lower"), name_of(name, "upper")
        if not self.has(lower, upper):
            return {}
        return {"high": self.each(upper, *more), "low": self.each(lower, *more)}

    def texts(self, *names: str) -> str:
        """The descriptions of several series."""
        return "\n\n".join(self.of(name).description for name in names)
