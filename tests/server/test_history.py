"""What metrics mean, and their course, by the exporter's JSON API over a real Redis."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.query.pane_history import PaneHistory, Wanted
from tests.support.exporters import Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_series_is_described(site: Site) -> None:
    status, text = await site.get("/api/metrics")
    assert status == 200
    listed = {each["name"]: each for each in json.loads(text)["metrics"]}
    _, scraped = await site.get("/metrics")
    shown = {
        line.split()[2] for line in scraped.splitlines() if line.startswith("# HELP streamer_")
    }
    assert {"streamer_ctr_ratio", "streamer_commit_seconds", "streamer_ready"} <= shown
    assert shown <= set(listed)
    assert {each["scope"] for each in listed.values()} == {"window", "total"}
    assert listed["streamer_ctr_ratio"]["formula"] == "clicks / impressions"
    assert listed["streamer_ctr_ratio"]["title"] == "Click-through rate"
    assert listed["streamer_ctr_ratio"]["form"] == "percent"


async def test_the_course_is_that_of_the_panes(site: Site) -> None:
    status, text = await site.get("/api/history?name=ctr_ratio&window=24h&split=variant&points=30")
    found: dict[str, Any] = json.loads(text)
    assert status == 200, found
    assert found["name"] == "streamer_ctr_ratio"
    assert found["step_ms"] == 48 * 60_000
    assert len(found["lines"]) > 1
    assert {line["labels"]["surface"] for line in found["lines"]} == {"all"}
    for line in found["lines"]:
        assert len(line["values"]) == len(found["starts_ms"])
    again, _ = await site.get("/api/history?name=streamer_ctr_ratio")  # the longest window
    assert again == 200


async def test_before_the_longest_window_there_is_nothing(site: Site) -> None:
    status, text = await site.get("/api/before?name=ctr_ratio&window=24h&split=variant")
    nothing: dict[str, Any] = {"title": "", "from_ms": None, "until_ms": None, "lines": []}
    assert (status, json.loads(text)) == (200, nothing)


async def test_a_part_of_a_window_has_its_points_and_its_whole(site: Site) -> None:
    query = "/api/history?name=window_impressions&window=24h&split=variant"
    full = json.loads((await site.get(query))[1])
    begin, end = full["starts_ms"][-20], full["starts_ms"][-5]
    found = json.loads((await site.get(f"{query}&from_ms={begin}&until_ms={end}"))[1])
    assert found["starts_ms"] == full["starts_ms"][-20:-5]
    assert full["whole"] is None
    lines, parts, wholes = (
        {line["labels"]["variant"]: line["values"] for line in each}
        for each in (full["lines"], found["lines"], found["whole"])
    )
    assert len(wholes) > 1
    for variant, whole in wholes.items():
        assert parts[variant] == lines[variant][-20:-5]
        assert whole == [sum(value or 0 for value in parts[variant])]
    again = f"{query}&from_ms={full['kept_from_ms'] - 10}&until_ms={end + 10**12}&points=3"
    assert len(json.loads((await site.get(again))[1])["starts_ms"]) == 3


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("", 400, "name is missing: the metric, as in /api/metrics"),
        ("?name=ctr_rato", 404, "did you mean 'ctr_ratio'?"),
        ("?name=impressions_total", 404, "no metric 'impressions_total' of windows"),
        ("?name=window_users", 404, "The metric Users has no history: distinct users are"),
        ("?name=ctr_ratio&window=7w", 400, "no window '7w'; there are 1m, 5m, 1h, 24h"),
        ("?name=ctr_ratio&split=nothing", 400, "no split 'nothing'; there are variant, surface"),
        ("?name=ctr_ratio&surface=moon", 400, "no surface 'moon'; there are "),
        (
            "?name=ctr_ratio&split=variant&surface=surface-0",
            404,
            'not kept by surface, variant: in the settings, metrics.rollups += ["variant", ',
        ),
        ("?name=coec_ratio&split=variant", 404, 'metrics.detailed += ["variant"]'),
        ("?name=ctr_ratio&points=0", 400, "points = '0': from 1 to 60"),
        ("?name=ctr_ratio&from_ms=5", 400, "both are needed"),
        ("?name=ctr_ratio&from_ms=5&until_ms=4", 400, "in this order"),
        ("?name=ctr_ratio&from_ms=5&until_ms=9", 404, "is kept from"),
        ("?name=ctr_ratio&colour=red", 400, "unknown parameter 'colour'; there are "),
    ],
)
async def test_what_there_is_not_is_said(site: Site, query: str, status: int, said: str) -> None:
    found, text = await site.get(f"/api/history{query}")
    assert found == status
    assert said in json.loads(text)["error"]


async def test_a_course_is_computed_once_a_commit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Wanted] = []
    read = PaneHistory.read

    def counting(self: PaneHistory, wanted: Wanted, at_ms: int) -> Any:
        computed.append(wanted)
        return read(self, wanted, at_ms)

    monkeypatch.setattr(PaneHistory, "read", counting)
    bodies = {await site.get("/api/history?name=cvr_ratio&window=1h") for _ in range(3)}
    assert len(bodies) == len(computed) == 1
