"""Panels of windowed metrics: a line for each value of the chosen dimension with its interval as a
band, and the support on the right axis.

The variable ``by`` is the dimension by whose values lines are split; of the others the rollup is
shown. Grafana fills between two series if it was told the name of the lower one, and which values
there are is known only when a page is looked at. So hidden variables take the values one after the
other, and queries number the series accordingly: the bounds of the first value are called
``1 high`` and ``1 low`` whatever its name. Values beyond the last number have lines without bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.intervals import name_of
from streamer.monitoring.page import Variable, choice, one_of
from streamer.monitoring.panels import (
    JOB,
    Override,
    Panel,
    Query,
    Step,
    band,
    graph,
    no_line,
    on_the_right,
    over_exporters,
)
from streamer.monitoring.series import NUMBER, PanelSeries
from streamer.settings.durations import duration_ms
from streamer.settings.model import Settings

COLORS = ("text", "blue", "orange", "green", "purple")
"""Of the rollup, and of the values from 1."""
BANDS = len(COLORS) - 1
"""So many values have a band; more could not be told apart."""
_OTHERS = BANDS + 1
_UNKNOWN = "unknown"
"""The value of what lacks the dimension: too little, mostly, for a line on the others' scale."""
_NUMBER = "__number"
"""A label of the queries only."""
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
_READING = (
    "Band: the 95 % interval, clustered by user; it is for one look at one line. Lines: 0 is all"
    f" together, 1 to {BANDS} are the first values of the dimension chosen above by name,"
    f" {_OTHERS} are further ones, without bands. Dotted, on the right axis: the support."
)
_ERRORS = (
    "Band: two standard errors to either side, as if slates were independent; those of one user are"
    " not quite, so it is somewhat too narrow. Lines: 0 is all together, 1 to"
    f" {BANDS} are the first values of the dimension chosen above by name, {_OTHERS} are further"
    " ones, without bands. Dotted, on the right axis: the number of slates."
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
        """The window, the dimension that splits the lines, and its first values (hidden)."""
        series = f"{PREFIX}window_impressions{{{JOB}}}"
        variables = [choice("window", series, self._first_window())]
        if not self._dimensions:
            return variables
        variables.append(one_of("by", "split by", self._dimensions))
        named = self.settings.dimensions[0].values
        for nth in range(1, BANDS + 1):
            before = (f"$value_{earlier}" for earlier in range(1, nth))
            others = "|".join(["all", _UNKNOWN, *before])
            where = f'{PREFIX}window_impressions{{{JOB}, $by!~"{others}"}}'
            begin = named[nth - 1] if nth <= len(named) else ""
            variables.append(choice(f"value_{nth}", where, begin, of="$by", hidden=True))
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
        return f"{what.name}{{{', '.join([JOB, window, *where, *more])}}}"

    def total(self, name: str, *more: str, by: Sequence[str] = (), window: str = "") -> str:
        """The rollup: all segments together, a series for each of the labels ``by``."""
        rolled_up = [f'{dimension}="all"' for dimension in self._dimensions]
        window = window or 'window="$window"'
        return over_exporters(self.selector(name, *rolled_up, *more, window=window), *by)

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

    def numbered(self, expr: str) -> str:
        """The series with the number of their value."""
        if not self._dimensions:
            return f'label_replace({expr}, "{_NUMBER}", "0", "", "")'
        values = [".+", "all", *(f"$value_{number}" for number in range(1, BANDS + 1))]
        for number, value in zip((_OTHERS, *range(BANDS + 1)), values, strict=True):
            expr = f'label_replace({expr}, "{_NUMBER}", "{number}", "$by", "{value}")'
        return expr

    def legend(self, end: str = "") -> str:
        """The name of a numbered line."""
        value = "{{$by}}" if self._dimensions else "all"
        return f"{{{{{_NUMBER}}}}} · {value}{end}"

    # Panels ---------------------------------------------------------------------------------------

    def split(
        self,
        title: str,
        name: str,
        support: str,
        *,
        width: int = 12,
        note: str = "",
        steps: Sequence[Step] = (),
        more: Sequence[str] = (),
        support_more: Sequence[str] = (),
    ) -> list[Panel]:
        """A metric by the chosen dimension, with band and support; nothing where the settings do
        not show it. ``more``: further matchers of the metric, ``support_more`` of its support."""
        if not self.has(name):
            return []
        what = self.of(name)
        queries = [Query(self.numbered(self.each(name, *more)), self.legend())]
        ends = self._ends(name, more)
        for word, expr in ends.items():
            queries.append(Query(self.numbered(expr), f"{{{{{_NUMBER}}}}} {word}"))
        overrides = bands()
        if self.has(support):
            counted = _COUNTED.get(support) or support.removeprefix("window_")
            queries.append(
                Query(self.numbered(self.each(support, *support_more)), self.legend(f": {counted}"))
            )
            overrides.append(on_the_right(f": {counted}$", NUMBER, counted))
        reading = [] if not ends else [_ERRORS if self.has(f"{name}_stderr") else _READING]
        description = "\n\n".join([what.description, *([note] if note else []), *reading])
        unit = what.unit
        return [
            graph(
                title, description, unit, queries,
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


def bands(colors: Sequence[str] = COLORS) -> list[Override]:
    """What makes bands of ``N high`` and ``N low``: colours, and bounds that are no lines."""
    found = [no_line("^\\d (high|low)$")]
    for number, color in enumerate(colors):
        found.append(Override(f"^{number} ", {"color": {"mode": "fixed", "fixedColor": color}}))
        found.append(band(str(number), str(number)))
    return found
