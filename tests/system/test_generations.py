"""Settings change while workers count: nothing falls between those with older ones and the rest."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.main import main
from streamer.state.manifest import decode
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import Bench, as_toml, bench, document_of, ends_of, produce, until

PARTITIONS, EVENTS, PARTS = 6, 480, 4
T0 = 1_700_000_000_000
DEVICES = ("phone", "tablet", "desktop")


def impressions() -> list[LogRecord]:
    """In the order of time, on all partitions, with two dimensions."""
    dice = random.Random(7)
    records = []
    for n in range(EVENTS):
        ms = T0 + 1000 * n
        device, surface = dice.choice(DEVICES), dice.choice(("home", "search"))
        event = (
            f'{{"ts": {ms}, "user_id": "u{n % PARTITIONS}", "item_id": "i", '
            f'"device": "{device}", "surface": "{surface}"}}'
        )
        at = (n % PARTITIONS, n // PARTITIONS)
        records.append(LogRecord("impressions", *at, ms, event.encode()))
    return records


def with_dimensions(*names: str) -> dict[str, Any]:
    return {"dimensions": [{"name": name} for name in names], "limits": {"flush_ms": 50}}


def applied(path: Path, *accepted: str) -> None:
    assert main(["apply", str(path), *(f"--accept-drop={name}" for name in accepted)]) == 0


async def generations(made: Bench) -> list[int]:
    stored = await made.store.read_all(range(PARTITIONS))
    return [decode(each.manifest).generation for each in stored if each.manifest]


async def counted(made: Bench) -> int:
    """Accepted impressions, of all partitions."""
    await made.reader.refresh()
    manifests = made.reader.manifests.values()
    return sum(m.topics["impressions"].counters["accepted"] for m in manifests)


@long
@pytest.mark.timeout(120)
async def test_a_slow_worker_with_older_settings_takes_nothing_from_the_others(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Under load a dimension is added. Of three workers two take it while they run; the third has
    the older file, and is stopped for longer than its session: when it goes on it counts nothing
    that the others have counted, and says why."""
    records, names = impressions(), topics(partitions=PARTITIONS)
    old = document_of(kafka, names, redis_url, redis_prefix, with_dimensions("surface"))
    new = document_of(kafka, names, redis_url, redis_prefix, with_dimensions("surface", "device"))
    async with bench(tmp_path / "a", old) as made, bench(tmp_path / "b", old) as slow_made:
        for _ in range(2):
            made.start_worker()
        slow = slow_made.start_worker()
        step = EVENTS // PARTS

        async def load(part: int) -> None:
            await produce(kafka, names, records[part * step : (part + 1) * step])

        async def has_counted(events: int) -> bool:
            return await counted(made) == events

        async def share() -> bool:
            reports = [r for r in await made.store.reports() if r.is_present]
            return len(reports) == 3 and all("owned" in r.owned.values() for r in reports)

        await load(0)
        await until(share, "each has a share", made.said)
        await until(lambda: has_counted(step), "the first part", made.said)
        slow.process.send_signal(signal.SIGSTOP)
        made.config.write_text(as_toml(new))
        await asyncio.to_thread(applied, made.config)
        await load(1)

        async def is_taken() -> bool:
            return await counted(made) == 2 * step and await generations(made) == [2] * PARTITIONS

        await until(is_taken, "the others have all, under the new settings", made.said)
        slow.process.send_signal(signal.SIGCONT)
        await load(2)

        async def problems() -> list[str]:
            reports = [r for r in await made.store.reports() if r.is_present]
            return [text for report in reports for text in report.problems.values()]

        await until(problems, "the older settings are refused by name", slow_made.said)
        assert all("newer settings count here (generation 2" in text for text in await problems())
        await load(3)
        slow_made.config.write_text(as_toml(new))  # the file arrives there, too
        await until(lambda: has_counted(4 * step), "nothing is left out", slow_made.said)
        assert await generations(made) == [2] * PARTITIONS
        await made.settle(ends_of(records[: 4 * step]))
        await made.stop_workers()
        await slow_made.stop_workers()
        await check_words(tmp_path, old, capsys)
        assert await counted(made) == 4 * step


async def check_words(
    folder: Path, old: Mapping[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """What ``streamer apply`` said of the new settings, and says of those before."""
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "begins: dimensions: device is new: counted from the restart on"
    assert said[-2] == "unchanged: everything else that is counted"
    assert said[-1].startswith("these settings are generation 2: ")
    other = folder / "old.toml"
    other.write_text(as_toml(old))
    assert await asyncio.to_thread(main, ["apply", str(other)]) == 2
    refused = capsys.readouterr().err
    assert "device is dropped, with" in refused
    assert "--accept-drop=device" in refused
    await asyncio.to_thread(applied, other, "device")
    assert "lost: dimensions: device is dropped" in capsys.readouterr().out
