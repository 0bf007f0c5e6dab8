"""Since when what stored state holds is counted, where that was added later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamer.metrics.catalogue import Catalogue
from streamer.metrics.rings import rings_of
from streamer.state.changes import SettingChange
from streamer.state.contents import Contents, ItemsHeld
from streamer.state.migration import Holding, rings_after

Changes = Sequence[SettingChange]


class Named(msgspec.Struct, array_like=True, frozen=True):
    """Something that a setting lists, which is counted since ``since_ms`` (stream time)."""

    setting: str
    key: str
    value: str
    since_ms: int


class ItemsCountedSince(msgspec.Struct, array_like=True, frozen=True):
    """Of counts of items: rings by their number, cut-offs and lists by k, and clicks."""

    rings: dict[int, int] = {}
    cutoffs: dict[int, int] = {}
    lists: dict[int, int] = {}
    clicked_ms: int = 0


class CountedSince(msgspec.Struct, frozen=True):
    """Times from which on something is counted; what is not here was counted always.

    ``rings``: by their number; ``codes``: statistics, (first code, stop, time); ``users_ms``: all
    sums over users; ``items``: counts of items.
    ``new_rings``, ``new_codes``: those that this start began, which is not stored.
    """

    rings: dict[int, int] = {}
    codes: list[tuple[int, int, int]] = []
    users_ms: int = 0
    items: ItemsCountedSince = ItemsCountedSince()
    named: list[Named] = []
    new_rings: list[int] = []
    new_codes: list[tuple[int, int]] = []

    def stored(self) -> CountedSince:
        """As another start finds it: nothing is new any more."""
        return msgspec.structs.replace(self, new_rings=[], new_codes=[])

    def core_spec(self, catalogue: Catalogue, stream_ms: int) -> dict[str, Any]:
        """What the core does not count: times that a window at ``stream_ms`` still covers."""
        windows = rings_of(catalogue.settings)
        spans = [ring.span_ms for ring in (*windows, *catalogue.day_before.rings.values())]
        past_ms = stream_ms - max(spans) - max(ring.pane_ms for ring in windows)
        counts = catalogue.item_counts
        rings, cutoffs = (counts.rings, counts.cutoffs) if counts else ((), ())

        def live(ms: int) -> int:
            return ms if ms > past_ms else 0

        codes = [
            (first, stop, {"since_ms": live(ms), "is_new": is_new})
            for first, stop, ms, is_new in self._parts()
        ]
        return {
            "rings": [
                (number, {"since_ms": live(ms), "is_new": number in self.new_rings})
                for number, ms in self.rings.items()
            ],
            "statistics": [each for each in codes if each[2]["since_ms"]],
            "users_ms": [
                live(max(self.users_ms, self.rings.get(number, 0)))
                for number in range(1, 1 + len(windows))
            ],
            "items": {
                "rings_ms": [live(self.items.rings.get(n, 0)) for n, _ in enumerate(rings, 1)],
                "cutoffs_ms": [live(self.items.cutoffs.get(k, 0)) for k in cutoffs],
                "clicked_ms": live(self.items.clicked_ms),
                "lists_ms": [live(self.items.lists.get(k, 0)) for k in cutoffs],
            },
        }

    def _parts(self) -> list[tuple[int, int, int, bool]]:
        """Runs of statistics that are all new, or all not."""
        new = {code for first, stop in self.new_codes for code in range(first, stop)}
        times = [
            (code, 2 * ms + (code in new))
            for first, stop, ms in self.codes
            for code in range(first, stop)
        ]
        return [(first, stop, ms >> 1, bool(ms & 1)) for first, stop, ms in _runs(times)]


NEVER_CHANGED = CountedSince()


def began_after(
    before: CountedSince, old: Holding, new: Holding, found: Changes, newest_ms: int
) -> CountedSince:
    """What is counted since when under our settings, where ``before`` says it of the stored state.
    What is new begins after ``newest_ms``, the newest event that was counted without it."""
    unit_ms = math.gcd(*(pane_ms for pane_ms, _ in new.contents.windows))
    now_ms = (newest_ms // unit_ms + 1) * unit_ms if newest_ms > 0 else 0
    came_from = {now: was for was, now in rings_after(old, new).items()}
    numbers = [*range(1, 1 + len(new.contents.windows)), *new.beside.day_before]
    rings = {n: before.rings.get(came_from[n], 0) if n in came_from else now_ms for n in numbers}
    codes, new_codes = _codes(before, old.contents, new.contents, now_ms)
    has_users = old.contents.has_users or not new.contents.has_users
    return CountedSince(
        rings={number: ms for number, ms in rings.items() if ms},
        codes=codes,
        users_ms=before.users_ms if has_users else now_ms,
        items=_of_items(before.items, old.beside.items, new.beside.items, now_ms),
        named=_named(before, new.contents, found, now_ms) if now_ms else [],
        new_rings=[number for number in numbers if number not in came_from] if now_ms else [],
        new_codes=new_codes if now_ms else [],
    )


def _codes(
    before: CountedSince, old: Contents, new: Contents, now_ms: int
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
    """Times of statistics, and which of them are new, as runs of codes."""
    known = {code: ms for first, stop, ms in before.codes for code in range(first, stop)}
    was, ours = old.codes(), sorted((code, name) for name, code in new.codes().items())
    times = [(code, known.get(was[n], 0) if n in was else now_ms) for code, n in ours]
    runs = [(first, stop, ms) for first, stop, ms in _runs(times) if ms]
    is_new = _runs([(code, int(name not in was)) for code, name in ours])
    return runs, [(first, stop) for first, stop, new_one in is_new if new_one]


def _runs(values: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """
    >>> _runs([(3, 7), (4, 7), (5, 0), (9, 0)])
    [(3, 5, 7), (5, 6, 0), (9, 10, 0)]
    """
    runs: list[tuple[int, int, int]] = []
    for code, value in values:
        if runs and runs[-1][1:] == (code, value):
            runs[-1] = (runs[-1][0], code + 1, value)
        else:
            runs.append((code, code + 1, value))
    return runs


def _of_items(
    before: ItemsCountedSince, old: ItemsHeld | None, new: ItemsHeld | None, now_ms: int
) -> ItemsCountedSince:
    if new is None:
        return ItemsCountedSince()
    if old is None:
        return ItemsCountedSince(rings=dict.fromkeys(range(1, 1 + len(new.rings)), now_ms))
    was = {span: number for number, span in enumerate(old.rings, 1)}
    rings = {
        number: before.rings.get(was[span], 0) if span in was else now_ms
        for number, span in enumerate(new.rings, 1)
    }
    of_lists = old.cutoffs if old.has_lists else []
    return ItemsCountedSince(
        rings={number: ms for number, ms in rings.items() if ms},
        cutoffs=_after(before.cutoffs, old.cutoffs, new.cutoffs, now_ms),
        lists=_after(before.lists, of_lists, new.cutoffs, now_ms) if new.has_lists else {},
        clicked_ms=before.clicked_ms if old.has_lists else now_ms * new.has_lists,
    )


def _after(
    before: Mapping[int, int], old: Sequence[int], new: Sequence[int], now_ms: int
) -> dict[int, int]:
    times = {k: before.get(k, 0) if k in old else now_ms for k in new}
    return {k: ms for k, ms in times.items() if ms}


def _named(before: CountedSince, ours: Contents, found: Changes, now_ms: int) -> list[Named]:
    begins = {(change.setting, change.key): change.value for change in found if change.begins}
    still = [
        each
        for each in before.named
        if each.key in ours.listed.get(each.setting, {}) and (each.setting, each.key) not in begins
    ]
    return [*still, *(Named(*name, value, now_ms) for name, value in begins.items())]
