"""The Dockerfile's steps: what it copies is there, and its wheel installs and runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

import pytest

from streamer import __version__
from tests.operations.compose import DOCKERFILE, ROOT, entrypoint

TEXT = DOCKERFILE.read_text(encoding="utf-8")
STEPS = re.findall(r"^(?:COPY|RUN) .*", TEXT.replace("\\\n", " "), re.MULTILINE)
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
BUILD_SECONDS = 110


def copied() -> list[str]:
    """Sources of COPY from the build's context."""
    found = re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE)
    return [word for words in found for word in words.split()]


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a path into the context; the last line that fits decides."""
    sent = True
    for line in IGNORED:
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = [path, *(str(parent) for parent in Path(path).parents if str(parent) != ".")]
        names = [Path(part).name for part in parts]
        if any(fnmatch(p, pattern) for p in parts) or any(fnmatch(n, pattern) for n in names):
            sent = line.startswith("!")
    return sent


@pytest.mark.parametrize("path", copied())
def test_what_is_copied_exists_and_is_sent(path: str) -> None:
    assert (ROOT / path).exists()
    assert is_sent(path)


def test_nothing_else_is_sent() -> None:
    for path in (".git", "tests", "docs/metrics.md", ".venv/bin/python", "streamer/x.pyc"):
        assert not is_sent(path), path
    assert is_sent("streamer/store/lua/commit.lua")


def test_the_last_stage_is_small_unprivileged_and_in_exec_form() -> None:
    last = TEXT[TEXT.rindex("\nFROM") :]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert entrypoint() == ["streamer"]
    assert json.loads(re.findall(r"^CMD (.+)$", last, re.MULTILINE)[0]) == ["--help"]
    assert re.findall(r"pip \w+", last) == ["pip uninstall"]
    assert re.search(r"find /usr/local -name __pycache__ .*rm -rf", last)
    assert "compileall" not in TEXT
    installs = [step for step in STEPS if " install " in step]
    assert len(installs) == 2
    assert all("--no-compile" in step for step in installs)
    images = re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)
    assert len(images) == 2
    assert len(set(images)) == 1  # a virtual environment belongs to its interpreter
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", images[0])


def test_dependencies_come_in_a_layer_before_the_source() -> None:
    (install,) = [i for i, step in enumerate(STEPS) if "dependencies.txt" in step]
    (source,) = [i for i, step in enumerate(STEPS) if step == "COPY streamer streamer"]
    assert install < source
    command = re.findall(r"python -c '(.+)'", STEPS[install])[0]
    program = [sys.executable, "-c", command]
    done = subprocess.run(program, check=True, capture_output=True, text=True, cwd=ROOT)
    assert "faust-streaming>=0.15.2,<0.16" in done.stdout.splitlines()


@pytest.mark.slow
def test_the_wheel_is_built_of_what_is_copied_and_runs(tmp_path: Path) -> None:
    context = tmp_path / "context"
    for path in copied():
        target = context / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, target)

    def run(*words: str) -> str:
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, cwd=context, timeout=BUILD_SECONDS
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    wheels = tmp_path / "wheels"
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(wheels), ".")
    (wheel,) = wheels.glob("*.whl")
    with ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert {"streamer/store/lua/commit.lua", "streamer/sources/data/open_bandit.csv.gz"} <= packed
    assert not [name for name in packed if name.startswith(("tests", "grafana", "benchmarks"))]
    place = tmp_path / "venv"
    venv.create(place, with_pip=False)
    # What it depends on is taken from here: to install it all again would take minutes.
    site = next((place / "lib").glob("python*")) / "site-packages"
    (site / "here.pth").write_text(str(Path(pytest.__file__).parents[1]))
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "-q"]
    run(*pip, "--no-deps", "--force-reinstall", str(wheel))
    run(*pip, "--dry-run", "-c", "requirements/constraints.txt", str(wheel))
    program = str(place / "bin" / "streamer")
    assert run(program, "--version") == f"streamer {__version__}\n"
    assert "streamer_ctr_ratio" in run(program, "metrics")
    where = run(
        str(place / "bin" / "python"), "-P", "-c", "import streamer; print(streamer.__file__)"
    )
    assert Path(where.strip()).is_relative_to(place), os.fspath(place)
