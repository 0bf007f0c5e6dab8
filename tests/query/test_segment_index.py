"""Segments are numbered from commit to commit as a new reader would name them."""

from __future__ import annotations

import random
from dataclasses import replace

from streamer.encoding.segments import ALL
from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.query.segment_index import SegmentIndex, are_continued
from streamer.settings.labels import OTHER
from streamer.settings.load import parse
from streamer.state.partition import Partition
from streamer.state.snapshot import View, header_of

SETTINGS = parse({"dimensions": [{"name": "place", "max_values": 3}]})
CATALOGUE = Catalogue(SETTINGS)
HEADER = header_of(Partition(SETTINGS, CATALOGUE, FIXED_KEY))


def view(places: list[str]) -> View:
    """A partition that holds the total and these places; smaller names have smaller hashes."""
    texts = ((ALL,), *((place,) for place in places))
    rollups = (0, *(1 for _ in places))
    kept = (tuple((place, int(place)) for place in places),)
    return View(replace(HEADER, segments=texts, rollups=rollups, kept=kept))


def named(index: SegmentIndex) -> list[list[str]]:
    return [[index.segments[number][0] for number in numbers] for numbers in index.maps]


def test_numbers_go_on_and_name_what_a_new_reader_names() -> None:
    dice, before = random.Random(4), SegmentIndex(SETTINGS, CATALOGUE, [])
    views = [view(["1"]), view(["1", "2"])]
    continued = 0
    for step in range(300):
        index = SegmentIndex(SETTINGS, CATALOGUE, views, before)
        assert named(index) == named(SegmentIndex(SETTINGS, CATALOGUE, views))
        continued += are_continued(before.maps, index.maps)
        before = index
        places = sorted({str(dice.randrange(1, 3 + step // 3)) for _ in range(4)})
        views[step % 2] = view(places)
    assert continued > 20


def test_what_left_all_partitions_is_forgotten() -> None:
    """Values come and go for ever; all but three of those of a time are ``other``."""
    before = SegmentIndex(SETTINGS, CATALOGUE, [])
    for first in range(10, 2_000, 10):
        views = [view([str(place) for place in range(first, first + 10)])]
        before = SegmentIndex(SETTINGS, CATALOGUE, views, before)
        assert named(before)[0].count(OTHER) == 7
        assert len(before.segments) < 20
        assert len(before._raw) < 60


def test_a_view_that_did_not_change_is_not_numbered_again() -> None:
    views = [view(["1", "2"]), view(["2"])]
    before = SegmentIndex(SETTINGS, CATALOGUE, views)
    views[1] = view(["1", "2"])
    index = SegmentIndex(SETTINGS, CATALOGUE, views, before)
    assert index.maps[0] is before.maps[0]
    assert named(index) == [[ALL, "1", "2"]] * 2
