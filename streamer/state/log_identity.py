"""Which stored log is which of those that are read: by cluster id and topic, whatever its name.

A topic that moves from ``[kafka.topics]`` to ``[[sources]]``, or whose cluster gets a name, goes on
where it stood. Counting it again from its beginning would double it.

Topics in place of patterns, by the number of partitions that the stored state has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from streamer.errors import SettingsError, StreamerError
from streamer.kafka.patterns import has_patterns, with_topics
from streamer.settings.logs import ClusterIds, Log
from streamer.settings.model import Settings
from streamer.state.contents import decode_contents
from streamer.state.manifest import Manifest
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore
from streamer.state.topics import TopicState

T = TypeVar("T")
_WAYS = (
    "start anew with another redis.prefix and another kafka.group, or delete what is stored: "
    "streamer run --take-over"
)


class LogIdentityError(SettingsError):
    """The stored state is that of another system, or it cannot be told whether a topic was counted
    already."""


def group_of(settings: Settings, cluster_ids: ClusterIds) -> str:
    """The consumer group whose workers divide the partitions among them: name and cluster id."""
    return f"{settings.kafka.group}@{cluster_ids.get(None, '')}"


def require_group(prefix: str, stored: str | None, ours: str) -> None:
    """LogIdentityError where a prefix is that of another consumer group: Kafka would assign each
    partition to workers of both."""
    if stored is None or stored == ours:
        return
    (was, was_in), (name, place) = stored.rsplit("@", 1), ours.rsplit("@", 1)
    if was != name or (was_in and place and was_in != place):
        raise LogIdentityError(
            f"redis.prefix {prefix!r} is that of the consumer group {stored}, not of {ours}: set "
            f"kafka.group back, {_WAYS} (it keeps the counts of topics that are read on)"
        )


def continued_as(
    stored: Mapping[str, TopicState], logs: Mapping[str, Log], cluster_ids: ClusterIds
) -> dict[str, str]:
    """Stored name → the name that settings have for the same log, of the logs that are read on.

    LogIdentityError where a topic is new and one of the same name is not read any more, or none of
    those that were counted is: they may hold the same events.
    """
    require_distinct(logs, cluster_ids)
    by_identity = {(t.cluster_id, t.topic): name for name, t in stored.items() if t.cluster_id}
    ours = {name: (cluster_ids.get(log.cluster, ""), log.plain) for name, log in logs.items()}
    same = {name: by_identity.get(identity) for name, identity in ours.items()}
    claimed = {name for name in same.values() if name is not None}
    for name, (cluster_id, plain) in ours.items():
        was = stored.get(name) if same[name] is None and name not in claimed else None
        if was and was.topic == plain and not (was.cluster_id and cluster_id):
            same[name] = name  # a cluster does not say who it is
    found = {was: name for name, was in same.items() if was is not None}
    away = [log for name, log in logs.items() if not ours[name][0]]
    if stored and not found:
        raise LogIdentityError(
            "the state is another system's: none of the topics that were counted "
            f"({_listed((t.cluster_id, t.topic) for t in stored.values())}) is read by these "
            f"settings ({_listed(ours.values())}), whose events would be counted on top; "
            f"{_what_to_do(away)}"
        )
    for name, log in logs.items():
        if same[name] is None:
            alike = (was for was, t in stored.items() if t.topic == log.plain)
            _require_other(log, alike, found, _what_to_do([log] if log in away else []))
    return found


def _listed(identities: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{topic}@{cluster_id}" for cluster_id, topic in identities)


def _what_to_do(away: Sequence[Log]) -> str:
    """``away``: logs of clusters that do not say who they are."""
    ways = f"read the former again, {_WAYS}"
    if not away:
        return ways
    names = ", ".join(repr(log.name) for log in away)
    return f"the cluster of {names} does not say who it is; if it is away, wait; else {ways}"


def require_distinct(logs: Mapping[str, Log], cluster_ids: ClusterIds) -> None:
    """LogIdentityError where two logs are one topic, in a cluster that has two names."""
    first: dict[tuple[str, str], str] = {}
    for name, log in logs.items():
        if cluster_id := cluster_ids.get(log.cluster):
            other = first.setdefault((cluster_id, log.plain), name)
            if other != name:
                raise LogIdentityError(
                    f"{other!r} and {name!r} are one topic, as both clusters are one "
                    f"({cluster_id}): its events would count twice; remove one from [[sources]]"
                )


def _require_other(
    log: Log, alike: Iterable[str], continued: Mapping[str, str], what_to_do: str
) -> None:
    for was in alike:
        if was not in continued:
            raise LogIdentityError(
                f"topic {log.name!r} is new and {was!r}, which was counted, is not read any more: "
                "they have one name and may hold the same events, which would count twice; "
                f"{what_to_do}"
            )


def renamed(manifest: Manifest, names: Mapping[str, str]) -> Manifest:
    """A manifest whose logs have new names (``new_names``)."""
    if not names:
        return manifest
    contents = decode_contents(manifest.contents)
    contents = msgspec.structs.replace(contents, fields=_named(contents.fields, names))
    return msgspec.structs.replace(
        manifest,
        topics=_named(manifest.topics, names),
        contents=contents.encode(),
        other_fields=_named(manifest.other_fields, names),
    )


def new_names(
    manifest: Manifest, logs: Mapping[str, Log], cluster_ids: ClusterIds
) -> dict[str, str]:
    """Stored name → the one that settings have for it, of the logs that get another. One that is
    not read any more, and whose name another log gets, is called by the id of its cluster.

    LogIdentityError as ``continued_as`` raises it.
    """
    names = continued_as(manifest.topics, logs, cluster_ids)
    for was, topic in manifest.topics.items():
        if was not in names and was in logs:
            names[was] = f"{topic.topic}@{topic.cluster_id}"
    return {was: name for was, name in names.items() if was != name}


def _named(by_log: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    return {names.get(was, was): value for was, value in by_log.items()}


async def resolve(
    settings: Settings, *, may_be_away: bool = True
) -> tuple[Settings, dict[str, str]]:
    """The settings with topics in place of patterns; and what fits one but is not read, with why.

    Topics that were counted stand for those of a cluster that cannot be asked, which is a
    BrokerError with ``may_be_away=False``. So is a pattern that fits no topic.
    """
    left_out: dict[str, str] = {}
    if not has_patterns(settings):
        return settings, left_out
    store, stored = RedisStore(settings.redis), None
    counted: dict[str, str] | None = {} if may_be_away else None
    try:
        with contextlib.suppress(StreamerError):  # whoever needs it says so
            stored = await store.partitions()
            if counted is not None:
                for manifest in (await manifests_of(store, stored or 0))[0].values():
                    counted |= {log: topic.topic for log, topic in manifest.topics.items()}
    finally:
        await store.close()
    return await with_topics(settings, stored, left_out.__setitem__, counted), left_out
