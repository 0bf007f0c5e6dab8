"""Counts of panes (windows of five seconds) merged into sliding windows by hand: what programs do
whose library is slow at sliding windows."""

from __future__ import annotations

import redis

from benchmarks.peers import job


class Panes:
    """Windows that changed are written together. None is forgotten: a log has an end."""

    def __init__(self, url: str, prefix: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._prefix = prefix
        self._panes: dict[tuple[int, str, str, str], int] = {}
        self._windows: dict[tuple[int, str, str, str], int] = {}
        self._changed: set[tuple[int, str, str, str]] = set()

    def set(self, start_ms: int, variant: str, surface: str, kind: str, count: int) -> None:
        """The count of a pane, whatever was said of it before."""
        pane = (start_ms, variant, surface, kind)
        more = count - self._panes.get(pane, 0)
        self._panes[pane] = count
        for end in job.ends(start_ms):
            window = (end, variant, surface, kind)
            self._windows[window] = self._windows.get(window, 0) + more
            self._changed.add(window)

    def flush(self) -> None:
        """Write what changed, in one pipeline."""
        with self._redis.pipeline(transaction=False) as pipeline:
            for window in self._changed:
                end, variant, surface, kind = window
                key = job.key(self._prefix, end, variant, surface)
                pipeline.hset(key, kind, self._windows[window])
            pipeline.execute()
        self._changed.clear()
