"""``streamer history``: what an exporter would have shown, at each step, in two formats."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyarrow import parquet

from streamer.cli import history
from streamer.cli.main import main
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.settings.durations import DAY_MS, HOUR_MS
from streamer.settings.load import parse
from streamer.sources.files import FileSource
from streamer.sources.replay import Replay
from tests.monitoring.test_rules import promtool
from tests.oracle.random_log import START_MS, random_log
from tests.support.agreement import DOCUMENTS
from tests.support.lanes import long
from tests.support.workers import as_toml

AT_MS = 1_790_000_100_000
Series = dict[tuple[tuple[str, str], ...], float]


def events(hours: float, count: int) -> list[dict[str, Any]]:
    """Impressions at equal distances, each with its feedback at once."""
    dice, made = Random(7), list[dict[str, Any]]()
    for number in range(count):
        at = AT_MS + int(number * hours * HOUR_MS / count)
        who = {"user_id": f"u{dice.randrange(40)}", "item_id": f"i{dice.randrange(9)}"}
        who["request_id"] = f"r{number}"
        shown = {"position": 1 + number % 5, "score": dice.random(), "variant": dice.choice("AB")}
        made.append({"type": "impression", "ts": at, **who, **shown})
        if dice.random() < 0.2:
            made.append({"type": "click", "ts": at + 1, **who, "dwell_ms": dice.randrange(90_000)})
            if dice.random() < 0.3:
                made.append({"type": "conversion", "ts": at + 2, **who, "value": 3})
    return made


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def openmetrics_of(path: Path) -> dict[int, Series]:
    """Time (ms) → the samples, by name and labels."""
    found: dict[int, Series] = {}
    families = text_string_to_metric_families(path.read_text())  # type: ignore[no-untyped-call]
    for family in families:
        for sample in family.samples:
            labels = ("", sample.name), *sorted(sample.labels.items())
            of_time = found.setdefault(round(float(sample.timestamp) * 1000), {})
            assert labels not in of_time
            of_time[labels] = sample.value
    return found


def parquet_of(path: Path) -> dict[int, Series]:
    found: dict[int, Series] = {}
    for row in parquet.read_table(path).to_pylist():
        time, name, value = (row.pop(column) for column in ("time", "metric", "value"))
        labels = ("", name), *sorted((k, v) for k, v in row.items() if v is not None)
        found.setdefault(round(time.timestamp() * 1000), {})[labels] = value
    return found


def exported(lines: list[dict[str, Any]], folder: Path) -> Series:
    """What an exporter shows that has read no more, of what panes hold."""
    settings = parse({})
    replay = Replay(settings)
    for batch in FileSource([str(written(folder / "head.ndjson", lines))], settings):
        replay.feed(batch)
    replay.finish()
    catalogue = Catalogue(settings).of_panes()
    variants = {
        (PREFIX + metric.name, frozenset(variant.labels.items()))
        for metric in catalogue.metrics
        for variant in catalogue.variants[metric.name]
    }

    def is_of_panes(name: str, labels: dict[str, str]) -> bool:
        return any(
            name in (of, f"{of}_bucket", f"{of}_sum", f"{of}_count") and some <= {*labels.items()}
            for of, some in variants
        )

    return {
        (("", reading.name), *sorted(reading.labels.items())): reading.value
        for reading in replay.readout().readings
        if "window" in reading.labels and is_of_panes(reading.name, reading.labels)
    }


def test_each_step_is_what_an_exporter_shows_then(tmp_path: Path) -> None:
    """The exporter shows a window up to the latest event, which is just before the step."""
    lines, compared = events(30, 5000), 0
    for hours in (2, 7, 26, 29):
        at_ms = AT_MS // HOUR_MS * HOUR_MS + hours * HOUR_MS
        last = {"type": "impression", "ts": at_ms - 1, "user_id": "last", "item_id": "last"}
        before = [*(line for line in lines if line["ts"] < at_ms - 5), last]
        after = [line for line in lines if line["ts"] >= at_ms]
        path = written(tmp_path / "log.ndjson", [*before, *after])
        times = (datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (at_ms, at_ms + 1))
        words = ["history", str(path), "--openmetrics", str(tmp_path / "om")]
        begin, end = times
        assert main([*words, "--from", begin, "--to", end]) == 0
        shown = openmetrics_of(tmp_path / "om")[at_ms]
        right = exported(before, tmp_path)
        right = {k: v for k, v in right.items() if v or k in shown}
        assert right == shown
        compared += len(shown)
    assert compared > 2000


def long_log(folder: Path) -> list[str]:
    """A file of five days with every complication, and its settings."""
    document = DOCUMENTS["few values"]
    config = folder / "streamer.toml"
    config.write_text(as_toml(document))
    lines = [
        line
        for number in range(4)
        for line in random_log(number, parse(document), 300, START_MS + number * 30 * HOUR_MS)
    ]
    (folder / "log.ndjson").write_bytes(b"\n".join(lines))
    return [str(folder / "log.ndjson"), "-c", str(config)]


@long
def test_what_is_written_while_files_are_read_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of the log, and one that is all of it: the same bytes."""
    words, found = long_log(tmp_path), set[bytes]()
    for applied_ms in (6 * HOUR_MS, 100 * DAY_MS):
        monkeypatch.setattr(history, "_APPLIED_MS", applied_ms)
        out = tmp_path / "out"
        main(["history", *words, "--openmetrics", str(out), "--step", "3h"])
        found.add(out.read_bytes())
    assert len(found) == 1
    assert len(found.pop()) > 10_000


