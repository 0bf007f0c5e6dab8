"""Growable columns against plain lists."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from streamer.engine.table import Table


class TableMachine(RuleBasedStateMachine):
    """Appends, drops and masks in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table(key=np.uint64, small=np.int32, flag=np.bool_)
        self.rows: list[tuple[int, int, bool]] = []
        self.serial = 0

    @rule(n=st.sampled_from([0, 1, 3, 700, 1024, 2500]))
    def append(self, n: int) -> None:
        keys = list(range(self.serial, self.serial + n))
        self.serial += n
        columns = {"key": np.array(keys, np.uint64), "small": -1, "flag": np.array(keys) % 2 == 0}
        assert self.table.append(columns, n) == len(self.rows)
        self.rows += [(k, -1, k % 2 == 0) for k in keys]

    @rule(share=st.floats(0, 1))
    def drop_front(self, share: float) -> None:
        n = int(share * len(self.rows))
        self.table.drop_front(n)
        self.rows = self.rows[n:]

    @rule(modulus=st.integers(1, 5))
    def keep(self, modulus: int) -> None:
        mask = np.array([k % modulus == 0 for k, _, _ in self.rows], np.bool_)
        self.table.keep(mask)
        self.rows = [row for row, kept in zip(self.rows, mask, strict=True) if kept]

    @rule(value=st.integers(-5, 5))
    def write_through_a_view(self, value: int) -> None:
        self.table["small"][:] = value
        self.rows = [(k, value, f) for k, _, f in self.rows]

    @invariant()
    def equals_the_lists(self) -> None:
        assert len(self.table) == len(self.rows)
        columns = (self.table[name].tolist() for name in self.table.names)
        assert list(zip(*columns, strict=True)) == self.rows


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_take_gives_copies() -> None:
    table = Table(key=np.int64)
    table.append({"key": np.arange(10)}, 10)
    table.drop_front(2)
    taken = table.take(1, 4)
    taken["key"][:] = 0
    assert table["key"].tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    assert table.take(0, 0)["key"].tolist() == []


def test_memory_shrinks_again() -> None:
    table = Table(key=np.int64)
    table.append({"key": np.arange(100_000)}, 100_000)
    grown = table.nbytes
    table.keep(np.arange(100_000) < 10)
    assert table.nbytes < grown / 50


def test_a_queue_of_bounded_length_has_bounded_memory() -> None:
    table = Table(key=np.int64)
    for i in range(300):
        table.append({"key": np.full(1000, i)}, 1000)
        if len(table) > 5000:
            table.drop_front(1000)
    assert table.nbytes <= 8 * 32_768
