"""Means over people: filed little by little as all at once, and by the definitions in words."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from streamer.batch import hash_texts
from streamer.config import Dimension, Settings, parse
from streamer.engine import user_sums, users
from streamer.engine.cells import Ring
from streamer.engine.facts import FeedbackFacts, ShownFacts
from streamer.engine.segments import Segments
from streamer.engine.user_sums import HITS, RATE_UNIT, USERS, parts_of, positive_users, rate_sum
from streamer.engine.users import Users
from streamer.testing import Engines, LogRecord, chunks_of
from tests.agreement import (
    SETTINGS,
    differences,
    random_records,
    read_engines,
    run_engines,
    states,
    to_log,
)
from tests.oracle.oracle import Record, run
from tests.oracle.shape import Readings

RINGS = (Ring("1m", 1000, 60), Ring("1h", 60_000, 60))
T0 = 1_700_000_000_000
VALUES = ("A", "B", "C")


class Crowd:
    """A table of users fed with single events, and all that was fed."""

    def __init__(self, limit: int = 10**6) -> None:
        self.segments = Segments([Dimension(name="variant", values=VALUES)], 100)
        for value in VALUES:
            code, _ = self.segments.values[0].code(value)
            self.segments._number((code,))
        self.users = Users(RINGS, 1000, [(), (0,)], 1, None, limit, self.segments)
        self.stream_ms = T0
        self.shown: dict[tuple[int, int, int], int] = defaultdict(int)
        self.given: dict[tuple[int, int, int], int] = defaultdict(int)
        self.loose: list[tuple[int, int, int, int]] = []

    def show(self, user: int, item: int, segment: int, event_ms: int) -> None:
        key = (user, item, segment)
        self.shown[key] = max(self.shown[key], event_ms)
        self.stream_ms = max(self.stream_ms, event_ms)
        ids = np.array([user], np.uint64), np.array([item], np.uint64)
        event, place, one = (np.array([x]) for x in (event_ms, segment, 1))
        self.users.show(ShownFacts(event, place, one, *ids))

    def give(self, user: int, item: int, segment: int, event_ms: int) -> None:
        self.users.settle(facts([(user, item, segment, event_ms)]))
        key = (user, item, segment)
        self.given[key] = max(self.given[key], event_ms)

    def move(self, loose: list[tuple[int, int, int, int]]) -> None:
        """Feedback that is not settled: it may be taken away, or stand elsewhere, later."""
        self.users.move(facts([*self.loose, *loose]))
        self.loose = loose

    def file(self) -> None:
        self.users.file(self.stream_ms, facts(self.loose))

    def read(self) -> dict[tuple[str, int, int], int]:
        """(ring, group, statistic) → the sum over the window."""
        found: dict[tuple[str, int, int], int] = defaultdict(int)
        for ring, (key, value) in zip(RINGS, self.users.sums, strict=True):
            pane, group, stat = parts_of(key)
            held = pane >= ring.oldest(self.stream_ms)
            for g, s, v in zip(*(c[held].tolist() for c in (group, stat, value)), strict=True):
                found[ring.label, g, s] += v
        return {k: v for k, v in found.items() if v}

    def expected(self) -> dict[tuple[str, int, int], int]:
        """The same, in words: for each user and group the items seen, and those given feedback."""
        given = dict(self.given)
        for user, item, segment, event_ms in self.loose:
            key = (user, item, segment)
            given[key] = max(given.get(key, 0), event_ms)
        groups = self.users.groups.of(self.segments)
        found: dict[tuple[str, int, int], int] = defaultdict(int)
        for ring in RINGS:
            since_ms = ring.oldest(self.stream_ms) * ring.pane_ms
            seen: dict[tuple[int, int], set[int]] = defaultdict(set)
            liked: dict[tuple[int, int], set[int]] = defaultdict(set)
            for of_segment in groups:
                for table, into in ((self.shown, seen), (given, liked)):
                    for (user, item, segment), event_ms in table.items():
                        if event_ms >= since_ms:
                            into[user, int(of_segment[segment])].add(item)
            for (user, group), items in seen.items():
                both = items & liked[user, group]
                found[ring.label, group, USERS] += 1
                found[ring.label, group, HITS] += bool(liked[user, group])
                found[ring.label, group, positive_users(0)] += bool(both)
                rate = (2 * RATE_UNIT * len(both) + len(items)) // (2 * len(items))
                found[ring.label, group, rate_sum(0)] += rate
        return {k: v for k, v in found.items() if v}


def facts(rows: list[tuple[int, int, int, int]]) -> FeedbackFacts:
    """Clicks: (user, item, segment, event_ms)."""
    table = np.array([row[1:] for row in rows], np.int64).reshape(-1, 3)
    zero = np.zeros(len(table), np.int64)
    user, item = np.array([row[0] for row in rows], np.uint64), table[:, 0].astype(np.uint64)
    return FeedbackFacts(
        *(table[:, 2], table[:, 1], zero, zero, zero, user, user, item, zero, zero - 1, zero == 0),
        sign=1,
    )


@pytest.mark.parametrize("seed", range(6))
def test_filed_at_any_time_it_is_what_the_definition_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_sums, "_CHUNK_ROWS", 40)
    monkeypatch.setattr(users, "_COMPACT_ROWS", 30)
    random = np.random.default_rng(seed)
    crowd = Crowd()
    people = hash_texts([[f"u{i}" for i in range(30)]])[0].tolist()
    for step in range(600):
        user = people[random.integers(len(people)) ** 2 % len(people)]
        item, segment = int(random.integers(1, 12)), int(random.integers(3))
        event_ms = T0 + step * int(random.choice([200, 8000])) - int(random.integers(40_000))
        dice = random.random()
        if dice < 0.6:
            crowd.show(user, item, segment, event_ms)
        elif dice < 0.75:
            crowd.give(user, item, segment, event_ms)
        elif dice < 0.9:
            kept = [row for row in crowd.loose if random.random() < 0.7]
            moved = [(u, i, int(random.integers(3)), ms) for u, i, _, ms in kept]
            crowd.move([*moved, (user, item, segment, event_ms)])
        else:
            crowd.users.absorb(crowd.stream_ms)
            if crowd.users.shrink(crowd.stream_ms):
                crowd.file()
        if random.random() < 0.1:
            crowd.file()
            assert crowd.read() == crowd.expected(), step
    crowd.file()
    assert not crowd.users.is_unfiled
    assert crowd.read() == crowd.expected()


def test_a_leap_of_forty_years_leaves_nothing_behind() -> None:
    crowd = Crowd()
    crowd.show(7, 1, 0, T0)
    crowd.give(7, 1, 0, T0)
    crowd.move([(8, 1, 0, T0)])
    crowd.file()
    crowd.show(7, 2, 0, T0 + 40 * 365 * 86_400_000)
    crowd.file()
    assert crowd.read() == crowd.expected()
    assert crowd.read()["1h", 0, USERS] == 1
    crowd.users.absorb(crowd.stream_ms)
    crowd.show(9, 2, 0, crowd.stream_ms + 1)
    crowd.file()
    assert crowd.read()["1h", 0, USERS] == 2


def test_without_the_family_nothing_is_kept() -> None:
    settings = parse({"metrics": {"families": ["traffic"]}})
    records, _ = random_records(1, "defaults", 400, 1)
    engines = run_engines(settings, 1, to_log(records), 100)
    assert engines.partitions[0].core.sizes()["users_rows"] == 0
    assert not engines.partitions[0].is_dirty


# The same with small tables, through the whole engine ------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_small_tables_and_filing_at_any_time_change_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_sums, "_CHUNK_ROWS", 50)
    monkeypatch.setattr(users, "_COMPACT_ROWS", 20)
    monkeypatch.setattr(users, "_ABSORB_ROWS", 30)
    monkeypatch.setattr("streamer.engine.intervals._COMPACT_ROWS", 8)
    records, expected = random_records(33, name, 1500, 1)
    log = to_log(records)
    engines = Engines(SETTINGS[name], 1)
    for i, chunk in enumerate(chunks_of(log, 40, seed=3)):
        engines.feed(chunk)
        if i % 7 == 0:
            engines.partitions[0].refresh_user_sums()
        if i % 11 == 0:
            engines.partitions[0].core.seal()
    engines.finish()
    assert differences(read_engines(engines), expected) == []
    assert states(engines) == states(run_engines(SETTINGS[name], 1, log, 10**6))


# Beyond the bound ------------------------------------------------------------------------------


def _crowd_log(salt: int, people: int) -> list[LogRecord]:
    """Each user sees 1 to 6 items, and clicks some: rates differ between users."""
    random = np.random.default_rng(salt)
    records: list[LogRecord] = []
    offsets = {"impressions": 0, "clicks": 0}

    def add(kind: str, user: int, item: int, more: str = "") -> None:
        value = f'{{"ts":{T0},"user_id":"{salt}-{user}","item_id":"i{item}"{more}}}'
        records.append(LogRecord(kind, 0, offsets[kind], T0, value.encode()))
        offsets[kind] += 1

    for user in range(people):
        chance = random.beta(1, 4)
        for item in range(1 + int(random.integers(6))):
            add("impressions", user, item, ',"variant":"A"')
            if random.random() < chance:
                add("clicks", user, item, ',"variant":"A"')
    return records


def _read(records: list[LogRecord], limit: int) -> tuple[Engines, dict[str, float]]:
    settings = parse({"limits": {"user_items": limit}, "windows": {"lengths": ["1h"]}})
    engines = run_engines(settings, 1, records, 2000)
    shown = {}
    for (name, labels), value in read_engines(engines).items():
        told = dict(labels)
        if told.get("variant", "all") == "all" and told.get("surface", "all") == "all":
            key = name.removeprefix("streamer_")
            shown[f"{key} {told['definition']}" if "definition" in told else key] = float(value)
    return engines, shown


def test_a_sample_stays_within_its_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors are what docs say: most within one standard error, none beyond four."""
    monkeypatch.setattr(users, "_COMPACT_ROWS", 100)
    people, within = 4000, []
    for salt in range(12):
        records = _crowd_log(salt, people)
        _, truth = _read(records, 10**6)
        engines, estimate = _read(records, 4000)
        share = estimate["user_sample_ratio"]
        assert engines.partitions[0].core.sizes()["users_rows"] <= 4000 + 100
        assert truth["user_sample_ratio"] == 1
        assert truth["identity_exact"] == 1
        assert 0 < share < 1
        assert estimate["identity_exact"] == 0
        n = estimate["window_users"] * share
        missing = (1 - share) / n
        errors = {
            "window_users": truth["window_users"] * math.sqrt(missing),
            "clicks_per_user": truth["clicks_per_user"] * math.sqrt(missing),
            # The standard deviation of a share over users is at most that of 0 and 1.
            **{
                name: math.sqrt(missing * truth[name] * (1 - truth[name]))
                for name in ("hit_rate_ratio", "positive_rate_ratio docs")
            },
        }
        for name, error in errors.items():
            off = abs(estimate[name] - truth[name])
            assert off <= 4 * error, (salt, name, off, error)
            within.append(off <= error)
        # What is not of users is exact.
        for name in ("window_impressions", "ctr_ratio", "window_sessions"):
            assert estimate.get(name) == truth.get(name)
    assert np.mean(within) > 0.6


