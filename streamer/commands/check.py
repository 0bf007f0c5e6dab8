"""``streamer check``: try settings, Kafka and Redis; each finding one line with its mend."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from streamer.commands.kafka_facts import TopicFacts, quiet, topic_facts
from streamer.commands.sampling import Sample, sample_topics
from streamer.config import Settings, load
from streamer.errors import BrokerError
from streamer.events import KINDS
from streamer.kafka import client_settings
from streamer.store.redis import client as redis_client
from streamer.topics import admin_client

OK, WARN, ERROR = "ok", "warn", "error"
_MIN_REDIS = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and found, and what to do about it."""

    level: str
    what: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.level:<5}  {self.what}" + (f"  — {self.mend}" if self.mend else "")


def main(args: argparse.Namespace) -> int:
    """Print findings as they come; 1 where one of them is an error."""
    settings = load(args.config, os.environ)
    client_settings(settings.kafka)
    if "debug" not in args:
        quiet()
    print(Finding(OK, f"settings: {args.config or 'the defaults and the environment'}"))
    return asyncio.run(_print(settings))


async def _print(settings: Settings) -> int:
    worst = 0
    async for finding in findings(settings):
        print(finding, flush=True)
        worst |= finding.level == ERROR
    return int(worst)


async def findings(settings: Settings) -> AsyncIterator[Finding]:
    """All findings about Kafka, its topics and their records, and Redis."""
    try:
        facts = await _facts(settings)
        yield Finding(OK, f"Kafka: reachable at {settings.kafka.brokers}")
        for finding in topic_findings(settings, facts):
            yield finding
        samples = await sample_topics(settings, {k: f for k, f in facts.items() if k in KINDS})
        for finding in sample_findings(samples):
            yield finding
        for finding in partitioner_findings(samples):
            yield finding
    except BrokerError as error:
        yield Finding(ERROR, f"Kafka: {error}", "start it, or correct the section kafka")
    for finding in await _redis_findings(settings):
        yield finding


async def _facts(settings: Settings) -> dict[str, TopicFacts]:
    names = {k: str(getattr(settings.kafka.topics, k)) for k in (*KINDS, "dead_letters")}
    async with admin_client(settings.kafka) as client:
        found = await topic_facts(client, names.values())
    return {kind: found[name] for kind, name in names.items() if name in found}


def topic_findings(settings: Settings, facts: dict[str, TopicFacts]) -> Iterator[Finding]:
    """Existence, partition counts, and who stamps the records."""
    for kind in (*KINDS, "dead_letters"):
        name = getattr(settings.kafka.topics, kind)
        if kind not in facts:
            mend = f"create it, or set kafka.topics.{kind}"
            yield Finding(ERROR, f"topic {name!r}: does not exist", mend)
    counts = {facts[kind].name: facts[kind].partitions for kind in KINDS if kind in facts}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{name} {n}" for name, n in counts.items())
        mend = "create them anew with equal counts: a user must have one partition number"
        yield Finding(ERROR, f"partition counts differ: {shown}", mend)
    elif counts:
        n = next(iter(counts.values()))
        yield Finding(OK, f"topics: {', '.join(counts)}: {n} partitions each")
    for kind in KINDS:
        if kind in facts:
            yield _stamp_finding(facts[kind])


def _stamp_finding(topic: TopicFacts) -> Finding:
    what = f"topic {topic.name!r}: record timestamps are"
    if topic.is_stamped_by_broker:
        return Finding(OK, f"{what} the broker's")
    for name in ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"):
        limit_ms = topic.limit_ms(name)
        if limit_ms is not None:
            return Finding(OK, f"{what} the producer's, at most {limit_ms / 1000:g} s ahead")
    mend = "set message.timestamp.type=LogAppendTime, or message.timestamp.after.max.ms=300000"
    return Finding(WARN, f"{what} the producer's: one wrong clock makes others' events late", mend)


