"""State that released versions stored goes on; what no step leads from is refused by name."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from streamer.errors import CodecError
from streamer.settings.load import parse
from streamer.sources.replay import Replay
from streamer.state import codec
from streamer.state.codec import framed
from streamer.state.manifest import VERSION, decode
from streamer.state.memory import MemoryStore
from tests.oracle.random_log import random_log
from tests.state.released import as_19
from tests.state.releases import (
    DOCUMENT,
    LINES,
    Readings,
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
from tests.support.agreement import DOCUMENTS
from tests.support.lanes import sized

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
ADVICE = "what is stored changed: raise VERSION in state/manifest.py, then run tests.state.releases"


OF_PEOPLE = {
    *("anonymous_total", "clicks_per_user", "composite", "composite_lower", "composite_upper"),
    *("ctr_attributed_lower_ratio", "ctr_attributed_upper_ratio", "ctr_lower_ratio"),
    *("ctr_upper_ratio", "experiment_outside_outcomes", "experiment_users"),
    *("experiment_srm_pvalue", "experiment_value", "positive_rate_ratio", "user_coverage_ratio"),
    *("user_hit_lower_ratio", "user_hit_ratio", "user_hit_upper_ratio", "window_positive_users"),
    *(
        "window_users",
        "window_ratio_numerator",
        "dwell_mean_seconds",
        "dwell_seconds_bucket",
        "dwell_seconds_count",
    ),
    *("dwell_seconds_sum", "window_dwell_distribution", "window_dwell_seconds", "window_dwells"),
}
OF_REQUESTS = {f"zero_results{end}_ratio" for end in ("", "_lower", "_upper")} | {"window_requests"}
CHANGED = {19: OF_PEOPLE | OF_REQUESTS | {"people_novelty_ratio"}}
"""Version → metrics that it counted by other rules, of events with `join_id` by `user_id`, or not
at all."""


def names_that_differ(found: Readings, expected: Readings) -> set[str]:
    close = {k for k in expected if found.get(k) == pytest.approx(expected[k], rel=1e-12)}
    return {k.partition("{")[0].removeprefix("streamer_") for k in expected.keys() - close}


@pytest.mark.parametrize("version", kept_versions())
def test_a_released_state_goes_on(version: int) -> None:
    folder = folder_of(version)
    settings, lines = settings_of(folder), lines_of(folder)
    half = first_half(settings, lines)
    store = MemoryStore.loaded((folder / "state").read_bytes())
    replay = asyncio.run(Replay.of_store(settings, store))
    feed(replay, lines, slice(half.stop, None))
    whole = Replay(settings, key=replay.partitions[0].key)
    feed(whole, lines, half)
    feed(whole, lines, slice(half.stop, None))
    found, expected = readings_of(replay), readings_of(whole)
    assert names_that_differ(found, expected) == CHANGED.get(version, set()), ADVICE
    equal = sum(found.get(key) == expected[key] for key in expected)
    assert len(expected) > 500
    assert equal > 0.95 * len(expected)
    if version == VERSION:
        assert found == pytest.approx(expected_of(folder), rel=1e-12), ADVICE


def test_random_states_of_the_version_before_go_on_to_the_last_digit() -> None:
    for seed in range(sized(1, 6)):
        settings = parse(DOCUMENTS[DOCUMENT])
        lines = random_log(seed, settings, LINES)
        half = first_half(settings, lines)
        replay = Replay(settings)
        feed(replay, lines, half)
        store = asyncio.run(replay.store())
        older = MemoryStore.loaded(store.dump())
        older.states = {n: replace(s, manifest=as_19(s.manifest)) for n, s in store.states.items()}
        again = asyncio.run(Replay.of_store(settings, older))
        for some in (replay, again):
            feed(some, lines, slice(half.stop, None))
        expected = readings_of(replay)
        assert len(expected) > 500
        differ = names_that_differ(readings_of(again), expected)
        assert differ <= {"window_conversion_lines"}  # in 19 orders were counted by lines


def test_a_version_that_no_step_leads_from_is_refused_by_name() -> None:
    store = MemoryStore.loaded((folder_of(VERSION) / "state").read_bytes())
    for version in (VERSION - 5, VERSION + 1):
        raw = msgspec.to_builtins(decode(store.states[0].manifest), builtin_types=(bytes,))
        data = codec.packed(msgspec.msgpack.encode({**raw, "version": version}))
        with pytest.raises(CodecError, match=f"manifest of version {version}; this is version"):
            decode(framed(data, "the manifest"))


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
