"""What `make` says and does about the core, with programs that only pretend; its locked crates."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from tests.support.compose import ROOT

TOOLS = ("sh", "find", "sed", "cut", "sort", "touch", "make")
CRATE = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))
RUST: str = CRATE["package"]["rust-version"]
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
"""The index that cargo writes where no other is named; a mirror leaves it as it is."""
INSTALL = f"install Rust {RUST} or newer (https://rustup.rs; "
BUILDING = "Building the Rust core (a minute and a half, once)"


class Checkout:
    """A Makefile with a crate of two files, and a PATH that has no cargo and no pip that works."""

    def __init__(self, place: Path) -> None:
        self.place = place
        shutil.copy(ROOT / "Makefile", place)
        (place / "pyproject.toml").touch()
        os.utime(place / "pyproject.toml", (0, 0))
        (place / "core" / "src" / "users").mkdir(parents=True)
        shutil.copy(ROOT / "core" / "Cargo.toml", place / "core")
        shutil.copy(ROOT / "core" / "Cargo.lock", place / "core")
        (place / "core" / "src" / "lib.rs").touch()
        (place / "core" / "src" / "users" / "bounds.rs").touch()
        self.bin = place / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            if found is None:
                pytest.skip(f"no {tool} on PATH")
            (self.bin / tool).symlink_to(found)
        (place / ".venv" / "bin").mkdir(parents=True)
        self.program("bin/cc", "exit 0")
        self.program(".venv/bin/python", "exit 0")

    def program(self, name: str, script: str) -> None:
        path = self.place / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def make(self) -> tuple[int, list[str]]:
        """The exit status of `make .venv/.core`, and the lines that are not make's own."""
        done = subprocess.run(
            [str(self.bin / "make"), ".venv/.core"],
            check=False,
            cwd=self.place,
            env={"PATH": str(self.bin)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = [x for x in done.stdout.splitlines() if not x.startswith(("make: ***", "make[1]"))]
        return done.returncode, lines


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_core_is_built_again_when_a_file_of_it_is_newer(checkout: Checkout) -> None:
    checkout.program("bin/cargo", f"echo 'cargo {RUST}.0 (0123456 2026-01-01)'")
    assert checkout.make() == (0, [BUILDING])
    assert checkout.make()[1] != [BUILDING]
    now = time.time()
    files = ("Cargo.toml", "Cargo.lock", "src/lib.rs", "src/users/bounds.rs")
    for name in (f"core/{file}" for file in files):
        os.utime(checkout.place / ".venv" / ".core", (now - 10, now - 10))
        for path in (checkout.place / "core").rglob("*.*"):
            os.utime(path, (now - 20, now - 20))
        os.utime(checkout.place / name, (now - 5, now - 5))
        assert checkout.make() == (0, [BUILDING]), name


def test_without_cargo_a_toolchain_is_fetched_or_the_last_line_says_what_to_do(
    checkout: Checkout,
) -> None:
    checkout.program(".venv/bin/python", "echo 'ERROR: no network'; exit 1")
    status, lines = checkout.make()
    assert status != 0
    assert lines[0].startswith("No cargo on PATH: fetching a Rust toolchain")
    assert INSTALL in lines[-1]
    checkout.program(".venv/bin/python", "exit 0")
    assert checkout.make()[0] == 0


def test_an_old_cargo_is_refused_before_anything_is_built(checkout: Checkout) -> None:
    checkout.program("bin/cargo", "echo 'cargo 1.9.0 (0123456 2025-01-01)'")
    status, lines = checkout.make()
    assert status != 0
    (line,) = lines
    assert line.startswith(f"make: cargo 1.9.0 is too old for the core: {INSTALL}")


def test_a_compiler_is_asked_for_by_name(checkout: Checkout) -> None:
    (checkout.bin / "cc").unlink()
    status, lines = checkout.make()
    assert status != 0
    assert "apt install gcc" in lines[-1]


def test_locked_crates_come_from_the_default_registry() -> None:
    lock = tomllib.loads((ROOT / "core" / "Cargo.lock").read_text(encoding="utf-8"))
    ours = CRATE["package"]["name"]
    theirs = [package for package in lock["package"] if package["name"] != ours]
    assert len(theirs) > len(CRATE["dependencies"])
    assert {package["source"] for package in theirs} == {REGISTRY}
    assert all(package["checksum"] for package in theirs)
