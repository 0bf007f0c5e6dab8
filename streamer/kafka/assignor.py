"""Which worker gets which partitions: evenly, and each keeps what it had.

A partition number of all four topics goes to one worker, because feedback joins impressions there.
Members send the numbers that they have with every join; the group's leader decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

_VERSION = 0


class StickyNumbers(AbstractPartitionAssignor):  # type: ignore[misc]  # untyped there
    """The assignor of one consumer; it remembers what the consumer was assigned last."""

    name = "streamer-sticky"

    def __init__(self) -> None:
        self.numbers: frozenset[int] = frozenset()
        """The partition numbers of the last assignment."""

    def metadata(self, topics: Iterable[str]) -> Any:
        """What this member says when it joins: its topics, and the numbers that it has."""
        had = msgspec.msgpack.encode(sorted(self.numbers))
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), had)

    def on_assignment(self, assignment: Any) -> None:
        """Remember the assignment."""
        self.numbers = frozenset(n for _, numbers in assignment.assignment for n in numbers)

    def assign(self, cluster: ClusterMetadata, members: Mapping[str, Any]) -> dict[str, Any]:
        """Member id → assignment, for all members; called in the leader only."""
        topics = sorted({topic for m in members.values() for topic in m.subscription})
        existing = {topic: cluster.partitions_for_topic(topic) or set() for topic in topics}
        numbers = set().union(*existing.values())
        had = {member: _numbers_of(metadata.user_data) for member, metadata in members.items()}
        return {
            member: ConsumerProtocolMemberAssignment(
                _VERSION,
                [(topic, sorted(share & existing[topic])) for topic in topics],
                b"",
            )
            for member, share in shares(numbers, had).items()
        }


def _numbers_of(user_data: bytes | None) -> set[int]:
    """The numbers that a member says it has; none where it says nothing that can be read."""
    try:
        return msgspec.msgpack.decode(user_data or b"\x90", type=set[int])
    except msgspec.MsgspecError:
        return set()


def shares(numbers: set[int], had: Mapping[str, set[int]]) -> dict[str, set[int]]:
    """Member → its numbers: every number once, shares that differ by one at most, and as few moves
    as that allows.

    >>> shares({0, 1, 2, 3}, {"a": {0, 1}, "b": {2, 3}, "c": set()})
    {'a': {0, 1}, 'b': {2}, 'c': {3}}
    >>> shares({0, 1, 2, 3}, {"a": {0, 1}, "c": {3}})
    {'a': {0, 1}, 'c': {2, 3}}
    """
    free = set(numbers)
    result: dict[str, set[int]] = {}
    least, larger = divmod(len(numbers), len(had))
    for member in sorted(had, key=lambda m: (-len(had[m] & numbers), m)):
        size = least + (larger > 0)
        kept = set(sorted(had[member] & free)[:size])
        larger -= len(kept) > least
        free -= kept
        result[member] = kept
    for partition in sorted(free):
        member = min(result, key=lambda m: (len(result[m]), m))
        result[member].add(partition)
    return dict(sorted(result.items()))
