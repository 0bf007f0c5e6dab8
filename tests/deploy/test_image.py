"""The Dockerfile's steps: what it copies is there, and its wheel installs and runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

import pytest

from streamer import __version__
from streamer.state.manifest import VERSION
from tests.deploy.wheels import STEP_SECONDS, TARGET, Environment, built
from tests.support.compose import DOCKERFILE, ROOT, entrypoint
from tests.support.lanes import long

TEXT = DOCKERFILE.read_text(encoding="utf-8")
STEPS = re.findall(r"^(?:COPY|RUN) .*", TEXT.replace("\\\n", " "), re.MULTILINE)
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


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


def left_out(folder: str, names: list[str]) -> set[str]:
    """Of the names in a folder of the checkout, those that the context does not hold."""
    inside = Path(folder).relative_to(ROOT)
    return {name for name in names if not is_sent(str(inside / name))}


@pytest.mark.parametrize("path", copied())
def test_what_is_copied_exists_and_is_sent(path: str) -> None:
    assert (ROOT / path).exists()
    assert is_sent(path)


def test_nothing_else_is_sent() -> None:
    for path in (".git", "tests", "docs/metrics.md", ".venv/bin/python", "streamer/x.pyc"):
        assert not is_sent(path), path
    for path in ("core/target/release/x.d", "streamer/_core.abi3.so"):
        assert not is_sent(path), path
    assert is_sent("streamer/state/redis/lua/commit.lua")


def test_the_last_stage_is_small_unprivileged_and_in_exec_form() -> None:
    last = TEXT[TEXT.rindex("\nFROM") :]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert entrypoint() == ["streamer"]
    assert json.loads(re.findall(r"^CMD (.+)$", last, re.MULTILINE)[0]) == ["--help"]
    assert re.findall(r"pip \w+", last) == ["pip uninstall"]
    assert re.search(r"find /usr/local -name __pycache__ .*rm -rf", last)
    assert "compileall" not in TEXT
    installs = [step for step in STEPS if " install " in step and "apt-get" not in step]
    assert len(installs) == 2
    assert all("--no-compile" in step for step in installs)
    images = re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)
    rust, *python = images
    assert len(python) == 2
    assert len(set(python)) == 1  # a virtual environment belongs to its interpreter
    digest = "@(sha256:[0-9a-f]{64})"  # a tag may be another image tomorrow
    base = re.fullmatch(rf"(python:3\.\d+\.\d+-slim-\w+){digest}", python[0])
    assert base
    assert re.fullmatch(rf"rust:1\.\d+\.\d+-slim-\w+{digest}", rust)
    assert len({re.split("[-@]", image)[2] for image in images}) == 1  # one C library
    assert f'base.name="docker.io/library/{base[1]}"' in last
    assert f'base.digest="{base[2]}"' in last


def test_the_toolchain_stays_in_the_first_stage_and_can_compile_the_core() -> None:
    first, _, rest = TEXT.partition("\nFROM python")
    assert not re.search("cargo|rust|apt-get|gcc", rest)
    assert "COPY --from=wheel /wheels /wheels" in rest
    needed = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text())["package"]["rust-version"]
    found = re.findall(r"FROM rust:([\d.]+)-", first)
    assert [int(n) for n in found[0].split(".")] >= [int(n) for n in needed.split(".")]
    (build,) = [step for step in STEPS if "pip wheel" in step]
    assert "--mount=type=cache,target=/src/core/target" in build  # else each line costs a minute


def test_dependencies_come_in_a_layer_before_the_source() -> None:
    (install,) = [i for i, step in enumerate(STEPS) if "dependencies.txt" in step]
    (source,) = [i for i, step in enumerate(STEPS) if step.startswith("COPY --from=wheel")]
    assert install < source
    command = re.findall(r"python -c '(.+)'", STEPS[install])[0]
    program = [sys.executable, "-c", command]
    done = subprocess.run(program, check=True, capture_output=True, text=True, cwd=ROOT)
    assert {"faust-streaming>=0.15.2,<0.16", "botocore>=1.34,<2"} <= {*done.stdout.splitlines()}


@long
@pytest.mark.timeout(3 * STEP_SECONDS)
def test_the_wheel_is_built_of_what_is_copied_and_runs(tmp_path: Path) -> None:
    context = TARGET / "image"  # at one place: cargo knows what it compiled there
    shutil.rmtree(context, ignore_errors=True)
    for path in copied():
        target = context / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target, ignore=left_out)
        else:
            shutil.copy2(ROOT / path, target)
    wheel = built(context, tmp_path / "wheels")
    with ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert {
        "streamer/state/redis/lua/commit.lua",
        "streamer/sources/data/open_bandit.csv.gz",
    } <= packed
    assert "streamer/_core.abi3.so" in packed
    assert not [n for n in packed if n.startswith(("tests", "grafana", "benchmarks", "core"))]
    environment = Environment(tmp_path / "venv")
    environment.lend()  # tests/deploy/test_wheel.py installs what it depends on
    environment.install("--no-deps", "--force-reinstall", str(wheel))
    assert (
        environment.run("streamer", "--version")
        == f"streamer {__version__}, stored state {VERSION}\n"
    )
    assert "streamer_ctr_ratio" in environment.run("streamer", "metrics")
    program = "import streamer._core as core; print(core.__file__)"
    where = environment.run("python", "-P", "-c", program)
    assert Path(where.strip()).is_relative_to(environment.place), where
