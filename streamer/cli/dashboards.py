"""``streamer dashboards``: write Grafana's dashboards for the settings, or upload them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from streamer.cli.generated import keep_below
from streamer.cli.rules import is_url
from streamer.errors import UsageError
from streamer.monitoring import files
from streamer.monitoring.upload import Grafana
from streamer.settings.load import load, secret_of


def main(args: argparse.Namespace) -> int:
    """Write, compare or upload the dashboards; returns the exit code."""
    _fits_together(args)
    settings = load(args.config, os.environ)
    code = 0
    if args.directory is not None:
        folder = Path(args.directory)
        path = args.path or str((folder / files.FOLDER).absolute())
        texts = files.dashboard_files(
            settings, page=args.page.rstrip("/"), prometheus=args.prometheus, path=path
        )
        code = keep_below(folder, texts, is_check=args.check)
    if args.grafana is not None:
        token = secret_of("--token-file", args.token_file)
        grafana = Grafana(args.grafana, token, may_be_plain=args.plain_http)
        for name, board in files.boards(settings, args.page.rstrip("/")).items():
            print(f"{name}: {grafana.upload(board, args.folder)}")
    return code


def _fits_together(args: argparse.Namespace) -> None:
    """UsageError where arguments contradict each other."""
    if args.directory is None and args.grafana is None:
        raise UsageError("where to: give a folder (DIR), or --grafana URL to upload")
    if args.directory is None and args.check:
        raise UsageError("--check compares the files of a folder: give DIR")
    if args.grafana is not None and args.check:
        raise UsageError("--check compares files, --grafana uploads: give one of them")
    if (args.grafana is None) != (args.token_file is None):
        raise UsageError("--grafana and --token-file belong together: give both, or neither")
    for option in ("page", "prometheus", "grafana"):
        if (url := getattr(args, option)) is not None:
            is_url(f"--{option}", url)
