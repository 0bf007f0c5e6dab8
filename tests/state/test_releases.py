"""State that released versions stored: read to the last digit, or refused by name."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from streamer.errors import CodecError
from streamer.sources.replay import Replay
from streamer.state.manifest import VERSION
from streamer.state.memory import MemoryStore
from tests.state.releases import (
    expected_of,
    feed,
    first_half,
    folder_of,
    kept_versions,
    lines_of,
    readings_of,
    settings_of,
    shape_of,
)

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
ADVICE = "what is stored changed: raise VERSION in state/manifest.py, then run tests.state.releases"


@pytest.mark.parametrize("version", kept_versions())
def test_a_released_state_goes_on_or_is_refused_by_name(version: int) -> None:
    folder = folder_of(version)
    settings, lines = settings_of(folder), lines_of(folder)
    store = MemoryStore.loaded((folder / "state").read_bytes())
    if version != VERSION:
        with pytest.raises(CodecError, match=f"manifest of version {version}; this is version"):
            asyncio.run(Replay.of_store(settings, store))
        return
    replay = asyncio.run(Replay.of_store(settings, store))
    feed(replay, lines, slice(first_half(settings, lines).stop, None))
    expected = expected_of(folder)
    assert len(expected) > 500
    assert readings_of(replay) == pytest.approx(expected, rel=1e-12), ADVICE


def test_what_is_stored_has_the_shape_of_its_version() -> None:
    assert VERSION in kept_versions(), ADVICE
    folder = folder_of(VERSION)
    settings, lines = settings_of(folder), lines_of(folder)
    replay = Replay(settings)
    feed(replay, lines, first_half(settings, lines))
    found = json.loads(json.dumps(shape_of(asyncio.run(replay.store()))))
    expected = json.loads((folder / "shape.json").read_text(encoding="utf-8"))
    assert found == expected, ADVICE


def test_the_changelog_names_the_state_of_each_release() -> None:
    text = CHANGELOG.read_text(encoding="utf-8")
    releases = re.findall(r"^## (\d+\.\d+\.\d+)[^\n]*\n+Stored state: version (\d+)\.", text, re.M)
    headings = re.findall(r"^## (\d+\.\d+\.\d+)", text, re.M)
    assert [release for release, _ in releases] == headings
    assert int(releases[0][1]) <= VERSION
    assert {int(state) for _, state in releases} <= set(kept_versions())
