"""The store in memory, which is the reference, passes the suite of all stores."""

from __future__ import annotations

import pytest

from streamer.store.base import Store
from streamer.store.memory import MemoryStore
from tests.store_suite import JournalSuite, ReaderSuite, StoreSuite


@pytest.fixture
def store() -> Store:
    return MemoryStore()


class TestMemoryStore(StoreSuite):
    pass


class TestJournalInMemory(JournalSuite):
    pass


class TestReaderInMemory(ReaderSuite):
    pass
