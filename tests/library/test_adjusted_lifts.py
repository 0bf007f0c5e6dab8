"""A lift that is adjusted by the days before: every face shows the lift that is judged with its own
interval, and the plain one with the values that it belongs to."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import streamer
from streamer.formatting import change
from streamer.query.readout import Readout
from streamer.query.scorecard import scorecard
from streamer.server.web.scorecards import report, table
from streamer.settings.load import parse
from tests.library.test_live import fill
from tests.support.commands import called
from tests.support.lanes import long
from tests.support.visitors import DAY_MS, FIRST_MS, Event, experiment
from tests.support.workers import as_toml

DECLARED = experiment(covariate_days=5, metrics=[{"name": "ctr_ratio"}])
SETTINGS: dict[str, Any] = {"experiments": [DECLARED]}


def events() -> list[Event]:
    """Users who click as much as before the start, and in B 0.1 more; those of B clicked more
    before, too, so a part of the plain lift is theirs."""
    dice, found = Random(3), list[Event]()
    for user in range(400):
        arm, liking = "AB"[user % 2], dice.random() ** 2 + 0.04 * (user % 2)
        for day in range(-5, 5):
            for i in range(4):
                ts = FIRST_MS + day * DAY_MS + dice.randrange(DAY_MS - 100_000)
                ids = {"user_id": f"u{user}", "item_id": f"i{i}", "request_id": f"{user}.{day}.{i}"}
                same = {**ids, "variant": arm if day >= 0 else "before"}
                found.append({"type": "impression", "ts": ts, **same})
                if dice.random() < liking + 0.1 * (arm == "B" and day >= 0):
                    found.append({"type": "click", "ts": ts + 1000, **same})
    return sorted(found, key=lambda event: event["ts"])


EVENTS = events()


@pytest.fixture(scope="module")
def log() -> streamer.Counter:
    return streamer.read(EVENTS, SETTINGS)


@pytest.fixture(scope="module")
def comparison(log: streamer.Counter) -> dict[str, Any]:
    """One whose lifts differ."""
    (found,) = log.experiment("ranker").document["metrics"][0]["comparisons"]
    raw = found["adjustment"]["unadjusted"]["relative"]["value"]
    judged = found["relative"]["value"]
    assert (found["verdict"]["scale"], found["verdict"]["outcome"]) == ("relative", "better")
    assert raw - judged > 0.1
    assert found["lift"]["value"] == judged
    assert found["lift"]["unadjusted"]["value"] == raw
    return dict(found["lift"])


def check_table(found: streamer.ExperimentReport, comparison: dict[str, Any]) -> None:
    row: dict[str, Any] = found.metrics.to_dicts()[0]
    assert [row[name] for name in ("change", "low", "high")] == [
        comparison[name] for name in ("value", "low", "high")
    ]
    assert row["unadjusted"] == comparison["unadjusted"]["value"]
    assert row["unadjusted"] == pytest.approx(row["treatment"] / row["control"] - 1)


def test_of_a_file_in_python(log: streamer.Counter, comparison: dict[str, Any]) -> None:
    check_table(log.experiment("ranker"), comparison)


@long
def test_of_workers_in_python(
    redis_url: str, redis_prefix: str, comparison: dict[str, Any]
) -> None:
    settings = {**SETTINGS, "redis": {"url": redis_url, "prefix": redis_prefix}}
    parse(settings)
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    with streamer.connect(settings) as live:
        check_table(live.experiment("ranker"), comparison)


def test_of_page_and_report(log: streamer.Counter, comparison: dict[str, Any]) -> None:
    card = scorecard(msgspec.convert(log.experiment("ranker").document, Readout))
    (row,) = card.rows
    judged, plain = change(comparison["value"]), change(comparison["unadjusted"]["value"])
    least, (then, now) = change(comparison["low"]), row.values
    assert card.sentence == (
        f"B raises the click-through rate: {judged}, at least {least}, adjusted for what users did "
        f"before (unadjusted from {then} to {now}: {plain})."
    )
    assert row.comparison.lift.unadjusted is not None
    assert (row.comparison.lift.text, row.comparison.lift.unadjusted.text) == (judged, plain)
    page = report(card, "today")
    assert f"<b>{judged}</b>" in page
    assert f">raw {plain}<" in page
    assert card.sentence in page
    (line,) = csv.DictReader(io.StringIO(table(card)))
    assert (line["A"], line["treatment"], line["unadjusted"]) == (then, now, plain)
    assert line["change"] == judged


def test_of_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], comparison: dict[str, Any]
) -> None:
    path, config = tmp_path / "log.ndjson", tmp_path / "streamer.toml"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    config.write_text(as_toml(SETTINGS))
    words = ["readout", "ranker", "-c", str(config), "--file", str(path)]
    code, out, _ = called(capsys, words)
    heading = next(line for line in out.splitlines() if "adjusted lift" in line)
    shown = next(line for line in out.splitlines() if line.strip().startswith("B "))
    assert code == 0
    assert heading.index(" unadjusted ") < heading.index("adjusted lift")
    assert comparison["text"] in shown
    assert comparison["unadjusted"]["text"] in shown


def test_without_days_before_there_is_one_lift() -> None:
    settings = {"experiments": [{**DECLARED, "covariate_days": 0}]}
    found = streamer.read(EVENTS, settings).experiment("ranker")
    row: dict[str, Any] = found.metrics.to_dicts()[0]
    card = scorecard(msgspec.convert(found.document, Readout))
    assert "unadjusted" not in row
    assert row["change"] == pytest.approx(row["treatment"] / row["control"] - 1)
    then, now = card.rows[0].values
    assert card.sentence.startswith(f"B raises the click-through rate from {then} to {now}: +")
    assert ">raw " not in report(card, "today")
