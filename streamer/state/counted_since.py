"""Since when what stored state holds is counted, where that was added later."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from streamer.metrics.catalogue import Catalogue
from streamer.metrics.rings import rings_of
from streamer.state.changes import SettingChange
from streamer.state.contents import Contents, ItemsHeld
from streamer.state.migration import Holding, rings_after

Changes = Sequence[SettingChange]
Span = tuple[int, int, int]
"""Codes of statistics: first, stop, and a time."""


class Named(msgspec.Struct, array_like=True, frozen=True):
    """Something that a setting lists, which is counted since ``since_ms`` (stream time)."""

    setting: str
    key: str
    value: str
    since_ms: int


class ItemsCountedSince(msgspec.Struct, array_like=True, frozen=True):
    """Of counts of items: rings by their number, cut-offs and lists by k, clicks, people, pairs."""

    rings: dict[int, int] = {}
    cutoffs: dict[int, int] = {}
    lists: dict[int, int] = {}
    clicked_ms: int = 0
    people_ms: int = 0
    pairs_ms: int = 0


class CountedSince(msgspec.Struct, frozen=True):
    """Times from which on something is counted; what is not here was counted always.

    ``rings``: by their number; ``codes``: statistics, (first code, stop, time); ``rollups``: by
    ``Rollup.key``, likewise of what each keeps; ``users_ms``: all sums over users; ``items``:
    counts of items. ``new_rings``, ``new_codes``, ``new_rollups``: those that this start began,
    which is not stored.
    """

    rings: dict[int, int] = {}
    rollups: dict[str, list[Span]] = {}
    codes: list[Span] = []
    users_ms: int = 0
    items: ItemsCountedSince = ItemsCountedSince()
    named: list[Named] = []
    new_rings: list[int] = []
    new_codes: list[tuple[int, int]] = []
    new_rollups: dict[str, list[tuple[int, int]]] = {}

    def stored(self) -> CountedSince:
        """As another start finds it: nothing is new any more."""
        return msgspec.structs.replace(self, new_rings=[], new_codes=[], new_rollups={})

    def core_spec(self, catalogue: Catalogue, stream_ms: int) -> dict[str, Any]:
        """What the core does not count: times that a window at ``stream_ms`` still covers."""
        windows = rings_of(catalogue.settings)
        spans = [ring.span_ms for ring in (*windows, *catalogue.day_before.rings.values())]
        past_ms = stream_ms - max(spans) - max(ring.pane_ms for ring in windows)
        counts = catalogue.item_counts
        rings, cutoffs = (counts.rings, counts.cutoffs) if counts else ((), ())

        def live(ms: int) -> int:
            return ms if ms > past_ms else 0

        return {
            "rings": [
                (number, {"since_ms": live(ms), "is_new": number in self.new_rings})
                for number, ms in self.rings.items()
            ],
            "statistics": _spec_of(_parts(self.codes, self.new_codes), live),
            "users_ms": [
                live(max(self.users_ms, self.rings.get(number, 0)))
                for number in range(1, 1 + len(windows))
            ],
            "rollups": {
                key: _spec_of(_parts(since, self.new_rollups.get(key, [])), live)
                for key, since in self.rollups.items()
            },
            "items": {
                "rings_ms": [live(self.items.rings.get(n, 0)) for n, _ in enumerate(rings, 1)],
                "cutoffs_ms": [live(self.items.cutoffs.get(k, 0)) for k in cutoffs],
                "clicked_ms": live(self.items.clicked_ms),
                "people_ms": live(self.items.people_ms),
                "pairs_ms": live(self.items.pairs_ms),
                "lists_ms": [live(self.items.lists.get(k, 0)) for k in cutoffs],
            },
        }


def _parts(
    codes: Sequence[Span], new_codes: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int, bool]]:
    """Runs of statistics that are all new, or all not."""
    new = {code for first, stop in new_codes for code in range(first, stop)}
    times = [
        (code, 2 * ms + (code in new)) for first, stop, ms in codes for code in range(first, stop)
    ]
    return [(first, stop, ms >> 1, bool(ms & 1)) for first, stop, ms in _runs(times)]


def _spec_of(
    parts: Sequence[tuple[int, int, int, bool]], live: Callable[[int], int]
) -> list[tuple[int, int, dict[str, Any]]]:
    """Those whose time a window still covers, as the core reads them."""
    return [
        (first, stop, {"since_ms": live(ms), "is_new": is_new})
        for first, stop, ms, is_new in parts
        if live(ms)
    ]


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
    rollups, new_rollups = _rollups(before, old.contents, new.contents, now_ms)
    codes, new_codes = _codes(before, old.contents, new.contents, now_ms)
    has_users = old.contents.has_users or not new.contents.has_users
    return CountedSince(
        rings={number: ms for number, ms in rings.items() if ms},
        rollups=rollups,
        codes=codes,
        users_ms=before.users_ms if has_users else now_ms,
        items=_of_items(before.items, old.beside.items, new.beside.items, now_ms),
        named=_named(before, new.contents, found, now_ms) if now_ms else [],
        new_rings=[number for number in numbers if number not in came_from] if now_ms else [],
        new_codes=new_codes if now_ms else [],
        new_rollups=new_rollups if now_ms else {},
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


def _rollups(
    before: CountedSince, old: Contents, new: Contents, now_ms: int
) -> tuple[dict[str, list[Span]], dict[str, list[tuple[int, int]]]]:
    """Of each rollup times of what it keeps, and which of that is new in it."""
    was = defaultdict[int, list[str]](list)
    for name, code in old.codes().items():
        was[code].append(name)
    ours = {code: name for name, code in new.codes().items()}
    times, is_new = dict[str, list[Span]](), dict[str, list[tuple[int, int]]]()
    for key, spans in new.rollups.items():
        since = {
            name: ms
            for first, stop, ms in before.rollups.get(key, [])
            for code in range(first, stop)
            for name in was[code]
        }
        kept = {name for code in _codes_of(old.rollups.get(key, [])) for name in was[code]}
        named = [(code, ours[code]) for code in _codes_of(spans) if code in ours]
        found = [(code, since.get(n, 0) if n in kept else now_ms) for code, n in named]
        if runs := [run for run in _runs(found) if run[2]]:
            times[key] = runs
        fresh = _runs([(code, 1) for code, name in named if name not in kept])
        if fresh:
            is_new[key] = [(first, stop) for first, stop, _ in fresh]
    return times, is_new


def _codes_of(spans: Sequence[tuple[int, int]]) -> list[int]:
    return [code for first, stop in spans for code in range(first, stop)]


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
        people_ms=before.people_ms if old.has_people else now_ms * new.has_people,
        pairs_ms=before.pairs_ms if old.has_pairs else now_ms * new.has_pairs,
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
