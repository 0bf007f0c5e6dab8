"""The engine reads what the oracle reads of slates that were made by hand, however they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamer.settings.load import parse
from tests.oracle.timeline import Log, M

SETTINGS = parse(
    {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["5m", "24h"]},
        "metrics": {
            "k": [1, 3, 1000],
            "feedback": {"click": 1.0, "like": 2.5, "skim": 0.0, "conversion": 4.0},
            "conventions": {
                "precision_ratio": ["shown"],
                "map_ratio": ["jurity", "primer"],
                "mar_ratio": ["jurity", "primer"],
                "ndcg_ratio": ["jurity", "exponential"],
                "kendall_tau": ["tau_b"],
            },
        },
    }
)
R: dict[str, Any] = {"request_id": "r"}
REUSE_MS = 95 * M
"""From then on a request id opens another slate: click + lateness + skew."""


def listed(items: str, first: int = 1, **scores: float) -> list[dict[str, Any]]:
    return [
        {"item_id": item, "position": first + i, "score": scores.get(item, i % 3)}
        for i, item in enumerate(items)
    ]


def any_order() -> Log:
    """Single members, with and without positions, the first one last, and a click in between."""
    log = Log().shown(9, item_id="a", position=2, variant="A", **R)
    log.click(10, item_id="c", **R).shown(8, item_id="b", variant="B", score=1, **R)
    log.shown(5, 20 * M, item_id="c", position=2, score=1, **R)
    return log.shown(-10 * M, 21 * M, item_id="d", position=1, variant="C", score=0.5, **R)


def reused() -> Log:
    """A request used again within its slate's time and after it, with repeats."""
    log = Log().shown(0, items=listed("ab"), **R).click(1, item_id="b", **R)
    log.shown(REUSE_MS, items=listed("cb", first=3), **R).click(REUSE_MS + 1, item_id="c", **R)
    log.shown(REUSE_MS + 1, items=listed("da"), **R).click(REUSE_MS + 1, item_id="d", **R)
    return log.click(REUSE_MS + 2, item_id="a", feedback="like", **R)


def reused_by_arrival() -> Log:
    """Members 35 minutes apart that reach the log a slate's time apart, or a millisecond more."""
    log = Log()
    for more_ms, request in ((0, "p"), (1, "q")):
        log.shown(5 * M, 0, items=listed("a"), request_id=request, p=more_ms)
        log.shown(40 * M, REUSE_MS + more_ms, item_id="b", request_id=request, p=more_ms)
        log.click(41 * M, REUSE_MS, item_id="b", request_id=request, p=more_ms)
    return log


def too_many() -> Log:
    """Over a thousand members: the last ones in the log are none, whatever their positions."""
    log = Log()
    for start in (0, 400, 800):
        items = [
            {"item_id": f"i{i}", "position": i // 2 + 2, "score": i % 7}
            for i in range(start, start + 400)
        ]
        log.shown(1000 - start, items=items, **R)
    log.shown(-10 * M, 0, item_id="best", position=1, **R)
    for i in (3, 500, 999, 1000, 1100):
        log.click(2000, item_id=f"i{i}", **R)
    return log.click(2000, item_id="best", **R).bought(3000, item_id="i500", **R)


def risen() -> Log:
    """Grades that rise, by a conversion on feedback that has no gain, too; and duplicates."""
    log = Log().shown(0, items=listed("abc", c=9), event_id="e", **R)
    log.click(1, item_id="b", feedback="skim", **R).bought(40 * M, item_id="b", **R)
    log.click(1, item_id="c", event_id="f", **R).click(2, item_id="c", feedback="like", **R)
    log.click(2, item_id="a", event_id="f", **R).shown(0, items=listed("abc"), event_id="e", **R)
    return log.shown(50 * M).shown(22 * 60 * M).click(22 * 60 * M)


def bought_late() -> Log:
    """Conversions hours after the impressions left; what they build on has a gain, or none."""
    log = Log()
    for kind in ("skim", "like"):
        named: dict[str, Any] = {"request_id": kind}
        log.shown(0, items=listed("abc"), **named).shown(1, item_id="d", score=2, **named)
        log.click(5 * M, item_id="b", feedback=kind, **named)
    log.shown(200 * M, user_id="v").click(200 * M, user_id="v")
    for kind in ("skim", "like"):
        log.bought(190 * M, 200 * M, item_id="b", request_id=kind)
    return log


def moved() -> Log:
    """Feedback without a request follows the newest showing, into another slate and away again."""
    log = Log().shown(0, items=listed("ab"), **R).click(9 * M, item_id="a", feedback="like")
    log.bought(10 * M, item_id="a")
    log.shown(5 * M, 20 * M, items=listed("ca"), request_id="q")
    return log.shown(8 * M, 21 * M, item_id="a")


def probed() -> Log:
    """Held-out items and brute-force lists, also of single members: on the first one only, on a
    later one only, and on members that disagree, of which the earliest comes last."""
    log = Log().shown(0, items=listed("abcdefghijklm"), held_out="k", reference=["b", "b", "a"])
    log.shown(0, items=listed("abcdefghijklm"), held_out="j").shown(0, items=listed("a"))
    log.shown(0, items=listed("ab"), reference=[f"i{i}" for i in range(999)] + ["a"])
    for item, fields in (("a", {}), ("b", {"held_out": "b"}), ("c", {"reference": ["x", "c"]})):
        log.shown(1, item_id=item, **fields, **R)
    log.shown(-M, 2, item_id="z", position=1, held_out="z", **R)
    both: dict[str, Any] = {"held_out": "i8", "reference": ["i7", "i8"]}
    requests: dict[str, Any] = {"first": (both, {}), "later": ({}, both), "none": ({}, {})}
    for request, fields in requests.items():
        for i, own in enumerate(fields):
            log.shown(3 + i, item_id=f"i{7 + i}", request_id=request, position=i + 1, **own)
    log.click(20, item_id="i8", request_id="first").bought(40 * M, item_id="i8", request_id="first")
    log.shown(4 * M, item_id="i8", request_id="moved", **both)
    log.click(4 * M + 1, item_id="i8", request_id="moved")
    log.shown(4 * M + 2, item_id="i9", request_id="moved", held_out="i9", reference=["i9"])
    early: dict[str, Any] = {"held_out": "i7", "reference": ["x", "i7", "x"]}
    return log.shown(-2 * M, 50 * M, item_id="i7", request_id="moved", **early)


LOGS = (any_order, reused, reused_by_arrival, too_many, risen, bought_late, moved, probed)


@pytest.mark.parametrize("make", LOGS)
def test_engine_equals_oracle(make: Callable[[], Log]) -> None:
    result = make().run(SETTINGS)
    assert any(name == "streamer_window_slates" for name, _ in result.readings)
