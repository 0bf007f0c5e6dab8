"""Values read from Redis are input: bounded, and checked before anything is done with them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from streamer.errors import CodecError
from streamer.ingest.hash_key import HashKey, parse_key
from streamer.settings import limits
from streamer.state.worker_report import COMMIT_BUCKETS_SECONDS, WorkerReport

_READ_TO = re.compile(
    rf"[A-Za-z0-9._-]{{1,249}}(@[a-z0-9_-]{{1,{limits.MAX_CLUSTER_NAME_CHARS}}})?/\d{{1,6}}\Z"
)
"""A log and a partition: of a source's topic any name that Kafka allows, and its cluster."""


def whole(data: bytes, name: str, largest: int) -> int:
    """A number from 0 to ``largest``; CodecError, with the name of its key, for anything else.

    >>> whole(b"64", "streamer:partitions", 10_000)
    64
    """
    if len(data) > 20 or not data.isdigit() or int(data) > largest:
        shown = repr(data[:20]).removeprefix("b")
        raise CodecError(
            f"{name} in Redis is {shown}, not an integer up to {largest}: something else wrote it; "
            "delete the key or restore Redis"
        )
    return int(data)


def hash_key(data: bytes, name: str) -> HashKey:
    """A hash key; CodecError, with the name of its Redis key and without what it holds, for
    anything else."""
    try:
        return parse_key(data.decode("ascii", "replace"))
    except ValueError:
        raise CodecError(
            f"{name} in Redis is not a hash key of 32 hexadecimal digits: something else wrote it; "
            "delete it: workers put it back from the state of the partitions"
        ) from None


def decoded(now_seconds: int, found: Mapping[bytes, bytes]) -> list[WorkerReport]:
    """Workers' reports with their age. One that cannot be read is a report that says so."""
    return [_report(now_seconds, name, data) for name, data in found.items()]


def _report(now_seconds: int, name: bytes, data: bytes) -> WorkerReport:
    try:
        if len(data) > limits.MAX_REPORT_BYTES:
            raise ValueError(f"it has {len(data)} bytes")
        at, report = msgspec.json.decode(data, type=tuple[int, WorkerReport])
        _check(report)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = repr(name[:100].decode(errors="replace")).strip("'")
        return WorkerReport(shown, unreadable=" ".join(str(error).split())[:200] or "it is empty")
    report.silent_seconds = max(0, now_seconds - at)
    return report


def _check(report: WorkerReport) -> None:
    """ValueError where a report has what no worker sends."""
    if len(report.commit_buckets) != len(COMMIT_BUCKETS_SECONDS) + 1:
        raise ValueError(f"it has {len(report.commit_buckets)} buckets of commits")
    if not all(map(_READ_TO.match, report.read_to)):
        raise ValueError("it names an unknown log")
    numbers = {*report.owned, *report.problems}
    if numbers and not 0 <= min(numbers) <= max(numbers) < limits.MAX_PARTITIONS:
        raise ValueError(f"it names partition {max(numbers, key=abs)}")
