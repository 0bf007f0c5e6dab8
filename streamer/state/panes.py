"""Panes as blobs: those that changed since the last commit are written as one blob.

A blob leaves when fewer than half of its rows are still in use; the panes that are left in it are
written again with those that changed. So at most twice the rows in use are stored, and rewriting
adds at most one row for each row that was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from streamer._core import TOTAL_RING, Core
from streamer.encoding.arrays import I64, runs_of
from streamer.encoding.packed import ring_and_pane
from streamer.errors import CodecError
from streamer.metrics.rings import Ring
from streamer.settings import limits
from streamer.state.codec import Columns

Put = Callable[[Columns], str]
"""Adds a blob to the commit, and returns its name."""
Pane = tuple[I64, I64]
"""Codes (``encoding.packed``) and values."""
Mapped = Callable[[int, Pane], tuple[int, Pane] | None]
"""A pane as other settings stored it → its number and what it holds now; None: nothing."""


@dataclass
class _Blob:
    """Rows as they were written; ``panes``: rows of each pane that was not replaced since."""

    rows: int
    panes: dict[int, int]


class PaneBlobs:
    """The blobs of one set of panes."""

    def __init__(
        self,
        core: Core,
        rings: Sequence[Ring],
        series: int | None = None,
        day_before: Mapping[int, Ring] = MappingProxyType({}),
    ) -> None:
        """``series``: place of the series that they are of (those of alerts, then counts of items);
        None: windows and totals. ``day_before``: further rings, by number."""
        self.core, self.series = core, series
        self.rings = {**dict(enumerate(rings, 1)), **day_before}
        self._blobs: dict[str, _Blob] = {}
        self._oldest: list[int] = []
        self._unwritten: set[int] = set()

    @property
    def names(self) -> dict[str, list[int]]:
        """Blob → the panes that are to be read from it."""
        return {name: list(blob.panes) for name, blob in self._blobs.items()}

    def put(self, stream_ms: int, put: Put, delete: list[str]) -> None:
        """Write what changed since the last commit; ``delete`` gets what it replaces."""
        touched = set(self.core.take_changed_panes(self.series)) | self._unwritten
        self._unwritten = set()
        gone = self._gone(stream_ms, touched)
        leaving = touched | gone
        for name, blob in list(self._blobs.items()):
            for pane in leaving & blob.panes.keys():
                del blob.panes[pane]
            if 2 * sum(blob.panes.values()) < blob.rows:
                touched |= blob.panes.keys()
                delete.append(name)
                del self._blobs[name]
        for panes in _parts(self._dump(touched - gone)):
            self._blobs[put(_joined(panes))] = _held(panes, panes)

    def _dump(self, panes: set[int]) -> dict[int, Pane]:
        pane, code, value = self.core.dump_panes(sorted(panes), self.series)
        return split({"pane": pane, "code": code, "value": value})

    def _gone(self, stream_ms: int, touched: set[int]) -> set[int]:
        """The panes that no window covers any more, where a window has moved on."""
        oldest = [ring.oldest(stream_ms) for ring in self.rings.values()]
        if oldest == self._oldest:
            return set()
        self._oldest = oldest
        bounds = {**dict(zip(self.rings, oldest, strict=True)), TOTAL_RING: 0}
        known = touched.union(*(blob.panes for blob in self._blobs.values()))
        places = {number: ring_and_pane(number) for number in known}
        return {number for number, (ring, pane) in places.items() if pane < bounds[ring]}

    def load(self, names: Mapping[str, Sequence[int]], columns: Iterable[Columns]) -> None:
        """Take over stored panes. CodecError where a blob lacks one of them."""
        for (name, wanted), found in zip(names.items(), columns, strict=True):
            panes = split(found)
            for pane, (codes, values) in chosen(panes, name, wanted).items():
                self.core.load_pane(pane, codes, values, self.series)
            self._blobs[name] = _held(panes, wanted)

    def load_other(
        self, names: Mapping[str, Sequence[int]], columns: Iterable[Columns], mapped: Mapped
    ) -> None:
        """Take over panes that other settings stored: they are written again at the next ``put``,
        and the blobs that they were in are not known here."""
        for (name, wanted), found in zip(names.items(), columns, strict=True):
            for number, pane in chosen(split(found), name, wanted).items():
                if (now := mapped(number, pane)) is not None:
                    ours, (codes, values) = now
                    self.core.load_pane(ours, codes, values, self.series)
                    self._unwritten.add(ours)


def split(columns: Columns) -> dict[int, Pane]:
    """The panes of a blob, without copies. CodecError where it is not one of panes."""
    try:
        pane, codes, values = columns["pane"], columns["code"], columns["value"]
    except KeyError as error:
        raise CodecError(f"a blob of panes has no column {error}") from None
    bounds = [*runs_of(pane).tolist(), len(pane)]
    return {
        number: (codes[start:stop], values[start:stop])
        for number, start, stop in zip(
            pane[bounds[:-1]].tolist(), bounds[:-1], bounds[1:], strict=True
        )
    }


def chosen(panes: Mapping[int, Pane], name: str, wanted: Iterable[int]) -> dict[int, Pane]:
    """Those panes of a blob that the manifest reads from it; CodecError where one is not there."""
    try:
        return {pane: panes[pane] for pane in wanted}
    except KeyError as error:
        raise CodecError(f"blob {name!r} has no pane {error}, which its manifest lists") from None


def _joined(panes: Mapping[int, Pane]) -> Columns:
    numbers, rows = list(panes), [len(codes) for codes, _ in panes.values()]
    return {
        "pane": np.repeat(np.array(numbers, np.int64), rows),
        "code": np.concatenate([codes for codes, _ in panes.values()]),
        "value": np.concatenate([values for _, values in panes.values()]),
    }


def _held(panes: Mapping[int, Pane], wanted: Iterable[int]) -> _Blob:
    rows = {pane: len(codes) for pane, (codes, _) in panes.items()}
    return _Blob(sum(rows.values()), {pane: rows[pane] for pane in wanted})


def _parts(panes: Mapping[int, Pane]) -> Iterator[dict[int, Pane]]:
    """Panes that hold anything, as many together as one blob may have."""
    part: dict[int, Pane] = {}
    rows = 0
    for number, pane in panes.items():
        if part and rows + len(pane[0]) > limits.BLOB_ROWS:
            yield part
            part, rows = {}, 0
        if len(pane[0]):
            part[number] = pane
            rows += len(pane[0])
    if part:
        yield part
