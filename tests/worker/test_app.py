"""A worker that Kafka gives nothing to: more workers than partitions."""

from __future__ import annotations

import asyncio
from typing import Any

from streamer.state.memory import MemoryStore
from streamer.worker.app import create_app
from streamer.worker.partition_task import Phase
from tests.support.scripted import Bench, running, until


async def test_a_worker_that_is_assigned_nothing_gives_back_what_it_had_and_reports() -> None:
    store = MemoryStore()
    bench = Bench(store)
    app: Any = create_app(bench.settings)
    app.store, app._runner = store, bench.runner
    app._asking, app._reporting = asyncio.Lock(), asyncio.Lock()
    async with running(bench):
        await until(lambda: bench.task.phase is Phase.OWNED, "recovered")
        await app.report()
        assert store.reported["worker"].owned == {0: "owned"}
        await app.on_partitions_revoked.send({("impressions", 0)})
        assert bench.task.phase is Phase.REVOKED
        assert store.claims
        await app.on_partitions_assigned.send(set())  # Faust seeks nothing, so calls nothing else
        assert bench.runner.partitions == {}
        await until(lambda: not store.claims, "given back")
        await until(lambda: not bench.runner.worker_report.owned, "it says so")
        await app.report()
        assert store.reported["worker"].owned == {}
        assert store.reported["worker"].problems == {}
