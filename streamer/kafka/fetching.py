"""What the consumers of workers have in common: how they fetch, and where their fetches stand."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from streamer.kafka.chunk import Chunk, chunk_of
from streamer.kafka.connections import Connections
from streamer.kafka.consumers import Progress
from streamer.kafka.damaged_batches import DamagedBatches
from streamer.kafka.raw_batches import keep_batches_raw, raw_records
from streamer.settings.logs import Log

FETCH_MAX_WAIT_MS = 200
_METADATA_MAX_AGE_MS = 10_000
"""How soon it is seen that a topic which was missing is there again."""
_FETCH_BYTES = 4 * 1024 * 1024
"""Of one partition in one fetch: about 20,000 events of 200 bytes."""
_FETCH = 1
"""The fetch request's number in Kafka's protocol."""
_MOVED = frozenset({3, 6, 74, 75, 100, 103})
"""Its error codes: topic or partition unknown, another leader or its epoch, another topic id."""
_DOUBTED = -1
"""The epoch of what is fetched from a log that may have changed."""


def consumer_options() -> dict[str, Any]:
    """Arguments of aiokafka's consumer: nothing aborted, raw batches, no reset of offsets behind
    our back."""
    return {
        **({"key_deserializer": raw_records} if keep_batches_raw() else {}),
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        "max_poll_records": None,
        "max_partition_fetch_bytes": _FETCH_BYTES,
        "fetch_max_wait_ms": FETCH_MAX_WAIT_MS,
        "metadata_max_age_ms": _METADATA_MAX_AGE_MS,
    }


class Fetches:
    """Where the fetches of one consumer stand, and what they are answered; used in the consumer's
    event loop only, but for ``take_doubted`` and ``problems``. ``logs``: the logs by the names that
    its cluster knows them by, as do all topic-partitions here.

    A consumer knows a topic by its name: once a new one of that name has grown past our position,
    fetches go on as if nothing had happened. Before that one has failed, unless the new topic grew
    so far between two fetches: that is noticed only when the partition is claimed again.
    """

    def __init__(self, logs: Mapping[str, Log]) -> None:
        self._logs = logs
        self._epochs: dict[TopicPartition, int] = {}
        self._handed_out: dict[TopicPartition, int] = {}
        self._asked_at: dict[TopicPartition, float] = {}
        self._doubted: deque[TopicPartition] = deque()
        self._damaged = DamagedBatches()
        self._connections: Connections | None = None
        self._answered_at = -math.inf

    def watch(self, client: Any) -> None:
        """Look at what an aiokafka client's fetches are answered, and bound its requests in
        time."""
        self._connections = Connections(client)
        send = client.send

        async def watched(node_id: int, request: Any, **kwargs: Any) -> Any:
            if request.API_KEY != _FETCH:
                return await send(node_id, request, **kwargs)
            nothing = await self._damaged.hold_back(request)
            if nothing is not None:
                return nothing
            return await self._fetch(send, node_id, request)

        client.send = watched

    async def _fetch(self, send: Any, node_id: int, request: Any) -> Any:
        asked_at = time.monotonic()
        try:
            response = await send(node_id, request)
            is_damaged = self._damaged.examine(request, response)
        except KafkaError:
            self.doubt(TopicPartition(t, p) for t, asked in request.topics for p, *_ in asked)
            raise
        if is_damaged and self._connections is not None:
            self._connections.close(node_id)
        self._answered_at = time.monotonic()
        codes = {
            TopicPartition(topic, partition): code
            for topic, partitions in response.topics
            for partition, code, *_ in partitions
        }
        self._asked_at.update((tp, asked_at) for tp, code in codes.items() if not code)
        self.doubt(tp for tp, code in codes.items() if code in _MOVED)
        return response

    def problems(self) -> list[str]:
        """What keeps records from being fetched."""
        silent = [] if self._connections is None else self._connections.problems()
        return silent + [
            f"{self._logs[tp.topic].topic}/{tp.partition}: {text}"
            for tp, text in sorted(self._damaged.problems().items())
        ]

    def doubt(self, tps: Iterable[TopicPartition]) -> None:
        """The log may not be the one that was read: what is fetched from now on counts only after
        the partition has been recovered again."""
        for tp in tps:
            if self._epochs.get(tp, _DOUBTED) != _DOUBTED:
                self._epochs[tp] = _DOUBTED
                self._doubted.append(tp)

    def lose(self, tps: Iterable[TopicPartition]) -> None:
        """Nothing is known of these logs any more: they are recovered, whether they were read or
        not."""
        for tp in tps:
            self._epochs[tp] = _DOUBTED
            self._doubted.append(tp)

    def silent_seconds(self, since: float) -> float:
        """For how long no fetch was answered, by the monotonic clock; since then at most."""
        return time.monotonic() - max(since, self._answered_at)

    def take_doubted(self) -> set[TopicPartition]:
        """Those in doubt since the last call; other threads may call this."""
        return {self._doubted.popleft() for _ in range(len(self._doubted))}

    def start_at(self, consumer: Any, offsets: Mapping[TopicPartition, int], epoch: int) -> None:
        """Seek: what is fetched from then on carries the epoch."""
        for tp, offset in offsets.items():
            consumer.seek(tp, offset)
            self._handed_out[tp] = offset
            self._epochs[tp] = epoch
            self._asked_at.pop(tp, None)
            self._damaged.forget(tp)

    def chunks(self, fetched: Mapping[TopicPartition, Sequence[Any]]) -> dict[Any, Chunk]:
        """What was fetched, as chunks that are handed out now."""
        chunks = {}
        for tp, batch in fetched.items():
            if batch:
                log, epoch = self._logs[tp.topic], self._epochs.get(tp, 0)
                chunks[tp] = chunk_of(log.topic, tp.partition, epoch, log.name, batch)
                chunks[tp].received_at = time.monotonic()
                self._handed_out[tp] = chunks[tp].end_offset
        return chunks

    def progress(self, consumer: Any) -> dict[TopicPartition, Progress]:
        """Of each assigned partition, as of the last fetch."""
        result: dict[TopicPartition, Progress] = {}
        subscription = consumer._subscription.subscription
        assignment = subscription.assignment if subscription else None
        if assignment is None:
            return result
        for tp in assignment.tps:
            state = assignment.state_value(tp)
            end = state.lso if state.lso is not None and state.lso >= 0 else state.highwater
            is_known = end is not None and state.has_valid_position and tp in self._handed_out
            behind = max(0, end - state.position) if is_known else None
            position = state.position if is_known else 0
            asked_at = self._asked_at.get(tp, -math.inf)
            result[tp] = Progress(self._handed_out.get(tp, 0), behind, position, asked_at)
        return result


def ignore(consumer: Any, tps: Iterable[TopicPartition]) -> None:
    """Let a consumer fetch nothing of these: one without a position would hold up the others."""
    for tp in consumer.assignment().intersection(tps):
        consumer.seek(tp, 0)
        consumer.pause(tp)


def require_fetching(consumer: Any) -> None:
    """Raise what has ended a consumer's fetches for good: aiokafka only logs it, and goes on
    without records."""
    task = consumer._fetcher.error_future
    if task.done() and not task.cancelled() and task.exception() is not None:
        raise task.exception()


async def bounds_of(
    consumer: Any, tps: Sequence[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Start and end of logs, asked from the broker."""
    starts = await consumer.beginning_offsets(tps)
    ends = await consumer.end_offsets(tps)
    return {tp: (starts[tp], ends[tp]) for tp in tps}
