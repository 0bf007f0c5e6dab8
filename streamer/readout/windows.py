"""Windows: unions of panes, summed for each segment and rolled up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamer.batch import I64, hash_texts
from streamer.config import Settings
from streamer.engine.cells import TOTAL_RING, Ring
from streamer.engine.layout import Layout
from streamer.readout.view import View

_STAT_BITS = 14
_STAT_MASK = (1 << _STAT_BITS) - 1
ALL = "all"
OTHER = "other"

Segment = tuple[str, ...]


class Numbering:
    """Segments of all partitions, numbered together; values beyond the bound are ``other``."""

    def __init__(self, settings: Settings, views: Sequence[View]) -> None:
        self._shown = _values_shown(settings, views)
        self.segments: list[Segment] = []
        self._numbers: dict[Segment, int] = {}
        self._raw: dict[Segment, int] = {}
        self.maps = [self._map(view) for view in views]

    def _map(self, view: View) -> I64:
        numbers = []
        for texts in view.header.segments:
            number = self._raw.get(texts)
            if number is None:
                segment = tuple(
                    text if text in shown else OTHER
                    for text, shown in zip(texts, self._shown, strict=True)
                )
                number = self._raw[texts] = self._numbers.setdefault(segment, len(self.segments))
                if number == len(self.segments):
                    self.segments.append(segment)
            numbers.append(number)
        return np.array(numbers, np.int64)


def _values_shown(settings: Settings, views: Sequence[View]) -> list[set[str]]:
    """Per dimension: the named values, and the smallest hashes of what the partitions keep."""
    shown = []
    for i, dimension in enumerate(settings.dimensions):
        kept = sorted({text for view in views for text in view.header.kept[i]})
        if len(kept) > dimension.max_values:
            digests = hash_texts([kept])[0].tolist()
            ranked = sorted(zip(digests, kept, strict=True))
            kept = [text for _, text in ranked[: dimension.max_values]]
        shown.append({*kept, *dimension.values, "unknown", OTHER})
    return shown


@dataclass
class Entries:
    """The non-zero sums of a window's panes: parallel columns."""

    segment: I64
    stat: I64
    value: I64
    end_ms: I64


def entries_of(
    views: Sequence[View], numbering: Numbering, ring_number: int, ring: Ring | None, now_ms: int
) -> Entries:
    """All entries of one ring's panes that the window at ``now_ms`` covers."""
    columns: list[tuple[I64, I64, I64, I64]] = []
    newest = now_ms // ring.pane_ms if ring else 0
    oldest = ring.oldest(now_ms) if ring else 0
    for view, numbers in zip(views, numbering.maps, strict=True):
        chosen = [
            (pane & 0xFFFFFFFF, *entry)
            for pane, entry in view.panes.items()
            if pane >> 32 == ring_number and oldest <= pane & 0xFFFFFFFF <= newest
        ]
        if not chosen:
            continue
        codes = np.concatenate([c for _, c, _ in chosen])
        values = np.concatenate([v for _, _, v in chosen])
        ends = np.array([p + 1 for p, _, _ in chosen]) * (ring.pane_ms if ring else 0)
        end_ms = np.repeat(ends, [len(c) for _, c, _ in chosen])
        columns.append((numbers[codes >> _STAT_BITS], codes & _STAT_MASK, values, end_ms))
    if not columns:
        none = np.zeros(0, np.int64)
        return Entries(none, none, none, none)
    segment, stat, value, end_ms = (np.concatenate(c) for c in zip(*columns, strict=True))
    return Entries(segment, stat, value, end_ms)


class Window:
    """One window, or the totals: sums of every segment, from which rollups are taken."""

    def __init__(
        self,
        settings: Settings,
        layout: Layout,
        segments: Sequence[Segment],
        entries: Entries,
        now_ms: int,
    ) -> None:
        self.settings, self.layout, self.entries = settings, layout, entries
        self.now_ms = now_ms
        is_held = np.bincount(entries.segment, minlength=len(segments)) > 0
        self.segments = [segments[i] for i in is_held.nonzero()[0].tolist()]
        self._row = (np.cumsum(is_held) - 1)[entries.segment]
        self.matrix = self._sum(np.ones(len(self._row), np.bool_))

    def _sum(self, mask: np.ndarray) -> I64:
        size = self.layout.size
        place = self._row[mask] * size + self.entries.stat[mask]
        flat = np.zeros(len(self.segments) * size, np.int64)
        np.add.at(flat, place, self.entries.value[mask])
        return flat.reshape(len(self.segments), size)

    @cached_property
    def overall(self) -> I64:
        sums: I64 = self.matrix.sum(axis=0)
        return sums

    def mature(self, horizon_ms: int) -> I64 | None:
        """Sums over mature panes only; None where the window has none.

        A pane counts as one of the window whether or not anything was filed in it.
        """
        return self._mature.setdefault(horizon_ms, self._mature_sum(horizon_ms))

    @cached_property
    def _mature(self) -> dict[int, I64 | None]:
        return {}

    def _mature_sum(self, horizon_ms: int) -> I64 | None:
        if horizon_ms in self._mature:
            return self._mature[horizon_ms]
        bound_ms = self.now_ms - horizon_ms - self.settings.time.max_lateness_ms
        mask = self.entries.end_ms <= bound_ms
        return self._sum(mask) if mask.any() else None

    def rolled_up(self, rollup: tuple[str, ...]) -> Rolled:
        return Rolled(self, rollup)


class Rolled:
    """A window under one rollup: dimensions outside it are ``all``. Is the metrics' ``Sums``."""

    def __init__(self, window: Window, rollup: tuple[str, ...]) -> None:
        self.window = window
        names = window.settings.dimension_names
        kept = [name in rollup for name in names]
        groups: dict[Segment, int] = {}
        rows = [
            groups.setdefault(
                tuple(v if keep else ALL for v, keep in zip(s, kept, strict=True)), len(groups)
            )
            for s in window.segments
        ]
        self._group = np.array(rows, np.int64)
        self.segments = list(groups)
        self._matrix = self._grouped(window.matrix)

    def _grouped(self, matrix: I64) -> I64:
        if len(self.segments) == len(matrix):
            return matrix
        if len(self.segments) == 1:
            total: I64 = matrix.sum(axis=0, keepdims=True)
            return total
        result = np.zeros((len(self.segments), matrix.shape[1]), np.int64)
        np.add.at(result, self._group, matrix)
        return result

    @property
    def settings(self) -> Settings:
        return self.window.settings

    def _pick(self, matrix: I64, name: str) -> I64:
        span = self.window.layout.span(name)
        picked = matrix[..., span]
        return picked[..., 0] if self.window.layout.width[name] == 1 else picked

    def __call__(self, name: str) -> I64:
        return self._pick(self._matrix, name)

    def overall(self, name: str) -> I64:
        return self._pick(self.window.overall, name)

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        matrix = self.window.mature(horizon_ms)
        return None if matrix is None else self._pick(self._grouped(matrix), name)


def window_of(
    settings: Settings,
    layout: Layout,
    views: Sequence[View],
    numbering: Numbering,
    number: int,
    ring: Ring | None,
    now_ms: int,
) -> Window:
    """The window of one ring at ``now_ms`` (``ring`` None: the totals)."""
    ring_number = number if ring else TOTAL_RING
    entries = entries_of(views, numbering, ring_number, ring, now_ms)
    return Window(settings, layout, numbering.segments, entries, now_ms)
