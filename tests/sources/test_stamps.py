"""Log and record timestamp of each line: the oracle's, and of sources those of a slow reading."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamer.ingest.record import IGNORED, line_stamper, record_decoder
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.files import FileSource
from streamer.sources.line_batch import Line
from tests.oracle.files import records_of_file
from tests.oracle.fuzzed import Fuzzer
from tests.oracle.random_log import random_log
from tests.support.agreement import SETTINGS

NOW_MS = 1_700_000_600_000


def stamped(lines: list[bytes], settings: Settings, topic: str = "") -> list[tuple[str, int]]:
    """In pieces, as files are read."""
    stamper, names, found = line_stamper(settings, topic), [*settings.logs, ""], []
    for at in range(0, len(lines), 7):
        logs, record_ms, _ = stamper.stamp(lines[at : at + 7], NOW_MS)
        found += [(names[log], int(ms)) for log, ms in zip(logs, record_ms, strict=True)]
    return found


def is_near_the_bound(line: bytes) -> bool:
    """Whether Python's own reader may find it too deep, which depends on its stack."""
    return 900 < max(line.count(b"["), line.count(b"{")) < 1100


@pytest.mark.parametrize("name", SETTINGS)
def test_lines_are_stamped_as_the_oracle_does(name: str) -> None:
    settings = SETTINGS[name]
    lines = random_log(31, settings, 400)
    fuzzer = Fuzzer(32, settings)
    for line in list(lines):
        odd = fuzzer.one(line)
        if odd is not None and not is_near_the_bound(odd):
            lines.append(odd)
    Random(33).shuffle(lines)
    records = records_of_file(lines, settings, now_ms=NOW_MS, strays="")
    expected = [(record.topic, record.record_ms) for record in records]
    assert stamped(lines, settings) == expected
    assert len({log for log, _ in expected}) >= 4


SOURCES: list[dict[str, Any]] = [
    {
        "topics": ["shown"],
        "kind": {"field": "what", "impression": ["view"], "ignored": ["ping"]},
        "fields": {"ts": "at", "item_id": "item", "user_id": "user"},
    },
    {
        "topics": ["bought"],
        "kind": {"fixed": "conversion"},
        "each": "lines[]",
        "fields": {"ts": "at", "item_id": "lines[].sku", "user_id": "user"},
    },
]


def odd_record(dice: Random, after_ms: int) -> bytes:
    at = NOW_MS - 10**6 + after_ms + dice.choice([-5000, 0, 500, 2 * 10**6])
    lines = dice.choice(['[{"sku":"a"},{"sku":"b"}]', '[{"sku":7.5},{"sku":"a"}]', "[]", "7"])
    parts = [
        dice.choice(['"what":"view"', '"what":"ping"', '"what":"other"', '"what":1']),
        dice.choice(['"item":"i"', '"item":7.5', '"more":1']),
        f'"lines":{lines}',
        dice.choice([f'"at":{at}', '"at":"soon"']),
    ]
    chosen = dice.sample(parts, dice.randint(1, 4))
    text = "{" + ",".join(chosen) + dice.choice(["}", "}", "}", "}", "", "}}"])
    return text.encode() + dice.choice([b"", b"", b"", b"\xff"])


def slow(lines: list[bytes], settings: Settings, topic: str) -> list[tuple[str, int]]:
    """The first log of which the first event of a line is one, or ignored; else the first."""
    decoder, running_ms, found = record_decoder(settings), 0, []
    for line in lines:
        log = next(iter(settings.logs))
        for each in settings.logs if topic not in settings.logs else ():
            first = decoder.decode_all(each, line)[0]
            if not isinstance(first, str) or first == IGNORED:
                log = each
                break
        if topic in settings.logs:
            log = topic
        events = [e for e in decoder.decode_all(log, line) if not isinstance(e, str)]
        times = [event["event_ms"] for event in events if event["event_ms"] <= NOW_MS]
        if events and max(event["event_ms"] for event in events) <= NOW_MS:
            running_ms = max(running_ms, *times)
        found.append((log, running_ms))
    return found


@pytest.mark.parametrize("topic", ["", "bought", "shown", "other"])
@pytest.mark.parametrize("count", [1, 2])
def test_lines_of_sources_are_stamped_as_they_are_read(topic: str, count: int) -> None:
    settings = parse({"sources": SOURCES[-count:]})
    dice = Random(34)
    lines = [odd_record(dice, 600 * i) for i in range(2000)]
    found = stamped(lines, settings, topic)
    assert found == slow(lines, settings, topic)
    assert len({ms for _, ms in found}) > 10
    assert len({log for log, _ in found}) == (1 if topic in settings.logs else count)


def test_each_file_has_a_clock_of_its_own_and_a_source_can_be_read_again(tmp_path: Path) -> None:
    paths = [tmp_path / "a.ndjson", tmp_path / "b.ndjson"]
    for ms, path in zip((2000, 1000), paths, strict=True):
        path.write_text(f'{{"type":"click","ts":{ms},"item_id":"i"}}\n')
    source = FileSource(paths, Settings())
    expected = [("clicks", 1000), ("clicks", 2000)]
    for _ in range(2):
        lines: list[Line] = [line for batch in source for line in batch]
        assert [line[:2] for line in lines] == expected
