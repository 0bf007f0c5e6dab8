"""``streamer apply``: make settings the newest of a running state, and say what they change."""

from __future__ import annotations

import argparse
import asyncio
import os

from streamer.cli.run import preflight, preflight_keys
from streamer.cli.terminal import note, print_line
from streamer.kafka.admin import quiet
from streamer.settings.load import load
from streamer.state.generations import fingerprint_of
from streamer.state.log_identity import resolve


def main(args: argparse.Namespace) -> int:
    """SettingsError, and nothing is changed, where the state cannot be continued under them, or
    they lack what it holds."""
    written = load(args.settings, os.environ)
    if "debug" not in args:
        quiet()
    settings, left_out = asyncio.run(resolve(written))
    for why in left_out.values():
        note(why)
    fingerprint, accepted = fingerprint_of(written), frozenset(args.accept_drop)
    asyncio.run(preflight_keys(settings))
    known = asyncio.run(preflight(settings, fingerprint, is_newest=True, accepted=accepted))
    for change in known.changes:
        kind = "begins" if change.begins else "lost" if change.drops else "changes"
        print_line(f"{kind}: {change}")
    print_line("goes on: all else that is counted")
    print_line(
        f"these settings are generation {known.generation}: workers that were started with this "
        "file count by it within seconds, and take bounds with their next start; a worker with "
        "another file takes no partition from them"
    )
    return 0
