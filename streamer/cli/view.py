"""``streamer view``: the page over files, with everything in memory."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
from pathlib import Path

from aiohttp import web
from msgspec.structs import replace

from streamer.cli.files import replayed, say_sorted
from streamer.cli.main import stopped
from streamer.cli.terminal import note, print_line
from streamer.errors import SettingsError, SourceError, StreamerError
from streamer.formatting import counted
from streamer.ingest.record import of_texts
from streamer.library.counter import guessed_unless
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.file_span import spanned
from streamer.sources.lines import STDIN
from streamer.sources.replay import Replay
from streamer.sources.sampled import without
from streamer.worker import interpreter


def main(args: argparse.Namespace) -> int:
    """Read the files to their end, then serve until stopped."""
    settings = _settings(args)
    host = args.host or settings.exporter.host
    settings = replace(settings, exporter=replace(settings.exporter, host=host))
    files, settings = spanned(args.files, settings, as_is=args.as_is)
    say_sorted(files)
    replay, _ = replayed(settings, files)
    if not replay.accepted:
        raise StreamerError(
            f"none of {replay.lines:,} lines is an event that counts: there is nothing to show; "
            f"at {', '.join(args.files)}"
        )
    port = settings.exporter.port if args.port is None else args.port
    asyncio.run(_serve(replay, [Path(name).name for name in args.files], port))
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    """Those of the file; without one, a guess where the defaults read nothing."""
    own = of_texts(load(args.config, os.environ))
    if args.config is not None or own.sources or STDIN in args.files:
        return own
    try:
        proposal = guessed_unless(own, args.files)
    except (SettingsError, SourceError):
        return own  # none of it is an event, which is said with what was read
    if proposal is None:
        return own
    guesses = len(proposal.guesses)
    sure = f", with {counted(guesses, 'doubt')}" if guesses else ""
    files = shlex.join(args.files)
    args.files = without(args.files, proposal.left_out)
    note(f"settings are guessed{sure}; to correct them: streamer init {files} -o streamer.toml")
    return of_texts(replace(proposal.settings, exporter=own.exporter))


async def _serve(replay: Replay, names: list[str], port: int) -> None:
    stop = stopped()
    interpreter.calm()
    exporter = Exporter(replay.settings, await replay.store(), files=names)
    runner = web.AppRunner(application(exporter), access_log=None)
    try:
        await runner.setup()
        host = replay.settings.exporter.host
        bound = await listen(runner, host, port)
        print_line(f"streamer: http://{host}:{bound}/ (Ctrl-C stops)")
        await stop.wait()
    finally:
        await runner.cleanup()
