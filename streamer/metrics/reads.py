"""What a metric declares that it reads: sums of a window, or of the totals.

From it follow its values, which of the sums each rollup keeps, and since when all of it is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from streamer.encoding.arrays import I64
from streamer.metrics.item_counts import ItemTable
from streamer.metrics.layout import Layout


class Sums(Protocol):
    """Sums of a window (or of the totals), one row for each segment shown."""

    def statistic(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        """Integers of a statistic, (segments,) or (segments, width): of all panes, or of those
        that are mature for a horizon; None where none is."""
        ...

    def overall(self, name: str) -> I64:
        """A statistic over all segments: () or (width,)."""
        ...

    def day_before(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        """As ``statistic``, of the same window a day before, of those panes that are mature now;
        None where that is not kept. Only what ``Catalogue.day_before`` names is there."""
        ...

    def users(self, stat: int) -> I64:
        """A statistic of ``metrics.users``, scaled to all users: (segments,)."""
        ...

    def users_of_longest(self, stat: int) -> I64:
        """``users`` over the longest window, of the same segments."""
        ...

    def by_value(self, name: str, horizon_ms: int | None) -> Mapping[str, I64]:
        """Of the total: each dimension, and a statistic by those of its values that are kept;
        over mature panes only where a horizon is given. Nothing in other rollups."""
        ...

    def items(self, places: Sequence[int], horizon_ms: int | None) -> Mapping[int, ItemTable]:
        """Row → the items of its segment, to read these counts of; over mature panes only where a
        horizon is given. Nothing where they are not counted by these dimensions, or no pane is
        mature."""
        ...

    @property
    def is_total(self) -> bool:
        """Whether the one segment is that of everything."""
        ...

    @property
    def all_items(self) -> ItemTable | None:
        """All items of the longest window; None where they are not counted."""
        ...

    @property
    def rows(self) -> Sequence[Any]:
        """The segments, of which each has a row."""
        ...

    @property
    def user_sample_ratio(self) -> float:
        """Share of the users that statistics of users are made of."""
        ...

    @property
    def layout(self) -> Layout:
        """Where statistics stand, of which these are the sums."""
        ...


class Read(Protocol):
    """Something that a metric reads; equal ones are read once."""

    def of(self, sums: Sums) -> Any:
        """What is found; None: it is not there, nor any series that reads it."""
        ...

    def parts(self, layout: Layout) -> Iterator[Part]:
        """What it is made of."""
        ...


@dataclass(frozen=True)
class _Part:
    """What is made of nothing else."""

    def parts(self, layout: Layout) -> Iterator[Self]:
        yield self


@dataclass(frozen=True)
class Statistic(_Part):
    """Integers of a statistic; over panes only that are mature for a horizon, where one is given.
    ``sum_name``: the sum that they are of, where the statistic has several; ``is_always``: it is
    only looked at for whether there is any, wherever it was counted."""

    name: str
    horizon_ms: int | None = None
    first: int = 0
    stop: int | None = None
    sum_name: str = ""
    is_always: bool = False
    is_day_before: bool = False

    @property
    def within(self) -> slice:
        return slice(self.first, self.stop)

    def codes(self, layout: Layout) -> range:
        """The codes of what is read."""
        span = layout.span(self.name)
        return range(span.start, span.stop)[self.within]

    def of(self, sums: Sums) -> I64 | None:
        read = sums.day_before if self.is_day_before else sums.statistic
        return read(self.name, self.within, self.horizon_ms)


@dataclass(frozen=True)
class Overall(_Part):
    """A statistic over all segments."""

    name: str

    def of(self, sums: Sums) -> I64:
        return sums.overall(self.name)


@dataclass(frozen=True)
class Users(_Part):
    """A sum over users, of the longest window where that is said."""

    stat: int
    is_of_longest: bool = False

    def of(self, sums: Sums) -> I64:
        return (sums.users_of_longest if self.is_of_longest else sums.users)(self.stat)


@dataclass(frozen=True)
class ByValue(_Part):
    """A statistic by the values of each dimension."""

    name: str
    horizon_ms: int | None = None

    def of(self, sums: Sums) -> Mapping[str, I64]:
        return sums.by_value(self.name, self.horizon_ms)


@dataclass(frozen=True)
class OfItems(_Part):
    """Counts of the items of each segment; ``is_of_total``: of the total only."""

    places: tuple[int, ...]
    horizon_ms: int | None = None
    is_of_total: bool = False

    def of(self, sums: Sums) -> Mapping[int, ItemTable] | None:
        if self.is_of_total and not sums.is_total:
            return {}
        found = sums.items(self.places, self.horizon_ms)
        return None if self.horizon_ms is not None and not found else found


@dataclass(frozen=True)
class AllItems(_Part):
    """``Sums.all_items``, which is not there with an empty table."""

    def of(self, sums: Sums) -> ItemTable | None:
        return sums.all_items


@dataclass(frozen=True)
class Given:
    """A value that is known without any sum."""

    value: Any

    def of(self, sums: Sums) -> Any:
        return self.value

    def parts(self, layout: Layout) -> Iterator[Part]:
        yield from ()


@dataclass(frozen=True)
class Rows(Given):
    """How many segments there are."""

    value: None = None

    def of(self, sums: Sums) -> int:
        return len(sums.rows)


@dataclass(frozen=True)
class UserSampleRatio(Given):
    """Share of the users that statistics of users are made of."""

    value: None = None

    def of(self, sums: Sums) -> float:
        return sums.user_sample_ratio


Part = Statistic | Overall | Users | ByValue | OfItems | AllItems
