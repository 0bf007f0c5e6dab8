"""``streamer act``: tell whom ``[[actions]]`` names of what happens to experiments."""

from __future__ import annotations

import argparse
import asyncio
import os

from msgspec.structs import replace

from streamer.actions.bodies import require_usable
from streamer.actions.leader import Leader
from streamer.cli.main import stopped
from streamer.cli.terminal import print_json, print_line
from streamer.cli.watched_settings import WatchedSettings, begin_again
from streamer.errors import SettingsError, StoreError, UsageError
from streamer.formatting import moment
from streamer.kafka.log_ends import KafkaLogEnds
from streamer.logs import configure
from streamer.server.exporter import Exporter
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.state.acted import Acted, Delivery, Told, stored
from streamer.state.log_identity import resolve
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store, new_claim
from streamer.worker import interpreter


def main(args: argparse.Namespace) -> int:
    """Act until stopped; or list what failed, or send it again. SettingsError without actions."""
    written = settings = load(args.config, os.environ)
    if not settings.actions:
        raise SettingsError("there is no [[actions]]: say what is sent where")
    for hook in settings.actions:
        require_usable(hook)
    configure(settings.log.level, settings.log.format)
    if args.failed or args.retry is not None:
        return asyncio.run(_failed(settings, args.retry, is_json=args.json))
    settings, _ = asyncio.run(resolve(settings))
    watched = WatchedSettings(args.config, written)
    asyncio.run(_act(settings, watched))
    if watched.have_changed:
        begin_again()
    return 0


async def _act(settings: Settings, watched: WatchedSettings) -> None:
    stop, ended = stopped(), asyncio.Event()
    interpreter.calm()
    ends = KafkaLogEnds(settings)
    exporter = Exporter(settings, RedisStore(settings.redis), ends)
    try:
        await exporter.store.check()
        async with ends.followed(lambda: exporter.reader.count):
            acting = asyncio.create_task(Leader(exporter).run(ended))
            watching = asyncio.create_task(watched.until(stop, exporter.store))
            await asyncio.wait({acting, watching}, return_when=asyncio.FIRST_COMPLETED)
            watching.cancel()
            ended.set()
            await acting
    finally:
        await exporter.store.close()


async def _failed(settings: Settings, key: str | None, *, is_json: bool) -> int:
    """List the deliveries that failed, or let one be sent again; 1 where there are any."""
    store = RedisStore(settings.redis)
    try:
        acted = Acted.of(await store.acted())
        failed = [each for each in acted.deliveries.values() if each.state is Told.FAILED]
        if key is not None:
            return await _retry(store, [each for each in failed if key in (each.record, "all")])
    finally:
        await store.close()
    if is_json:
        print_json(failed)
    else:
        for each in failed:
            when = f"{each.attempts} attempts until {moment(each.ended_ms)} UTC"
            print_line(f"{each.record}  {each.place}  {when}: {each.problem}")
    return int(bool(failed))


async def _retry(store: Store, chosen: list[Delivery]) -> int:
    """UsageError where nothing failed under that key; StoreError where a leader is running."""
    if not chosen:
        raise UsageError("no delivery failed under this key: `streamer act --failed` lists them")
    again = [replace(each, state=Told.PENDING, attempts=0) for each in chosen]
    if not await store.lead(new_claim(), 0, stored(deliveries=again)):
        raise StoreError("`streamer act` is running: stop it, ask again, and start it")
    print_line(f"{len(again)} to be sent again by `streamer act`")
    return 0
