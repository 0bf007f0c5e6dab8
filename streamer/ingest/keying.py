"""Whether topics are keyed by user: then all events of a user are on one partition number.

Users are counted, compared and joined within a partition. Where a topic is keyed by something else
one user counts as several, and no number of users is true.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamer._core import partition_of
from streamer.errors import BrokerError, StreamerError
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.model import Settings

PARTITIONERS: dict[str, Callable[[bytes, int], int]] = {
    "murmur2": partition_of,
    "crc32": lambda key, n: zlib.crc32(key) % n,
}
"""Java's default, and librdkafka's."""
Places = Iterable[tuple[bytes, int]]
"""Users with the partition numbers on which they were seen."""


@dataclass(frozen=True)
class Keying:
    """What a sample of a topic says. ``is_by_user``: None where it says too little; of ``users``
    that were looked at ``split`` are on several partition numbers."""

    is_by_user: bool | None
    users: int
    split: int


def keying_of(
    places: Mapping[str, Places], partitions: int, first_log: str = "impressions"
) -> dict[str, Keying]:
    """Log → whether its topic is keyed by user, by where users of a sample were seen.

    A topic is not, where more than ``limits.SPLIT_USERS`` of its users were seen on several
    partition numbers, or on another one than in ``first_log`` (if that is). It is, where a known
    partitioner puts nearly all of them where they were seen.

    >>> seen = [(user, 0) for user in (b"a", b"b", b"c")]
    >>> keying_of({"impressions": [*seen, (b"a", 1), (b"b", 1)]}, 2)["impressions"]
    Keying(is_by_user=False, users=3, split=2)
    """
    keying: dict[str, Keying] = {}
    first: dict[bytes, set[int]] = {}
    for log in sorted(places, key=lambda log: log != first_log):
        numbers = _numbers(places[log])
        split = sum(len(at | first.get(user, at)) > 1 for user, at in numbers.items())
        keying[log] = Keying(_judged(numbers, split, partitions), len(numbers), split)
        if log == first_log and keying[log].is_by_user is not False:
            first = numbers
    return keying


def _numbers(places: Places) -> dict[bytes, set[int]]:
    numbers: dict[bytes, set[int]] = defaultdict(set)
    for user, number in places:
        numbers[user].add(number)
    return dict(numbers)


def _judged(numbers: Mapping[bytes, set[int]], split: int, partitions: int) -> bool | None:
    if partitions == 1:
        return True
    few = max(1, limits.SPLIT_USERS * len(numbers))
    if split > few:
        return False
    if len(numbers) < limits.SAMPLED_USERS:
        return None
    for partitioner in PARTITIONERS.values():
        if sum(at != {partitioner(user, partitions)} for user, at in numbers.items()) <= few:
            return True
    return None


def topics_not_by_user(settings: Settings, keyed: Mapping[str, bool]) -> list[str]:
    """Names of the topics that are not keyed by user; none where ``kafka.keyed_by`` says they are.

    ``keyed``: what was found, by log.
    """
    if settings.kafka.keyed_by == "user":
        return []
    logs = settings.logs
    return [
        logs[name].topic for name, is_by_user in keyed.items() if name in logs and not is_by_user
    ]


def why_no_users(topics: Iterable[str]) -> str:
    """Why metrics of users are off, and what to do.

    >>> why_no_users(["clicks"])[:64]
    "metrics of users are off: not keyed by user: topic 'clicks'; key"
    """
    named = ", ".join(f"topic {name!r}" for name in topics)
    return (
        f"metrics of users are off: not keyed by user: {named}; key producers by user_id, with one "
        "partitioner, or let `streamer rekey` write correct topics, and start with another "
        'redis.prefix; or set kafka.keyed_by = "user" if all events of a user are on one partition '
        "number"
    )


def require_keyed(settings: Settings, keying: Mapping[str, Keying]) -> None:
    """Raise BrokerError where the settings ask for metrics of users, and topics are not keyed by
    user. ``keying``: what samples say, by log."""
    by_others = {name: each for name, each in keying.items() if each.is_by_user is False}
    asking = " and ".join(Catalogue(settings).asks_for_users)
    if not by_others or not asking or settings.kafka.keyed_by == "user":
        return
    topics = ", ".join(
        f"topic {settings.logs[name].topic!r} (of {each.users} users in its last records "
        f"{each.split} are on several partition numbers, or on another one than in the impressions)"
        for name, each in by_others.items()
    )
    raise BrokerError(
        f"not keyed by user: {topics}; {asking} would count one user as several; let `streamer "
        'rekey` write correct topics; or set kafka.keyed_by = "user" if all events of a user are '
        f"on one partition number; or remove {asking}, or hide metrics of users by metrics.hide"
    )


def require_users(settings: Settings, keyed: Mapping[str, bool]) -> None:
    """Raise StreamerError where metrics of users are off."""
    if topics := topics_not_by_user(settings, keyed):
        raise StreamerError(why_no_users(topics))
