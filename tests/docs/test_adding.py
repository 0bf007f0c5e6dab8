"""What the page on architecture says of adding something is enough: a copy is changed so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.lanes import long

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
TARGET = ROOT / "core" / "target"
"""Where cargo keeps what it compiled."""
Changes = dict[str, tuple[tuple[str, str], ...]]
"""File → which of its texts gets what before it. Where that is nothing the text is left out."""
RATIO: Changes = {
    "metrics/ratios.py": (
        (
            '    Ratio(\n        *("ctr_ratio"',
            """    Ratio(
        *("clicks_per_conversion", "Clicks per conversion", CLICKS, CONVERSIONS),
        "Clicks over conversions, each by its own event time.",
        "clicks per conversion",
    ),
""",
        ),
    ),
    "metrics/traffic.py": (
        (
            'declare(metric, "ctr_attributed_ratio")',
            'declare(metric, "clicks_per_conversion")\n',
        ),
    ),
}
USE_OF_A_RATIO = """
import json
from streamer.server.series import entries
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.engines import Engines, LogChunk, LogRecord

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


SUM: Changes = {
    "core/src/counting/sums.rs": (
        ("    /// Sessions by the time at which they end", "    LongViewings,\n"),
        ('    ("sessions", 1, Sum::Sessions),', '    ("long_viewings", 1, Sum::LongViewings),\n'),
        (
            "            Self::DwellMs | Self::Viewings => &[Of::Viewing],",
            "            Self::LongViewings => &[Of::Viewing],\n",
        ),
        (
            "                Self::DwellMs => dwell_ms",
            "                Self::LongViewings => i64::from(dwell_ms > 30_000),\n",
        ),
    ),
    "metrics/ratios.py": (
        (
            '    Ratio(\n        *("ctr_ratio"',
            """    Ratio(
        *("long_viewing_ratio", "Share of long viewings"),
        *(Sum("long_viewings", "viewings of more than 30 s"), VIEWINGS),
        "Share of the viewings that lasted more than 30 s.",
        "ratio",
    ),
""",
        ),
    ),
    "metrics/engagement.py": (
        ('        Stat("viewings"),', '        Stat("long_viewings"),\n'),
        ('declare(metric, "dwell_mean_seconds")', 'declare(metric, "long_viewing_ratio")\n'),
    ),
}
SLATE_METRIC: Changes = {
    "core/src/slates/ranking.rs": (
        (
            "pub fn reciprocal_rank(",
            "pub fn relevant_items(slate: &SlateContext, _: i64, _: Convention) -> i64 {\n"
            "    quotient(slate.relevant.len() as i64, 1)\n}\n\n",
        ),
    ),
    "core/src/slates/family.rs": (
        ('        "mrr" =>', '        "relevant_items" => (ranking::relevant_items, &[]),\n'),
    ),
    "metrics/ranking.py": (
        (
            'slate_metric(\n    "mrr"',
            """slate_metric(
    "relevant_items",
    title="Relevant items",
    formula="r",
    doc="How many items of a slate are relevant.",
    unit="items",
    source="P",
    population=ENGAGED,
    over=_BOTH,
    largest=lambda gains, margin, k: 100 * 10**9,
)

""",
        ),
    ),
}
FIELD: Changes = {
    "core/src/decode/fields.rs": (
        (
            "    /// The category of the item;",
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
        ("                weights: weights.get(index),\n", "score: item.score - item.discount,\n"),
        ("                score: item.score,\n", ""),
    ),
}
KEPT_FIELD: Changes = {
    "core/src/decode/fields.rs": (
        (
            "    /// The category of the item;",
            "    /// How many of the item were bought.\n"
            "    Quantity = "
            '"quantity", Item(&[Conversions]), Number(at(0.0), most("MAX_QUANTITY"));\n',
        ),
    ),
    "settings/limits.py": (("MAX_VALUE = 1e12", "MAX_QUANTITY = 1e6\n"),),
    "core/src/decode/draft.rs": (
        ("    category: u64,\n    value: Option<f64>,", "    quantity: Option<f64>,\n"),
        (
            "                dwell_ms: None, // the event's",
            "                quantity: self.quantity.unwrap_or(1.0) as i64,\n",
        ),
        ("            | Field::ItemCategory", "| Field::Quantity\n"),
        (
            "            Field::Value => shown.value",
            "Field::Quantity => shown.quantity = number,\n",
        ),
    ),
    "core/src/changes.rs": (
        (
            "        /// The time spent on the item.",
            "        /// How many of the item were bought.\n        quantity: i64,\n",
        ),
    ),
    "core/src/counting/sums.rs": (
        ("            Self::ConversionLines => is_line,\n", ""),
        (
            "            Self::Value if is_line",
            "Self::ConversionLines if is_line => return amounts.quantity,\n",
        ),
    ),
}
USE_OF_A_KEPT_FIELD = """
import asyncio
import json
from streamer.settings.load import parse
from streamer.sources.replay import Replay

T0 = 1_700_000_000_000
settings = parse({"dimensions": [{"name": "surface"}]})

def record(topic, at_ms, **fields):
    event = {"ts": T0 + at_ms, "user_id": "u", "item_id": "x", **fields}
    return topic, T0 + at_ms, json.dumps(event).encode()

def lines(replay):
    readings = replay.readout().readings
    found = [r for r in readings if r.name == "streamer_window_conversion_lines"]
    return {r.labels["surface"]: r.value for r in found if r.labels["window"] == "1h"}

before = Replay(settings)
before.feed([
    record("impressions", 0, surface="home"),
    record("clicks", 2000),
    record("conversions", 3000, quantity=3),
])
before.finish()
after = asyncio.run(Replay.of_store(settings, asyncio.run(before.store())))
after.feed([record("impressions", 1000, surface="feed")])
after.finish()
print(json.dumps({"joined": lines(before), "moved": lines(after)}))
"""
USE_OF_A_FIELD = """
import json
from tests.docs.reference import events_page
from streamer.ingest.record import record_decoder
from streamer.ingest.rejections import Explainer
from streamer.query.readings import readout
from streamer.settings.event_fields import ELEMENT_FIELDS
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.engines import Engines, LogChunk, LogRecord

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
    "refused": record_decoder(settings).decode_all("impressions", wrong)[0],
    "in_lists": record_decoder(settings).decode_all(
        "impressions", event(items=[{"item_id": "a", "discount": -1}])
    )[0],
    "refusal": [refusal.field, refusal.found, refusal.expected],
    "row": row,
}))
"""
USE_OF_SUMS = """
import json
from streamer.testing import value_of

shown = {"type": "impression", "request_id": "r", "items": [{"item_id": i} for i in "abc"]}
clicks = [{"type": "click", "request_id": "r", "item_id": i} for i in "ab"]
viewed = [{**click, "dwell_ms": ms} for click, ms in zip(clicks, (40_000, 3_000))]
print(json.dumps({
    "long": value_of((shown, *viewed), "long_viewing_ratio", {"dimensions": []}),
    "relevant": value_of((shown, *clicks), "relevant_items", {"dimensions": []}),
}))
"""
CHECK: Changes = {
    "query/checks.py": (
        (
            "CHECKS: tuple[Check, ...]",
            """class EmptyCheck(Check):
    name, title = "empty", "Empty"
    status_gauge, status_doc = "empty_status", "Whether anything was counted."
    gauges = (
        Gauge("empty_support", "support", "What was counted.", "denominator", _EVENTS, _AT_0),
    )

    def judge(self, windows: AlertEvaluation, segment: Segment) -> MetricChange | None:
        return windows.change(segment)

    def status_at(self, windows: Verdicts, segment: Segment) -> Status | None:
        return windows.change(segment).status

    def rules(self, alert: Alert) -> Iterator[AlertRule]:
        yield AlertRule(
            *("StreamerMetricEmpty", "empty_status", "== 1", f"{alert.metric} is empty"),
            "[empty_support] counted.",
            status=Status.NO_BASELINE,
        )


""",
        ),
        ("ReferenceCheck())", "EmptyCheck(), "),
    ),
}
USE_OF_A_CHECK = """
import json
from streamer.monitoring import metric_rules
from streamer.query.alert_status import alert_status
from streamer.query.checks import watched
from streamer.query.readings import readout
from streamer.server.series import entries
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.engines import Engines, LogChunk, LogRecord

T0 = 1_700_000_000_000
settings = parse({"alerts": [{"name": "a"}]})
engines = Engines(settings, 1)
event = json.dumps({"ts": T0, "user_id": "u", "item_id": "x"}).encode()
engines.feed(LogChunk("impressions", 0, [LogRecord("impressions", 0, 0, T0, event)]))
views = [view_of(partition) for partition in engines.partitions]
(verdict,) = watched(settings, engines.catalogue.alert_measures, views, T0)
ratios = engines.catalogue.alert_measures.ratios
found = readout(settings, engines.catalogue, views).readings
rules = metric_rules.document(settings, "page", "runbook")["groups"][0]["rules"]
print(json.dumps({
    "document": alert_status(verdict, ratios, settings.dimension_names).checks["empty"].status,
    "series": [r.value for r in found if r.name == "streamer_alert_empty_support"],
    "entries": [entry.name for entry in entries() if "alert_empty" in entry.name],
    "rules": [rule["expr"] for rule in rules if rule["alert"] == "StreamerMetricEmpty"],
}))
"""
STATISTIC: Changes = {
    "query/readout.py": (
        (
            "    if waits:",
            """    users = comparison.users
    yield ComparisonStatistic("compared", "Compared", f"{users} users were compared.", users)
""",
        ),
    ),
}
NOTE: Changes = {
    "query/notes.py": (
        (
            "    if found.user_sample_ratio < 1:",
            '    yield Note("weather", "It was sunny.", Severity.WARNING)\n',
        ),
    ),
}
USE_OF_A_READOUT = """
import contextlib, io, json
import msgspec
import streamer
from streamer.cli.readout_text import print_readout
from streamer.query.readout import readout_of
from streamer.query.scorecard import scorecard
from streamer.server.web import scorecards

T0 = 1_700_000_000_000
events = [
    {"type": "impression", "ts": T0 + i, "user_id": f"u{i}", "item_id": "x", "variant": "AB"[i % 2]}
    for i in range(40)
]
one = {"name": "e", "dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}}
log = streamer.read(events, {"experiments": [{**one, "start": "2023-11-14"}]})
report, stored = log.experiment("e"), log.stored_experiment("e")
found, printed = readout_of(stored, stored.read()), io.StringIO()
with contextlib.redirect_stdout(printed):
    print_readout(found)
faces = {
    "terminal": " ".join(printed.getvalue().split()),
    "page": scorecards.page(scorecard(found)),
    "report": scorecards.report(scorecard(found), ""),
    "api": msgspec.json.encode(found).decode(),
    "notebook": report._repr_html_(),
    "python": f"{report!r} {report.notes}",
}
print(json.dumps({
    "statistic": [name for name, text in faces.items() if "40 users were compared." in text],
    "note": [name for name, text in faces.items() if "It was sunny." in text],
    "columns": [name for name in report.metrics.columns if name == "compared"],
    "warnings": report.warnings,
}))
"""
COUNTER: Changes = {
    "core/src/partition/admission.rs": (
        ("    pub duplicates: u64,", "    pub stamped_early: u64,\n"),
        ("            duplicates: 0,", "            stamped_early: 0,\n"),
        ("        self.accepted += 1;", "        self.stamped_early += u64::from(lag_ms > 0);\n"),
    ),
    "core/src/partition/counters.rs": (
        (
            "    /// Records below the watermark that it took",
            "    /// Events before their record.\n"
            '    "stamped_early" = "events", counter("ts < arrival clock"), sum,'
            " at(log.stamped_early);\n",
        ),
    ),
}
USE_OF_A_COUNTER = """
import asyncio
import json
from streamer.server.series import entries
from streamer.settings.load import parse
from streamer.sources.replay import Replay

T0 = 1_700_000_000_000
settings = parse({})
before = Replay(settings)
event = json.dumps({"ts": T0, "user_id": "u", "item_id": "x"}).encode()
before.feed([("clicks", T0 + ms, event) for ms in (0, 1000, 2000)])
before.finish()
replay = asyncio.run(Replay.of_store(settings, asyncio.run(before.store())))
replay.feed([("clicks", T0 + 3000, event)])
replay.finish()
name = "streamer_stamped_early_total"
found = [reading for reading in replay.readout().readings if reading.name == name]
print(json.dumps({
    "values": {reading.labels["topic"]: reading.value for reading in found},
    "help": [entry.doc for entry in entries() if entry.name == name],
}))
"""
COLUMN: Changes = {
    "server/web/columns.js": (
        (
            '  column("Conversions",',
            '  column("Value", "conversion_value", "value", format.number),\n',
        ),
    ),
}
LISTED: dict[str, Changes] = {
    "A ratio of two sums": RATIO,
    "A ratio of a new sum": SUM,
    "A metric of slates": SLATE_METRIC,
    "A field of events": FIELD,
    "A field that feedback keeps": KEPT_FIELD,
    "A check of alerts": CHECK,
    "A number of a readout": STATISTIC,
    "A sentence of a readout": NOTE,
    "A counter": COUNTER,
    "A column of the page": COLUMN,
}
"""What stands before the steps, and the change that a copy gets."""
BUILT = (SUM, SLATE_METRIC, FIELD, KEPT_FIELD, COUNTER)
"""Those of the core."""


def steps_of(heading: str) -> list[str]:
    """The files that the steps below a heading name first."""
    section = PAGE.read_text(encoding="utf-8").partition(f"**{heading}**")[2]
    steps = section.partition("\n\n**")[0]
    return re.findall(r"^\d\. `([\w/.]+)`", steps, re.MULTILINE)


def source(root: Path, name: str) -> Path:
    """A file as the page calls it."""
    return root / name if name.startswith("core/") else root / "streamer" / name


@pytest.mark.parametrize("heading", LISTED)
def test_a_change_takes_the_files_that_are_listed(heading: str) -> None:
    changes = LISTED[heading]
    assert steps_of(heading) == list(changes)
    assert 1 <= len(changes) <= 5
    for name, texts in changes.items():
        for before, _ in texts:
            assert source(ROOT, name).read_text(encoding="utf-8").count(before) == 1, before


def changed(folder: Path, folders: tuple[str, ...], *every: Changes) -> None:
    """A copy of some folders of the project, with changes."""
    ignored = shutil.ignore_patterns("__pycache__", "target")
    for name in folders:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for changes in every:
        for name, texts in changes.items():
            file = source(folder, name)
            text = file.read_text(encoding="utf-8")
            for before, added in texts:
                assert before in text, f"{name}: {before}"
                text = text.replace(before, added + before if added else "")
            file.write_text(text, encoding="utf-8")


def run(*words: str, cwd: Path, **environment: str) -> str:
    """What a command printed in a copy."""
    everything = {**os.environ, "PYTHONPATH": str(cwd), **environment}
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, cwd=cwd, env=everything
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def used(code: str, cwd: Path) -> dict[str, Any]:
    """The document that a script prints in a copy."""
    found: dict[str, Any] = json.loads(run(sys.executable, "-c", code, cwd=cwd))
    return found


def test_a_ratio_has_intervals_and_is_compared_and_watched(tmp_path: Path) -> None:
    changed(tmp_path, ("streamer",), RATIO)
    found = used(USE_OF_A_RATIO, tmp_path)
    name = "streamer_clicks_per_conversion"
    assert found["values"][name] == 2.0
    assert found["values"].keys() >= {f"{name}_lower", f"{name}_upper"}
    assert found["entries"] == [name, f"{name}_lower", f"{name}_upper"]
    assert found["compared"] == found["watched"] == ["clicks_per_conversion"]


def test_a_check_is_a_gauge_a_rule_and_a_verdict(tmp_path: Path) -> None:
    changed(tmp_path, ("streamer",), CHECK)
    found = used(USE_OF_A_CHECK, tmp_path)
    assert found["document"] == "no baseline"
    assert found["series"] == [1]
    assert found["entries"] == ["streamer_alert_empty_support", "streamer_alert_empty_status"]
    (rule,) = found["rules"]
    assert 'streamer_alert_empty_status{alert="a", status="no baseline"}' in rule


def test_every_face_shows_a_number_and_a_sentence_of_a_readout(tmp_path: Path) -> None:
    nothing: dict[str, list[str]] = {"statistic": [], "note": [], "columns": [], "warnings": []}
    assert used(USE_OF_A_READOUT, ROOT) == nothing
    changed(tmp_path, ("streamer",), STATISTIC, NOTE)
    found = used(USE_OF_A_READOUT, tmp_path)
    faces = ["terminal", "page", "report", "api", "notebook", "python"]
    assert found["note"] == faces
    assert found["statistic"] == faces[:-1]
    assert found["columns"] == ["compared"]
    assert found["warnings"] == ["It was sunny."]


@long
def test_what_the_core_counts_and_decodes_follows_from_its_tables(tmp_path: Path) -> None:
    """A sum, a metric of slates, fields and a counter, in one build."""
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    changed(tmp_path, ("core", "streamer", "docs"), *BUILT)
    target = os.environ.get("CARGO_TARGET_DIR", str(TARGET))
    run("cargo", "build", "--locked", "--manifest-path", "core/Cargo.toml",
        cwd=tmp_path, CARGO_TARGET_DIR=target)  # fmt: skip
    shutil.copy(Path(target) / "debug" / "lib_core.so", tmp_path / "streamer" / "_core.abi3.so")
    found = used(USE_OF_SUMS, tmp_path)
    assert found == {"long": 0.5, "relevant": 2.0}
    found = used(USE_OF_A_COUNTER, tmp_path)
    assert found["values"]["clicks"] == 3
    assert found["values"]["impressions"] == 0
    assert found["help"] == ["Events before their record."]
    found = used(USE_OF_A_FIELD, tmp_path)
    assert found["mae"] == 0.5
    assert "discount" in found["elements"]
    assert (found["refused"], found["in_lists"]) == ("discount", "items")
    assert found["refusal"] == ["discount", "0.75", "a number from 0 to 0.5"]
    assert found["row"].endswith("| a number from 0 to 0.5 | What is taken off its score. |")
    found = used(USE_OF_A_KEPT_FIELD, tmp_path)
    assert found["joined"] == {"all": 3, "home": 3}
    assert found["moved"] == {"all": 3, "feed": 3}
