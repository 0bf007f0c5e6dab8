"""The tables at the end of a replay: the largest segments, of however many."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from streamer.query.readings import Reading, SeriesBlock
from streamer.settings.file_window import with_windows
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.snapshot import view_of
from tests.support.commands import called
from tests.support.workers import as_toml

DIMENSIONS, VALUES, EVENTS = 5, 200, 4000
SETTINGS = {"dimensions": [{"name": f"d{k}", "max_values": VALUES} for k in range(DIMENSIONS)]}


def lines() -> list[dict[str, object]]:
    dice = random.Random(5)
    return [
        {
            **{"type": "impression", "ts": 1_763_000_000_000 + i * 400, "user_id": f"u{i % 99}"},
            **{f"d{k}": f"v{dice.randrange(VALUES)}" for k in range(DIMENSIONS)},
            "item_id": "i",
        }
        for i in range(EVENTS)
    ]


def test_a_summary_makes_no_readings_that_it_does_not_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, config = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines()))
    config.write_text(as_toml(SETTINGS))
    made, readings = Counter[str](), SeriesBlock.readings

    def counted(block: SeriesBlock) -> list[Reading]:
        found = list(readings(block))
        made[block.name] += len(found)
        return found

    monkeypatch.setattr(SeriesBlock, "readings", counted)
    code, out, _ = called(capsys, ["replay", str(log), "-c", str(config)])
    assert code == 0
    assert made.pop("streamer_impressions_total") == DIMENSIONS * VALUES + 1
    assert made.total() < 100
    largest = Counter((k, line[f"d{k}"]) for line in lines() for k in range(DIMENSIONS))
    counts = [EVENTS, *(n for _, n in largest.most_common(19))]
    tables = out.partition("All of the file")[2]
    shown = re.findall(r"^ *(?:all|v\d+)(?: +(?:all|v\d+)){4} +([\d,]+) ", tables, re.M)
    assert shown == [f"{n:,}" for n in counts]
    assert f"{len(largest) - 19:,} more segments" in tables


def test_a_summary_ends_with_the_last_day_what_fell_silent_and_the_alerts_that_fire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    alert: dict[str, Any] = {
        "name": "ctr",
        "metric": "ctr_ratio",
        "window": "1h",
        "baseline": "before",
    }
    alert |= {"segments": ["surface"], "drop": 0.2}
    config.write_text(as_toml({"dimensions": [{"name": "surface"}], "alerts": [alert]}))
    hours, per_hour = 50, 360
    for clicked_until in (hours, hours - 26, hours - 1):
        with log.open("w") as file:
            for i in range(hours * per_hour):
                ts, surface = 1_763_000_000_000 + i * 10_000, ("app", "web")[i // 2 % 2]
                line = {"type": "impression", "ts": ts, "user_id": f"u{i}", "item_id": "i"}
                file.write(json.dumps(line | {"surface": surface}) + "\n")
                if i % 2 and (surface == "web" or i < clicked_until * per_hour):
                    file.write(json.dumps(line | {"type": "click", "ts": ts + 1}) + "\n")
        code, out, _ = called(capsys, ["replay", str(log), "-c", str(config)])
        assert (code, "The last day, 2025-11-14 " in out) == (0, True)
        is_silent = "No clicks of surface app for at least 24h, in which about" in out
        assert is_silent == (clicked_until == hours - 26)
        is_firing = (
            "At the end the alert ctr fires: Click-through rate of app is 0% instead of 50.0%"
            in out
        )
        assert is_firing == (clicked_until == hours - 1)


def test_a_summary_says_when_alerts_would_have_fired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No click on app for five hours in the middle of four days, from a whole hour on."""
    log, config = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    alert = {"name": "ctr", "window": "1h", "baseline": "before", "segments": ["surface"]}
    config.write_text(as_toml({"dimensions": [{"name": "surface"}], "alerts": [alert]}))
    begin_ms, hour_ms, per_hour = 1_763_000_000_000 // 3_600_000 * 3_600_000, 3_600_000, 240
    for is_broken in (True, False):
        with log.open("w") as file:
            for i in range(96 * per_hour):
                ts, surface = begin_ms + i * hour_ms // per_hour, ("app", "web")[i // 2 % 2]
                line = {"type": "impression", "ts": ts, "user_id": f"u{i}", "item_id": "i"}
                file.write(json.dumps(line | {"surface": surface}) + "\n")
                is_lost = is_broken and surface == "app" and 48 <= i // per_hour < 53
                if i % 2 and not is_lost:
                    file.write(json.dumps(line | {"type": "click", "ts": ts + 1}) + "\n")
        code, out, _ = called(capsys, ["replay", str(log), "-c", str(config)])
        assert code == 0
        told = re.findall(
            r"The alert ctr would have fired for (\w+): (\w+),\s(.*?) to (.*?) UTC", out
        )
        ranges = {(where, what): times for where, what, *times in told}
        assert (("app", "dropped") in ranges) == is_broken
        assert all(where != "web" for where, _ in ranges)
        if is_broken:
            times = (datetime.fromisoformat(f"{at}Z") for at in ranges["app", "dropped"])
            began, ended = ((at.timestamp() * 1000 - begin_ms) / hour_ms - 48 for at in times)
            assert 0 < began < 1.5
            assert 5 <= ended <= 6.5
        assert "At the end the alert" not in out


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"windows": {"lengths": ["5m", "1h", "2h", "6h"], "day_before": ["1h", "2h"]}},
        {
            "windows": {"lengths": ["1h", "2h", "6h"]},
            "items": {"windows": ["2h"]},
            "alerts": [{"name": "ctr", "metric": "ctr_ratio", "window": "2h"}],
        },
    ],
)
def test_a_summary_counts_in_no_windows_that_it_does_not_show(
    settings: dict[str, object],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, config = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines()[:600]))
    config.write_text(as_toml(SETTINGS | settings))
    counted = list[tuple[str, ...]]()

    def kept(*args: Any) -> Settings:
        found = with_windows(*args) if len(counted) == 0 else args[0]
        counted.append(found.windows.lengths)
        return found

    monkeypatch.setattr("streamer.cli.replay.with_windows", kept)
    few, all_of_them = (called(capsys, ["replay", str(log), "-c", str(config)]) for _ in range(2))
    assert few == all_of_them
    assert few[0] == 0
    assert "All of the file" in few[1]
    assert 0 < len(counted[0]) <= 3 < len(counted[1])


def test_a_document_in_parts_is_the_same_and_so_are_panes_that_are_not_copied() -> None:
    replay = Replay(parse(SETTINGS), partitions=2)
    some = lines()[:500]
    replay.feed([("impressions", int(str(e["ts"])), json.dumps(e).encode()) for e in some])
    replay.finish()
    result = replay.readout()
    assert "".join(result.json_parts()) == json.dumps(result.as_json()) + "\n"
    assert len(result.readings) > 1000
    for partition in replay.partitions:
        live, copied = (view_of(partition, is_live=each).panes for each in (True, False))
        assert live.keys() >= copied.keys()
        assert all(len(live[pane][0]) == 0 for pane in live.keys() - copied.keys())
        for pane, rows in copied.items():
            assert [each.tolist() for each in live[pane]] == [each.tolist() for each in rows]
        assert len(copied) > 10
