"""The store in memory, which is the reference, passes the suite of all stores."""

from __future__ import annotations

import pytest

from streamer.state.memory import MemoryStore
from streamer.state.store import Answer, Store
from tests.state.experiment_suite import ExperimentSuite
from tests.state.journal_suite import JournalSuite
from tests.state.reader_suite import ReaderSuite
from tests.state.store_suite import StoreSuite, step
from tests.support.lanes import long


@pytest.fixture
def store() -> Store:
    return MemoryStore()


class TestMemoryStore(StoreSuite):
    pass


async def test_a_commit_whose_blobs_are_gone_changes_nothing() -> None:
    store = MemoryStore()
    claim, _ = await store.claim(0)
    whole = step(claim, b"", b"p1", {"a": b"1", "b": b"2"})
    store.write(0, {"a": b"1"})
    assert await store.flip(0, whole) == Answer.INCOMPLETE
    assert (await store.read(0)).position == b""
    assert await store.commit(0, whole) == Answer.OK


# What is built on a store is the same over each: the short lane runs it over Redis.


@long
class TestJournalInMemory(JournalSuite):
    pass


@long
class TestReaderInMemory(ReaderSuite):
    pass


@long
class TestExperimentsInMemory(ExperimentSuite):
    pass
