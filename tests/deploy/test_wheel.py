"""The wheel: what is in it, and that it needs neither a checkout nor a Rust toolchain."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from streamer import __version__
from tests.deploy.wheels import STEP_SECONDS, Environment, built
from tests.support.compose import ROOT
from tests.support.lanes import long

pytestmark = [long, pytest.mark.timeout(3 * STEP_SECONDS)]
METADATA = f"streamer_metrics-{__version__}.dist-info/"
CORE = "streamer/_core.abi3.so"
MILLISECONDS = 1_700_000_000_000
LOG = [
    {"type": "impression", "ts": MILLISECONDS, "user_id": "u", "request_id": "r", "item_id": "i"},
    {"type": "click", "ts": MILLISECONDS + 1, "user_id": "u", "request_id": "r", "item_id": "i"},
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheels"))


def test_it_is_one_for_every_python(wheel: Path) -> None:
    name, version, *tags = wheel.stem.split("-")
    assert (name, version) == ("streamer_metrics", __version__)
    assert tags[:2] == ["cp311", "abi3"]


def test_it_holds_the_core_and_what_git_knows_of_the_package(wheel: Path) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "streamer"]
    known = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.startswith(METADATA)}
    assert packed == {name for name in known.split() if (ROOT / name).exists()} | {CORE}


def test_it_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    assert shutil.which("cargo", path=str(environment.place / "bin")) is None
    environment.install("-c", "requirements/constraints.txt", str(wheel))
    log = tmp_path / "log.ndjson"
    log.write_text("".join(json.dumps(line) + "\n" for line in LOG))
    readings = json.loads(environment.run("streamer", "replay", str(log), "--json"))
    values = {(r["name"], *r["labels"].values()): r["value"] for r in readings["readings"]}
    assert values["streamer_accepted_total", "clicks"] == 1
    environment.run("streamer", "dashboards", str(tmp_path))
    environment.run("streamer", "rules", str(tmp_path))
    assert (tmp_path / "dashboards" / "overview.json").exists()
    assert "StreamerRecordsLost" in (tmp_path / "rules" / "streamer.yml").read_text()
    program = "import streamer._core as core; print(core.__file__)"
    path = Path(environment.run("python", "-P", "-c", program).strip())
    assert path.is_relative_to(environment.place)
    assert path.name == Path(CORE).name
