"""How commands that run without an end are stopped."""

from __future__ import annotations

import asyncio
import signal


def stopped() -> asyncio.Event:
    """Set by SIGTERM and Ctrl-C, from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
