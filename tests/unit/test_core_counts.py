"""The core against the oracle: whole random logs, in any chunks, with restarts on the way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from random import Random

import pytest

from streamer.config import Settings
from streamer.testing import LogRecord, chunks_of
from tests.agreement import SETTINGS, differences
from tests.cores import Cores, expected_of, log_of, random_records, without_experiments
from tests.oracle.oracle import Record

PARTITIONS = 2


def cores_of(settings: Settings, log: Sequence[LogRecord], size: int, seed: int) -> Cores:
    """Partitions that took in a log, in chunks of random sizes and any order of topics."""
    cores = Cores(settings, PARTITIONS)
    for chunk in chunks_of(log, size, seed):
        cores.feed(chunk)
    cores.finish()
    return cores


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(100, 104))
def test_readings_are_those_of_the_oracle(name: str, seed: int) -> None:
    records, expected = random_records(seed, name, 1500, PARTITIONS)
    cores = cores_of(SETTINGS[name], log_of(records), 300, seed)
    found = without_experiments(cores.readings())
    assert differences(found, without_experiments(expected)) == []


@pytest.mark.parametrize("size", [1, 17, 5000])
def test_the_size_of_chunks_changes_nothing(size: int) -> None:
    records, expected = random_records(7, "few values", 600, PARTITIONS)
    cores = cores_of(SETTINGS["few values"], log_of(records), size, size)
    found = without_experiments(cores.readings())
    assert differences(found, without_experiments(expected)) == []


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(200, 203))
def test_restarts_change_nothing(name: str, seed: int) -> None:
    records, expected = random_records(seed, name, 1500, PARTITIONS)
    cores, dice = Cores(SETTINGS[name], PARTITIONS), Random(seed)
    for chunk in chunks_of(log_of(records), 120, seed):
        cores.feed(chunk)
        if dice.random() < 0.3:
            cores.commit(chunk.partition)
        if dice.random() < 0.15:
            cores.restart(chunk.partition)
    cores.finish()
    found = without_experiments(cores.readings())
    assert differences(found, without_experiments(expected)) == []


MINUTE = 60_000
START_MS = 1_700_000_000_000


def event(kind: str, offset: int, minute: int, **fields: str) -> Record:
    """One event of user u, its record at the same time."""
    at_ms = START_MS + minute * MINUTE
    value = {"type": kind, "ts": at_ms, "user_id": "u", **fields}
    topic = f"{kind}s"
    return Record(topic, 0, offset, at_ms, json.dumps(value).encode())


REUSED = [
    event("impression", 0, 0, item_id="i", request_id="r", variant="A"),
    event("impression", 1, 100, item_id="i", request_id="r", variant="B"),
    event("click", 0, 1, item_id="i", request_id="r"),
    event("click", 1, 101, item_id="i", request_id="r"),
    event("conversion", 0, 102, item_id="i", request_id="r"),
    event("session", 0, 103, session_id="s", action="start"),
]
"""A request id that comes back for another slate, with feedback on both."""


def test_a_request_that_comes_back_reads_the_same_in_any_order_of_topics() -> None:
    settings = SETTINGS["defaults"]
    expected = without_experiments(expected_of(REUSED, settings))
    windows = {k: v for k, v in expected.items() if not _is_since_start(k[0])}
    for order in set(itertools.permutations([r.topic for r in REUSED])):
        cores = Cores(settings, 1)
        logs = {topic: [r for r in log_of(REUSED) if r.kind == topic] for topic in set(order)}
        for topic in order:
            (chunk,) = chunks_of([logs[topic].pop(0)], 1)
            cores.feed(chunk)
        cores.finish()
        found = without_experiments(cores.readings())
        found = {k: v for k, v in found.items() if not _is_since_start(k[0])}
        assert differences(found, windows) == [], order


def _is_since_start(name: str) -> bool:
    return name.endswith(("_total", "_bucket", "_sum", "_count")) or name == "streamer_unsettled"
