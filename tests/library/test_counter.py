"""A counter: the engine's numbers, whatever it is given, and after its state was kept."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast

import pandas
import polars
import pytest
from scipy import stats

import streamer
from streamer.encoding.segments import ALL
from streamer.errors import CodecError, SourceError
from streamer.metrics.catalogue import PREFIX
from streamer.settings.load import parse
from streamer.sources import open_bandit
from streamer.sources.csv_rows import CsvFile
from streamer.sources.file_span import spanned
from streamer.sources.replay import Replay
from tests.oracle.random_log import random_log
from tests.support.agreement import DOCUMENTS
from tests.support.lanes import long, shortened, sized

NAME = "defaults"
START_MS = 1_760_000_000_000


def log_file(path: Path, seed: int = 5, lines: int = 900, name: str = NAME) -> list[bytes]:
    """A random log as a file; its lines."""
    found = [line for line in random_log(seed, parse(DOCUMENTS[name]), lines) if line.strip()]
    path.write_bytes(b"\n".join(found) + b"\n")
    return found


def shown(counter: streamer.Counter) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    """All readings of a counter."""
    readings = counter._readout(counter._counted()).readings
    return {(r.name, frozenset(r.labels.items()), r.value) for r in readings}


def test_a_file_is_read_as_by_replay(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    log_file(path)
    log = streamer.read(path, DOCUMENTS[NAME])
    from streamer.sources.files import FileSource

    files, settings = spanned([path], parse(DOCUMENTS[NAME]))
    replay = Replay(settings)
    for lines in FileSource(files, replay.settings):
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
    for reading in log._readout(log._counted()).readings:
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
    reach = float(stats.t.ppf(0.975, ndcg["support"] - 1)) * errors["value"][0]  # type: ignore[operator]
    assert ndcg["high"] == pytest.approx(min(1.0, ndcg["value"] + reach))  # type: ignore[operator]
    coverage = log.metrics("catalog_coverage_ratio", window="24h")
    assert set(coverage["support"]) <= {None}  # nothing counts the items of the catalogue


@pytest.mark.parametrize("seed", shortened(list(range(3))))
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


@pytest.mark.parametrize("seed", shortened(list(range(3))))
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


# What a newcomer does -----------------------------------------------------------------------------


def shop(rows: int = 4000, seed: int = 7) -> list[dict[str, Any]]:
    """Foreign events of three kinds in the order of time, of which purchases are rare."""
    dice, found = random.Random(seed), list[dict[str, Any]]()
    for i in range(rows):
        at = f"2026-03-01T{i // 400:02d}:{i % 400 // 7:02d}:{i % 7 * 8:02d}"
        about = {"event_time": at, "uid": dice.randrange(500), "sku": dice.randrange(40)}
        bucket = {"bucket": "ctrl" if about["uid"] % 2 else "test"}  # type: ignore[operator]
        found.append({"event_name": "view_item", **about, **bucket, "slot": 1 + i % 5})
        if i % 10 == 0:
            found.append({"event_name": "select_item", **about, **bucket})
        if i % 200 == 0:
            found.append({"event_name": "purchase", **about, **bucket, "price": 9.5})
    return found


SHOP = shop()


@long
def test_rows_of_a_frame_may_be_in_any_order() -> None:
    expected = streamer.read(SHOP)
    assert expected.metrics("ctr").number() == pytest.approx(0.1)
    kinds = ("view_item", "select_item", "purchase")
    by_kind = [row for kind in kinds for row in SHOP if row["event_name"] == kind]
    shuffled = random.Random(1).sample(SHOP, len(SHOP))
    for rows in (by_kind, SHOP[::-1], shuffled)[: sized(1, 3)]:
        for frame in (rows, polars.DataFrame(rows), pandas.DataFrame(rows)):
            log = streamer.read(frame)
            topics = log.what_was_read.topics
            assert (topics["late"], topics["rejected"]) == ([0], [0])
            assert log.metrics("ctr", by="variant")["value"] == pytest.approx(
                expected.metrics("ctr", by="variant")["value"]
            )


def test_late_rows_of_a_log_are_found() -> None:
    counter = streamer.Counter()
    event = {"type": "impression", "user_id": "u", "item_id": "a"}
    counter.add([{**event, "ts": START_MS - 60_000 * i} for i in range(500)])
    (finding,) = counter.what_was_read.findings
    assert finding.startswith("439 of 500 events of impressions are late")


@long
def test_floats_that_are_whole_are_positions() -> None:
    frame = pandas.DataFrame(SHOP)
    assert frame["slot"].dtype == float
    tables = [frame, frame.to_dict("records"), polars.DataFrame(SHOP)]
    rows = [streamer.read(table).metrics("ctr_position_ratio").to_dicts() for table in tables]
    assert len(rows[0]) == 5
    assert rows[0] == rows[1] == rows[2]


def test_whole_floats_of_csv_are_integers(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text("slot,sku,price\n1.0,7.0,9.50\n-2.00,,1e3\n")
    (lines,) = CsvFile(tmp_path / "shop.csv", {"slot", "price"})
    assert lines == [b'{"slot":1,"sku":"7.0","price":9.50}', b'{"slot":-2,"price":1e3}']


def test_a_mapping_that_reads_nothing_completes_the_guess() -> None:
    log = streamer.read(SHOP, {"windows": {"lengths": ["8d"]}})
    assert log.settings.windows.lengths == ("file", "8d")
    assert log.metrics("window_impressions").number() == 4000
    assert log.proposal is not None
    again = streamer.read(SHOP, log.proposal.toml)
    assert again.metrics().to_dicts() == log.metrics().to_dicts()


def test_arms_that_no_event_has_are_an_error() -> None:
    log = streamer.read(SHOP)
    with pytest.raises(streamer.UsageError, match=r"variant = 'treat': there are ctrl, test"):
        log.compare("variant", control="ctrl", treatment="treat", metrics="ctr")
    assert log.compare("variant", control="ctrl", treatment="test", metrics="ctr").users


def test_no_events_are_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("event_name,uid\n")
    sources: list[Any] = [[], pandas.DataFrame({"a": []}), iter([]), tmp_path / "empty.csv"]
    for source in sources:
        with pytest.raises(streamer.SourceError, match="there are no events"):
            streamer.read(source)
    counter = streamer.Counter()
    assert len(counter.metrics()) == len(counter.history("ctr")) == 0
    with pytest.raises(streamer.UsageError, match="no event was counted"):
        counter.explain("ctr", by="variant")


def test_a_window_that_is_shorter_than_the_log_is_found() -> None:
    log = streamer.read(SHOP, {"windows": {"lengths": ["5m"]}})
    assert log.what_was_read.findings == []
    assert log.proposal is not None
    counter = streamer.Counter(log.proposal.toml)
    counter.add(SHOP)
    said = counter.what_was_read.findings
    assert any("the longest window, 5m, covers the last" in x for x in said)
    assert "2026-03-01 00:00 to 2026-03-01 09:" in repr(log)
    assert streamer.read(SHOP).what_was_read.findings == []


def test_labels_that_choose_nothing_are_an_error() -> None:
    log = streamer.read(SHOP)
    with pytest.raises(streamer.UsageError, match="no row has variant = 'B': there are ctrl,"):
        log.metrics("ctr", variant="B")
    assert log.metrics("ctr", variant="test").number() > 0
    with pytest.raises(streamer.UsageError, match="2 rows, not one"):
        log.metrics("ctr", by="variant").number()


def test_points_within_which_the_log_begins_or_ends_are_partial() -> None:
    log = streamer.read(SHOP, {"windows": {"lengths": ["30h"]}})
    partial = log.history("window_impressions")["is_partial"]
    assert partial[0] is False or partial[0] is True
    assert partial[-1] is True
    assert not any(partial[1:-1])


def test_a_state_has_its_settings_and_counts_of_rejects() -> None:
    counter = streamer.Counter({"windows": {"lengths": ["5m"]}})
    event = {"type": "impression", "user_id": "u", "item_id": "a", "ts": START_MS}
    rows: list[dict[str, Any]] = [event, {**event, "ts": "never"}, {"odd": 1}]
    counter.add(rows)
    again = streamer.Counter.from_state(counter.state())
    assert again.settings == counter.settings
    assert again.rejected.reasons == counter.rejected.reasons == {"ts": 1, "type": 1}
    assert again.what_was_read.topics.to_dicts() == counter.what_was_read.topics.to_dicts()
