"""A contestant: a program that does the job of ``benchmarks.peers.job`` until it is stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import job
from benchmarks.peers.log import Counts

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "peers"
"""Environments and builds, each made once."""

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
    """Of a floor, which only reads: it sets ``{prefix}:done`` to the number of events it read."""
    return "" if client.get(f"{prefix}:done") else "not all events were read"


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
