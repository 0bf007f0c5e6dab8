"""Quix Streams: each topic is regrouped by segment, and its events are counted in hopping windows,
or in tumbling windows that are merged by hand."""

from __future__ import annotations

import re
import tempfile
from typing import Any

import redis
from quixstreams import Application
from quixstreams.dataframe.windows import Count
from quixstreams.sinks.base import BaseSink

from benchmarks.peers import job
from benchmarks.peers.panes import Panes

GRACE_MS = 3_600_000
"""Of a backlog, partitions are read at different paces. Windows are written as they fill."""


class Windows(BaseSink):
    """Writes the last counts of all windows that changed since the last commit."""

    def __init__(self, url: str, prefix: str, kind: str) -> None:
        super().__init__()
        self._redis, self._prefix, self._kind = redis.Redis.from_url(url), prefix, kind
        self._changed: dict[tuple[int, str], int] = {}

    def add(self, value: dict[str, int], key: str, *_: Any, **__: Any) -> None:
        """An update of a window."""
        self._changed[value["end"], key] = value["value"]

    def flush(self) -> None:
        """Before offsets are committed."""
        with self._redis.pipeline(transaction=False) as pipeline:
            for (end, segment), count in self._changed.items():
                key = job.key(self._prefix, end, *segment.split(":"))
                pipeline.hset(key, self._kind, count)
            pipeline.execute()
        self._changed.clear()


class Merged(BaseSink):
    """Merges panes into sliding windows."""

    def __init__(self, url: str, prefix: str, kind: str) -> None:
        super().__init__()
        self._panes, self._kind = Panes(url, prefix), kind
        self._changed: dict[tuple[int, str], int] = {}

    def add(self, value: dict[str, int], key: str, *_: Any, **__: Any) -> None:
        """An update of a pane."""
        self._changed[value["start"], key] = value["value"]

    def flush(self) -> None:
        """Before offsets are committed."""
        for (start, segment), count in self._changed.items():
            self._panes.set(start, *segment.split(":"), self._kind, count)
        self._panes.flush()
        self._changed.clear()


def main() -> None:
    """One process: the topics between the two steps and the states are the library's."""
    parser = job.parser()
    parser.add_argument("--panes", action="store_true")
    arguments = parser.parse_args()
    app = Application(
        broker_address=arguments.brokers,
        consumer_group=re.sub(r"[^\w.-]", "", arguments.prefix),  # is in names of topics
        auto_offset_reset="earliest",
        commit_interval=1.0,
        state_dir=tempfile.mkdtemp(),
        loglevel="WARNING",
    )
    for kind in job.FIELDS:
        topic = app.topic(
            kind + arguments.suffix,
            value_deserializer="json",
            timestamp_extractor=lambda value, *_: value["ts"],
        )
        frame = app.dataframe(topic)[["variant", "surface"]].group_by(
            lambda value: f"{value['variant']}:{value['surface']}",
            name="segment",
            key_serializer="str",
            key_deserializer="str",
        )
        if arguments.panes:
            windows = frame.tumbling_window(job.SLIDE_MS, grace_ms=GRACE_MS)
        else:
            windows = frame.hopping_window(job.WINDOW_MS, job.SLIDE_MS, grace_ms=GRACE_MS)
        sink = Merged if arguments.panes else Windows
        counts = windows.agg(value=Count()).current()
        counts.sink(sink(arguments.redis, arguments.prefix, kind))
    app.dataframe(app.topic("sessions" + arguments.suffix)).filter(lambda _: False)
    app.run()


if __name__ == "__main__":
    main()
