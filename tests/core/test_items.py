"""Counts of items in the core: the bound of their rows, and what a sample still says."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from streamer._core import ITEM_CATEGORY_BITS, ITEM_LABEL_BITS
from streamer.encoding.packed import ITEM_BITS, SAMPLE_PLACE, parts_of_item_code
from streamer.encoding.segments import rollup_of
from streamer.ingest.hash_key import FIXED_KEY
from streamer.settings import limits
from streamer.settings.limits import Limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.oracle.siphash import siphash13
from tests.support.agreement import read_engines
from tests.support.engines import Engines, LogChunk, LogRecord, chunks_of
from tests.support.lanes import long

T0, MINUTE_MS = 1_700_000_000_000, 60_000
ITEMS, LISTS = 3000, 1500


def settings(limit: int, **more: Any) -> Any:
    return parse(
        {
            "dimensions": [{"name": "variant"}],
            "windows": {"lengths": ["1h"]},
            "metrics": {"families": ["coverage", "diversity", "engagement"], "k": [2, 5]},
            "limits": {"items": limit},
            **more,
        }
    )


def log(seed: int) -> list[LogRecord]:
    """Lists of five of many items, over half an hour: two partitions see different shares."""
    dice, found = Random(seed), []
    for number in range(LISTS):
        items = dice.sample(range(ITEMS), 5)
        at_ms = T0 + number * MINUTE_MS // 50
        shown = [{"item_id": f"i{i}", "item_category": f"c{i % 9}"} for i in items]
        event = {"type": "impression", "ts": at_ms, "user_id": f"u{number}", "items": shown}
        value = json.dumps(event | {"variant": f"v{number % 2}"}).encode()
        partition = int(number % 5 == 0)
        offset = number // 5 if partition else number - number // 5 - 1
        found.append(LogRecord("impressions", partition, offset, at_ms, value))
    return found


def read(limit: int, size: int = 200, **more: Any) -> dict[str, float]:
    """Metric → its value over the hour; with k = 5 or all."""
    engines = Engines(settings(limit, **more), 2)
    for chunk in chunks_of(log(1), size, 3):
        engines.feed(chunk)
    engines.finish()
    wanted: tuple[dict[str, str], ...] = (
        {"metrics": "items", "cause": "item_sample"},
        {"k": "all"},
        {"k": "5"},
        {"maturity": "provisional"},
        {},
    )
    return {
        name.removeprefix("streamer_"): value
        for name, labels in read_engines(engines)
        for value in [read_engines(engines)[name, labels]]
        if {k: v for k, v in labels if k != "window" and (k, v) != ("variant", "all")} in wanted
    }


def test_within_the_bound_everything_is_exact() -> None:
    found = read(100_000)
    counts = Counter(
        item["item_id"]
        for record in log(1)
        if record.value is not None
        for item in json.loads(record.value)["items"]
    )
    assert found["window_items"] == len(counts)
    assert (found["item_sample_ratio"], found["identity_exact"]) == (1.0, 1)


def test_rows_of_a_window_are_twelve_of_each_item_at_most() -> None:
    """A hundred items are shown every minute of two hours: 100,000 fit in the default bound."""
    assert limits.MAX_ITEM_ROWS >= 12 * 100_000
    engines = Engines(settings(12 * 100), 1)
    shown = [{"item_id": f"i{i}"} for i in range(100)]
    for minute in range(120):
        at_ms = T0 + minute * MINUTE_MS
        event = {"type": "impression", "ts": at_ms, "user_id": "u", "items": shown}
        value = json.dumps(event).encode()
        engines.feed(
            LogChunk("impressions", 0, [LogRecord("impressions", 0, minute, at_ms, value)])
        )
    found = read_engines(engines)
    hour = {name: value for (name, labels), value in found.items() if ("window", "1h") in labels}
    assert hour["streamer_item_sample_ratio"] == 1.0
    assert hour["streamer_window_items"] == 100


@pytest.mark.parametrize("values", [1, 2])
def test_a_day_of_two_thousand_items_is_held_whole_by_default(values: int) -> None:
    """However often they are shown: in each window under each value thirteen panes hold them."""
    rows, dimensions = 13 * values, ["variant"] if values > 1 else []
    assert 2_000 * rows <= Limits().items
    document = {
        "limits": {"items": 20 * rows},
        "items": {"dimensions": dimensions},
        "metrics": {"detailed": [[], *([dimensions] if dimensions else [])]},
    }
    engines = Engines(parse(document), 1)
    shown = [{"item_id": f"i{i}"} for i in range(20)]
    for number in range(600):
        at_ms = T0 + number * 150_000  # so that the last hour has some in each of its panes
        event = {"type": "impression", "ts": at_ms, "user_id": "u", "items": shown}
        value = json.dumps(event | {"variant": f"v{number % values}"}).encode()
        record = LogRecord("impressions", 0, number, at_ms, value)
        engines.feed(LogChunk("impressions", 0, [record]))
    found = read_engines(engines)
    names = {name for name, _ in found}
    assert "streamer_inexact" not in names
    assert found["streamer_identity_exact", frozenset()] == 1
    for window in ("1h", "24h"):
        labels = frozenset({"window": window}.items())
        assert found["streamer_item_sample_ratio", labels] == 1.0
        in_all = labels | {("variant", "all"), ("surface", "all")}
        assert found["streamer_window_items", in_all] == 20


OF_FREQUENT = (
    *("novelty_ratio", "exposure_gini", "inter_list_diversity_ratio", "serendipity_ratio"),
)
"""Metrics that the most frequent items decide."""


def test_a_sample_serves_what_frequent_items_do_not_decide_and_nothing_else() -> None:
    exact, sampled = read(100_000), read(2_000)
    assert sampled["item_sample_ratio"] in (0.25, 0.125, 0.0625)
    assert (sampled["identity_exact"], sampled["inexact"]) == (1, 1)
    n = exact["window_items"] * sampled["item_sample_ratio"]
    for name, within in (
        ("window_items", 4 / n**0.5),
        ("diversity_loss", 0.0),
        ("intra_list_diversity_ratio", 0.0),
    ):
        assert sampled[name] == pytest.approx(exact[name], rel=within + 1e-12), name
    assert set(OF_FREQUENT) <= exact.keys()
    assert not set(OF_FREQUENT) & sampled.keys()


@long
def test_coverage_is_at_most_1() -> None:
    for limit in (100_000, 500):
        found = read(limit, items={"catalog_size": 10})
        assert found["window_items"] > 10
        assert found["catalog_coverage_ratio"] == 1.0


def pairs_log(seed: int, items: int = 400, people: int = 3000) -> list[LogRecord]:
    """Slates of eight of many items in twenty groups, mostly of one group; people click two."""
    dice, found, offsets = Random(seed), [], Counter[str]()
    for number in range(people):
        group = dice.randrange(20)
        some = dice.sample(range(group, items, 20), 6) + dice.sample(range(items), 2)
        at_ms = T0 + number * 1000
        shown = [{"item_id": f"i{seed}-{i}"} for i in dict.fromkeys(some)]
        base = {"ts": at_ms, "user_id": f"u{number}"}
        events = [("impression", base | {"items": shown})]
        events += [("click", base | {"item_id": f"i{seed}-{i}"}) for i in some[:2]]
        for kind, event in events:
            value = json.dumps(event | {"type": kind}).encode()
            found.append(LogRecord(f"{kind}s", 0, offsets[kind], at_ms, value))
            offsets[kind] += 1
    return found


def read_pairs(log: list[LogRecord], limit: int) -> list[float]:
    """Diversity by co-occurrence at 5, and its standard error."""
    of = settings(limit, items={"pairs": True})
    engines = Engines(of, 1)
    for chunk in chunks_of(log, 500, 3):
        engines.feed(chunk)
    engines.finish()
    return [
        value
        for end in ("ratio", "error")
        for (name, labels), value in read_engines(engines).items()
        if name == f"streamer_co_occurrence_diversity_{end}" and ("k", "5") in labels
    ]


def test_a_sample_of_pairs_says_its_error() -> None:
    """Of six logs five are within two standard errors, at least."""
    within = 0
    for seed in range(6):
        log = pairs_log(seed)
        exact, sampled = read_pairs(log, 2_000_000), read_pairs(log, 8_000)
        assert exact[1] == 0.0
        assert 0 < sampled[1] < 0.1
        within += abs(sampled[0] - exact[0]) < 2 * sampled[1]
    assert within >= 5


def test_novelty_is_absent_where_the_longest_window_left_items_out() -> None:
    """Of the last minute all items are held, of the hour some."""
    found = {}
    for limit in (100_000, 2_000):
        both = {"windows": {"lengths": ["1m", "1h"]}, "items": {"windows": ["1m", "1h"]}}
        engines = Engines(settings(limit, **both), 2)
        for chunk in chunks_of(log(1), 200, 3):
            engines.feed(chunk)
        read = read_engines(engines)
        minute = frozenset({"window": "1m"}.items())
        assert read["streamer_item_sample_ratio", minute] == 1.0
        in_all = minute | {("variant", "all")}
        found[limit] = {n for n in OF_FREQUENT if (f"streamer_{n}", in_all) in read}
    assert found[100_000] == {"novelty_ratio", "exposure_gini"}
    assert found[2_000] == {"exposure_gini"}


@long
def test_partitions_may_have_more_labels_than_one_has_numbers_for() -> None:
    engines = Engines(
        parse(
            {
                "dimensions": [{"name": "place", "max_values": 2000}],
                "windows": {"lengths": ["1h"]},
                "items": {"dimensions": ["place"]},
                "metrics": {"detailed": [[], ["place"]]},
            }
        ),
        3,
    )
    log = []
    for partition, number in ((p, n) for n in range(500) for p in range(3)):
        event = {"type": "impression", "ts": T0 + number, "user_id": "u", "item_id": "same"}
        value = json.dumps(event | {"place": f"p{partition}-{number}"}).encode()
        log.append(LogRecord("impressions", partition, number, T0 + number, value))
    for chunk in chunks_of(log, 200, 3):
        engines.feed(chunk)
    in_all = frozenset({"window": "1h", "place": "all"}.items())
    assert read_engines(engines)["streamer_window_items", in_all] == 1.0


def of_two(max_values: int, *rollups: list[str], limit: int = limits.MAX_ITEM_ROWS) -> Settings:
    dimensions = [{"name": name, "max_values": max_values} for name in ("place", "shelf")]
    document = {
        "dimensions": dimensions,
        "items": {"dimensions": ["place", "shelf"], "windows": ["1h"]},
        "limits": {"items": limit},
        "metrics": {"rollups": [[], *rollups], "detailed": [[], *rollups]},
    }
    return parse(document)


def lines_of_two(
    places: int, shelves: int, items: int = 4000
) -> Iterator[tuple[LogRecord, str, str, str]]:
    """Impressions with place, shelf and item of each."""
    dice = Random(1)
    for number in range(4000):
        place, shelf = f"place-{dice.randrange(places)}", f"shelf-{dice.randrange(shelves)}"
        item, at_ms = f"i{number % items}", T0 + number
        event = {"ts": at_ms, "user_id": "u", "item_id": item, "place": place, "shelf": shelf}
        value = json.dumps(event).encode()
        yield LogRecord("impressions", 0, number, at_ms, value), place, shelf, item


def items_shown(engines: Engines) -> dict[tuple[str, str], float]:
    """(place, shelf) → the items of the hour."""
    return {
        (labels["place"], labels["shelf"]): value
        for (name, of), value in read_engines(engines).items()
        for labels in [dict(of)]
        if name == "streamer_window_items" and labels["window"] == "1h"
    }


def distinct(lines: list[tuple[LogRecord, str, str, str]]) -> dict[tuple[str, str], float]:
    """The same of each of these dimensions alone, and of all."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for _, place, shelf, item in lines:
        for segment in (("all", "all"), (place, "all"), ("all", shelf)):
            found[segment].add(item)
    return {segment: float(len(items)) for segment, items in found.items()}


