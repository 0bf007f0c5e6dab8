"""Bytewax: events are counted by kind and segment in sliding windows, or in tumbling windows that
are merged by hand."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import redis
from bytewax.connectors.kafka import KafkaSourceMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing as win
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from benchmarks.peers import job
from benchmarks.peers.panes import Panes

WAIT = timedelta(minutes=10)
"""Of a backlog, partitions are read at different paces. The end of the log closes all windows."""
EPOCH = datetime.fromtimestamp(0, UTC)
SLIDE, WINDOW = timedelta(milliseconds=job.SLIDE_MS), timedelta(milliseconds=job.WINDOW_MS)
Closed = tuple[str, tuple[int, int]]
"""(kind and segment, (number of a window, count))."""


def parse(messages: list[KafkaSourceMessage]) -> list[tuple[str, datetime]]:
    """(kind and segment, event time) of all that is counted."""
    parsed = []
    for message in messages:
        event = json.loads(message.value)
        if event["type"] != "session":
            key = f"{event['type']}s:{event['variant']}:{event['surface']}"
            parsed.append((key, datetime.fromtimestamp(event["ts"] / 1000, UTC)))
    return parsed


class Written(StatelessSinkPartition):
    """Of one worker, which alone has the keys that it has."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._redis, self._prefix = redis.Redis.from_url(arguments.redis), arguments.prefix
        self._panes = Panes(arguments.redis, arguments.prefix) if arguments.panes else None

    def write_batch(self, items: list[Closed]) -> None:
        """All windows that closed together, in one pipeline."""
        with self._redis.pipeline(transaction=False) as pipeline:
            for key, (number, count) in items:
                kind, variant, surface = key.split(":")
                start = number * job.SLIDE_MS
                if self._panes:
                    self._panes.set(start, variant, surface, kind, count)
                else:
                    end = start + job.WINDOW_MS
                    pipeline.hset(job.key(self._prefix, end, variant, surface), kind, count)
            pipeline.execute()
        if self._panes:
            self._panes.flush()


class RedisSink(DynamicSink):
    """A connection for each worker."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments

    def build(self, *_: object) -> Written:
        """For one worker."""
        return Written(self._arguments)


def main() -> None:
    """One worker: a second thread waits for the interpreter, and a second process costs more in
    what they send each other than it brings."""
    parser = job.parser()
    parser.add_argument("--panes", action="store_true")
    arguments = parser.parse_args()
    flow = Dataflow("peers")
    topics = [topic + arguments.suffix for topic in job.TOPICS]
    source = kop.input("kafka", flow, brokers=[arguments.brokers], topics=topics, tail=False)
    events = op.flat_map_batch("parse", source.oks, parse)
    counts = win.count_window(
        "count",
        events,
        win.EventClock(lambda event: event[1], wait_for_system_duration=WAIT),
        win.TumblingWindower(SLIDE, EPOCH)
        if arguments.panes
        else win.SlidingWindower(WINDOW, SLIDE, EPOCH),
        key=lambda event: event[0],
    )
    op.output("redis", counts.down, RedisSink(arguments))
    cli_main(flow)


if __name__ == "__main__":
    main()
