"""``streamer run``: workers that would end at once are not started, and all end with it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from streamer.cli import run
from streamer.settings.load import load
from streamer.state.redis.store import RedisStore
from tests.support.fixtures import COMMAND_SECONDS, MakeRedis, MakeTopics
from tests.support.lanes import long, shortened
from tests.support.workers import as_toml, bench, document_of, until


def worker_of(supervisor: int) -> int:
    """Process id of its worker; 0 while there is none."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(children[0]) if children else 0


def is_alive(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_workers_that_end_at_once_are_started_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []
    stop = asyncio.Event()

    async def wait(_config: object, _stop: object, seconds: float, _: object) -> None:
        pauses.append(seconds)
        if len(pauses) == 9:
            stop.set()

    monkeypatch.setattr(
        run, "worker_command", lambda: [sys.executable, "-c", "raise SystemExit(3)"]
    )
    monkeypatch.setattr(run, "_until_it_can_run", wait)
    await asyncio.wait_for(run._keep_running(None, stop, 1, ()), COMMAND_SECONDS)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    said = capsys.readouterr().err
    assert len(re.findall(r"exited with 3 after \d+ s; starting another in 60 s", said)) == 3


@long
async def test_a_worker_that_cannot_run_is_not_started_again_and_again(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path
) -> None:
    server = make_redis(appendonly=True)
    prefix = f"supervised-{uuid.uuid4().hex[:8]}"
    document = document_of(kafka, topics(1), server.url, prefix, {})
    config, errors = tmp_path / "streamer.toml", tmp_path / "stderr"
    config.write_text(as_toml(document))
    with errors.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streamer", "run", "-c", str(config)),
            stdout=subprocess.DEVNULL,
            stderr=file,
        )

    async def says(text: str, times: int = 1) -> bool:
        assert process.returncode is None, errors.read_text()
        return errors.read_text().count(text) >= times

    def said() -> list[str]:
        """What streamer says itself; Kafka's client may say that the broker is starting."""
        return [line for line in errors.read_text().splitlines() if line.startswith("streamer: ")]

    async def has_worker() -> bool:
        return worker_of(process.pid) != 0

    try:
        await until(has_worker, "a worker runs", errors.read_text)
        server.kill()
        os.kill(worker_of(process.pid), signal.SIGKILL)
        await until(lambda: says("starting another"), "the supervisor notices", errors.read_text)
        await until(lambda: says("trying again"), "it says what is missing", errors.read_text)
        await asyncio.sleep(3)  # time for two more attempts, which say nothing new
        assert worker_of(process.pid) == 0
        assert len(said()) == 2, errors.read_text()
        server.start()
        await until(has_worker, "a worker runs again", errors.read_text)
        store = RedisStore(load(config).redis)

        async def reports() -> bool:
            return bool(await store.reports())

        await until(reports, "it reports", errors.read_text)
        await store.close()
        assert len(said()) == 2, errors.read_text()
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), COMMAND_SECONDS) == 0


@pytest.mark.parametrize("after_seconds", shortened([0.7, 0.0, 2.0]))
async def test_workers_that_start_end_with_a_killed_supervisor(
    tmp_path: Path, after_seconds: float
) -> None:
    """They import, and then wait for brokers that nobody has: none of their timers has begun. On a
    quiet machine it takes them less than 5 s."""
    config, pids = tmp_path / "streamer.toml", tmp_path / "pids"
    config.write_text('[kafka]\nbrokers = "127.0.0.1:1"\n')
    starting = (
        "import subprocess, sys, time\n"
        "from streamer.cli.run import worker_command, worker_environment\n"
        f"env = worker_environment({str(config)!r}) | {{'STREAMER_SUPERVISED': '2'}}\n"
        "made = [subprocess.Popen(worker_command(), env=env, stdout=-3) for _ in range(2)]\n"
        f"open({str(pids)!r}, 'w').write(' '.join(str(each.pid) for each in made) + ' ')\n"
        "time.sleep(60)\n"
    )
    supervisor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", starting), stderr=subprocess.DEVNULL
    )

    async def are_started() -> bool:
        return pids.exists() and pids.read_text().endswith(" ")

    async def are_gone() -> bool:
        return not any(map(is_alive, pids.read_text().split()))

    await until(are_started, "two workers start", lambda: "")
    await asyncio.sleep(after_seconds)
    supervisor.kill()
    await supervisor.wait()
    killed = time.monotonic()
    await until(are_gone, "both have ended", lambda: "")
    assert time.monotonic() - killed < 20


@long
async def test_workers_end_when_their_supervisor_is_killed(
    apache_kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    document = document_of(apache_kafka, topics(partitions=2), redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        command = [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
        supervisor = made.start_worker([*command, "--workers", "2"])

        async def reported() -> bool:
            return len(await made.store.reports()) == 2

        async def are_gone() -> bool:
            return not await made.store.reports()

        await until(reported, "two workers report", made.said)
        supervisor.process.send_signal(signal.SIGKILL)
        supervisor.process.wait()
        await until(are_gone, "both have ended and deregistered", made.said)
