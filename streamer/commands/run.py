"""``streamer run``: one or more worker processes, each a Faust worker."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path

from streamer.config import Settings, load
from streamer.store.redis import RedisStore
from streamer.topics import partition_count, require_count

_RESTART_SECONDS = 1.0
_STOP_SECONDS = 30.0


def main(args: argparse.Namespace) -> int:
    settings = load(args.config, os.environ)
    asyncio.run(_preflight(settings))
    return asyncio.run(_supervise(args.config, max(1, args.workers)))


async def _preflight(settings: Settings) -> None:
    """What would make every worker fail is said once, in one line."""
    store = RedisStore(settings.redis)
    try:
        await store.check()
        count = await partition_count(settings.kafka)
        stored = await store.partitions()
        if stored is not None:
            require_count(stored, count)
    finally:
        await store.close()


def worker_command() -> list[str]:
    """The command of one worker process."""
    faust = [sys.executable, "-m", "faust", "-A", "streamer.app:app"]
    return [*faust, "--quiet", "worker", "--without-web", "--loglevel", "warn"]


def worker_environment(config: str | None) -> dict[str, str]:
    """The environment of a worker: ours, and where the settings are."""
    env = dict(os.environ)
    env.pop("STREAMER_CONFIG", None)
    if config is not None:
        env["STREAMER_CONFIG"] = str(Path(config).resolve())
    return env


async def _supervise(config: str | None, workers: int) -> int:
    """Keep the workers running; a signal stops them cleanly."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_keep_running(config, stop))
        print(f"streamer: {workers} worker{'s' if workers > 1 else ''} running", flush=True)
    return 0


async def _keep_running(config: str | None, stop: asyncio.Event) -> None:
    while not stop.is_set():
        process = await asyncio.create_subprocess_exec(
            *worker_command(),
            env=worker_environment(config),
            stdout=DEVNULL,
            start_new_session=True,
        )
        ended = asyncio.create_task(process.wait())
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if ended.done():
            if stop.is_set():
                return
            print(
                f"streamer: worker {process.pid} ended with {process.returncode}; starting another",
                file=sys.stderr,
                flush=True,
            )
            await asyncio.sleep(_RESTART_SECONDS)
            continue
        process.terminate()
        try:
            await asyncio.wait_for(ended, _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
