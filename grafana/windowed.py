"""What pages of windowed metrics share: variables, tiles, and metrics beside their support."""

from __future__ import annotations

from collections.abc import Mapping

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import stat, timeseries

from grafana import panels
from grafana.declared import Declared
from grafana.panels import JOB, Query, over_exporters
from streamer.metrics.catalogue import PREFIX
from streamer.settings.model import Settings

DEFAULT_WINDOW = "5m"
_OF_ROLLUP = frozenset({"position", "upto_seconds", "bin", "upto", "dimension"})
"""Labels of so many values that with every segment they are no picture: only of the rollup."""
_NOT_NARROWED: Mapping[str, str] = {}


class Windowed:
    """Builds panels of the chosen window, for the dimensions of a settings file."""

    def __init__(self, declared: dict[str, Declared], settings: Settings) -> None:
        self._declared, self._settings = declared, settings
        self._dimensions = settings.dimension_names

    def _page(self, uid: str, title: str, what: str) -> builders.Dashboard:
        """An empty page with its variables."""
        names = " and ".join(self._dimensions) or "nothing"
        board = panels.page(uid, title, f"{what} by {names}.")
        for variable in self._variables():
            board = board.with_variable(variable)
        return board

    def _variables(self) -> list[builders.QueryVariable]:
        """The first dimension shows each of its values, the others their rollup."""
        series = f"{PREFIX}window_impressions{{{JOB}}}"
        found = [panels.label_variable("window", series, DEFAULT_WINDOW)]
        for number, name in enumerate(self._dimensions):
            found.append(panels.values_variable(name, series, "all" if number else None))
        return found

    def _of(self, name: str) -> Declared:
        return self._declared[PREFIX + name]

    def _rolled_up(self) -> str:
        return "".join(f', {name}="all"' for name in self._dimensions)

    def _of_each(self, name: str) -> bool:
        """Whether the settings show a metric for each value of the first dimension."""
        first = self._dimensions[:1]
        return self._of(name).is_brief or self._settings.is_detailed(first)

    def _where(self, name: str) -> str:
        """The chosen segments, or the rollup where the settings show a metric for it only."""
        return self._chosen() if self._of_each(name) else self._rolled_up()

    def _chosen(self) -> str:
        return "".join(f', {name}=~"${name}"' for name in self._dimensions)

    def _in_window(self, name: str, where: str) -> str:
        """The series of the chosen window; ``where``: more matchers."""
        return f'{self._of(name).name}{{{JOB}, window="$window"{where}}}'

    def _tile(
        self, name: str, narrowed: Mapping[str, str] = _NOT_NARROWED, *, title: str = ""
    ) -> stat.Panel:
        """The rollup's present value; ``narrowed``: label → matcher."""
        what = self._of(name)
        extra = "".join(f", {narrowed[label]}" for label in what.labels)
        expr = over_exporters(self._in_window(name, self._rolled_up() + extra))
        return panels.tile(title or what.title, what.description, what.unit, Query(expr))

    def _graph(
        self,
        name: str,
        *,
        width: int,
        title: str = "",
        note: str = "",
        narrowed: Mapping[str, str] = _NOT_NARROWED,
    ) -> timeseries.Panel:
        """One line for each chosen segment and each value of other labels.

        ``narrowed``: label → matcher; a label that is narrowed to one value is in no legend.
        """
        what = self._of(name)
        is_rollup = not _OF_ROLLUP.isdisjoint(what.labels)
        where = self._rolled_up() if is_rollup else self._where(name)
        extra = "".join(f", {narrowed[label]}" for label in what.labels if label in narrowed)
        shown = [x for x in what.labels if not narrowed.get(x, "").startswith(f'{x}="')]
        by = shown if is_rollup else [*self._dimensions, *shown]
        legend = " · ".join(f"{{{{{label}}}}}" for label in by)
        expr = over_exporters(self._in_window(name, where + extra), *by)
        text = f"{what.description}\n\n{note}" if note else what.description
        queries = [Query(expr, legend or what.title)]
        return panels.graph(title or what.title, text, what.unit, queries, width=width)
