"""What users did: one row for each (user, day or time, label, part), with sums that only add.

The part says to which exposure a row belongs, and whether it is of before or after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamer import limits
from streamer.batch import I64, U64, Bools
from streamer.engine.index import mix
from streamer.engine.noted import Column, NotedRows
from streamer.errors import SumOverflowError
from streamer.experiment_settings import DAY_MS


@dataclass(frozen=True)
class Days:
    """Rows: user, day since 1970-01-01, label, part (see ``exposures``), sums of each component."""

    user: U64
    day: I64
    label: I64
    part: I64
    amounts: list[I64]

    def __len__(self) -> int:
        return len(self.user)

    def where(self, mask: Bools | I64) -> Days:
        amounts = [column[mask] for column in self.amounts]
        columns = (self.user[mask], self.day[mask], self.label[mask], self.part[mask])
        return Days(*columns, amounts)


@dataclass(frozen=True)
class Amounts:
    """What is added to one component, at days or at times (ms)."""

    component: int
    user: U64
    at: I64
    label: I64
    part: I64
    amount: I64

    def where(self, mask: Bools) -> Amounts:
        if mask.all():
            return self
        label, part, amount = self.label[mask], self.part[mask], self.amount[mask]
        return Amounts(self.component, self.user[mask], self.at[mask], label, part, amount)

    def by_day(self) -> Amounts:
        """What is given at times, under their days."""
        return replace(self, at=self.at // DAY_MS)


def joined(first: Days, second: Days) -> Days:
    """All rows of both."""
    if not len(second):
        return first
    user, day, label, part = (
        np.concatenate([getattr(first, name), getattr(second, name)])
        for name in ("user", "day", "label", "part")
    )
    amounts = [np.concatenate(both) for both in zip(first.amounts, second.amounts, strict=True)]
    return Days(user, day, label, part, amounts)


_KEY = ("user", "at", "label", "part")


def _key(columns: Mapping[str, Column]) -> U64:
    label, part = columns["label"].astype(np.uint64), columns["part"].astype(np.uint64)
    at = mix(columns["at"].astype(np.uint64), part)
    return mix(columns["user"], at + (label << np.uint64(32)))


class UserDays(NotedRows):
    """The rows of one partition, by day or by time. ``components``: names under which the sums are
    stored."""

    def __init__(self, components: Sequence[str]) -> None:
        self.components = tuple(components)
        super().__init__(
            components,
            user=np.uint64,
            at=np.int64,
            label=np.int32,
            part=np.int64,
            **dict.fromkeys(components, np.int64),
        )

    def keys(self) -> U64:
        return _key({name: self.rows[name] for name in _KEY})

    def add(self, parts: Sequence[Amounts]) -> None:
        """Add to rows, which are made where they are missing. SumOverflowError beyond 2**62."""
        if not sum(len(part.user) for part in parts):
            return
        columns = {n: np.concatenate([getattr(part, n) for part in parts]) for n in _KEY}
        row = self.change(_key(columns), columns)
        start = 0
        for part in parts:
            mine = row[start : start + len(part.user)]
            start += len(part.user)
            held = self.rows[self.components[part.component]]
            np.add.at(held, mine, part.amount)
            if len(mine) and np.abs(held[mine]).max() > limits.MAX_SUM:
                name = self.components[part.component]
                raise SumOverflowError(f"the sum of {name} of a user's day would pass 2**62")

    def days(self, row: I64) -> Days:
        """Copies of rows."""
        user, at, label, part = (self.rows[name][row] for name in _KEY)
        amounts = [self.rows[name][row] for name in self.components]
        return Days(user, at, label.astype(np.int64), part, amounts)

    def all_rows(self) -> Days:
        """Copies of all rows."""
        return self.days(np.arange(len(self)))

    # Stored form ---------------------------------------------------------------------------------

    def load(self, columns: dict[str, Column]) -> None:
        """Take over stored versions, which replace older ones; sums not stored are 0."""
        row = self.change(_key(columns), {name: columns[name] for name in _KEY})
        for name in self.components:
            self.rows[name][row] = columns.get(name, 0)
        self.take_noted()
        self.seal()
