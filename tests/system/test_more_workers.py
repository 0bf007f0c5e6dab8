"""More workers than partitions: Kafka gives some of them nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.cases import LIVE
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import Bench, bench, document_of, until


async def reported(made: Bench) -> dict[str, dict[int, str]]:
    """What each worker that is there says it has."""
    return {r.worker: r.owned for r in await made.store.reports() if r.is_present}


@long
@pytest.mark.timeout(120)
async def test_a_worker_that_loses_its_only_partition_reports_that_it_has_nothing(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    """It is stopped for longer than its session; meanwhile the other one takes the partition."""
    document = document_of(kafka, topics(partitions=1), redis_url, redis_prefix, LIVE)
    async with bench(tmp_path, document) as made:
        first = made.start_worker()

        async def is_owned() -> bool:
            return list((await reported(made)).values()) == [{0: "owned"}]

        await until(is_owned, "the first one has the partition", made.said)
        made.start_worker()

        async def is_idle() -> list[str]:
            return [w for w, owned in (await reported(made)).items() if owned == {}]

        (late,) = await until(is_idle, "the second one has nothing, and says so", made.said)
        first.process.send_signal(signal.SIGSTOP)

        async def is_taken_over() -> bool:
            return (await reported(made))[late] == {0: "owned"}

        await until(is_taken_over, "the second one has the partition", made.said)
        first.process.send_signal(signal.SIGCONT)

        async def is_one_idle() -> bool:
            """Whichever of them it is: the group may give the partition back."""
            owned = sorted((await reported(made)).values(), key=len)
            return owned == [{}, {0: "owned"}]

        await until(is_one_idle, "the other one says that it has nothing", made.said)
        await made.stop_workers()
        assert await made.store.owner(0) is None
