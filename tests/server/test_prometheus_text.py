"""The text format is, byte by byte, that of prometheus_client for the same families."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from streamer.query.readings import Reading, ReadingSet
from streamer.server.prometheus_text import places_of, render
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.sources.synthetic import SyntheticTraffic, generate
from tests.support.all_cases import hold_for_all
from tests.support.promtool import promtool_finds_nothing


def families(result: ReadingSet) -> Iterator[Metric]:
    """The same readings for a custom collector of ``prometheus_client``."""
    shown = (b for b in result.blocks if b.present)
    for family, group in groupby(shown, attrgetter("family")):
        blocks = list(group)
        bare = family.removesuffix("_total") if blocks[0].kind == "counter" else family
        found = Metric(bare, blocks[0].doc, blocks[0].kind)
        for block, places in places_of(blocks):
            for i in places:
                labels = {**block.labels[i], **block.extra}
                found.add_sample(block.name, labels, block.values[i])
        yield found


class Collector:
    def __init__(self, result: ReadingSet) -> None:
        self.result = result

    def collect(self) -> Iterator[Metric]:
        return families(self.result)


def reference(result: ReadingSet) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(result))
    return generate_latest(registry).decode()


def gauge(value: float, **labels: str) -> Reading:
    return Reading("streamer_x", "gauge", "X.", labels, value)


NUMBERS: list[float] = [
    *(0, 1, -1, 0.0, -0.0, 0.1, 1 / 3, 1e-5, 1e-300, 5e-324, 999_999, 999_999.5),
    *(1_000_000, 1_000_000.5, 1_234_567, 10_000_000, 1_200_000_000, 9_999_999_999),
    *(10_000_000_000, 1_700_000_000.123, 123_456_789_012_345, 2**53, 2**62, 1e22, 1e16, 1e300),
    *(-1_000_000, -1_234_567.5, math.inf, -math.inf, math.nan, True),
]


def is_written_as_by_the_reference(value: float) -> None:
    result = ReadingSet.of(0, [gauge(value)])
    assert render(result.blocks) == reference(result)


def test_numbers() -> None:
    hold_for_all(NUMBERS, is_written_as_by_the_reference, repr, at_least=32)


def test_random_numbers() -> None:
    dice = random.Random(5)
    values = [dice.uniform(-10, 10) * 10 ** dice.randint(-20, 20) for _ in range(5000)]
    values += [dice.randint(-(10**9), 10 ** dice.randint(1, 18)) for _ in range(5000)]
    result = ReadingSet.of(0, [gauge(value, n=str(i)) for i, value in enumerate(values)])
    assert render(result.blocks) == reference(result)


def test_escapes_and_order_of_labels() -> None:
    result = ReadingSet.of(
        0,
        [
            Reading(
                "streamer_a_total", "counter", "A \\ and\na line.", {"z": 'q"\\', "b": "\n"}, 1
            ),
            Reading("streamer_b", "gauge", "B.", {}, 2),
            Reading("streamer_b", "gauge", "B.", {"x": "1", "y": "2"}, 3),
            Reading("streamer_b", "gauge", "B.", {"y": "1", "x": "2"}, 4),
            Reading("streamer_b", "gauge", "B.", {"x": "1", "w": "2"}, 5),
        ],
    )
    assert render(result.blocks) == reference(result)
    assert 'streamer_b{w="2",x="1"} 5.0\n' in render(result.blocks)


ODD = (
    *(
        "New York",
        'a "b"',
        "back\\slash",
        "\\n",
        "two\nlines",
        "tab\t",
        "\r",
        "\x00\x01\x7f",
        '{a="b"}, ',
    ),
    *("Zürich 😀", "\u2028", "\x85", "<b>&amp;</b>", " ", "x" * 128),
)


async def test_any_value_of_a_dimension_is_read_back_as_it_was() -> None:
    settings = parse({"dimensions": [{"name": "variant", "values": list(ODD)}]})
    replay = Replay(settings)
    events = [{"ts": 1_700_000_000_000, "item_id": "i", "variant": value} for value in ODD]
    lines = [json.dumps(event).encode() for event in events]
    replay.feed([("impressions", 1_700_000_000_000, line) for line in lines])
    replay.finish()
    result = replay.readout()
    document: Any = json.loads(json.dumps(result.as_json()))
    for text in (render(result.blocks), render(result.blocks, is_openmetrics=True)):
        samples = [s for f in text_string_to_metric_families(text) for s in f.samples]
        shown = [s.labels["variant"] for s in samples if s.name == "streamer_impressions_total"]
        assert sorted(shown) == sorted([*ODD, "all"])
    assert render(result.blocks) == reference(result)
    listed = [r["labels"] for r in document["readings"]]
    assert {labels["variant"] for labels in listed if "variant" in labels} == {*ODD, "all"}
    await promtool_finds_nothing(render(result.blocks))


def test_nothing_is_an_empty_page() -> None:
    assert render([]) == ""


def test_a_real_readout() -> None:
    replay = Replay(Settings())
    replay.feed(
        [(kind, 1_700_000_600_000, line) for kind, line in generate(SyntheticTraffic(), 20_000)]
    )
    replay.finish()
    result = replay.readout()
    text = render(result.blocks)
    assert text == reference(result)
    parsed = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    expected = {(r.name, frozenset(r.labels.items())): float(r.value) for r in result.readings}
    assert parsed == expected
    assert len(parsed) == len(result.readings) > 500
