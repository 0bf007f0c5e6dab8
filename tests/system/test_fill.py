"""New settings get a past: the retained log is counted again beside workers that go on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition

from streamer.cli.main import main
from tests.support.agreement import DOCUMENTS
from tests.support.cases import (
    LIVE,
    PARTITIONS,
    check_dead_letters,
    check_readings,
    check_states,
    random_case,
)
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, sized
from tests.support.workers import as_toml, bench, document_of, ends_of, produce

BEFORE: dict[str, Any] = {
    "dimensions": [dict(each) for each in DOCUMENTS["few values"]["dimensions"][:2]],
    "time": LIVE["time"],
    "limits": LIVE["limits"],
    "policies": LIVE["policies"],
    "ratios": [each for each in LIVE["ratios"] if "like" not in str(each)],
}
"""Less of everything than ``LIVE``; the same records are refused."""


def filled(path: Path) -> None:
    assert main(["apply", str(path), "--fill", "--accept-drop=10", "--accept-drop=1h"]) == 0


@pytest.mark.timeout(180)
async def test_what_begins_has_its_past_and_nothing_else_changes(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Workers count by fewer settings, and go on while the log is counted again and more of it
    comes: at last all is as the oracle counts the whole log under the new settings."""
    case, names = random_case(LIVE, sized(500, 1500), 3), topics(partitions=PARTITIONS)
    old = document_of(kafka, names, redis_url, redis_prefix, BEFORE)
    new = document_of(kafka, names, redis_url, redis_prefix, LIVE)
    half = len(case.log) // 2
    await produce(kafka, names, case.log[:half])
    async with bench(tmp_path / "old", old) as made, bench(tmp_path / "new", new) as after:
        for _ in range(2):
            made.start_worker()
        await made.settle(ends_of(case.log[:half]))
        made.config.write_text(as_toml(new))
        more = produce(kafka, names, case.log[half:])
        await asyncio.gather(more, asyncio.to_thread(filled, made.config))
        said = capsys.readouterr().out.splitlines()
        assert any(line.startswith("begins: dimensions: device is new") for line in said)
        assert said[-1].startswith("filled: ")
        await after.settle(ends_of(case.log))
        await check_readings(after, case.records)
        await made.stop_workers()
        await check_readings(after, case.records)
        await check_states(after, case)
        await check_dead_letters(kafka, names, case)
        counted = sum(m.dead_letters for m in after.reader.manifests.values())
        assert counted == len(case.dead)


@long
async def test_records_that_are_gone_are_named_and_nothing_is_changed(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case, names = random_case(LIVE, 300, 4), topics(partitions=PARTITIONS)
    old = document_of(kafka, names, redis_url, redis_prefix, BEFORE)
    new = document_of(kafka, names, redis_url, redis_prefix, LIVE)
    await produce(kafka, names, case.log)
    async with bench(tmp_path, old) as made:
        made.start_worker()
        await made.settle(ends_of(case.log))
        await made.stop_workers()
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        await admin.delete_records({TopicPartition(names.clicks, 1): RecordsToDelete(3)})
        await admin.close()
        made.config.write_text(as_toml(new))
        generations = await made.store.read_all(range(PARTITIONS))
        with pytest.raises(AssertionError):
            await asyncio.to_thread(filled, made.config)
        assert f"records 0 to 2 of {names.clicks}/1 are counted" in capsys.readouterr().err
        assert await made.store.read_all(range(PARTITIONS)) == generations
