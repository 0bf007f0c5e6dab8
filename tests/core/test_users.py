"""Users in the core have the sums of the definition, whatever is refreshed when."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from streamer._core import UsersForTests
from streamer.encoding.packed import parts_of_user_key
from streamer.encoding.segments import OTHER
from streamer.metrics.rings import Ring
from streamer.settings.limits import MAX_USER_ROWS
from tests.core.slow_users import Given, Key, SlowUsers
from tests.support.lanes import shortened

RINGS = (Ring("1m", 1000, 60), Ring("1h", 60_000, 60), Ring("3h", 600_000, 18))
ROLLUPS: list[tuple[int, ...]] = [(), (0,), (1,), (0, 1)]
KINDS = 2
UNIT_MS = 1000
T0 = 1_700_000_000_000
ALL_EPOCHS = (0, 1 << 30)
PEOPLE = [Random(f"u{i}").getrandbits(64) for i in range(400)]
A, B, C = 2, 3, 4
"""Codes of values."""


def core_users(limit: int, rows_a_user: int = MAX_USER_ROWS) -> UsersForTests:
    rings = [(ring.pane_ms, ring.panes) for ring in RINGS]
    return UsersForTests(rings, UNIT_MS, [list(r) for r in ROLLUPS], KINDS, (limit, rows_a_user))


@dataclass
class Both:
    """The users of the core, and what they did."""

    limit: int = 10**6
    stream_ms: int = T0
    held: dict[int, Given] = field(default_factory=dict)

    def __post_init__(self) -> None:
        codes = [(a, b) for a in (OTHER, A, B, C) for b in (OTHER, A, B)]
        self.slow = SlowUsers(RINGS, ROLLUPS, KINDS, list(codes))
        self.core = core_users(self.limit)
        self.moves = self.alive = list(range(len(codes)))
        self._say_codes()

    def _say_codes(self) -> None:
        self.core.set_codes(self.slow.codes, self.moves)

    def show(self, user: int, item: int, segment: int, event_ms: int) -> None:
        self.stream_ms = max(self.stream_ms, event_ms)
        self.touch((user, item, segment, event_ms, 0))

    def touch(self, row: Given) -> None:
        """What is settled: it stays as it is."""
        user, item, segment, event_ms, column = row
        self.slow.touched.append(row)
        self.core.touch(user, item, (segment, event_ms), column, self.stream_ms)

    def hold(self, serial: int, row: Given) -> None:
        """New feedback, or moved."""
        self.held[serial] = row
        user, item, segment, event_ms, column = row
        self.core.hold(serial, user, item, (segment, event_ms), column)

    def release(self, serial: int, is_settled: bool) -> None:
        row = self.held.pop(serial)
        self.core.release(serial)
        if is_settled:
            self.touch(row)

    def fold(self, dimension: int, code: int) -> None:
        """Put a value under ``other``."""
        codes = self.slow.codes
        self.core.before_fold([its[dimension] == code for its in codes])
        for i, its in enumerate(codes):
            if its[dimension] == code:
                codes[i] = (*its[:dimension], OTHER, *its[dimension + 1 :])
        self.moves = [codes.index(its) for its in codes]
        self._say_codes()
        self.alive = sorted(set(self.moves))

    def refresh(self) -> None:
        self.core.refresh(self.stream_ms)

    def check(self) -> None:
        _, held, bits, dropped, is_dirty = self.core.state()
        assert (dropped, is_dirty) == (0, False)
        assert self.sums() == self.slow.sums(self.held.values(), self.stream_ms, bits)
        if not bits:
            assert held == len(self.held)

    def sums(self) -> dict[Key, int]:
        """What the core has for panes that a window covers."""
        found, groups = {}, self.core.groups()
        for number, ring in enumerate(RINGS):
            key, value = (np.array(column, np.int64) for column in self.core.sums(number))
            assert (np.diff(key) > 0).all()
            assert (value != 0).all()
            for pane, group, stat, amount in zip(
                *(part.tolist() for part in parts_of_user_key(key)), value.tolist(), strict=True
            ):
                if pane >= ring.oldest(self.stream_ms):
                    found[number, pane, tuple(groups[group]), stat] = amount
        return found

    def check_rows(self) -> None:
        columns = {name: c.tolist() for name, c in self.core.changed(*ALL_EPOCHS).items()}
        user, pair, segment, *times = columns.values()
        assert len(set(zip(user, pair, segment, strict=True))) == len(user)
        rows = zip(user, segment, map(list, zip(*times, strict=True)), strict=True)
        assert sorted(rows) == self.slow.rows(UNIT_MS)


def step(both: Both, random: np.random.Generator, people: int, pace: int) -> None:
    """One event of some kind, now and then late or ahead."""
    user = PEOPLE[int(random.integers(people)) ** 2 % people]
    item, segment = int(random.integers(1, 15)), int(random.choice(both.alive))
    event_ms = both.stream_ms + int(random.choice([pace, 0, -pace, -40_000, -4_000_000, 3_000]))
    row: Given = (user, item, segment, event_ms, 1 + int(random.integers(KINDS)))
    dice = random.random()
    if dice < 0.55:
        both.show(user, item, segment, event_ms)
    elif dice < 0.7:
        both.touch(row)
    elif dice < 0.85:
        both.hold(int(random.integers(1 << 40)), row)
    elif both.held:
        serial = int(random.choice(list(both.held)))
        if dice < 0.92:
            user, item, _, event_ms, column = both.held[serial]
            both.hold(serial, (user, item, segment, event_ms, column))
        else:
            both.release(serial, is_settled=random.random() < 0.8)


@pytest.mark.parametrize("seed", shortened([0, 1]))
@pytest.mark.parametrize("people", shortened([300, 1, 12]))
@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
def test_sums_are_those_of_the_definition(seed: int, people: int, share: float) -> None:
    random = np.random.default_rng([seed, people])
    both = Both()
    for _ in range(500):
        step(both, random, people, int(random.choice([10, 300, 20_000])))
        if random.random() < share:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    assert len(both.core.sums(1)[0]) > 20
    both.check_rows()


@pytest.mark.parametrize("seed", shortened([0, 1, 2]))
def test_in_one_segment_held_feedback_meets_what_was_seen(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both()
    both.alive = both.alive[:1]
    for _ in range(400):
        step(both, random, 20, 300)
        if random.random() < 0.1:
            both.refresh()
            both.check()
    both.refresh()
    both.check()


@pytest.mark.parametrize("seed", shortened([0, 1]))
def test_folds_move_what_users_contribute(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both()
    folds = [(0, B), (1, A), (0, C)]
    for i in range(900):
        step(both, random, 20, 300)
        if i % 250 == 249 and folds:
            both.fold(*folds.pop())
            if random.random() < 0.5:
                both.refresh()
                both.check()
        if random.random() < 0.05:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    codes = {tuple(codes) for codes in both.core.groups()}
    assert (OTHER, -1) in codes


@pytest.mark.parametrize("seed", shortened([0, 1]))
def test_beyond_the_limit_the_same_users_stay(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both(limit=150)
    bits = 0
    for i in range(2000):
        step(both, random, 400, int(random.choice([10, 300, 20_000])))
        if i % 20 == 19:
            if both.core.shrink(both.stream_ms):
                both.core.refresh(both.stream_ms)
            assert both.core.state()[0] <= 150
            if random.random() < 0.3:
                both.refresh()
                both.check()
                bits = both.core.state()[2]
    assert bits > 0


def test_rows_that_no_window_covers_leave() -> None:
    both = Both(limit=200)
    for i in range(2000):
        both.show(PEOPLE[i % 400], 1, both.alive[0], T0 + i * 200_000)
        both.core.shrink(both.stream_ms)
    rows, _, bits, _, _ = both.core.state()
    assert rows <= 200
    assert bits == 0
    both.refresh()
    both.check()


@pytest.mark.parametrize("leap_ms", [3_600_000, 40 * 365 * 86_400_000])
def test_a_leap_in_time_leaves_nothing_behind(leap_ms: int) -> None:
    both = Both()
    for i in range(30):
        both.show(PEOPLE[i % 3], i, both.alive[i % 4], T0 + i)
        both.hold(i, (PEOPLE[i % 5], i, both.alive[0], T0, 1))
    both.refresh()
    both.show(PEOPLE[0], 2, both.alive[0], T0 + leap_ms)
    both.refresh()
    both.check()


def test_rings_without_changes_are_not_written() -> None:
    both = Both()
    both.show(PEOPLE[0], 1, both.alive[0], T0)
    assert both.core.take_changed_rings() == []
    both.refresh()
    assert both.core.take_changed_rings() == [0, 1, 2]
    both.refresh()
    assert both.core.take_changed_rings() == []
    both.show(PEOPLE[0], 1, both.alive[0], T0 - 5000)
    assert not both.core.state()[4]
    both.show(PEOPLE[0], 1, both.alive[0], T0 + 1000)
    assert both.core.state()[4]


# Stored form -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_loaded_rows_give_the_same_sums(seed: int) -> None:
    random = np.random.default_rng(seed)
    both, epochs = Both(), [0]
    for i in range(800):
        step(both, random, 40, 300)
        if i % 100 == 99:
            epochs.append(both.core.seal())
        if i == 400:
            both.fold(0, B)
    for serial in list(both.held):
        both.release(serial, is_settled=True)
    epochs.append(both.core.seal())
    both.refresh()
    blobs = [both.core.changed(a, b) for a, b in pairwise(epochs)]
    assert both.core.live(epochs[:-1]) == [len(blob["user"]) for blob in blobs]
    assert sum(len(blob["user"]) for blob in blobs) == len(both.core.changed(*ALL_EPOCHS)["user"])
    loaded = core_users(10**6)
    loaded.set_codes(both.slow.codes, both.moves)
    for blob in blobs:
        loaded.load(blob, both.stream_ms)
    assert loaded.state()[4]
    loaded.refresh(both.stream_ms)
    assert loaded.live(list(range(len(blobs)))) == [len(blob["user"]) for blob in blobs]
    both.core = loaded
    both.check()


def blob(segment: int, *times: list[int]) -> dict[str, np.ndarray[Any, Any]]:
    """One stored row of users."""
    key = {"user": np.ones(1, np.uint64), "pair": np.ones(1, np.uint64)}
    columns = {f"time_{i}": np.array(time, np.int64) for i, time in enumerate(times)}
    return {**key, "segment": np.array([segment], np.int32), **columns}


def test_blobs_that_do_not_fit_are_refused() -> None:
    users = core_users(100)
    with pytest.raises(ValueError, match="no column"):
        users.load(blob(1, [1], [1]), T0)
    with pytest.raises(ValueError, match="columns"):
        users.load(blob(1, [1], [1], [1], [1]), T0)
    with pytest.raises(ValueError, match="lengths"):
        users.load(blob(1, [1], [1], []), T0)
    with pytest.raises(ValueError, match="segment"):
        users.load(blob(1 << 30, [1], [1], [1]), T0)
    users.load(blob(1, [-1], [1 << 60], [0]), T0)
    assert users.state()[0] == 0


@pytest.mark.parametrize(
    ("unit_ms", "pane_ms", "kinds"),
    [(0, 1000, 1), (1000, 1500, 1), (1000, 1000, 200)],
)
def test_units_and_panes_that_do_not_fit_are_refused(
    unit_ms: int, pane_ms: int, kinds: int
) -> None:
    with pytest.raises(ValueError, match=r"units|multiples|kinds"):
        UsersForTests([(pane_ms, 60)], unit_ms, [[]], kinds, (100, 100))


def test_a_user_has_so_many_rows_and_no_more() -> None:
    users = core_users(10**6, rows_a_user=1000)
    users.set_codes([[1, 1]], [0])
    for item in range(1010):
        users.touch(7, item, (0, T0), 0, T0)
    assert users.state()[0] == 1000
    assert users.state()[3] == 10
    users.touch(7, 5, (0, T0 + 1000), 1, T0)
    users.touch(8, 5, (0, T0 + 1000), 0, T0)
    users.refresh(T0)
    assert users.state()[0] == 1001
