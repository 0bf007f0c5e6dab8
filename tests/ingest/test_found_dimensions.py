"""Which fields are dimensions: those that a preset reads too, the experiment's arm first."""

from __future__ import annotations

import json
from typing import Any

from streamer.ingest.discovery.proposal import Proposal, propose
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic

MS = 1_793_527_200_000


def proposed(records: list[Any], topic: str = "web") -> Proposal:
    lines = [FoundRecord(json.dumps(one).encode()) for one in records]
    return propose([SampledTopic(topic, lines)], "a test")


def mixpanel(**more: Any) -> list[Any]:
    names = ("Product List Viewed", "Product Clicked")
    return [
        {
            "event": name,
            "properties": {
                **{"time": MS // 1000 + n, "distinct_id": f"u{n}", "product_id": "a"},
                **{"Variant name": "AB"[n % 2], "$insert_id": f"{name}{n}"},
                **{key: values[n % len(values)] for key, values in more.items()},
            },
        }
        for n in range(20)
        for name in names
    ]


def test_the_arm_that_a_preset_reads_is_a_dimension() -> None:
    made = proposed(mixpanel(surface=["home", "search"]))
    assert made.settings.dimension_names == ("variant", "surface")
    assert "variant = " not in made.toml
    assert "name = \"variant\"                        # 'A' 10, 'B' 10" in made.toml
    assert not any("variant" in doubt for doubt in made.doubts)


def test_a_surface_with_many_values_is_not_proposed_but_shown() -> None:
    records = [
        {
            **{"type": "impression", "ts": MS + n, "user_id": f"u{n}", "item_id": "a"},
            **{"variant": "AB"[n % 2], "surface": f"s{n % 60}", "session_id": f"x{n % 60}"},
        }
        for n in range(180)
    ]
    made = proposed(records)
    assert made.settings.dimension_names == ("variant",)
    (line,) = [line for line in made.toml.splitlines() if line.startswith("# surface = ")]
    assert "60 values: 's0' 3" in line
    few_each = proposed(records[:179])
    assert few_each.settings.dimension_names == ("variant",)
    assert "# surface = " not in few_each.toml


def test_an_arm_that_is_found_elsewhere_goes_first() -> None:
    made = proposed(mixpanel(experiment_arm=["old", "new"]))
    assert made.settings.sources[0].fields["variant"] == "properties.experiment_arm"
    assert made.settings.dimension_names[0] == "variant"


def test_a_preset_that_knows_the_records_needs_no_kinds() -> None:
    actions = ("clickout item", "clickout item", "search for item")
    records = [
        {
            **{"user_id": "u", "session_id": "s", "timestamp": str(MS // 1000 + n), "step": "1"},
            **{"action_type": actions[n % 3], "reference": "7", "impressions": "7|8|9"},
            **{"platform": ("AU", "BR")[n % 2], "prices": "1|2|3", "current_filters": ""},
        }
        for n in range(30)
    ]
    made = proposed(records)
    assert made.settings.sources[0].preset == "trivago"
    assert "[sources.kind]" not in made.toml
    assert not any("no record looks like" in doubt for doubt in made.doubts)
    assert "platform" in made.settings.dimension_names


def test_flags_of_experiments_are_arms_those_with_usual_arms_first() -> None:
    records = [
        {
            **{"uuid": f"e{n}", "event": "recs shown", "distinct_id": "u", "timestamp": MS + n},
            "properties": {
                **{"product_id": "a", "$feature/checkout": ("old", "new")[n % 2]},
                "$feature/ranker": ("control", "B")[n % 2],
            },
        }
        for n in range(20)
    ]
    made = proposed(records)
    assert made.settings.sources[0].fields["variant"] == "properties.$feature/ranker"
    assert "fields may be it" in made.doubts[-1]


def test_values_of_arms_are_a_guess_where_no_name_is_one() -> None:
    def shown(n: int) -> dict[str, Any]:
        return {"event": "shown", "ts": MS + n, "user": "u", "sku": "a", "slot7": "AB"[n % 2]}

    made = proposed([shown(n) for n in range(20)])
    assert made.settings.sources[0].fields["variant"] == "slot7"
    assert made.doubts[-1] == "variant: no name of slot7 says so, but its values"
    made = proposed([shown(n) | {"arm": ("x", "y")[n % 2]} for n in range(20)])
    assert made.settings.sources[0].fields["variant"] == "arm"
    assert not any("variant" in doubt for doubt in made.doubts)


def test_fields_of_shown_items_are_no_arms() -> None:
    records = [
        {
            **{"event": "shown", "ts": MS, "user": "u", "arm": "AB"[n % 2]},
            "recs": [{"name": "Shirt", "sku": "a", "variant": ("red", "blue")[n % 2]}],
        }
        for n in range(20)
    ]
    made = proposed(records)
    assert made.settings.sources[0].fields["variant"] == "arm"
    assert not any("variant" in doubt for doubt in made.doubts)
