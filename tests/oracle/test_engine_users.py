"""Means over people: aggregated at any time, in a sample, and at the edges of time."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.testing import Engines, LogRecord, chunks_of
from tests.oracle.oracle import Record, run
from tests.oracle.shape import Readings
from tests.oracle.timeline import Log
from tests.support.agreement import (
    SETTINGS,
    differences,
    random_records,
    read_engines,
    run_engines,
    states,
    to_log,
)

T0 = 1_700_000_000_000


def test_without_the_family_nothing_is_stored() -> None:
    settings = parse({"metrics": {"families": ["traffic"]}})
    records, _ = random_records(1, "defaults", 400, 1)
    engines = run_engines(settings, 1, to_log(records), 100)
    assert engines.partitions[0].core.sizes()["users_rows"] == 0
    assert not engines.partitions[0].is_dirty


@pytest.mark.parametrize("name", SETTINGS)
def test_refreshing_at_any_time_changes_nothing(name: str) -> None:
    records, expected = random_records(33, name, 1500, 1)
    log = to_log(records)
    engines = Engines(SETTINGS[name], 1)
    for i, chunk in enumerate(chunks_of(log, 40, seed=3)):
        engines.feed(chunk)
        if i % 7 == 0:
            engines.partitions[0].refresh_user_sums()
        if i % 11 == 0:
            engines.partitions[0].core.seal()
    engines.finish()
    assert differences(read_engines(engines), expected) == []
    assert states(engines) == states(run_engines(SETTINGS[name], 1, log, 10**6))


# Nobody's events -------------------------------------------------------------------------------

MEANS = parse(
    {
        "dimensions": [],
        "windows": {"lengths": ["1h"]},
        "custom": [{"name": "spent", "kind": "conversions", "field": "value"}],
    }
)


def test_events_of_nobody_are_in_no_mean_over_users() -> None:
    of_users = Log()
    for n in range(100):
        of_users.shown(n, user_id=f"u{n}")
    for n in range(60):
        of_users.click(200 + n, user_id=f"u{n}")
        of_users.bought(300 + n, user_id=f"u{n}", value=2.5)
    whole = Log()
    whole.records = list(of_users.records)
    whole.shown(440, user_id=None, request_id="r").click(441, user_id=None, request_id="r")
    whole.click(442, user_id="").click(443, user_id=None).bought(444, user_id=None, value=40.0)
    expected = run(whole.records, MEANS).readings
    found = read_engines(run_engines(MEANS, 1, to_log(whole.records), 3))
    assert differences(found, expected) == []

    def of(readings: Readings, name: str, **labels: str) -> float | None:
        key = (f"streamer_{name}", frozenset({"window": "1h", **labels}.items()))
        return readings.get(key)

    spent = {"custom": "spent"}
    assert of(found, "window_clicks") == 63
    assert of(found, "clicks_per_user") == 0.6
    assert of(found, "window_custom_value", **spent) == 190
    assert of(found, "custom_per_user", **spent) == 1.5
    without = read_engines(run_engines(MEANS, 1, to_log(of_users.records), 3))
    for end in ("lower", "upper"):
        for name, labels in ((f"clicks_per_user_{end}", {}), (f"custom_per_user_{end}", spent)):
            assert of(found, name, **labels) == of(without, name, **labels) is not None


# Beyond the bound ------------------------------------------------------------------------------


def _crowd_log(salt: int, people: int) -> list[LogRecord]:
    """Each user sees 1 to 6 items, and clicks some: rates differ between users."""
    random = np.random.default_rng(salt)
    records: list[LogRecord] = []
    offsets = {"impressions": 0, "clicks": 0}

    def add(kind: str, user: int, item: int, more: str = "") -> None:
        value = f'{{"ts":{T0},"user_id":"{salt}-{user}","item_id":"i{item}"{more}}}'
        records.append(LogRecord(kind, 0, offsets[kind], T0, value.encode()))
        offsets[kind] += 1

    for user in range(people):
        chance = random.beta(1, 4)
        for item in range(1 + int(random.integers(6))):
            add("impressions", user, item, ',"variant":"A"')
            if random.random() < chance:
                add("clicks", user, item, ',"variant":"A"')
    return records


def _read(records: list[LogRecord], limit: int) -> tuple[Engines, dict[str, float]]:
    settings = parse({"limits": {"user_items": limit}, "windows": {"lengths": ["1h"]}})
    engines = run_engines(settings, 1, records, 2000)
    shown = {}
    for (name, labels), value in read_engines(engines).items():
        of = dict(labels)
        if of.get("variant", "all") == "all" and of.get("surface", "all") == "all":
            key = name.removeprefix("streamer_")
            shown[f"{key} {of['definition']}" if "definition" in of else key] = float(value)
    return engines, shown


def test_a_sample_stays_within_its_standard_error() -> None:
    """The errors are what docs say: most within one standard error, none beyond four."""
    people, within = 4000, []
    for salt in range(12):
        records = _crowd_log(salt, people)
        _, truth = _read(records, 10**6)
        engines, estimate = _read(records, 4000)
        share = estimate["user_sample_ratio"]
        assert engines.partitions[0].core.sizes()["users_rows"] <= 4000 + 100
        assert truth["user_sample_ratio"] == 1
        assert truth["identity_exact"] == 1
        assert 0 < share < 1
        assert (estimate["identity_exact"], estimate["inexact"]) == (1, 1)
        n = estimate["window_users"] * share
        missing = (1 - share) / n
        errors = {
            "window_users": truth["window_users"] * math.sqrt(missing),
            "clicks_per_user": truth["clicks_per_user"] * math.sqrt(missing),
            # The standard deviation of a share over users is at most that of 0 and 1.
            **{
                name: math.sqrt(missing * truth[name] * (1 - truth[name]))
                for name in ("user_hit_ratio", "positive_rate_ratio docs")
            },
        }
        for name, error in errors.items():
            off = abs(estimate[name] - truth[name])
            assert off <= 4 * error, (salt, name, off, error)
            within.append(off <= error)
        # What is not of users is exact.
        for name in ("window_impressions", "ctr_ratio", "window_sessions"):
            assert estimate.get(name) == truth.get(name)
    assert np.mean(within) > 0.6


# At the edges -----------------------------------------------------------------------------------


def _line(
    event_ms: int, arrival_ms: int, user: int, kind: str = "impressions", more: str = ""
) -> Any:
    value = f'{{"ts":{event_ms},"user_id":"u{user}","item_id":"i"{more}}}'
    return (kind, arrival_ms, value.encode())


def _compared(settings: Settings, lines: list[Any]) -> Readings:
    """What the engine reads, which is what the oracle does."""
    offsets: dict[str, int] = defaultdict(int)
    records = []
    for kind, arrival_ms, value in lines:
        records.append(Record(kind, 0, offsets[kind], arrival_ms, value))
        offsets[kind] += 1
    readings = read_engines(run_engines(settings, 1, to_log(records), 1000))
    assert differences(readings, run(records, settings).readings) == []
    return readings


def test_users_beyond_the_window_do_not_disturb_the_others() -> None:
    # Dated ahead of stream time, so that only metrics of users see it: they have no upper edge.
    early = [_line(T0, T0, 1, more=f',"variant":"A","surface":"{s}"') for s in ("home", "search")]
    ahead = _line(T0 + 240_000, T0, 2, more=',"variant":"B","surface":"home"')
    shown = _compared(parse({"windows": {"lengths": ["1m", "1h"]}}), [*early, ahead])
    key = ("window", "1m"), ("variant", "A"), ("surface", "all")
    assert shown["streamer_window_impressions", frozenset(key)] == 2


@pytest.mark.parametrize("lengths", [["24h"], ["31d"], ["1m", "90s"]])
def test_the_first_moments_of_1970_count(lengths: list[str]) -> None:
    lines = [_line(1000 * i, 1000 * i, i) for i in range(4)]
    shown = _compared(parse({"windows": {"lengths": lengths}, "dimensions": []}), lines)
    assert shown["streamer_window_users", frozenset({("window", lengths[0])})] == 4


@pytest.mark.parametrize("start_ms", [T0, 2_200_000_000_000, 4_000_000_000_000])
def test_times_beyond_31_bits(start_ms: int) -> None:
    lines = [_line(start_ms + 9000 * i, start_ms + 9000 * i, i) for i in range(60)]
    _compared(parse({"windows": {"lengths": ["1m", "90s"]}, "dimensions": []}), lines)


def test_clicks_without_any_impression() -> None:
    lines = [_line(T0 + i, T0 + i, i, "clicks") for i in range(5000)]
    _compared(parse({"windows": {"lengths": ["1m"]}}), lines)
