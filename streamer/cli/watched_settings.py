"""Settings that are applied while readers of the state run: they begin again with them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys

from streamer.errors import StreamerError
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.state.contents import contents_of, reads_as
from streamer.state.generations import fingerprint_of
from streamer.state.log_identity import resolve
from streamer.state.manifest import decode
from streamer.state.store import Store

_LOOK_SECONDS = 2.0
logger = logging.getLogger("streamer")


class WatchedSettings:
    """The file that a process was started with, read again every two seconds. ``written``: what it
    said then."""

    def __init__(self, path: str | None, written: Settings) -> None:
        self._path, self._written = path, written
        self.have_changed = False
        """Whether it says something else by now, and what is stored is of that."""

    async def until(self, stop: asyncio.Event, store: Store) -> None:
        """Wait until the settings have changed, or it is time to stop."""
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)
            if not stop.is_set() and await self._look(store):
                logger.info("starting again with the new settings")
                self.have_changed = True
                return

    async def _look(self, store: Store) -> bool:
        try:
            found = await asyncio.to_thread(load, self._path, os.environ)
            if found == self._written:
                return False
            if fingerprint_of(found) == fingerprint_of(self._written):
                return True
            resolved, _ = await resolve(found)
            count = await store.partitions() or 0
            ours = contents_of(resolved, Catalogue(resolved))
            stored = [each.manifest for each in await store.read_all(range(count)) if each.manifest]
            return all(reads_as(decode(manifest).contents, ours) for manifest in stored)
        except StreamerError:  # a file that is being written, or wrong: `streamer apply` says so
            return False


def begin_again(*more: str) -> None:
    """Replace this process by one with the same arguments, and ``more``."""
    words = [sys.executable, "-m", "streamer", *sys.argv[1:], *more]
    os.execv(sys.executable, words)  # noqa: S606
