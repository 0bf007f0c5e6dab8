"""``streamer init`` reads foreign shapes: nearly all at once, others once a line is edited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.cli.main import main
from tests.foreign.shapes import SHAPES
from tests.foreign.world import Shape
from tests.support.all_cases import hold_for_all
from tests.support.lanes import sized

EDITS = {
    # an entity of one's own, which has no name beside its schema
    "snowplow_tsv": (
        "[[dimensions]]",
        '[sources.fields]\nvariant = "contexts.data'
        '[schema=iglu:com.acme/experiment/jsonschema/1-0-0].data.variant"\n\n'
        '[[dimensions]]\nname = "variant"\n\n[[dimensions]]',
    ),
}
"""Shape → what is replaced in the proposal, and by what: two lines more."""
NO_VALUE = {"debezium_schema"}
"""Shapes with decimals as bytes, whose digits behind the point are to be written by hand."""
NOT_READ = {
    "outbrain": "it has no time",
    "braze_storage": "only the names of files say what records are",
}

Counts = dict[tuple[str, str], float]
"""(metric, arm) → its value over 24 hours; of all arms: "all"."""


def written(shape: Shape, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    paths = [folder / name for name in shape.files]
    for path, data in zip(paths, shape.files.values(), strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


def proposed(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Counts:
    """What is counted of the files of a shape with the settings that ``init`` proposes for them."""
    settings, files = folder / "streamer.toml", written(SHAPES[name], folder)
    assert main(["init", *files, "-o", str(settings)]) == 0
    if name in EDITS:
        text = settings.read_text(encoding="utf-8")
        old, new = EDITS[name]
        assert old in text
        settings.write_text(text.replace(old, new, 1), encoding="utf-8")
    capsys.readouterr()
    assert main(["replay", *files, "-c", str(settings), "--json"]) == 0
    counts: Counts = {}
    for reading in json.loads(capsys.readouterr().out)["readings"]:
        labels = dict(reading["labels"])
        arm = labels.pop("variant", "all")
        if labels.pop("window", "") == "24h":
            others = {x for n, x in labels.items() if n not in ("maturity", "feedback")}
            if others <= {"all"}:
                counts[reading["name"], arm] = reading["value"]
    return counts


def counts_the_truth(name: str, counts: Counts) -> None:
    shape = SHAPES[name]
    truth = shape.truth

    def count(metric: str, arm: str = "all") -> float:
        return counts.get((f"streamer_window_{metric}", arm), 0)

    for arm in ("A", "B") if shape.has_arm else ():
        assert (count("impressions", arm), count("clicks", arm)) == (
            truth.impressions[arm],
            truth.clicks[arm],
        )
    assert count("impressions") == truth.impressions.total()
    assert count("clicks") == truth.clicks.total()
    assert not shape.has_conversions or count("conversions") == truth.conversions
    if shape.has_value and name not in NO_VALUE:
        assert count("conversion_value") == pytest.approx(truth.value, abs=1e-6)
    assert count("ctr_attributed_clicked") == truth.joined_clicks
    assert not truth.users or count("users") in (truth.users, truth.people)


@pytest.mark.timeout(300)
def test_proposals_count_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def law(name: str) -> None:
        counts_the_truth(name, proposed(name, tmp_path / name, capsys))

    names = [name for name in SHAPES if name not in NOT_READ]
    hold_for_all(names[:: sized(9, 1)], law, at_least=sized(6, 40))


def test_most_shapes_are_right_at_once() -> None:
    assert len(SHAPES) - len({*EDITS, *NOT_READ, *NO_VALUE}) >= 50


def test_of_a_shape_without_times_a_file_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = written(SHAPES["outbrain"], tmp_path)
    out = tmp_path / "streamer.toml"
    assert main(["init", *files, "-o", str(out)]) == 1
    assert "ts is not read: missing; name one of" in out.read_text("utf-8")
    assert "impressions need ts, and no field looks like it" in capsys.readouterr().err
