"""One version for everything: whatever names it names the same one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from streamer import __version__

ROOT = Path(__file__).parents[2]
PLACES = {
    "docker-compose.yml": r"image: streamer:(\S+)",
    "Dockerfile": r"ARG VERSION=(\S+)",
    "deploy/streamer/Chart.yaml": r"(?mi)^(?:app)?version: \"?([\d.]+)\"?",
    "docs/how-to/kubernetes.md": r"/streamer:(\d\S+)",
    "README.md": r"version (\d+\.\d+\.\d+)",
    "CITATION.cff": r"(?m)^version: (\S+)",
    "CHANGELOG.md": r"(?m)^## (\d+\.\d+\.\d+)",
}


@pytest.mark.parametrize("path", ["pyproject.toml", "core/Cargo.toml"])
def test_packages_have_the_version(path: str) -> None:
    found = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))
    assert (found.get("project") or found["package"])["version"] == __version__


def test_the_lock_file_has_the_version() -> None:
    lock = tomllib.loads((ROOT / "core/Cargo.lock").read_text(encoding="utf-8"))
    (core,) = (each for each in lock["package"] if each["name"] == "streamer-core")
    assert core["version"] == __version__


@pytest.mark.parametrize("path", PLACES)
def test_pages_and_manifests_name_the_version(path: str) -> None:
    found = re.findall(PLACES[path], (ROOT / path).read_text(encoding="utf-8"))
    assert set(found[:1] if path == "CHANGELOG.md" else found) == {__version__}
