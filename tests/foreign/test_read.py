"""Each shape is read as it says: with a preset or few lines of settings, files of it count what its
truth says, and nothing is rejected."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from streamer.ingest.record import of_texts
from streamer.settings.load import parse
from streamer.sources.files import FileSource, topic_of
from streamer.sources.replay import Dead, Replay
from tests.foreign.settings import LINES, NO_VALUE, NOT_READ, SETTINGS, document
from tests.foreign.shapes import SHAPES
from tests.foreign.world import Shape

Counts = dict[tuple[str, str], float]
"""(metric, arm) → its value over 24 hours; of all arms: "all"."""


def replayed(name: str, shape: Shape, folder: Path) -> Counts:
    """What is counted of the files of a shape."""
    paths = [folder / file for file in shape.files]
    for path, data in zip(paths, shape.files.values(), strict=True):
        path.write_bytes(data)
    settings = of_texts(parse(tomllib.loads(document(name, map(topic_of, paths)))))
    dead: list[Dead] = []
    replay = Replay(settings, on_dead=dead.append)
    for lines in FileSource(paths, settings):
        replay.feed(lines)
    replay.finish()
    assert [(one.reason, one.value) for one in dead] == []
    found: Counts = {}
    readings: Any = replay.readout().as_json()["readings"]
    for reading in readings:
        labels = reading["labels"]
        if labels.get("window") == "24h" and labels.get("surface") == "all":
            found[reading["name"], labels["variant"]] = reading["value"]
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_shape_counts_its_truth(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    truth, found = shape.truth, replayed(name, shape, tmp_path)

    def count(metric: str, arm: str = "all") -> float:
        return found.get((f"streamer_window_{metric}", arm), 0)

    for arm in ("A", "B") if shape.has_arm else ():
        assert count("impressions", arm) == truth.impressions[arm]
        assert count("clicks", arm) == truth.clicks[arm]
    assert count("impressions") == truth.impressions.total()
    assert count("clicks") == truth.clicks.total()
    assert count("conversions") == truth.conversions
    value = 0 if name in NO_VALUE else truth.value
    assert count("conversion_value") == pytest.approx(value, abs=1e-6)
    assert count("users") == truth.users
    assert count("ctr_attributed_clicked") == truth.joined_clicks


def test_nearly_all_shapes_are_read() -> None:
    assert SETTINGS.keys() | NOT_READ.keys() == set(SHAPES)
    assert SETTINGS.keys() & NOT_READ.keys() == set()
    assert len(SETTINGS.keys() - NO_VALUE.keys()) >= 50


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_as_short_as_they_say(name: str) -> None:
    lines = document(name, ["x"]).split("\n")
    own = [line for line in lines if line and not line.startswith(("[[", "topics", "preset"))]
    assert len(own) == LINES[name]
