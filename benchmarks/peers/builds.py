"""Programs of contestants that a compiler makes: built once, and again where a source is newer."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.peers.contestant import CACHE, HERE

JVM = ("-Xmx2g", "-XX:+UseParallelGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
"""On two cores the parallel collector costs less than G1."""


def rust(crate: str, cpu: str = "native") -> Callable[[], Sequence[str]]:
    """A crate of this folder, by default for the processor that it is built on."""

    def prepare() -> Sequence[str]:
        target = CACHE / crate / cpu
        program = target / "release" / crate.replace("_", "-")
        if _is_stale(program, HERE / crate):
            flags = {"CARGO_TARGET_DIR": str(target), "RUSTFLAGS": f"-C target-cpu={cpu}"}
            command = ["cargo", "build", "--release", "--locked", "--quiet"]
            subprocess.run(command, cwd=HERE / crate, env=os.environ | flags, check=True)
            program.touch()
        return [str(program)]

    return prepare


def java(main: str, *options: str) -> Callable[[], Sequence[str]]:
    """A class of the module in ``java``, which is built whole, with all that it needs beside it."""

    def prepare() -> Sequence[str]:
        target = CACHE / "java"
        stamp = target / "built"
        if _is_stale(stamp, HERE / "java"):
            goals = ["clean", "compile", "dependency:copy-dependencies"]
            settings = [f"-Dbuild.folder={target}", "-DincludeScope=runtime"]
            subprocess.run(["mvn", "-B", "-q", *settings, *goals], cwd=HERE / "java", check=True)
            stamp.touch()
        path = f"{target / 'classes'}:{target / 'dependency'}/*"
        return ["java", *JVM, *options, "-cp", path, f"peers.{main}"]

    return prepare


def _is_stale(made: Path, sources: Path) -> bool:
    """Whether a thing is missing or older than a file it is made of."""
    if not made.exists():
        return True
    newest = max(path.stat().st_mtime for path in sources.rglob("*") if path.is_file())
    return made.stat().st_mtime < newest
