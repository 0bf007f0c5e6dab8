"""What happens to an experiment is told once, whatever crashes, hangs or wakes up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from streamer.actions.bodies import signature
from streamer.actions.leader import pause_after
from streamer.actions.occasions import Look
from streamer.errors import StoreError
from streamer.kafka.log_ends import Bounds, LogEnds
from streamer.query.readout import readout_of
from streamer.settings import limits
from streamer.state.acted import Acted, Told
from streamer.state.reader import Reader
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

USERS = range(400)


async def harmed(world: World) -> None:
    await world.feed(lines_of(0, USERS, harmful, even))


def acted(world: World) -> Acted:
    return Acted.of(world.store.kept_of_actions)


async def test_a_harm_is_recorded_told_once_and_quoted(tmp_path: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    async with receiver() as (there, url):
        world = World(settings_of({"url": url, "secret_file": str(secret)}))
        await harmed(world)
        leader = world.leader()
        for _ in range(3):
            await leader.turn()
            await until_sent(leader)
        assert there.keys == ["ranker/2026-03-02/harm/B/1"]
        (headers, body, method), (document,) = there.got[0], there.documents()
        assert method == "POST"
        assert headers["X-Streamer-Signature"] == signature(
            "s3cret", int(headers["X-Streamer-Time"]), body
        )
        assert document["text"].startswith("ranker: stop: harm")
        assert document["numbers"]["metric"] == "ctr_ratio"
        assert document["numbers"]["high"] < 0
        assert document["commits"] == {"0": 1}
        stored = world.replay.experiments()["ranker"]
        await leader._exporter.refresh()
        told = leader._exporter.reader.acted.of_experiment("ranker", stored.experiment.start)
        found = readout_of(replace(stored, acted=told), stored.read())
        (note,) = [note for note in found.notes if note.kind == "acted on"]
        assert "ranker: stop: harm" in note.text
        assert f"told: {leader.hooks.popitem()[1].place}" in note.text
        await leader.close()
        assert world.store.leader is None


async def test_nothing_happens_where_the_arms_are_alike() -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url, "on": ["harm", "split", "decided", "no_data"]}))
        await world.feed(lines_of(0, USERS, alike, even))
        leader = world.leader()
        await leader.turn()
        await until_sent(leader)
        assert (there.got, acted(world).records) == ([], {})
        await leader.close()


async def test_it_looks_again_only_after_a_commit() -> None:
    world = World(settings_of({"url": "http://127.0.0.1:9/"}))
    await world.feed(lines_of(0, USERS, alike, even))
    leader, looks = world.leader(), 0
    of = leader._new_records

    def counted(look: Look) -> Any:
        nonlocal looks
        looks += 1
        return of(look)

    leader._new_records = counted  # type: ignore[method-assign]
    for _ in range(3):
        await leader.turn()
    assert looks == 1
    await world.feed(lines_of(1, USERS, alike, even))
    await leader.turn()
    assert looks == 2
    await leader.close()


STEPS = ["before the record", "before it is sent", "after it is sent", "after it is stored"]


@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
async def test_a_leader_that_dies_at_any_step_loses_nothing(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one goes on once the lease is over: by key the receiver is told exactly once."""
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await harmed(world)
        first = world.leader()
        lead, writes = world.store.lead, 0

        async def dying(who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
            nonlocal writes
            writes += bool(changes)
            if who == first.token and (writes, step) in ((1, 0), (2, 2)):
                raise _KilledError
            return await lead(who, lease_ms, changes)

        monkeypatch.setattr(world.store, "lead", dying)
        if step == 1:
            monkeypatch.setattr(first, "_send_due", _die)
        try:
            await first.turn()
            await until_sent(first)
        except _KilledError:
            pass
        second = world.leader()
        await second.turn()
        assert not second.is_leading  # the lease of the dead one is not over
        world.store.leader = None
        for _ in range(2):
            await second.turn()
            await until_sent(second)
        assert set(there.keys) == {"ranker/2026-03-02/harm/B/1"}
        assert len(there.keys) == (2 if step == 2 else 1)
        (delivery,) = acted(world).deliveries.values()
        assert delivery.state is Told.DELIVERED
        await second.close()


class _KilledError(BaseException):
    """Not an error that anybody handles."""


def _die() -> None:
    raise _KilledError


async def test_a_process_that_was_stopped_writes_and_sends_nothing_when_it_wakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await world.feed(lines_of(0, USERS, nobody, even))
        first, second = world.leader(), world.leader()
        await first.turn()
        world.store.leader = None  # the first one is stopped, and its lease runs out
        await second.turn()
        assert second.is_leading
        await world.feed(lines_of(1, range(400, 800), harmful, even))
        world.store.leader = second.token, 1 << 60
        await first.turn()
        assert not first.is_leading
        assert not first._has_lease
        assert acted(world).records == {}
        await second.turn()
        await until_sent(second)
        assert len(there.keys) == 1
        # And one that was stopped between its look and its request, by its own clock:
        second._held_until = 0.0
        assert not second._has_lease
        await second.close()
        await first.close()


async def test_a_receiver_that_fails_is_asked_again_then_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ACT_TIMEOUT_SECONDS", 0.2)
    async with receiver() as (there, url):
        there.answers = [500, 302, 5.0, 429]
        world = World(settings_of({"url": url}))
        await harmed(world)
        leader = world.leader()
        problems = []
        for _ in range(5):
            await leader.turn()
            await until_sent(leader)
            (delivery,) = acted(world).deliveries.values()
            problems.append((delivery.attempts, delivery.state, delivery.problem.split(":")[0]))
        assert problems == [
            (1, Told.PENDING, "it answered 500"),
            (2, Told.PENDING, "it answered 302"),
            (3, Told.PENDING, "TimeoutError"),
            (4, Told.PENDING, "it answered 429"),
            (5, Told.DELIVERED, ""),
        ]
        assert len(set(there.keys)) == 1
        await leader.close()


async def test_after_a_day_a_delivery_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ACT_ATTEMPTS", 2)
    async with receiver() as (there, url):
        there.answers = [503, 503]
        world = World(settings_of({"url": url}))
        await harmed(world)
        leader = world.leader()
        for _ in range(3):
            await leader.turn()
            await until_sent(leader)
        (delivery,) = acted(world).deliveries.values()
        assert (delivery.state, delivery.problem) == (Told.FAILED, "it answered 503")
        assert len(there.keys) == 2
        await leader.close()


def test_the_attempts_fill_about_a_day() -> None:
    pauses = [pause_after(attempts) for attempts in range(1, limits.ACT_ATTEMPTS)]
    assert pauses[:5] == [1, 2, 4, 8, 16]
    assert pauses[-1] == 900
    assert sum(pauses) * 0.75 == pytest.approx(86_400, rel=0.01)  # the mean of the jitter


@pytest.mark.parametrize(
    "ends",
    [
        LogEnds({}, "no broker"),
        LogEnds({("clicks", 0): Bounds(0, 10**9, 10**9), ("impressions", 0): Bounds(0, 1, 1)}),
    ],
    ids=["the lag is not known", "records wait"],
)
async def test_what_is_old_acts_on_nothing(ends: LogEnds) -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url, "max_age": "30s"}))
        world.ahead_ms = 60_000
        await harmed(world)
        leader = world.leader(ends)
        for _ in range(2):
            await leader.turn()
        await until_sent(leader)
        assert (there.got, acted(world).records) == ([], {})
        await leader.close()
        world.ahead_ms = 1000
        fresh = world.leader()
        await fresh.turn()
        await until_sent(fresh)
        assert len(there.got) == 1
        await fresh.close()


