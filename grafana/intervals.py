"""The page *intervals*: rates and means with the ends of their 95 % intervals, by segment."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import timeseries

from grafana import panels
from grafana.panels import JOB, Query, over_exporters
from grafana.windowed import Windowed
from streamer.metrics.catalogue import PREFIX
from streamer.metrics.intervals import name_of

ROWS: dict[str, tuple[str, ...]] = {
    "Clicks and conversions": ("ctr_ratio", "cvr_ratio"),
    "Attributed to impressions": ("ctr_attributed_ratio", "cvr_attributed_ratio"),
    "Value": ("conversion_value_per_click", "conversion_value_per_impression"),
    "Scores": ("calibration_ratio", "log_loss", "mse", "rmse", "mae"),
    "Scores as a classifier": ("classifier_precision_ratio", "classifier_recall_ratio"),
    "Other policies": (*("ips_ratio", "snips_ratio", "doubly_robust_ratio", "mean_weight_ratio"),),
    "Diversity": ("intra_list_diversity_ratio",),
    "Custom": ("custom_mean", "custom_per_impression", "custom_per_user"),
    "Composites": ("composite",),
    "Users": ("user_hit_ratio", "positive_rate_ratio", "clicks_per_user"),
    "Dwell and sessions": (
        *("dwell_mean_seconds", "bounce_rate_ratio"),
        *("views_per_session", "session_length_mean_seconds"),
    ),
}
_NARROWED = {
    "maturity": 'maturity="$maturity"',
    "feedback": 'feedback="$feedback"',
    "definition": 'definition="$definition"',
    "threshold": 'threshold="$threshold"',
    "policy": 'policy="$policy"',
    "k": 'k="$k"',
    "custom": 'custom="$custom"',
    "composite": 'composite="$composite"',
}
_NOTE = (
    "Dashed: the ends of the 95 % interval, clustered by user: chance alone may have moved the"
    " value this far. It is for one look at one segment; alerts and experiments have wider ones."
)


class Intervals(Windowed):
    """Builds the page for the dimensions of a settings file."""

    def build(self) -> builders.Dashboard:
        """The page."""
        what = "Rates and means with their intervals"
        board = self._page("streamer-intervals", "streamer: intervals", what)
        rows = {title: [self._with_ends(name) for name in names] for title, names in ROWS.items()}
        return panels.with_rows(board, rows)

    def _variables(self) -> list[builders.QueryVariable]:
        shown = f"{PREFIX}ctr_attributed_ratio{{{JOB}}}"
        rated = f"{PREFIX}positive_rate_ratio{{{JOB}}}"
        classified = f"{PREFIX}classifier_recall_ratio{{{JOB}}}"
        estimated = f"{PREFIX}ips_ratio{{{JOB}}}"
        listed = f"{PREFIX}intra_list_diversity_ratio{{{JOB}}}"
        customs = f"{PREFIX}window_custom_events{{{JOB}}}"
        composed = f"{PREFIX}composite{{{JOB}}}"
        return [
            *super()._variables(),
            panels.label_variable("maturity", shown, "provisional"),
            panels.label_variable("feedback", rated, "click"),
            panels.label_variable("definition", rated, "docs"),
            panels.label_variable("threshold", classified, self._first_threshold()),
            panels.label_variable("policy", estimated, self._first_policy()),
            panels.label_variable("k", listed, str(self._settings.metrics.k[0])),
            panels.label_variable("custom", customs, self._first_custom()),
            panels.label_variable("composite", composed, self._first_composite()),
        ]

    def _first_threshold(self) -> str:
        return f"{self._settings.metrics.thresholds[0]:.9g}"

    def _first_policy(self) -> str:
        return next((policy.name for policy in self._settings.policies), "")

    def _first_custom(self) -> str:
        return next((custom.name for custom in self._settings.custom), "")

    def _first_composite(self) -> str:
        return next((composite.name for composite in self._settings.composites), "")

    def _with_ends(self, name: str) -> timeseries.Panel:
        what = self._of(name)
        where = self._where(name_of(name, "lower")) + "".join(
            f", {_NARROWED[label]}" for label in what.labels
        )
        legend = " · ".join(f"{{{{{label}}}}}" for label in self._dimensions) or what.title
        queries = [
            Query(over_exporters(self._in_window(series, where), *self._dimensions), text)
            for series, text in (
                (name, legend),
                (name_of(name, "lower"), f"{legend} low"),
                (name_of(name, "upper"), f"{legend} high"),
            )
        ]
        text = f"{what.description}\n\n{_NOTE}"
        panel = panels.graph(what.title, text, what.unit, queries, width=12, from_zero=False)
        return panels.dashed_ends(panel)
