"""Custom metrics in the oracle: values by hand; and that random logs have what is hard."""

from __future__ import annotations

import pytest

from streamer.settings.own_metrics import Custom
from tests.oracle.acceptance import accept
from tests.oracle.custom import said, shown_as, values_of
from tests.oracle.joining import effective_dims, join
from tests.oracle.shape import Event, Shown
from tests.support.agreement import SETTINGS, log_records


def event(topic: str, **fields: object) -> Event:
    found = Event(0, "u", None, None, (), topic=topic)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def metric(kind: str, field: str | None = None) -> Custom:
    return Custom(name="x", kind=kind, field=field)


def test_what_events_say() -> None:
    items = [Shown("a", 1, 0.5, {}, {"ms": 2.0}), Shown("b", 2), Shown("c", 3, -1.0)]
    slate = event("impressions", shown=items, numbers={"ms": 7.0})
    assert said(metric("impressions", "ms"), slate) == [2_000_000, 7_000_000, 7_000_000]
    assert said(metric("impressions", "score"), slate) == [500_000, None, -1_000_000]
    assert said(metric("impressions"), slate) == [1_000_000] * 3
    assert said(metric("clicks", "ms"), slate) == []
    click = event("clicks", dwell_ms=5, numbers={"ms": 0.0000005})
    assert said(metric("clicks", "dwell_ms"), click) == [5_000_000]
    assert said(metric("clicks", "ms"), click) == [0]
    assert said(metric("clicks", "other"), click) == [None]


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
    by_custom: dict[str, int] = {}
    inherited = negative = 0
    for seed in range(4):
        records = log_records(seed, "few values", 800, 1 + seed % 3)
        verdict = accept(records, settings)
        joins = join(verdict, settings)
        for value in values_of(verdict, joins, settings):
            by_custom[value.custom] = by_custom.get(value.custom, 0) + 1
            has_filter = value.custom in ("feedback_of_a", "spent", "depth_of_b")
            inherited += has_filter and value.event.dims != effective_dims(value.event, joins)
            negative += value.micros < 0
    assert by_custom.keys() == {custom.name for custom in settings.custom}
    assert inherited > 50
    assert negative > 50
