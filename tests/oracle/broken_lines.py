"""Lines with exactly one thing wrong, of every reject reason."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from streamer.settings.model import Settings

from .shape import LINE_TYPES
from .values import fields_of_ratios

Payload = dict[str, Any]
ABSENT = object()
POLICY_FIELDS = {"p_new": "propensity", "q_new": "reward_estimate"}
"""Those that the wrong values below are of; settings may call theirs otherwise."""
STRANGER = "stranger"
OF_LISTS = {"slate": "impression", "clicks": "click", "order": "conversion", STRANGER: "session"}
"""What stands in for a type of a line: events without an item of their own, and sessions of
nobody."""

WRONG: dict[str, list[tuple[str, str, list[Any]]]] = {
    # reason: (line type, field, values that are wrong there)
    "type": [("impression", "type", ["purchase", "impressions", "", 7])],
    "ts": [("click", "ts", [ABSENT, None, -1, 2**53 + 1, 4_102_444_800_001, -0.5, True, "soon", "",
                            "2023-13-14T22:13:20Z", "2023-11-14", "2023-11-14T22:13", "-5", "1e12",
                            "1700000000", "1700000000.5", 1_700_000_000.5, " 1700000000000", [], {},
                            1_700_000_000, 946_684_800, 4_102_444_800, 1_700_000_000_000_000,
                            1_700_000_000_000_000_000, "2016-12-31T23:58:60Z",
                            "2016-12-31T23:59:60+01:00", "2016-13-31T23:59:60Z",
                            "2016-12-31T23:59:61Z"])],
    "user_id": [("click", "user_id", [1.5, True, "u" * 513, "é" * 257, ["u1"]])],
    "join_id": [("click", "join_id", [1.5, True, "j" * 513, ["j1"]]),
                ("impression", "join_id", [0.5, {}])],
    "event_id": [("impression", "event_id", [1.0, False, {}, "e" * 513])],
    "item_id": [
        ("impression", "item_id", [ABSENT, None, "", 5.5, "i" * 513]),
        ("click", "item_id", [ABSENT, "", {}]),
        ("conversion", "item_id", [ABSENT, "", True]),
    ],
    "impression_id": [("click", "impression_id", [1.5, True, "m" * 513, ["m1"]]),
                      ("impression", "impression_id", [0.5, {}]),
                      ("conversion", "impression_id", [False])],
    "request_id": [("conversion", "request_id", [1e3, [], "r" * 513])],
    "position": [("impression", "position", [-1, 10_001, "1", 1.5, False]),
                 ("click", "position", [-1, 10_001])],
    "score": [("impression", "score", ["high", True, [1], 1_000_000.5, -1_000_001, 10**400])],
    "rating": [("click", "rating", ["good", True, [5], 100.5, -101, 10**400])],
    "reference": [("impression", "reference", [[], {}, "i1", 7, [7.5], [None], [["i1"]], ["i1", ""],
                                               ["i" * 513], ["i1"] * 1001])],
    "held_out": [("impression", "held_out", [7.5, ["i1"], "h" * 513])],
    "propensity": [("impression", "propensity", [0, -0.5, 1.0001, "half"]),
                   ("impression", "p_new", [-0.5, 1.0001, "half", True, [0.5]])],
    "reward_estimate": [("impression", "reward_estimate", [-1e-9, 1.0001, "x", {}]),
                        ("impression", "q_new", [-1e-9, 2, "x", False])],
    "item_category": [("impression", "item_category", [True, ["c"], "c" * 513])],
    "ratios": [("impression", "latency_ms", ["fast", True, [1], 1_000_000_000_001, 10**400]),
               ("conversion", "margin", [{}, -1e12 - 1, "1"]), ("click", "depth", ["", False])],
    "items": [("slate", "items", [
        {}, "i1", [7.5], [None], ["i1", ""], [["i1"]], [{}], [{"item_id": ""}],
        [{"item_id": "i1", "position": -1}],
        [{"item_id": "i1"}, {"item_id": "i2", "propensity": 2}], [{"item_id": "i1", "score": "x"}],
        [{"item_id": "i1", "score": -1_000_001}], [{"item_id": "i1"}] * 1001,
        [{"item_id": "i1", "reward_estimate": 1.5}], [{"item_id": "i1", "propensity": 0}],
        [{"item_id": "i1", "item_category": True}], ["i1"] * 1001, ["i" * 513],
    ]), ("impression", "items", [[{"item_id": "i1"}], ["i1"]]),
        ("click", "items", [["i1"]]), ("conversion", "items", [["i1"]]),
        ("clicks", "items", [[], "i1", ["i1", {"item_id": "i2", "position": -1}], ["i1", None]]),
        ("order", "items", [[], ["i1", {"value": 3}], [{"item_id": "i1", "value": -1e13}]])],
    "feedback": [("click", "feedback", ["x" * 129, 1, ["like"], True])],
    "dwell": [("click", "dwell_ms", [-1, 86_400_001, 1.5, "9"]),
              ("click", "span", [(2000, 1000), (0, 86_400_001), ("x", 5), (-1, 5),
                                  (1_700_000_000, 1_700_000_009)])],
    "value": [("conversion", "value", [-1e12 - 0.5, 1e12 + 0.5, "5", True])],
    "session_id": [("session", "session_id", [1.5, "s" * 513]),
                   ("stranger", "session_id", [ABSENT, None, ""])],
    "action": [("session", "action", [ABSENT, "stop", "", 1])],
}  # fmt: skip


def broken_line(random: Random, settings: Settings, user: str, at_ms: int, name: str) -> bytes:
    """One reject; the reason follows from what is wrong, all else is right."""
    reason = random.choice(("json", "object", "too_large", "too_deep", *WRONG))
    if reason == "too_large" and random.random() < 0.8:
        reason = "json"  # a megabyte each: a few are enough
    if reason == "ratios" and not fields_of_own(settings):
        reason = "ts"
    if reason == "object":
        return random.choice((b"[]", b"7", b'"text"', b"true", b'[{"type":"click"}]'))
    if reason in ("json", "too_large", "too_deep"):
        return _unreadable(random, settings, reason, _valid("impression", user, at_ms, name))
    line_type, field, values = random.choice(WRONG[reason])
    if reason == "ratios":  # settings may call theirs otherwise
        line_type, field = random.choice(fields_of_own(settings))
    payload = _valid(line_type, user, at_ms, name)
    value = random.choice(values)
    if field == "span":
        payload |= {"start_ts": value[0], "end_ts": value[1]}
    else:
        if field in POLICY_FIELDS:
            of_policies = [f for f, why in settings.policy_fields.items() if why == reason]
            field = random.choice(of_policies or [reason])
        payload[field] = value
    return _encode({k: v for k, v in payload.items() if v is not ABSENT}, settings)


def fields_of_own(settings: Settings) -> list[tuple[str, str]]:
    """(type of a line, field) of all numbers that only ratios read."""
    lines = LINE_TYPES.items()
    return [(line, field) for line, kind in lines for field in fields_of_ratios(settings, kind)]


def _valid(line_type: str, user: str, at_ms: int, name: str) -> Payload:
    payload: Payload = {"type": line_type, "ts": at_ms, "user_id": user, "request_id": name}
    if line_type in ("session", STRANGER):
        user_id = user if line_type == "session" else ""
        return payload | {
            "type": "session",
            "user_id": user_id,
            "session_id": name,
            "action": "view",
        }
    if line_type in OF_LISTS:
        return payload | {"type": OF_LISTS[line_type]}
    return payload | {"item_id": "i1"}


def _unreadable(random: Random, settings: Settings, reason: str, payload: Payload) -> bytes:
    good = _encode(payload, settings)
    if reason == "too_large":
        return good[:-1] + b',"padding":"' + b"x" * 1_100_000 + b'"}'
    if reason == "too_deep":
        levels = random.choice((64, 80, 200))
        return good[:-1] + b',"deep":' + b"[" * levels + b"]" * levels + b"}"
    return random.choice(
        (
            b"",
            b"   ",
            b"{",
            good[:-1],
            good + b"}",
            good + good,
            good[:-1] + b',"note":NaN}',
            good[:-1] + b',"note":"\xff\xfe"}',
            good[:-1] + b',"note":Infinity}',
            good[:-1] + b',"note":1e}',
            good.replace(b'"i1"', b'"i\\ud800"'),
            good.replace(b'"', b"'"),
            b"\xef\xbb\xbf" + good,
        )
    )


def _encode(payload: Payload, settings: Settings) -> bytes:
    names = settings.events.fields
    renamed = {names.get(name, name): value for name, value in payload.items()}
    key = names.get("items", "items")
    if isinstance(payload.get("items"), list):
        renamed[key] = [
            {names.get(k, k): v for k, v in x.items()} if isinstance(x, dict) else x
            for x in payload["items"]
        ]
    return json.dumps(renamed).encode()
