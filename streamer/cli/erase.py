"""``streamer erase``: a person leaves what is stored, while workers count on."""

from __future__ import annotations

import argparse
import asyncio
import os

from streamer._core import hash_of
from streamer.cli.terminal import print_line, waiting
from streamer.errors import StoreError
from streamer.formatting import moment
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store

_LOOK_SECONDS = 0.5


def main(args: argparse.Namespace) -> int:
    """Ask the workers, and wait until every partition is committed without the person. StoreError
    where no worker is there: it is done when one starts."""
    settings = load(args.config, os.environ)
    with waiting("workers load their partitions without the person"):
        stream_ms = asyncio.run(_erase(settings, args.person))
    time = settings.time
    ids_ms = stream_ms + max(time.dedup_horizon_ms, time.conversion_dedup_horizon_ms)
    print_line(f"erased: no row or unit under {settings.redis.prefix!r} is of this person any more")
    print_line(
        f"hashes of ids of events and orders, by which copies are told, stay until {moment(ids_ms)}"
    )
    print_line("Kafka's topics, dead letters and backups are not touched: docs/operations.md")
    return 0


async def _erase(settings: Settings, person: str) -> int:
    """Returns the newest stream time."""
    store = RedisStore(settings.redis)
    try:
        count, key = await store.partitions(), await store.hash_key()
        if count is None or key is None:
            raise StoreError(f"nothing is stored under redis.prefix {settings.redis.prefix!r}")
        digest = hash_of(key, person)
        known = (await manifests_of(store, count))[0].values()
        above = max((manifest.erased_ms for manifest in known), default=0)
        number = await store.erase(digest, above)
        while (stream_ms := await _done(store, count, number)) is None:
            if not any(report.is_present for report in await store.reports()):
                raise StoreError(
                    "no worker is running: the person is erased when one starts; ask again then"
                )
            await asyncio.sleep(_LOOK_SECONDS)
        await store.forget_erasure(digest)
        return stream_ms
    finally:
        await store.close()


async def _done(store: Store, count: int, number: int) -> int | None:
    """The newest stream time, once it is carried out in every partition."""
    manifests = list((await manifests_of(store, count))[0].values())
    if any(manifest.erased_ms < number for manifest in manifests):
        return None
    return max((manifest.stream_ms for manifest in manifests), default=0)
