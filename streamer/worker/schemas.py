"""Gets the schemas that partitions wait for. Other partitions go on meanwhile.

A registry that does not answer is asked until it does. A schema that it does not have is waited for
as long as ``registry.unknown_after`` says; then its records are rejected, and the registry is asked
again in the background.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from streamer._core import PanicException
from streamer.encoding.schema_ids import id_text
from streamer.errors import SchemaMissingError, StreamerError
from streamer.kafka.registry import SchemaText, registry_of
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.worker_report import WorkerReport
from streamer.worker.partition_task import PartitionTask

logger = logging.getLogger("streamer")
SetSchema = Callable[[str, int, SchemaText | None], None]
"""Takes a log, the id of a schema, and its texts; ValueError where it cannot be used."""
Wanted = tuple[str, int]
"""A log, and the id of a schema."""
_NAMED = 3
"""Ids that a message names."""


@dataclass
class Answers:
    """What is known of some schemas of a log: texts, or that the records are rejected; ``waits``:
    why others are waited for, in words."""

    schemas: dict[int, SchemaText | None] = field(default_factory=dict)
    waits: dict[int, str] = field(default_factory=dict)


class SchemaLookup:
    """Asks registries, for all partitions of a process; several schemas at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(limits.REGISTRY_REQUESTS, "registry")
        self._missing_since: dict[Wanted, float] = {}
        self._impatient_until: dict[str, float] = {}
        """Log → until when nothing of it is waited for: it has been, in vain."""
        self._ask_again_at = 0.0
        self.refused: dict[Wanted, str] = {}
        """Schemas that are not there, with the reason: the last ones."""

    async def answers(self, log: str, ids: Sequence[int]) -> Answers:
        """What the registry of a log says of some schemas."""
        found = Answers()
        loop = asyncio.get_running_loop()
        new = [number for number in ids if (log, number) not in self.refused]
        asked = [loop.run_in_executor(self._threads, self._schema, log, number) for number in new]
        for number, answer in zip(new, await asyncio.gather(*asked), strict=True):
            if isinstance(answer, SchemaMissingError):
                self._judge_missing(log, number, answer, found)
            elif isinstance(answer, Exception):
                said_by_us = isinstance(answer, StreamerError)
                named = f"{type(answer).__name__}: {answer}"
                found.waits[number] = str(answer) if said_by_us else named
            else:
                self._missing_since.pop((log, number), None)
                found.schemas[number] = answer
        found.schemas.update((n, None) for n in ids if (log, n) in self.refused)
        return found

    def _schema(self, log: str, number: int) -> SchemaText | Exception | None:
        try:
            registry = registry_of(self._settings, log)
            return None if registry is None else registry.schema(number)
        except Exception as error:  # whatever it is: nobody else would ask
            return error

    def _judge_missing(
        self, log: str, number: int, answer: SchemaMissingError, found: Answers
    ) -> None:
        source = self._settings.read_sources[self._settings.logs[log].source]
        assert source.schemas is not None
        patience, now = source.schemas.unknown_after_seconds(), time.monotonic()
        waited = now - self._missing_since.setdefault((log, number), now)
        if waited < patience and now >= self._impatient_until.get(log, 0.0):
            left = f"in {patience - waited:.0f} s its records are rejected (registry.unknown_after)"
            found.waits[number] = f"{answer}; {left}"
            return
        if waited >= patience:
            self._impatient_until[log] = now + max(patience, limits.IMPATIENT_SECONDS)
        self._missing_since.pop((log, number))
        while len(self.refused) >= limits.MAX_REFUSED_SCHEMAS:
            del self.refused[next(iter(self.refused))]
        self.refused[log, number] = str(answer)

    @property
    def is_due(self) -> bool:
        """Whether it is time to ask again for the schemas that were not there."""
        return bool(self.refused) and time.monotonic() >= self._ask_again_at

    async def found_since(self) -> dict[Wanted, SchemaText]:
        """Those of the refused schemas that the registry has by now."""
        self._ask_again_at = time.monotonic() + limits.ASK_AGAIN_SECONDS
        loop = asyncio.get_running_loop()
        asked = list(self.refused)
        jobs = [loop.run_in_executor(self._threads, self._schema, *wanted) for wanted in asked]
        answers = zip(asked, await asyncio.gather(*jobs), strict=True)
        found = {wanted: text for wanted, text in answers if isinstance(text, tuple)}
        for wanted in found:
            self.refused.pop(wanted, None)
        return found


