"""``streamer export``: serve what the store holds."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import ssl

from aiohttp import web

from streamer import collector
from streamer.config import Settings, load
from streamer.errors import StoreAccessError, StoreError, StreamerError
from streamer.exporter import Exporter
from streamer.guard import tls_context
from streamer.store.base import Store
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
    context = tls_context(settings.exporter)
    exporter = Exporter(settings, RedisStore(settings.redis))
    runner = web.AppRunner(exporter.app(), access_log=None)
    try:
        await _require_access(exporter.store)
        await runner.setup()
        bound = await listen(runner, host, port, context)
        scheme = "http" if context is None else "https"
        print(f"streamer: {scheme}://{host}:{bound}/metrics", flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()
        await exporter.store.close()


async def _require_access(store: Store) -> None:
    """StoreAccessError where Redis refuses us. One that is only away comes back, and `/readyz`
    tells until then."""
    try:
        await store.partitions()
        await store.reports()
    except StoreAccessError:
        raise
    except StoreError:
        return


async def listen(
    runner: web.AppRunner, host: str, port: int, context: ssl.SSLContext | None = None
) -> int:
    """Listen, and return the port (a free one for 0)."""
    site = web.TCPSite(runner, host, port, ssl_context=context)
    try:
        await site.start()
    except OSError as error:
        raise StreamerError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    addresses = runner.addresses
    return int(addresses[0][1])
