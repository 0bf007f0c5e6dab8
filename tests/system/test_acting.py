"""`streamer act` beside real workers, Kafka and Redis: from the deciding event to the message."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.actions.world import DAY, even, harmful, lines_of, receiver
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.workers import as_toml, bench, document_of, produce, until

USERS = range(400)
PARTITIONS = 2


def records_of(day: int, users: range, share: Any) -> list[LogRecord]:
    """As keyed by user."""
    offsets: dict[tuple[str, int], int] = {}
    found = []
    for log, ts, value in lines_of(day, users, share, even):
        number = int(json.loads(value)["user_id"][1:]) // 2 % PARTITIONS
        offset = offsets[log, number] = offsets.get((log, number), -1) + 1
        found.append(LogRecord(log, number, offset, ts, value))
    return found


@contextmanager
def acting(path: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "streamer", "act", "-c", str(path)]
    with (path.parent / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(180)
async def test_a_leader_is_killed_and_the_other_one_tells_once(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
) -> None:
    names = topics(partitions=PARTITIONS)
    async with receiver() as (there, url):
        there.answers = [5.0]  # the first leader dies while it waits for the answer
        experiment = {
            "name": "ranker",
            "dimension": "variant",
            "control": "A",
            "split": {"A": 1, "B": 1},
            "start": DAY,
        }
        settings = {
            "dimensions": [{"name": "variant"}],
            "experiments": [experiment],
            "actions": [{"url": url, "max_age": "365d"}],
            "time": {"max_lateness": "1h", "max_skew": "10d", "dedup_horizon": "1h"},
        }
        document = document_of(kafka, names, redis_url, redis_prefix, settings)
        async with bench(tmp_path, document) as made:
            made.config.write_text(as_toml(document))
            made.start_worker()
            await produce(kafka, names, records_of(0, USERS, lambda arm, user: 0))

            async def counted() -> bool:
                await made.reader.refresh()
                return len(made.reader.manifests) == PARTITIONS

            await until(counted, "both partitions are committed", made.said)
            with acting(made.config, "first") as first:

                async def has_looked() -> bool:
                    return "looked" in await made.store.acted()

                await until(has_looked, "somebody looks", made.said)
                await produce(kafka, names, records_of(0, range(400, 1200), harmful))

                async def asked() -> bool:
                    return bool(there.got)

                await until(asked, "the receiver is told of the harm", made.said)
                first.kill()
                with acting(made.config, "second"):

                    async def told() -> bool:
                        kept = (await made.store.acted()).values()
                        return any(b'"delivered"' in each for each in kept)

                    await until(told, "the other process goes on", made.said)
            await made.stop_workers()
        assert set(there.keys) == {f"ranker/{DAY}/harm/B/1"}
        assert 2 <= len(there.keys) <= 3
        assert all(each["kind"] == "harm" for each in there.documents())


async def test_settings_without_actions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "streamer.toml"
    path.write_text("")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streamer", "act", "-c", str(path)),
        stderr=subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"there is no [[actions]]: say what is sent where" in said
