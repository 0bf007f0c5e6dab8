"""One simulated run: several workers read random logs to their ends while things go wrong.

Everything random comes from the seed. The end is compared with what a single engine, fed the same
logs without any fault, holds; that engine's readings are the oracle's.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest.mock import patch

from streamer.errors import BrokerError, StreamerError
from streamer.ingest.dead_letters import DeadLetter
from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.kafka.topics import Readable
from streamer.settings.model import Settings
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.partition import NEVER, Partition
from streamer.state.restore import load_partition
from streamer.worker import recovery
from streamer.worker.runner import Runner
from tests.simulation.acting import Acting
from tests.simulation.cases import (
    ACTED,
    ACTED_LOGS,
    LOGS,
    NAMES,
    PARTITIONS,
    Counted,
    case_of,
    counted_of,
)
from tests.simulation.kafka import Logs, SimLog
from tests.simulation.loop import DeadlockError, VirtualLoop
from tests.simulation.store import Server, SimStore
from tests.state.released import LINES, as_19
from tests.support.canonical import canonical

_FAULT_SECONDS = 30.0
_SETTLE_SECONDS = 400.0
_SESSION_SECONDS = 10.0


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    trace: str = ""

    def count(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1


@dataclass
class Worker:
    """A simulated worker process."""

    name: str
    log: SimLog
    runner: Runner
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def kill(self) -> None:
        self.log.stop()
        for task in [*self.tasks, *self.runner._recoveries.values()]:
            task.cancel()
        for owned in self.runner.partitions.values():
            if owned.committing is not None:
                owned.committing.cancel()


class World:
    """Workers, logs, a store, and the faults that the dice choose."""

    runner_type: type[Runner] = Runner
    store_type: type[SimStore] = SimStore
    memory_type: type[MemoryStore] = MemoryStore
    acting_type: type[Acting] = Acting
    acted_on = 20
    changing = 3
    upgrading = 4
    """One world in so many changes its settings."""
    stragglers = 0.5
    """Share of the workers that start with a file that may be older."""

    def __init__(self, seed: int, dice: Random) -> None:
        self.dice = dice
        self.outcome = Outcome(seed)
        self.is_live = dice.random() < 0.5
        name, number = NAMES[self.is_live], dice.randrange(LOGS)
        is_acted = seed % self.acted_on == 12 % self.acted_on
        if is_acted:
            self.is_live, name, number = True, ACTED, number % ACTED_LOGS
        self.case = case_of(number, name)
        self.final, self.other = counted_of(name), counted_of(name, "1h")
        self.newest, self.changes = (
            self.final,
            Random(seed) if seed % self.changing == self.changing - 1 else None,
        )
        """The settings that were applied last; dice of their own, in a third of the worlds."""
        is_upgraded = seed % self.upgrading == self.upgrading - 1 and not is_acted
        self.upgrades = Random(~seed) if is_upgraded else None
        """Dice of their own where an older release counts at first."""
        self.logs = Logs(self.case.log, PARTITIONS)
        self.server = Server(self.memory_type(), dice)
        own = (seed, self.server, self.logs, self.final.settings, self.say)
        self.acting = self.acting_type(*own) if is_acted else None
        """Processes that act, in one of twenty worlds."""
        self.workers: list[Worker] = []
        self.dead: list[DeadLetter] = []
        self._born = 0
        self._rebalancing = asyncio.Lock()
        self._background: set[asyncio.Task[Any]] = set()

    def say(self, what: str) -> None:
        self.outcome.story.append(f"{asyncio.get_running_loop().time():9.3f} s  {what}")

    # Workers ----------------------------------------------------------------------------------

    def start_worker(self) -> None:
        self._born += 1
        log = SimLog(self.logs, self.dice)
        store = self.store_type(self.server, log)
        own = self.newest
        if self.changes and self.changes.random() < self.stragglers:
            own = self.changes.choice((self.final, self.other))  # a file that nobody replaced
        runner = self.runner_type(own.settings, store, log, f"worker{self._born}")
        runner.catalogue, runner.fingerprint = own.catalogue, own.fingerprint

        async def set_partitions() -> Readable:
            return Readable(await store.set_partitions(PARTITIONS))

        runner.look_at_topics = set_partitions
        runner.dead_letters.send = self._send_dead  # type: ignore[method-assign]
        worker = Worker(runner.worker_report.worker, log, runner)
        worker.tasks = [
            asyncio.create_task(runner.run()),
            asyncio.create_task(log.fetch(runner, self.dice.choice((3, 10, 40)))),
        ]
        self.workers.append(worker)
        self.say(f"{worker.name} starts")

    async def _send_dead(self, letters: Sequence[DeadLetter]) -> None:
        await asyncio.sleep(self.dice.random() * 0.05)
        if letters and self.dice.random() < 2 * self.server.weather.lost_requests:
            raise BrokerError("Kafka did not answer")
        self.dead += letters

    async def rebalance(self) -> None:
        """All that answer give up what they have, then each gets its share."""
        async with self._rebalancing:
            await asyncio.sleep(self.dice.random())
            members = [w for w in self.workers if not w.log.is_stopped]
            revoking = [asyncio.create_task(w.runner.revoke()) for w in members]
            if revoking:
                await asyncio.wait(revoking, timeout=_SESSION_SECONDS)
            self._background.update(t for t in revoking if not t.done())
            members = [w for w in members if not w.log.is_stopped and w in self.workers]
            shares: dict[str, list[int]] = {w.name: [] for w in members}
            for number in range(PARTITIONS if members else 0):
                shares[self.dice.choice(members).name].append(number)
            for worker in members:
                self.say(f"{worker.name} is assigned {shares[worker.name]}")
                worker.log.assign(shares[worker.name])
                await worker.runner.assign(shares[worker.name])

    # Faults -----------------------------------------------------------------------------------

    async def kill(self) -> None:
        if not self.workers:
            return
        if len(self.workers) > 1 or self.dice.random() < 0.5:
            worker = self.dice.choice(self.workers)
            self.workers.remove(worker)
            worker.kill()
            self.say(f"{worker.name} is killed")
            self._background.update(worker.tasks)
            if not self.workers or self.dice.random() < 0.7:
                await asyncio.sleep(self.dice.random() * _SESSION_SECONDS)
                self.start_worker()
        await self.rebalance()

    async def stop_for_a_while(self) -> None:
        """Often in the midst of a recovery; longer than the session time-out or not, which is when
        the group finds out. Many go on just when another one recovers what they had."""
        if self.dice.random() < 0.5:
            await self.rebalance()
            await asyncio.sleep(self.dice.random() * 0.4)
        if not self.workers:
            return
        worker = self.dice.choice(self.workers)
        worker.log.stop()
        self.say(f"{worker.name} is stopped")
        if self.dice.random() < 0.4:
            await asyncio.sleep(self.dice.random() * _SESSION_SECONDS)
            worker.log.go_on()
            self.say(f"{worker.name} goes on, unnoticed")
            return
        await asyncio.sleep(_SESSION_SECONDS)
        taking_over = asyncio.create_task(self.rebalance())
        await asyncio.sleep(self.dice.random() * self.dice.choice((2.0, 20.0)))
        worker.log.go_on()
        self.say(f"{worker.name} goes on")
        await taking_over
        await asyncio.sleep(self.dice.random() * 3)
        await self.rebalance()

    async def join(self) -> None:
        if len(self.workers) < 4:
            self.start_worker()
        await self.rebalance()

    async def bad_network(self) -> None:
        weather = self.server.weather
        weather.lost_requests = self.dice.choice((0.0, 0.05, 0.3))
        weather.lost_replies = self.dice.choice((0.0, 0.1, 0.5))
        weather.late = self.dice.choice((0.0, 0.0, 0.1))
        self.say(f"the network is bad: {weather}")
        await asyncio.sleep(self.dice.random() * 10)
        weather.lost_requests = weather.lost_replies = weather.late = 0.0

    async def store_away(self) -> None:
        self.server.weather.is_down = True
        self.say("the store is away")
        await asyncio.sleep(self.dice.random() * 15)
        self.server.weather.is_down = False

    async def roll_back(self) -> None:
        if self.dice.random() < 0.1:
            self.server.wipe()
            self.say("the store is empty")
            return
        self.server.keep_copy()
        await asyncio.sleep(self.dice.random() * 10)
        if self.dice.random() < 0.7 and self.server.roll_back():
            self.say("the store is rolled back")

    async def upgrade(self) -> None:
        """What is stored is as the release before wrote it: its workers counted until now."""
        assert self.upgrades is not None
        await asyncio.sleep(self.upgrades.random() * _FAULT_SECONDS)
        states = self.server.memory.states
        for number, stored in list(states.items()):
            states[number] = replace(stored, manifest=as_19(stored.manifest))
        self.say("the state is that of the release before")

    async def apply(self, counted: Counted | None = None) -> None:
        """Make settings the newest, as ``streamer apply`` does; workers take them one by one, or
        not before they are started again."""
        assert self.changes is not None
        await asyncio.sleep(0 if counted else self.changes.random() * _FAULT_SECONDS)
        self.newest = counted or (self.other if self.newest is self.final else self.final)
        memory, fingerprint = self.server.memory, self.newest.fingerprint
        written = [decode(stored.manifest).generation for stored in memory.states.values()]
        made = await memory.declare_settings(fingerprint, above=max(written, default=0))
        self.say(f"generation {made.number}: {self.newest.settings.windows.lengths}")
        for worker in list(self.workers):
            if counted or self.changes.random() < 0.4:
                await asyncio.sleep(self.changes.random())
                if not worker.log.is_stopped:
                    self.say(f"{worker.name} takes them")
                    await worker.runner.count_by(*self.newest[::2], made.number)

    # The run ----------------------------------------------------------------------------------

    async def produce(self) -> None:
        while not self.logs.is_complete:
            self.logs.produce(self.dice.randint(1, 12))
            await asyncio.sleep(self.dice.random() * 2)

    async def run(self) -> Outcome:
        if not self.is_live:
            self.logs.produce(len(self.logs.order))
        producing = asyncio.create_task(self.produce())
        for _ in range(self.dice.randint(1, 3)):
            self.start_worker()
        await self.rebalance()
        applying = [asyncio.create_task(self.apply()) for _ in range(3 if self.changes else 0)]
        self.outcome.count("apply") if applying else None
        if self.upgrades:
            self.outcome.count("upgrade")
            applying.append(asyncio.create_task(self.upgrade()))
        acting = [asyncio.create_task(self.acting.run())] if self.acting else []
        await self._faults()
        await asyncio.gather(*acting)
        await producing
        await asyncio.gather(*applying)
        await self._settle()
        for worker in self.workers:
            worker.kill()
        self.outcome.trace = self._trace()
        return self.outcome

    async def _faults(self) -> None:
        faults: list[Callable[[], Awaitable[None]]] = [
            *(self.kill, self.kill, self.stop_for_a_while, self.join, self.rebalance),
            *(self.bad_network, self.bad_network, self.store_away, self.roll_back),
        ]
        loop = asyncio.get_running_loop()
        end = loop.time() + self.dice.random() * _FAULT_SECONDS
        running: set[asyncio.Task[None]] = set()
        while loop.time() < end:
            await asyncio.sleep(self.dice.random() * 6)
            fault = self.dice.choice(faults)
            self.outcome.count(fault.__name__)
            running.add(asyncio.create_task(_as_coroutine(fault())))
        if running:
            await asyncio.wait(running)
            for task in running:
                task.result()

    async def _settle(self) -> None:
        """Read to the ends, or be stuck; then compare. Some stores are rolled back once more, when
        all is read and nothing would be committed any more."""
        for worker in self.workers:
            worker.log.go_on()
        if not self.workers:
            self.start_worker()
        if self.changes:
            await self.apply(self.final)
        await self.rebalance()
        await self._read_to_the_end()
        if not self.outcome.wrong and self.dice.random() < 0.3:
            if self.dice.random() < 0.2:
                self.server.wipe()
            else:
                self.server.roll_back()
            self.say("the store is rolled back at the end")
            if self.changes:  # it may have lost which settings are the newest
                await self.apply(self.final)
            await self._read_to_the_end()
        if self.acting and not self.outcome.wrong:
            self.outcome.wrong += await self.acting.settle(self.case.occasions)
            self.outcome.faults |= self.acting.faults
        if not self.outcome.wrong:
            await self._compare()

    async def _read_to_the_end(self) -> None:
        deadline = asyncio.get_running_loop().time() + _SETTLE_SECONDS
        while not self._is_read():
            if asyncio.get_running_loop().time() > deadline:
                said = {
                    n: p for w in self.workers for n, p in w.runner.worker_report.problems.items()
                }
                self.outcome.wrong.append(f"stuck: not read to the end; {said}")
                return
            await asyncio.sleep(1.0)

    def _is_read(self) -> bool:
        for number, expected in enumerate(self.case.states):
            stored = self.server.memory.states.get(number)
            logs = expected["logs"]
            if stored is None:
                if any(log["next_offset"] for log in logs.values()):
                    return False
                continue
            newest_ms = max(log["arrival_ms"] for log in logs.values())
            for kind, topic in decode(stored.manifest).topics.items():
                have = (topic.next_offset, topic.idle_ms)
                if have != (logs[kind]["next_offset"], idle_ms(newest_ms, self.case.settings)):
                    return False
        return True

    async def _compare(self) -> None:
        wrong = self.outcome.wrong
        wrong += self.server.wrong
        memory = self.server.memory
        letters = 0
        key = memory.key or FIXED_KEY
        for number, expected in enumerate(self.case.states_under(key)):
            partition = Partition(self.case.settings, self.case.catalogue, key)
            claim, stored = await memory.claim(number)
            try:
                journal = await load_partition(memory, number, partition, claim, stored)
            except StreamerError as error:
                wrong.append(f"partition {number} cannot be recovered: {error}")
                continue
            letters += journal.dead_letters
            found = canonical(partition)
            if self.upgrades:
                lines = self.case.catalogue.layout.at[LINES]
                for state in (found, expected):
                    state["panes"] = {k: n for k, n in state["panes"].items() if k[3] != lines}
            wrong += [
                f"partition {number}: {key} is {found[key]} instead of {expected[key]}"[:400]
                for key in expected
                if found[key] != expected[key]
            ]
        sent = {(letter.topic, letter.partition, letter.offset) for letter in self.dead}
        if sent != self.case.dead:
            wrong.append(f"dead letters: {sorted(sent ^ self.case.dead)[:5]} differ")
        if not wrong and letters != len(self.case.dead):
            wrong.append(f"{letters} dead letters counted, not {len(self.case.dead)}")

    def _trace(self) -> str:
        """A digest of what happened and when: equal for equal runs."""
        positions = [(n, s.position) for n, s in sorted(self.server.memory.states.items())]
        letters = [(x.topic, x.partition, x.offset) for x in self.dead]
        told = self.acting.end() if self.acting else ""
        said = (asyncio.get_running_loop().time(), positions, letters, told, self.outcome.story)
        return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def idle_ms(newest_ms: int, settings: Settings) -> int:
    """The watermark of a topic when all are read to their ends."""
    return newest_ms - settings.time.max_skew_ms if newest_ms > NEVER else NEVER


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


def simulate(seed: int, world_type: type[World] = World) -> Outcome:
    """Run one seed to its end."""
    dice, keys = Random(seed), Random(seed)

    def random_key() -> HashKey:
        return keys.getrandbits(64), keys.getrandbits(64)

    loop = VirtualLoop(dice)
    asyncio.set_event_loop(loop)
    loggers = [logging.getLogger(name) for name in ("streamer", "streamer.act")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    world = None
    try:

        async def live() -> Outcome:
            nonlocal world
            world = world_type(seed, dice)
            return await world.run()

        with patch.object(recovery, "random_key", random_key):
            return loop.run_until_complete(live())
    except (DeadlockError, AssertionError, StreamerError) as error:
        outcome = world.outcome if world is not None else Outcome(seed)
        outcome.wrong.append("".join(traceback.format_exception(error, limit=-3))[-600:])
        return outcome
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled
        _close(loop)


def _close(loop: VirtualLoop) -> None:
    async def gather(pending: set[asyncio.Task[Any]]) -> None:
        await asyncio.gather(*pending, return_exceptions=True)

    while pending := asyncio.all_tasks(loop):  # whoever waited for one may have begun another
        for task in pending:
            task.cancel()
        finish: Coroutine[Any, Any, None] = gather(pending)
        loop.run_until_complete(finish)
    asyncio.set_event_loop(None)
    loop.close()
