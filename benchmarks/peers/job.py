"""The job that every contestant does, and the command line of its program. Only the standard
library: a contestant's environment holds what its own documentation asks for.

Impressions, clicks and conversions are counted by variant and surface in sliding windows of event
time; sessions are read and dropped. CTR is clicks / impressions, CVR is conversions / clicks.
A window is five minutes long, a new one ends every five seconds, and it holds
``end - WINDOW_MS <= ts < end``. Its counts go into the Redis hash of ``key``, whose fields are
``FIELDS``; a field that counts nothing may be missing.
"""

from __future__ import annotations

import argparse

TOPICS = ("impressions", "clicks", "conversions", "sessions")
FIELDS = ("impressions", "clicks", "conversions")
WINDOW_MS, SLIDE_MS = 300_000, 5_000
PARTITIONS = 4
END = "end"
"""Variant and surface of the last event of each partition, ten minutes after all others: it lets
windows close, and no reading of it is looked at."""


def key(prefix: str, end_ms: int, variant: str, surface: str) -> str:
    """Where Redis holds the counts of a window of a segment."""
    return f"{prefix}:{end_ms}:{variant}:{surface}"


def ends(ts_ms: int) -> range:
    """Ends of all windows that hold an event time, earliest first."""
    first = (ts_ms // SLIDE_MS + 1) * SLIDE_MS
    return range(first, first + WINDOW_MS, SLIDE_MS)


def parser() -> argparse.ArgumentParser:
    """What every program is called with."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--brokers", required=True, help="host:port")
    arguments.add_argument("--suffix", required=True, help="of the names of the topics")
    arguments.add_argument("--redis", required=True, help="a redis:// URL")
    arguments.add_argument("--prefix", required=True, help="of the keys in Redis, and of a group")
    arguments.add_argument("--events", type=int, required=True, help="in all topics together")
    return arguments
