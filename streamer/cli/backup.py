"""``streamer backup``: all that is stored under the prefix, in a file."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from streamer.cli.terminal import print_line, waiting
from streamer.errors import StreamerError
from streamer.settings.load import load
from streamer.state.backup import copy_of
from streamer.state.memory import MemoryStore
from streamer.state.redis.store import RedisStore


def main(args: argparse.Namespace) -> int:
    """Write the file, which is whole or not there. StreamerError where nothing is stored, or some
    of it is damaged."""
    settings = load(args.config, os.environ)

    async def copied() -> MemoryStore:
        store = RedisStore(settings.redis)
        try:
            return await copy_of(store)
        finally:
            await store.close()

    with waiting("reading the state in Redis"):
        copy = asyncio.run(copied())
    data, path = copy.dump(), Path(args.out)
    part = f"{path}.part"
    try:
        with open(part, "wb", opener=_private) as file:
            file.write(data)
        Path(part).replace(path)
    except OSError as error:
        raise StreamerError(f"cannot write the backup: {error.strerror}; at {path}") from error
    print_line(f"Written: {path}, {len(copy.states)} of {copy.count} partitions, {len(data):,} B")
    return 0


def _private(path: str, flags: int) -> int:
    """The file has the hash key: nobody else may read it."""
    return os.open(path, flags, 0o600)
