"""The command ``streamer``: runs the module of a command, stops those that run without an end, and
reports errors in one line."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from streamer.cli.arguments import parse, parser
from streamer.cli.terminal import BAD, note, waiting
from streamer.errors import StreamerError, UsageError
from streamer.formatting import printable_lines
from streamer.logs import printable_logs

_SLOW = (
    "apply",
    "check",
    "erase",
    "export-sums",
    "history",
    "init",
    "inspect",
    "plan",
    "produce",
    "readout",
    "replay",
    "report",
    "view",
    "why",
)
"""Commands that read files or wait for others: a terminal shows at once that they are there."""
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
"""What shells report for a process that SIGPIPE ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    is_debug = "--debug" in arguments
    printable_logs()
    try:
        if not arguments:  # help, but no success: a script that lost its command should notice
            parser().print_help(sys.stderr)
            return UsageError.exit_code
        args = parse(arguments)
        with waiting("starting") if args.command in _SLOW else contextlib.nullcontext():
            module = importlib.import_module(f"streamer.cli.{args.command.replace('-', '_')}")
        code = int(module.main(args))
        sys.stdout.flush()
        return code
    except StreamerError as error:
        return _failed(str(error), error.exit_code, is_debug)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        message = f"unexpected {type(error).__name__}: {error} (--debug shows where)"
        return _failed(message, 1, is_debug)


def _failed(message: str, code: int, is_debug: bool) -> int:
    if is_debug:
        sys.stderr.write(printable_lines(traceback.format_exc()))
    note(" ".join(message.split()), BAD)
    return code


def _forget_stdout() -> None:
    """Nobody reads any more: let the flush at exit go nowhere, without a complaint."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stopped() -> asyncio.Event:
    """Set by SIGTERM and Ctrl-C, from now on: how commands that run without an end are stopped."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
