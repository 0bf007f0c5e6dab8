"""A counter: the engine's numbers, whatever it is given, and after its state was kept."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast

import pytest

import streamer
from streamer.encoding.segments import ALL
from streamer.errors import CodecError, SourceError
from streamer.metrics.catalogue import PREFIX
from streamer.settings.load import parse
from streamer.sources import open_bandit
from streamer.sources.replay import Replay
from tests.oracle.random_log import random_log
from tests.support.agreement import DOCUMENTS

NAME = "defaults"
START_MS = 1_760_000_000_000


def log_file(path: Path, seed: int = 5, lines: int = 900, name: str = NAME) -> list[bytes]:
    """A random log as a file; its lines."""
    found = [line for line in random_log(seed, parse(DOCUMENTS[name]), lines) if line.strip()]
    path.write_bytes(b"\n".join(found) + b"\n")
    return found


def shown(counter: streamer.Counter) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    """All readings of a counter."""
    readings = counter._readout().readings
    return {(r.name, frozenset(r.labels.items()), r.value) for r in readings}


def test_a_file_is_read_as_by_replay(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    log_file(path)
    log = streamer.read(path, DOCUMENTS[NAME])
    from streamer.sources.files import FileSource

    replay = Replay(parse(DOCUMENTS[NAME]))
    for lines in FileSource([path], replay.settings):
        replay.feed(lines)
    replay.finish()
    expected = {(r.name, frozenset(r.labels.items()), r.value) for r in replay.readout().readings}
    assert len(expected) > 300
    assert shown(log) == expected


def test_every_reading_of_the_total_has_a_row(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    log_file(path)
    log = streamer.read(path, DOCUMENTS[NAME])
    window = log.settings.windows.lengths[-1]
    by_name: dict[str, list[float]] = {}
    for reading in log._readout().readings:
        name, labels = reading.name.removeprefix(PREFIX), reading.labels
        is_total = all(labels.get(d) == ALL for d in log.settings.dimension_names)
        if labels.get("window") == window and is_total:
            by_name.setdefault(name, []).append(reading.value)
    rows: dict[str, list[Any]] = {}
    for row in log.metrics(window=window):
        rows.setdefault(str(row["metric"]), []).append(row["value"])
    assert len(rows) > 30
    ends = [n for n in by_name if n not in rows]
    assert all(n.endswith("_stderr") or "_lower" in n or "_upper" in n for n in ends)
    assert all(sorted(rows[name]) == sorted(by_name[name]) for name in rows)


def test_rows_have_their_interval_and_support(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    log_file(path)
    log = streamer.read(path, DOCUMENTS[NAME])
    clicks = {row["variant"]: row["value"] for row in log.metrics("window_clicks", by="variant")}
    rows = list(log.metrics("ctr", by="variant"))
    assert len(rows) > 1
    for row in rows:
        value, support = row["value"], row["support"]
        assert isinstance(value, float)
        assert isinstance(support, int)
        assert value * support == pytest.approx(clicks[row["variant"]])
        low, high = row["low"], row["high"]
        if low is not None and high is not None:
            assert isinstance(low, float)
            assert isinstance(high, float)
            assert low <= value <= high
    (ndcg, *_) = log.metrics("ndcg@10", over="all", maturity="provisional")
    errors = log.metrics("ndcg_ratio_stderr", k=10, over="all", maturity="provisional")
    assert ndcg["high"] == pytest.approx(ndcg["value"] + 1.959964 * errors["value"][0])  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(3))
def test_events_one_by_one_are_those_of_a_file(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    lines = log_file(path, seed)
    whole, pieces = streamer.Counter(DOCUMENTS[NAME]), streamer.Counter(DOCUMENTS[NAME])
    whole.add(path)
    dice, at = random.Random(seed), 0
    while at < len(lines):
        size = dice.choice([1, 1, 5, 40])
        piece = tmp_path / "piece.ndjson"
        piece.write_bytes(b"\n".join(lines[at : at + size]) + b"\n")
        pieces.add(piece)
        at += size
    assert shown(pieces) == shown(whole)
    assert len(pieces.rejected) == len(whole.rejected) > 0


def test_a_row_that_is_no_event_loses_no_other() -> None:
    event = {"type": "impression", "user_id": "u", "item_id": "a", "ts": START_MS}
    loop: dict[str, Any] = {**event}
    loop["self"] = loop
    rows: list[Any] = [event, 5, None, loop, {**event, "odd": object()}, {**event, "item_id": "b"}]
    counter = streamer.Counter()
    counter.add(rows)
    assert counter.metrics("window_impressions")["value"] == [2]
    assert dict(counter.rejected.reasons) == {"object": 4}
    assert any(b"object object" in rejected.value for rejected in counter.rejected)


def test_a_guess_reads_the_real_log() -> None:
    log = streamer.read(Path(open_bandit.__file__).parent / "data" / "open_bandit.csv.gz")
    assert log.proposal is not None
    assert "Proposed" in log.proposal.toml
    topics = {row["topic"]: row["accepted"] for row in log.what_was_read.topics}
    assert sum(n for n in topics.values() if isinstance(n, int)) > 1000
    assert "guess" in repr(log)
    assert log.metrics("ctr")["value"][0] > 0  # type: ignore[operator]


def test_a_bad_event_is_rejected_and_loses_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    event = {"type": "impression", "user_id": "u", "item_id": "a"}
    good = [json.dumps({**event, "ts": START_MS + i}) for i in range(5)]
    bad = json.dumps({**event, "ts": "yesterday"})
    path.write_text("\n".join([*good[:2], bad, *good[2:]]))
    log = streamer.read(path, {})
    (rejected,) = log.rejected
    assert len(log.rejected) == 1
    assert (rejected.topic, rejected.reason, rejected.field) == ("impressions", "ts", "ts")
    assert rejected.value == bad.encode()
    assert dict(log.rejected.reasons) == {"ts": 1}
    assert log.metrics("window_impressions")["value"] == [5]


@pytest.mark.parametrize("seed", range(3))
def test_a_state_goes_on_where_it_was_taken(seed: int, tmp_path: Path) -> None:
    whole = tmp_path / "whole.ndjson"
    lines = log_file(whole, seed)
    cut = random.Random(seed).randrange(100, len(lines) - 100)
    first, rest = tmp_path / "first.ndjson", tmp_path / "rest.ndjson"
    first.write_bytes(b"\n".join(lines[:cut]) + b"\n")
    rest.write_bytes(b"\n".join(lines[cut:]) + b"\n")
    settings = DOCUMENTS[NAME]
    counter = streamer.Counter(settings)
    counter.add(first)
    state = counter.state()
    again = streamer.Counter.from_state(state, settings)
    assert shown(again) == shown(counter)
    counter.add(rest)
    again.add(rest)
    assert shown(again) == shown(counter)
    # A second state of the same counter holds all, not only what came since the first.
    assert shown(streamer.Counter.from_state(counter.state(), settings)) == shown(counter)


def test_a_state_that_is_none_is_an_error() -> None:
    counter = streamer.Counter()
    counter.add({"type": "impression", "user_id": "u", "item_id": "a", "ts": START_MS})
    state = bytearray(counter.state())
    state[-5] ^= 1
    for data in (b"", b"something else", bytes(state)):
        with pytest.raises(CodecError, match="no state of a counter"):
            streamer.Counter.from_state(data)


def test_reading_in_between_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    lines = log_file(path, 8)
    looked, once = streamer.Counter(DOCUMENTS[NAME]), streamer.Counter(DOCUMENTS[NAME])
    parts = [lines[i : i + 300] for i in range(0, len(lines), 300)]
    for number, part in enumerate(parts):
        piece = tmp_path / f"{number}.ndjson"
        piece.write_bytes(b"\n".join(part) + b"\n")
        looked.add(piece)
        once.add(piece)
        assert len(looked.metrics())
    assert shown(looked) == shown(once)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: log.metrics("crt"), "no metric 'crt': did you mean 'c"),
        (lambda log: log.metrics(by="variants"), "no dimension 'variants': did you mean 'variant'"),
        (lambda log: log.metrics(window="2h"), "no window '2h'"),
        (
            lambda log: log.metrics(by=["variant", "surface"]),
            r'add \["variant", "surface"\] to rol',
        ),
        (lambda log: log.metrics("ctr", varian="A"), "no label 'varian': did you mean 'variant'"),
        (lambda log: log.metrics("ctr", at="today"), "at = 'today': not a time"),
        (lambda log: log.metrics("ctr", at="2026-01-01T00:00"), "has no time zone"),
        (lambda log: log.metrics(at=5), "name one metric"),
        (lambda log: log.history("impressions_total"), "no history"),
        (lambda log: log.history("ctr", points=0), "points = 0: from 1 to"),
        (lambda log: log.explain("ndcg", by="variant"), "no ratio of two sums"),
        (lambda log: log.experiment("ranker"), "no experiment 'ranker'"),
        (lambda log: log.compare("nothing", control="A", treatment="B"), "no dimension 'nothing'"),
        (lambda log: streamer.read(cast("Any", 5)), "events are int: give a path"),
        (lambda log: streamer.plan([], "ctr_ratio", lift=0), "lift 0: above 0"),
        (lambda log: streamer.plan(log, "ctr_ratio", lift=0.1), "name the one to learn from"),
    ],
)
def test_what_there_is_not_is_an_error(call: Any, message: str) -> None:
    log = streamer.Counter({"windows": {"lengths": ["1h", "24h"]}})
    log.add({"type": "impression", "user_id": "u", "item_id": "a", "ts": START_MS})
    with pytest.raises(streamer.UsageError, match=message):
        call(log)


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(SourceError, match=r"No such file or directory; at nowhere\.csv"):
        streamer.read("nowhere.csv")
