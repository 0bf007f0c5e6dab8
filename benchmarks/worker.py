"""streamer's own worker over the same backlog: everything computed, commits to Redis on.

    python -m benchmarks.worker --brokers localhost:9092 --redis redis://localhost --events 1000000

The clock runs from the first commit that is seen to the last; the events of the first are left out.
How long metrics of users take to be current after it is told apart; processor time includes that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.measure import TOPICS, WATCHED, parser, peak_rss_mb
from streamer.cli.run import worker_command, worker_environment
from streamer.errors import StreamerError
from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import ReadingSet, readout
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.state.reader import Reader, manifests_of
from streamer.state.redis.store import RedisStore

POLL_SECONDS = 0.02
LIMIT_SECONDS = 600.0
_TICKS = os.sysconf("SC_CLK_TCK")


def settings_file(arguments: argparse.Namespace, directory: str) -> Path:
    """Settings of a fresh group and a fresh state."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    names = (*TOPICS, "dead_letters")
    topics = "".join(f'{name} = "{name}{arguments.suffix}"\n' for name in names)
    path = Path(directory) / "streamer.toml"
    path.write_text(
        f'[kafka]\nbrokers = "{arguments.brokers}"\ngroup = "{name}"\n'
        f"[kafka.topics]\n{topics}"
        f'[redis]\nurl = "{arguments.redis}"\nprefix = "{name}"\n'
        f"{arguments.settings}\n",
        encoding="utf-8",
    )
    return path


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def committed(store: RedisStore) -> int:
    """Offsets that the store holds, of all partitions together (the logs start at 0)."""
    count = await store.partitions() or 0
    positions = [p for _, p in await store.standing(range(count))] if count else []
    return sum(sum(msgspec.msgpack.decode(p)[1].values()) for p in positions if p)


async def is_filed(store: RedisStore) -> bool:
    """Whether metrics of users are up to date, too."""
    count = await store.partitions() or 0
    manifests, _ = await manifests_of(store, count)
    return all(manifest.users_behind_ms == 0 for manifest in manifests.values())


def _here(number: int, words: Sequence[str]) -> Sequence[str]:
    """The command of a worker on this host."""
    del number
    return words


async def measure(
    arguments: argparse.Namespace, command: Callable[[int, Sequence[str]], Sequence[str]] = _here
) -> tuple[dict[str, float], Settings]:
    """Run workers over the backlog; ``command``: what starts the command of a worker elsewhere."""
    with tempfile.TemporaryDirectory() as directory:
        path = settings_file(arguments, directory)
        settings = load(path)
        store = RedisStore(settings.redis)
        await store.set_hash_key(FIXED_KEY)  # as in what the readings are compared with
        count = arguments.workers
        processes = [
            subprocess.Popen(  # noqa: ASYNC220
                command(number, worker_command()),
                env=worker_environment(str(path)),
                stdout=subprocess.DEVNULL,
            )
            for number in range(count)
        ]
        for number, process in enumerate(processes if count > 1 or arguments.cores else ()):
            cores = range(arguments.cores) if arguments.cores else [number % (os.cpu_count() or 1)]
            os.sched_setaffinity(process.pid, cores)
        try:
            result = await _watch(store, processes, arguments.events)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)
            await store.close()
    return result, settings


async def _watch(
    store: RedisStore, processes: Sequence[subprocess.Popen[bytes]], events: int
) -> dict[str, float]:
    deadline = time.perf_counter() + LIMIT_SECONDS
    first: tuple[float, float, int] | None = None
    committed_at = 0.0
    while time.perf_counter() < deadline and all(each.poll() is None for each in processes):
        seen = await committed(store)
        now, cpu = time.perf_counter(), sum(cpu_seconds(each.pid) for each in processes)
        if first is None and seen:
            first = now, cpu, seen
        if first is not None and seen >= events:
            committed_at = committed_at or now
            if await is_filed(store):
                return {
                    "events": seen - first[2],
                    "seconds": round(committed_at - first[0], 3),
                    "filed_later_seconds": round(now - committed_at, 3),
                    "cpu_seconds": round(cpu - first[1], 3),
                    "peak_rss_mb": round(sum(peak_rss_mb(each.pid) for each in processes), 1),
                }
        await asyncio.sleep(POLL_SECONDS)
    raise StreamerError(f"the worker did not read {events} events in {LIMIT_SECONDS:.0f} s")


async def stored_readout(settings: Settings) -> ReadingSet:
    """What the store holds now, read at stream time."""
    store = RedisStore(settings.redis)
    try:
        reader = Reader(store)
        await reader.refresh()
        return readout(settings, Catalogue(settings), reader.views)
    finally:
        await store.close()


async def main(arguments: argparse.Namespace) -> int:
    result, settings = await measure(arguments)
    counted = {
        r.labels["topic"]: r.value
        for r in (await stored_readout(settings)).readings
        if r.name == "streamer_events_total"
    }
    print(json.dumps({**result, "counted": counted}), flush=True)
    return 0 if sum(counted.values()) == arguments.events else 1


if __name__ == "__main__":
    flags = parser(__doc__)
    flags.add_argument("--redis", required=True, help="a redis:// URL")
    flags.add_argument("--cores", type=int, default=0, help="so many cores; 0: all")
    flags.add_argument("--workers", type=int, default=1, help="more than one: of one core each")
    flags.add_argument("--settings", default=WATCHED, help="more of the settings, as TOML")
    sys.exit(asyncio.run(main(flags.parse_args())))
