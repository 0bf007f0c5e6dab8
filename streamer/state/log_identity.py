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
_TWO_WAYS = "read the former again, or start anew with another redis.prefix and another kafka.group"


class LogIdentityError(SettingsError):
    """It cannot be told whether a topic was counted already."""


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
        if same[name] is None and name in stored and name not in claimed:
            was = stored[name].cluster_id
            if was and cluster_id and any(i == ("", plain) for i in ours.values()):
                raise LogIdentityError(
                    f"topic {name!r} is of another Kafka cluster than it was ({cluster_id}, was "
                    f"{was}), and one that has a topic of the same name is away: it may be the one "
                    "that was counted; wait until it can be asked"
                )
            same[name] = name  # the cluster is a new one of that name, or does not say who it is
    found = {was: name for name, was in same.items() if was is not None}
    away = [log for name, log in logs.items() if not ours[name][0]]
    if stored and not found:
        raise LogIdentityError(
            f"none of the topics that were counted ({', '.join(stored)}) is read any more: those "
            f"of the settings ({', '.join(logs)}) may hold the same events, which would count "
            f"twice; {_what_to_do(away)}"
        )
    for name, log in logs.items():
        if same[name] is None:
            alike = (was for was, t in stored.items() if t.topic == log.plain)
            _require_other(log, alike, found, _what_to_do([log] if log in away else []))
    return found


def _what_to_do(away: Sequence[Log]) -> str:
    """``away``: logs of clusters that do not say who they are."""
    if not away:
        return _TWO_WAYS
    names = ", ".join(repr(log.name) for log in away)
    return f"the cluster of {names} does not say who it is; if it is away, wait; else {_TWO_WAYS}"


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
    taken = set(names.values())
    for was, topic in manifest.topics.items():
        if was not in names and was in taken:
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
