"""The dashboard *experiments*: whether arms differ, by how much, and whether to believe it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from streamer.metrics.catalogue import PREFIX
from streamer.monitoring.page import annotation, choice, page
from streamer.monitoring.panels import (
    GREEN,
    ORANGE,
    RED,
    SYSTEM,
    Override,
    Panel,
    Query,
    Step,
    bad_from,
    bands_of,
    colored,
    graph,
    in_words,
    named_numbers,
    over_exporters,
    ranked,
    support,
    table,
    the_first,
    tiles,
)
from streamer.monitoring.series import NUMBER, PERCENT, PanelSeries
from streamer.query.experiment_list import NEEDS
from streamer.query.pills import advice_pill, verdict_pill
from streamer.settings.model import Settings
from streamer.stats.experiments.recommendation import Recommendation
from streamer.stats.experiments.srm import ALPHA, ALPHA_FIXED
from streamer.stats.experiments.verdict import Outcome

_CHOSEN = f'{SYSTEM}, experiment="$experiment"'
_OF_METRIC = f'{_CHOSEN}, metric="$metric"'
_OF_PILLS = {"good": GREEN, "bad": RED, "warn": ORANGE, "open": "text"}
_COLORS = {str(outcome): _OF_PILLS[verdict_pill(outcome).kind] for outcome in Outcome}
_ADVICE = {
    str(action): _OF_PILLS[advice_pill(Recommendation(action, None, "")).kind]
    for actions in NEEDS.values()
    for action in actions
}
"""Recommendations and their colours, what needs a decision first."""
_COLUMNS = {"lift": "lift", "lower": "from", "upper": "to"}
_PERCENTS = Override(f"^({'|'.join(_COLUMNS.values())})$", {"unit": PERCENT})
_TOO_FEW = "too few users with a value yet"
_NO_DIFFERENCE = (Step(None, "text"), Step(0, "text"))
_ANYTIME = "The band holds at every look: act on it as soon as it excludes 0."
_FIXED = (
    "The band holds for one look at an end date set in advance. Looked at repeatedly it excludes 0"
    " in one of three experiments without any effect: decide by the other one."
)


class Experiments:
    """Builds the dashboard."""

    def __init__(self, series: Mapping[str, PanelSeries], settings: Settings) -> None:
        self._series, self._settings = series, settings

    def build(self, page_url: str) -> dict[str, Any]:
        """The dashboard; without experiments there is nothing on it."""
        first = self._settings.experiments[0]
        rows = {
            "The decision": [self._advice(), self._verdicts(), self._split(), self._users()],
            "$metric": [
                self._lift(
                    "anytime", "Lift of $metric, safe to check daily: is it chance?", _ANYTIME
                ),
                self._difference(),
                self._values(),
                self._lift("fixed", "Lift of $metric, at one look: is it chance?", _FIXED),
                self._p_values(),
                self._outside(),
            ],
        }
        users = f"{PREFIX}experiment_users{{{SYSTEM}}}"
        value = f"{PREFIX}experiment_value{{{_CHOSEN}}}"
        return page(
            "experiments",
            "Is an arm better than the control, and can that be believed?",
            rows,
            variables=[
                choice("experiment", users, first.name),
                choice("metric", value, first.metrics[0].name),
            ],
            annotations=[self._changes(), self._acted()],
            since="now-24h",
            links=[
                ("The exporter's page", page_url),
            ],
        )

    def _text(self, *names: str) -> str:
        return "\n\n".join(self._series[f"experiment_{name}"].description for name in names)

    def _of(self, name: str, where: str, *labels: str) -> str:
        return over_exporters(f"{PREFIX}experiment_{name}{{{where}}}", *labels)

    def _changes(self) -> dict[str, object]:
        """Marks of verdicts that were not there an interval before."""
        now = self._of("verdict", _CHOSEN, "metric", "arm", "verdict")
        expr = f"{now} unless {now.replace('})', '} offset $__interval)')}"
        return annotation("Verdicts", expr, "blue", "{{arm}}: {{verdict}}", "by {{metric}}")

    def _acted(self) -> dict[str, object]:
        """Marks of what `streamer act` has recorded of the experiment."""
        of = f'{PREFIX}acted_total{{{SYSTEM}, experiment="$experiment"}}'
        now = over_exporters(of, "occasion")
        then = over_exporters(f"{of} offset $__interval", "occasion")
        expr = f"{now} > ({then} or {now} * 0)"
        return annotation("Acted on", expr, "purple", "acted on: {{occasion}}", "`streamer act`")

    def _advice(self) -> Panel:
        """Of all experiments, the most urgent first, with the lift of the metric that decides."""
        labels = ("experiment",)
        ranks = [
            self._of("recommendation", f'{SYSTEM}, recommendation="{action}"', *labels, "arm")
            for action in _ADVICE
        ]
        urgency = f"bottomk by (experiment) (1, {ranked(ranks)})"
        queries = [
            Query(urgency, "recommendation"),
            *(Query(self._lift_of_advice(name), column) for name, column in _COLUMNS.items()),
        ]
        return table(
            "Recommendation: what to do with each experiment?",
            f"{self._text('recommendation')}\n\nLift: of the first metric, of the arm to ship or"
            " doing harm, else the largest of all arms.",
            queries,
            labels=(*labels, "arm"),
            first="recommendation",
            height=5,
            overrides=[named_numbers("recommendation", _ADVICE.items()), _PERCENTS],
            empty="no experiment has begun yet",
        )

    def _lift_of_advice(self, name: str) -> str:
        """The lift, or an end of its interval, of the first metric by experiment."""
        lifts = " or ".join(self._primary(name, *chosen) for chosen in self._primaries())
        arm = f'{PREFIX}experiment_recommendation{{{SYSTEM}, arm!=""}}'
        advised = f"(({lifts}) and on (experiment, arm) {arm})"
        return f"max by (experiment) ({advised} or (({lifts}) unless on (experiment) {arm}))"

    def _primaries(self) -> list[tuple[str, str]]:
        """(first metric, experiments that it decides, as a regular expression)."""
        found: dict[str, list[str]] = {}
        for each in self._settings.experiments:
            found.setdefault(each.metrics[0].name, []).append(re.escape(each.name))
        return [(metric, "|".join(names)) for metric, names in found.items()]

    def _primary(self, name: str, metric: str, experiments: str) -> str:
        """The lift, or an end of its interval, by experiment."""
        among = json.dumps(experiments)
        where = f'{SYSTEM}, experiment=~{among}, metric="{metric}", interval="anytime"'
        return self._of(f"{name}_ratio", where, "experiment", "arm")

    def _verdicts(self) -> Panel:
        labels = ("metric", "arm")
        verdict = the_first(f"{PREFIX}experiment_verdict{{{_CHOSEN}}}", labels, "verdict")
        anytime = f'{_CHOSEN}, interval="anytime"'
        joined = f" * on ({', '.join(labels)}) group_left (verdict) {verdict}"
        queries = [
            Query(self._of("value", _CHOSEN, *labels) + joined, "value"),
            *(
                Query(self._of(f"{name}_ratio", anytime, *labels) + joined, column)
                for name, column in _COLUMNS.items()
            ),
            Query(
                f"{self._of('users', _CHOSEN, 'arm')} * on (arm) group_right () {verdict}",
                "users",
            ),
        ]
        overrides = [colored("verdict", _COLORS), _PERCENTS]
        return table(
            "Verdicts of $experiment: what has been decided?",
            self._text("verdict", "lift_ratio", "users"),
            queries,
            labels=(*labels, "verdict"),
            height=6,
            overrides=overrides,
            empty="the first day is not over yet",
        )

    def _split(self) -> Panel:
        """Whether to trust the split, and the p-values that say so."""
        tests = {
            "anytime": ("p, at any look", ALPHA),
            "fixed": ("p, at one look", ALPHA_FIXED),
        }
        queries, overrides = [], []
        for interval, (column, least) in tests.items():
            where = f'{_CHOSEN}, interval="{interval}"'
            queries.append(Query(self._of("srm_pvalue", where), column))
            overrides.append(bad_from(f"^{column}$", [Step(None, RED), Step(least, GREEN)]))
        queries.insert(0, Query(queries[0].expr, "as planned"))
        overrides.append(in_words("as planned", "No: broken split", ALPHA, "Yes"))
        queries.append(Query(self._of("user_sample_ratio", _CHOSEN), "share of users sampled"))
        sampled = [Step(None, ORANGE), Step(1, GREEN)]
        overrides.append(bad_from("^share of users sampled$", sampled, unit=PERCENT))
        return tiles(
            "Split of users: is it as planned?",
            self._text("srm_pvalue", "user_sample_ratio"),
            NUMBER,
            queries,
            empty="no users yet",
            height=9,
            overrides=overrides,
        )

    def _users(self) -> Panel:
        queries = [
            Query(self._of("users", _CHOSEN, "arm"), "{{arm}}"),
            Query(self._of("users_in_several_arms", _CHOSEN), "in several arms, left out"),
        ]
        text = self._text("users", "users_in_several_arms")
        title = "Users: how many are compared?"
        return graph(title, text, NUMBER, queries, empty="no users yet", overrides=self._bands())

    def _bands(self) -> list[Override]:
        """The arms are in the settings, so bands can go by their names."""
        arms = dict.fromkeys(arm for each in self._settings.experiments for arm in each.shares)
        found = bands_of(arms)
        return [*found, support(": users$")]

    def _banded(self, names: Mapping[str, str], interval: str) -> list[Query]:
        where = f'{_OF_METRIC}, interval="{interval}"'
        queries = [
            Query(self._of(name, where, "arm"), f"{{{{arm}}}}{end}") for name, end in names.items()
        ]
        return [*queries, Query(self._of("users", _CHOSEN, "arm"), "{{arm}}: users")]

    def _lift(self, interval: str, title: str, note: str) -> Panel:
        names = {"lift_ratio": "", "lower_ratio": " low", "upper_ratio": " high"}
        return graph(
            title,
            f"{self._text('lift_ratio')}\n\n{note}",
            PERCENT,
            self._banded(names, interval),
            empty=_TOO_FEW,
            steps=_NO_DIFFERENCE,
            overrides=self._bands(),
        )

    def _difference(self) -> Panel:
        names = {"difference": "", "difference_lower": " low", "difference_upper": " high"}
        text = (
            f"{self._text('difference')}\n\n{_ANYTIME} It exists even where too few users count"
            " for a lift in percent."
        )
        queries = self._banded(names, "anytime")
        title = "Difference of $metric: how far from the control?"
        return graph(
            title, text, NUMBER, queries,
            empty=_TOO_FEW, steps=_NO_DIFFERENCE, overrides=self._bands(),
        )  # fmt: skip

    def _values(self) -> Panel:
        queries = [
            Query(self._of("value", _OF_METRIC, "arm"), "{{arm}}"),
            Query(self._of("users", _CHOSEN, "arm"), "{{arm}}: users"),
        ]
        return graph(
            "$metric since the start: what is it in each arm?",
            self._text("value"),
            NUMBER,
            queries,
            empty="no users yet",
            overrides=self._bands(),
            from_zero=False,
        )

    def _p_values(self) -> Panel:
        alpha = self._settings.experiments[0].alpha
        query = Query(self._of("pvalue", _OF_METRIC, "arm", "interval"), "{{arm}} · {{interval}}")
        return graph(
            "p-value of $metric: how often would chance alone do this?",
            f"{self._text('pvalue')}\n\nDashed: alpha of the first experiment.",
            NUMBER,
            [query],
            empty=_TOO_FEW,
            steps=(Step(None, GREEN), Step(alpha, "text")),
        )

    def _outside(self) -> Panel:
        queries = [Query(self._of("outside_outcomes", _CHOSEN, "reason"), "{{reason}}")]
        text = self._text("outside_outcomes")
        title = "Outcomes outside: which are ignored?"
        return graph(title, text, NUMBER, queries, empty="none")
