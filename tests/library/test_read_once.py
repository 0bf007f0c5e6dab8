"""Events that can be read only once: none is lost, and none is counted differently later."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import streamer
from streamer.sources.tables import MemoryTable
from tests.library.test_reading import EVENTS, SETTINGS

PLAIN: dict[str, Any] = {k: v for k, v in SETTINGS.items() if k != "experiments"}
TEXT = "".join(json.dumps(event) + "\n" for event in EVENTS)


def table_of(events: list[dict[str, Any]]) -> Any:
    return pyarrow.Table.from_pylist(events)


def named_pipe(folder: Path) -> Path:
    """A pipe into which the events are written once."""
    path = folder / "pipe"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_text(TEXT), daemon=True).start()
    return path


ONCE: dict[str, Callable[[Path], Any]] = {
    "generator": lambda folder: (event for event in EVENTS),
    "batches": lambda folder: table_of(EVENTS).to_reader(max_chunksize=300),
    "named pipe": named_pipe,
    "standard input": lambda folder: "-",
    "standard input as a path": lambda folder: Path("-"),
}


@cache
def expected_of(is_given: bool) -> tuple[Any, Any]:
    """What is read of events that are kept: counts of topics, and metrics."""
    log = streamer.read(EVENTS, PLAIN if is_given else None)
    return log.what_was_read.topics.to_dicts(), log.metrics(by="variant").to_dicts()


@pytest.mark.parametrize("settings", [None, PLAIN], ids=["guessed", "given"])
@pytest.mark.parametrize("name", ONCE)
def test_a_source_that_is_read_once_loses_nothing(
    name: str, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    found = streamer.read(ONCE[name](tmp_path), settings)
    shown = found.what_was_read.topics.to_dicts(), found.metrics(by="variant").to_dicts()
    assert shown == expected_of(settings is not None)
    with pytest.raises(streamer.UsageError, match="are not kept"):
        found.compare("variant", control="A", treatment="B")


def test_a_plan_of_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = streamer.plan(EVENTS, "ctr", lift=0.1).document
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert streamer.plan("-", "ctr", lift=0.1).document == expected


def test_events_that_changed_are_not_compared() -> None:
    given = list(EVENTS)
    log = streamer.read(given, PLAIN)
    given.clear()
    with pytest.raises(streamer.UsageError, match="there are 0 now, of which"):
        log.compare("variant", control="A", treatment="B")
    one, counter = dict(EVENTS[0]), streamer.Counter(PLAIN)
    for event in EVENTS:
        one.update(event)
        counter.add(one)
    with pytest.raises(streamer.UsageError, match="are not kept"):
        counter.compare("variant", control="A", treatment="B")


def test_added_tables_are_compared() -> None:
    counter, table = streamer.Counter(PLAIN), table_of(EVENTS)
    counter.add(table.slice(0, 1000))
    counter.add(table.slice(1000))
    found = counter.compare("variant", control="A", treatment="B")
    whole = streamer.read(table, PLAIN).compare("variant", control="A", treatment="B")
    assert found.users == whole.users


def test_rows_before_an_error_count() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield from EVENTS[:1500]
        raise RuntimeError("the source broke")

    counter = streamer.Counter(PLAIN)
    with pytest.raises(RuntimeError, match="the source broke"):
        counter.add(rows())
    assert counter.metrics("impressions_total")["value"] == [
        sum(event["type"] == "impression" for event in EVENTS[:1500])
    ]


def test_what_a_table_raises_is_an_error_of_the_source() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise RuntimeError("the query failed")

    with pytest.raises(streamer.SourceError, match="the query failed; at table"):
        list(MemoryTable(Broken(), "table"))
    with pytest.raises(streamer.SourceError, match="the query failed"):
        streamer.evaluate(Broken(), Broken(), ["mrr"])
