"""Gets the schemas that partitions wait for. Other partitions go on meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from streamer._core import PanicException
from streamer.errors import StreamerError
from streamer.kafka.registry import SchemaText, schemas_of
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.worker_report import WorkerReport
from streamer.worker.partition_task import PartitionTask

logger = logging.getLogger("streamer")
SetSchema = Callable[[str, int, SchemaText | None], None]
"""Takes a log, the id of a schema, and its texts; ValueError where it cannot be used."""


class SchemaFinder:
    """Asks registries until they answer; ``when_found`` is called after each schema."""

    def __init__(
        self, settings: Settings, report: WorkerReport, when_found: Callable[[], None]
    ) -> None:
        self._schema_of = schemas_of(settings)
        self._report, self._when_found = report, when_found
        self._searches: set[asyncio.Task[None]] = set()

    def find(self, task: PartitionTask) -> None:
        """Get the schema that a partition waits for, in a task of its own."""
        search = asyncio.create_task(self._find(task))
        self._searches.add(search)
        search.add_done_callback(self._searches.discard)

    async def _find(self, task: PartitionTask) -> None:
        partition, wanted = task.partition, task.unknown_schema
        assert partition is not None
        assert wanted is not None
        delay_seconds, problems, said = 0.1, self._report.problems, ""
        while task.partition is partition and task.unknown_schema == wanted:
            try:
                schema = await asyncio.to_thread(self._schema_of, *wanted)
            except Exception as error:  # whatever it is: nobody else would ask
                said_by_us = isinstance(error, StreamerError)
                why = str(error) if said_by_us else f"{type(error).__name__}: {error}"
                text = f"waits for a schema of {wanted[0]}: {why}"
                if text != said:
                    logger.warning("partition %d %s", task.number, text)
                problems[task.number] = said = text
                await asyncio.sleep(delay_seconds)
                delay_seconds = min(2 * delay_seconds, limits.RETRY_SECONDS_MAX)
                continue
            async with task.lock:
                if task.partition is partition:
                    await make_known(partition.set_schema, *wanted, schema)
                    task.unknown_schema = None
            break
        if said and problems.get(task.number) == said:
            problems.pop(task.number)
            logger.warning("partition %d goes on", task.number)
        self._when_found()


async def make_known(
    set_schema: SetSchema, log: str, number: int, schema: SchemaText | None
) -> None:
    """Make a schema known in a thread, or log why its records are rejected."""
    why = "the registry does not have it, and registry.unknown is 'reject'"
    try:
        await asyncio.to_thread(set_schema, log, number, schema)
    except (Exception, PanicException) as error:  # the partition must not wait for ever
        schema, why = None, f"it cannot be used: {error}"
    if schema is None:
        logger.error("%s: records of schema %d are rejected: %s", log, number, why)
