"""``streamer why``: what broke is found in files and in the topics, and what cannot be asked is
refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamer.cli import main
from streamer.cli import why as why_command
from streamer.cli.files import replayed
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, HOUR_MS
from streamer.settings.load import load
from streamer.settings.model import Topics
from streamer.state.snapshot import View
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long

BEGIN_MS = 480_000 * HOUR_MS  # a Friday, 00:00
SETTINGS = """
[attribution]
click = "10m"
[time]
max_lateness = "1m"
[[alerts]]
name = "ctr"
baseline = "before"
"""
DIMENSIONS = "".join(f'[[dimensions]]\nname = "{name}"\n' for name in ("os", "page", "country"))
BROKEN = {"os": "ios 17", "page": "checkout"}


def hour_of(dice: Random, begin_ms: int, is_broken: bool, slates: int = 3_000) -> list[str]:
    """Slates and clicks of an hour; where it is broken, no old phone can check out."""
    lines: list[dict[str, Any]] = []
    for n in range(slates):
        user, ts = dice.randrange(900), begin_ms + n * HOUR_MS // slates
        os = ("ios 17", "ios 18", "android")[user % 3]
        page = dice.choice(("home", "search", "checkout"))
        ids = {"ts": ts, "user_id": f"u{user}", "request_id": f"{begin_ms}-{n}"}
        items = [{"item_id": f"i{i}"} for i in range(5)]
        shown = {"os": os, "page": page, "country": f"c{user % 7}", "app": f"v{user % 2}"}
        lines.append({"type": "impression", **ids, **shown, "items": items})
        for item in items:
            is_lost = is_broken and {"os": os, "page": page} == BROKEN
            if dice.random() < 0.1 and not is_lost:
                lines.append({"type": "click", **ids, **item, "ts": ts + 100})
    return [json.dumps(line) for line in lines]


def written(folder: Path, hours: Sequence[tuple[int, bool]]) -> str:
    """A file of some hours, by their numbers from the begin."""
    dice, path = Random(5), folder / "events.ndjson"
    lines = (line for hour, its in hours for line in hour_of(dice, BEGIN_MS + hour * HOUR_MS, its))
    path.write_text("\n".join(lines))
    return str(path)


def settings(folder: Path, text: str = DIMENSIONS + SETTINGS) -> str:
    path = folder / "streamer.toml"
    path.write_text(text)
    return str(path)


def why(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main.main(["why", *arguments])
    return code, *capsys.readouterr()


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = why(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def at(hour: float) -> str:
    moment = datetime.fromtimestamp((BEGIN_MS + hour * HOUR_MS) / 1000, UTC)
    return moment.isoformat(timespec="seconds")[:19]


def test_what_broke_is_found_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, config = written(tmp_path, [(0, False), (1, False), (2, True)]), settings(tmp_path)
    found = document(capsys, "ctr", events, "-c", config)
    assert found["compared"] == "the window before"
    (cell,) = found["search"]["found"]
    assert cell["values"] == BROKEN
    assert cell["by"] == "numerator"
    assert cell["sums"]["numerator_now"] == cell["sums"]["rate_now"] == 0.0
    assert cell["low"] < -cell["sums"]["numerator_then"] < cell["high"] < 0
    assert abs(cell["left"]["change"]) < 0.05
    _, out, err = why(capsys, "ctr", events, "-c", config)
    assert err == ""
    assert "os ios 17 × page checkout" in out
    assert "compared with the window before" in out
    assert "→ 0%" in out


def test_other_fields_are_looked_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = written(tmp_path, [(0, False), (1, True)])
    config = settings(tmp_path, '[[dimensions]]\nname = "country"\n' + SETTINGS)
    times = ("--from", at(1), "--to", at(2))
    (cell,) = document(
        capsys, "ctr", events, "-c", config, *times, "--field", "os", "--field", "page"
    )["search"]["found"]
    assert cell["values"] == BROKEN


def test_fields_of_sources_are_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = """
[[sources]]
topics = ["events"]
kind = { field = "type", impression = ["impression"], click = ["click"] }
fields = { user_id = "user_id", request_id = "request_id", ts = "ts" }
impression.fields = { item_id = "items[].item_id" }
click.fields = { item_id = "item_id" }
"""
    events = Path(written(tmp_path, [(0, False), (1, True)]))
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    nested = [
        {**line, "client": {"os": line.get("os"), "page": line.get("page")}} for line in lines
    ]
    events.write_text("\n".join(map(json.dumps, nested)))
    config = settings(tmp_path, source + SETTINGS)
    paths = ("--field", "client.os", "--field", "client.page")
    found = document(capsys, "ctr", str(events), "-c", config, *paths)
    (cell,) = found["search"]["found"]
    assert cell["values"] == {f"client_{name}": value for name, value in BROKEN.items()}


def test_the_day_before_stands_in_for_the_week_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saturday = 24
    events = written(tmp_path, [(0, False), (saturday, True)])
    config = settings(tmp_path, DIMENSIONS + SETTINGS.replace('baseline = "before"', ""))
    times = ("--from", at(saturday), "--to", at(saturday + 1))
    found = document(capsys, "ctr", events, "-c", config, *times)
    assert found["compared"] == "the same time the day before"
    assert found["note"] == "the log does not hold the same time a week before any more"
    assert [cell["values"] for cell in found["search"]["found"]] == [BROKEN]
    assert found["then"][0] == BEGIN_MS
    assert found["now"][0] - found["then"][0] == DAY_MS
    _, out, _ = why(capsys, "ctr", events, "-c", config, *times)
    assert "(the log does not hold the same time a week before any more)" in " ".join(out.split())


@long
def test_of_many_rows_a_sample_of_people_is_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RATIO_ROWS", 5_000)
    events, config = written(tmp_path, [(0, False), (1, True)]), settings(tmp_path)
    search = document(capsys, "ctr", events, "-c", config)["search"]
    assert search["people_share"] == 0.5
    (cell,) = search["found"]
    assert cell["values"] == BROKEN
    assert cell["low"] < -3_000 * 5 / 9 * 0.1 < cell["high"]
    assert "a sample of 50%" in why(capsys, "ctr", events, "-c", config)[1]


def test_nothing_is_said_plainly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, config = written(tmp_path, [(0, False), (1, False)]), settings(tmp_path)
    code, out, err = why(capsys, "ctr", events, "-c", config)
    assert code == 0, err
    assert "Nothing found: none of 65 values and crossings stands out." in out
    times = ("--from", at(1), "--to", at(1.01))
    assert (
        "too few events to look into any values"
        in why(capsys, "ctr", events, "-c", config, *times)[1]
    )
    times = ("--from", at(3), "--to", at(4))
    assert (
        "nothing was counted in one of the two periods"
        in why(capsys, "ctr", events, "-c", config, *times)[1]
    )


COMPOSITE = """
[[composites]]
name = "mix"
parts = [
    { metric = "ctr_ratio", against = "target", target = 0.4 },
    { metric = "ctr_attributed_ratio", weight = -1 },
]
[[alerts]]
name = "mix"
metric = "composite@mix"
"""


@pytest.mark.parametrize(
    ("more", "arguments", "text"),
    [
        ("", ["ctx"], "no alert 'ctx'; did you mean 'ctr'?"),
        (COMPOSITE, ["mix"], "'composite@mix' has no numerator and denominator that events add to"),
        ("", ["ctr", "--to", "2024-10-04"], "--to needs --from"),
        ("", ["ctr", "--from", "2024-10-04", "--to", "2024-10-03"], "--from is not before --to"),
        ("", ["ctr", "--from", "yesterday"], "'yesterday' is not a time like 2026-11-02T14:00"),
        ("", ["ctr", "--field", "os"], "the settings have a dimension 'os' already"),
        ("", ["ctr", "--field", "client.os"], "events of this shape have their fields at the top"),
        (
            "",
            ["ctr", "EVENTS", "--from", "2024-10-03T23:00"],
            "begins at 2024-10-04T00:00:00 UTC, and the window before at 2024-10-03T22:00:00",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, arguments: list[str], text: str
) -> None:
    events = written(tmp_path, [(0, False)])
    given = [events if each == "EVENTS" else each for each in arguments]
    config = settings(tmp_path, DIMENSIONS + SETTINGS + more)
    code, out, err = why(capsys, *given, "-c", config)
    assert (code, out) == (2, "")
    assert text in err


def test_without_dimensions_there_is_nothing_to_look_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = why(capsys, "ctr", "-c", settings(tmp_path, "dimensions = []\n" + SETTINGS))
    assert code == 2
    assert "add [[dimensions]], or --field PATH" in err


@pytest.mark.parametrize(
    "text", ["[limits]\ncrossings = 1_000", '[[alerts]]\nname = "ctr"\ncrossings = true']
)
def test_crossings_of_old_settings_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    code, _, err = why(capsys, "ctr", "-c", settings(tmp_path, text))
    assert code == 2
    assert "crossings: nothing is stored for them any more; remove it" in err


def of_kafka(kafka: str, topics: Topics, redis_url: str, prefix: str) -> str:
    names = "".join(f'{key} = "{name}"\n' for key, name in topics.named.items())
    return (
        f'[kafka]\nbrokers = "{kafka}"\n[kafka.topics]\n{names}'
        f'[redis]\nurl = "{redis_url}"\nprefix = "{prefix}"\n'
    )


def test_what_broke_is_found_in_the_topics(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = of_kafka(kafka, topics(2), redis_url, redis_prefix)
    config = settings(tmp_path, own + DIMENSIONS + SETTINGS)
    events = written(tmp_path, [(0, False), (1, False), (2, True)])
    assert main.main(["produce", events, "-c", config]) == 0
    capsys.readouterr()
    code, _, err = why(capsys, "ctr", "-c", config)
    assert code == 2
    assert "Redis holds no status of the alert: name the time with --from" in err
    times = ("--from", at(2), "--to", at(3))
    found = document(capsys, "ctr", "-c", config, *times)
    of_file = document(capsys, "ctr", events, "-c", config, *times)
    assert of_file["search"] == found["search"]
    assert [cell["values"] for cell in found["search"]["found"]] == [BROKEN]
    assert found["search"]["whole"]["denominator_now"] == 15_000
    replay, _ = replayed(load(config), [events])

    async def stored(*_: object) -> list[View]:
        return replay.views()

    monkeypatch.setattr(why_command, "stored_views", stored)
    found = document(capsys, "ctr", "-c", config)
    assert [cell["values"] for cell in found["search"]["found"]] == [BROKEN]
    assert found["now"][0] == BEGIN_MS + 2 * HOUR_MS
