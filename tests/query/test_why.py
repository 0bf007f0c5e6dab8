"""The sentences of why a metric moved are those of its split."""

from __future__ import annotations

import pytest

from streamer.query.why import sentences
from streamer.stats.alerting.baseline import Status
from streamer.stats.alerting.explain import Sums, explain
from streamer.stats.alerting.traffic import Traffic

EVEN = {"women": (60, 10_000), "men": (90, 10_000)}
OUTAGE = {"women": (0, 10_000), "men": (88, 10_000)}
MOVED = Traffic(5, 100.0, 7, "days", status=Status.DROPPED, reason="5 events")


def said(
    now: Sums, then: Sums = EVEN, chosen: str = "", traffic: Traffic | None = None
) -> list[str]:
    return list(sentences(explain(now, then), "percent", 1.0, chosen, traffic))


def test_the_cause_is_named_first() -> None:
    first, *rest = said(OUTAGE)
    assert first == "97% of the fall comes from women: 0.600% → 0%."
    assert rest[-1].startswith("Traffic did not cause it: ")


def test_the_segment_that_is_asked_about_is_first_and_the_cause_second() -> None:
    first, second, *_ = said(OUTAGE, chosen="men")
    assert first == "men accounts for 3.2% of the fall: 0.900% → 0.880%."
    assert second.startswith("97% of the fall comes from women")


def test_a_segment_that_rose_gives_nothing_of_a_fall() -> None:
    now = {"women": (0, 10_000), "men": (95, 10_000)}
    assert said(now)[0].startswith("More than the whole fall comes from women")
    assert said(now, chosen="men")[0] == "men contributes nothing to the fall: 0.900% → 0.950%."


def test_shifts_of_traffic_are_named_where_they_are_the_cause() -> None:
    then = {"home": (800, 10_000), "feed": (20, 1_000)}
    now = {"home": (90, 1_000), "feed": (250, 10_000)}
    found = said(now, then)
    assert ", by its share of the traffic: 9.1% → 91%." in " ".join(found)
    assert found[-1].startswith("Shifts of traffic between segments account for \u2212")


@pytest.mark.parametrize("traffic", [MOVED, None])
def test_traffic_is_named_only_where_its_own_check_says_so(traffic: Traffic | None) -> None:
    text = "Traffic itself has moved: 5 events."
    assert (text in said(OUTAGE, traffic=traffic)) == (traffic is not None)


def test_without_a_change_nothing_is_said() -> None:
    assert said(EVEN) == []
    assert said({}) == []
