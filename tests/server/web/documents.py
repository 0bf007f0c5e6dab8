"""Documents of the JSON API that few exporters ever give."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

ODD = "<img src=x onerror=alert(1)> & \"'\u202e{0}"
NOW_MS = 1_750_000_000_000
HEALTH: dict[str, Any] = {
    "is_ready": True,
    "problems": [],
    "warnings": [],
    "stream_time_ms": NOW_MS,
    "now_ms": NOW_MS + 2000,
    "partitions": 1,
    "owned": 1,
    "files": [],
    "about": "",
    "lag_records": {"impressions": 0, "clicks": None},
    "users_behind_seconds": 0.0,
    "inexact": [],
    "workers": [{"worker": "w", "is_present": True, "partitions": [0]}],
    "read": {"topics": [], "feedback": [], "findings": []},
    "dimensions": ["variant"],
    "windows": ["5m"],
    "window_spans": {},
    "pipeline": [],
    "default_view": {"window": "5m", "split": []},
}
HISTORY: dict[str, Any] = {
    **{"name": "streamer_ctr_ratio", "title": "Click-through rate", "form": "percent"},
    **{"labels": [], "window": "5m", "at_ms": NOW_MS, "step_ms": 60_000, "omitted": 0},
    **{"starts_ms": [NOW_MS - 60_000, NOW_MS], "counted_since_ms": 0},
    "lines": [{"labels": {"variant": ODD}, "values": [0.1, 0.2], "lower": [], "upper": []}],
}
NOTHING_BEFORE: dict[str, Any] = {"title": "", "from_ms": None, "until_ms": None, "lines": []}
LISTED: dict[str, Any] = {
    **{"name": ODD, "title": ODD, "owner": "shop", "needs": "ship", "start": "2025-06-02"},
    "advice": {"pill": {"kind": "good", "sign": "✓", "words": "Ship B"}},
    "metric_title": "CTR",
    "lift": {"text": "+10%", "range": "+5.0% to +15%", "kind": "good"},
    **{"bar": {"dot": 60.0, "left": 40.0, "width": 50.0, "is_cut_low": False, "is_cut_high": True}},
    **{"users": 1000, "days": {"text": "2"}, "split": {"is_wrong": False}},
}
"""An entry of /api/experiments."""


def listing(*entries: dict[str, Any]) -> dict[str, Any]:
    """What /api/experiments answers."""
    scale = [{"at": 10.0, "text": "0%", "is_zero": True}, {"at": 90.0, "text": "+20%"}]
    needs = Counter(each["needs"] for each in entries)
    return {"experiments": list(entries), "scale": scale, "needs": dict(needs)}


def reading(name: str, value: float, variant: str, **labels: str) -> dict[str, Any]:
    labels = {"window": "5m", "variant": variant, **labels}
    return {"name": f"streamer_{name}", "labels": labels, "value": value}


def odd_documents() -> dict[str, tuple[int, Any]]:
    """An experiment and a segment of an odd name."""
    readings = [
        *(reading("window_impressions", n, v) for v, n in (("A", 50), (ODD, 150), ("all", 200))),
        reading("ctr_ratio", 0.25, ODD),
        reading("ctr_lower_ratio", 0.21, ODD),
        reading("ctr_upper_ratio", 0.295, ODD),
        reading("mrr", 0.5, ODD, odd=ODD),
    ]
    return {
        "/api/health": (200, copy.deepcopy(HEALTH)),
        "/api/readings": (200, {"stream_time_ms": 1, "readings": readings}),
        "/api/alerts": (200, {"alerts": [], "checks": [], "statuses": []}),
        "/api/metrics": (200, {"metrics": []}),
        "/api/annotations": (200, {"annotations": []}),
        "/api/history": (200, HISTORY),
        "/api/before": (200, NOTHING_BEFORE),
        "/api/experiments": (200, listing(LISTED)),
    }
