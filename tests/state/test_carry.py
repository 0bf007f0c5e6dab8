"""Places of what other settings stored are mapped by name."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np

from streamer._core import PANE_BITS, STAT_BITS
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
SEGMENTS = {"values": VALUES, "segments": [(0, []), (1, [2]), (2, [2]), (1, [3])]}
"""Of the total, a variant, a device and another variant."""


def holding(document: dict[str, Any], unit_ms: int) -> Holding:
    settings = parse(document)
    catalogue = Catalogue(settings)
    return Holding(contents_of(settings, catalogue), beside_of(settings, catalogue), unit_ms)


def carry() -> PaneMigration:
    return PaneMigration(holding(A, 1_000), holding(B, 5_000), SEGMENTS, 5)


def test_segments_of_a_rollup_that_is_not_kept_are_left_out() -> None:
    carried = carry()
    assert carried.segments["segments"] == [(0, []), (2, [2]), (2, [3])]
    values = cast(list[Any], carried.segments["values"])
    new, variant = values
    assert (new["events"], new["kept"]) == ([5, 0], [])
    assert variant is VALUES[0]
    codes = np.array([at << STAT_BITS for at in range(4)])
    number, (kept, sums) = carried.pane(9 << PANE_BITS, (codes, np.arange(4))) or (0, (codes,) * 2)
    assert number == 9 << PANE_BITS
    assert [code >> STAT_BITS for code in kept] == [0, 1, 2]
    assert list(sums) == [0, 1, 3]


def test_rings_are_known_by_their_length() -> None:
    assert carry().rings == {2: 1, 9: 9}


def test_what_settings_number_is_known_by_name() -> None:
    """Rows are mapped by it in the core. A policy with another propensity is another one."""
    assert json.loads(carry().tables) == {
        "dimensions": [None, 0],
        "policies": [1, None],
        "custom": [1, None],
        "kinds": [0, 2, None],
        "kinds_now": [0, None, 1],
        "user_kinds": [0, 2, None],
        "units_ms": [1_000, 5_000],
        "keeps_items": False,
    }


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
