"""Faust: an agent of each topic counts panes in a table, and a timer merges them by hand into the
sliding windows. A hopping table would send sixty messages to its changelog for each event."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from typing import Any

import faust
import mode.loop

from benchmarks.peers import job
from benchmarks.peers.panes import Panes

Stream = faust.StreamT[dict[str, Any]]


def main() -> None:
    """One worker, for the table is not sharded as the topics are."""
    parser = job.parser()
    parser.add_argument("--memory", action="store_true", help="a dict, and no table")
    arguments = parser.parse_args()
    mode.loop.use("uvloop")
    app = faust.App(
        re.sub(r"[^\w.-]", "", arguments.prefix),  # is in names of topics
        broker=f"kafka://{arguments.brokers}",
        consumer_auto_offset_reset="earliest",
        topic_disable_leader=True,
        topic_partitions=job.PARTITIONS,
        web_enabled=False,
        datadir=tempfile.mkdtemp(),
    )
    counts: Any = Counter() if arguments.memory else app.Table("panes", default=int)
    changed: set[str] = set()
    panes = Panes(arguments.redis, arguments.prefix)

    async def count(stream: Stream) -> None:
        async for event in stream:
            start = event["ts"] // job.SLIDE_MS * job.SLIDE_MS
            key = f"{start}:{event['variant']}:{event['surface']}:{event['type']}s"
            counts[key] += 1
            changed.add(key)

    async def drop(stream: Stream) -> None:
        async for _ in stream:
            pass

    for topic in job.TOPICS:
        source = app.topic(topic + arguments.suffix, key_serializer="raw", value_serializer="json")
        app.agent(source, name=topic)(count if topic in job.FIELDS else drop)

    @app.timer(1.0)
    async def write() -> None:
        for key in changed:
            start, variant, surface, kind = key.split(":")
            panes.set(int(start), variant, surface, kind, counts[key])
        changed.clear()
        panes.flush()

    worker = faust.Worker(app, loglevel="error", quiet=True, redirect_stdouts=False)
    worker.spinner = None  # writes escape codes to stdout
    worker.execute_from_commandline()


if __name__ == "__main__":
    main()
