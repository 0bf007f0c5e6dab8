"""The process that acts: one of any number leads, by a lease in the store.

It looks at whole commits, writes what is new, and only then sends it. Whoever takes over finds what
was written and sends the rest under the same keys: a receiver sees a key at least once, and more
than once only where an answer was lost. Times are the store's; pauses and the lease go by the clock
of the event loop, which nobody sets.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import aiohttp
import msgspec

from streamer.actions.bodies import HttpRequest, request_of
from streamer.actions.occasions import Look, new_records
from streamer.errors import SettingsError, StoreError, StreamerError
from streamer.ingest.keying import require_users
from streamer.kafka.registry import proxy_of
from streamer.query.experiment_list import Readouts, listed
from streamer.query.experiments import stored_experiments
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.settings.actions import Hook
from streamer.state.acted import Acted, ActionRecord, Delivery, Told, forgotten, stored
from streamer.state.store import new_claim

logger = logging.getLogger("streamer.act")
Wait = Callable[[float], float]
"""Seconds of back-off → those to wait, with jitter."""


def jitter(seconds: float) -> float:
    """Between half and all of it: what failed together is not tried together."""
    return seconds * random.uniform(0.5, 1.0)


def digest_of(hook: Hook) -> str:
    """Tells receivers apart; of a URL that may be a secret nothing is shown."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.astuple(hook))).hexdigest()[:12]


