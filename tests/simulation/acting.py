"""Processes that act on the experiment of a world, and whom they tell."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from streamer.actions.bodies import HttpRequest
from streamer.actions.leader import Leader
from streamer.kafka.log_ends import Bounds, LogEnds
from streamer.server.exporter import Exporter
from streamer.server.health import LagAge
from streamer.settings.model import Settings
from streamer.state.acted import Acted, Told
from tests.simulation.cases import ACTING_MS, Occasions
from tests.simulation.kafka import Logs
from tests.simulation.process import Process
from tests.simulation.store import Server, SimStore

_JUMPS_MS = (-86_400_000, -3_600_000, 3_600_000, 86_400_000)
_FAULT_SECONDS = 40.0
_QUIET_SECONDS = 300.0
_MAX_AGE_MS = 20_000
_OLDEST_SECONDS = _MAX_AGE_MS / 1000 + 10.0 + 3.0
"""The age that records may have at a look, a lease, and some requests."""
_DECISIONS = ("harm", "guardrail", "decided")


class ActingStore(SimStore):
    """The store of who acts: it has a clock, which may be set. ``waited``: for how long a record
    has waited that was not counted when a leader looked."""

    def __init__(self, server: Server, process: Process, waited: Callable[[], float]) -> None:
        super().__init__(server, process)
        self._waited = waited

    async def now_ms(self) -> int:
        return await self._ask(self.memory.now_ms)

    async def acted(self) -> dict[str, bytes]:
        return await self._ask(self.memory.acted)

    async def lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
        return await self._ask(lambda: self._lead(who, lease_ms, changes))

    async def _lead(self, who: str, lease_ms: int, changes: Mapping[str, bytes]) -> bool:
        before = dict(self.memory.kept_of_actions)
        if not await self.memory.lead(who, lease_ms, changes):
            return False
        for name, data in changes.items():
            if not name.startswith("r:"):
                continue
            if before.get(name, data) != data:
                self.server.wrong.append(f"{name} was written again, by {who}")
            waited = 0.0 if self.server.went_back else self._waited()
            if waited > _OLDEST_SECONDS:
                self.server.wrong.append(f"{who} acts on what is {waited:.0f} s old")
        return True


@dataclass
class Receiver:
    """Notes what it is sent. ``fails``: how often it answers with an error, or not at all, or after
    it has taken the message; ``taken``: key → how often."""

    dice: Random
    fails: float = 0.0
    taken: Counter[str] = field(default_factory=Counter[str])

    async def take(self, key: str) -> int:
        outcome = self.dice.choice(("error", "hang", "lost")) if self._fails() else ""
        if outcome == "error":
            return 503
        if outcome == "hang":
            await asyncio.sleep(10.0)
            raise TimeoutError
        self.taken[key] += 1
        if outcome == "lost":
            raise TimeoutError
        return 200

    def _fails(self) -> bool:
        return self.dice.random() < self.fails


class SimLeader(Leader):
    """Looks at the logs of the world, and sends to its receiver."""

    def __init__(self, acting: Acting, settings: Settings, process: Process) -> None:
        store = ActingStore(acting.server, process, lambda: acting.waited(self))
        super().__init__(Exporter(settings, store))
        self.acting, self.process = acting, process
        self.loop = asyncio.get_running_loop()
        self._exporter.lag_age = LagAge(self.loop.time)
        self.began = self.loop.time()
        self.token = f"leader{acting.born}"

    async def turn(self) -> None:
        await self.process.gate()
        ends = self.acting.logs.ends
        known = {(tp.topic, tp.partition): Bounds(0, end, end) for tp, end in ends.items()}
        self._exporter.ends = LogEnds(known)
        await super().turn()

    async def close(self) -> None:
        """It is killed: the lease stays."""
        for task in self._sending.values():
            task.cancel()

    async def _answer(self, request: HttpRequest) -> int:
        key = request.headers["Idempotency-Key"]
        await self.process.pause_a_little(0.2)
        self.acting.require_recorded(key, self.token)
        status = await self.acting.receiver.take(key)
        await self.process.pause_a_little(0.2)
        return status


class Acting:
    """One to three of them, and what happens to them."""

    leader_type: type[SimLeader] = SimLeader

    def __init__(
        self, seed: int, server: Server, logs: Logs, settings: Settings, say: Callable[[str], None]
    ) -> None:
        self.dice = Random(seed * 7919 + 1)
        self.server, self.logs, self.settings, self.say = server, logs, settings, say
        self.receiver = Receiver(self.dice)
        self.leaders: list[tuple[SimLeader, asyncio.Task[None]]] = []
        self.dead: list[SimLeader] = []
        """What they wait for is for ever."""
        self.faults = Counter[str]()
        self.born, self._ahead_ms, self._was_set_back = 0, 0, False
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        server.memory.now_ms = self._now_ms  # type: ignore[method-assign]

    async def _now_ms(self) -> int:
        return ACTING_MS + self._ahead_ms + round(1000 * (self._loop.time() - self._began))

    def start(self) -> None:
        self.born += 1
        leader = self.leader_type(self, self.settings, Process(self.dice))
        self.leaders.append((leader, asyncio.create_task(leader.run(asyncio.Event()))))
        self.say(f"{leader.token} starts")

    # What no leader may do ------------------------------------------------------------------------

    def waited(self, leader: SimLeader) -> float:
        """How long the oldest record that a leader has not seen counted has waited: since this
        leader began, where nothing is counted or the clock was set back."""
        manifests = leader._exporter.reader.manifests
        waited = 0.0
        for tp, written in self.logs.written.items():
            manifest = manifests.get(tp.partition)
            counted = manifest.topics[tp.topic].next_offset if manifest else 0
            if counted < len(written):
                began = 0.0 if counted and not self._was_set_back else leader.began
                waited = max(waited, self._loop.time() - max(written[counted], began))
        return waited

    def require_recorded(self, key: str, who: str) -> None:
        """What happened is stored before anybody is told; a roll-back may lose it again."""
        if f"r:{key}" not in self.server.memory.kept_of_actions and not self.server.went_back:
            self.server.wrong.append(f"{who} tells of {key}, which is not recorded")

    # Faults ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """For a while."""
        for _ in range(self.dice.randint(1, 2)):
            self.start()
        faults: list[Callable[[], Awaitable[None]]] = [
            *(self._kill, self._kill, self._stop, self._set_clock, self._bad_receiver),
        ]
        end = self._loop.time() + self.dice.random() * _FAULT_SECONDS
        while self._loop.time() < end:
            await asyncio.sleep(self.dice.random() * 6)
            fault = self.dice.choice(faults)
            self.faults[f"act{fault.__name__}"] += 1
            await fault()
        self.receiver.fails = 0.0

    async def _kill(self) -> None:
        if self.leaders:
            leader, task = self.leaders.pop(self.dice.randrange(len(self.leaders)))
            leader.process.stop()
            task.cancel()
            self.dead.append(leader)
            self.say(f"{leader.token} is killed")
        if not self.leaders or self.dice.random() < 0.3:
            await asyncio.sleep(self.dice.random() * 12)
            self.start()

    async def _stop(self) -> None:
        if self.leaders:
            leader, _ = self.dice.choice(self.leaders)
            leader.process.stop()
            self.say(f"{leader.token} is stopped")
            if self.dice.random() < 0.5:
                self.start()
            await asyncio.sleep(self.dice.random() * 25)
            leader.process.go_on()
            leader.began = self._loop.time()
            self.say(f"{leader.token} goes on")

    async def _set_clock(self) -> None:
        """Not before anybody has looked: what stands then would be of the past."""
        if "looked" not in self.server.memory.kept_of_actions:
            return
        jump_ms = self.dice.choice(_JUMPS_MS)
        self._was_set_back |= jump_ms < 0
        self._ahead_ms += jump_ms
        self.say(f"the clock of the store is {self._ahead_ms / 3_600_000:+.0f} h wrong")

    async def _bad_receiver(self) -> None:
        self.receiver.fails = self.dice.choice((0.5, 0.9))
        await asyncio.sleep(self.dice.random() * 10)
        self.receiver.fails = 0.0

    # The end --------------------------------------------------------------------------------------

    async def settle(self, expected: Occasions) -> list[str]:
        """Once all is counted and nothing fails any more: what is wrong after a while."""
        if not self.leaders:
            self.start()
        end = self._loop.time() + _QUIET_SECONDS
        while (wrong := self._wrong(expected)) and self._loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(1.0)
        return wrong

    def _wrong(self, expected: Occasions) -> list[str]:
        acted = Acted.of(self.server.memory.kept_of_actions)
        standing: set[tuple[str, str]] = set()
        for record in acted.ordered():
            if record.kind == "withdrawn":
                standing = {each for each in standing if each[0] not in _DECISIONS}
            else:
                standing.add((record.kind, record.arm))
        wrong = [f"{each} is not recorded" for each in sorted(expected - standing)]
        extra = standing - expected
        wrong += [f"{each} is not withdrawn" for each in sorted(extra) if each[0] in _DECISIONS]
        for record in acted.ordered():
            told = {each.state for each in acted.of_record(record.key)}
            if not record.is_past and told != {Told.DELIVERED}:
                wrong.append(f"{record.key} is {', '.join(sorted(told)) or 'not on its way'}")
            elif not record.is_past and not self.receiver.taken[record.key]:
                wrong.append(f"{record.key} was lost")
            elif record.is_past and record.at_ms - record.stream_ms <= _MAX_AGE_MS:
                wrong.append(f"{record.key} is of the past")
        unknown = set(self.receiver.taken) - acted.records.keys()
        if unknown and not self.server.went_back:
            wrong.append(f"{sorted(unknown)} was told of, and is not recorded")
        like = Counter((record.kind, record.arm) for record in acted.records.values())
        decided = sum(n for (kind, _), n in like.items() if kind in _DECISIONS)
        withdrawn = sum(n for (kind, _), n in like.items() if kind == "withdrawn")
        if withdrawn > decided:
            wrong.append(f"{decided} decisions, {withdrawn} withdrawals")
        return wrong

    def end(self) -> str:
        """A digest of what was told."""
        return repr(sorted(self.receiver.taken.items()))
