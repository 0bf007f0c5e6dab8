"""``streamer check``: what Kafka says about the topics, and what lies in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamer.cli.finding import ERROR, OK, WARN, Finding
from streamer.cli.rejection_report import RejectionReport
from streamer.formatting import partitions_in_words
from streamer.ingest.sampling import Sample
from streamer.kafka.admin import TopicDescription
from streamer.query.what_was_read import WhatWasRead, joins_in_words
from streamer.settings import limits
from streamer.settings.durations import about
from streamer.settings.model import Settings

_HEADERS_BYTES = 2_000
"""What a dead letter has beside its value, at most."""
_MIN_RETENTION_MS = 24 * 3600 * 1000
"""A log that keeps less is gone after an outage, or a rollback of Redis, of a day."""


def topic_findings(
    settings: Settings,
    described: Mapping[str, TopicDescription],
    brokers: Mapping[str | None, int],
) -> Iterator[Finding]:
    """Existence, partition counts, who stamps the records, and what may become of them.

    ``brokers``: cluster → how many it has, of the clusters that answered.
    """
    logs = {name: log for name, log in settings.logs.items() if log.cluster in brokers}
    names = {name: log.topic for name, log in logs.items()}
    if None in brokers:
        names["dead_letters"] = settings.kafka.topics.dead_letters
    for log, name in names.items():
        if log not in described:
            is_ours = log == "dead_letters" or not settings.reads_sources
            key = f"set kafka.topics.{log}" if is_ours else "correct topics in [[sources]]"
            fix = f"`streamer produce --create 8` creates it; or {key}" if is_ours else key
            yield Finding(ERROR, f"topic {name!r} does not exist", fix)
    counts = {described[log].name: described[log].partitions for log in logs if log in described}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{name} {n}" for name, n in counts.items())
        fix = "recreate them with equal counts: a user needs one partition number in all topics"
        yield Finding(ERROR, f"partition counts differ: {shown}", fix)
    elif counts:
        n = next(iter(counts.values()))
        yield Finding(OK, f"topics: {', '.join(counts)}: {n} partitions each")
    there = [described[log] for log in logs if log in described]
    yield from _stamp_findings(there)
    for topic in there:
        yield from _retention_findings(topic)
    for name, topic in described.items():
        cluster = logs[name].cluster if name in logs else None
        yield from _replication_findings(topic, brokers[cluster])
    if "dead_letters" in described:
        yield from dead_letter_findings(described)


def _stamp_findings(topics: Sequence[TopicDescription]) -> Iterator[Finding]:
    """Whose clock record timestamps are of: one finding for all topics of which the same is so."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for topic in topics:
        found.setdefault(_stamps(topic), []).append(repr(topic.name))
    for (level, whose, fix), names in found.items():
        noun = "topic" if len(names) == 1 else "topics"
        what = f"{noun} {', '.join(names)}: record timestamps are {whose}"
        yield Finding(level, what, fix)


def _stamps(topic: TopicDescription) -> tuple[str, str, str]:
    """The level, whose clock it is, and what to do."""
    if topic.is_stamped_by_broker:
        return OK, "the broker's", ""
    for name in ("message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"):
        limit_ms = topic.limit(name)
        if limit_ms is not None:
            return OK, f"the producer's, at most {limit_ms / 1000:g} s ahead", ""
    fix = "set message.timestamp.type=LogAppendTime, or message.timestamp.after.max.ms=300000"
    return WARN, "the producer's, however far ahead: records beyond the wall clock are refused", fix


def _retention_findings(topic: TopicDescription) -> Iterator[Finding]:
    """Whether records stay until they are read, and can be read again."""
    what = f"topic {topic.name!r}: "
    if topic.is_compacted:
        fix = "set cleanup.policy=delete: compaction keeps only the last event of each user"
        yield Finding(ERROR, f"{what}cleanup.policy is {topic.settings['cleanup.policy']}", fix)
    retention_ms = topic.limit("retention.ms")
    if topic.deletes and retention_ms is not None and retention_ms < _MIN_RETENTION_MS:
        fix = "set retention.ms above the longest outage: records deleted unread are lost"
        yield Finding(WARN, f"{what}keeps records for only {about(retention_ms)}", fix)