class SchemaFinder:
    """Gives partitions the schemas that they wait for; ``tasks``: those of this worker now;
    ``when_found`` is called after each step."""

    def __init__(
        self,
        settings: Settings,
        report: WorkerReport,
        tasks: Callable[[], Iterable[PartitionTask]],
        when_found: Callable[[], None],
    ) -> None:
        self.lookup = SchemaLookup(settings)
        self._report, self._tasks, self._when_found = report, tasks, when_found
        self._jobs: set[asyncio.Task[None]] = set()
        self._is_asking = False

    def find(self, task: PartitionTask) -> None:
        """Get the schemas that a partition waits for, in a task of its own."""
        self._start(self._find(task))

    def ask_again(self) -> None:
        """Ask again for the schemas that were not there, now and then, in a task of its own."""
        if self.lookup.is_due and not self._is_asking:
            self._is_asking = True
            self._start(self._ask_again())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        job = asyncio.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _find(self, task: PartitionTask) -> None:
        partition, wanted = task.partition, task.unknown_schemas
        assert partition is not None
        assert wanted is not None
        log, ids = wanted
        delay_seconds, problems, said = 0.1, self._report.problems, ""
        while task.partition is partition and task.unknown_schemas == wanted:
            found = await self.lookup.answers(log, ids)
            async with task.lock:
                if task.partition is not partition:
                    break
                await make_known(partition.set_schema, log, found.schemas, self.lookup.refused)
                if ids[0] not in found.waits:
                    task.unknown_schemas = None
                    break
            text = f"waits for schema {id_text(ids[0])} of {log}: {found.waits[ids[0]]}"
            if not said:
                logger.warning(
                    "partition %(partition)d %(why)s", {"partition": task.number, "why": text}
                )
            problems[task.number] = said = text
            await asyncio.sleep(delay_seconds)
            delay_seconds = min(2 * delay_seconds, limits.RETRY_SECONDS_MAX)
        if said and problems.get(task.number) == said:
            problems.pop(task.number)
            logger.info("partition %(partition)d goes on", {"partition": task.number})
        self._when_found()

    async def _ask_again(self) -> None:
        try:
            for (log, number), schema in (await self.lookup.found_since()).items():
                named = {"log": log, "schema": id_text(number)}
                logger.info("%(log)s: the registry has schema %(schema)s by now", named)
                for task in list(self._tasks()):
                    async with task.lock:
                        if task.partition is not None:
                            await make_known(task.partition.set_schema, log, {number: schema}, {})
        finally:
            self._is_asking = False


async def make_known(
    set_schema: SetSchema,
    log: str,
    schemas: Mapping[int, SchemaText | None],
    reasons: Mapping[Wanted, str],
) -> None:
    """Make schemas known in a thread, and log of which of them records are rejected, and why."""
    refused = await asyncio.to_thread(_set_all, set_schema, log, schemas)
    refused |= {n: reasons.get((log, n), "") for n, text in schemas.items() if text is None}
    if refused:
        why = next(iter(refused.values()))
        ids = ", ".join(map(id_text, list(refused)[:_NAMED]))
        more = f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        plural = "s" if len(refused) > 1 else ""
        logger.error("%s: records of schema%s %s%s are rejected: %s", log, plural, ids, more, why)


def _set_all(
    set_schema: SetSchema, log: str, schemas: Mapping[int, SchemaText | None]
) -> dict[int, str]:
    """Set schemas; returns those that cannot be used, with the reason."""
    unusable = {}
    for number, schema in schemas.items():
        try:
            set_schema(log, number, schema)
        except (Exception, PanicException) as error:  # the partition must not wait for ever
            unusable[number] = f"it cannot be used: {error}"
    return unusable
