"""The exporter's JSON API over a real Redis: readings, and what is refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from streamer.query.readings import ReadingSet
from streamer.server.documents import Documents
from tests.support.exporters import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


def as_set(readings: list[dict[str, Any]]) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    return {(r["name"], frozenset(r["labels"].items()), r["value"]) for r in readings}


def expected_of(readout: ReadingSet, **labels: str) -> set[Any]:
    document: Any = readout.as_json()
    return as_set([r for r in document["readings"] if labels.items() <= r["labels"].items()])


async def test_the_api_gives_the_readings(site: Site) -> None:
    assert as_set(await site.readings()) == expected_of(site.expected)
    assert as_set(await site.readings("?at=stream")) == expected_of(site.expected)
    chosen = as_set(await site.readings("?window=24h"))
    assert chosen == expected_of(site.expected, window="24h")
    assert chosen
    both = as_set(await site.readings("?window=24h&variant=all"))
    assert both == expected_of(site.expected, window="24h", variant="all")
    for name in ("ctr_ratio", "streamer_ctr_ratio"):
        named = as_set(await site.readings(f"?name={name}"))
        assert named == {x for x in expected_of(site.expected) if x[0] == "streamer_ctr_ratio"}


@pytest.mark.parametrize("query", ["?nothing=1", "?windows=5m", "?window=5m&Variant=A"])
async def test_an_unknown_parameter_is_refused_with_the_known_ones(site: Site, query: str) -> None:
    status, text = await site.get(f"/api/readings{query}")
    assert status == 400
    error = json.loads(text)["error"]
    assert "window" in error
    assert "variant" in error


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("window=7m", ["no window '7m'", "1m, 5m, 1h, 24h"]),
        ("window=1h&window=", ["no window ''"]),
        ("variant=zz", ["no variant 'zz'", "all, other, unknown, "]),
        (f"variant={'z' * 5000}", ["no variant 'zzz"]),
    ],
)
async def test_a_value_that_is_not_there_is_refused_with_those_that_are(
    site: Site, query: str, words: list[str]
) -> None:
    status, text = await site.get(f"/api/readings?{query}")
    assert status == 400
    error = json.loads(text)["error"]
    assert [word for word in words if word not in error] == []
    assert len(error) < 1000


async def test_every_value_that_is_shown_can_be_asked_for(site: Site) -> None:
    names = site.settings.dimension_names
    for name in names:
        shown = {r["labels"].get(name) for r in await site.readings()} - {None}
        assert shown
        for value in {*shown, "all", "other", "unknown"}:
            found = await site.readings(f"?{name}={value}")
            assert {r["labels"][name] for r in found} == shown & {value}


async def test_documents_are_made_once_a_readout(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    body = Documents._body

    def counted(documents: Documents, *of: Any) -> bytes:
        made.append(str(of[1]))
        return body(documents, *of)

    monkeypatch.setattr(Documents, "_body", counted)
    texts = await asyncio.gather(
        *(site.get("/api/readings?at=stream&window=1m") for _ in range(20))
    )
    assert len({text for _, text in texts}) == 1
    assert len(made) == 1


@pytest.mark.parametrize("query", ["?at=now", "?at="])
async def test_a_wrong_value_of_at_is_refused(site: Site, query: str) -> None:
    status, text = await site.get(f"/api/readings{query}")
    assert (status, "at" in json.loads(text)["error"]) == (400, True)


async def test_health_says_what_was_read(site: Site) -> None:
    _, text = await site.get("/api/health")
    read = json.loads(text)["read"]
    assert {topic["topic"] for topic in read["topics"]} == set(site.settings.logs)
    assert sum(topic["accepted"] for topic in read["topics"]) > 0
    assert all(finding.keys() == {"what", "fix"} for finding in read["findings"])
    found = {each["kind"]: (each["unattributed"], each["events"]) for each in read["feedback"]}
    assert found.keys() == {"clicks", "conversions"}
    assert all(0 < unattributed < events for unattributed, events in found.values())
