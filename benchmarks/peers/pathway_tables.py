"""Pathway: events are counted by kind and segment in sliding windows, or in tumbling windows that
are merged by hand."""

from __future__ import annotations

import os
from typing import Any

import pathway as pw
import redis

from benchmarks.peers import job
from benchmarks.peers.panes import Panes


class Event(pw.Schema):
    """What is read of an event."""

    type: str
    ts: int
    variant: str
    surface: str


class Written(pw.io.python.ConnectorObserver):
    """Writes the new counts at the end of each batch, in one pipeline."""

    def __init__(self, url: str, prefix: str) -> None:
        self._prefix = prefix
        self._pipeline = redis.Redis.from_url(url).pipeline(transaction=False)

    def on_change(self, key: pw.Pointer, row: dict[str, Any], time: int, is_addition: bool) -> None:
        """An old count is taken away and a new one added."""
        if is_addition:
            kind, variant, surface = row["segment"]
            window = job.key(self._prefix, row["start"] + job.WINDOW_MS, variant, surface)
            self._pipeline.hset(window, f"{kind}s", row["count"])

    def on_time_end(self, time: int) -> None:
        """After all changes of a batch."""
        self._pipeline.execute()


class Merged(pw.io.python.ConnectorObserver):
    """Merges panes into sliding windows."""

    def __init__(self, url: str, prefix: str) -> None:
        self._panes = Panes(url, prefix)

    def on_change(self, key: pw.Pointer, row: dict[str, Any], time: int, is_addition: bool) -> None:
        """An old count is taken away and a new one added."""
        if is_addition:
            kind, variant, surface = row["segment"]
            self._panes.set(row["start"], variant, surface, f"{kind}s", row["count"])

    def on_time_end(self, time: int) -> None:
        """After all changes of a batch."""
        self._panes.flush()


def main() -> None:
    """Without ``max_backlog_size``, at which 0.33.0 stops reading for good."""
    parser = job.parser()
    parser.add_argument("--panes", action="store_true")
    arguments = parser.parse_args()
    os.environ["PATHWAY_THREADS"] = "2"
    settings = {
        "bootstrap.servers": arguments.brokers,
        "group.id": arguments.prefix,
        "auto.offset.reset": "earliest",
    }
    tables = [
        pw.io.kafka.read(
            settings,
            topic + arguments.suffix,
            schema=Event,
            format="json",
            autocommit_duration_ms=1000,
        )
        for topic in job.TOPICS
    ]
    pw.universes.promise_are_pairwise_disjoint(*tables)
    events = pw.Table.concat(*tables).filter(pw.this.type != "session")
    events = events.select(
        pw.this.ts, segment=pw.make_tuple(pw.this.type, pw.this.variant, pw.this.surface)
    )
    window = (
        pw.temporal.tumbling(job.SLIDE_MS)
        if arguments.panes
        else pw.temporal.sliding(job.SLIDE_MS, job.WINDOW_MS)
    )
    counts = events.windowby(events.ts, window=window, instance=events.segment).reduce(
        segment=pw.this._pw_instance, start=pw.this._pw_window_start, count=pw.reducers.count()
    )
    observer = Merged if arguments.panes else Written
    pw.io.python.write(counts, observer(arguments.redis, arguments.prefix))
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main()
