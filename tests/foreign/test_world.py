"""Each shape says what its truth says: counted by a plain reader of its format."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.foreign import datasets, envelopes, home_made, marketing, products, snowplow, tables
from tests.foreign.readers import READERS, only, rows
from tests.foreign.shapes import SHAPES
from tests.foreign.world import Shape, Truth, happenings, pages, single_happenings
from tests.support.all_cases import hold_for_all
from tests.support.lanes import long

MODULES = (products, snowplow, marketing, envelopes, datasets, tables, home_made)


def says_its_truth(name: str) -> None:
    shape = SHAPES[name]
    count = READERS[name](shape.files)
    truth = shape.truth
    assert count.impressions == truth.impressions
    assert count.clicks == truth.clicks
    assert count.conversions == truth.conversions
    assert count.cents == round(truth.value * 100)


@long
def test_shapes_say_their_truth() -> None:
    hold_for_all(SHAPES, says_its_truth, at_least=50)


def says_what_it_has(name: str) -> None:
    shape = SHAPES[name]
    truth = shape.truth
    assert (truth.conversions > 0) == shape.has_conversions
    assert (truth.value > 0) == shape.has_value
    assert set(truth.impressions) | set(truth.clicks) == ({"A", "B"} if shape.has_arm else {""})
    assert truth.joined_clicks in (0, truth.clicks.total())
    assert truth.users >= truth.people


def test_shapes_say_what_they_have() -> None:
    hold_for_all(SHAPES, says_what_it_has, at_least=50)


def test_clicks_come_soon_after_their_list() -> None:
    clicks = [one for one in happenings() if one.kind == "click"]
    assert any(len(page.clicked) > 1 for page in pages())
    for one in clicks:
        assert one.item in one.page.items
        assert 100 <= one.at_ms - one.page.at_ms <= 900
    orders = [one for one in happenings() if one.kind == "order"]
    assert all(one.at_ms > one.page.at_ms + 900 for one in orders)


@pytest.mark.parametrize("name", ["csv_plain", "csv_offset", "csv_postgres", "csv_local_time"])
def test_times_of_tables_are_the_same_instants(name: str) -> None:
    ahead_ms = 3_600_000 if name == "csv_local_time" else 0
    texts = [row["event_time"] for row in rows(only(SHAPES[name].files).decode())]
    times = [datetime.fromisoformat(text) for text in texts]
    expected = [one.at_ms + ahead_ms for one in single_happenings() if one.kind != "login"]
    at = [time if time.tzinfo else time.replace(tzinfo=UTC) for time in times]
    assert [round(time.timestamp() * 1000) for time in at] == expected


def test_second_arm_clicks_more() -> None:
    truth = SHAPES["csv_plain"].truth
    rates = {arm: truth.clicks[arm] / shown for arm, shown in truth.impressions.items()}
    assert rates["B"] > 1.5 * rates["A"]


@long
def test_shapes_are_the_same_each_time() -> None:
    for module in MODULES:
        made = [name for name in SHAPES if name in vars(module)]
        assert made
        for name in made:
            again: Shape = getattr(module, name)()
            assert again.files == SHAPES[name].files


def test_truth_is_of_each_shape_alone() -> None:
    """Nothing that is counted in one shape is seen in another."""
    truths: list[Truth] = [shape.truth for shape in SHAPES.values()]
    assert len({id(truth.impressions) for truth in truths}) == len(SHAPES) >= 52
