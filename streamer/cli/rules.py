"""``streamer rules``: write Prometheus' alert rules for the settings, and routes for them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from streamer.cli.generated import keep_below
from streamer.cli.terminal import note
from streamer.errors import UsageError
from streamer.monitoring.files import kubernetes_manifests, rule_files
from streamer.server.runbooks import PATH
from streamer.settings.load import load
from streamer.settings.urls import http_parts

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def main(args: argparse.Namespace) -> int:
    """Write or compare the rules; returns the exit code."""
    page = args.page.rstrip("/")
    runbooks = args.runbooks or f"{page}{PATH}"
    is_url("--page", page)
    is_url("--runbooks", runbooks)
    settings = load(args.config, os.environ)
    files = rule_files(settings, page=page, runbooks=runbooks)
    if args.kubernetes:
        files["kubernetes.yaml"] = kubernetes_manifests(files, settings, page=page)
    code = keep_below(Path(args.directory), files, is_check=args.check)
    if not args.check:
        _warn_of_this_machine({"--page": page, "--runbooks": args.runbooks})
    return code


def _warn_of_this_machine(links: Mapping[str, str | None]) -> None:
    """Say on stderr which links in the rules lead nowhere from another machine."""
    for option, url in links.items():
        if url is not None and urlsplit(url).hostname in _THIS_MACHINE:
            note(
                f"alerts will link to {url}, which leads nowhere from another machine: give "
                f"{option} with an address that those who are notified can reach"
            )


def is_url(option: str, url: str) -> None:
    """UsageError where a text is no http(s) URL, or holds a password."""
    parts = http_parts(url)
    if parts is None:
        raise UsageError(f"{option} is no URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise UsageError(f"{option} holds a user name or a password: leave it out of the URL")
