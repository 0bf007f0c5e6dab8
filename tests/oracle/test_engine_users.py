"""Means over people: aggregated at any time, and in a sample."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streamer.settings.load import parse
from tests.oracle.oracle import run
from tests.support.agreement import (
    SETTINGS,
    differences,
    log_records,
    random_records,
    read_engines,
    run_engines,
    states,
    to_log,
)
from tests.support.engines import Engines, LogChunk, LogRecord, chunks_of
from tests.support.lanes import long, sized

T0 = 1_700_000_000_000


def test_without_the_family_nothing_is_stored() -> None:
    settings = parse({"metrics": {"families": ["traffic"]}})
    records = log_records(1, "defaults", 400, 1)
    engines = run_engines(settings, 1, to_log(records), 100)
    assert engines.partitions[0].core.sizes()["users_rows"] == 0
    assert not engines.partitions[0].is_dirty


@pytest.mark.parametrize("name", SETTINGS)
def test_refreshing_at_any_time_changes_nothing(name: str) -> None:
    records, expected = random_records(33, name, sized(300, 1500), 1)
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


@pytest.mark.parametrize("name", SETTINGS)
@long
def test_on_the_way_they_are_those_of_what_was_read(name: str) -> None:
    records = log_records(34, name, 240, 1)
    engines, step = Engines(SETTINGS[name], 1), 90
    for start in range(0, len(records), step):
        for record in to_log(records[start : start + step]):
            engines.feed(LogChunk(record.kind, record.partition, [record]))
        engines.finish()
        expected = run(records[: start + step], SETTINGS[name]).readings
        assert differences(read_engines(engines), expected) == []


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


@long
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
