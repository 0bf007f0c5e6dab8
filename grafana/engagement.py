"""The page *users and sessions*: means over people, over visits, and over times spent on items.

Beside each stands its support, as on the overview.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import heatmap, stat, timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.panels import JOB, Query, Step, over_exporters
from grafana.windowed import Windowed


class Beside(NamedTuple):
    """A metric and its support, names without prefix; ``definition`` where there are several."""

    metric: str
    support: str
    definition: str = ""


class Row(NamedTuple):
    """What stands together; ``note`` says of what the metrics are means."""

    title: str
    note: str
    pairs: tuple[Beside, ...]


_PEOPLE = (
    "A mean over users: every user counts once. The support, beside it, is the number of users;"
    " while the user sample above is below 100 % both are estimates."
)
ROWS = (
    Row(
        "Positive rate",
        _PEOPLE,
        (
            Beside("positive_rate_ratio", "window_users", "docs"),
            Beside("positive_rate_ratio", "window_positive_users", "gorse-0.5"),
        ),
    ),
    Row(
        "Users",
        _PEOPLE,
        (
            Beside("user_hit_ratio", "window_users"),
            Beside("clicks_per_user", "window_users"),
            Beside("window_hit_users", "window_users"),
        ),
    ),
    Row(
        "Sessions",
        "Of the sessions that ended in the window; their number, beside it, is the support.",
        (
            Beside("bounce_rate_ratio", "window_sessions"),
            Beside("views_per_session", "window_sessions"),
            Beside("window_session_length_seconds", "window_sessions"),
            Beside("session_length_mean_seconds", "window_sessions"),
            Beside("window_bounces", "window_sessions"),
        ),
    ),
    Row(
        "Time spent on items",
        "Each viewing of an item by a user counts once, with the longest time reported for it. The"
        " support, beside it, is the number of viewings.",
        (
            Beside("window_dwell_seconds", "window_dwells"),
            Beside("dwell_mean_seconds", "window_dwells"),
        ),
    ),
)
TILES = (
    *("window_users", "user_hit_ratio", "clicks_per_user"),
    *("window_sessions", "bounce_rate_ratio"),
)
HISTOGRAMS = ("dwell_seconds", "session_length_seconds")
_WHOLE = (Step(None, "orange"), Step(1, "green"))


class Engagement(Windowed):
    """Builds the page for the dimensions of a settings file."""

    def build(self) -> builders.Dashboard:
        """The page."""
        board = self._page("streamer-engagement", "streamer: users and sessions", "Means")
        board = board.with_row(builders.Row("All segments, in the chosen window"))
        for name in TILES:
            board = board.with_panel(self._tile(name))
        board = board.with_panel(self._sample())
        for row in ROWS:
            board = board.with_row(builders.Row(row.title))
            for pair in row.pairs:
                for panel in self._beside(pair, row.note):
                    board = board.with_panel(panel)
        board = board.with_panel(self._distribution())
        board = board.with_row(builders.Row("Settled, since the start"))
        for name in HISTOGRAMS:
            board = board.with_panel(self._settled(name))
        return board

    def _settled(self, name: str) -> timeseries.Panel:
        """A quantile of all that was settled; of what was settled lately it is that of a `rate`."""
        what = self._of(name)
        settled = f"{what.name}_bucket{{{JOB}{self._chosen()}}}"
        expr = over_exporters(settled, *self._dimensions, "le")
        legend = " · ".join(f"{{{{{label}}}}}" for label in self._dimensions) or what.title
        query = Query(f"histogram_quantile(0.9, {expr})", legend)
        title = f"{what.title}, 90th percentile"
        return panels.graph(title, what.description, what.unit, [query], width=12)

    def _beside(self, pair: Beside, note: str) -> Iterator[timeseries.Panel]:
        title = self._of(pair.metric).title
        narrowed: Mapping[str, str] = {}
        if pair.definition:
            title = f"{title}, {pair.definition}"
            narrowed = {"definition": f'definition="{pair.definition}"'}
        yield self._graph(pair.metric, width=14, title=title, note=note, narrowed=narrowed)
        of = f"{self._of(pair.support).title}: support of {title}"
        yield self._graph(pair.support, width=10, title=of)

    def _sample(self) -> stat.Panel:
        """The one tile that is of no window: how much of the users is counted."""
        what = self._of("user_sample_ratio")
        query = Query(over_exporters(f"{what.name}{{{JOB}}}"))
        return panels.tile(what.title, what.description, units.PercentUnit, query, steps=_WHOLE)

    def _distribution(self) -> heatmap.Panel:
        """Classes that are empty here but not everywhere are 0: so the rows are those of the axis
        whatever the window holds."""
        what = self._of("window_dwell_distribution")
        label = "upto_seconds"
        here = over_exporters(
            self._in_window("window_dwell_distribution", self._rolled_up()), label
        )
        anywhere = over_exporters(f"{what.name}{{{JOB}}}", label)
        text = (
            f"{what.description}\n\nEach column is the chosen window as it ended there; a row goes"
            " from the bound below it up to its own, and the top one holds all longer times. Of"
            " all segments together."
        )
        query = Query(f"{here} or 0 * {anywhere}", f"{{{{{label}}}}}")
        return panels.heat_map(what.title, text, query, rows_unit=units.Seconds)
