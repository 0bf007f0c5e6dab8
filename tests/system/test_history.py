"""History out of a live state and out of a replay of its log: the same bytes; in a Prometheus it
ends where live begins."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from streamer._core import partition_of
from streamer.ingest.hash_key import key_text
from tests.monitoring.alert_delivery import Prometheus
from tests.state.test_redis_access import exporter
from tests.support.compose import ROOT
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import sized
from tests.support.required import require
from tests.support.workers import bench, document_of, ends_of, produce, until

PARTITIONS = 2
PAGE = ROOT / "docs" / "how-to" / "fill-prometheus.md"


def log_of(begin_ms: int, end_ms: int, count: int) -> list[dict[str, Any]]:
    """Impressions up to a time, of which some have late feedback, in the order of time."""
    dice, made = Random(11), list[dict[str, Any]]()
    for number in range(count):
        at = begin_ms + (end_ms - begin_ms) * (number + 1) // count - 1
        who = {"user_id": f"u{dice.randrange(50)}", "item_id": f"i{dice.randrange(9)}"}
        who |= {"request_id": f"r{number // 3}", "surface": dice.choice(["home", "search"])}
        made.append({"type": "impression", "ts": at, **who, "variant": dice.choice("AB")})
        later = at + dice.randrange(20 * 60_000)
        if dice.random() < 0.3 and later < end_ms:
            made.append({"type": "click", "ts": later, **who})
            if dice.random() < 0.3:
                made.append({"type": "conversion", "ts": later, **who, "value": 3})
    return sorted(made, key=lambda event: event["ts"])


def records_of(events: list[dict[str, Any]]) -> list[LogRecord]:
    ends, made = dict[tuple[str, int], int](), list[LogRecord]()
    for event in events:
        kind = event["type"] + "s"
        place = partition_of(event["user_id"].encode(), PARTITIONS)
        offset = ends[kind, place] = ends.get((kind, place), -1) + 1
        made.append(LogRecord(kind, place, offset, event["ts"], json.dumps(event).encode()))
    return made


async def ran(*words: object, folder: Path) -> bytes:
    """What ``streamer history`` writes."""
    out = folder / "out"
    command = [sys.executable, "-m", "streamer", "history", *map(str, words), str(out)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def samples(prometheus: Prometheus, query: str) -> dict[str, list[tuple[float, float]]]:
    """By window and variant, the samples of the last 90 days."""
    path = f"/api/v1/query?query={query}%5B90d%5D"
    found = json.loads(prometheus.get(path))["data"]["result"]
    made = dict[str, list[tuple[float, float]]]()
    for one in found:
        of = one["metric"]
        assert (of["job"], of["system"]) == ("streamer", "streamer")
        key = f"{of['window']} {of['variant']} {of['surface']}"
        made.setdefault(key, []).extend((at, float(value)) for at, value in one["values"])
    return made


async def first_scrape(prometheus: Prometheus) -> Any:
    return samples(prometheus, "streamer_window_impressions")


def fill(prometheus: Prometheus, folder: Path) -> None:
    """Run what the page says: the first command prints a time, which the second is given."""
    (text,) = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    said = "2026-11-02T14:00:07"
    replaced = {
        "http://localhost:9090": f"http://{prometheus.address}",
        "/var/lib/prometheus": str(prometheus.directory / "data"),
        "streamer history": f"{sys.executable} -m streamer history --metric window_impressions",
    }
    assert all(text.count(old) == 1 for old in (said, *replaced))
    for old, new in replaced.items():
        text = text.replace(old, new)
    printed = said
    for line in text.splitlines():
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line.replace(said, printed)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        printed = done.stdout.strip() if printed == said else printed


@pytest.mark.timeout(sized(240, 900))
async def test_live_and_replayed_history_are_the_same_and_end_where_live_begins(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    require("Prometheus")
    end_ms = time.time_ns() // 1_000_000 // 60_000 * 60_000
    events = log_of(end_ms - 50 * 60_000, end_ms, 1500)
    replayed = tmp_path / "log.ndjson"
    replayed.write_text("".join(json.dumps(event) + "\n" for event in events))
    names, records = topics(partitions=PARTITIONS), records_of(events)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    await produce(kafka, names, records)
    async with bench(tmp_path / "live", document) as made:
        made.start_worker()
        await made.settle(ends_of(records))
        key = key_text(await made.hash_key())
        config = ("-c", made.config, "--step", "1m")
        for form in ("--openmetrics", "--parquet"):
            live = await ran(*config, form, folder=tmp_path)
            again = await ran(replayed, "--hash-key", key, *config, form, folder=tmp_path)
            assert live == again
            assert len(live) > 50_000
        past = log_of(end_ms - sized(1, 90) * 86_400_000, end_ms - 50 * 60_000, 3000)
        for number, part in enumerate((past, events)):
            lines = "".join(json.dumps(event) + "\n" for event in part).encode()
            (made.directory / f"events-{number}.ndjson.zst").write_bytes(zstandard.compress(lines))
        began = time.time()
        async with exporter(made.config) as (url, said):
            address = url.removeprefix("http://").partition("/")[0]
            with Prometheus(tmp_path / "prometheus", address, "127.0.0.1:1") as prometheus:
                found = await until(lambda: first_scrape(prometheus), "it scrapes", said)
                scraped = {key: some[0] for key, some in found.items()}
                await asyncio.to_thread(fill, prometheus, made.directory)
                prometheus.kill()
                prometheus.start()
                together = await until(lambda: first_scrape(prometheus), "it answers", said)
    first = min(at for at, _ in scraped.values())
    history = [at for at, _ in together["24h all all"] if at < first]
    steps = {later - at for at, later in pairwise(history)}
    assert steps == {300}
    # A first scrape may come before the windows are read; and processes take time to start.
    assert 0 < first - history[-1] <= 310 + max(0, first - began)
    assert len(history) > sized(280, 25_900)
    assert len([at for at, _ in together["24h all all"] if at >= first]) >= 1
    oldest, newest = history[0], history[-1]
    counted = [e["ts"] for e in (*past, *events) if e["type"] == "impression"]
    right = sum((newest - 300) * 1000 <= ts < newest * 1000 for ts in counted)
    assert dict(together["5m all all"])[newest] == right
    assert oldest <= counted[0] / 1000 + 300
