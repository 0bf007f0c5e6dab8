"""Where each statistic stands in a row of a pane: blocks of 64 integers, in catalogue order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamer._core import USER_GROUPS
from streamer.errors import StreamerError

BLOCK_STATS = 64
NARROW = 16
"""Statistics up to so wide share blocks."""
By = str | dict[str, Any] | None
"""What divides a sum into classes, as the core calls it; None: nothing."""
USER_GROUP = "user_group"
"""Groups of users: a statistic has all of its sums by them, or none."""
MAX_BLOCKS = 512


@dataclass(frozen=True)
class Stat:
    """One additive integer statistic, ``width`` integers wide.

    ``of``: the sums that fill it one after another, each with what divides it into classes; by
    default the sum of its name. ``largest`` is the largest addend of one event, so that the sum of
    2**62 / largest events is safe. ``keys``: what each integer is, where its place does not say it:
    stored sums are known by them, wherever they stand.
    """

    name: str
    largest: int = 1
    width: int = 1
    keys: tuple[str, ...] = ()
    of: tuple[tuple[str, By], ...] | None = None
    in_windows: bool = True
    in_totals: bool = False
    """Whether it is counted since the state began."""

    @property
    def filled(self) -> tuple[tuple[str, By], ...]:
        """The sums that fill it."""
        return ((self.name, None),) if self.of is None else self.of

    @property
    def parts(self) -> tuple[str, ...]:
        """A name for each of its integers.

        >>> Stat("sessions").parts, Stat("bins", width=2).parts
        (('sessions',), ('bins/0', 'bins/1'))
        """
        named = tuple(f"{self.name}/{i}" for i in range(self.width))
        return self.keys or ((self.name,) if self.width == 1 else named)


@dataclass(frozen=True)
class Layout:
    """Offsets of all statistics. Narrow ones share a block; a wide one starts its own."""

    stats: tuple[Stat, ...]

    @cached_property
    def at(self) -> dict[str, int]:
        """Name → code of its first integer; a code is block * 64 + place."""
        narrow = [s for s in self.stats if s.width <= NARROW]
        wide = [s for s in self.stats if s.width > NARROW]
        codes, end = {}, 0
        for stat in narrow:
            codes[stat.name] = end
            end += stat.width
        block = -(-end // BLOCK_STATS)
        for stat in wide:
            codes[stat.name] = block * BLOCK_STATS
            block += -(-stat.width // BLOCK_STATS)
        if block > MAX_BLOCKS:
            raise StreamerError(f"{block} blocks of statistics; at most {MAX_BLOCKS} fit a row")
        return codes

    @cached_property
    def width(self) -> dict[str, int]:
        """Name → how many integers the statistic has."""
        return {s.name: s.width for s in self.stats}

    @cached_property
    def by_group(self) -> dict[str, tuple[str, slice]]:
        """Sum → the statistic that has it by group of users, and where."""
        return {
            name: (stat.name, slice(i * USER_GROUPS, (i + 1) * USER_GROUPS))
            for stat in self.stats
            for i, (name, by) in enumerate(stat.filled)
            if by == USER_GROUP
        }

    def span(self, name: str) -> slice:
        """The codes of one statistic."""
        return slice(self.at[name], self.at[name] + self.width[name])

    @property
    def size(self) -> int:
        """Length of a vector indexed by code."""
        return max((self.at[s.name] + s.width for s in self.stats), default=0)


def runs_of(codes: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending codes as runs, [first, stop).

    >>> runs_of([3, 4, 5, 9]), runs_of([])
    ([(3, 6), (9, 10)], [])
    """
    runs: list[tuple[int, int]] = []
    for code in codes:
        first = runs.pop()[0] if runs and runs[-1][1] == code else code
        runs.append((first, code + 1))
    return runs


def merge(layouts: Sequence[Sequence[Stat]]) -> Layout:
    """One layout of several families' statistics; a name that stands twice must mean the same."""
    merged: dict[str, Stat] = {}
    for stats in layouts:
        for stat in stats:
            if merged.setdefault(stat.name, stat) != stat:
                raise StreamerError(f"statistic {stat.name!r} is declared twice, differently")
    return Layout(tuple(merged.values()))
