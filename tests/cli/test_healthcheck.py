"""Health checks of containers, and the traffic that one of them looks for."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streamer.cli import healthcheck, main
from streamer.settings.load import load
from streamer.settings.model import Topics
from streamer.state.redis.store import RedisStore
from streamer.state.worker_report import WorkerReport
from streamer.testing.embedded import delete_topics, free_port
from tests.cli.test_produce import settings_file
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import until


def test_a_worker_is_healthy_while_it_reports(
    redis_url: str,
    redis_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STREAMER_REDIS__URL", redis_url)
    monkeypatch.setenv("STREAMER_REDIS__PREFIX", redis_prefix)
    host = socket.gethostname()

    async def report(worker: str) -> None:
        store = RedisStore(
            load(
                None, {"STREAMER_REDIS__URL": redis_url, "STREAMER_REDIS__PREFIX": redis_prefix}
            ).redis
        )
        await store.report(WorkerReport(worker))
        await store.close()

    assert healthcheck.main(["worker"]) == 1
    assert f"no worker of {host} has reported" in capsys.readouterr().err
    asyncio.run(report(f"{host}-of-another-name:1:a"))
    assert healthcheck.main(["worker"]) == 1
    asyncio.run(report(f"{host}:1:a"))
    assert healthcheck.main(["worker"]) == 0
    monkeypatch.setenv("STREAMER_REDIS__URL", f"redis://127.0.0.1:{free_port()}/0")
    capsys.readouterr()
    assert healthcheck.main(["worker"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_page_that_does_not_answer_is_unhealthy(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}/healthz"
    assert healthcheck.main([url]) == 1
    assert capsys.readouterr().err.startswith(f"unhealthy: {url}: ")
    assert healthcheck.main([]) == 2


@long
@pytest.mark.usefixtures("apache_kafka")
async def test_live_traffic_is_seen_and_ends_on_a_signal(
    kafka: str, topics: MakeTopics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings_file(tmp_path, kafka, topics(2))
    monkeypatch.setenv("STREAMER_CONFIG", str(config))
    assert await asyncio.to_thread(healthcheck.main, ["traffic"]) == 1
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streamer", "produce", "--synthetic", "200"),
        *("-c", str(config)),
        stderr=subprocess.PIPE,
    )
    try:

        async def is_seen() -> bool:
            return await asyncio.to_thread(healthcheck.main, ["traffic"]) == 0

        await until(is_seen, "the traffic is in Kafka")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            _, said = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == 0, said
    assert re.search(rb"\d+ lines in Kafka", said)


def test_topics_alone_can_be_created_with_a_retention(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = uuid.uuid4().hex[:8]
    made = Topics(**{name: f"{name}-{tag}" for name in Topics.__struct_fields__})
    names = list(made.named.values())
    config = settings_file(tmp_path, kafka, made)
    try:
        create = ["produce", "-c", str(config), "--create", "3", "--retention", "2d"]
        assert main.main(create) == 0
        assert main.main(create) == 0  # they exist: nothing to do
        assert capsys.readouterr().err == ""
        assert asyncio.run(_retention_ms(kafka, names[0])) == str(2 * 86_400_000)
    finally:
        asyncio.run(delete_topics(kafka, names))


async def _retention_ms(brokers: str, topic: str) -> str:
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        (answer,) = await admin.describe_configs(asked)
        entries = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        return str(entries["retention.ms"])
    finally:
        await admin.close()
