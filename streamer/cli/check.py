"""``streamer check``: check settings, Kafka and Redis; print each finding with its fix."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from streamer.cli.check_alerts import alert_findings, stored_views
from streamer.cli.check_store import store_findings
from streamer.cli.check_topics import (
    partitioner_findings,
    read_findings,
    sample_findings,
    topic_findings,
    unread_findings,
)
from streamer.cli.finding import ERROR, OK, WARN, Finding, in_sum, series_finding
from streamer.cli.terminal import BAD, STRONG, console_of, say, waiting
from streamer.errors import BrokerError, RegistryError
from streamer.ingest.read_sample import ReadSample
from streamer.ingest.sampling import sample_topics
from streamer.kafka.admin import TopicDescription, broker_count, describe_topics, quiet
from streamer.kafka.client import client_settings
from streamer.kafka.topics import admin_client, cluster_id
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.query.what_was_read import of_sample
from streamer.server.authentication import guards, is_public, tls_context
from streamer.settings.load import load
from streamer.settings.model import ExporterSettings, Settings
from streamer.state.log_identity import resolve
from streamer.state.manifest import Manifest
from streamer.state.reader import texts_of
from streamer.state.redis.store import RedisStore
from streamer.state.snapshot import View
from streamer.worker.memory_bound import (
    MemoryBound,
    in_gigabytes,
    memory_bytes,
    partition_bytes,
)

_LARGEST = 3
"""Bounds that the finding on memory names."""


def main(args: argparse.Namespace) -> int:
    """Print findings as they come; 1 where one of them is an error, strictly also a warning."""
    settings = load(args.config, os.environ)
    for cluster in settings.read_clusters:
        client_settings(cluster.connection, cluster.section)
    guards(settings.exporter)
    tls_context(settings.exporter)
    if "debug" not in args:
        quiet()
    wrong = {ERROR, WARN} if args.strict else {ERROR}
    return asyncio.run(_print(settings, args.config or "the defaults and the environment", wrong))


async def _print(settings: Settings, source: str, wrong: Set[str]) -> int:
    """Print the findings, and their sum. ``source``: of the settings; ``wrong``: levels of findings
    that make the exit code 1."""
    console, found = console_of(), list[Finding]()

    def show(finding: Finding) -> None:
        finding.print(console)
        sys.stdout.flush()
        found.append(finding)

    show(Finding(OK, f"settings: {source}"))
    left_out: Mapping[str, str] = {}
    with waiting("asking Kafka"), contextlib.suppress(BrokerError):  # which the findings say
        settings, left_out = await resolve(settings)
    for why in left_out.values():
        what, _, fix = why.partition("; ")
        show(Finding(WARN, what, fix))
    asked = findings(settings)
    while True:
        with waiting("asking Kafka and Redis"):
            finding = await anext(asked, None)
        if finding is None:
            break
        show(finding)
    is_wrong = any(finding.level in wrong for finding in found)
    say(console, in_sum(found), style=BAD if is_wrong else STRONG)
    return int(is_wrong)


@dataclass
class _Kafka:
    """What the clusters said: topics by log; brokers, and Kafka's own id, by cluster;
    ``refusals``: why others said nothing."""

    described: dict[str, TopicDescription] = field(default_factory=dict)
    brokers: dict[str | None, int] = field(default_factory=dict)
    refusals: dict[str | None, str] = field(default_factory=dict)
    cluster_ids: dict[str | None, str] = field(default_factory=dict)

    @property
    def partitions(self) -> int | None:
        """Of all topics that are read; None where they are not there, or not equal."""
        logs = (topic for log, topic in self.described.items() if log != "dead_letters")
        counts = {topic.partitions for topic in logs}
        return counts.pop() if len(counts) == 1 else None


async def findings(settings: Settings) -> AsyncIterator[Finding]:
    """All findings about Kafka, its topics and their records, Redis and the exporter."""
    kafka = await _ask_kafka(settings)
    manifests: dict[int, Manifest] = {}
    store = RedisStore(settings.redis)
    try:
        about_store = [
            f
            async for f in store_findings(
                settings, store, manifests, kafka.partitions, kafka.cluster_ids
            )
        ]
        texts = await texts_of(store, manifests)
        views = await stored_views(settings, store) if manifests else []
    finally:
        await store.close()
    async for finding in _kafka_findings(settings, kafka, manifests):
        yield finding
    for finding in about_store:
        yield finding
    yield memory_finding(settings, kafka.partitions)
    for finding in exactness_findings(settings, views):
        yield finding
    stored = [(manifests[partition], read) for partition, read in texts.items()]
    yield series_finding(settings, stored)
    for finding in alert_findings(settings, views):
        yield finding
    for finding in exporter_findings(settings.exporter):
        yield finding


async def _ask_kafka(settings: Settings) -> _Kafka:
    kafka = _Kafka()
    for cluster in settings.read_clusters:
        names = {log.name: log.plain for log in settings.logs_in(cluster)}
        full = {log.name: log.topic for log in settings.logs_in(cluster)}
        if cluster.name is None:
            names["dead_letters"] = full["dead_letters"] = settings.kafka.topics.dead_letters
        try:
            async with admin_client(cluster.connection, cluster.section) as client:
                topics = await describe_topics(client, names.values())
                kafka.brokers[cluster.name] = await broker_count(client)
                kafka.cluster_ids[cluster.name] = await cluster_id(client)
        except BrokerError as error:
            kafka.refusals[cluster.name] = str(error)
            continue
        kafka.described |= {
            log: replace(topics[name], name=full[log])
            for log, name in names.items()
            if name in topics
        }
    return kafka


async def _kafka_findings(
    settings: Settings, kafka: _Kafka, manifests: dict[int, Manifest]
) -> AsyncIterator[Finding]:
    for cluster in settings.read_clusters:
        if refusal := kafka.refusals.get(cluster.name):
            fix = f"start it, or correct the section [{cluster.section}] of the settings"
            yield Finding(ERROR, f"{cluster.called}: {refusal}", fix)
        else:
            yield Finding(OK, f"{cluster.called}: reachable at {cluster.connection.brokers}")
    if not kafka.brokers:
        return
    for finding in topic_findings(settings, kafka.described, kafka.brokers):
        yield finding
    read = {
        (log, partition): topic.next_offset
        for partition, manifest in manifests.items()
        for log, topic in manifest.topics.items()
    }
    described = {log: d for log, d in kafka.described.items() if log in settings.logs}
    seen = ReadSample(settings)
    try:
        samples = await sample_topics(settings, described, read, seen)
    except BrokerError as error:
        yield Finding(ERROR, f"Kafka: {error}", "grant this user Read and Describe on the topics")
        return
    except RegistryError as error:
        yield Finding(ERROR, f"schemas: {error}", "workers wait: see registry in [[sources]]")
        return
    now_ms = time.time_ns() // 1_000_000
    for finding in (
        *sample_findings(settings, samples),
        *read_findings(of_sample(settings, seen)),
        *partitioner_findings(samples),
        *unread_findings(described, samples, read, now_ms),
    ):
        yield finding


def memory_finding(settings: Settings, partitions: int | None) -> Finding:
    """How much memory workers may take, when the bounds are reached."""
    each = partition_bytes(settings)
    largest = sorted(each.items(), key=lambda item: -item[1])[:_LARGEST]
    named = ", ".join(f"{name} {in_gigabytes(size)}" for name, size in largest)
    one = sum(each.values())
    what = f"memory: a partition takes at most {in_gigabytes(one)} for rows ({named}, …)"
    bound, there = MemoryBound(settings), memory_bytes()
    if bound.most is None or bound.of_rows is None:
        return Finding(OK, what)
    what += (
        f"; a worker here, with {in_gigabytes(bound.most)}, has {in_gigabytes(bound.of_rows)} for "
        "rows, beyond which the oldest leave early"
    )
    fits, wanted = bound.of_rows // one, partitions or 1
    what += f"; that is enough for {min(fits, wanted)} of {wanted} partitions"
    if there is not None and bound.most > there:
        fix = "lower limits.worker_memory_mb, or give the machine more memory"
        return Finding(WARN, f"{what}; the machine or container has {in_gigabytes(there)}", fix)
    fix = "give each worker more memory, start more of them, or lower [limits]"
    return Finding(OK, what) if fits >= wanted else Finding(WARN, what, fix)


def exactness_findings(settings: Settings, views: Sequence[View]) -> Iterator[Finding]:
    """What is not exact of the stored state."""
    found = readout(settings, Catalogue(settings), views).inexact if views else ()
    for each in found:
        yield Finding(WARN, f"{each.metrics} are not exact ({each.cause})", each.text)


def exporter_findings(exporter: ExporterSettings) -> Iterator[Finding]:
    """Who can read the metrics."""
    if not is_public(exporter.host):
        return
    what = f"exporter: listens on {exporter.host!r}"
    if exporter.username is None:
        fix = "set exporter.username and exporter.password_file, or restrict access by the network"
        yield Finding(WARN, f"{what} without a password", fix)
    elif exporter.tls_certfile is None:
        fix = "set exporter.tls_certfile, or put a proxy with TLS in front"
        yield Finding(WARN, f"{what} without TLS: passwords cross the network in clear", fix)
    else:
        yield Finding(OK, f"{what}, with TLS and a password")
