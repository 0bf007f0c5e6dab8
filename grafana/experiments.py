"""The page *experiments*: who is compared, by how much arms differ, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import stat, table, timeseries
from grafana_foundation_sdk.models import units

from grafana import panels
from grafana.declared import Declared
from grafana.panels import JOB, Query, Step, over_exporters
from streamer.metrics.catalogue import PREFIX
from streamer.stats.experiments.srm import ALPHA, ALPHA_FIXED

_CHOSEN = f'{JOB}, experiment="$experiment"'
_OF_METRIC = f'{_CHOSEN}, metric="$metric"'
_INTERVALS = {
    "anytime": "Lift over the control, however often one looks",
    "fixed": "Lift over the control, at a single look",
}
_NOTES = {
    "anytime": "The band holds at every look: act on it as soon as it excludes 0.",
    "fixed": "The band holds for one look at an end date set in advance. Looked at repeatedly it"
    " excludes 0 in one of three experiments without any effect: decide by the other one.",
}
_HIDDEN = ("Time", "Value", "__name__", "instance", "job", "experiment", "metric")


class Experiments:
    """Builds the page."""

    def __init__(self, declared: dict[str, Declared]) -> None:
        self._declared = declared

    def build(self) -> builders.Dashboard:
        """The page."""
        text = "A/B tests with users as the unit; docs/experiments.md says how to read them."
        board = panels.page("streamer-experiments", "streamer: experiments", text)
        users = f"{self._of('experiment_users').name}{{{JOB}}}"
        value = f"{self._of('experiment_value').name}{{{_CHOSEN}}}"
        board = board.with_variable(panels.label_variable("experiment", users, ""))
        board = board.with_variable(panels.label_variable("metric", value, "ctr_ratio"))
        rows: dict[str, Sequence[stat.Panel | timeseries.Panel | table.Panel]] = {
            "Validity of the comparison": self._tiles(),
            "Users of the arms": [self._users()],
            "$metric": [
                *(self._lift("anytime"), self._verdicts()),
                *(self._lift("fixed"), self._difference()),
            ],
            "Values and p-values": [self._values(), self._p_values()],
        }
        return panels.with_rows(board, rows)

    def _of(self, name: str) -> Declared:
        return self._declared[PREFIX + name]

    def _series(self, name: str, where: str, *labels: str) -> str:
        return over_exporters(f"{self._of(name).name}{{{where}}}", *labels)

    def _tiles(self) -> list[stat.Panel]:
        split = self._of("experiment_srm_pvalue")
        found = []
        tests = {
            "anytime": ("Split of the users", ALPHA),
            "fixed": ("Split of the users (Pearson)", ALPHA_FIXED),
        }
        for interval, (title, least) in tests.items():
            steps = (Step(None, "red"), Step(least, "green"))
            where = f'{_CHOSEN}, interval="{interval}"'
            tested = Query(self._series("experiment_srm_pvalue", where))
            found.append(panels.tile(title, split.description, units.Short, tested, steps=steps))
        for name in ("experiment_users_in_several_arms", "experiment_user_sample_ratio"):
            what = self._of(name)
            query = Query(self._series(name, _CHOSEN))
            found.append(panels.tile(what.title, what.description, what.unit, query))
        outside = self._of("experiment_outside_outcomes")
        query = Query(self._series("experiment_outside_outcomes", _CHOSEN, "reason"), "{{reason}}")
        return [*found, panels.tile(outside.title, outside.description, outside.unit, query)]

    def _users(self) -> timeseries.Panel:
        what = self._of("experiment_users")
        query = Query(self._series("experiment_users", _CHOSEN, "arm"), "{{arm}}")
        return panels.graph(what.title, what.description, what.unit, [query], width=24)

    def _lift(self, interval: str) -> timeseries.Panel:
        where = f'{_OF_METRIC}, interval="{interval}"'
        names = {"lift": "", "lower": " low", "upper": " high"}
        queries = [
            Query(self._series(f"experiment_{name}_ratio", where, "arm"), "{{arm}}" + suffix)
            for name, suffix in names.items()
        ]
        text = f"{self._of('experiment_lift_ratio').description}\n\n{_NOTES[interval]}"
        return panels.dashed_ends(
            panels.graph(_INTERVALS[interval], text, units.PercentUnit, queries)
        )

    def _difference(self) -> timeseries.Panel:
        where = f'{_OF_METRIC}, interval="anytime"'
        names = {"difference": "", "difference_lower": " low", "difference_upper": " high"}
        queries = [
            Query(self._series(f"experiment_{name}", where, "arm"), "{{arm}}" + suffix)
            for name, suffix in names.items()
        ]
        text = (
            f"{self._of('experiment_difference').description}\n\n{_NOTES['anytime']} It exists"
            " even where too few users count for a lift in percent."
        )
        title = "Difference to the control, however often one looks"
        return panels.dashed_ends(panels.graph(title, text, units.Short, queries))

    def _verdicts(self) -> table.Panel:
        what = self._of("experiment_verdict")
        query = Query(self._series("experiment_verdict", _CHOSEN, "metric", "arm", "verdict"))
        hidden = [name for name in _HIDDEN if name != "metric"]
        return panels.rows_of("Verdicts", what.description, query, hidden)

    def _values(self) -> timeseries.Panel:
        what = self._of("experiment_value")
        query = Query(self._series("experiment_value", _OF_METRIC, "arm"), "{{arm}}")
        title = "$metric in each arm, since the start"
        return panels.graph(title, what.description, units.Short, [query], from_zero=False)

    def _p_values(self) -> timeseries.Panel:
        what = self._of("experiment_pvalue")
        series = self._series("experiment_pvalue", _OF_METRIC, "arm", "interval")
        query = Query(series, "{{arm}} · {{interval}}")
        return panels.graph("p-value of the lift", what.description, units.Short, [query])
