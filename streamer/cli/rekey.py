"""``streamer rekey``: write the events of ``[[sources]]`` to the four topics, keyed by user."""

from __future__ import annotations

import argparse
import asyncio
import os

from streamer.cli.main import stopped
from streamer.cli.terminal import print_line
from streamer.kafka.admin import quiet
from streamer.settings.load import load
from streamer.worker.rekeying import plan_of, rekey


def main(args: argparse.Namespace) -> int:
    """Rekey until stopped, or up to the ends of the sources; returns the exit code."""
    if "debug" not in args:
        quiet()
    asyncio.run(_main(args))
    return 0


async def _main(args: argparse.Namespace) -> None:
    stop = stopped()
    plan = await plan_of(load(args.config, os.environ))
    topics = ", ".join(log.topic for log in plan.settings.logs.values())
    print_line(f"streamer: rekeying {topics} to {plan.partitions} partitions")
    counts = await rekey(plan, stop, until_end=args.until_end)
    print_line(f"streamer: {counts}")
