"""``streamer rules``: write Prometheus' alert rules for the settings, and routes for them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from urllib.parse import urlsplit

from streamer.cli.generated import keep_below
from streamer.errors import UsageError
from streamer.monitoring.files import rule_files
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write or compare the rules; returns the exit code."""
    is_url("--page", args.page)
    is_url("--runbooks", args.runbooks)
    settings = load(args.config, os.environ)
    found = rule_files(settings, page=args.page.rstrip("/"), runbooks=args.runbooks)
    return keep_below(Path(args.directory), found, is_check=args.check)


def is_url(option: str, url: str) -> None:
    """UsageError where a text is no http(s) URL, or holds a password."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(f"{option} is no URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise UsageError(f"{option} holds a user name or a password: leave it out of the URL")
