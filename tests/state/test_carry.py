"""Places of what other settings stored are mapped by name."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
import numpy as np

from streamer._core import PANE_BITS, STAT_BITS
from streamer.encoding.packed import SAMPLE_PLACE, item_code, parts_of_item_code
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.item_counts import CLICKED
from streamer.settings.load import parse
from streamer.state.contents import ItemsHeld, beside_of, contents_of
from streamer.state.migration import Holding, ItemMigration, PaneMigration


def ratio(name: str, sign: str) -> dict[str, Any]:
    asked = {"impression.position": {sign: 3}}
    return {"name": name, "numerator": {"kind": "clicks", "field": name, "where": asked}}


A = {
    "dimensions": [{"name": "variant"}, {"name": "device"}],
    "windows": {"lengths": ["1m", "1h"]},
    "metrics": {"feedback": {"click": 1, "like": 0, "star": 0}, "families": ["engagement"]},
    "policies": [{"name": name, "propensity": name} for name in ("p", "q")],
    "ratios": [ratio("depth", ">"), ratio("height", "<")],
}
B = {
    "dimensions": [{"name": "country"}, {"name": "variant"}],
    "windows": {"lengths": ["1h", "5m"]},
    "metrics": {"feedback": {"click": 1, "star": 0, "share": 0}, "families": ["engagement"]},
    "policies": [{"name": "q", "propensity": "q"}, {"name": "p", "propensity": "other"}],
    "ratios": [ratio("height", "<"), ratio("width", ">")],
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
        "amounts": [1, None],
        "conditions": [1, 0],
        "kinds": [0, 2, None],
        "kinds_now": [0, None, 1],
        "user_kinds": [0, 2, None],
        "units_ms": [1_000, 5_000],
        "keeps_items": False,
    }


def items(
    k: list[int], *rollups: list[str], families: tuple[str, ...] = ("coverage", "diversity")
) -> ItemsHeld:
    document = {
        "metrics": {"k": k, "families": families, "rollups": rollups, "detailed": rollups},
        "items": {"dimensions": ["variant", "surface"]},
    }
    held = holding(document, 1).beside.items
    assert held is not None
    return held


LABELS = [
    {"variant": v, "surface": s} for v, s in (("A", "all"), ("B", "all"), ("all", "a"), ("A", "a"))
]
SAMPLE = SAMPLE_PLACE


def moved(carried: ItemMigration, codes: list[tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Labels and places of codes (label, place), and the sums: of the first 1, of the next 2, …."""
    packed = [item_code(np.array(7), np.array(label), np.array(place)) for label, place in codes]
    ours = carried.pane(1 << 32 | 9, (np.array(packed), 1 + np.arange(len(codes))))
    assert ours is not None
    number, (found, values) = ours
    assert number == 1 << 32 | 9
    item, label, place = (column.tolist() for column in parts_of_item_code(found))
    assert set(item) <= {7}
    texts = [" ".join(carried.labels[each]) for each in label]
    return sorted(zip(texts, place, values.tolist(), strict=True))


def test_items_keep_their_counts_under_other_labels_and_cut_offs() -> None:
    old = items([3, 5], ["variant"], ["surface"], ["variant", "surface"])
    carried = ItemMigration(old, items([5, 10], ["variant"]), LABELS, 100)
    assert carried.labels == [["A"], ["B"]]
    codes = [*((label, 4) for label in range(4)), (0, 3)]
    assert moved(carried, codes) == [("A", 3, 1), ("B", 3, 2)]
    of_sample = np.array([SAMPLE]), np.array([6])
    assert carried.pane(1 << 32, of_sample) == (1 << 32, of_sample)
    without = ItemMigration(old, items([5], ["variant"], families=("coverage",)), LABELS, 100)
    assert moved(without, [(0, CLICKED)]) == []


def test_pairs_keep_their_counts_under_other_cut_offs() -> None:
    asked = {"families": ["diversity", "engagement"], "k": [3, 5]}
    old, new = (
        holding({"metrics": asked | {"k": k}, "items": {"pairs": True}}, 1).beside.items
        for k in ([3, 5], [5])
    )
    assert old is not None
    assert new is not None
    key = 0x1234567 << 28 | 0x2345678
    codes = np.array([key << 7 | 64 + place for place in (3, 4, 10)] + [SAMPLE - 1])
    ours = ItemMigration(old, new, [{}], 100).pane(1 << 32, (codes, np.array([1, 2, 3, 4])))
    assert ours is not None
    found = dict(zip(*(column.tolist() for column in ours[1]), strict=True))
    assert found == {key << 7 | 64 + 3: 2, key << 7 | 64 + 7: 3, SAMPLE - 1: 4}
    without = msgspec.structs.replace(new, has_pairs=False)
    dropped = ItemMigration(old, without, [{}], 100).pane(1 << 32, (codes[:3], codes[:3]))
    assert dropped is not None
    assert not len(dropped[1][0])


def test_rollups_of_items_that_begin_hold_what_was_before_as_unknown() -> None:
    old, codes = items([5], ["variant"]), [(0, 0), (1, 0)]
    new = items([5], ["surface"], ["variant", "surface"])
    carried = ItemMigration(old, new, LABELS[:2], 100)
    unknown = ["all unknown", "unknown unknown"]
    assert moved(carried, codes) == [(text, 0, n) for text in unknown for n in (1, 2)]
    total = ItemMigration(old, items([5], []), LABELS[:2], 100)
    assert moved(total, codes) == [("", 0, 1), ("", 0, 2)]
    again = ItemMigration(items([5], []), old, [{}], 100)
    assert moved(again, codes[:1]) == [("unknown", 0, 1)]


def test_labels_beyond_a_smaller_bound_become_other() -> None:
    old, labels = items([5], ["variant"]), [{"variant": f"{n}"} for n in range(4)]
    carried = ItemMigration(old, items([5], ["surface"], ["variant"]), labels, 2)
    assert sorted(map(" ".join, carried.labels)) == ["0 all", "1 all", "all unknown", "other all"]
    of_variant = [
        one for one in moved(carried, [(n, 0) for n in range(4)]) if "all u" not in one[0]
    ]
    assert of_variant == [
        ("0 all", 0, 1),
        ("1 all", 0, 2),
        ("other all", 0, 3),
        ("other all", 0, 4),
    ]
