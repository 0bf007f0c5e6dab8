"""Panels of scores: their order and level, against clicks and against the day before."""

from __future__ import annotations

from streamer.monitoring.panels import (
    GREEN,
    ORANGE,
    RED,
    Override,
    Panel,
    Query,
    Step,
    bands_of,
    graph,
    support,
    table,
)
from streamer.monitoring.series import NUMBER, PERCENT
from streamer.monitoring.windowed import Windowed

_OFF = (Step(None, ORANGE), Step(0.9, GREEN), Step(1.1, ORANGE))
"""Predicted clicks per click: a tenth off."""
_NO_BETTER = (Step(None, GREEN), Step(1, RED))
"""Normalised entropy: from 1 on the mean click rate would predict as well."""
_DRIFTED = (Step(None, GREEN), Step(0.1, ORANGE), Step(0.2, RED))
"""Population stability index; the alert StreamerScoresDrifted has the last one."""
_BINS = {
    "calibration_predicted_ratio": "predicted",
    "calibration_observed_ratio": "clicked",
    "window_calibration_impressions": "impressions",
}


def panels(windowed: Windowed) -> list[Panel]:
    """Those whose metrics the settings show."""
    return [
        *windowed.split(
            "Calibration: how wrong are the scores?",
            "calibration_ratio",
            "window_probability_impressions",
            note="1 is right; above, scores promise more clicks than come. Provisional readings are"
            " too high until the clicks of the newest impressions have come.",
            steps=_OFF,
        ),
        *_order(windowed),
        *_bins(windowed),
        *windowed.split(
            "Normalised entropy: do scores predict better than the mean?",
            "normalized_entropy",
            "window_probability_impressions",
            note="Below 1 they do. `streamer_log_loss` has an interval.",
            steps=_NO_BETTER,
        ),
        *windowed.split(
            "RMSE of ratings: how far are scores from what people say?",
            "rating_rmse",
            "window_ratings",
        ),
        *_drift(windowed),
        *_policies(windowed),
    ]


def _order(windowed: Windowed) -> list[Panel]:
    """AUC of all impressions together, with the error that rounding of scores may make."""
    if not windowed.has("auc_ratio", "auc_error_ratio"):
        return []
    value, error = windowed.total("auc_ratio"), windowed.total("auc_error_ratio")
    queries = [
        Query(value, "AUC"),
        Query(f"{value} + {error}", "AUC high"),
        Query(f"{value} - {error}", "AUC low"),
        Query(windowed.total("window_scored_impressions"), "impressions"),
    ]
    overrides = [*bands_of(["AUC"]), support("^impressions$")]
    description = windowed.texts("auc_ratio", "auc_error_ratio")
    return [
        graph(
            "AUC: do scores order all impressions?",
            f"{description}\n\nThe line of 50 % is chance.",
            PERCENT,
            queries,
            empty="no scored impressions in this window",
            steps=(Step(None, RED), Step(0.5, GREEN)),
            overrides=overrides,
            from_zero=False,
        )
    ]


def _bins(windowed: Windowed) -> list[Panel]:
    """The calibration curve as a table: a row for each bin of scores."""
    if not windowed.has(*_BINS):
        return []
    queries = [Query(windowed.total(name, by=["bin"]), column) for name, column in _BINS.items()]
    overrides = [Override("^(predicted|clicked)$", {"unit": PERCENT})]
    description = windowed.texts(*_BINS)
    return [
        table(
            "Calibration by score: where are scores wrong?", description, queries,
            labels=["bin"], empty="no scored impressions in this window",
            sort="predicted", width=12, height=9, overrides=overrides,
        )
    ]  # fmt: skip


def _drift(windowed: Windowed) -> list[Panel]:
    """Of each window whose day before is kept, whichever is chosen."""
    windows = windowed.settings.windows.day_before
    if not windows or not windowed.has("score_drift"):
        return []
    any_window = 'window=~".+"'
    queries = [
        Query(windowed.total("score_drift", by=["window"], window=any_window), "{{window}}"),
        Query(
            windowed.total("window_drift_impressions", by=["window"], window=any_window),
            "{{window}}: impressions",
        ),
    ]
    description = windowed.of("score_drift").description
    title = "Drift of scores (PSI): have they moved since the day before?"
    return [
        graph(
            title, description, NUMBER, queries,
            empty="no whole day before to compare with", steps=_DRIFTED,
            overrides=[support(": impressions$")],
        )
    ]  # fmt: skip


def _policies(windowed: Windowed) -> list[Panel]:
    """Clicks that other policies would have had, beside those that there were."""
    if not windowed.settings.policies or not windowed.has("snips_ratio"):
        return []
    sizes = windowed.total("effective_sample_size", by=["policy"])
    queries = [
        *windowed.totals_with_ends("snips_ratio", "policy"),
        Query(sizes, "{{policy}}: effective impressions"),
    ]
    if windowed.has("ctr_ratio"):
        queries.append(Query(windowed.total("ctr_ratio"), "as logged"))
    overrides = [
        *bands_of(policy.name for policy in windowed.settings.policies),
        support(": effective impressions$"),
    ]
    description = windowed.texts("snips_ratio", "effective_sample_size")
    title = "CTR of other policies (SNIPS): would another one get more clicks?"
    empty = "no impressions with propensities in this window"
    return [graph(title, description, PERCENT, queries, empty=empty, overrides=overrides)]