# At the edges -----------------------------------------------------------------------------------


def _line(
    event_ms: int, arrival_ms: int, user: int, kind: str = "impressions", more: str = ""
) -> Any:
    value = f'{{"ts":{event_ms},"user_id":"u{user}","item_id":"i"{more}}}'
    return (kind, arrival_ms, value.encode())


def _compared(settings: Settings, lines: list[Any]) -> Readings:
    """What the engine reads, which is what the oracle does."""
    offsets: dict[str, int] = defaultdict(int)
    records = []
    for kind, arrival_ms, value in lines:
        records.append(Record(kind, 0, offsets[kind], arrival_ms, value))
        offsets[kind] += 1
    readings = read_engines(run_engines(settings, 1, to_log(records), 1000))
    assert differences(readings, run(records, settings).readings) == []
    return readings


def test_users_beyond_the_window_do_not_disturb_the_others() -> None:
    # Dated ahead of stream time, so that only metrics of users see it: they have no upper edge.
    early = [_line(T0, T0, 1, more=f',"variant":"A","surface":"{s}"') for s in ("home", "search")]
    ahead = _line(T0 + 240_000, T0, 2, more=',"variant":"B","surface":"home"')
    shown = _compared(parse({"windows": {"lengths": ["1m", "1h"]}}), [*early, ahead])
    key = ("window", "1m"), ("variant", "A"), ("surface", "all")
    assert shown["streamer_window_impressions", frozenset(key)] == 2


@pytest.mark.parametrize("lengths", [["24h"], ["31d"], ["1m", "90s"]])
def test_the_first_moments_of_1970_count(lengths: list[str]) -> None:
    lines = [_line(1000 * i, 1000 * i, i) for i in range(4)]
    shown = _compared(parse({"windows": {"lengths": lengths}, "dimensions": []}), lines)
    assert shown["streamer_window_users", frozenset({("window", lengths[0])})] == 4


@pytest.mark.parametrize("start_ms", [T0, 2_200_000_000_000, 4_000_000_000_000])
def test_times_beyond_31_bits(start_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "_COMPACT_ROWS", 10)
    lines = [_line(start_ms + 9000 * i, start_ms + 9000 * i, i) for i in range(60)]
    _compared(parse({"windows": {"lengths": ["1m", "90s"]}, "dimensions": []}), lines)


def test_clicks_without_any_impression_are_compacted() -> None:
    lines = [_line(T0 + i, T0 + i, i, "clicks") for i in range(5000)]
    _compared(parse({"windows": {"lengths": ["1m"]}}), lines)
