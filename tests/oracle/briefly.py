"""Which series are shown where: all in detailed rollups, in the others only the brief ones."""

from __future__ import annotations

from streamer.settings.model import Settings

from .shape import Labels, Readings

ALWAYS = {
    *("impressions_total", "clicks_total", "conversions_total", "conversion_value_total"),
    *("feedback_total", "window_impressions", "window_clicks", "window_conversions"),
    *(
        "window_conversion_value",
        "window_conversion_lines",
        "ctr_ratio",
        "cvr_ratio",
        "order_value_mean",
        "conversion_value_per_click",
    ),
    *("conversion_value_per_impression", "window_users", "user_hit_ratio", "positive_rate_ratio"),
    *("dwell_mean_seconds", "window_dwells", "session_length_mean_seconds"),
    *("window_sessions", "bounce_rate_ratio"),
    *(
        "ratio",
        "window_ratio_numerator",
        "window_ratio_denominator",
        "ratio_quantile",
    ),
    *("composite", "composite_lower", "composite_upper"),
    *("window_requests", "zero_results_ratio"),
    *("refunds_total", "refund_value_total", "window_refunds", "window_refund_value"),
    *("score_drift", "window_drift_impressions", "window_drift_day_before_impressions"),
    *("ctr_lower_ratio", "ctr_upper_ratio", "cvr_lower_ratio", "cvr_upper_ratio"),
}
OF_SLATES = {
    *("window_slates", "ndcg_ratio", "ndcg_ratio_stderr"),
    *("window_gauc_slates", "gauc_ratio", "gauc_ratio_stderr"),
}
"""Of single dimensions only, and while feedback still comes."""


def briefly(readings: Readings, settings: Settings) -> Readings:
    """What is left of the readings of all rollups."""
    return {key: x for key, x in readings.items() if _is_shown(*key, settings)}


def _is_shown(name: str, labels: Labels, settings: Settings) -> bool:
    named = dict(labels)
    if any(dimension not in named for dimension in settings.dimension_names):
        return True
    if name.startswith(("streamer_alert", "streamer_experiment")):
        return True
    rollup = {d for d in settings.dimension_names if named[d] != "all"}
    if any(rollup == set(detailed) for detailed in settings.detailed):
        return True
    bare = name.removeprefix("streamer_")
    if bare in OF_SLATES:
        return len(rollup) <= 1 and named["maturity"] == "provisional"
    return bare in ALWAYS and named.get("definition") in (None, "docs")
