"""``streamer export``: serve what the store holds."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal

from aiohttp import web

from streamer import collector
from streamer.config import Settings, load
from streamer.errors import StreamerError
from streamer.exporter import Exporter
from streamer.store.redis import RedisStore


def main(args: argparse.Namespace) -> int:
    settings = load(args.config, os.environ)
    host = args.host or settings.exporter.host
    port = settings.exporter.port if args.port is None else args.port
    asyncio.run(_serve(settings, host, port))
    return 0


async def _serve(settings: Settings, host: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    collector.calm()
    exporter = Exporter(settings, RedisStore(settings.redis))
    runner = web.AppRunner(exporter.app(), access_log=None)
    await runner.setup()
    try:
        bound = await listen(runner, host, port)
        print(f"streamer: http://{host}:{bound}/metrics", flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


async def listen(runner: web.AppRunner, host: str, port: int) -> int:
    """Listen, and return the port (a free one for 0)."""
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError as error:
        raise StreamerError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    addresses = runner.addresses
    return int(addresses[0][1])
