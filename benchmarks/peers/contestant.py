"""A contestant: a program that does the job of ``benchmarks.peers.job`` until it is stopped."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamer
from benchmarks.peers import job
from benchmarks.peers.log import Counts
from streamer.errors import StreamerError

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "peers"
"""Environments and builds, each made once."""
LONG = "1h"
"""streamer keeps this window, too: it holds the whole log, and its minutes tell the windows of five
minutes that end with them."""
MINUTE_MS = 60_000

Wrong = Callable[[Any, str, Counts], str]
"""Whether what a client of Redis holds under a prefix is the expected counts: what is wrong, in
words, and nothing where they are."""


def wrong_windows(client: Any, prefix: str, expected: Counts) -> str:
    """Of a contestant that writes all windows."""
    if (size := client.dbsize()) < len(expected):
        return f"{size} of {len(expected)} windows"
    windows = list(expected)
    with client.pipeline(transaction=False) as pipeline:
        for window in windows:
            pipeline.hgetall(job.key(prefix, *window))
        found = pipeline.execute()
    differ = [
        (window, held)
        for window, held in zip(windows, found, strict=True)
        if any(int(float(held.get(f, 0))) != expected[window][f] for f in job.FIELDS)
    ]
    if not differ:
        return ""
    window, held = differ[0]
    return f"{len(differ)} windows differ; {window}: {held}, and not {expected[window]}"


def not_done(client: Any, prefix: str, expected: Counts) -> str:
    """Of a floor, which only reads: it sets ``{prefix}:done`` to the number of events decoded."""
    return "" if client.get(f"{prefix}:done") else "not all events were read"


def wrong_totals(client: Any, prefix: str, expected: Counts) -> str:
    """Of streamer: its totals of each segment, and of the expected windows those that end with a
    minute. The log is shorter than ``LONG``."""
    settings = client.get(f"{prefix}:benchmark")
    if settings is None:
        return "it has not begun"
    try:
        with streamer.connect(tomllib.loads(settings)) as live:
            return _wrong_segments(live, expected)
    except StreamerError as error:  # it has no state yet
        return str(error)


def _wrong_segments(live: Any, expected: Counts) -> str:
    for field in job.FIELDS:
        table = live.metrics(f"{field}_total", by=["variant", "surface"])
        columns = (table["variant"], table["surface"], table["value"])
        totals = {(of[0], of[1]): int(of[2]) for of in zip(*columns, strict=True)}
        for variant, surface in sorted({(variant, surface) for _, variant, surface in expected}):
            panes = {
                end: of[field]
                for (end, *segment), of in expected.items()
                if segment == [variant, surface]
            }
            # Each event is in so many windows.
            wanted = sum(panes.values()) // (job.WINDOW_MS // job.SLIDE_MS)
            if (found := totals.get((variant, surface), 0)) != wanted:
                return f"{field} of {variant}, {surface}: {found}, and not {wanted}"
            if wanted:
                segment = {"variant": variant, "surface": surface}
                history = live.history(f"window_{field}", window=LONG, **segment)
                if wrong := _wrong_minutes(history, panes):
                    return f"{field} of {variant}, {surface} {wrong}"
    return ""


def _wrong_minutes(history: Any, panes: Mapping[int, int]) -> str:
    """Of the windows that end with a minute."""
    minutes = {
        round(at.timestamp() * 1000): int(value or 0)
        for at, value in zip(history["time"], history["value"], strict=True)
    }
    for end, wanted in panes.items():
        if end % MINUTE_MS == 0:
            begins = range(end - job.WINDOW_MS, end, MINUTE_MS)
            if (found := sum(minutes.get(at, 0) for at in begins)) != wanted:
                return f"to {end}: {found}, and not {wanted}"
    return ""


@dataclass(frozen=True)
class Contestant:
    """``prepare`` installs and builds, once, and returns the words the program starts with; the
    arguments of ``job.parser`` are appended to them."""

    name: str
    prepare: Callable[[], Sequence[str]]
    leaves_out: str
    """What its counts do not have, of late clicks, duplicates and restarts."""
    sizes: tuple[int, int] = (250_000, 1_250_000)
    """Events of a short log and of a long one: the difference is what is told of it."""
    wrong: Wrong = wrong_windows

    def scaled(self, scale: float) -> tuple[int, int]:
        """Sizes for a run of another length."""
        return int(self.sizes[0] * scale), int(self.sizes[1] * scale)


def own(*words: str) -> Callable[[], Sequence[str]]:
    """A program of this folder in this environment, and its first arguments."""
    program, *arguments = words
    return lambda: [sys.executable, "-m", f"benchmarks.peers.{program}", *arguments]


def python(name: str, program: str, *packages: str) -> Callable[[], Sequence[str]]:
    """A program of this folder, in an environment of its own with these pinned packages."""

    def prepare() -> Sequence[str]:
        venv = CACHE / name
        stamp, wanted = venv / "packages.txt", "\n".join(packages)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
            pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(pip, check=True)
            stamp.write_text(wanted, encoding="utf-8")
        return [str(venv / "bin" / "python"), "-m", f"benchmarks.peers.{program}"]

    return prepare
