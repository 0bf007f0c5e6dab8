"""The source distribution: what it holds, and what it says where no core can be built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.deploy.wheels import run
from tests.support.compose import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
RUST = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text())["package"]["rust-version"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("source")
    run(sys.executable, "-m", "maturin", "sdist", "--out", str(folder), cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_it_holds_what_builds_the_wheel(source: Path) -> None:
    for name in ("core/build_backend.py", "core/Cargo.lock", "docs/package.md", "LICENSE"):
        assert (source / name).is_file(), name
    assert (source / "streamer" / "server" / "web" / "index.html").is_file()
    trains = PYPROJECT["tool"]["maturin"]["pgo-command"].removeprefix("python ")
    pages = [trains]
    for page in pages:  # what trains a build with --pgo, and what that imports
        text = (source / page).read_text(encoding="utf-8")
        names = re.findall(r"(?m)^from benchmarks\.(\w+) import", text)
        pages += [path for name in names if (path := f"benchmarks/{name}.py") not in pages]
    assert len(pages) == 4
    metadata = (source / "PKG-INFO").read_text(encoding="utf-8")
    assert f"Version: {PROJECT['version']}" in metadata


@pytest.mark.parametrize(("missing", "said"), [
    (("cargo",), rf"needs Rust {re.escape(RUST)} or newer \(https://rustup\.rs\)$"),
    (("cc", "gcc", "clang"), r"needs a C compiler \(Debian, Ubuntu: apt install gcc libc6-dev\)$"),
])  # fmt: skip
def test_pip_says_in_one_line_what_is_missing(
    source: Path, tmp_path: Path, missing: tuple[str, ...], said: str
) -> None:
    for name in ("cargo", "cc", "sh"):
        if name not in missing:
            (tmp_path / name).symlink_to(str(shutil.which(name)))
    words = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", str(source))
    done = subprocess.run(
        [*words, "--wheel-dir", str(tmp_path / "wheels")],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    assert done.returncode != 0
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    (line,) = (line for line in lines if line.startswith("streamer: "))
    assert re.search(said, line), line
    assert "Traceback" not in done.stdout + done.stderr


def test_the_page_of_an_index_needs_no_repository() -> None:
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!https?://)", text)
    assert "![" not in text


def test_messages_name_packages_that_can_be_installed() -> None:
    found = 0
    for path in (ROOT / "streamer").rglob("*.py"):
        for package in re.findall(r"pip install ['\"]?([\w{}=.\[\]-]+)", path.read_text()):
            assert not package.startswith(("streamer", PROJECT["name"])), path
            found += 1
    assert found >= 2
