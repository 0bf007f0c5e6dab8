"""Two topics that both hold events of all kinds: neither the order in which they are read nor
restarts change anything."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES, TYPE_OF_KIND
from streamer.settings.load import parse
from streamer.state.memory import MemoryStore
from tests.support.agreement import (
    DOCUMENTS,
    SETTINGS,
    log_records,
    read_engines,
    run_engines,
    states,
)
from tests.support.engines import LogRecord
from tests.support.journals import feed_with_restarts, finish, start, take_over
from tests.support.lanes import shortened
from tests.support.own_names import own_names

TOPICS = ("app", "web")


def document(name: str, topics: tuple[str, ...] = TOPICS) -> dict[str, Any]:
    """Settings that read these topics, of events whose kind is said by a field."""
    kinds = {key: [key] for key in LINE_TYPES}
    source = {"kind": {"field": "what", **kinds}, "fields": own_names(SETTINGS[name])}
    return {**DOCUMENTS[name], "sources": [{"topics": [topic], **source} for topic in topics]}


def mixed(name: str, seed: int, lines: int = 900) -> list[LogRecord]:
    """A log in two topics. Impressions of a user, or id of joins, are in one of them: which slate
    an item belongs to goes by the clock of its topic."""
    records = log_records(seed, name, lines, 2)
    dice, offsets = random.Random(seed), Counter[tuple[str, int]]()
    log = []
    for record in sorted(records, key=lambda r: r.record_ms):
        topic, value = dice.choice(TOPICS), record.raw or b""
        try:
            event = json.loads(value)
        except ValueError:
            event = None
        if isinstance(event, dict):
            if record.topic == "impressions":
                who = event.get("join_id") or event.get("user_id")
                topic = TOPICS[sum(str(who).encode()) % 2]
            value = json.dumps(event | {"what": TYPE_OF_KIND[record.topic]}).encode()
        place = topic, record.partition
        log.append(LogRecord(*place, offsets[place], record.record_ms, value))
        offsets[place] += 1
    return log


@pytest.mark.parametrize("name", shortened(["defaults", "few values"]))
@pytest.mark.parametrize("seed", shortened([0, 1, 2]))
async def test_no_order_and_no_restart_changes_anything(
    seed: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BLOB_FAN_IN", 2 + seed)
    settings, log = parse(document(name)), mixed(name, seed)
    whole = run_engines(settings, 2, log, 1_000_000)
    reference = states(whole)
    assert states(run_engines(settings, 2, log, 30, seed)) == reference
    assert read_engines(run_engines(settings, 2, log, 7, seed + 1)) == read_engines(whole)
    store = MemoryStore()
    run = await start(store, settings, 2)
    await feed_with_restarts(store, run, log, seed)
    await finish(store, run)
    for number in range(2):
        await take_over(store, run, number)
    assert states(run.engines) == reference
    assert all(reference[0]["logs"][topic]["accepted"] > 100 for topic in TOPICS)
