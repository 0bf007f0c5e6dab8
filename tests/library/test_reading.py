"""Windows that end earlier, histories, changes and experiments: each against another way to the
same numbers."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest
from scipy import stats

import streamer
from streamer.cli import main
from streamer.library.selection import epoch_ms, time_of
from streamer.stats.alerting.explain import explain

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
START_MS = 1_760_000_400_000  # a whole hour
SETTINGS: dict[str, Any] = {
    "windows": {"lengths": ["5m", "1h", "24h"]},
    "experiments": [
        {
            "name": "ranker",
            "dimension": "variant",
            "control": "A",
            "split": {"A": 1, "B": 1},
            "start": datetime.date(2025, 10, 9),
            "explore": ["surface"],
            "metrics": [{"name": "ctr_ratio"}, {"name": "clicks_per_user", "margin": 0.1}],
        }
    ],
}


def events(hours: int = 6, users: int = 400, seed: int = 1) -> list[dict[str, Any]]:
    """Users who keep their arm see items every minute and click on some, B more often, women more
    often in the second half."""
    dice, found = Random(seed), list[dict[str, Any]]()
    for minute in range(60 * hours):
        for _ in range(8):
            number = dice.randrange(users)
            arm, surface = "AB"[number % 2], dice.choice(["women", "men"])
            shown: dict[str, Any] = {
                **{
                    "type": "impression",
                    "ts": START_MS + minute * MINUTE_MS + dice.randrange(1000),
                },
                **{"user_id": f"u{number}", "item_id": f"i{dice.randrange(30)}"},
                **{"variant": arm, "surface": surface},
            }
            rate = 0.2 + 0.1 * (arm == "B") + 0.2 * (surface == "women" and minute > 30 * hours)
            found.append(shown)
            if dice.random() < rate:
                found.append({**shown, "type": "click", "ts": shown["ts"] + 2000})
    return sorted(found, key=lambda event: event["ts"])


EVENTS = events()


def count(kind: str, within: Sequence[dict[str, Any]], **labels: str) -> int:
    return sum(e["type"] == kind and labels.items() <= e.items() for e in within)


def test_a_window_may_end_earlier() -> None:
    log = streamer.read(EVENTS, SETTINGS)
    end_ms = START_MS + 5 * HOUR_MS + 40 * MINUTE_MS
    rows = log.metrics("ctr", by="variant", window="5m", at=end_ms)
    assert len(rows) == 2
    for row in rows:
        within = [e for e in EVENTS if end_ms - 5 * MINUTE_MS <= e["ts"] < end_ms]
        arm = str(row["variant"])
        expected = count("click", within, variant=arm) / count("impression", within, variant=arm)
        assert row["value"] == pytest.approx(expected)
        assert row["end"] == time_of(end_ms)
    texts: list[Any] = [time_of(end_ms), time_of(end_ms).isoformat(), end_ms]
    assert len({repr(log.metrics("ctr", window="5m", at=text)) for text in texts}) == 1


def test_a_window_that_ended_is_as_long_as_its_name() -> None:
    log = streamer.read(EVENTS, SETTINGS)
    (row,) = log.metrics("ctr", window="1h", at=START_MS + 4 * HOUR_MS)
    start, end = row["start"], row["end"]
    assert isinstance(start, datetime.datetime)
    assert isinstance(end, datetime.datetime)
    assert (start, end) == (time_of(START_MS + 3 * HOUR_MS), time_of(START_MS + 4 * HOUR_MS))
    within = [e for e in EVENTS if start <= time_of(e["ts"]) < end]
    assert row["value"] == count("click", within) / count("impression", within)


def test_a_window_may_end_later() -> None:
    log = streamer.read(EVENTS, SETTINGS)
    after = EVENTS[-1]["ts"] + 30 * MINUTE_MS
    (value,) = log.metrics("window_impressions", window="1h", at=after)["value"]
    assert isinstance(value, int)
    assert 0 < value < log.metrics("window_impressions", window="1h")["value"][0]  # type: ignore[operator]


def test_a_history_adds_up_to_its_window() -> None:
    log = streamer.read(EVENTS, SETTINGS)
    history = log.history("window_clicks", by="variant")
    for arm in "AB":
        parts = [row["value"] for row in history if row["variant"] == arm]
        whole = [v for v in parts if isinstance(v, float)]
        assert sum(whole) == count("click", EVENTS, variant=arm)
    times = [row["time"] for row in history if row["variant"] == "A"]
    assert times == sorted(times, key=str)
    assert len(times) == 36  # panes of all that was read: ten minutes
    few = log.history("ctr", points=5)
    assert len(few) <= 5


def test_a_change_is_that_of_two_windows() -> None:
    log = streamer.read(EVENTS, SETTINGS)
    end_ms = START_MS + 6 * HOUR_MS
    sides = []
    for until in (end_ms, end_ms - 5 * MINUTE_MS):
        within = [e for e in EVENTS if until - 5 * MINUTE_MS <= e["ts"] < until]
        sides.append(
            {
                s: (count("click", within, surface=s), count("impression", within, surface=s))
                for s in ("women", "men")
            }
        )
    found = log.explain("ctr", by="surface", window="5m", at=end_ms)
    expected = explain(*sides)
    assert found.explanation == expected
    assert [row["surface"] for row in found] == [part.segment for part in expected.parts]
    assert found.now == pytest.approx(float(expected.value_now or 0))
    assert "comes from" in repr(found)
    assert "compared with" in found.compared
    with pytest.raises(streamer.UsageError, match="the window before 24h is not kept"):
        log.explain("ctr", by="surface", window="24h")


def written(path: Path) -> Path:
    path.write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    return path


def test_an_experiment_is_its_readout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, config = written(tmp_path / "log.ndjson"), tmp_path / "streamer.toml"
    config.write_text(
        '[windows]\nlengths = ["5m", "1h", "24h"]\n[[experiments]]\nname = "ranker"\n'
        'dimension = "variant"\ncontrol = "A"\nsplit = { A = 1, B = 1 }\nstart = 2025-10-09\n'
        'explore = ["surface"]\nmetrics = [{ name = "ctr_ratio" }, '
        '{ name = "clicks_per_user", margin = 0.1 }]\n'
    )
    command = ["readout", "ranker", "-c", str(config), "--file", str(path), "--json"]
    assert main.main(command) == 0
    expected = json.loads(capsys.readouterr().out)
    log = streamer.read(path, config)
    found = log.experiment("ranker")
    expected.pop("history")
    assert json.loads(json.dumps(found.document)) == expected
    assert log.experiment()["experiment"] == ["ranker"]
    assert found.advice == expected["recommendation"]["sentence"]
    assert {row["arm"]: row["users"] for row in found.split} == expected["users"]
    primary = found.metrics[0]
    lift = expected["metrics"][0]["comparisons"][0]
    assert primary["change"] == lift[str(primary["scale"])]["value"] == lift["lift"]["value"]
    assert (primary["low"], primary["high"]) == (lift["lift"]["low"], lift["lift"]["high"])
    assert repr(found).startswith("ranker: B against A")


def test_segments_of_an_experiment(tmp_path: Path) -> None:
    log = streamer.read(EVENTS, SETTINGS)
    found = log.experiment("ranker", by="surface")
    (exploration,) = found.explorations
    assert {"women", "men"} <= exploration["values"].keys()
    html = found._repr_html_()
    assert "srcdoc" in html
    assert "women" in html
    found.save(tmp_path / "ranker.html")
    assert "<script" not in (tmp_path / "ranker.html").read_text()
    with pytest.raises(streamer.UsageError, match="by = 'variant'"):
        log.experiment("ranker", by="variant")


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame,
        polars.DataFrame,
        pyarrow.Table.from_pylist,
        lambda rows: duckdb.from_arrow(pyarrow.Table.from_pylist(rows)),
        iter,
    ],
    ids=["pandas", "Polars", "pyarrow", "DuckDB", "iterator"],
)
def test_frames_of_all_libraries_are_read_alike(frame: Any) -> None:
    expected = streamer.read(EVENTS, SETTINGS)
    for settings in (SETTINGS, None):
        log = streamer.read(frame(EVENTS), settings)
        assert log.what_was_read.topics.to_dicts() == expected.what_was_read.topics.to_dicts()
        if settings is not None:
            assert log.metrics().to_dicts() == expected.metrics().to_dicts()
        else:
            assert log.metrics("ctr")["value"] == expected.metrics("ctr")["value"]


def test_two_values_are_compared_as_an_experiment() -> None:
    without = {name: value for name, value in SETTINGS.items() if name != "experiments"}
    log = streamer.read(EVENTS, without)
    declared = streamer.read(EVENTS, SETTINGS).experiment("ranker")
    compared = log.compare("variant", control="A", treatment="B")
    names = ("change", "low", "high", "control", "treatment")
    for name in names:
        assert compared.metrics[0][name] == declared.metrics[0][name]
    assert compared.users == declared.users
    from_iterator = streamer.read(iter(EVENTS), without)
    with pytest.raises(streamer.UsageError, match="are not kept: give"):
        from_iterator.compare("variant", control="A", treatment="B")


def test_a_plan_is_that_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "log.ndjson")
    assert main.main(["plan", "ctr_ratio", "--lift", "5%", "--file", str(path), "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    found = streamer.plan(path, "ctr_ratio", lift=0.05, settings={})
    assert {**found.document, "of": ""} == {**expected, "of": ""}
    assert found.users == expected["needed"]["anytime"]["users"]
    assert "A lift of 5%" in repr(found)
    log = streamer.read(EVENTS, SETTINGS)
    of_control = streamer.plan(log, "ctr_ratio", lift=0.05, experiment="ranker")
    assert of_control.document["users"] == log.experiment("ranker").users["A"]


def test_a_notebook_has_a_loop_already() -> None:
    async def cell() -> list[Any]:
        counter = streamer.Counter(SETTINGS)
        counter.add(EVENTS)
        return streamer.Counter.from_state(counter.state(), SETTINGS).metrics("ctr")["value"]

    assert asyncio.run(cell()) == streamer.read(EVENTS, SETTINGS).metrics("ctr")["value"]


def test_the_latest_event_has_a_part_in_a_change() -> None:
    at_ms = START_MS + HOUR_MS  # where panes of every length begin
    shown = {"type": "impression", "user_id": "u", "item_id": "a", "variant": "A"}
    found = [{**shown, "ts": at_ms}] * 10
    found += [{**shown, "type": "click", "ts": at_ms}] * 5
    log = streamer.read(found, {"windows": {"lengths": ["5m", "1h"]}})
    assert log.metrics("ctr", window="5m")["value"] == [0.5]
    assert log.explain("ctr", by="variant", window="5m").now == 0.5


def test_a_window_that_ended_earlier_has_nothing_after_its_end() -> None:
    shown = {"type": "impression", "user_id": "u", "item_id": "a"}
    times = [START_MS + 1000 * i for i in range(6 * 3600)]
    settings = {"windows": {"lengths": ["5m", "1h", "24h"]}}
    log = streamer.read([{**shown, "ts": ts} for ts in times], settings)
    for window, pane_ms in (("5m", MINUTE_MS), ("1h", 24 * MINUTE_MS)):
        for minute in (310, 340, 359):
            at_ms = START_MS + minute * MINUTE_MS + 7
            (row,) = log.metrics("ctr", window=window, at=at_ms)
            start, end = (epoch_ms(row[name]) for name in ("start", "end"))
            assert at_ms - pane_ms < end <= at_ms
            length_ms = 5 * MINUTE_MS if window == "5m" else HOUR_MS
            assert abs(end - start - length_ms) <= pane_ms / 2
            assert row["support"] == sum(start <= ts < end for ts in times)


def test_events_of_the_first_minutes_of_the_epoch_have_a_history() -> None:
    counter = streamer.Counter({"windows": {"lengths": ["5m", "1h"]}})
    shown = {"type": "impression", "user_id": "u", "item_id": "a"}
    counter.add([{**shown, "ts": 5000 + i} for i in range(10)])
    assert counter.history("window_impressions", window="1h")["value"] == [10]
    with pytest.raises(streamer.UsageError, match="is not kept"):
        counter.explain("ctr", by="variant", window="5m")


def test_intervals_of_means_are_within_what_is_possible() -> None:
    found = list[dict[str, Any]]()
    for number, clicked in enumerate((0, 0, 2)):
        of = {"user_id": f"u{number}", "request_id": f"r{number}"}
        for place in range(3):
            shown = {**of, "item_id": f"i{place}", "position": place + 1}
            found.append({**shown, "type": "impression", "ts": START_MS + number})
            if place == clicked:
                found.append({**shown, "type": "click", "ts": START_MS + 100 + number})
    log = streamer.read(found, {"windows": {"lengths": ["1h"]}})
    (row,) = log.metrics("mrr", over="engaged", maturity="provisional")
    values = [1.0, 1.0, 1 / 3]
    reach = stats.t.ppf(0.975, 2) * stats.sem(values)
    assert row["value"] == pytest.approx(sum(values) / 3)
    assert row["low"] == pytest.approx(max(0.0, sum(values) / 3 - reach))
    assert row["high"] == 1.0


@pytest.mark.parametrize("name", ["support", "time", "low"])
def test_a_dimension_like_a_column_is_refused(name: str) -> None:
    settings = {"dimensions": [{"name": name}], "windows": {"lengths": ["1h"]}}
    event = {"type": "impression", "user_id": "u", "item_id": "a", "ts": START_MS, name: "x"}
    log = streamer.read([event], settings)
    assert log.metrics("window_impressions")["value"] == [1]
    with pytest.raises(streamer.UsageError, match="called like a column"):
        log.metrics("window_impressions", by=name)
    with pytest.raises(streamer.UsageError, match="called like a column"):
        log.history("window_impressions", by=name)


@pytest.mark.parametrize("at", [1.5, datetime.date(2026, 1, 1), float("nan")])
def test_a_time_of_another_type_is_refused(at: Any) -> None:
    with pytest.raises(streamer.UsageError, match="give a datetime with its zone"):
        streamer.read(EVENTS, SETTINGS).metrics("ctr", at=at)


@pytest.mark.parametrize("goal", [{"lift": float("nan")}, {"lift": float("inf")}, {"arms": 2.5}])
def test_a_goal_that_is_none_is_refused(goal: dict[str, Any]) -> None:
    with pytest.raises(streamer.UsageError, match=r"(lift|arms) .*: "):
        streamer.plan(EVENTS, "ctr", **{"lift": 0.1, **goal})
