"""What the page on architecture says of adding something is enough: a copy is changed so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lanes import long

ROOT = Path(__file__).parents[2]

PAGE = ROOT / "docs" / "architecture.md"
RATIO = """
    Ratio(
        *("clicks_per_conversion", "Clicks per conversion", CLICKS, CONVERSIONS),
        "Clicks over conversions, each by its own event time.",
        "clicks per conversion",
    ),
"""
USE = """
import json
from streamer.server.series import entries
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from streamer.testing import Engines, LogChunk, LogRecord

T0 = 1_700_000_000_000
metric = {"name": "clicks_per_conversion"}
experiment = {"name": "e", "dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}}
settings = parse({
    "experiments": [{**experiment, "start": "2023-11-01", "metrics": [metric]}],
    "alerts": [{"name": "a", "metric": metric["name"]}],
})
engines = Engines(settings, 1)
for kind, count in (("clicks", 60), ("conversions", 30)):
    events = [{"ts": T0, "user_id": f"u{i}", "item_id": "x", "value": 1} for i in range(count)]
    log = [LogRecord(kind, 0, i, T0, json.dumps(e).encode()) for i, e in enumerate(events)]
    engines.feed(LogChunk(kind, 0, log))
views = [view_of(partition) for partition in engines.partitions]
found = readout(settings, engines.catalogue, views).readings
print(json.dumps({
    "values": {r.name: r.value for r in found if "clicks_per_conversion" in r.name},
    "entries": [entry.name for entry in entries() if "clicks_per_conversion" in entry.name],
    "compared": list(engines.catalogue.experiment_measures.ratios),
    "watched": list(engines.catalogue.alert_measures.ratios),
}))
"""


def steps_of(heading: str) -> list[str]:
    """The files that the steps below a heading name first."""
    section = PAGE.read_text(encoding="utf-8").partition(f"**{heading}**")[2]
    steps = section.partition("\n\n**")[0]
    return re.findall(r"^\d\. `([\w/.]+)`", steps, re.MULTILINE)


def test_a_ratio_takes_the_files_that_are_listed(tmp_path: Path) -> None:
    files = steps_of("A ratio of two sums")
    assert files == ["metrics/ratios.py", "metrics/traffic.py"]
    copy = tmp_path / "streamer"
    shutil.copytree(ROOT / "streamer", copy, ignore=shutil.ignore_patterns("__pycache__"))
    declared, family = (copy / name for name in files)
    text = declared.read_text(encoding="utf-8")
    assert "\nRATIOS = (\n" in text
    declared.write_text(text.replace("\nRATIOS = (\n", f"\nRATIOS = ({RATIO}"), encoding="utf-8")
    text = family.read_text(encoding="utf-8")
    first = 'declare(metric, "ctr_attributed_ratio")\n'
    assert first in text
    added = f'{first}declare(metric, "clicks_per_conversion")\n'
    family.write_text(text.replace(first, added), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", USE], check=False, capture_output=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    name = "streamer_clicks_per_conversion"
    assert found["values"][name] == 2.0
    assert found["values"].keys() >= {f"{name}_lower", f"{name}_upper"}
    assert found["entries"] == [name, f"{name}_lower", f"{name}_upper"]
    assert found["compared"] == found["watched"] == ["clicks_per_conversion"]


def test_a_new_sum_takes_one_file_more() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("**A new sum**")[2].partition("\n\n")[0]
    (path,) = re.findall(r"`([\w/.]+\.rs)`", section)
    assert "pub const TABLE" in (ROOT / path).read_text(encoding="utf-8")


DISCOUNT = {
    "core/src/decode/fields.rs": (
        (
            "    /// Its category;",
            "    /// What is taken off its score.\n"
            "    Discount = "
            '"discount", Item(&[Impressions]), Number(at(0.0), most("MAX_DISCOUNT"));\n',
        ),
    ),
    "settings/limits.py": (("MAX_VALUE = 1e12", "MAX_DISCOUNT = 0.5\n"),),
    "core/src/decode/draft.rs": (
        ("    category: u64,\n    value: Option<f64>,", "    discount: Option<f64>,\n"),
        ("            category: self.category,", "discount: self.discount.unwrap_or(0.0),\n"),
        ("            | Field::ItemCategory", "| Field::Discount\n"),
        (
            "            Field::Value => shown.value",
            "Field::Discount => shown.discount = number,\n",
        ),
    ),
    "core/src/decode/event.rs": (
        ("    /// Hash of its category;", "    /// 0: missing.\n    pub discount: f64,\n"),
    ),
    "core/src/partition/events.rs": (
        ("            weights: weights.get(index),\n", "score: item.score - item.discount,\n"),
        ("            score: item.score,\n", ""),
    ),
}
"""File → which of its texts gets what before it: an optional number of shown items. Where that is
nothing the text is left out."""
USE_OF_A_FIELD = """
import json
from streamer.cli.reference import events_page
from streamer.ingest.record import RecordJudge
from streamer.ingest.rejections import Explainer
from streamer.query.readings import readout
from streamer.settings.event_fields import ELEMENT_FIELDS
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from streamer.testing import Engines, LogChunk, LogRecord

T0 = 1_700_000_000_000
settings = parse({"metrics": {"families": ["traffic", "scores"]}})

def event(**fields):
    return json.dumps({"ts": T0, "user_id": "u", **fields}).encode()

engines = Engines(settings, 1)
item = {"item_id": "a", "score": 0.75, "discount": 0.25}
events = [event(**item), event(items=[item, {**item, "item_id": "b"}])]
log = [LogRecord("impressions", 0, i, T0, value) for i, value in enumerate(events)]
engines.feed(LogChunk("impressions", 0, log))
views = [view_of(partition) for partition in engines.partitions]
found = readout(settings, engines.catalogue, views).readings
wrong = event(item_id="a", discount=0.75)
refusal = Explainer(settings).explain("impressions", wrong, "discount")
(row,) = (line for line in events_page().splitlines() if line.startswith("| `discount`"))
print(json.dumps({
    "mae": [r.value for r in found if r.name == "streamer_mae"][0],
    "elements": ELEMENT_FIELDS["impressions"],
    "refused": RecordJudge(settings).refusal("impressions", wrong),
    "in_lists": RecordJudge(settings).refusal(
        "impressions", event(items=[{"item_id": "a", "discount": -1}])
    ),
    "refusal": [refusal.field, refusal.found, refusal.expected],
    "row": row,
}))
"""
TARGET = ROOT / "core" / "target"
"""Where cargo keeps what it compiled."""


def test_a_field_takes_the_files_that_are_listed() -> None:
    assert steps_of("A field of events") == list(DISCOUNT)
    assert len(DISCOUNT) <= 5
    for name, changes in DISCOUNT.items():
        for before, _ in changes:
            text = source(ROOT, name).read_text(encoding="utf-8")
            assert text.count(before) == 1, f"{name}: {before}"


def source(root: Path, name: str) -> Path:
    """A file as the page calls it."""
    return root / name if name.startswith("core/") else root / "streamer" / name


@long
def test_a_field_that_is_added_so_is_decoded_refused_and_documented(tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    ignored = shutil.ignore_patterns("__pycache__", "_core*.so", "target")
    for folder in ("core", "streamer", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name, changes in DISCOUNT.items():
        file = source(tmp_path, name)
        text = file.read_text(encoding="utf-8")
        for before, added in changes:
            text = text.replace(before, added + before if added else "")
        file.write_text(text, encoding="utf-8")
    environment = {"CARGO_TARGET_DIR": str(TARGET), **os.environ, "PYTHONPATH": str(tmp_path)}
    built = run("cargo", "build", "--locked", "--manifest-path", "core/Cargo.toml",
                cwd=tmp_path, environment=environment)  # fmt: skip
    assert built.returncode == 0, built.stderr
    library = Path(environment["CARGO_TARGET_DIR"]) / "debug" / "lib_core.so"
    shutil.copy(library, tmp_path / "streamer" / "_core.abi3.so")
    done = run(sys.executable, "-c", USE_OF_A_FIELD, cwd=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["mae"] == 0.5
    assert "discount" in found["elements"]
    assert (found["refused"], found["in_lists"]) == ("discount", "items")
    assert found["refusal"] == ["discount", "0.75", "a number from 0 to 0.5"]
    assert found["row"].endswith("| a number from 0 to 0.5 | What is taken off its score. |")


def run(*words: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A command and what it printed."""
    return subprocess.run(
        words, check=False, capture_output=True, text=True, cwd=cwd, env=environment
    )
