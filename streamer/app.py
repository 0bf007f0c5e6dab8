"""What Faust runs: ``faust -A streamer.app worker``, with the settings of the file that
STREAMER_CONFIG names and of STREAMER_… in the environment."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from streamer.logs import printable_logs
from streamer.settings.load import load
from streamer.state.log_identity import resolve
from streamer.state.worker_report import SUPERVISOR
from streamer.worker.app import App, create_app
from streamer.worker.interpreter import end_with


def __getattr__(name: str) -> App:
    """``app``, made when Faust asks for it."""
    if name != "app":
        raise AttributeError(name)
    printable_logs()
    if supervisor := os.environ.get(SUPERVISOR):
        end_with(int(supervisor))
    read = partial(load, os.environ.get("STREAMER_CONFIG"), os.environ)
    settings = read()
    resolved, left_out = asyncio.run(resolve(settings))
    globals()["app"] = app = create_app(settings, resolved, left_out, read)
    return app
