"""Engine and oracle side by side: the settings they are compared under, and what may differ."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.query.readings import ReadingSet, readout
from streamer.settings.load import parse
from streamer.settings.model import Metrics, Settings
from streamer.state.snapshot import view_of
from tests.oracle.oracle import Record, records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings
from tests.support.canonical import Canonical, canonical
from tests.support.engines import Engines, LogRecord, chunks_of

LATENCY = {"kind": "impressions", "field": "latency_ms"}
MARGIN = {"kind": "conversions", "field": "margin"}
SPENT = {
    "kind": "clicks",
    "field": "dwell_ms",
    "where": {"surface": ["surface-0", "surface-7"], "device": "device-1"},
}
OF_SPRING = {"impression.campaign": ["spring", 5, True], "campaign": ["spring", "autumn"]}
RATIOS: list[dict[str, Any]] = [
    {
        "name": "latency",
        "numerator": LATENCY,
        "denominator": {"kind": "impressions", "where": {"latency_ms": {">=": -1e12}}},
        "quantiles": True,
        "better": "lower",
    },
    {
        "name": "share_of_a",
        "numerator": {"kind": "clicks", "where": {"variant": ["A", "variant-5"]}},
        "denominator": {"kind": "clicks"},
        "unit": "percent",
    },
    {"name": "spent", "numerator": SPENT, "denominator": {"kind": "impressions"}},
    {"name": "margin", "numerator": MARGIN, "denominator": {"kind": "people"}, "quantiles": True},
    {"name": "margin_rate", "numerator": MARGIN, "denominator": {"kind": "impressions"}},
    {"name": "margins", "numerator": MARGIN},
    {
        "name": "roas",
        "numerator": {"kind": "lines", "field": "value", "where": OF_SPRING},
        "denominator": {
            "kind": "clicks",
            "field": "dwell_ms",
            "where": {"impression.position": {"<=": 3, ">": 0}},
        },
    },
    {
        "name": "clicks_per_second",
        "numerator": {"kind": "like", "where": {"impression.surface": "surface-0"}},
        "denominator": {"kind": "clicks", "field": "dwell_ms"},
    },
    {
        "name": "orders",
        "numerator": {"kind": "conversions", "where": {"impression.campaign": "spring"}},
        "denominator": {"kind": "sessions"},
    },
    {
        "name": "lines",
        "numerator": {"kind": "lines", "where": {"value": {">": 5}, "campaign": {">=": 5}}},
        "denominator": {"kind": "slates"},
    },
    {
        "name": "depth_of_b",
        "numerator": {"kind": "clicks", "field": "depth", "where": {"variant": "B"}},
        "denominator": {"kind": "clicks", "where": {"depth": {">": -1e12}, "variant": "B"}},
    },
    {
        "name": "shown",
        "numerator": {
            "kind": "impressions",
            "where": {"campaign": ["spring", 5], "position": {"<": 4}},
        },
        "denominator": {"kind": "impressions", "where": {"item_id": ["i1", "i2", "i3", "i4"]}},
        "unit": "percent",
    },
    {
        "name": "rating",
        "numerator": {"kind": "like", "field": "rating", "where": {"rating": {">=": 0}}},
        "denominator": {"kind": "clicks", "where": {"rating": [5, 100]}},
    },
    {
        "name": "likes",
        "numerator": {"kind": "like", "where": {"impression.score": {">": 0.2}}},
        "denominator": {"kind": "people"},
    },
]
"""Ratios of every kind: counts and fields, asked of the event and of what it joined."""
DOCUMENTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "few values": {
        "dimensions": [
            {"name": "variant", "values": ["A", "B"], "max_values": 2},
            {"name": "surface", "max_values": 3},
            {"name": "device", "max_values": 1},
        ],
        "metrics": {
            "families": [*Metrics().families, "scores", "off_policy", "diversity"],
            "thresholds": [0.1, 0.5],
            "max_weight": 20,
            "feedback": {"click": 1.0, "like": 1.0},
            "k": [3],
            "visible": {"surface": {"surface-0": 1, "surface-7": 5}},
            "rollups": [[], ["variant"], ["surface"], ["device", "variant"], ["surface", "device"]],
            "detailed": [[], ["surface"], ["variant", "device"]],
        },
        "experiments": [
            {
                "name": "ranker",
                "dimension": "variant",
                "control": "B",
                "split": {"A": 2, "B": 1},
                "start": date(2023, 11, 14),
                "metrics": [
                    {"name": "ctr_ratio"},
                    {"name": "ndcg_ratio@3.engaged"},
                    {"name": "hit_ratio@visible"},
                    {"name": "positive_rate_ratio.like", "margin": 0.5},
                    {"name": "dwell_mean_seconds", "direction": "lower"},
                    {"name": "conversion_value_per_user"},
                    {"name": "conversions_per_user", "cap": 1},
                    {"name": "clicks_per_user", "cap": 1},
                    {"name": "log_loss", "direction": "lower"},
                    {"name": "rating_mse", "direction": "lower"},
                    {"name": "calibration_ratio"},
                    {"name": "classifier_precision_ratio@0.1"},
                    {"name": "snips_ratio@new"},
                    {"name": "doubly_robust_ratio@new"},
                    {"name": "intra_list_diversity_ratio@3"},
                    {"name": "ratio@latency"},
                    {"name": "ratio@margin", "cap": 0.9},
                    {"name": "ratio@margins@p50"},
                    {"name": "dwell_seconds_per_user@p90", "direction": "lower"},
                    *({"name": "ratio@spent"}, {"name": "ratio@roas"}, {"name": "ratio@orders"}),
                    *({"name": "ratio@clicks_per_second"}, {"name": "ratio@share_of_a"}),
                    {"name": "composite@arms"},
                    {"name": "composite@varied-and-fast"},
                ],
            }
        ],
        "alerts": [
            {"name": "ctr", "segments": ["variant", "surface"]},
            {"name": "order", "metric": "ndcg_ratio@3", "window": "10m", "baseline": "before"},
            {"name": "dwell", "metric": "dwell_mean_seconds", "direction": "lower"},
            {"name": "seen", "metric": "precision_ratio@visible", "segments": ["surface"]},
            {"name": "rated", "metric": "rating_mae", "direction": "lower"},
            {"name": "level", "metric": "calibration_ratio"},
            {"name": "policy", "metric": "ips_ratio@by-place"},
            {"name": "diversity", "metric": "intra_list_diversity_ratio@3"},
            {"name": "margin", "metric": "ratio@margin_rate", "segments": ["variant"]},
            {"name": "roas", "metric": "ratio@roas"},
            {"name": "healthy", "metric": "composite@arms", "segments": ["surface"]},
            {"name": "varied", "metric": "composite@varied-and-fast"},
        ],
        "items": {
            "dimensions": ["surface", "variant", "device"],
            "catalog_size": 30,
            "windows": ["5m", "24h"],
            "pairs": True,
        },
        "ratios": RATIOS,
        "policies": [
            {"name": "new", "propensity": "p_new", "estimate": "q_new"},
            {"name": "by-place", "positions": [0.5, 0.25, 0, 1]},
        ],
        "windows": {"day_before": ["1h", "24h"]},
        "composites": [
            {
                "name": "health",
                "parts": [
                    {"metric": "ctr_ratio", "weight": 0.6, "against": "target", "target": 0.3},
                    {"metric": "dwell_mean_seconds", "weight": 0.01},
                    {"metric": "bounce_rate_ratio", "weight": -0.2},
                ],
            },
            {
                "name": "arms",
                "parts": [
                    {"metric": "ctr_ratio", "weight": 2, "against": "target", "target": 0.4},
                    {"metric": "ndcg_ratio@3.engaged"},
                    {"metric": "snips_ratio@new", "weight": -0.5},
                ],
            },
            {
                "name": "than-yesterday",
                "parts": [
                    {"metric": "conversion_value_per_click", "against": "day_before"},
                    {"metric": "ctr_attributed_ratio", "against": "day_before"},
                    {"metric": "cvr_attributed_ratio", "weight": 3},
                ],
            },
            {
                "name": "models",
                "parts": [
                    {"metric": "ndcg_ratio@visible.engaged", "against": "day_before"},
                    {"metric": "snips_ratio@new"},
                    {"metric": "log_loss", "weight": -0.5, "against": "day_before"},
                ],
            },
            {
                "name": "varied-and-fast",
                "parts": [
                    {"metric": "intra_list_diversity_ratio@3"},
                    {"metric": "ratio@spent", "weight": -1e-3},
                    {
                        "metric": "ratio@margin_rate",
                        "weight": 0.5,
                        "against": "target",
                        "target": 3,
                    },
                ],
            },
        ],
    },
    "no dimensions, short times": {
        "dimensions": [],
        "windows": {"lengths": ["30s", "5m", "2h"]},
        "metrics": {
            "families": [f for f in Metrics().families if f not in ("calibration", "coverage")],
            "k": [2, 3, 1],
            "conventions": {
                "precision_ratio": ["shown"],
                "map_ratio": ["primer", "jurity"],
                "mar_ratio": ["jurity", "primer"],
                "ndcg_ratio": ["exponential", "jurity"],
                "kendall_tau": ["tau_b"],
            },
        },
        "attribution": {"click": "10m", "conversion": "1h"},
        "composites": [
            {"name": "c", "parts": [{"metric": "ctr_attributed_ratio"}, {"metric": "cvr_ratio"}]},
        ],
        "time": {"max_lateness": "10m", "max_skew": "1m", "dedup_horizon": "20m"},
    },
    "mapped names, own rollups": {
        "dimensions": [{"name": "variant", "max_values": 0}, {"name": "country"}],
        "metrics": {
            "families": [
                "scores",
                "off_policy",
                "diversity",
                *(f for f in Metrics().families if f not in ("calibration", "coverage")),
            ],
            "feedback": {"click": 0.5, "like": 0.0, "star": 5.0, "conversion": 2.0},
            "margin": 0.25,
            "conventions": {"ndcg_ratio": ["jurity", "exponential"], "mar_ratio": ["primer"]},
            "rollups": [[], ["country"], ["country", "variant"]],
            "detailed": [[], ["country"], ["country", "variant"]],
            "k": [1, 5, 10],
            "visible": {"country": {"country-1": 2}},
        },
        "events": {
            "positions_from": 0,
            "zone": "Australia/Lord_Howe",
            "fields": {
                "item_id": "sku",
                "user_id": "uid",
                "country": "geo",
                "p_a": "propensity_a",
                "cost": "c",
            },
        },
        "ratios": [
            {
                "name": "cost",
                "numerator": {"kind": "clicks", "field": "cost", "where": {"variant": "variant-1"}},
                "denominator": {"kind": "star"},
            },
            {
                "name": "score",
                "numerator": {"kind": "impressions", "field": "score"},
                "denominator": {"kind": "impressions"},
                "quantiles": True,
            },
            {
                "name": "value",
                "numerator": {"kind": "conversions", "field": "value"},
                "denominator": {"kind": "lines", "where": {"impression.country": "country-1"}},
            },
            {
                "name": "load",
                "numerator": {
                    "kind": "sessions",
                    "field": "load",
                    "where": {"country": "country-1", "campaign": "spring"},
                },
                "denominator": {"kind": "sessions"},
                "quantiles": True,
            },
        ],
        "policies": [
            {"name": "A", "propensity": "p_a", "estimate": "q_a"},
            {"name": "B", "propensity": "p_b"},
        ],
        "experiments": [
            {
                "name": "by:country",
                "dimension": "country",
                "control": "country-0",
                "split": {"country-0": 1, "country-1": 1, "country-2": 1},
                "start": date(2023, 11, 15),
                "covariate_days": 1,
                "alpha": 0.1,
                "metrics": [
                    *({"name": "cvr_attributed_ratio"}, {"name": "map_ratio@5"}),
                    *({"name": "composite@value"}, {"name": "conversions_per_user"}),
                ],
            },
        ],
        "windows": {"lengths": ["7s", "24h"], "day_before": ["24h"]},
        "composites": [
            {
                "name": "value",
                "parts": [
                    {"metric": "conversion_value_per_click", "against": "target", "target": 40},
                    {"metric": "map_ratio@5", "weight": 5},
                    {"metric": "dwell_mean_seconds", "weight": -0.1},
                ],
            },
            {
                "name": "policies",
                "parts": [
                    {"metric": "doubly_robust_ratio@A", "against": "day_before"},
                    {"metric": "classifier_recall_ratio@0.5", "weight": 2},
                ],
            },
        ],
        "items": {
            "category": "country",
            "dimensions": ["country", "variant"],
            "users": 100,
            "pairs": True,
        },
    },
}
"""Settings files, as TOML documents."""
SETTINGS: dict[str, Settings] = {name: parse(data) for name, data in DOCUMENTS.items()}
SKETCHED = (
    *("streamer_window_dwell_seconds", "streamer_window_session_length_seconds"),
    "streamer_ratio_quantile",
)
"""The metrics that are estimates: within 1 %."""

DIFFERENCES = (
    *("streamer_fairness_loss", "streamer_pearson_r", "streamer_composite"),
    "streamer_exposure_gini",
)
"""Made of differences, in which digits are lost."""


def to_log(records: Iterable[Record]) -> list[LogRecord]:
    """The oracle's records as the test kit's."""
    return [LogRecord(r.topic, r.partition, r.offset, r.record_ms, r.raw) for r in records]


def log_records(seed: int, settings_name: str, lines: int, partitions: int) -> list[Record]:
    """Records of a random log."""
    settings = SETTINGS[settings_name]
    return records_of_log(random_log(seed, settings, lines), settings, partitions=partitions)


@functools.lru_cache(maxsize=16)
def random_records(
    seed: int, settings_name: str, lines: int, partitions: int
) -> tuple[list[Record], Readings]:
    """Records of a random log, and what the oracle reads from them."""
    records = log_records(seed, settings_name, lines, partitions)
    return records, run(records, SETTINGS[settings_name]).readings


def by_key(result: ReadingSet) -> Readings:
    """Readings by name and labels; a series that comes twice is a failure."""
    readings = {(r.name, frozenset(r.labels.items())): r.value for r in result.readings}
    assert len(readings) == len(result.readings)
    return readings


def read_engines(engines: Engines) -> Readings:
    """Readings of partitions in memory, at stream time."""
    views = [view_of(p) for p in engines.partitions]
    return by_key(readout(engines.settings, engines.catalogue, views))


def run_engines(
    settings: Settings,
    partitions: int,
    log: Sequence[LogRecord],
    size: int,
    seed: int | None = None,
    key: HashKey = FIXED_KEY,
) -> Engines:
    """Partitions that were fed a whole log, in chunks as ``chunks_of`` cuts them."""
    engines = Engines(settings, partitions, key)
    for chunk in chunks_of(log, size, seed):
        engines.feed(chunk)
    engines.finish()
    return engines


def states(engines: Engines) -> list[Canonical]:
    """The canonical state of every partition."""
    return [canonical(p) for p in engines.partitions]


def differences(got: Readings, expected: Readings) -> list[str]:
    """What is missing, more, or not equal: integers to the last bit, floats to 1e-12."""
    found = []
    for key in sorted(got.keys() | expected.keys(), key=lambda k: (k[0], sorted(k[1]))):
        a, b = got.get(key), expected.get(key)
        if not _agree(key[0], a, b):
            found.append(f"{key[0]} {dict(sorted(key[1]))}: {a} instead of {b}")
    return found


def _agree(name: str, a: int | float | None, b: int | float | None) -> bool:
    if a is None or b is None:
        return False
    if name in SKETCHED:
        return abs(a - b) <= (0.01 + 1e-12) * abs(b)  # exactly 1 % at the ends of a bucket
    if "_lower" in name or "_upper" in name:  # ends may lie near 0, far from what they are made of
        return abs(a - b) <= 1e-9 * abs(b) + 1e-12
    if name in DIFFERENCES:
        return abs(a - b) <= 1e-9 * abs(b) + 1e-14
    if name == "streamer_inter_list_diversity_ratio":  # vectors of lists are rounded
        return abs(a - b) <= 2e-7
    if isinstance(b, float):
        return abs(a - b) <= 1e-12 * abs(b)
    return a == b
