"""Ratios beside NumPy, on single events and what they joined, and their sketch."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.own_ratios import BUCKETS, MIDDLE, UPPER, quantile
from streamer.settings.load import parse
from streamer.settings.own_metrics import definition
from streamer.testing import START_MS, value_of
from tests.support.engines import Engines
from tests.support.lanes import shortened

LATENCY: dict[str, Any] = {"kind": "impressions", "field": "latency_ms"}
IMPRESSIONS = {"kind": "impressions"}
PEOPLE = {"kind": "people"}
HAS_LATENCY = {"kind": "impressions", "where": {"latency_ms": {">=": -1e12}}}
SHARES = {"0.5": (1, 2), "0.9": (9, 10), "0.99": (99, 100)}
SLACK = 1 + 1e-12
Event = dict[str, Any]


def ratio(numerator: Event, denominator: Event | None = None, **more: Any) -> Event:
    """A ratio called ``x``."""
    below = {} if denominator is None else {"denominator": denominator}
    return {"name": "x", "numerator": numerator, **below, **more}


def read(events: Sequence[Event], name: str, *ratios: Event, **labels: str) -> float | None:
    """A reading of the ratio called ``x``, where no other is named."""
    return value_of(events, name, {"ratios": list(ratios)}, **{"ratio": "x", **labels})


def total(events: Sequence[Event], numerator: Event, **labels: str) -> float | None:
    """The sum of a part."""
    return read(events, "window_ratio_numerator", ratio(numerator), **labels)


def shown(**fields: Any) -> Event:
    return {"type": "impression", "item_id": "a", **fields}


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", shortened(list(range(3))))
def test_values_are_those_of_numpy(seed: int, sign: int) -> None:
    dice = np.random.default_rng(seed)
    values = sign * dice.lognormal(3, 2, 400) + dice.normal(0, 1, 400)
    events = [shown(latency_ms=x, user_id=f"u{i % 7}") for i, x in enumerate(values.tolist())]
    metric = ratio(LATENCY, HAS_LATENCY, quantiles=True)
    assert total(events, LATENCY) == pytest.approx(values.sum(), rel=1e-6)
    assert read(events, "ratio", metric) == pytest.approx(values.mean(), rel=1e-6)
    by_person = read(events, "ratio", ratio(LATENCY, PEOPLE))
    assert by_person == pytest.approx(values.sum() / 7, rel=1e-6)
    for label, (numerator, denominator) in SHARES.items():
        exact = np.quantile(values, numerator / denominator, method="inverted_cdf")
        found = read(events, "ratio_quantile", metric, quantile=label)
        assert found == pytest.approx(exact, rel=0.01)


def test_sums_of_the_largest_values_do_not_overflow() -> None:
    events = [shown(latency_ms=1e12, user_id=f"u{i}") for i in range(40)]
    assert total(events, LATENCY) == 4e13
    events += [shown(latency_ms=-1e12), shown(latency_ms=-0.5)]
    assert total(events, LATENCY) == 3.9e13 - 0.5


def test_an_item_says_it_first_then_the_event() -> None:
    items = [{"item_id": "a", "latency_ms": 5}, {"item_id": "b"}, {"item_id": "c"}]
    slate = {"type": "impression", "items": items}
    assert total([slate], LATENCY) == 5
    assert total([slate | {"latency_ms": 100}], LATENCY) == 205
    assert total([slate | {"latency_ms": 100}], HAS_LATENCY) == 3
    nothing = [shown(), shown(latency_ms=None)]
    assert read(nothing, "ratio", ratio(LATENCY, HAS_LATENCY)) is None
    assert read(nothing, "ratio", ratio(LATENCY, IMPRESSIONS)) == 0


@pytest.mark.parametrize(
    ("kind", "field", "expected"),
    [
        ("impressions", None, 2),
        ("impressions", "score", 0.25),
        ("clicks", None, 2),
        ("lines", None, 2),
        ("clicks", "dwell_ms", 9000),
        ("clicks", "depth", 3),
        ("conversions", "value", 12.5),
        ("sessions", None, 1),
        ("sessions", "dwell_ms", 400),
    ],
)
def test_fields_of_every_kind_of_events(kind: str, field: str | None, expected: float) -> None:
    click = {"type": "click", "item_id": "a"}
    visit = {"type": "session", "session_id": "s", "action": "view"}
    events = [
        *(shown(score=0.25), shown()),
        click | {"dwell_ms": 4000},
        click | {"start_ts": START_MS, "end_ts": START_MS + 5000, "depth": 3},
        click | {"feedback": "share", "depth": 4},
        {"type": "conversion", "item_id": "a", "value": 12.5},
        {"type": "conversion", "item_id": "a"},
        *(visit, visit | {"action": "dwell", "item_id": "a", "dwell_ms": 400}),
        visit | {"action": "end"},
    ]
    part = {"kind": kind} | ({} if field is None else {"field": field})
    assert total(events, part) == expected


# What is asked -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"campaign": "spring"}, 1),
        ({"campaign": ["spring", "autumn"]}, 2),
        ({"campaign": 5}, 3),
        ({"campaign": True}, 2),
        ({"campaign": {">": 4, "<=": 5}}, 3),
        ({"campaign": {">": 5}}, None),
        ({"position": {"<": 3}, "campaign": "autumn"}, 1),
        ({"item_id": "b"}, 4),
        ({"surface": "home"}, 8),
        ({"surface": "search"}, None),
    ],
)
def test_what_items_are_asked(where: Event, expected: float | None) -> None:
    said = ["spring", "autumn", 5, "5", "5.0", True, "true", {"a": 1}]
    items = [
        {"item_id": "ab"[i % 2], "campaign": value, "position": 1 + i}
        for i, value in enumerate(said)
    ]
    slate = {"type": "impression", "items": items, "surface": "home", "user_id": "u"}
    assert total([slate], {"kind": "impressions", "where": where}) == expected


def test_an_element_answers_before_its_event() -> None:
    items = [{"item_id": "a", "campaign": "autumn"}, {"item_id": "b", "campaign": None}, "c"]
    slate = {"type": "impression", "items": items, "campaign": "spring"}
    for value, expected in (("spring", 2), ("autumn", 1)):
        asked = {"kind": "impressions", "where": {"campaign": value}}
        assert total([slate], asked) == expected


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_feedback_is_asked_of_the_impression_that_it_joined(order: Sequence[int]) -> None:
    """The later impression takes the click over, and with it the conversion."""
    spring = shown(user_id="u", campaign="spring", ts=START_MS + 1000)
    autumn = shown(user_id="u", campaign="autumn", score=0.5, ts=START_MS + 2000)
    click = {"type": "click", "user_id": "u", "item_id": "a", "ts": START_MS + 3000}
    bought = {"type": "conversion", "user_id": "u", "item_id": "a", "ts": START_MS + 4000}
    events = [(spring, autumn, click)[i] for i in order] + [bought | {"value": 8.0}]
    for where, expected in (
        ({"impression.campaign": "autumn"}, (1, 8)),
        ({"impression.campaign": "spring"}, (None, None)),
        ({"impression.score": {">=": 0.5}}, (1, 8)),
        ({"impression.campaign": {">": 1}}, (None, None)),
    ):
        clicks = {"kind": "clicks", "where": where}
        value = {"kind": "conversions", "field": "value", "where": where}
        assert (total(events, clicks), total(events, value)) == expected
    assert total([click], {"kind": "clicks", "where": {"impression.campaign": "spring"}}) is None


def test_a_ratio_of_two_sums() -> None:
    cost = {"kind": "clicks", "field": "cost"}
    value = {"kind": "conversions", "field": "value"}
    click = {"type": "click", "user_id": "u", "item_id": "a"}
    events = [
        *(shown(user_id="u"), click | {"cost": 0.5}, click | {"cost": 1.5}),
        {"type": "conversion", "user_id": "u", "item_id": "a", "value": 7.0},
    ]
    assert read(events, "ratio", ratio(value, cost)) == 3.5
    assert read(events, "ratio", ratio({"kind": "clicks"}, cost)) == 1
    assert read(events, "window_ratio_denominator", ratio(value, cost)) == 2
    assert read(events, "ratio", ratio({"kind": "conversions"}, {"kind": "clicks"})) == 0.5
    assert read(events, "ratio", ratio(value)) is None


# Segments -----------------------------------------------------------------------------------------

AT_HOME = {"kind": "clicks", "field": "depth", "where": {"surface": ["home"]}}


def test_feedback_counts_where_its_impression_was_and_moves_with_it() -> None:
    click = {"type": "click", "item_id": "a", "depth": 3, "ts": START_MS + 9000}
    home = shown(surface="home", ts=START_MS + 1000)
    search = shown(surface="search", ts=START_MS + 2000)
    assert total([click], AT_HOME) is None
    assert total([home, click], AT_HOME) == 3
    assert total([click, home], AT_HOME) == 3
    for events in ([home, search, click], [home, click, search], [click, search, home]):
        assert total(events, AT_HOME) is None
        everywhere = {**AT_HOME, "where": {}}
        by_surface = [total(events, everywhere, surface=name) for name in ("home", "search")]
        assert by_surface == [None, 3]


def test_values_that_are_named_are_always_kept() -> None:
    dimensions = [{"name": "surface", "max_values": 0}]
    settings = parse({"dimensions": dimensions, "ratios": [ratio(AT_HOME)]})
    assert settings.kept_dimensions[0].values == ("home",)
    assert settings.dimensions[0].values == ()


# Sketch -------------------------------------------------------------------------------------------


def bucket_of(micros: int) -> int:
    """By the rule: the first bound that is not below the magnitude, mirrored below 0."""
    magnitude = next((i for i, upper in enumerate(UPPER) if upper >= abs(micros)), len(UPPER) - 1)
    return len(UPPER) - 1 + (magnitude if micros >= 0 else -magnitude)


@given(st.lists(st.integers(-(10**18), 10**18), min_size=1, max_size=30))
def test_quantiles_are_within_1_percent(values: list[int]) -> None:
    counts = np.bincount([bucket_of(v) for v in values], minlength=BUCKETS)[None, :]
    for share in SHARES.values():
        exact = np.quantile(values, share[0] / share[1], method="inverted_cdf") / 1e6
        found = quantile(counts, *share)[0]
        assert abs(found - exact) <= max(0.01 * abs(exact) * SLACK, 0.000999)


def test_bounds_of_buckets_are_within_1_percent_of_their_middle() -> None:
    middle = MIDDLE[len(UPPER) :]
    for bound in ((UPPER[:-1] + 1) / 1e6, UPPER[1:] / 1e6):
        assert (abs(middle - bound) <= 0.01 * bound * SLACK).all()
    assert (UPPER[0], UPPER[-1]) == (999, 10**18)
    assert (-MIDDLE[::-1] == MIDDLE).all()


@pytest.mark.parametrize(
    ("value", "shown_as"),
    [
        *((0, 0), (0.000999, 0), (-0.0009, 0)),
        *((value, value) for value in (1.02e9, 3.5e9, 864e9, -2e11, 1e12, -1e12)),
    ],
)
def test_values_at_the_ends_of_the_range_of_quantiles(value: float, shown_as: float) -> None:
    metric = ratio(LATENCY, quantiles=True)
    found = read([shown(latency_ms=value)], "ratio_quantile", metric, quantile="0.5")
    assert found == pytest.approx(shown_as, rel=0.01)


# Settings -----------------------------------------------------------------------------------------


def test_the_family_is_on_where_there_is_one() -> None:
    assert "ratios" not in [family.name for family in Catalogue(parse({})).families]
    ratios = [ratio(LATENCY)]
    on = Catalogue(parse({"ratios": ratios}))
    assert "ratios" in [family.name for family in on.families]
    assert any("latency_ms" in stat.name for stat in on.layout.stats)
    twice = parse({"ratios": ratios, "metrics": {"families": ["ratios"]}})
    assert [family.name for family in Catalogue(twice).families] == ["ratios"]


def test_without_other_families_plain_sums_are_counted_too() -> None:
    settings = {"ratios": [ratio(LATENCY, IMPRESSIONS)], "metrics": {"families": ["ratios"]}}
    assert value_of([shown(latency_ms=4)], "ratio", settings, ratio="x") == 4


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("window_ratio_numerator@x", "no such metric"),
        ("ratio", "@ratio is one of ratios: x, people, sum"),
        ("ratio@y", "@ratio is one of ratios: x, people, sum"),
        ("ratio@people", "a mean over users"),
        ("ratio@sum", "a mean over users"),
        ("ratio@x@p90", "percentiles are of a metric by user"),
    ],
)
def test_what_alerts_cannot_compare(metric: str, said: str) -> None:
    ratios = [
        ratio(LATENCY, IMPRESSIONS),
        ratio(LATENCY, PEOPLE) | {"name": "people"},
        ratio(LATENCY) | {"name": "sum"},
    ]
    settings = parse({"ratios": ratios, "alerts": [{"name": "a", "metric": metric}]})
    with pytest.raises(SettingsError, match=said):
        Catalogue(settings)


JOINED = {"kind": "clicks", "field": "depth", "where": {"impression.campaign": "spring", "x": 1}}


@pytest.mark.parametrize(
    ("part", "feedback", "impressions"),
    [
        (LATENCY, [], []),
        ({"kind": "clicks", "field": "depth"}, ["amount_0"], []),
        ({"kind": "clicks", "where": {"x": 1}}, ["met_0"], []),
        (JOINED, ["amount_0", "met_0"], ["met_1"]),
    ],
)
def test_only_what_may_still_join_is_stored(
    part: Event, feedback: list[str], impressions: list[str]
) -> None:
    core = Engines(parse({"ratios": [ratio(part)]}), 1).partitions[0].core
    stored = {
        table: [name for name in core.rows(table, 0, 1)[0] if name.startswith(("amount_", "met_"))]
        for table in core.tables()
    }
    assert stored.pop("feedback") == feedback
    assert [stored.pop(name) for name in ("impressions", "retained")] == [impressions] * 2
    assert not any(stored.values())
    assert core.sizes()["own"] == 0


def test_without_users_nothing_is_divided_by_them() -> None:
    ratios = [ratio(LATENCY, PEOPLE), ratio(LATENCY, IMPRESSIONS) | {"name": "rate"}]
    catalogue = Catalogue(parse({"ratios": ratios}))

    def named(of: Catalogue, name: str) -> list[str]:
        return [variant.labels["ratio"] for variant in of.variants[name]]

    for name in ("ratio", "ratio_lower", "ratio_upper"):
        assert named(catalogue, name) == ["x", "rate"]
        assert named(catalogue.without_users(), name) == ["rate"]


def test_a_better_direction_is_that_of_the_ratio() -> None:
    start = {"control": "A", "split": {"A": 1, "B": 1}, "start": date(2026, 1, 1)}
    metrics = [{"name": "ratio@x"}, {"name": "ctr_ratio"}]
    settings = parse(
        {
            "ratios": [ratio(LATENCY, IMPRESSIONS, better="lower")],
            "alerts": [
                {"name": "a", "metric": "ratio@x"},
                {"name": "b", "metric": "ratio@x", "direction": "higher"},
            ],
            "experiments": [{"name": "e", "dimension": "variant", "metrics": metrics, **start}],
        }
    )
    assert [alert.direction for alert in settings.alerts] == ["lower", "higher"]
    assert [metric.direction for metric in settings.experiments[0].metrics] == ["lower", "higher"]


def test_old_tables_are_refused_with_what_is_written_instead() -> None:
    custom = {"name": "took", "kind": "impressions", "field": "ms", "where": {"surface": ["home"]}}
    with pytest.raises(SettingsError) as refused:
        parse({"custom": [custom]})
    lines = re.findall(r"\{ name = .*? \} \}(?: \})?(?=[.;])", str(refused.value))
    ratios = [tomllib.loads(f"ratio = {line}")["ratio"] for line in lines]
    found = {each.name: definition(each) for each in parse({"ratios": ratios}).ratios}
    at_home = "sum of ms of impressions where surface is home"
    assert found == {
        "took_mean": f"{at_home} / impressions where surface is home",
        "took_per_impression": f"{at_home} / impressions",
        "took_per_user": f"{at_home} / people",
    }


# Lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "beside", "expected", "asked"),
    [
        ([{"item_id": "a"}, {"item_id": "b"}], {"tax": 1.0}, 1.0, 2),
        (["a", "b", "c"], {"tax": 1.0}, 1.0, 3),
        ([{"item_id": "a", "tax": 2.0}, {"item_id": "b"}], {"tax": 1.0}, 2.0, 2),
        ([{"item_id": "a", "tax": 2.0}, {"item_id": "b", "tax": 3.0}], {}, 5.0, 2),
    ],
)
def test_what_stands_beside_lines_counts_once(
    lines: list[Any], beside: Event, expected: float, asked: int
) -> None:
    tax = {"kind": "conversions", "field": "tax"}
    order = {"type": "conversion", "user_id": "u", "items": lines, **beside}
    assert total([order], tax) == expected
    assert read([order], "ratio", ratio(tax, {"kind": "lines"})) == expected / len(lines)
    said = {"kind": "lines", "where": {"tax": {">": 0}}}
    for ratios in ([ratio(said)], [ratio(said), ratio(tax) | {"name": "tax"}]):
        assert read([order], "window_ratio_numerator", *ratios) == asked
