"""From what is stored to a partition in memory: claim, load, find the place in its logs.

Where stored bytes are damaged or gone, the partition is counted again from Kafka: what its logs
still hold is exact, what they no longer hold is declared lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from aiokafka.structs import TopicPartition

from streamer.config import Settings
from streamer.errors import CodecError, DamagedError, StoreError
from streamer.metrics.catalogue import Catalogue
from streamer.partition import Partition
from streamer.store.base import Store, Stored
from streamer.store.journal import Journal
from streamer.store.manifest import decode
from streamer.store.restore import adopt, start_over
from streamer.witnesses import Records, find_place, find_start

logger = logging.getLogger("streamer")
_SECOND_LOOK_SECONDS = 1.0
"""Damage counts when it is seen twice."""


@dataclass(frozen=True)
class Recovered:
    """A partition that can go on. ``dirty``: something was declared that no commit holds yet."""

    partition: Partition
    journal: Journal
    dirty: bool


async def recover(
    settings: Settings,
    catalogue: Catalogue,
    store: Store,
    records: Records,
    kinds: Mapping[TopicPartition, str],
    number: int,
) -> Recovered:
    """Claim a partition and load it. StoreError, BrokerError, and CodecError where another version
    wrote it: to be tried again."""
    claim, stored = await store.claim(number)
    for _ in range(2):
        partition = Partition(settings, catalogue)
        try:
            journal = await adopt(store, number, partition, claim, stored)
        except DamagedError as error:
            damage = error
            await asyncio.sleep(_SECOND_LOOK_SECONDS)
            stored = await store.read(number)
            continue
        return Recovered(partition, journal, await find_place(records, kinds, partition, journal))
    if await store.standing([number]) != [(claim, stored.position)]:
        raise StoreError(f"partition {number} was claimed by another worker while it was loaded")
    logger.error(
        "partition %d: %s; it is counted again from Kafka. If its logs do not hold all that was "
        "counted, and Redis has a backup, stop the workers and restore that instead; "
        "docs/operations.md says more under damaged state",
        number,
        damage,
    )
    partition = Partition(settings, catalogue)
    journal = start_over(partition, claim, stored)
    await find_start(records, kinds, partition, _first_known(stored))
    return Recovered(partition, journal, True)


def _first_known(stored: Stored) -> dict[str, int]:
    """Kind → the offset at which reading had begun, by the manifest, if it can be read."""
    try:
        topics = decode(stored.manifest).topics
    except CodecError:
        return {}
    return {kind: topic.first_offset for kind, topic in topics.items()}
