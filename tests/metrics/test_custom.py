"""Custom metrics beside NumPy, on single events, and their sketch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.custom import BUCKETS, MIDDLE, UPPER, quantile
from streamer.settings.load import parse
from streamer.testing import START_MS, Engines, value_of
from tests.support.lanes import shortened

LATENCY: dict[str, Any] = {"name": "x", "kind": "impressions", "field": "latency_ms"}
SHARES = {"0.5": (1, 2), "0.9": (9, 10), "0.99": (99, 100)}
SLACK = 1 + 1e-12
Event = dict[str, Any]


def read(events: Sequence[Event], name: str, *customs: Event, **labels: str) -> float | None:
    """A reading of the metric called ``x``, where no other is named."""
    return value_of(events, name, {"custom": list(customs)}, **{"custom": "x", **labels})


def shown(**fields: Any) -> Event:
    return {"type": "impression", "item_id": "a", **fields}


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", shortened(list(range(3))))
def test_values_are_those_of_numpy(seed: int, sign: int) -> None:
    dice = np.random.default_rng(seed)
    values = sign * dice.lognormal(3, 2, 400) + dice.normal(0, 1, 400)
    events = [shown(latency_ms=x, user_id=f"u{i % 7}") for i, x in enumerate(values.tolist())]
    metric = {**LATENCY, "quantiles": True}
    assert read(events, "window_custom_value", metric) == pytest.approx(values.sum(), rel=1e-6)
    assert read(events, "custom_mean", metric) == pytest.approx(values.mean(), rel=1e-6)
    assert read(events, "custom_per_user", metric) == pytest.approx(values.sum() / 7, rel=1e-6)
    for label, (numerator, denominator) in SHARES.items():
        exact = np.quantile(values, numerator / denominator, method="inverted_cdf")
        found = read(events, "custom_quantile", metric, quantile=label)
        assert found == pytest.approx(exact, rel=0.01)


def test_sums_of_the_largest_values_do_not_overflow() -> None:
    events = [shown(latency_ms=1e12, user_id=f"u{i}") for i in range(40)]
    assert read(events, "window_custom_value", LATENCY) == 4e13
    events += [shown(latency_ms=-1e12), shown(latency_ms=-0.5)]
    assert read(events, "window_custom_value", LATENCY) == 3.9e13 - 0.5


def test_an_item_says_it_first_then_the_event() -> None:
    items = [{"item_id": "a", "latency_ms": 5}, {"item_id": "b"}, {"item_id": "c"}]
    slate = {"type": "impression", "items": items}
    assert read([slate], "window_custom_value", LATENCY) == 5
    assert read([slate | {"latency_ms": 100}], "window_custom_value", LATENCY) == 205
    assert read([slate | {"latency_ms": 100}], "window_custom_events", LATENCY) == 3
    nothing = [shown(), shown(latency_ms=None)]
    assert read(nothing, "custom_mean", LATENCY) is None
    assert read(nothing, "custom_per_impression", LATENCY) == 0


@pytest.mark.parametrize(
    ("kind", "field", "expected"),
    [
        ("impressions", None, 2),
        ("impressions", "score", 0.25),
        ("clicks", None, 3),
        ("clicks", "dwell_ms", 9000),
        ("clicks", "depth", 7),
        ("conversions", "value", 12.5),
        ("sessions", None, 3),
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
        *(visit, visit | {"action": "dwell", "item_id": "a", "dwell_ms": 400}, visit),
    ]
    metric = {"name": "x", "kind": kind} | ({} if field is None else {"field": field})
    assert read(events, "window_custom_value", metric) == expected


# Segments -----------------------------------------------------------------------------------------

AT_HOME = {"name": "x", "kind": "clicks", "field": "depth", "where": {"surface": ["home"]}}


def test_feedback_counts_where_its_impression_was_and_moves_with_it() -> None:
    click = {"type": "click", "item_id": "a", "depth": 3, "ts": START_MS + 9000}
    home = shown(surface="home", ts=START_MS + 1000)
    search = shown(surface="search", ts=START_MS + 2000)
    assert read([click], "window_custom_value", AT_HOME) is None
    assert read([home, click], "window_custom_value", AT_HOME) == 3
    assert read([click, home], "window_custom_value", AT_HOME) == 3
    for events in ([home, search, click], [home, click, search], [click, search, home]):
        assert read(events, "window_custom_value", AT_HOME) is None
        everywhere = {**AT_HOME, "where": {}}
        by_surface = [
            read(events, "window_custom_value", everywhere, surface=name)
            for name in ("home", "search")
        ]
        assert by_surface == [None, 3]


def test_values_that_are_named_are_always_kept() -> None:
    dimensions = [{"name": "surface", "max_values": 0}]
    settings = parse({"dimensions": dimensions, "custom": [AT_HOME]})
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
    metric = {**LATENCY, "quantiles": True}
    found = read([shown(latency_ms=value)], "custom_quantile", metric, quantile="0.5")
    assert found == pytest.approx(shown_as, rel=0.01)


# Settings -----------------------------------------------------------------------------------------


def test_the_family_is_on_where_there_is_one() -> None:
    assert "custom" not in [family.name for family in Catalogue(parse({})).families]
    on = Catalogue(parse({"custom": [LATENCY]}))
    assert "custom" in [family.name for family in on.families]
    assert any("custom" in stat.name for stat in on.layout.stats)
    twice = parse({"custom": [LATENCY], "metrics": {"families": ["custom"]}})
    assert [family.name for family in Catalogue(twice).families] == ["custom"]


def test_without_traffic_and_engagement_only_their_rates_are_missing() -> None:
    settings = {"custom": [LATENCY], "metrics": {"families": ["custom"]}}
    events = [shown(latency_ms=4)]
    assert value_of(events, "custom_mean", settings) == 4
    assert value_of(events, "custom_per_impression", settings) is None
    assert value_of(events, "custom_per_user", settings) is None


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("window_custom_value@x", "no such metric"),
        ("custom_mean", "@custom is one of custom: x"),
        ("custom_mean@y", "@custom is one of custom: x"),
        ("custom_per_user@x", "a mean over users"),
    ],
)
def test_what_alerts_cannot_compare(metric: str, said: str) -> None:
    settings = parse({"custom": [LATENCY], "alerts": [{"name": "a", "metric": metric}]})
    with pytest.raises(SettingsError, match=said):
        Catalogue(settings)


@pytest.mark.parametrize(
    ("kinds", "columns"),
    [((), []), (("impressions", "sessions"), []), (("impressions", "clicks"), ["custom_1"])],
)
def test_only_values_of_feedback_are_stored(kinds: Sequence[str], columns: list[str]) -> None:
    custom = [{"name": kind, "kind": kind} for kind in kinds]
    core = Engines(parse({"custom": custom}), 1).partitions[0].core
    stored = {
        table: [name for name in core.rows(table, 0, 1)[0] if name.startswith("custom")]
        for table in core.tables()
    }
    assert stored.pop("feedback") == columns
    assert not any(stored.values())
    assert core.sizes()["custom"] == 0


def test_without_users_nothing_is_divided_by_them() -> None:
    shown = {metric.name for metric in Catalogue(parse({"custom": [LATENCY]})).metrics}
    rest = {m.name for m in Catalogue(parse({"custom": [LATENCY]})).without_users().metrics}
    gone = {name for name in shown - rest if "custom" in name}
    assert gone == {"custom_per_user", "custom_per_user_lower", "custom_per_user_upper"}


# Lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "beside", "total", "events"),
    [
        ([{"item_id": "a"}, {"item_id": "b"}], {"tax": 1.0}, 1.0, 1),
        (["a", "b", "c"], {"tax": 1.0}, 1.0, 1),
        ([{"item_id": "a", "tax": 2.0}, {"item_id": "b"}], {"tax": 1.0}, 2.0, 1),
        ([{"item_id": "a", "tax": 2.0}, {"item_id": "b", "tax": 3.0}], {}, 5.0, 2),
    ],
)
def test_what_stands_beside_lines_counts_once(
    lines: list[Any], beside: Event, total: float, events: int
) -> None:
    tax = {"name": "x", "kind": "conversions", "field": "tax"}
    order = {"type": "conversion", "user_id": "u", "items": lines, **beside}
    assert read([order], "window_custom_value", tax) == total
    assert read([order], "custom_mean", tax) == total / events
