"""``streamer completion``: a script with which a shell completes commands and options."""

from __future__ import annotations

import argparse

import shtab

from streamer.cli import arguments
from streamer.cli.terminal import print_document


def main(args: argparse.Namespace) -> int:
    """Print the script."""
    print_document(script(args.shell))
    return 0


def script(shell: str) -> str:
    """The script for one of ``arguments.SHELLS``; arguments called FILE complete to files."""
    top = arguments.parser()
    for command in arguments.commands(top).values():
        for action in command._actions:
            if action.metavar == "FILE":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    return shtab.complete(top, shell) + "\n"
