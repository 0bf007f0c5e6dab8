"""Panes as blobs: few of them, and at most twice the rows that are in use."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, cast

import numpy as np
import pytest

from streamer._core import TOTAL_RING, Core
from streamer.errors import CodecError
from streamer.metrics.rings import Ring
from streamer.settings import limits
from streamer.state import codec
from streamer.state.panes import PaneBlobs, split
from tests.support.lanes import shortened

RINGS = (Ring("1m", 1000, 60), Ring("1h", 60_000, 60))


Sums = Counter[int]
"""Code → sum."""


class Held:
    """Panes as the core hands them out."""

    def __init__(self) -> None:
        self.panes: dict[int, Sums] = {}
        self.changed: set[int] = set()

    def add(self, pane: int, code: int, amount: int) -> None:
        self.panes.setdefault(pane, Counter())[code] += amount
        self.changed.add(pane)

    def expire(self, stream_ms: int) -> None:
        for number, ring in enumerate(RINGS, 1):
            first = number << 32 | max(0, ring.oldest(stream_ms))
            for pane in [p for p in self.panes if p >> 32 == number and p < first]:
                del self.panes[pane]

    def take_changed_panes(self, series: int | None) -> list[int]:
        changed, self.changed = self.changed, set()
        return sorted(changed)

    def dump_panes(self, panes: list[int], series: int | None) -> tuple[Any, Any, Any]:
        rows = [
            (pane, code, value)
            for pane in panes
            for code, value in sorted(self.panes.get(pane, {}).items())
        ]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def load_pane(self, pane: int, codes: Any, values: Any, series: int | None) -> None:
        self.panes[pane] = Counter(dict(zip(codes.tolist(), values.tolist(), strict=True)))


def blobs_of(held: Held) -> PaneBlobs:
    return PaneBlobs(cast(Core, held), RINGS)


class Blobs:
    """What a store would hold of one set of panes."""

    def __init__(self) -> None:
        self.of_core = Held()
        self.panes = blobs_of(self.of_core)
        self.held: dict[str, bytes] = {}
        self.written = 0

    def commit(self, stream_ms: int) -> None:
        delete: list[str] = []
        self.panes.put(stream_ms, self._put, delete)
        for name in delete:
            del self.held[name]

    def _put(self, columns: codec.Columns) -> str:
        self.written += 1
        name = str(self.written)
        self.held[name] = codec.encode(columns, name)
        return str(self.written)

    def loaded(self) -> dict[int, Sums]:
        fresh, names = Held(), self.panes.names
        blobs_of(fresh).load(names, [codec.decode(self.held[name], name) for name in names])
        return fresh.panes

    def count(self, times_ms: list[int], stream_ms: int) -> None:
        for time_ms in times_ms:
            for number, ring in enumerate(RINGS, 1):
                self.of_core.add(number << 32 | time_ms // ring.pane_ms, time_ms % 7, 1)
            self.of_core.add(TOTAL_RING << 32, time_ms % 5, 1)
        self.of_core.expire(stream_ms)


@pytest.mark.parametrize("most_rows", [10, 500_000])
@pytest.mark.parametrize("seed", shortened(list(range(5))))
def test_blobs_hold_what_the_core_holds(
    seed: int, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BLOB_ROWS", most_rows)
    dice, blobs, stream_ms = random.Random(seed), Blobs(), 0
    for _ in range(60):
        stream_ms += dice.choice([0, 500, 4000, 90_000])
        blobs.count([max(0, stream_ms - dice.randrange(50_000)) for _ in range(40)], stream_ms)
        before = blobs.written
        blobs.commit(stream_ms)
        assert blobs.loaded() == blobs.of_core.panes
        decoded = [split(codec.decode(data, name)) for name, data in blobs.held.items()]
        assert blobs.held.keys() == blobs.panes.names.keys()
        stored = sum(len(codes) for panes in decoded for codes, _ in panes.values())
        in_use = sum(map(len, blobs.of_core.panes.values()))
        assert stored <= 2 * in_use
        if most_rows > in_use:
            assert blobs.written == before + 1, "a commit wrote more than one blob"
        assert all(len(p) == 1 or sum(len(c) for c, _ in p.values()) <= most_rows for p in decoded)


def test_a_pane_that_its_blob_lacks_is_refused() -> None:
    blobs = Blobs()
    blobs.count([1000, 2000], 2000)
    blobs.commit(2000)
    ((name, panes),) = blobs.panes.names.items()
    columns = codec.decode(blobs.held[name], name)
    with pytest.raises(CodecError, match=f"blob '{name}' has no pane 77, which its manifest lists"):
        blobs_of(Held()).load({name: [*panes, 77]}, [columns])
    with pytest.raises(CodecError, match="a blob of panes has no column 'pane'"):
        blobs_of(Held()).load({name: panes}, [{"key": np.arange(3)}])