def _replication_findings(topic: TopicDescription, brokers: int) -> Iterator[Finding]:
    """Whether acknowledged records survive a broker."""
    what = f"topic {topic.name!r}: "
    if brokers > 1 and topic.replicas == 1:
        fix = f"add replicas: there are {brokers} brokers"
        yield Finding(
            WARN, f"{what}one replica: when its broker fails, it stops and may be lost", fix
        )
    if topic.settings.get("unclean.leader.election.enable") == "true":
        fix = "set unclean.leader.election.enable=false"
        yield Finding(
            WARN, f"{what}a stale replica may become leader: records already read vanish", fix
        )


def dead_letter_findings(described: Mapping[str, TopicDescription]) -> Iterator[Finding]:
    """Whether every record can become a dead letter: what is refused there stops a partition."""
    letters = described["dead_letters"]
    what = f"topic {letters.name!r} (dead letters): "
    largest = letters.limit("max.message.bytes")
    events = [
        topic.limit("max.message.bytes")
        for log, topic in described.items()
        if log != "dead_letters"
    ]
    wanted = max((size for size in events if size is not None), default=limits.MAX_RECORD_BYTES)
    if largest is not None and largest < _HEADERS_BYTES:
        fix = f"set max.message.bytes={wanted + _HEADERS_BYTES}"
        yield Finding(
            ERROR,
            f"{what}max.message.bytes is {largest}: dead letters do not fit, partitions wait",
            fix,
        )
    elif largest is not None and largest < wanted:
        fix = f"set max.message.bytes={wanted + _HEADERS_BYTES}"
        yield Finding(WARN, f"{what}dead letters above {largest} bytes are truncated", fix)
    in_sync = letters.limit("min.insync.replicas") or 1
    if in_sync > letters.replicas:
        fix = "lower it or add replicas: no dead letter can be written"
        yield Finding(
            ERROR, f"{what}min.insync.replicas is {in_sync} of {letters.replicas} replicas", fix
        )


def sample_findings(settings: Settings, samples: Mapping[str, Sample]) -> Iterator[Finding]:
    """Whether the last records of each topic are events; of each reason one that is none."""
    for log, sample in samples.items():
        what = f"topic {sample.topic!r}: "
        refused = RejectionReport(settings)
        for each in sample.refused:
            refused.add(log, *each)
        if not sample.records:
            yield Finding(OK, f"{what}no records yet")
            continue
        if not refused.total:
            ignored = f", of which {sample.ignored} are ignored" if sample.ignored else ""
            yield Finding(OK, f"{what}the last {sample.records} records decode{ignored}")
            continue
        reasons = ", ".join(f"{r} {n}" for r, n in sorted(refused.reasons.items()))
        share = f"{refused.total} of the last {sample.records} records"
        share += f" ({refused.total / sample.records:.0%})"
        is_most = refused.are_most(sample.records)
        level = ERROR if is_most or refused.total == sample.records else WARN
        kinds = " or ".join(settings.logs[log].kinds)
        fix = f"compare a record with the fields of {kinds} in docs/events.md"
        yield Finding(level, f"{what}{share} would be rejected: {reasons}", fix)
        for _, finding, advice in refused.findings():
            yield Finding(level, what + finding, advice)
        if is_most and (shape := refused.looks_like(sample.topic)):
            brokers = settings.kafka.brokers
            fix = f"streamer init --brokers {brokers} --topic {sample.topic} proposes settings"
            yield Finding(level, what + shape, fix)


