"""Which stored log is which of those that are read: by cluster id and topic, whatever its name.

A topic that moves from ``[kafka.topics]`` to ``[[sources]]``, or whose cluster gets a name, goes on
where it stood. Counting it again from its beginning would double it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from streamer.errors import SettingsError
from streamer.settings.logs import ClusterIds, Log
from streamer.state.contents import Contents, decode_contents
from streamer.state.manifest import Manifest
from streamer.state.topics import TopicState

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
    same = {
        log.name: by_identity.get((cluster_ids.get(log.cluster, ""), log.plain))
        for log in logs.values()
    }
    claimed = {name for name in same.values() if name is not None}
    for name in logs:
        if same[name] is None and name in stored and name not in claimed:
            same[name] = name
    found = {was: name for name, was in same.items() if was is not None}
    if stored and not found:
        raise LogIdentityError(
            f"none of the topics that were counted ({', '.join(stored)}) is read any more: those "
            f"of the settings ({', '.join(logs)}) may hold the same events, which would count "
            "twice; "
            f"{_TWO_WAYS}"
        )
    for name, log in logs.items():
        if same[name] is None:
            _require_other(log, (was for was, t in stored.items() if t.topic == log.plain), found)
    return found


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


def _require_other(log: Log, alike: Iterable[str], continued: Mapping[str, str]) -> None:
    for was in alike:
        if was not in continued:
            raise LogIdentityError(
                f"topic {log.name!r} is new and {was!r}, which was counted, is not read any more: "
                "they have one name and may hold the same events, which would count twice; "
                f"{_TWO_WAYS}"
            )


def renamed(manifest: Manifest, logs: Mapping[str, Log], cluster_ids: ClusterIds) -> Manifest:
    """A manifest whose logs are called as settings call them; LogIdentityError where that cannot be
    told."""
    names = continued_as(manifest.topics, logs, cluster_ids)
    if all(was == name for was, name in names.items()):
        return manifest
    contents = renamed_fields(decode_contents(manifest.contents), names)
    topics = {names.get(was, was): topic for was, topic in manifest.topics.items()}
    return msgspec.structs.replace(manifest, topics=topics, contents=contents.encode())


def renamed_fields(contents: Contents, names: Mapping[str, str]) -> Contents:
    """Contents whose logs have other names."""
    fields = {names.get(was, was): fields for was, fields in contents.fields.items()}
    return msgspec.structs.replace(contents, fields=fields)
