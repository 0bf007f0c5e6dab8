"""Each shape is read as it says: with a preset or few lines of settings, files of it count what its
truth says, and nothing is rejected."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from streamer.cli.main import main
from streamer.settings.load import parse
from streamer.sources.files import topic_of
from tests.foreign.settings import LINES, NOT_READ, SETTINGS, document
from tests.foreign.shapes import SHAPES
from tests.foreign.world import Shape
from tests.support.all_cases import hold_for_all
from tests.support.lanes import long, sized

Counts = dict[tuple[str, str], float]
"""(metric, arm) → its value over 24 hours; of all arms: "all"."""


def replayed(name: str, shape: Shape, folder: Path, capsys: pytest.CaptureFixture[str]) -> Counts:
    """What is counted of the files of a shape: all of it is read, and nothing looks wrong."""
    folder.mkdir()
    paths = [folder / file for file in shape.files]
    for path, data in zip(paths, shape.files.values(), strict=True):
        path.write_bytes(data)
    settings = folder / "streamer.toml"
    settings.write_text(document(name, map(topic_of, paths)), encoding="utf-8")
    capsys.readouterr()
    code = main(["replay", *map(str, paths), "-c", str(settings), "--json", "--strict"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    found: Counts = {}
    for reading in json.loads(out)["readings"]:
        labels = reading["labels"]
        if labels.get("window") == "24h" and labels.get("surface") == "all":
            found[reading["name"], labels["variant"]] = reading["value"]
    return found


def joins_by_id(name: str) -> bool:
    """Whether the settings of a shape name people by an id that does not change at login."""
    sources = parse(tomllib.loads(document(name, ["x"]))).sources
    return any(source.fields.get("join_id", False) for source in sources)


def counts_its_truth(name: str, counts: Counts) -> None:
    shape = SHAPES[name]
    truth = shape.truth

    def count(metric: str, arm: str = "all") -> float:
        return counts.get((f"streamer_window_{metric}", arm), 0)

    for arm in ("A", "B") if shape.has_arm else ():
        assert count("impressions", arm) == truth.impressions[arm]
        assert count("clicks", arm) == truth.clicks[arm]
    assert count("impressions") == truth.impressions.total()
    assert count("clicks") == truth.clicks.total()
    assert count("conversions") == truth.conversions
    assert count("conversion_value") == pytest.approx(truth.value, abs=1e-6)
    assert count("users") == (truth.people if joins_by_id(name) else truth.users)
    assert count("ctr_attributed_clicked") == truth.joined_clicks


@long
def test_shapes_count_their_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def law(name: str) -> None:
        counts_its_truth(name, replayed(name, SHAPES[name], tmp_path / name, capsys))

    hold_for_all(list(SETTINGS)[:: sized(3, 1)], law, at_least=sized(17, 50))


def test_nearly_all_shapes_are_read() -> None:
    assert SETTINGS.keys() | NOT_READ.keys() == set(SHAPES)
    assert SETTINGS.keys() & NOT_READ.keys() == set()
    assert len(SETTINGS) >= 50


def is_as_short_as_it_says(name: str) -> None:
    lines = document(name, ["x"]).split("\n")
    own = [line for line in lines if line and not line.startswith(("[[", "topics", "preset"))]
    assert len(own) == LINES[name]


def test_settings_are_as_short_as_they_say() -> None:
    hold_for_all(SETTINGS, is_as_short_as_it_says, at_least=50)
