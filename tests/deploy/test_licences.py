"""The wheel holds the licences of all that its core links."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib

import pytest

from tests.support.compose import ROOT

TEXT = ROOT / "core" / "THIRD-PARTY.txt"


def linked() -> set[str]:
    """Name and version of every crate that is compiled into the core."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo on PATH")
    words = [
        "cargo",
        "tree",
        "--locked",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]
    done = subprocess.run(
        [*words, "--manifest-path", str(ROOT / "core" / "Cargo.toml")],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"(?m)^([\w-]+) v(\S+)", done.stdout)
    return {f"{name} {version}" for name, version in found}


def test_every_crate_has_its_licence() -> None:
    named = {
        f"{name} {version}"
        for name, version in re.findall(r"(?m)^- ([\w-]+) (\d\S*)", TEXT.read_text("utf-8"))
    }
    crates = {crate for crate in linked() if not crate.startswith("streamer-core ")}
    assert len(crates) > 80
    assert crates <= named, f"run `make licences`: {sorted(crates - named)}"


def test_the_wheel_holds_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["license-files"]) == {"LICENSE", "core/THIRD-PARTY.txt"}


def test_both_tools_accept_the_same_permissive_licences() -> None:
    of_file = {
        name: tomllib.loads((ROOT / "core" / name).read_text(encoding="utf-8"))
        for name in ("about.toml", "deny.toml")
    }
    accepted = set(of_file["about.toml"]["accepted"])
    assert accepted == set(of_file["deny.toml"]["licenses"]["allow"])
    assert not [name for name in accepted if "GPL" in name]
