"""What metrics of experiments and alerts are called, and how their values are written."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.metrics.compared_metrics import AlertMeasures, ComparedMetrics, known_names
from streamer.metrics.ratios import RATIOS
from streamer.settings.load import parse

METRICS: dict[str, Any] = {
    "k": [5, 10],
    "feedback": {"click": 1.0, "like": 2.0},
    "conventions": {"map_ratio": ["jurity"]},
    "thresholds": [0.25, 1],
}

POLICIES = [{"name": "new", "propensity": "p_new"}]
LATENCY = {"kind": "impressions", "field": "latency_ms"}
RATIOS_OF_OURS: list[dict[str, Any]] = [
    {"name": "latency", "numerator": LATENCY, "denominator": {"kind": "impressions"}},
    {"name": "p90", "title": "Latency", "numerator": LATENCY, "denominator": {"kind": "people"}},
    {"name": "sum", "numerator": LATENCY, "unit": "seconds"},
]


@pytest.mark.parametrize(
    ("name", "title", "form"),
    [
        ("ctr_ratio", "Click-through rate", "percent"),
        ("dwell_mean_seconds", "Mean dwell time", "seconds"),
        ("conversion_value_per_click", "Conversion value per click", "number"),
        ("ndcg_ratio@10", "NDCG@10", "number"),
        ("hit_ratio@5", "Hit rate@5", "percent"),
        ("map_ratio@5.engaged.jurity", "Mean average precision@5, engaged, jurity", "number"),
        ("positive_rate_ratio", "Positive rate", "percent"),
        ("positive_rate_ratio.like", "Positive rate, like", "percent"),
        ("calibration_ratio", "Calibration", "number"),
        ("classifier_recall_ratio@0.25", "Classifier recall@0.25", "percent"),
        ("snips_ratio@new", "Click-through rate by SNIPS@new", "percent"),
        ("mean_weight_ratio@new", "Mean weight@new", "number"),
        ("ratio@latency", "latency", "number"),
        ("ratio@sum", "sum", "seconds"),
        ("dwell_seconds_per_user", "Dwell per user", "seconds"),
        ("dwell_seconds_per_user@p90", "Dwell per user, percentile 90", "seconds"),
        ("ratio@p90", "Latency", "number"),
        ("ratio@p90@p99.9", "Latency, percentile 99.9", "number"),
    ],
)
def test_a_metric_has_a_title_and_a_form(name: str, title: str, form: str) -> None:
    settings = parse({"metrics": METRICS, "policies": POLICIES, "ratios": RATIOS_OF_OURS})
    found = ComparedMetrics(settings, [(name, "test")]).ratios[name]
    assert (found.name, found.title, found.form) == (name, title, form)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("clicks_per_user@p0", "@p0 is above 0 and below 100"),
        ("clicks_per_user@p100", "@p100 is above 0 and below 100"),
        ("user_hit_ratio@p90", "no such metric"),
        ("ctr_ratio@p90", "no such metric"),
        ("ratio@size@p90", "@ratio is one of ratios: latency, p90, sum"),
        ("ratio@latency@p90", "percentiles are of a metric by user"),
    ],
)
def test_percentiles_are_of_metrics_per_user(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        ComparedMetrics(parse({"ratios": RATIOS_OF_OURS}), [(name, "test")])


def test_every_declared_ratio_can_be_compared() -> None:
    assert {r.name for r in RATIOS} <= set(known_names())


def test_of_sessions_there_are_no_alerts() -> None:
    alert = {"name": "bounces", "metric": "bounce_rate_ratio", "window": "1h", "drop": 0.1}
    with pytest.raises(SettingsError, match="'bounce_rate_ratio' is of sessions, which count at"):
        AlertMeasures(parse({"alerts": [alert]}))
