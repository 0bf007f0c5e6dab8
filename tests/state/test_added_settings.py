"""What settings add to live state: nothing of it is shown that a full count would not show."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.settings.model import Metrics, Settings
from streamer.state.contents import contents_of
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from tests.oracle.oracle import records_of_log
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings
from tests.support.agreement import by_key, differences, read_engines, to_log
from tests.support.all_cases import hold_for_all
from tests.support.engines import Engines, LogChunk, LogRecord, chunks_of
from tests.support.journals import commit, start
from tests.support.lanes import long, sized

LINES, PIECES = 400, sized(3, 12)
SEED = 3
"""Of a log that is long enough for all that is added to be shown."""
DIMENSIONS = [{"name": name, "max_values": 100} for name in ("variant", "surface")]
METRICS: dict[str, Any] = {
    "families": [*Metrics().families, "scores", "off_policy", "diversity"],
    "feedback": {"click": 1.0, "conversion": 2.0},
    "k": [3],
    "thresholds": [0.1],
    "rollups": [[], ["variant"]],
    "detailed": [[], ["variant"]],
}
BASE: dict[str, Any] = {
    "dimensions": DIMENSIONS[:1],
    "attribution": {"click": "4m", "conversion": "12m", "session_gap": "3m"},
    "time": {"max_lateness": "10m", "max_skew": "1m"},
    "windows": {"lengths": ["10m", "1h"]},
    "metrics": METRICS,
    "ratios": [{"name": "latency", "numerator": {"kind": "impressions", "field": "latency_ms"}}],
}
POLICY = {"name": "by-place", "positions": [0.5, 0.25, 0, 1]}
BASE["policies"] = [POLICY]
BOTH = [*METRICS["rollups"], ["surface"], ["variant", "surface"]]


def metrics(**more: Any) -> dict[str, Any]:
    return {"metrics": {**METRICS, **more}}


def ratio(**part: Any) -> dict[str, Any]:
    """Without a field, of which records might be refused."""
    return {"ratios": [*BASE["ratios"], {"name": "added", "numerator": part}]}


ADDED: dict[str, dict[str, Any]] = {
    "a dimension": {"dimensions": DIMENSIONS, **metrics(rollups=BOTH, detailed=BOTH)},
    "a window": {"windows": {"lengths": ["10m", "20m", "1h"]}},
    "a longer window": {"windows": {"lengths": ["10m", "1h", "2h"]}},
    "a kind of feedback": metrics(feedback={**METRICS["feedback"], "like": 0.0}),
    "a kind with a gain": metrics(feedback={**METRICS["feedback"], "like": 3.0}),
    "a cut-off": metrics(k=[3, 5]),
    "a threshold": metrics(thresholds=[0.1, 0.5]),
    "a ratio of clicks": ratio(kind="clicks", where={"item_id": ["i1", "i2"]}),
    "a ratio of conversions": ratio(kind="conversions", where={"variant": ["variant-0"]}),
    "a ratio of joins": ratio(kind="clicks", where={"impression.position": {"<": 3}}),
    "a policy": {"policies": [POLICY, {"name": "new", "positions": [0.5, 0.5]}]},
}
WITHOUT: dict[str, dict[str, Any]] = {
    **{f"the family {name}": metrics(families=[f for f in METRICS["families"] if f != name])
       for name in METRICS["families"]},
    "a rollup": metrics(rollups=[[]], detailed=[[]]),
    "details of a rollup": metrics(detailed=[[]]),
}  # fmt: skip
CASES = {
    **{name: (BASE, BASE | added) for name, added in ADDED.items()},
    **{name: (BASE | less, BASE) for name, less in WITHOUT.items()},
}
"""What is added → the settings before and after."""


def windowed(readings: Readings) -> Readings:
    return {key: x for key, x in readings.items() if "window" in dict(key[1])}


async def shown_in_part(name: str, seed: int) -> tuple[list[str], int]:
    """Series of windows that a full count of all events does not show likewise, at any time after
    a restart with more settings; and how many are shown in the end that only these show."""
    before, now = (parse(document) for document in CASES[name])
    log = _log(seed, now)
    middle = len(log) // 3
    store, full = MemoryStore(), Engines(now, 1)
    run = await start(store, before, 1)
    _feed(run.engines, log[:middle])
    _feed(full, log[:middle])
    await commit(store, run, 0)
    run = await start(store, now, 1)
    wrong, shown = list[str](), dict[Any, Any]()
    size = -(-(len(log) - middle) // PIECES)
    for first in range(middle, len(log), size):
        _feed(run.engines, log[first : first + size])
        _feed(full, log[first : first + size])
        await commit(store, run, 0)
        reader = Reader(store, contents_of(now, Catalogue(now)))
        await reader.refresh()
        shown = windowed(by_key(readout(now, Catalogue(now), reader.views)))
        expected = windowed(read_engines(full))
        wrong += differences(shown, {key: expected[key] for key in shown if key in expected})
    as_before = Engines(before, 1)
    _feed(as_before, log)
    return wrong, len(shown.keys() - read_engines(as_before).keys())


def _log(seed: int, settings: Settings) -> list[LogRecord]:
    records = records_of_log(random_log(seed, settings, LINES), settings, partitions=1)
    return sorted(to_log(records), key=lambda record: record.record_ms)


def _feed(engines: Engines, log: list[LogRecord]) -> None:
    for chunk in chunks_of(log, 200, 1):
        engines.feed(chunk)


def nothing_is_shown_in_part(case: tuple[str, int]) -> None:
    wrong, new = asyncio.run(shown_in_part(*case))
    assert wrong == [], (len(wrong), wrong[:8])
    assert new or case[1] != SEED


FIRST = ("a dimension", "a longer window", "a kind of feedback")


@pytest.mark.timeout(1800)
def test_nothing_is_shown_that_is_counted_in_part() -> None:
    cases = [
        (name, seed)
        for name in sized(FIRST, tuple(CASES))
        for seed in range(SEED, SEED + sized(1, 12))
    ]
    hold_for_all(cases, nothing_is_shown_in_part, "{0[0]}, seed {0[1]}".format, at_least=3)


@long
async def test_a_dimension_waits_for_feedback_on_impressions_from_before_it() -> None:
    """A click without a surface takes over that of its impression, of which nothing is known if it
    came before the dimension."""
    more = {"attribution": {"click": "30m"}, "windows": {"lengths": ["10m"]}}
    before, now = (parse({**document, **more}) for document in CASES["a dimension"])
    store = MemoryStore()
    run = await start(store, before, 1)

    def happens(engines: Engines, minute: int) -> None:
        """Somebody sees an item, and the first one who ever did clicks."""
        at_ms = 1_700_000_000_000 + 60_000 * minute
        shown = {"ts": at_ms, "user_id": f"u{minute}", "item_id": "i", "surface": "home"}
        clicked = {"ts": at_ms, "user_id": f"u{max(0, minute - 11)}", "item_id": "i"}
        for kind, event in (("impressions", shown), ("clicks", clicked)):
            value = json.dumps(event).encode()
            engines.feed(LogChunk(kind, 0, [LogRecord(kind, 0, minute, at_ms, value)]))

    for minute in range(12):
        happens(run.engines, minute)
    await commit(store, run, 0)
    run = await start(store, now, 1)
    seen = dict[int, set[tuple[str, float]]]()
    for minute in range(12, 60):
        happens(run.engines, minute)
        seen[minute] = {
            (dict(labels)["surface"], x)
            for (name, labels), x in read_engines(run.engines).items()
            if name == "streamer_window_clicks" and dict(labels)["variant"] == "all"
        }
    assert all({surface for surface, _ in seen[minute]} == {"all"} for minute in range(24, 40))
    assert {("home", 10.0), ("all", 10.0)} <= seen[59]
    assert "unknown" not in {surface for found in seen.values() for surface, _ in found}
