"""The window that is all of a file shows a full count of the events that are accepted."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import streamer
from streamer.errors import UsageError
from streamer.library.selection import time_of
from streamer.settings.file_window import FILE, with_file_window, without_file_window
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources import file_span
from streamer.sources.file_span import spanned
from streamer.sources.files import FileSource
from streamer.sources.replay import Replay
from tests.oracle.oracle import records_of_file
from tests.oracle.random_log import random_log as oracle_log
from tests.support.agreement import DOCUMENTS, to_log
from tests.support.all_cases import hold_for_all
from tests.support.commands import called
from tests.support.lanes import long, sized

DAY_MS = 86_400_000
SPANS_MS = (
    1,
    1000,
    59_000,
    3_600_000,
    5 * 3_600_000,
    DAY_MS,
    10 * DAY_MS,
    45 * DAY_MS,
    400 * DAY_MS,
)
WINDOWS = (["1m", "5m", "1h", "24h"], ["90s"], ["31d", "30s"])
COUNT = sized(45, 90)
"""So many logs: each span, and each windows, several times."""
Event = dict[str, Any]


def random_log(seed: int, span_ms: int) -> list[Event]:
    """Events of a span, at its ends, too: in about the order of time, some twice, some late, some
    of tomorrow and some that are none."""
    dice = Random(seed)
    first = 1_600_000_000_000 + dice.randrange(DAY_MS)
    found: list[Event] = []
    for i in range(dice.randint(1, 120)):
        at = first + (0, span_ms)[i] if i < 2 else first + dice.randrange(span_ms)
        event = {"user_id": f"u{dice.randrange(9)}", "item_id": f"i{dice.randrange(9)}", "ts": at}
        kind = dice.choice(["impression", "impression", "click", "conversion"])
        found.append({"type": kind, "event_id": f"e{i}", "variant": dice.choice("AB"), **event})
    found.sort(key=lambda event: event["ts"] + dice.choice([0, 0, 0, 4_000_000]))
    odd = [dice.choice(found), {"type": "impression"}, {**found[0], "event_id": "x", "ts": 4e12}]
    for event in odd:
        found.insert(dice.randrange(len(found) + 1), event)
    return found


def counted(source: Any, settings: Settings, partitions: int) -> Replay:
    files, own = spanned([source], settings)
    replay = Replay(own, partitions)
    for lines in FileSource(files, own):
        replay.feed(lines)
    replay.finish()
    return replay


def shown(replay: Replay) -> dict[str, float]:
    """What the window shows of all events together."""
    names = {f"streamer_window_{kind}": kind for kind in ("impressions", "clicks", "conversions")}
    found: dict[str, float] = {}
    for reading in replay.readout().readings:
        whole = all(v == "all" for k, v in reading.labels.items() if k != "window")
        if reading.name in names and reading.labels["window"] == FILE and whole:
            found[names[reading.name]] = reading.value
    return found


def accepted(replay: Replay) -> dict[str, int]:
    found: Counter[str] = Counter()
    for partition in replay.partitions:
        for name, log in partition.core.state()["logs"].items():
            found[name] += log["counters"]["accepted"]
    return {kind: n for kind, n in found.items() if n and kind != "sessions"}


def the_window_is_all_that_was_accepted(case: tuple[int, int], folder: Path) -> None:
    seed, span_ms = case
    path = folder / f"{seed}.ndjson"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in random_log(seed, span_ms)))
    settings = parse({"windows": {"lengths": WINDOWS[seed % 3]}})
    replay = counted(str(path), settings, 1 + seed % 4)
    expected = accepted(replay)
    assert expected
    found = shown(replay)
    assert {kind: n for kind, n in found.items() if n} == expected


def test_the_window_is_all_that_was_accepted(tmp_path: Path) -> None:
    hold_for_all(
        [(seed, SPANS_MS[seed % len(SPANS_MS)]) for seed in range(COUNT)],
        lambda case: the_window_is_all_that_was_accepted(case, tmp_path),
        str,
        at_least=COUNT,
    )


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
@long
def test_other_windows_show_what_they_show_without_it(name: str) -> None:
    """What is compared with the longest window, too."""
    compared = 0
    for seed in range(sized(1, 3)):
        settings = parse(DOCUMENTS[name])
        records = to_log(records_of_file(list(oracle_log(seed, settings, 200)), settings, 2))
        lines = [(r.kind, r.record_ms, r.value or b"") for r in records]
        times = [ms for _, ms, _ in lines]
        found = []
        for own in (settings, with_file_window(settings, min(times) - 90_000_000, max(times))):
            replay = Replay(own, 2)
            replay.feed(lines)
            replay.finish()
            readings = replay.readout().readings
            found.append(
                {
                    (r.name, frozenset(r.labels.items())): r.value
                    for r in readings
                    if r.labels.get("window") != FILE
                }
            )
        assert found[0] == found[1]
        compared += len(found[0])
    assert compared > 300


def test_it_covers_its_span_wherever_panes_begin() -> None:
    """Panes of items are five times as long."""
    dice, settings = Random(1), parse({})
    for _ in range(2000):
        span_ms = dice.choice(SPANS_MS) + dice.randrange(2000)
        first = dice.randrange(2_000_000_000_000)
        lengths = with_file_window(settings, first, first + span_ms).windows.lengths_ms
        assert next(iter(lengths)) == FILE
        for parts in (60, 12):
            pane_ms = lengths[FILE] // parts
            assert (first + span_ms) // pane_ms - first // pane_ms < parts


def test_settings_are_as_before_without_it() -> None:
    settings = parse({"windows": {"lengths": ["10m", "24h"], "day_before": ["10m"]}})
    own = with_file_window(settings, 5, 99)
    assert own.windows.lengths == (FILE, "10m", "24h")
    assert without_file_window(own) == settings == without_file_window(settings)
    most = parse({"windows": {"lengths": [f"{n}m" for n in range(1, 9)]}})
    assert with_file_window(most, 5, 99) is most


@pytest.mark.parametrize("most_bytes", [1 << 26, 100])
def test_what_is_read_once_has_it_too(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    monkeypatch.setattr(file_span, "_HELD_BYTES", most_bytes)
    log = random_log(7, 40 * DAY_MS)
    replay = counted(iter(log), parse({}), 2)
    assert shown(replay) == accepted(replay)


def test_in_python_it_is_the_default_and_exact() -> None:
    first = 1_700_000_000_000
    hours = [first + 3_600_000 * i for i in range(24 * 100)]
    events = [{"type": "impression", "user_id": "u", "item_id": "a", "ts": ts} for ts in hours]
    log = streamer.read(Random(2).sample(events, len(events)))
    (row,) = log.metrics("window_impressions")
    assert row["value"] == len(events)
    assert [row["start"], row["end"]] == [time_of(ms) for ms in (first, hours[-1])]
    (same,) = log.metrics("window_impressions", window="file")
    assert same == row
    (last,) = log.metrics("window_impressions", window="24h")
    assert last["value"] == 24
    state = log.state()
    again = streamer.Counter.from_state(state)
    assert "file" not in again.settings.windows.lengths
    assert again.metrics("window_impressions", window="24h")["value"] == [24]
    log.add([{**events[0], "ts": hours[-1] + 3_600_000 * 24 * 90}])
    with pytest.raises(UsageError, match="window = 'file': so much was added"):
        log.metrics("window_impressions")


def test_a_window_that_ended_is_the_one_asked_for_or_refused() -> None:
    """Of 24h two panes are 48 minutes, and three 72."""
    first = 1_700_006_400_000
    minutes = [first + 60_000 * i for i in range(60 * 24)]
    settings = {"windows": {"lengths": ["1h", "24h", "72m"]}}
    counter = streamer.Counter(settings)
    counter.add([{"type": "impression", "user_id": "u", "item_id": "a", "ts": t} for t in minutes])
    with pytest.raises(UsageError, match=r"window 1h that ends then .*: ask for 72m; the latest"):
        counter.metrics("window_impressions", window="1h", at=first + 12 * 3_600_000)
    for window, at, length in (
        ("72m", first + 12 * 3_600_000, 72),
        ("1h", minutes[-1] - 60_000, 60),
    ):
        rows: list[dict[str, Any]] = counter.metrics(
            "window_impressions", window=window, at=at
        ).to_dicts()
        assert [row["end"] - row["start"] for row in rows] == [timedelta(minutes=length)]
        assert rows[0]["value"] == length


def test_replay_shows_it_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.ndjson"
    days = [1_700_000_000_000 + DAY_MS * i for i in range(10)]
    lines = [{"type": "impression", "user_id": "u", "item_id": "a", "ts": ts} for ts in days]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    code, out, _ = called(capsys, ["replay", str(path)])
    assert code == 0
    assert "All of the file, 2023-11-14 22:13 to 2023-11-23 22:13" in out
    assert "The last day, 2023-11-22 " in out
    assert "The last 7d" not in out
    config = tmp_path / "streamer.toml"
    config.write_text('[windows]\nlengths = ["7d", "1h"]\n')
    _, out, _ = called(capsys, ["replay", str(path), "-c", str(config)])
    titles = ["All of the file, 2023", "The last 7d, 2023-11-16 ", "The last 1h, 2023-11-23 "]
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    _, out, _ = called(capsys, ["replay", str(path), "--json"])
    found = [r for r in json.loads(out)["readings"] if r["name"] == "streamer_window_impressions"]
    assert found[0]["labels"]["window"] == "file"
    assert found[0]["value"] == 10
