"""Ratios in the oracle: values by hand; and that random logs have what is hard."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamer.settings.own_metrics import RatioPart
from tests.oracle.acceptance import accept
from tests.oracle.joining import Joins, effective_dims, join
from tests.oracle.own_ratios import amounts, is_wanted, passes, shown_as, topic_of, values_of
from tests.oracle.shape import Event, Shown
from tests.support.agreement import SETTINGS, log_records


def event(topic: str, **fields: object) -> Event:
    found = Event(0, "u", None, None, (), topic=topic)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def added(kind: str, field: str | None, of: Event) -> list[int]:
    part = RatioPart(kind=kind, field=field)
    return list(amounts(part, of, Joins([]), SETTINGS["defaults"], False))


def test_what_events_add() -> None:
    items = [Shown("a", 1, 0.5, {}, {"ms": 2.0}), Shown("b", 2), Shown("c", 3, -1.0)]
    slate = event("impressions", shown=items, numbers={"ms": 7.0})
    assert added("impressions", "ms", slate) == [2_000_000, 7_000_000, 7_000_000]
    assert added("impressions", "score", slate) == [500_000, -1_000_000]
    assert added("impressions", None, slate) == [1] * 3
    assert added("clicks", "ms", slate) == []
    click = event("clicks", dwell_ms=5, numbers={"ms": 0.0000005})
    assert added("clicks", "dwell_ms", click) == [5_000_000]
    assert added("clicks", "ms", click) == [0]
    assert added("clicks", "other", click) == []
    line = event("conversions", line=1, numbers={"value": 3.0})
    assert added("conversions", None, line) == []
    assert added("conversions", "value", line) == added("lines", "value", line) == [3_000_000]
    assert added("lines", None, line) == [1]


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ("spring", ("autumn", "spring"), True),
        ("Spring", "spring", False),
        ("5", 5, True),
        ("5.0", (4, 5), True),
        ("5.0", "5", False),
        (" 5", 5, False),
        ("true", True, True),
        (5.0, {">": 4, "<": 6}, True),
        ("x", {">": 4}, False),
        (None, "x", False),
        ("1e999", {">": 4}, False),
    ],
)
def test_what_values_have_to_be(value: Any, wanted: Any, expected: bool) -> None:
    assert passes(value, wanted) == expected


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        (999, 0),
        (-999, 0),
        (1000, 1000),
        (-1000, -1000),
        (2 * 10**15, 2 * 10**15),
        (-(10**16), -(10**16)),
    ],
)
def test_what_quantiles_tell_apart(micros: int, expected: int) -> None:
    assert shown_as(micros) == expected


def test_random_logs_have_values_that_count_by_their_impressions_alone() -> None:
    settings = SETTINGS["few values"]
    by_side: Counter[tuple[str, bool]] = Counter()
    by_joined: Counter[tuple[str, bool]] = Counter()
    inherited = negative = 0
    for seed in range(4):
        records = log_records(seed, "few values", 800, 1 + seed % 3)
        verdict = accept(records, settings)
        joins = join(verdict, settings)
        for value in values_of(verdict, joins, settings):
            by_side[value.ratio, value.is_above] += 1
            negative += value.amount < 0
        for ratio in settings.ratios:
            part = ratio.numerator
            asks = [path for path in part.where if path.startswith("impression.")]
            for each in verdict.events if asks else ():
                if each.topic == topic_of(part):
                    by_joined[ratio.name, is_wanted(part, each, None, joins, settings)] += 1
        for each in verdict.events:
            inherited += each.dims != effective_dims(each, joins)
    sides = {(ratio.name, True) for ratio in settings.ratios}
    no_events = (None, "people")
    for ratio in settings.ratios:
        if (ratio.denominator and ratio.denominator.kind) not in no_events:
            sides.add((ratio.name, False))
    assert by_side.keys() == sides
    names = ("roas", "clicks_per_second", "orders", "likes")
    assert all(by_joined[name, is_met] > 5 for name in names for is_met in (True, False))
    assert inherited > 50
    assert negative > 50
