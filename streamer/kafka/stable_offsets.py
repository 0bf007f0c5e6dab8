"""Committed offsets of a group, once no transaction can change them any more.

aiokafka asks for offsets as they are, also while those of a transaction that has just ended are
being taken over. This asks Kafka (2.5 or newer) to refuse the answer until then; older brokers
are asked as aiokafka does.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.commit import OffsetFetchRequest_v3
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

_API_KEY = 9
_FIRST_STABLE = 7
_RETRIED = frozenset({14, 15, 16, 88})
"""Error codes: the coordinator is loading, unknown, elsewhere; offsets are not stable yet."""
_NONE = -1
_BACK_OFF_SECONDS = 0.05


class _StableResponse(Response):  # type: ignore[misc]  # untyped there
    API_KEY = _API_KEY
    API_VERSION = _FIRST_STABLE
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class _StableRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = _API_KEY
    API_VERSION = _FIRST_STABLE
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _StableResponse
    SCHEMA = Schema(
        ("group", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(Int32)),
                ("tags", TaggedFields),
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


class _Ask(Request[OffsetFetchRequest_v3 | _StableRequest]):  # type: ignore[misc]
    API_KEY = _API_KEY

    def __init__(self, group: str, partitions: dict[str, list[int]]) -> None:
        self._group, self._partitions = group, partitions

    def build(self, request_struct_class: Any) -> Any:
        """The request in the newest form that both sides know."""
        if request_struct_class is _StableRequest:
            named: list[tuple[str, list[int], dict[int, bytes]]] = [
                (topic, some, {}) for topic, some in self._partitions.items()
            ]
            return _StableRequest(self._group, named, True, {})
        return request_struct_class(self._group, list(self._partitions.items()))


async def stable_offsets(
    consumer: AIOKafkaConsumer, group: str, tps: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where the group goes on, of those partitions for which it has committed something.

    KafkaError where the group's coordinator refuses.
    """
    partitions: dict[str, list[int]] = defaultdict(list)
    for tp in tps:
        partitions[tp.topic].append(tp.partition)
    while True:
        await consumer._coordinator.ensure_coordinator_known()
        response = await consumer._coordinator._send_req(_Ask(group, dict(partitions)))
        offsets, errors = {}, {response.error_code} - {0}
        for topic, answers, *_ in response.topics:
            for partition, offset, *_, code in (_plain(answer) for answer in answers):
                errors |= {code} - {0}
                if offset != _NONE:
                    offsets[TopicPartition(topic, partition)] = offset
        if not errors:
            return offsets
        if refused := errors - _RETRIED:
            raise for_code(min(refused))(f"offsets of group {group!r}")
        if 16 in errors:
            consumer._coordinator.coordinator_dead()
        await asyncio.sleep(_BACK_OFF_SECONDS)


def _plain(answer: tuple[Any, ...]) -> tuple[int, int, int]:
    """Partition, offset and error code, in either form."""
    number, offset, *others = answer
    code = next(x for x in reversed(others) if isinstance(x, int))
    return number, offset, code