def read_findings(read: WhatWasRead) -> Iterator[Finding]:
    """What the last records of all topics are together, and what about them is implausible."""
    for kind in read.kinds:
        what = (
            f"{kind.kind}: {kind.counted:,} in the last records, {kind.with_person:,} with a person"
        )
        if kind.kind in ("clicks", "conversions"):
            joined, others = joins_in_words(kind, read.kinds[0])
            what += f"; {joined} joined an impression" + (f" ({others})" if others else "")
        if kind.kind == "conversions":
            what += f"; {kind.valued:,} of {kind.counted:,} with a value"
        yield Finding(OK, what)
    for each in read.implausible:
        yield Finding(WARN, each.what, each.fix)


def unread_findings(
    described: Mapping[str, TopicDescription],
    samples: Mapping[str, Sample],
    read: Mapping[tuple[str, int], int],
    now_ms: int,
) -> Iterator[Finding]:
    """Whether Kafka has deleted, or may soon delete, what no worker has read.

    ``read``: (kind, partition) → the next offset of the stored state, where there is one.
    """
    for kind, sample in samples.items():
        what = f"topic {sample.topic!r}: "
        gone = {
            partition: start - read[kind, partition]
            for partition, start in sample.starts.items()
            if start > read.get((kind, partition), start)
        }
        if gone:
            fix = "raise its retention.ms and start workers; they count what is lost"
            problem = (
                f"{sum(gone.values())} records of {partitions_in_words(gone)} were deleted unread"
            )
            yield Finding(ERROR, what + problem, fix)
        cut = [n for n, end in sample.ends.items() if end < read.get((kind, n), 0)]
        if cut:
            fix = (
                "if it was recreated, set another redis.prefix, or workers count its records on top"
            )
            problem = f"{partitions_in_words(cut)}: the log ends before the offset read so far"
            yield Finding(WARN, what + problem, fix)
        retention_ms = described[kind].limit("retention.ms")
        if not described[kind].deletes or retention_ms is None:
            continue
        age_ms = now_ms - min(sample.unread_ms.values(), default=now_ms)
        if age_ms > retention_ms:
            fix = "set retention.ms=-1 or start workers: Kafka deletes by record timestamps"
            problem = f"unread records are {about(age_ms)} old, retention is {about(retention_ms)}"
            yield Finding(ERROR, what + problem, fix)


def partitioner_findings(samples: Mapping[str, Sample]) -> Iterator[Finding]:
    """Whether a user is on the same partition number in all topics."""
    partitions: dict[bytes, dict[int, set[str]]] = {}
    for sample in samples.values():
        for user, partition in sample.users:
            partitions.setdefault(user, {}).setdefault(partition, set()).add(sample.topic)
    if not partitions:
        return
    fix = "key all producers by user_id, with the same partitioner (Java's default is murmur2)"
    split = [partitions[user] for user in sorted(partitions) if len(partitions[user]) > 1]
    if split:
        where = "; ".join(f"{p}: {', '.join(sorted(t))}" for p, t in sorted(split[0].items()))
        what = f"{len(split)} of {len(partitions)} sampled users are on several partition numbers"
        yield Finding(ERROR, f"{what}, one of them on {where}", fix)
        return
    partitioners = {
        s.topic: s.partitioner() for s in samples.values() if s.users and s.partitions > 1
    }
    kinds = set(partitioners.values()) - {None}
    shown = ", ".join(f"{topic} {name or 'unknown'}" for topic, name in partitioners.items())
    if len(kinds) > 1:
        yield Finding(ERROR, f"topics are partitioned differently: {shown}", fix)
    elif partitioners and None in partitioners.values():
        yield Finding(WARN, f"unknown partitioning of user_id: {shown}", fix)
    else:
        by = f", by {kinds.pop()} of user_id" if kinds else ""
        what = f"{len(partitions)} sampled users are each on one partition number in all topics"
        yield Finding(OK, what + by)
