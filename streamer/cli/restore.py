"""``streamer restore``: what ``streamer backup`` wrote, back into Redis."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from streamer.cli.terminal import print_line, waiting
from streamer.errors import CodecError, StreamerError
from streamer.settings.load import load
from streamer.state.backup import put_back
from streamer.state.memory import MemoryStore
from streamer.state.redis.store import RedisStore


def main(args: argparse.Namespace) -> int:
    """Put it under the prefix of the settings. StreamerError, before anything is written, where
    workers count, or something newer is stored there."""
    settings = load(args.config, os.environ)
    try:
        copy = MemoryStore.loaded(Path(args.backup).read_bytes())
    except OSError as error:
        raise StreamerError(f"cannot read {args.backup}: {error.strerror}") from error
    except CodecError as error:
        raise StreamerError(f"{args.backup} is no backup: {error}") from error

    async def restored() -> None:
        store = RedisStore(settings.redis)
        try:
            await store.check()
            await put_back(copy, store)
        finally:
            await store.close()

    with waiting("writing the state to Redis"):
        asyncio.run(restored())
    print_line(f"Restored: {len(copy.states)} of {copy.count} partitions")
    return 0
