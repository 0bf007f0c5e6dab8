"""Tables and rows in memory count as the same rows in a file do."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

from streamer.errors import SourceError
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.sources.files import FileSource, Readable
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from streamer.sources.tables import MemoryTable

START_MS = 1_700_000_000_000
EVENTS: list[dict[str, Any]] = [
    {
        "type": "impression" if i % 3 else "click",
        "ts": START_MS + i,
        "user_id": f"u{i % 7}",
        "item_id": f"00{i % 5}",
        "position": i % 9 + 1,
        "variant": "A" if i % 2 else None,
    }
    for i in range(5000)
]


def frame() -> Any:
    return pandas.DataFrame(EVENTS)


def lines_of(*of: Readable) -> list[Line]:
    return [line for batch in FileSource(of, Settings()) for line in batch]


def readings_of(*of: Readable) -> Any:
    replay = Replay(Settings())
    for batch in FileSource(of, replay.settings):
        replay.feed(batch)
    replay.finish()
    return replay.readout().as_json()


def test_a_table_counts_as_its_rows_in_a_file_do(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    expected = readings_of(path)
    assert expected["readings"]
    table = pyarrow.Table.from_pylist(EVENTS)
    readers = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(700))
    for of in (table, frame(), readers, EVENTS, iter(EVENTS), map(MappingProxyType, EVENTS)):
        assert readings_of(of) == expected


def test_tables_and_files_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS[1::2]))
    found = lines_of(EVENTS[::2], path)
    assert [json.loads(raw)["ts"] for _, _, raw in found] == [e["ts"] for e in EVENTS]


def test_a_table_is_of_before_it_is_read() -> None:
    clock = iter([START_MS + 3])
    source = FileSource([frame()], Settings(), clock=lambda: next(clock))
    assert source.total_bytes is None
    assert max(ms for batch in source for _, ms, _ in batch) == START_MS + 3


def test_values_of_mappings_are_written_as_msgspec_does() -> None:
    row = {
        "at": datetime.datetime(2023, 11, 14, tzinfo=datetime.UTC),
        "money": Decimal("12.50"),
        "none": None,
        "scores": np.array([0.5, 1.5]),
        "rank": np.int64(3),
        "stamp": pandas.Timestamp(START_MS, unit="ms", tz="UTC"),
    }
    (line,) = lines_of([row])
    assert json.loads(line[2]) == {
        **{"at": "2023-11-14T00:00:00Z", "money": 12.5, "none": None, "scores": [0.5, 1.5]},
        **{"rank": 3, "stamp": "2023-11-14T22:13:20+00:00"},
    }


def test_mappings_are_read_some_at_a_time() -> None:
    read = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal read
        for event in EVENTS:
            read += 1
            yield event

    first = next(iter(MemoryTable(rows(), "table")))
    assert len(first) == read == 1000


def test_a_long_row_is_cut() -> None:
    row = {"a": "x" * 2_000_000}
    for of in ([row], pyarrow.Table.from_pylist([row])):
        ((_, _, raw),) = lines_of(of)
        assert len(raw) == limits.MAX_LINE_BYTES


def test_a_row_that_is_none_is_a_line_that_is_no_event() -> None:
    rows: list[Any] = [{"a": 1}, "text", {"a": object()}, {"a": 2}]
    raws = [raw for _, _, raw in lines_of(rows)]
    assert [raws[0], raws[1], raws[3]] == [b'{"a":1}', b'"text"', b'{"a":2}']
    assert raws[2].startswith(b'"{')


def test_a_table_that_cannot_be_read_says_so() -> None:
    with pytest.raises(SourceError, match="at table"):
        lines_of(pandas.DataFrame({"a": [1, "x"]}))
