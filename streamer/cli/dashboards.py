"""``streamer dashboards``: write Grafana's dashboards for the settings."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from streamer.cli.generated import keep_below
from streamer.cli.rules import is_url
from streamer.monitoring import files
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write or compare the dashboards; returns the exit code."""
    for option in ("page", "prometheus"):
        is_url(f"--{option}", getattr(args, option))
    settings, folder = load(args.config, os.environ), Path(args.directory)
    path = args.path or str((folder / files.FOLDER).absolute())
    texts = files.dashboard_files(
        settings, page=args.page.rstrip("/"), prometheus=args.prometheus, path=path
    )
    return keep_below(folder, texts, is_check=args.check)
