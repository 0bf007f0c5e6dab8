"""Places of what other settings stored are mapped by name."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from streamer.metrics.catalogue import Catalogue
from streamer.metrics.item_counts import CLICKED
from streamer.settings.load import parse
from streamer.state.contents import beside_of, contents_of
from streamer.state.migration import Holding, ItemMigration, PaneMigration

A = {
    "dimensions": [{"name": "variant"}, {"name": "device"}],
    "windows": {"lengths": ["1m", "1h"]},
    "metrics": {"feedback": {"click": 1, "like": 0, "star": 0}, "families": ["engagement"]},
    "policies": [{"name": name, "propensity": name} for name in ("p", "q")],
    "custom": [{"name": name, "kind": "clicks", "field": name} for name in ("depth", "height")],
}
B = {
    "dimensions": [{"name": "country"}, {"name": "variant"}],
    "windows": {"lengths": ["1h", "5m"]},
    "metrics": {"feedback": {"click": 1, "star": 0, "share": 0}, "families": ["engagement"]},
    "policies": [{"name": "q", "propensity": "q"}, {"name": "p", "propensity": "other"}],
    "custom": [{"name": name, "kind": "clicks", "field": name} for name in ("height", "width")],
}
VALUES = [
    {"texts": ["unknown", "other", "A", "B"], "events": [0, 0, 2, 3], "kept": ["A", "B"]},
    {"texts": ["unknown", "other", "tv"], "events": [4, 0, 1], "kept": ["tv"]},
]
SEGMENTS = {"values": VALUES, "tuples": [[2, 0], [3, 2], [2, 2]]}


def holding(document: dict[str, Any], unit_ms: int) -> Holding:
    settings = parse(document)
    catalogue = Catalogue(settings)
    return Holding(contents_of(settings, catalogue), beside_of(settings, catalogue), unit_ms)


def carry() -> PaneMigration:
    return PaneMigration(holding(A, 1_000), holding(B, 5_000), SEGMENTS, 5)


def lists(columns: Any) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in columns.items()}


def test_segments_that_differ_in_a_removed_dimension_are_one() -> None:
    carried = carry()
    assert carried.segments["tuples"] == [(0, 2), (0, 3)]
    values = cast(list[Any], carried.segments["values"])
    new, variant = values
    assert (new["events"], new["kept"]) == ([5, 0], [])
    assert variant is VALUES[0]
    rows = carried.table("sessions", {"segment": np.array([0, 1, 2], np.int16)})
    assert (lists(rows), rows["segment"].dtype) == ({"segment": [0, 1, 0]}, np.int16)


def test_rings_are_known_by_their_length() -> None:
    assert carry().rings == {2: 1, 9: 9}


def test_feedback_keeps_its_kind_and_values_by_name() -> None:
    kind = np.array([0, 1, 2, -1, -2, -3], np.int16)
    columns: dict[str, Any] = {
        "kind": kind,
        "custom_0": np.arange(6),
        "custom_1": np.arange(6) + 10,
    }
    found = lists(carry().table("feedback", columns))
    assert found["kind"] == [0, -3, 1, -1, -2, -3]
    assert found["custom_0"] == [10, 11, 12, 13, 14, 15]
    assert set(found["custom_1"]) == {np.iinfo(np.int64).min}


def test_a_policy_with_another_propensity_is_another_one() -> None:
    columns = {"weight_0": np.array([1], np.int32), "weight_1": np.array([2], np.int32)}
    assert lists(carry().table("impressions", columns)) == {"weight_0": [2], "weight_1": [-1]}


def test_final_feedback_is_counted_by_kind_and_conversions_come_last() -> None:
    columns = {f"final_{i}": np.array([i + 1], np.int32) for i in range(4)}
    found = lists(carry().table("retained", columns))
    assert {name: of for name, of in found.items() if name.startswith("final")} == {
        "final_0": [1],
        "final_1": [3],
        "final_2": [0],
        "final_3": [4],
    }


def test_times_of_users_have_another_unit() -> None:
    columns = {f"time_{i}": np.array([0, 1, 15, 16 + i]) for i in range(4)}
    found = lists(carry().table("user_items", columns))
    assert list(found) == ["time_0", "time_1", "time_2", "time_3"]
    assert found["time_0"] == [0, 1, 3, 4]  # unit 0, 14 and 15 of 1 s are 0, 2 and 3 of 5 s
    assert found["time_2"] == [0, 1, 3, 4]  # star, which was the third kind
    assert found["time_3"] == [0, 0, 0, 0]


def test_items_keep_their_counts_under_other_labels_and_cut_offs() -> None:
    def items(k: list[int], dimensions: list[str], **families: Any) -> Any:
        document = {
            "metrics": {"k": k, **families},
            "items": {"dimensions": dimensions},
        }
        return holding(document, 1).beside.items

    both = {"families": ["coverage", "diversity"]}
    old = items([3, 5], ["surface", "variant"], **both)
    new = items([5, 10], ["variant"], **both)
    labels = [{"surface": s, "variant": v} for s, v in ("aA", "bA", "bB")]
    carried = ItemMigration(old, new, labels)
    assert carried.labels == [["A"], ["B"]]
    sample = 127
    codes = np.array([sample, *(7 << 17 | label << 7 | 4 for label in range(3)), 7 << 17 | 3])
    ours = carried.pane(1 << 32 | 9, (codes, np.arange(5)))
    assert ours is not None
    number, (found, values) = ours
    assert number == 1 << 32 | 9
    assert list(found) == [sample, 7 << 17 | 3, 7 << 17 | 3, 7 << 17 | 1 << 7 | 3]
    assert list(values) == [0, 1, 2, 3]
    without = ItemMigration(old, items([5], ["variant"], families=["coverage"]), labels)
    clicked = np.array([7 << 17 | CLICKED])
    ours = without.pane(1 << 32, (clicked, np.ones(1, np.int64)))
    assert ours is not None
    assert len(ours[1][0]) == 0
