"""How old windows are while events come at a steady rate: from the time of the newest event that is
stored to now.

    python -m benchmarks.lag --brokers localhost:9092 --redis redis://localhost --rate 10000

One worker, four partitions, an experiment and two alerts. Sampled every 50 ms after a start of ten
seconds. Everything that was sent has to be counted in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import WATCHED
from benchmarks.worker import committed, cpu_seconds, settings_file
from streamer.cli.run import worker_command, worker_environment
from streamer.errors import StreamerError
from streamer.settings.load import load
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore

PARTITIONS = 4
START_SECONDS, SAMPLE_SECONDS, END_SECONDS = 10.0, 0.05, 30.0


def produce(path: Path, *arguments: str) -> subprocess.Popen[str]:
    """``streamer produce`` with some arguments."""
    command = [sys.executable, "-m", "streamer", "produce", "-c", str(path), *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


async def ages(store: RedisStore, seconds: float) -> list[float]:
    """Seconds from the newest stored event to now, again and again."""
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        manifests, _ = await manifests_of(store, PARTITIONS)
        newest_ms = max((m.stream_ms for m in manifests.values()), default=0)
        if newest_ms:
            found.append(time.time() - newest_ms / 1000)
        await asyncio.sleep(SAMPLE_SECONDS)
    return found


def sent_by(producer: subprocess.Popen[str]) -> int:
    """Stop a producer; returns how many lines it has sent."""
    producer.send_signal(signal.SIGINT)
    _, said = producer.communicate(timeout=END_SECONDS)
    lines = re.search(r"([\d,]+) lines in Kafka", said)
    if lines is None:
        raise StreamerError(f"the producer failed: {said.strip()[-200:]}")
    return int(lines[1].replace(",", ""))


def share(values: list[float], of: float) -> float:
    """A quantile, in seconds."""
    return round(sorted(values)[min(len(values) - 1, int(of * len(values)))], 3)


async def measure(arguments: argparse.Namespace, path: Path) -> int:
    settings = load(path)
    produce(path, "--create", str(PARTITIONS)).communicate()
    store = RedisStore(settings.redis)
    environment = worker_environment(str(path))
    worker = subprocess.Popen(  # noqa: ASYNC220 — stopped below
        worker_command(), env=environment, stdout=subprocess.DEVNULL
    )
    producer = produce(path, "--synthetic", str(arguments.rate))
    try:
        await ages(store, START_SECONDS)
        cpu, begun = cpu_seconds(worker.pid), time.monotonic()
        found = await ages(store, arguments.seconds)
        took = time.monotonic() - begun
        spent = cpu_seconds(worker.pid) - cpu
        sent, until = await asyncio.to_thread(sent_by, producer), time.monotonic() + END_SECONDS
        counted = 0
        while counted < sent and time.monotonic() < until:
            await asyncio.sleep(SAMPLE_SECONDS)
            counted = await committed(store)
    finally:
        producer.kill()
        worker.terminate()
        await asyncio.to_thread(worker.wait, END_SECONDS)
        await store.close()
    result = {
        "events_per_second": round(sent / (START_SECONDS + took)),
        "samples": len(found),
        "p50_seconds": share(found, 0.5),
        "p99_seconds": share(found, 0.99),
        "most_seconds": round(max(found), 3),
        "cores": round(spent / took, 2),
    }
    print(json.dumps(result), flush=True)
    return 0 if counted == sent else 1


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(measure(arguments, settings_file(arguments, directory)))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--brokers", required=True)
    options.add_argument("--redis", required=True, help="a redis:// URL")
    options.add_argument("--rate", type=int, default=10_000, help="events a second")
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--suffix", default="-lag", help="of the names of the topics")
    options.add_argument("--settings", default=WATCHED, help="more of the settings, as TOML")
    sys.exit(main(options.parse_args()))
