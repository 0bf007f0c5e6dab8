"""Wheels of trees of this project, and virtual environments that get them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.compose import ROOT

TARGET = ROOT / "core" / "target"
"""Where cargo keeps what it compiled; `make` has filled it."""
STEP_SECONDS = 280
"""Of one step: compiling all of the core, on a machine with other things to do."""
_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*words: str, cwd: Path, **environment: str) -> str:
    """What a command prints; its output is the reason of the failure where it fails."""
    done = subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | environment,
        timeout=STEP_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(tree: Path, wheels: Path) -> Path:
    """The wheel that `pip wheel` makes of a tree, into an empty folder."""
    words = (*_PIP, "wheel", "--no-deps", "--wheel-dir", str(wheels), ".")
    run(*words, cwd=tree, CARGO_TARGET_DIR=str(TARGET))
    (wheel,) = wheels.glob("*.whl")
    return wheel


class Environment:
    """A virtual environment of this Python, empty."""

    def __init__(self, place: Path) -> None:
        self.place = place
        venv.create(place, with_pip=False)

    def lend(self) -> None:
        """Let it import what the tests' own environment has, where it lacks something."""
        site = next((self.place / "lib").glob("python*")) / "site-packages"
        (site / "here.pth").write_text(str(Path(pytest.__file__).parents[1]))

    def install(self, *arguments: str) -> None:
        """Run its `pip install` in the checkout."""
        pip = (*_PIP, "--python", str(self.place / "bin" / "python"))
        run(*pip, "install", *arguments, cwd=ROOT)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of its programs, with no other on PATH."""
        folder = self.place / "bin"
        return run(str(folder / program), *arguments, cwd=self.place, PATH=str(folder))
