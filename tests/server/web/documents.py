"""Documents of the JSON API that few exporters ever give."""

from __future__ import annotations

import copy
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
}
HISTORY: dict[str, Any] = {
    **{"name": "streamer_ctr_ratio", "title": "Click-through rate", "form": "percent"},
    **{"labels": [], "window": "5m", "at_ms": NOW_MS, "step_ms": 60_000, "omitted": 0},
    **{"starts_ms": [NOW_MS - 60_000, NOW_MS], "counted_since_ms": 0},
    "lines": [{"labels": {"variant": ODD}, "values": [0.1, 0.2], "lower": [], "upper": []}],
}
LISTED = {"name": ODD, "dimension": "variant", "control": "A", "arms": ["A", ODD, "C"]}


def reading(name: str, value: float, variant: str, **labels: str) -> dict[str, Any]:
    labels = {"window": "5m", "variant": variant, **labels}
    return {"name": f"streamer_{name}", "labels": labels, "value": value}


def estimate(value: float | None, low: float = 0.0, high: float = 0.0) -> dict[str, Any]:
    if value is None:
        return dict.fromkeys(("value", "stderr", "fixed", "anytime")) | {"reason": "too few"}
    ends = {"low": low, "high": high, "p_value": 0.00001, "p_adjusted": 0.00002, "alpha": 0.05}
    return {"value": value, "stderr": 0.1, "fixed": ends, "anytime": ends, "reason": ""}


def comparison(arm: str, found: dict[str, Any], outcome: str = "keep running") -> dict[str, Any]:
    scale = "absolute" if found["anytime"] is None else "relative"
    return {
        "arm": arm,
        "users": 1000,
        "absolute": estimate(0.01, -0.01, 0.03),
        "relative": found,
        "adjusted": None,
        "guardrail": None,
        "detectable": dict.fromkeys(
            f"{kind}_{when}" for kind in ("absolute", "relative") for when in ("fixed", "anytime")
        ),
        "verdict": {"outcome": outcome, "reason": "Because.", "scale": scale},
        "adjustment": None,
        "waits": [{"effect": 0.01, "days": None}, {"effect": 0.1, "days": 0}],
        "waits_words": "1%: not in sight; 10%: already",
    }


def experiment(pairs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    arms = ["A", *(pair["arm"] for pair in pairs)]
    share = dict.fromkeys(arms, 1 / len(arms))
    users = dict.fromkeys(arms, 500)
    test = {"users": users, "expected": share, "p_value": 1.0, "p_value_fixed": 1.0}
    test["words"] = "Users are split as planned."
    test["is_wrong"] = any(pair["verdict"]["outcome"].startswith("invalid") for pair in pairs)
    shown = [{"name": arm, "users": 500, "value": None, "stderr": None} for arm in arms]
    rules = {
        "direction": "higher",
        "rule": "ctr_ratio (primary): higher is better",
        "margin": None,
        "capped_at": None,
        "ages": [],
        "split_test": test,
        "arms": shown,
    }
    named = {"name": "ctr_ratio", "title": "Click-through rate", "form": "percent"}
    metric = {**named, **rules, "comparisons": pairs}
    who = {"who": f"{', '.join(arms[1:])} against A (variant)", "when": "2 days of data"}
    days = {"start": "2025-06-02", "end": None, "first": "2025-06-02", "last": "2025-06-03"}
    known = {
        "users": users,
        "users_in_several_arms": 0,
        "user_sample_ratio": 1.0,
        "counted_since_ms": None,
    }
    known |= {"users_in_several_arms_ratio": 0.0, "warnings": [], "notes": []}
    known |= {"data": {"from_ms": 0, "to_ms": 1, "days": 2, "words": "2 days of data"}}
    what = {"name": ODD, "dimension": "variant", "control": "A", "split": share, "alpha": 0.05}
    what |= {"outcomes": "exposed", "outside": {"before_exposure": 0, "unexposed": 0}}
    who |= {"method": "Users are compared."}
    document = {
        **what,
        **who,
        **days,
        **known,
        "recommendation": None,
        "covariate_days": 0,
        "metrics": [metric],
        "history": [],
    }
    return document | more


def odd_documents() -> dict[str, tuple[int, Any]]:
    """An experiment of three arms, and a segment of an odd name."""
    pairs = [comparison(ODD, estimate(0.1, 0.05, 0.15), "better"), comparison("C", estimate(None))]
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
        "/api/experiments": (200, {"experiments": [LISTED]}),
        f"/api/experiments/{ODD}": (200, experiment(pairs)),
    }
