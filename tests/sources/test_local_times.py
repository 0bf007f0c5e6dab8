"""Local times of files and tables where clocks go back: lines have no time of their own, so that
the time of the line before says which of the two it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow
import pyarrow.parquet

import streamer
from streamer.ingest.rejections import Explainer
from streamer.settings.file_window import with_file_window
from streamer.settings.load import parse
from streamer.sources.file_span import spanned
from streamer.sources.files import FileSource
from tests.support.engines import Engines, LogChunk, LogRecord
from tests.support.judging import RecordJudge

BERLIN = ZoneInfo("Europe/Berlin")
FIRST = datetime(2023, 10, 28, 23, 30, tzinfo=UTC)  # 01:30 in Berlin; clocks go back at 01:00 UTC
MINUTES = 180
SETTINGS: dict[str, Any] = {"dimensions": [], "events": {"zone": "Europe/Berlin"}}
TIMES_MS = [int((FIRST + timedelta(minutes=n)).timestamp() * 1000) for n in range(MINUTES)]


def local(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, BERLIN).replace(tzinfo=None)


def events(kind: str = "click", times: list[int] = TIMES_MS) -> list[dict[str, Any]]:
    """One a minute, with what a clock in Berlin shows."""
    return [
        {"type": kind, "user_id": "u", "item_id": f"i{ms}", "ts": local(ms).isoformat()}
        for ms in times
    ]


def log_of(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_lines_of_files_are_near_the_line_before(tmp_path: Path) -> None:
    path = log_of(tmp_path / "log.ndjson", events())
    stamped = [line[1] for batch in FileSource([path], parse(SETTINGS)) for line in batch]
    assert stamped == TIMES_MS


def test_the_first_line_is_the_first_of_two(tmp_path: Path) -> None:
    second = TIMES_MS[100:110]
    path = log_of(tmp_path / "log.ndjson", events(times=second))
    stamped = [line[1] for batch in FileSource([path], parse(SETTINGS)) for line in batch]
    assert stamped == [ms - 3_600_000 for ms in second]


def test_local_times_of_parquet_are_near_the_row_before(tmp_path: Path) -> None:
    columns = {"ts": list(map(local, TIMES_MS)), "type": ["click"] * MINUTES}
    items = [f"i{n}" for n in range(MINUTES)]
    table = pyarrow.table({**columns, "item_id": items, "user_id": items})
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(table, path)
    stamped = [line[1] for batch in FileSource([path], parse(SETTINGS)) for line in batch]
    assert stamped == TIMES_MS


def test_the_window_of_a_file_is_from_its_first_to_its_last_event(tmp_path: Path) -> None:
    path = log_of(tmp_path / "log.ndjson", events())
    _, settings = spanned([path], parse(SETTINGS))
    assert settings.windows == with_file_window(settings, TIMES_MS[0], TIMES_MS[-1]).windows


def test_each_table_has_a_clock_of_its_own() -> None:
    shown = events("impression", [*TIMES_MS, TIMES_MS[-1] + 5 * 3_600_000])
    settings = parse(SETTINGS)
    tables = [pyarrow.Table.from_pylist(table) for table in (shown, events())]
    source = FileSource(tables, settings)
    stamped = [line[:2] for batch in source for line in batch]
    clicks = [time_ms for log, time_ms in stamped if log == "clicks"]
    assert clicks == TIMES_MS
    assert len(stamped) == 2 * MINUTES + 1


def test_what_is_added_goes_on_with_the_log() -> None:
    counter = streamer.Counter(SETTINGS)
    for at in range(0, MINUTES, 20):
        counter.add(events(times=TIMES_MS[at : at + 20]))
    assert len(counter.rejected) == 0


def test_the_second_hour_counts_live() -> None:
    settings = parse(SETTINGS)
    lines = [json.dumps(event).encode() for event in events()]
    records = [
        LogRecord("clicks", 0, n, ms + 2000, line)
        for n, (ms, line) in enumerate(zip(TIMES_MS, lines, strict=True))
    ]
    engines = Engines(settings, 1)
    engines.feed(LogChunk("clicks", 0, records))
    (counted,) = (p.core.state()["logs"]["clicks"]["counters"] for p in engines.partitions)
    assert (counted["accepted"], counted["late"]) == (MINUTES, 0)


def test_a_refusal_says_the_time_that_was_read() -> None:
    time_ms = TIMES_MS[100]
    raw = json.dumps(events(times=[time_ms])[0]).encode()
    refusal = Explainer(parse(SETTINGS)).explain(
        "clicks", raw, "late", (None, b"", time_ms + 7200_000)
    )
    assert refusal.found == "2023-10-29T01:10:00.000Z"


def test_refusals_of_files_say_the_time_that_was_read(tmp_path: Path) -> None:
    times = [*TIMES_MS, TIMES_MS[-1] + 4 * 3_600_000, TIMES_MS[100]]
    counter = streamer.Counter(SETTINGS)
    counter.add(log_of(tmp_path / "log.ndjson", events(times=times)))
    (refused,) = counter.rejected
    assert (refused.reason, refused.found) == ("late", "2023-10-29T01:10:00.000Z")


def test_a_stay_over_the_change_has_its_length() -> None:
    """From 02:50, shown for the first time, to 02:10, for the second."""
    stay = {"start_ts": "2023-10-29T02:50:00", "end_ts": "2023-10-29T02:10:00"}
    raw = json.dumps({"ts": "2023-10-29T02:10:00", "item_id": "i", **stay}).encode()
    judge, record_ms = RecordJudge(parse(SETTINGS)), TIMES_MS[100]
    assert judge.refusal("clicks", raw, record_ms) is None
    assert judge.refusal("clicks", raw, TIMES_MS[40]) == "dwell"
