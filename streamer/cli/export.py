"""``streamer export``: serve what the store holds."""

from __future__ import annotations

import argparse
import asyncio
import os

from aiohttp import web
from msgspec.structs import replace

from streamer.cli.main import stopped
from streamer.cli.terminal import print_line
from streamer.cli.watched_settings import WatchedSettings, begin_again
from streamer.errors import StoreAccessError, StoreError
from streamer.kafka.log_ends import KafkaLogEnds
from streamer.logs import configure
from streamer.server.app import application
from streamer.server.authentication import tls_context
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.state.log_identity import resolve
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store
from streamer.worker import interpreter


def main(args: argparse.Namespace) -> int:
    """Serve until stopped; returns the exit code. Where the file says something else, and that is
    counted by now, the process begins again with it."""
    written = settings = load(args.config, os.environ)
    host = args.host or settings.exporter.host
    settings = replace(settings, exporter=replace(settings.exporter, host=host))
    configure(settings.log.level, settings.log.format)
    settings, _ = asyncio.run(resolve(settings))
    port = settings.exporter.port if args.port is None else args.port
    watched = WatchedSettings(args.config, written)
    bound = asyncio.run(_serve(settings, host, port, watched))
    if watched.have_changed:
        begin_again("--port", str(bound))
    return 0


async def _serve(settings: Settings, host: str, port: int, watched: WatchedSettings) -> int:
    """Returns the port that it listened on."""
    stop = stopped()
    interpreter.calm()
    context = tls_context(settings.exporter)
    exporter = Exporter(settings, RedisStore(settings.redis), KafkaLogEnds(settings))
    runner = web.AppRunner(application(exporter), access_log=None)
    try:
        await _require_access(exporter.store)
        await runner.setup()
        bound = await listen(runner, host, port, context)
        scheme = "http" if context is None else "https"
        print_line(f"streamer: {scheme}://{host}:{bound}/metrics")
        await watched.until(stop, exporter.store)
        return bound
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