async def test_what_is_shown_of_a_partition_that_cannot_be_read_acts_on_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await harmed(world)
        leader = world.leader()
        with monkeypatch.context() as patched:
            patched.setattr(Reader, "damaged", {0: "other settings wrote it"})
            await leader.turn()
            await until_sent(leader)
            assert (there.got, acted(world).records) == ([], {})
        await leader.turn()
        await until_sent(leader)
        assert len(there.got) == 1
        await leader.close()


async def test_a_decision_of_the_past_is_recorded_and_nobody_is_told() -> None:
    """Whoever switches actions on is not told of last week."""
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await harmed(world)
        for day in (1, 2, 3):
            await world.feed(lines_of(day, USERS, harmful, even))
        leader = world.leader()
        await leader.turn()
        await until_sent(leader)
        records = acted(world).ordered()
        assert [(record.kind, record.is_past) for record in records] == [("harm", True)]
        assert there.got == []
        await leader.close()


async def test_more_than_may_be_lost_is_told_at_once_and_stays_told() -> None:
    """A half of the buyers of B are gone; nothing is told before fifty are."""
    async with receiver() as (there, url):
        settings = settings_of(
            {"url": url, "on": ["loss"]},
            max_loss="50 clicks",
            metrics=[{"name": "clicks_per_user"}],
        )
        world = World(settings)
        leader = None

        def some(arm: str, user: int) -> int:
            return int(user // 2 % 3 == 0 and (arm == "A" or user % 4 == 1))

        counts = []
        for first in range(0, 2000, 250):
            await world.feed(lines_of(0, range(first, first + 250), some, even))
            leader = leader or world.leader()
            await leader.turn()
            await until_sent(leader)
            counts.append(len(there.got))
        assert leader is not None
        assert counts[0] == 0
        assert counts[-1] == 1
        (document,) = there.documents()
        assert "B costs too much. About" in document["text"]
        assert "clicks are lost" in document["text"]
        stored = world.replay.experiments()["ranker"]
        texts = [
            each.text
            for each in readout_of(stored, stored.read()).primary.of("B").statistics
            if each.name == "loss"
        ]
        assert len(texts) == 1
        assert "50 may be." in texts[0]
        await leader.close()


async def test_a_decision_that_no_longer_stands_is_withdrawn() -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await harmed(world)
        leader = world.leader()
        await leader.turn()
        await until_sent(leader)
        crowd = range(1000, 3000)  # all of them in A: the split is broken
        await world.feed(lines_of(0, crowd, alike, lambda _: "A"))
        for _ in range(2):
            await leader.turn()
            await until_sent(leader)
        kinds = [document["kind"] for document in there.documents()]
        assert sorted(kinds) == ["harm", "split", "withdrawn"]
        (withdrawn,) = [d for d in there.documents() if d["kind"] == "withdrawn"]
        assert "no longer stands; it is now: do not use: broken split" in withdrawn["text"]
        await leader.close()


async def test_of_experiments_and_owners_those_that_are_wanted_are_told() -> None:
    async with receiver() as (there, url):
        hooks: list[dict[str, Any]] = [
            {"url": f"{url}/1", "of": ["ranker"]},
            {"url": f"{url}/2", "of": ["owner:ads"]},
            {"url": f"{url}/3", "of": ["owner:search"]},
            {"url": f"{url}/4", "on": ["decided"]},
            {"url": f"{url}/5", "dry_run": True},
        ]
        world = World(settings_of(*hooks))
        await harmed(world)
        leader = world.leader()
        for _ in range(2):
            await leader.turn()
            await until_sent(leader)
        states = sorted(str(each.state) for each in acted(world).deliveries.values())
        assert states == ["delivered", "delivered", "dry run"]
        assert len(there.got) == 2
        await leader.close()


async def test_without_the_store_it_waits_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as (there, url):
        world = World(settings_of({"url": url}))
        await harmed(world)
        leader, stop = world.leader(), asyncio.Event()
        lead, calls = world.store.lead, 0
        monkeypatch.setattr(limits, "ACT_SECONDS", 0.01)

        async def away(who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
            nonlocal calls
            calls += 1
            if 2 <= calls <= 4:
                raise StoreError("Redis is away")
            return await lead(who, lease_ms, changes)

        monkeypatch.setattr(world.store, "lead", away)
        running = asyncio.create_task(leader.run(stop))
        async with asyncio.timeout(10):
            while not any(d.is_told for d in acted(world).deliveries.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        stop.set()
        await running
        assert set(there.keys) == {"ranker/2026-03-02/harm/B/1"}
