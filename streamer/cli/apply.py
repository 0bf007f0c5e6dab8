"""``streamer apply``: make settings the newest of a running state, and say what they change."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

from streamer.cli.run import Continued, preflight, preflight_keys, settings_to_count_by
from streamer.cli.terminal import print_line, waiting
from streamer.settings.model import Settings
from streamer.state.redis.store import RedisStore
from streamer.worker.fill import Fill


def main(args: argparse.Namespace) -> int:
    """SettingsError, and nothing is changed, where the state cannot be continued under them, or
    they lack what it holds; likewise StreamerError where it cannot be filled."""
    settings, fingerprint = settings_to_count_by(args.settings, is_debug="debug" in args)
    accepted = frozenset(args.accept_drop)
    asyncio.run(preflight_keys(settings))

    async def apply() -> Continued:
        return await preflight(settings, fingerprint, is_newest=True, accepted=accepted)

    if args.fill:
        asyncio.run(_fill(settings, fingerprint, apply))
    else:
        _say(asyncio.run(apply()))
    return 0


def _say(known: Continued) -> None:
    for change in known.changes:
        kind = "begins" if change.begins else "lost" if change.drops else "changes"
        print_line(f"{kind}: {change}")
    print_line("unchanged: everything else that is counted")
    print_line(
        f"these settings are generation {known.generation}: workers that were started with this "
        "file follow it within seconds, and apply new bounds when they next start; a worker with "
        "another file takes no partition from them"
    )


async def _fill(
    settings: Settings, fingerprint: str, apply: Callable[[], Awaitable[Continued]]
) -> None:
    store, began = RedisStore(settings.redis), time.monotonic()
    try:
        async with Fill(settings, store, fingerprint) as fill:
            await fill.require_retained()
            known = await apply()
            _say(known)
            with waiting("counting what the topics retain, beside the running state"):
                await fill.run(known.generation)
    finally:
        await store.close()
    print_line(
        f"filled: {fill.records:,} events were counted again in {time.monotonic() - began:.0f} s; "
        "what is new now has its past"
    )
