"""What users did on each day: one row for each (user, day, label), with sums that only add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamer import limits
from streamer.batch import I64, U64, Bools
from streamer.engine.index import mix
from streamer.engine.noted import NotedRows
from streamer.errors import SumOverflowError


@dataclass(frozen=True)
class Days:
    """Rows: user, day since 1970-01-01, label, and the sums of each component."""

    user: U64
    day: I64
    label: I64
    amounts: list[I64]

    def __len__(self) -> int:
        return len(self.user)

    def where(self, mask: Bools | I64) -> Days:
        amounts = [column[mask] for column in self.amounts]
        return Days(self.user[mask], self.day[mask], self.label[mask], amounts)


@dataclass(frozen=True)
class Amounts:
    """What is added to one component."""

    component: int
    user: U64
    day: I64
    label: I64
    amount: I64

    def where(self, mask: Bools) -> Amounts:
        columns = (self.user[mask], self.day[mask], self.label[mask], self.amount[mask])
        return self if mask.all() else Amounts(self.component, *columns)


def _key(user: U64, day: I64, label: I64) -> U64:
    return mix(user, (label.astype(np.uint64) << np.uint64(32)) + day.astype(np.uint64))


class UserDays(NotedRows):
    """The rows of one partition. ``components``: names under which the sums are stored."""

    def __init__(self, components: Sequence[str]) -> None:
        self.components = tuple(components)
        super().__init__(
            components,
            user=np.uint64,
            day=np.int32,
            label=np.int32,
            **dict.fromkeys(components, np.int64),
        )

    def keys(self) -> U64:
        return _key(self.rows["user"], self.rows["day"], self.rows["label"])

    def add(self, parts: Sequence[Amounts]) -> None:
        """Add to rows, which are made where they are missing. SumOverflowError beyond 2**62."""
        user, day, label = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("user", "day", "label")
        )
        columns = {"user": user, "day": day, "label": label}
        row = self.change(_key(user, day, label), columns)
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
        rows = self.rows
        day, label = rows["day"][row].astype(np.int64), rows["label"][row].astype(np.int64)
        return Days(rows["user"][row], day, label, [rows[name][row] for name in self.components])

    # Stored form ---------------------------------------------------------------------------------

    def versions(self, first: int, end: int) -> dict[str, np.ndarray[Any, Any]]:
        """Rows that last changed in the epochs [first, end)."""
        row = self.changed(first, end)
        return {name: self.rows[name][row] for name in ("user", "day", "label", *self.components)}

    def load(self, columns: dict[str, np.ndarray[Any, Any]]) -> None:
        """Take over stored versions, which replace older ones; sums not stored are 0."""
        user, day, label = columns["user"], columns["day"], columns["label"]
        row = self.change(_key(user, day, label), {"user": user, "day": day, "label": label})
        for name in self.components:
            self.rows[name][row] = columns.get(name, 0)
        self.take_noted()
        self.seal()
