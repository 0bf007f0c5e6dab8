"""A random log, what the oracle makes of it, and how that is held against what workers stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Topics
from tests.oracle.acceptance import accept
from tests.oracle.oracle import Record, records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings
from tests.support.agreement import DOCUMENTS, by_key, differences, run_engines, states, to_log
from tests.support.engines import LogRecord
from tests.support.workers import Bench, read_topic

PARTITIONS = 4
CUT_BYTES = 100_000
"""What is kept of a dead letter that Kafka refuses for its size."""
LIVE = {
    **DOCUMENTS["few values"],
    "time": {"max_lateness": "1h", "max_skew": "10d", "dedup_horizon": "1h"},
    "limits": {"gather_rows": 500, "flush_ms": 100},
}
"""Clocks may differ by days: so no topic overtakes another while they are being written."""


class Case(NamedTuple):
    """A log, and the records of it that do not count, with their reasons."""

    records: list[Record]
    log: list[LogRecord]
    dead: list[tuple[Record, str]]


def random_records(document: Mapping[str, Any], lines: int, seed: int) -> list[Record]:
    settings = parse(document)
    return records_of_log(random_log(seed, settings, lines), settings, partitions=PARTITIONS)


def case_of(document: Mapping[str, Any], records: list[Record]) -> Case:
    dead: list[tuple[Record, str]] = []
    accept(records, parse(document), dead)
    return Case(records, to_log(records), dead)


def random_case(document: Mapping[str, Any], lines: int, seed: int) -> Case:
    return case_of(document, random_records(document, lines, seed))


async def case_from_log(brokers: str, topics: Topics, document: Mapping[str, Any]) -> Case:
    """What is expected of the records that Kafka holds."""
    records = [
        Record(kind, r.partition, r.offset, r.timestamp, r.value)
        for kind in KINDS
        for r in await read_topic(brokers, getattr(topics, kind), PARTITIONS)
    ]
    return case_of(document, records)


async def readings_of(made: Bench, records: list[Record]) -> Readings:
    """What the oracle reads from records, under the key of the store."""
    return run(records, made.settings, key=await made.hash_key()).readings


async def check_readings(made: Bench, records: list[Record]) -> None:
    """What a reader shows at stream time, once all is read, is what the oracle says."""
    await check_shown(made, await readings_of(made, records))


async def check_shown(made: Bench, expected: Readings) -> None:
    """What a reader shows at stream time is what is expected."""
    await made.reader.refresh()
    result = readout(made.settings, Catalogue(made.settings), made.reader.views)
    found = differences(by_key(result), expected)
    assert not found, (found[:10], made.said())


async def check_states(made: Bench, case: Case) -> None:
    """What is stored is what the engine holds that is fed the same logs in this process."""
    key = await made.hash_key()
    expected = states(run_engines(made.settings, PARTITIONS, case.log, 3000, 5, key))
    found = await made.states(PARTITIONS)
    for number in range(PARTITIONS):
        for part, value in expected[number].items():
            assert found[number][part] == value, (number, part)


async def check_dead_letters(brokers: str, topics: Topics, case: Case) -> int:
    """Each refused record is there, unchanged, at least once; returns how many letters are."""
    letters = await read_topic(brokers, topics.dead_letters, PARTITIONS)
    found: dict[tuple[str, int, int], tuple[str, bytes | None, str | None]] = {}
    for letter in letters:
        headers = {name: value.decode() for name, value in letter.headers}
        topic, partition, offset = (
            headers.pop(f"streamer.{x}") for x in ("topic", "partition", "offset")
        )
        key = (topic, int(partition), int(offset))
        cut = headers.pop("streamer.cut", None)
        content = (headers.pop("streamer.reason"), letter.value, cut)
        assert headers.keys() == {f"streamer.{x}" for x in ("field", "found", "expected")}
        assert found.setdefault(key, content) == content, "two letters of one record differ"
    expected = {
        (getattr(topics, r.topic), r.partition, r.offset): (reason, r.raw)
        for r, reason in case.dead
    }
    differ = found.keys() ^ expected.keys()
    assert not differ, [(at, expected.get(at), found.get(at)) for at in sorted(differ)][:10]
    for key, (reason, raw) in expected.items():
        stated, value, cut = found[key]
        assert stated == reason
        assert raw is not None
        if cut is None:
            assert value == raw
        else:
            assert reason == "too_large"
            assert value == raw[:CUT_BYTES]
            assert cut.startswith(f"{len(raw)} bytes, crc32 ")
    return len(letters)
