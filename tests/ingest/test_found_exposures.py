"""Exposures in samples: what is proposed for them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamer.cli.main import main
from streamer.ingest.discovery.proposal import Proposal, propose
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.discovery.trying import tried
from streamer.settings.load import parse
from streamer.settings.logs import kinds_of
from tests.foreign.shapes import SHAPES
from tests.support.documented import MS, Object
from tests.support.documented_exposures import EXPOSURES

_KINDS = {"impression": "recs_shown", "click": "rec_clicked", "exposure": "experiment_viewed"}


def proposed(events: Sequence[Object], topic: str = "web") -> tuple[Proposal, Object]:
    """What is proposed for some events, and what they are under it, by kind."""
    sample = SampledTopic(topic, [FoundRecord(json.dumps(event).encode()) for event in events])
    proposal = propose([sample], "web.ndjson")
    made = tried(proposal.settings, [sample])
    assert not made.refused
    return proposal, {**made.accepted, "ignored": made.ignored}


def _events(names: Object) -> list[Object]:
    events: list[Object] = []
    for i in range(200):
        both = {"ts": MS + 1000 * i, "user_id": f"u{i % 40}"}
        events.append({"type": names["impression"], **both, "item_id": f"i{i % 9}"})
        if i % 5 == 0:
            events.append({"type": names["click"], **both, "item_id": f"i{i % 9}"})
        if i % 4 == 0:
            arm = "AB"[i % 8 // 4]
            events.append({"type": names["exposure"], **both, "experiment": "ranker", "arm": arm})
    return events


def test_exposures_beside_other_events_are_proposed() -> None:
    proposal, found = proposed(_events(_KINDS))
    assert found == {"impressions": 200, "clicks": 40, "exposures": 50, "ignored": 0}
    (source,) = tomllib.loads(proposal.toml)["sources"]
    assert source["kind"]["exposure"] == ["experiment_viewed"]
    assert (source["fields"]["experiment"], source["fields"]["arm"]) == ("experiment", "arm")
    assert proposal.doubts == ()


def test_our_own_exposures_get_the_topic_that_they_need() -> None:
    proposal, found = proposed(_events({kind: kind for kind in _KINDS}))
    assert found == {"impressions": 200, "clicks": 40, "exposures": 50, "ignored": 0}
    assert not proposal.settings.sources
    assert proposal.settings.kafka.topics.exposures == "exposures"


def test_exposure_is_an_impression_where_nothing_says_an_arm() -> None:
    events = [{**e, "type": "exposure"} for e in _events(_KINDS) if "item_id" in e]
    _, found = proposed(events)
    assert found == {"impressions": 240, "ignored": 0}


def test_records_of_exposures_alone_are_a_guess() -> None:
    rows = [
        {"user_id": f"u{i}", "timestamp": MS + i, "experiment_id": "e", "variation_id": i % 2}
        for i in range(100)
    ]
    proposal, found = proposed(rows, "assignments")
    assert found == {"exposures": 100, "ignored": 0}
    assert any("nothing says for sure" in doubt for doubt in proposal.doubts)


def test_experiments_viewed_of_an_analytics_tool_are_exposures() -> None:
    (data,) = SHAPES["segment"].files.values()
    calls = [json.loads(line) for line in data.splitlines()]
    said = {"experiment_id": "ranker", "variation_id": "A"}
    viewed = {"event": "Experiment Viewed", "type": "track", "properties": said}
    events = [one for call in calls for one in (call, {**call, **viewed})]
    proposal, found = proposed(events)
    assert found["exposures"] == len(calls)
    assert 'preset = "segment"' in proposal.toml
    assert not any("exposure" in doubt for doubt in proposal.doubts)


TOOLS = ("eppo", "launchdarkly", "openfeature", "optimizely", "statsig", "unleash")


@pytest.mark.parametrize("preset", TOOLS)
def test_the_preset_of_a_tool_is_found(
    preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, _ = EXPOSURES[preset][0]
    path = tmp_path / "log.ndjson"
    lines = [json.dumps(record).replace('"u1"', f'"u{i}"') for i in range(50)]
    path.write_text("\n".join(lines), encoding="utf-8")
    main(["init", str(path), "-o", str(tmp_path / "streamer.toml")])
    text = (tmp_path / "streamer.toml").read_text(encoding="utf-8")
    assert f'preset = "{preset}"' in text
    assert "50 exposures" in capsys.readouterr().err


def test_rekeyed_without_a_topic_for_them_exposures_of_a_preset_are_ignored() -> None:
    kafka: Object = {"rekeyed": True}
    sources = [{"topics": ["web"], "preset": "segment"}]
    settings = parse({"kafka": kafka, "sources": sources})
    assert "Experiment Viewed" in settings.sources[0].kind.ignored
    assert "exposures" not in kinds_of(settings.sources[0], "web")
    kafka |= {"topics": {"exposures": "exposures"}}
    settings = parse({"kafka": kafka, "sources": sources})
    assert "exposures" in kinds_of(settings.sources[0], "web")
