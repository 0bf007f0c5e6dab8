"""The page *scores*: the model's scores against clicks, over all impressions together; and how much
of the catalogue is shown, how diverse."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import timeseries

from grafana import panels
from grafana.panels import JOB, Query, over_exporters
from grafana.windowed import Windowed
from streamer.metrics.catalogue import PREFIX

TILES = ("auc_ratio", "auc_error_ratio", "calibration_ratio", "window_scored_impressions")
ROWS: dict[str, tuple[tuple[str, int], ...]] = {
    "Order": (("auc_ratio", 9), ("auc_error_ratio", 6), ("window_scored_impressions", 9)),
    "Level": (
        *(("calibration_ratio", 10), ("window_probability_clicked", 7)),
        ("window_probability_impressions", 7),
    ),
    "Calibration curve (family scores)": (
        *(("calibration_observed_ratio", 8), ("calibration_predicted_ratio", 8)),
        *(("window_calibration_impressions", 8), ("expected_calibration_error", 12)),
        ("window_score_impressions", 12),
    ),
    "Log loss (family scores)": (
        *(("log_loss", 8), ("normalized_entropy", 8), ("log_likelihood", 8)),
    ),
    "Errors (family scores)": (("mse", 6), ("rmse", 6), ("mae", 6), ("pearson_r", 6)),
    "As a classifier, and by value (family scores)": (
        *(("classifier_precision_ratio", 8), ("classifier_recall_ratio", 8)),
        ("fairness_loss", 8),
    ),
    "Clicks that other policies would have had (family off_policy)": (
        *(("ips_ratio", 8), ("snips_ratio", 8), ("doubly_robust_ratio", 8)),
        *(
            ("mean_weight_ratio", 8),
            ("effective_sample_size", 8),
            ("window_clipped_impressions", 8),
        ),
        *(("window_off_policy_impressions", 12), ("window_doubly_robust_impressions", 12)),
    ),
    "Coverage of the catalogue, in windows of an hour or more": (
        ("catalog_coverage_ratio", 12),
        ("window_items", 12),
    ),
    "Diversity of lists (family diversity), between lists in windows of an hour or more": (
        *(("intra_list_diversity_ratio", 12), ("window_category_lists", 12)),
        *(("inter_list_diversity_ratio", 12), ("window_lists", 12)),
    ),
    "Diversity of items (family diversity), in windows of an hour or more": (
        *(("novelty_ratio", 8), ("serendipity_ratio", 8), ("exposure_gini", 8)),
        *(("diversity_loss", 12), ("user_coverage_ratio", 12)),
    ),
}
"""Metrics without prefix, and the widths of their panels."""
DRIFT = "Drift against the day before (family scores, windows.day_before)"
DRIFTS = (
    *(("score_drift", 10), ("window_drift_impressions", 7)),
    ("window_drift_day_before_impressions", 7),
)
"""Shown of every window whose day before is kept, whichever is chosen."""
_NARROWED = {"maturity": 'maturity="$maturity"'}
_NOTE = (
    "Impressions with a score by their own time; maturity `mature` leaves out what clicks may still"
    " come for."
)


class Scores(Windowed):
    """Builds the page for the dimensions of a settings file."""

    def build(self) -> builders.Dashboard:
        """The page."""
        board = self._page("streamer-scores", "streamer: scores", "Scores against clicks")
        tiles = [self._tile(name, _NARROWED) for name in TILES]
        board = panels.with_rows(board, {"Everything, in the chosen window": tiles})
        rows = {
            title: [
                self._graph(name, width=width, note=_NOTE, narrowed=_NARROWED) for name, width in of
            ]
            for title, of in ROWS.items()
        }
        rows[DRIFT] = [self._of_every_window(name, width) for name, width in DRIFTS]
        return panels.with_rows(board, rows)

    def _of_every_window(self, name: str, width: int) -> timeseries.Panel:
        what = self._of(name)
        by = ("window", *self._dimensions)
        expr = over_exporters(f"{what.name}{{{JOB}{self._where(name)}}}", *by)
        legend = " · ".join(f"{{{{{label}}}}}" for label in by)
        queries = [Query(expr, legend)]
        return panels.graph(what.title, what.description, what.unit, queries, width=width)

    def _variables(self) -> list[builders.QueryVariable]:
        series = f"{PREFIX}window_scored_impressions{{{JOB}}}"
        maturity = panels.label_variable("maturity", series, "provisional")
        return [*super()._variables(), maturity]
