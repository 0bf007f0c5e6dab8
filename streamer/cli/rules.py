"""``streamer rules``: write Prometheus' alert rules for the settings, and routes for them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from streamer.errors import StreamerError, UsageError
from streamer.monitoring import rules
from streamer.settings.load import load


def main(args: argparse.Namespace) -> int:
    """Write or compare the rules; returns the exit code."""
    is_url("--page", args.page)
    is_url("--runbooks", args.runbooks)
    settings = load(args.config, os.environ)
    found = rules.files(settings, page=args.page.rstrip("/"), runbooks=args.runbooks)
    return keep(Path(args.directory), found, is_check=args.check)


def is_url(option: str, text: str) -> None:
    """UsageError where a text is no http(s) URL, or holds a password."""
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(f"{option} is no URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise UsageError(f"{option} holds a user name or a password: leave it out of the URL")


def keep(folder: Path, files: Mapping[str, str], *, is_check: bool) -> int:
    """Write what is not current; or name it, and return 1. Paths are below ``folder``."""
    stale = [name for name, text in files.items() if _read(folder / name) != text]
    if is_check:
        for name in stale:
            print(
                f"streamer: {folder / name} is not current: run this without --check",
                file=sys.stderr,
            )
        return int(bool(stale))
    for name in stale:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[name], encoding="utf-8")
        except OSError as error:
            raise StreamerError(f"cannot write: {error.strerror}; at {path}") from error
    print(f"{folder}: {len(files)} files, {len(stale)} written")
    return 0


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
