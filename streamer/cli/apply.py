"""``streamer apply``: make settings the newest of a running state, and say what they change."""

from __future__ import annotations

import argparse
import asyncio

from streamer.cli.run import preflight, preflight_keys, settings_to_count_by
from streamer.cli.terminal import print_line


def main(args: argparse.Namespace) -> int:
    """SettingsError, and nothing is changed, where the state cannot be continued under them, or
    they lack what it holds."""
    settings, fingerprint = settings_to_count_by(args.settings, is_debug="debug" in args)
    accepted = frozenset(args.accept_drop)
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
