"""Machines whose clock is a day off: a worker's and an exporter's. The numbers are the same."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from streamer.cli.run import worker_command, worker_environment
from streamer.settings.model import Settings
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.testing.embedded import HOST
from tests.oracle.acceptance import accept
from tests.oracle.files import fields_of, partition_of
from tests.oracle.oracle import Record
from tests.support.agreement import to_log
from tests.support.cases import (
    Case,
    check_dead_letters,
    check_readings,
    check_states,
)
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import (
    Bench,
    bench,
    document_of,
    ends_of,
    produce,
    until,
)

pytestmark = long

DAY_SECONDS = 24 * 3600
LIMIT_SECONDS = 120
_SHIFT = """import os, time
_by = int(os.environ["SHIFT_SECONDS"])
_time, _time_ns, _clock = time.time, time.time_ns, time.clock_gettime
time.time = lambda: _time() + _by
time.time_ns = lambda: _time_ns() + _by * 10**9
time.clock_gettime = lambda clock: _clock(clock) + (_by if clock == time.CLOCK_REALTIME else 0)
"""


def shifted(directory: Path, seconds: int, command: Sequence[str]) -> list[str]:
    """The command on a machine whose wall clock is so far ahead."""
    (directory / "sitecustomize.py").write_text(_SHIFT)
    path = os.pathsep.join(x for x in (str(directory), os.environ.get("PYTHONPATH")) if x)
    return ["env", f"PYTHONPATH={path}", f"SHIFT_SECONDS={seconds}", *command]


def live_case(settings: Settings, seconds: int) -> Case:
    """Traffic of all four kinds that ends now: copies, late events and rejects among it."""
    now_ms = time.time_ns() // 1_000_000
    traffic = SyntheticTraffic(
        seed=7,
        start_ms=now_ms - seconds * 1000,
        events_per_second=5.0,
        items_form_share=0.2,
        requestless_click_share=0.1,
        out_of_order_share=0.05,
        late_share=0.01,
        duplicate_share=0.02,
        broken_share=0.02,
    )
    running_ms = 0
    counts: dict[tuple[str, int], int] = defaultdict(int)
    records = []
    for kind, raw in generate(traffic, None):
        _, event_ms, user_id = fields_of(raw, settings)
        if event_ms is not None and event_ms > now_ms:
            break
        running_ms = max(running_ms, event_ms or 0)
        key = (kind, partition_of(user_id, 4))
        records.append(Record(*key, counts[key], running_ms, raw))
        counts[key] += 1
    dead: list[tuple[Record, str]] = []
    accept(records, settings, dead)
    assert {reason for _, reason in dead} > {"late"}
    return Case(records, to_log(records), dead)


class ExporterProcess:
    """``streamer export`` on a machine whose wall clock is so far ahead."""

    def __init__(self, made: Bench, seconds: int) -> None:
        command = [sys.executable, "-m", "streamer", "export", "--host", HOST, "--port", "0"]
        command += ["-c", str(made.config)]
        self.process = subprocess.Popen(
            shifted(made.directory, seconds, command),
            env=worker_environment(None),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.url = ""

    async def readings(self, session: aiohttp.ClientSession, query: str = "") -> Any:
        """What ``/api/readings`` gives."""
        if not self.url:
            assert self.process.stdout is not None
            line = await asyncio.to_thread(self.process.stdout.readline)
            found = re.search(r"http://\S+(?=/metrics)", line)
            assert found is not None, line + self.process.stdout.read()
            self.url = found[0]
        async with session.get(f"{self.url}/api/readings{query}") as answer:
            text = await answer.text()
            assert answer.status == 200, text
            return json.loads(text)

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=20)


def test_the_clock_is_shifted(tmp_path: Path) -> None:
    """Else the tests below would prove nothing."""
    say = "import time, logging; print(time.time()); print(time.time_ns())"
    command = shifted(tmp_path, -DAY_SECONDS, [sys.executable, "-c", say])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, nanos = done.stdout.split()
    assert abs(float(seconds) + DAY_SECONDS - time.time()) < 60
    assert abs(int(nanos) / 1e9 + DAY_SECONDS - time.time()) < 60


@pytest.mark.timeout(LIMIT_SECONDS)
@pytest.mark.parametrize("seconds", [-DAY_SECONDS, DAY_SECONDS], ids=["behind", "ahead"])
async def test_wall_clocks_are_a_day_wrong(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, seconds: int
) -> None:
    """A worker's, and an exporter's: live traffic is counted and shown as by right clocks."""
    document: dict[str, Any] = {"windows": {"lengths": ["1m", "1h"]}}
    names = topics(partitions=4)
    document = document_of(kafka, names, redis_url, redis_prefix, document)
    async with bench(tmp_path, document) as made:
        case = live_case(made.settings, 1800)
        await produce(kafka, names, case.log)
        made.start_worker(shifted(made.directory, seconds, worker_command()))
        await made.settle(ends_of(case.log))
        await check_readings(made, case.records)
        exporters = [ExporterProcess(made, by) for by in (0, seconds)]
        try:
            await same_readings(made, exporters)
        finally:
            for exporter in exporters:
                await asyncio.to_thread(exporter.stop)
        await made.stop_workers()
        await check_states(made, case)
        await check_dead_letters(kafka, names, case)
        said = made.said()
    assert ("check the clock of this machine" in said) == (seconds > 0)
    print(f"{len(case.log)} records, {len(case.dead)} dead letters, clock {seconds} s wrong")


async def same_readings(made: Bench, exporters: Sequence[ExporterProcess]) -> None:
    """They show the same once they look at the same second, and windows drain for both."""
    async with aiohttp.ClientSession() as session:

        async def agree() -> bool:
            shown = await asyncio.gather(*[e.readings(session) for e in exporters])
            still = await exporters[0].readings(session, "?at=stream")
            assert all(s["stream_time_ms"] == still["stream_time_ms"] for s in shown)
            drained = len(of_window(shown[0], "1m")) < len(of_window(still, "1m"))
            return drained and all(s == shown[0] for s in shown)

        await until(agree, "both exporters show the same, drained windows", made.said)


def of_window(document: Any, window: str) -> list[Any]:
    return [r for r in document["readings"] if r["labels"].get("window") == window]
