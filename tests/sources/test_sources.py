"""Files, the packaged real log, and the synthetic traffic."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from streamer.cli.demo_log import ReplayLeg, replay
from streamer.errors import SourceError, UsageError
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources import open_bandit
from streamer.sources.files import FileSource
from streamer.sources.line_batch import NO_TOPIC, Line
from streamer.sources.lines import BLOCK_BYTES, LineFile, split_lines
from streamer.sources.open_bandit import Event
from streamer.sources.synthetic import BROKEN, SyntheticTraffic, generate
from tests.support.lanes import long

TEXT = b"".join(
    b'{"type":"click","ts":%d,"user_id":"u","item_id":"x"}\n' % i for i in range(50_000)
)


def event(line_type: str, ts: Any) -> bytes:
    return json.dumps({"type": line_type, "ts": ts, "user_id": "u", "item_id": "x"}).encode()


def read(*paths: Path, settings: Settings | None = None, now_ms: int = 10**6) -> list[Line]:
    source = FileSource(list(paths), settings or Settings(), clock=lambda: now_ms)
    return [line for batch in source for line in batch]


# Lines ------------------------------------------------------------------------------------------


def test_plain_gz_zst_and_stdin_hold_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = TEXT[: len(TEXT) // 2], TEXT[len(TEXT) // 2 :]
    files = {
        "log.ndjson": TEXT,
        "log.ndjson.gz": gzip.compress(half[0]) + gzip.compress(half[1]),
        "log.ndjson.zst": b"".join(map(zstandard.compress, half)),
    }
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        file = LineFile(path)
        assert [x for lines in file for x in lines] == TEXT.splitlines()
        assert file.read_bytes == file.total_bytes == len(data)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT)))
    file = LineFile("-")
    assert file.total_bytes is None
    assert [x for lines in file for x in lines] == TEXT.splitlines()


@pytest.mark.parametrize("cut", [1, 2, 7, 10**6])
def test_lines_do_not_depend_on_blocks(cut: int) -> None:
    text = b"one\n\ntwo\r\nthree"
    blocks = (text[i : i + cut] for i in range(0, len(text), cut))
    lines = [line for part in split_lines(blocks) for line in part]
    assert lines == [b"one", b"", b"two\r", b"three"]


@pytest.mark.parametrize("block", [BLOCK_BYTES, 4_000_000])
def test_a_long_line_is_cut_and_its_neighbours_are_whole(block: int) -> None:
    text = b"before\n" + b"x" * 3_000_000 + b"\nafter\n" + b"y" * 2_000_000
    blocks = (text[i : i + block] for i in range(0, len(text), block))
    lines = [line for part in split_lines(blocks) for line in part]
    bound = limits.MAX_LINE_BYTES
    assert lines == [b"before", b"x" * bound, b"after", b"y" * bound]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.gz", gzip.compress(TEXT)[:-100]),
        ("no.gz", TEXT),
        ("cut.zst", zstandard.compress(TEXT)[:-100]),
        ("no.zst", TEXT),
    ],
)
def test_broken_files_are_errors_that_name_them(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=f"; at .*{name}$"):
        list(LineFile(tmp_path / name))


def test_a_missing_file_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        FileSource([tmp_path / "none"], Settings())
    with pytest.raises(SourceError, match="cannot read file"):
        FileSource([tmp_path], Settings())


# The file rule ------------------------------------------------------------------------------------


def test_record_timestamps(tmp_path: Path) -> None:
    lines = [
        (b"{", NO_TOPIC, 0),
        (event("click", 100), "clicks", 100),
        (event("click", 50), "clicks", 100),
        (event("impression", "1970-01-01T00:00:00.2005Z"), "impressions", 200),
        (event("conversion", 2000), "conversions", 200),  # beyond the wall clock
        (event("click", 1000), "clicks", 1000),
        (event("purchase", 1000), NO_TOPIC, 1000),
        (b'{"ts":1,"user_id":"u","item_id":"x"}', NO_TOPIC, 1000),
        (event("click", None), "clicks", 1000),
        (b'{"type":"click","ts":5,"note":"\xff"}', NO_TOPIC, 1000),
        (b'{"type":"click","ts":"soon","note":1e400}', "clicks", 1000),
        (b"[]", NO_TOPIC, 1000),
        (b"", NO_TOPIC, 1000),
        (b"z" * 2_000_000, NO_TOPIC, 1000),
    ]
    path = tmp_path / "log"
    path.write_bytes(b"".join(raw + b"\n" for raw, _, _ in lines))
    got = read(path, now_ms=1000)
    assert [(kind, ms) for kind, ms, _ in got] == [(kind, ms) for _, kind, ms in lines]
    assert [raw for _, _, raw in got[:-1]] == [raw for raw, _, _ in lines[:-1]]
    assert len(got[-1][2]) == limits.MAX_RECORD_BYTES + 1


def test_a_refused_line_moves_no_clock(tmp_path: Path) -> None:
    click = b'{"type":"click","ts":%d,"user_id":"u","item_id":"x"%s}'
    lines = [
        (click % (5, b""), 5),
        (click % (9, b',"position":0'), 5),
        (click % (9, b',"feedback":7'), 5),
        (click % (9, b',"start_ts":1'), 5),
        (click % (9, b',"type":"impression","items":[]'), 5),
        (b'{"type":7,"ts":9}', 5),
        (click % (1_700_000_000, b""), 5),  # seconds
        (click % (7, b',"note":[{"position":0}]'), 7),
        (event("click", "1970-01-01T00:00:00.008Z"), 8),
        (event("click", "2016-12-31T23:59:60Z"), 1_483_228_800_000),
    ]
    (tmp_path / "log").write_bytes(b"\n".join(raw for raw, _ in lines))
    got = read(tmp_path / "log", now_ms=1_600_000_000_000)
    assert [ms for _, ms, _ in got] == [ms for _, ms in lines]


def test_field_names_are_mapped(tmp_path: Path) -> None:
    settings = parse({"events": {"fields": {"ts": "time", "type": "what"}}})
    line = b'{"what":"session","time":9,"ts":5,"type":"click","user_id":"u"'
    (tmp_path / "log").write_bytes(line + b',"session_id":"s","action":"view"}')
    assert [line[:2] for line in read(tmp_path / "log", settings=settings)] == [("sessions", 9)]


def test_files_are_merged_by_record_timestamp(tmp_path: Path) -> None:
    logs = {"a": [10, 5, 30, 40], "b": [7, 10, 29, 35]}
    for name, moments in logs.items():
        (tmp_path / name).write_bytes(b"\n".join(event("click", t) for t in moments))
    got = read(tmp_path / "a", tmp_path / "b")
    assert [json.loads(raw)["ts"] for _, _, raw in got] == [7, 10, 5, 10, 29, 30, 35, 40]
    assert [ms for _, ms, _ in got] == [7, 10, 10, 10, 29, 30, 35, 40]


# Open Bandit ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return open_bandit.events()


def test_open_bandit_has_the_real_totals(log: list[Event]) -> None:
    policy = {e["request_id"]: e["variant"] for e in log if e["type"] == "impression"}
    shown = Counter(e["variant"] for e in log if e["type"] == "impression")
    clicks = Counter(policy[e["request_id"]] for e in log if e["type"] == "click")
    assert shown == {"random": 30_000, "bts": 30_000}
    assert clicks == {"random": 130, "bts": 157}


def test_open_bandit_joins_and_is_in_order(log: list[Event]) -> None:
    shown = {e["request_id"]: e for e in log if e["type"] == "impression"}
    clicks = {e["request_id"]: e for e in log if e["type"] == "click"}
    for click in clicks.values():
        assert 0 < click["ts"] - shown[click["request_id"]]["ts"] <= 30 * 60_000
        assert click["item_id"] == shown[click["request_id"]]["item_id"]
    conversions = [e for e in log if e["type"] == "conversion"]
    assert 10 < len(conversions) < 60
    for bought in conversions:
        assert clicks[bought["request_id"]]["ts"] < bought["ts"]
        assert bought["ts"] - shown[bought["request_id"]]["ts"] <= 24 * 3_600_000
    moments = [e["ts"] for e in log]
    assert moments == sorted(moments)
    assert 2000 <= len({e["user_id"] for e in log}) <= 4000


@long
def test_open_bandit_is_the_same_every_time(log: list[Event]) -> None:
    assert open_bandit.events() == log
    ids = {e["event_id"] for e in log if "event_id" in e}
    again = {e["event_id"] for e in open_bandit.events(lap=1) if "event_id" in e}
    assert len(ids) == len(again) == 60_000 + 287 + sum(e["type"] == "conversion" for e in log)
    assert ids.isdisjoint(again)


def test_open_bandit_moved_and_compressed(log: list[Event]) -> None:
    moved = list(replay([ReplayLeg(log, start_ms=5000, speed=1000)]))
    assert len(moved) == len(log)
    assert moved[0]["ts"] == 5000
    moments = [e["ts"] for e in moved]
    assert moments == sorted(moments)
    shown = [e["ts"] for e in moved if e["type"] == "impression"]
    real = [e["ts"] for e in log if e["type"] == "impression"]
    assert shown[-1] - 5000 == (real[-1] - log[0]["ts"]) // 1000
    lengths = [sorted(map(length_ms, visits_of(some).values())) for some in (log, moved)]
    assert lengths[0] == lengths[1]
    kind, line = next(open_bandit.lines(moved))
    assert kind == "impressions"
    assert json.loads(line) == moved[0]


def visits_of(log: list[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for e in log:
        if e["type"] == "session":
            found.setdefault(e["session_id"], []).append(e)
    return found


def length_ms(visit: list[Event]) -> int:
    return int(visit[-1]["ts"] - visit[0]["ts"])


def test_open_bandit_visits_have_pages_times_and_ends(log: list[Event]) -> None:
    visits = visits_of(log)
    assert 0.03 < len(visits) / 60_000 < 0.04
    pages = [sum(e["action"] == "view" for e in some) for some in visits.values()]
    assert min(pages) == 1
    assert 0.4 < pages.count(1) / len(pages) < 0.6
    assert 1.5 < sum(pages) / len(pages) < 3
    ended = sum(some[-1]["action"] == "end" for some in visits.values())
    assert ended / len(visits) == pytest.approx(open_bandit.END_SHARE, abs=0.05)
    assert all(some[0]["action"] == "start" for some in visits.values())
    clicks = {e["request_id"]: e for e in log if e["type"] == "click"}
    dwells = [e for e in log if e.get("action") == "dwell"]
    twice = [e for e in dwells if e["request_id"] in clicks]
    assert 100 < len(twice) < 250 < len(dwells)
    for e in dwells:
        assert {"variant", "surface", "item_id"} <= set(e)
        assert 100 < e["dwell_ms"] <= 20 * 60_000


# Synthetic --------------------------------------------------------------------------------------


def test_synthetic_is_determined_by_its_seed() -> None:
    traffic = SyntheticTraffic(seed=1, duplicate_share=0.1, broken_share=0.1, late_share=0.1)
    first = list(generate(traffic, 30_000))
    assert first == list(generate(traffic, 30_000))
    assert first != list(generate(SyntheticTraffic(seed=2), 30_000))
    assert len(first) == 30_000


@long
def test_realised_click_rates_are_near_the_true_ones() -> None:
    traffic = SyntheticTraffic(
        variants=(("A", 0.05), ("B", 0.10)), events_per_second=100, users=5000
    )
    events = [json.loads(line) for _, line in generate(traffic, 150_000)]
    variant = {e["request_id"]: e["variant"] for e in events if e["type"] == "impression"}
    shown = Counter(e["variant"] for e in events if e["type"] == "impression")
    clicks = Counter(variant[e["request_id"]] for e in events if e["type"] == "click")
    assert clicks["A"] / shown["A"] == pytest.approx(0.05, rel=0.05)
    assert clicks["B"] / shown["B"] == pytest.approx(0.10, rel=0.05)
    assert 0.3 < shown["A"] / (shown["A"] + shown["B"]) < 0.7
    seconds = (events[-1]["ts"] - events[0]["ts"]) / 1000
    assert len(events) / seconds == pytest.approx(100, rel=0.05)


def test_slates_have_different_items_and_a_position_bias() -> None:
    events = [
        json.loads(x) for k, x in generate(SyntheticTraffic(items=25), 50_000) if k == "impressions"
    ]
    slates: dict[str, list[str]] = {}
    for e in events:
        slates.setdefault(e["request_id"], []).append(e["item_id"])
    assert all(len(set(items)) == len(items) for items in slates.values())
    assert Counter(e["position"] for e in events)[10] > 0
    assert all(0 < e["score"] < 1 and 0 < e["propensity"] <= 1 for e in events)
    weights = SyntheticTraffic().position_weights()
    assert weights.mean() == pytest.approx(1)
    assert weights[0] > 2 * weights[9]


@long
def test_knobs_do_what_they_say() -> None:
    traffic = SyntheticTraffic(
        events_per_second=100,
        items_form_share=0.5,
        tested_every=10,
        requestless_click_share=0.4,
        out_of_order_share=0.2,
        late_share=0.03,
        duplicate_share=0.05,
        broken_share=0.02,
    )
    lines = list(generate(traffic, 60_000))
    broken = [line for _, line in lines if line in BROKEN]
    assert len(broken) / 60_000 == pytest.approx(0.02, rel=0.15)
    events = [json.loads(line) for _, line in lines if line not in BROKEN]
    kinds = {f"{e['type']}s" == kind for (kind, x), e in zip(
        [line for line in lines if line[1] not in BROKEN], events, strict=True)}  # fmt: skip
    assert kinds == {True}
    copies = len(events) - len({e["event_id"] for e in events})
    assert copies / len(events) == pytest.approx(0.05, rel=0.15)
    clicks = [e for e in events if e["type"] == "click"]
    assert sum("request_id" not in e for e in clicks) / len(clicks) == pytest.approx(0.4, rel=0.1)
    requests = {e["request_id"]: "items" in e for e in events if e["type"] == "impression"}
    assert sum(requests.values()) / len(requests) == pytest.approx(0.5, rel=0.1)
    tested = {e["request_id"]: e for e in events if "reference" in e}
    assert len(tested) / sum(requests.values()) == pytest.approx(0.1, rel=0.2)
    for e in tested.values():
        items = [x["item_id"] for x in e["items"]]
        assert set(e["reference"]) == set(items)
        assert e["held_out"] in items
    late = disordered = newest_ms = 0
    for e in events:
        late += newest_ms - e["ts"] > 3_600_000
        disordered += 1000 < newest_ms - e["ts"] <= 3_600_000
        newest_ms = max(newest_ms, e["ts"])
    assert late / len(events) == pytest.approx(0.03, rel=0.15)
    assert disordered / len(events) == pytest.approx(0.2, rel=0.25)


def sessions_of(events: list[Event]) -> dict[str, list[Event]]:
    """Events by session id, of those sessions of which nothing is still to come."""
    until_ms = events[-1]["ts"] - 3 * 3_600_000
    return {name: some for name, some in visits_of(events).items() if some[0]["ts"] < until_ms}


@long
def test_sessions_bounce_pause_and_end_as_often_as_they_should() -> None:
    traffic = SyntheticTraffic(
        events_per_second=5, session_share=1.0, slate=3, items=50, pause_share=0.1
    )
    events = [json.loads(line) for _, line in generate(traffic, 150_000)]
    assert len(events) / (events[-1]["ts"] - events[0]["ts"]) == pytest.approx(0.005, rel=0.05)
    sessions = sessions_of(events)
    assert len(sessions) > 5000
    views = [sum(e["action"] == "view" for e in some) for some in sessions.values()]
    assert views.count(1) / len(views) == pytest.approx(traffic.bounce_share, rel=0.1)
    assert min(views) == 1
    longer = [n for n in views if n > 1]
    assert sum(longer) / len(longer) == pytest.approx(traffic.session_views, rel=0.05)
    unended = [some for some in sessions.values() if some[-1]["action"] != "end"]
    assert len(unended) / len(sessions) == pytest.approx(traffic.unended_share, rel=0.1)
    pauses = 0
    for some in sessions.values():
        assert [e["action"] for e in some].count("start") == 1
        assert some[0]["action"] == "start"
        assert {"variant", "surface"} <= set(some[0])
        gaps_ms = [b["ts"] - a["ts"] for a, b in pairwise(some)]
        assert not [gap for gap in gaps_ms if 1_200_000 < gap < 1_800_000]
        pauses += sum(gap > 1_800_000 for gap in gaps_ms)
    share = pauses / (sum(views) - len(views))  # after the last view nobody comes back
    assert share == pytest.approx(0.1, rel=0.1)


def test_sessions_report_items_of_their_slate_and_clicks_may_report_the_same() -> None:
    traffic = SyntheticTraffic(events_per_second=50, session_share=1.0, slate=3, items=50)
    events = [json.loads(line) for _, line in generate(traffic, 60_000)]
    shown = {(e["request_id"], e["item_id"]) for e in events if e["type"] == "impression"}
    clicks = {(e["request_id"], e["item_id"]) for e in events if e["type"] == "click"}
    dwells = [e for e in events if e.get("action") == "dwell"]
    views = sum(e.get("action") == "view" for e in events)
    assert len(dwells) / views == pytest.approx(traffic.dwell_share, rel=0.05)
    both = [e for e in dwells if (e["request_id"], e["item_id"]) in clicks]
    assert 0.05 < len(both) / len(dwells) < 0.3
    as_times = [e for e in dwells if "start_ts" in e]
    assert len(as_times) / len(dwells) == pytest.approx(0.5, rel=0.1)
    for e in dwells:
        assert (e["request_id"], e["item_id"]) in shown
        assert e["request_id"][1:] == e["session_id"][1:]
        assert {"variant", "surface"} <= set(e)
        dwell_ms = e["dwell_ms"] if "dwell_ms" in e else e["end_ts"] - e["start_ts"]
        assert 100 < dwell_ms <= 600_000


def test_impossible_traffic_is_refused() -> None:
    with pytest.raises(UsageError, match=r"session_views = 1\.5"):
        SyntheticTraffic(session_views=1.5)
    with pytest.raises(UsageError, match="late_share = 2"):
        SyntheticTraffic(late_share=2)
    with pytest.raises(UsageError, match="slate = 10"):
        SyntheticTraffic(items=15)
    with pytest.raises(UsageError, match="too high"):
        SyntheticTraffic(variants=(("A", 0.6),))


def test_lines_of_a_pipe_are_stamped_by_the_clock_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [event("impression", 1000 * n) for n in (1, 9, 60)]
    pipe = OneByOne(b"\n".join(shown))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=pipe))
    clock = iter([1000, 2000, 9000, 10_000, 10_000, 10_000])
    source = FileSource(["-"], Settings(), clock=lambda: next(clock))
    assert [ms for batch in source for _, ms, _ in batch] == [1000, 9000, 9000]


class OneByOne(io.BytesIO):
    """A pipe into which somebody writes line by line."""

    def read1(self, size: int | None = -1) -> bytes:
        return self.readline()


def test_a_byte_order_mark_costs_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"type":"click","ts":1000,"user_id":"u","item_id":"i"}\n')
    ((line,),) = list(FileSource([path], Settings()))
    assert line[0] == "clicks"
