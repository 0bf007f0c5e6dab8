"""Panes of cells as blobs: those that changed are written anew, those that nobody reads leave."""

from __future__ import annotations

from collections.abc import Callable

from streamer.engine.cells import TOTAL_RING, Cells
from streamer.store.codec import Columns

Put = Callable[[Columns], str]
"""Adds a blob to the commit, and returns its name."""


class PaneBlobs:
    """The blobs of one set of cells; ``names``: (ring << 32 | pane) → blob."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.names: dict[int, str] = {}
        self._oldest: list[int] = []

    def put(self, stream_ms: int, put: Put, delete: list[str]) -> None:
        """Write what changed since the last commit; ``delete`` gets what it replaces."""
        touched = self.cells.take_touched()
        oldest = [ring.oldest(stream_ms) for ring in self.cells.rings]
        gone: set[int] = set()
        if oldest != self._oldest:
            self._oldest = oldest
            bounds = dict(enumerate(oldest, 1))
            gone = {
                pane
                for pane in (*self.names, *touched)
                if pane >> 32 != TOTAL_RING and pane & 0xFFFFFFFF < bounds[pane >> 32]
            }
        for pane, (codes, values) in self.cells.dump(touched - gone).items():
            if len(codes):
                if pane in self.names:
                    delete.append(self.names[pane])
                self.names[pane] = put({"code": codes, "value": values})
            else:
                gone.add(pane)
        delete += [self.names.pop(pane) for pane in gone if pane in self.names]

    def load(self, names: dict[int, str], columns: list[Columns]) -> None:
        """Take over stored panes."""
        for pane, found in zip(names, columns, strict=True):
            self.cells.load(pane, found["code"], found["value"])
        self.names = dict(names)
