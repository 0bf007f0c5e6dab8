"""Workers end with the supervisor that started them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from tests.integration.conftest import MakeTopics
from tests.integration.workers import bench, document_of, until
from tests.lanes import long


@long
async def test_workers_end_when_their_supervisor_is_killed(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    document = document_of(kafka, topics(partitions=2), redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        command = [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
        supervisor = made.start_worker([*command, "--workers", "2"])

        async def reported() -> bool:
            return len(await made.store.reports()) == 2

        async def has_left() -> bool:
            return not await made.store.reports()

        await until(reported, "two workers report", made.said)
        supervisor.process.send_signal(signal.SIGKILL)
        supervisor.process.wait()
        await until(has_left, "both have ended and taken their leave", made.said)