class Leader:
    """Looks and tells for as long as it has the lease. ``wait``: for tests without jitter."""

    def __init__(self, exporter: Exporter, wait: Wait = jitter) -> None:
        self._exporter, self._wait = exporter, wait
        self.settings, self._store = exporter.settings, exporter.store
        self.hooks = {digest_of(hook): hook for hook in self.settings.actions}
        self._max_age_ms = min(hook.max_age_ms for hook in self.settings.actions)
        self.token = new_claim()
        self.acted = Acted()
        self.is_leading = False
        self._held_until = 0.0
        self._stream_ms = 0
        self._readouts = Readouts()
        self._seen: Mapping[int, int] | None = None
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._due: dict[str, float] = {}
        """Delivery that was tried → when it is tried again."""
        self._session: aiohttp.ClientSession | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``: then the lease is given back."""
        try:
            while not stop.is_set():
                try:
                    await self.turn()
                except StreamerError as error:
                    self._lose(str(error))
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), limits.ACT_SECONDS)
        finally:
            await self.close()

    async def turn(self) -> None:
        """Take or keep the lease; where this one leads, look once, and send what is due."""
        had_lease = self._has_lease
        if not await self._keep({}):
            return
        if not had_lease:  # another one may have led meanwhile, and records came unseen
            logger.info("this process leads: it looks, and tells")
            self._seen, self._due = None, {}
            self._exporter.lag_age.doubt()
        await self._exporter.refresh()
        self.acted = self._exporter.reader.acted
        await self._look()
        self._send_due()

    async def close(self) -> None:
        """Stop sending, and give the lease back."""
        for task in self._sending.values():
            task.cancel()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)
        if self._session is not None:
            await self._session.close()
        if self.is_leading:
            with suppress(StoreError):
                await self._store.lead(self.token, 0, {})
        self.is_leading = False

    # The lease ------------------------------------------------------------------------------------

    async def _keep(self, changes: dict[str, bytes]) -> bool:
        """Write under the lease; False where it is not this process', and nothing was written."""
        began = _now()
        if await self._store.lead(self.token, limits.LEASE_MS, changes):
            self.is_leading, self._held_until = True, began + limits.LEASE_MS / 1000
            self.acted = self.acted.after(changes)
            return True
        self._lose("the lease ran out, or another process has it")
        return False

    def _lose(self, why: str) -> None:
        if self.is_leading:
            logger.warning("this process does not lead any more: %(why)s", {"why": why})
        self.is_leading = False
        for task in self._sending.values():
            task.cancel()

    @property
    def _has_lease(self) -> bool:
        """Whether the lease still holds by this process' own clock: it may have been stopped."""
        return self.is_leading and _now() < self._held_until

    # Looking --------------------------------------------------------------------------------------

    async def _look(self) -> None:
        exporter = self._exporter
        if self._commits == self._seen or not exporter.reader.views:
            return
        if self._age_ms > self._max_age_ms:
            return  # one receiver must not learn of what another one may not: looked at again
        look = Look(
            at_ms=self.acted.next_ms(exporter.now_ms),
            stream_ms=exporter.reader.stream_ms,
            seen_ms=self._stream_ms,
            commits=self._commits,
            looked_ms=self.acted.looked_ms,
            max_age_ms=self._max_age_ms,
        )
        records = await asyncio.to_thread(self._new_records, look)
        deliveries = [sent for record in records for sent in self._deliveries(record)]
        changes = stored(records, deliveries, look.at_ms) | forgotten(self.acted, limits.MAX_ACTED)
        if not await self._keep(changes):
            return
        self._seen, self._stream_ms = look.commits, look.stream_ms
        for record in records:
            past = " (of the past: nobody is told)" * record.is_past
            logged = {"key": record.key, "kind": record.kind, "sentence": record.sentence}
            logger.info(f"%(kind)s: %(sentence)s{past}", logged)

    @property
    def _commits(self) -> dict[int, int]:
        return {number: m.commit for number, m in self._exporter.reader.manifests.items()}

    @property
    def _age_ms(self) -> float:
        """How old what is shown is; no one knows where Kafka or what is stored cannot be read."""
        if self._exporter.ends.problem is not None or self._exporter.reader.damaged:
            return float("inf")
        return 1000 * max(self._exporter.lag_age.seconds.values(), default=0.0)

    def _new_records(self, look: Look) -> list[ActionRecord]:
        exporter = self._exporter
        reader, measures = exporter.reader, exporter.catalogue.experiment_measures
        require_users(self.settings, reader.keyed)
        known = stored_experiments(self.settings, measures, reader.views, exporter.units)
        experiments = listed(self.settings, known, self._readouts)
        return new_records(experiments, self.acted, look)

    def _deliveries(self, record: ActionRecord) -> list[Delivery]:
        if record.is_past:
            return []
        return [
            Delivery(
                record=record.key,
                hook=digest,
                place=hook.place,
                state=Told.DRY_RUN if hook.dry_run else Told.PENDING,
            )
            for digest, hook in self.hooks.items()
            if hook.wants(record.kind, record.experiment, record.owner)
        ]

    # Sending --------------------------------------------------------------------------------------

    def _send_due(self) -> None:
        for key, delivery in self.acted.deliveries.items():
            is_due = delivery.state is Told.PENDING and self._due.get(key, 0.0) <= _now()
            is_known = delivery.hook in self.hooks and delivery.record in self.acted.records
            if is_due and key not in self._sending and is_known:
                task = asyncio.create_task(self._deliver(delivery))
                self._sending[key] = task
                task.add_done_callback(partial(self._has_sent, key))

    def _has_sent(self, key: str, _: asyncio.Task[None]) -> None:
        self._sending.pop(key, None)

    async def _deliver(self, delivery: Delivery) -> None:
        record = self.acted.records[delivery.record]
        if not self._has_lease:
            return
        problem = await self._post(self.hooks[delivery.hook], record)
        after = _after(delivery, problem, self._exporter.now_ms)
        self._due[delivery.key] = _now() + self._wait(pause_after(after.attempts))
        try:
            if await self._keep(stored(deliveries=[after])) and not problem:
                self._due[delivery.key] = self._held_until  # until then what is read may be older
        except StoreError as error:  # it is sent again, under the same key
            lost = {"key": record.key, "why": str(error)}
            logger.warning("a delivery of %(key)s was not stored: %(why)s", lost)
            return
        logged = {"key": record.key, "place": delivery.place, "attempt": after.attempts}
        if not problem:
            logger.info("told %(place)s of %(key)s", logged)
        else:
            text = "%(place)s was not told of %(key)s, attempt %(attempt)d: %(why)s"
            logger.warning(text, {**logged, "why": problem})

    async def _post(self, hook: Hook, record: ActionRecord) -> str:
        """Why it was not delivered; nothing where it was."""
        try:
            made = request_of(hook, record, self._exporter.now_ms // 1000)
        except SettingsError as error:
            return str(error)
        try:
            status = await self._answer(made)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{type(error).__name__}: {hook.place}"  # its text may quote the URL
        return "" if 200 <= status < 300 else f"it answered {status}"

    async def _answer(self, request: HttpRequest) -> int:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=limits.ACT_TIMEOUT_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout)
        options: dict[str, Any] = {"data": request.body, "headers": request.headers}
        options |= {"allow_redirects": False, "proxy": proxy_of(request.url)}
        async with self._session.request(request.method, request.url, **options) as answer:
            return answer.status


def _now() -> float:
    return asyncio.get_running_loop().time()


def pause_after(attempts: int) -> float:
    """Seconds until the next attempt, without jitter.

    >>> [pause_after(attempts) for attempts in (1, 2, 3, 10, 11)]
    [1.0, 2.0, 4.0, 512.0, 900.0]
    """
    doubled = limits.ACT_BACKOFF_SECONDS * 2.0 ** min(attempts - 1, 20)
    return min(doubled, limits.ACT_PAUSE_SECONDS)


def _after(delivery: Delivery, problem: str, now_ms: int) -> Delivery:
    """What becomes of a delivery after an attempt."""
    attempts = delivery.attempts + 1
    state = Told.FAILED if attempts >= limits.ACT_ATTEMPTS else Told.PENDING
    if not problem:
        state = Told.DELIVERED
    ended_ms = 0 if state is Told.PENDING else now_ms
    return msgspec.structs.replace(
        delivery, state=state, attempts=attempts, ended_ms=ended_ms, problem=problem
    )