def test_rows_are_those_of_each_rollup_and_not_of_their_product() -> None:
    """Of twenty items under 2 and 60 values a pane holds at most 20 · (2 + 60) rows."""
    lines = list(lines_of_two(2, 60, items=20))
    rows = len({(item, value) for _, *values, item in lines for value in values})
    engines = Engines(of_two(100, ["place"], ["shelf"], limit=rows), 1)
    for chunk in chunks_of([record for record, *_ in lines], 500):
        engines.feed(chunk)
    assert engines.partitions[0].core.sizes()["items_rows"] == rows <= 20 * (2 + 60)
    expected = distinct(lines)
    assert items_shown(engines) == expected
    assert len(expected) == 1 + 2 + 60
    assert not [labels for name, labels in read_engines(engines) if name == "streamer_inexact"]


@long
def test_a_full_rollup_costs_no_other_its_values() -> None:
    """Of 30 and 40 values there are more combinations than are told apart: they alone are other."""
    lines, both = list(lines_of_two(30, 40)), ["place", "shelf"]
    assert len({line[1:3] for line in lines}) > limits.MAX_ITEM_LABELS
    engines = Engines(of_two(100, ["place"], ["shelf"], both), 1)
    for chunk in chunks_of([record for record, *_ in lines], 500):
        engines.feed(chunk)
    shown, expected = items_shown(engines), distinct(lines)
    assert {segment: n for segment, n in shown.items() if "all" in segment} == expected
    of_both = {segment: n for segment, n in shown.items() if "all" not in segment}
    assert len(of_both) == limits.MAX_ITEM_LABELS + 1
    assert of_both["other", "other"] > 0
    assert sum(of_both.values()) == expected["all", "all"] == 4000
    labels = engines.partitions[0].series[-1].labels
    assert len(labels) == 30 + 40 + limits.MAX_ITEM_LABELS + 1
    said = [labels for name, labels in read_engines(engines) if name == "streamer_inexact"]
    assert said == [frozenset({"metrics": "items", "cause": "item_labels"}.items())]


