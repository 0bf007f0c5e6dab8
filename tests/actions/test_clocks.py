"""Clocks may be set: nothing is lost, told twice, given up early, or waits for a day."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamer.actions.occasions import Look
from streamer.kafka.log_ends import Bounds, LogEnds
from streamer.server.health import LagAge
from streamer.state.acted import Acted, Told
from tests.actions.world import (
    World,
    alike,
    even,
    harmful,
    lines_of,
    nobody,
    receiver,
    settings_of,
    until_sent,
)

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
JUMPS = {
    "hour back": -HOUR_MS,
    "day back": -DAY_MS,
    "hour ahead": HOUR_MS,
    "days ahead": 2 * DAY_MS,
}
USERS = range(400)
HARM = "ranker/2026-03-02/harm/B/1"
jumps = pytest.mark.parametrize("jump_ms", JUMPS.values(), ids=JUMPS)


async def turns(world: World, leader: Any, count: int) -> list[Told]:
    for _ in range(count):
        await leader.turn()
        await until_sent(leader)
    return [each.state for each in Acted.of(world.store.kept_of_actions).deliveries.values()]


@jumps
async def test_a_delivery_is_tried_again_and_not_given_up(jump_ms: int) -> None:
    async with receiver() as (there, url):
        there.answers = [500, 500]
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, harmful, even))
        leader = world.leader()
        assert await turns(world, leader, 1) == [Told.PENDING]
        world.ahead_ms += jump_ms
        assert await turns(world, leader, 3) == [Told.DELIVERED]
        assert there.keys == [HARM] * 3
        await leader.close()


@jumps
async def test_who_takes_over_tries_again_whatever_its_clock_says(jump_ms: int) -> None:
    async with receiver() as (there, url):
        there.answers = [500, 500]
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, harmful, even))
        await turns(world, world.leader(), 1)  # and it is killed
        world.ahead_ms += jump_ms
        second = world.leader()
        await turns(world, second, 1)
        world.ahead_ms += 10_000
        assert await turns(world, second, 2) == [Told.DELIVERED]
        assert set(there.keys) == {HARM}
        await second.close()


@jumps
async def test_records_stay_in_order(jump_ms: int) -> None:
    """A withdrawal comes after what it withdraws, and is told once."""
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, harmful, even))
        leader = world.leader()
        await turns(world, leader, 1)
        world.ahead_ms += jump_ms
        for crowd in (range(1000, 3000), range(3000, 3100)):
            await world.feed(lines_of(0, crowd, alike, lambda _: "A"))
            await turns(world, leader, 2)
        kinds = [document["kind"] for document in there.documents()]
        assert kinds[0] == "harm"
        assert sorted(kinds) == ["harm", "split", "withdrawn"]
        await leader.close()


async def test_a_request_has_the_time_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the machine may be wrong: whoever leads says the same time."""
    monkeypatch.setattr("time.time", lambda: 1.0)
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, harmful, even))
        leader = world.leader()
        await turns(world, leader, 1)
        ((headers, _, _),) = there.got
        assert int(headers["X-Streamer-Time"]) == await world.store.now_ms() // 1000
        await leader.close()


WAITING = LogEnds({("clicks", 0): Bounds(0, 10**6, 10**6), ("impressions", 0): Bounds(0, 1, 1)})


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, -DAY_MS])
async def test_what_has_waited_too_long_is_old_after_a_jump_back(jump_ms: int) -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url, "max_age": "30s"}))
        world.ahead_ms = 60_000
        await world.feed(lines_of(0, USERS, harmful, even))
        leader = world.leader(WAITING)
        await turns(world, leader, 1)
        world.ahead_ms += jump_ms
        assert await turns(world, leader, 2) == []
        assert there.got == []
        await leader.close()


async def test_what_is_fresh_is_not_old_after_a_jump_ahead() -> None:
    async with receiver() as (there, url):
        per_user = [{"name": "clicks_per_user"}]
        hook = {"url": url, "on": ["loss"]}
        world = World(settings_of(hook, max_loss="50 clicks", metrics=per_user))
        await world.feed(lines_of(0, USERS, alike, even))
        leader = world.leader(WAITING)
        await turns(world, leader, 1)
        world.ahead_ms += DAY_MS
        await world.feed(lines_of(1, range(400, 1200), harmful, even))
        assert await turns(world, leader, 1) == [Told.DELIVERED]
        assert len(there.keys) == 1
        await leader.close()


def test_the_age_of_records_grows_by_a_clock_that_nobody_sets() -> None:
    now = 100.0
    age = LagAge(lambda: now)
    for jump_ms in (0, *JUMPS.values()):
        age.look(1_000_000_000 + jump_ms, {("clicks", 0): 5}, WAITING, {})
        assert age.seconds == {"clicks": now - 100.0}
        now += 15.0


async def test_what_was_decided_before_the_lease_ran_out_is_looked_at_again() -> None:
    """A process that is stopped for an hour between deciding and writing has decided nothing."""
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, harmful, even))
        leader = world.leader()
        of = leader._new_records

        def stopped(look: Look) -> Any:
            world.store.leader = None
            return of(look)

        leader._new_records = stopped  # type: ignore[method-assign]
        assert await turns(world, leader, 1) == []
        assert not leader.is_leading
        leader._new_records = of  # type: ignore[method-assign]
        assert await turns(world, leader, 1) == [Told.DELIVERED]
        assert there.keys == [HARM]
        await leader.close()


async def test_records_that_came_while_the_store_was_away_are_old() -> None:
    """Who could not look does not know since when they wait."""
    now = [0.0]
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, nobody, even))
        read = {"clicks": 0, "impressions": 1600}
        ends = LogEnds({(log, 0): Bounds(0, end, end) for log, end in read.items()})
        leader = world.leader(ends)
        leader._exporter.lag_age = LagAge(lambda: now[0])
        await turns(world, leader, 1)
        leader._held_until = 0.0
        ends.bounds = WAITING.bounds
        await world.feed(lines_of(0, range(400, 1200), harmful, even))
        now[0] += 3600.0
        assert await turns(world, leader, 2) == []
        ends.bounds = {}
        assert await turns(world, leader, 1) == [Told.DELIVERED]
        assert there.keys == [HARM]
        await leader.close()


async def test_who_was_stopped_while_others_led_reads_what_they_wrote() -> None:
    """Else it would give a new message the key of an old one, and receivers would drop it."""
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, nobody, even))
        first, second = world.leader(), world.leader()
        await turns(world, first, 1)
        world.store.leader, first._held_until = None, 0.0  # it is stopped
        await world.feed(lines_of(0, range(400, 1200), harmful, even))
        await turns(world, second, 1)
        await second.close()
        await asyncio.sleep(0)
        await turns(world, first, 2)
        assert there.keys == [HARM]
        await first.close()
