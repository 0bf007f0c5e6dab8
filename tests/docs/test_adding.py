"""What the page on architecture says of adding something is enough: a copy is changed so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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
