"""Which preset is found for which records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.ingest.discovery.kinds import Kinds
from streamer.ingest.discovery.opening import find_opening
from streamer.ingest.discovery.presets import find_preset
from streamer.ingest.discovery.profile import profile_of
from streamer.settings.model import Settings
from streamer.sources.files import opened
from tests.foreign.shapes import SHAPES
from tests.support.all_cases import hold_for_all
from tests.support.lanes import sized

FOUND = {
    "segment": "segment",
    "rudderstack": "segment",
    "ga4": "ga4",
    "ga4_not_set": "ga4",
    "snowplow_json": "snowplow",
    "amplitude": "amplitude",
    "amplitude_device_event_id": "amplitude",
    "mixpanel": "mixpanel",
    "posthog_webhook": "posthog",
    "posthog_batch": "posthog",
    "adobe_xdm": "xdm",
    "braze_http": "braze",
    "heap": "heap",
    "matomo": "matomo",
    "cloudevents": "cloudevents",
    "debezium_schema": "debezium",
    "debezium": "debezium",
    "otel_log": "otel",
    "otlp_json": "otlp",
    "criteo": "criteo-attribution",
    "ebnerd": "eb-nerd",
    "retailrocket": "retailrocket",
    "trivago": "trivago",
    "open_bandit": "open-bandit",
}
"""Shape → its preset."""
WITHOUT_HEADER = ("snowplow_tsv", "mind", "yoochoose")
SAYS_ITS_KIND = "braze_storage"
"""A file of it is of one kind, and nothing in it says so."""


def has_the_preset_of_its_product(name: str, folder: Path) -> None:
    (file, data), *_ = SHAPES[name].files.items()
    folder.mkdir()
    path = folder / file
    path.write_bytes(data)
    lines = [json.loads(line) for batch in opened(path, Settings()) for line in batch]
    opening = find_opening(lines[:400])
    events = [event for line in lines[:400] for event in opening.events(line)]
    preset = find_preset(profile_of(events, opening.each), {}, "events")
    assert (preset and preset[0]) == FOUND.get(name)


def test_shapes_have_the_presets_of_their_products(tmp_path: Path) -> None:
    names = [n for n in SHAPES if n not in (*WITHOUT_HEADER, SAYS_ITS_KIND)]
    hold_for_all(
        names[:: sized(5, 1)],
        lambda name: has_the_preset_of_its_product(name, tmp_path / name),
        at_least=sized(8, 40),
    )


def test_notices_are_of_a_preset_by_the_field_that_names_them() -> None:
    names = ("impression", "click", "tap") * 10
    rows = [{"auction_id": f"r{n}", "bid_id": f"b{n}", "imp_id": "1"} for n in range(len(names))]

    def found(field: str) -> tuple[str, Kinds] | None:
        named = [{**row, field: name} for row, name in zip(rows, names, strict=True)]
        return find_preset(profile_of(named), {}, "events")

    assert found("action") is None
    preset = found("event")
    assert preset is not None
    assert preset[0] == "openrtb"
    assert {value.text: value.kind for value in preset[1].values}["tap"] == "click"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("amplitude", {"impression": 1, "click": 1, "conversion": 1, "session": 1}),
        ("mixpanel", {"impression": 1, "click": 1, "conversion": 1, "session": 1}),
        ("braze_http", {"impression": 1, "click": 1, "conversion": 1, "session": 1}),
        ("otel_log", {"impression": 1, "click": 1}),
    ],
)
def test_names_of_events_are_known_or_sound_like_something(
    name: str, kinds: dict[str, int]
) -> None:
    (data,) = SHAPES[name].files.values()
    found = find_preset(profile_of(map(json.loads, data.splitlines())), {}, "events")
    assert found is not None
    known = {kind: len(values) for kind, values in found[1].known.items() if kind}
    assert {kind: known.get(kind) for kind in kinds} == kinds