def sample_findings(samples: dict[str, Sample]) -> Iterator[Finding]:
    """Whether the last records of each topic are events."""
    for kind, sample in samples.items():
        what = f"topic {sample.topic!r}: "
        rejected = sum(sample.reasons.values())
        if not sample.records:
            yield Finding(OK, f"{what}no records yet")
            continue
        if not rejected:
            yield Finding(OK, f"{what}the last {sample.records} records decode")
            continue
        reasons = ", ".join(f"{r} {n}" for r, n in sorted(sample.reasons.items()))
        share = f"{rejected} of the last {sample.records} records ({rejected / sample.records:.0%})"
        is_all = rejected == sample.records
        yield Finding(
            ERROR if is_all else WARN,
            f"{what}{share} would be rejected: {reasons}",
            f"compare one with the fields of {kind}; names can be mapped in [events.fields]",
        )


def partitioner_findings(samples: dict[str, Sample]) -> Iterator[Finding]:
    """Whether a user is on the same partition number in all topics."""
    places: dict[bytes, dict[int, set[str]]] = {}
    for sample in samples.values():
        for user, partition in sample.users:
            places.setdefault(user, {}).setdefault(partition, set()).add(sample.topic)
    if not places:
        return
    mend = "key all producers by user_id, with the same partitioner (Java's default is murmur2)"
    split = [places[user] for user in sorted(places) if len(places[user]) > 1]
    if split:
        where = "; ".join(f"{p}: {', '.join(sorted(t))}" for p, t in sorted(split[0].items()))
        what = f"{len(split)} of {len(places)} sampled users are on several partition numbers"
        yield Finding(ERROR, f"{what}, one of them on {where}", mend)
        return
    known = {s.topic: s.partitioner() for s in samples.values() if s.users and s.partitions > 1}
    kinds = set(known.values()) - {None}
    shown = ", ".join(f"{topic} {name or 'unknown'}" for topic, name in known.items())
    if len(kinds) > 1:
        yield Finding(ERROR, f"topics are partitioned differently: {shown}", mend)
    elif known and None in known.values():
        yield Finding(WARN, f"partitioning by user_id is not one we know: {shown}", mend)
    else:
        by = f", by {kinds.pop()} of user_id" if kinds else ""
        what = f"{len(places)} sampled users are each on one partition number in all topics"
        yield Finding(OK, what + by)


async def _redis_findings(settings: Settings) -> list[Finding]:
    place = settings.redis.url.rsplit("@", 1)[-1].split("://")[-1]
    client = redis_client(settings.redis)
    try:
        info: dict[str, Any] = await client.info()
    except (RedisError, OSError, TimeoutError) as error:
        text = (str(error) or type(error).__name__).splitlines()[0]
        mend = "start it, or correct redis.url"
        return [Finding(ERROR, f"Redis: {text}; at {place}", mend)]
    finally:
        await client.aclose()
    nodes = {place: info} if "redis_version" in info else info
    return [finding for at, node in nodes.items() for finding in redis_findings(at, node)]


def redis_findings(place: str, info: dict[str, Any]) -> Iterator[Finding]:
    """Whether a server (its INFO) is fit to keep state."""
    version = str(info.get("redis_version", "0"))
    if int(version.split(".")[0]) < _MIN_REDIS:
        mend = f"upgrade to {_MIN_REDIS}.0 or newer"
        yield Finding(ERROR, f"Redis at {place}: version {version} is too old", mend)
    else:
        yield Finding(OK, f"Redis: version {version}, reachable at {place}")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        mend = "set maxmemory-policy noeviction: it may drop state without an error"
        yield Finding(ERROR, f"Redis at {place}: maxmemory-policy is {policy}", mend)
    if info.get("role", "master") != "master":
        mend = "connect to its master: a replica is read-only"
        yield Finding(ERROR, f"Redis at {place}: is a {info['role']}", mend)
    if not int(info.get("aof_enabled", 0)):
        mend = "set appendonly yes: without it a restart reads Kafka again from the last snapshot"
        yield Finding(WARN, f"Redis at {place}: appendonly is off", mend)