@long
def test_many_rollups_share_the_numbers_of_labels() -> None:
    names = [f"d{number}" for number in range(8)]
    document = {
        "dimensions": [{"name": name, "max_values": 2000} for name in names],
        "items": {"dimensions": names},
        "metrics": {"detailed": [[name] for name in names]},
        "windows": {"lengths": ["1h"]},
    }
    engines, lines = Engines(parse(document), 1), []
    for number in range(600):
        event = {"ts": T0, "user_id": "u", "item_id": f"i{number}"}
        event |= {name: f"{name}-{number}" for name in names}
        lines.append(LogRecord("impressions", 0, number, T0, json.dumps(event).encode()))
    for chunk in chunks_of(lines, 200):
        engines.feed(chunk)
    labels = engines.partitions[0].series[-1].labels
    assert len(labels) == 1 << ITEM_LABEL_BITS
    of_each = Counter(map(rollup_of, labels))
    assert of_each == {(name,): (1 << ITEM_LABEL_BITS) // 8 for name in names}
    shown = {
        labels: value
        for (name, labels), value in read_engines(engines).items()
        if name == "streamer_window_items" and ("window", "1h") in labels
    }
    other = 600 - (len(labels) // 8 - 1)
    for name in names:
        of_other = [n for labels, n in shown.items() if (name, "other") in labels]
        assert of_other == [other]


@pytest.mark.parametrize("values", [35, 60])
@long
def test_more_combinations_of_values_than_are_told_apart_are_said_of_items(values: int) -> None:
    """Also where all were `other` in one of them before there were too many."""
    engines = Engines(of_two(40, ["place", "shelf"]), 1)
    lines = [record for record, *_ in lines_of_two(values, values)]
    for chunk in chunks_of(lines[:500], 100):
        engines.feed(chunk)
    assert engines.partitions[0].core.counters()["full_item_counts"] == 0
    for chunk in chunks_of(lines[500:], 100):
        engines.feed(chunk)
    labels = engines.partitions[0].series[-1].labels
    assert len(labels) == limits.MAX_ITEM_LABELS + (values < 40)
    said = [labels for name, labels in read_engines(engines) if name == "streamer_inexact"]
    assert said == [frozenset({"metrics": "items", "cause": "item_labels"}.items())]


def test_coverage_by_itself_has_segments() -> None:
    metrics = {"families": ["coverage"], "detailed": [[], ["variant"]]}
    found = read(100_000, metrics=metrics, items={"dimensions": ["variant"]})
    assert found["window_items"] > 1000


def test_a_bound_below_the_rows_of_no_item_leaves_them() -> None:
    """Half an hour has 30 panes, each with lists of two variants: they are more than the bound."""
    metrics = {"families": ["coverage", "diversity"], "k": [2, 5], "detailed": [[], ["variant"]]}
    found = read(20, metrics=metrics, items={"dimensions": ["variant"]})
    assert found["window_lists"] == LISTS
    assert found["item_sample_ratio"] < 1 / 64


def test_those_items_stay_whose_hashes_are_smallest() -> None:
    engines = Engines(settings(2_000), 2)
    for chunk in chunks_of(log(1), 100, 3):
        engines.feed(chunk)
    engines.finish()
    sampled = []
    for number, partition in enumerate(engines.partitions):
        series = partition.series[-1]
        panes = partition.core.live_panes(series.number)
        _, code, value = partition.core.dump_panes(panes, series.number)
        item, _, place = parts_of_item_code(code)
        bits = max([0, *value[place == SAMPLE_PLACE].tolist()])
        shown = [json.loads(r.value or b"")["items"] for r in log(1) if r.partition == number]
        hashes = {
            siphash13(FIXED_KEY, text.encode())
            >> 64 - ITEM_BITS + ITEM_CATEGORY_BITS * (key == "item_category")
            for some in shown
            for one in some
            for key, text in one.items()
        }
        least = {hash for hash in hashes if hash >> (ITEM_BITS - bits) == 0}
        assert set(item.tolist()) - {0} == least
        sampled.append(bits)
    assert max(sampled) > 0


def test_counting_goes_on_as_it_was_after_a_restart() -> None:
    whole = Engines(settings(2_000), 2)
    halves = Engines(settings(2_000), 2)
    chunks = list(chunks_of(log(1), 100, 3))
    for number, chunk in enumerate(chunks):
        whole.feed(chunk)
        halves.feed(chunk)
        if number == len(chunks) // 2:
            for at, partition in enumerate(halves.partitions):
                series = partition.series[-1]
                fresh = Engines(settings(2_000), 2).partitions[at].core
                for pane in partition.core.live_panes(series.number):
                    _, codes, values = partition.core.dump_panes([pane], series.number)
                    fresh.load_pane(pane, codes, values, series.number)
                    _, again, counts = fresh.dump_panes([pane], series.number)
                    assert (again.tolist(), counts.tolist()) == (codes.tolist(), values.tolist())
    assert read_engines(whole) == read_engines(halves)


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ({"dimensions": ["region"]}, "items.dimensions: 'region' is none of the dimensions"),
        ({"dimensions": ["variant", "variant"]}, "items.dimensions = .*: each once"),
        ({"category": "kind"}, "items.category: 'kind' is none of the dimensions"),
        ({"catalog_size": -1}, "items.catalog_size = -1: 0 to"),
        ({"windows": ["2h"]}, "items.windows = .*: some of windows.lengths"),
        ({"windows": []}, "items.windows = .*: some of windows.lengths"),
    ],
)
def test_settings_of_items_that_cannot_be(items: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=said):
        settings(1000, items=items)