def test_both_formats_have_the_same_samples(tmp_path: Path) -> None:
    path = str(written(tmp_path / "log.ndjson", events(3, 900)))
    for form in ("openmetrics", "parquet"):
        words = ["history", path, f"--{form}", str(tmp_path / form), "--label", "system=shop"]
        assert main([*words, "--from", "2026-09-21T15:00", "--to", "2026-09-21T16:00"]) == 0
    found = openmetrics_of(tmp_path / "openmetrics")
    assert found == parquet_of(tmp_path / "parquet")
    first_ms = 1_790_002_800_000
    assert sorted(found) == list(range(first_ms, first_ms + HOUR_MS, 300_000))
    assert {dict(labels)["system"] for some in found.values() for labels in some} == {"shop"}
    windows = {dict(labels)["window"] for labels in found[first_ms]}
    assert windows == {"1m", "5m", "1h", "24h"}
    blocks = tmp_path / "blocks"
    promtool("tsdb", "create-blocks-from", "openmetrics", tmp_path / "openmetrics", blocks)
    assert list(blocks.iterdir())


def test_metrics_are_chosen(tmp_path: Path) -> None:
    path = str(written(tmp_path / "log.ndjson", events(1, 300)))
    words = ["history", path, "--openmetrics", str(tmp_path / "om")]
    assert main([*words, "--metric", "ctr_ratio", "--metric", "streamer_window_clicks"]) == 0
    names = {
        dict(labels)[""] for some in openmetrics_of(tmp_path / "om").values() for labels in some
    }
    assert names == {"streamer_ctr_ratio", "streamer_window_clicks"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--metric", "ctr_rato"], "--metric ctr_rato: no metric of windows that panes hold; did"),
        (["--metric", "user_hit_ratio"], "no metric of windows that panes hold"),
        (["--step", "1500ms"], "--step 1500ms: whole seconds"),
        (["--to", "2020-01-01"], "no window of these times is kept"),
        (["--label", "shop"], "'shop' is not a label like system=shop"),
    ],
)
def test_what_cannot_be_written_is_said(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path / "log.ndjson", events(1, 300)))
    assert main(["history", path, "--openmetrics", str(tmp_path / "om"), *more]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "om").exists()


def test_what_is_not_installed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["history", "log.ndjson", "--parquet", str(tmp_path / "out")]) == 2
    assert "--parquet needs pyarrow: pip install pyarrow" in capsys.readouterr().err


def test_a_state_that_is_not_there(
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STREAMER_REDIS__URL", redis_url)
    monkeypatch.setenv("STREAMER_REDIS__PREFIX", redis_prefix)
    assert main(["history", "--openmetrics", str(tmp_path / "om")]) == 2
    assert "no window of these times is kept" in capsys.readouterr().err
