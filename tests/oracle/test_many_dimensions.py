"""Twenty dimensions: rollups keep what they show; one that is full costs no other its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.oracle.oracle import Record, records_of_log, run
from tests.oracle.random_log import random_log
from tests.support.agreement import (
    differences,
    read_engines,
    run_engines,
    states,
    to_log,
)
from tests.support.engines import Engines
from tests.support.lanes import long, shortened, sized

NAMES = [f"d{i}" for i in range(20)]
CROSSED = [["d0", "d7"], ["d19", "d3", "d1"]]


def settings_of(**more: Any) -> Settings:
    """Twenty dimensions of a few values, each alone, and two crossings, of which one in detail."""
    dimensions = [{"name": name, "max_values": 1 + i % 3} for i, name in enumerate(NAMES)]
    metrics = {
        "rollups": [[], *([name] for name in NAMES), *CROSSED],
        "detailed": [[], ["d4"], CROSSED[0]],
    }
    windows = {"lengths": ["1m", "1h"]}
    return parse({"dimensions": dimensions, "metrics": metrics, "windows": windows, **more})


def log_of(settings: Settings, seed: int, lines: int, partitions: int) -> list[Record]:
    return records_of_log(random_log(seed, settings, lines), settings, partitions=partitions)


@pytest.mark.parametrize("seed", shortened([0, 1, 2, 3], 2))
def test_engine_equals_oracle_whatever_the_cuts(seed: int) -> None:
    settings, partitions = settings_of(), 1 + seed % 2
    records = log_of(settings, seed, sized(200, 600), partitions)
    expected = run(records, settings).readings
    reference = None
    for size, dice in [(1_000_000, None), (40, seed)]:
        engines = run_engines(settings, partitions, to_log(records), size, dice)
        readings = read_engines(engines)
        assert differences(readings, expected)[:8] == []
        state = (states(engines), readings)
        reference = reference or state
        assert state == reference


def of_rollup(readings: Any, dimensions: list[str]) -> Iterator[Any]:
    """What is read under a rollup: name, labels and value."""
    for (name, labels), value in readings.items():
        shown = {label for label, text in labels if label in NAMES and text != "all"}
        if shown == {*dimensions}:
            yield name, labels, value


def overflowed(engines: Engines) -> list[int]:
    """By rollup, how often a segment beyond the bound was asked for."""
    counters = [partition.core.state()["segments_overflowed"] for partition in engines.partitions]
    return [sum(of_rollup) for of_rollup in zip(*counters, strict=True)]


@long
def test_a_full_rollup_costs_no_other_its_values() -> None:
    free, bounded = settings_of(), settings_of(limits={"segments": 3})
    log = to_log(log_of(free, 5, 400, 1))
    whole, full = (run_engines(settings, 1, log, 100) for settings in (free, bounded))
    readings = [{*of_rollup(read_engines(each), [])} for each in (whole, full)]
    assert {name for name, *_ in readings[0] ^ readings[1]} == {"streamer_identity_exact"} | {
        name for name, *_ in readings[1] - readings[0]
    }
    for dimension in NAMES:
        alone = [{*of_rollup(read_engines(each), [dimension])} for each in (whole, full)]
        assert alone[0] == alone[1]
        assert alone[0]
    crossed = {*of_rollup(read_engines(full), CROSSED[0])}
    assert {labels for _, labels, _ in crossed if ("d0", "other") in labels}
    keys = [rollup.dimensions for rollup in full.catalogue.rollups]
    counts = dict(zip(keys, overflowed(full), strict=True))
    assert {key for key, count in counts.items() if count} == {("d0", "d7"), ("d1", "d3", "d19")}
    assert not any(overflowed(whole))
