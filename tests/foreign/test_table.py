"""The page on whose events are read has all that there is."""

from __future__ import annotations

from streamer.settings.source_rules import PRESETS
from tests.foreign.shapes import SHAPES
from tests.foreign.table import PAGE


def test_the_page_has_every_shape_and_preset() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()]
    assert {name.replace("_", " ") for name in SHAPES} <= set(rows)
    assert all(f"- `{name}`: " in text for name in PRESETS)
