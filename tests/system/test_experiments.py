"""Experiments and alerts as users see them: the command, the API and the gauges agree."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from aiohttp import web

from streamer.cli.main import main
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.redis.store import RedisStore
from streamer.stats.experiments.recommendation import Action
from streamer.testing.embedded import HOST
from tests.oracle.acceptance import accept
from tests.oracle.alert_readings import group_sums, window
from tests.oracle.alert_series import PANES, series_of
from tests.oracle.experiments import range_truth
from tests.oracle.joining import join
from tests.oracle.oracle import records_of_log
from tests.support.agreement import to_log
from tests.support.engines import Engines, chunks_of
from tests.support.journals import commit, start
from tests.support.visitors import FIRST, FIRST_MS, experiment, visits
from tests.support.workers import as_toml

DAYS = 4
DOCUMENT: dict[str, Any] = {
    "windows": {"lengths": ["24h"]},
    "experiments": [
        experiment(
            covariate_days=1,
            explore=["surface"],
            metrics=[{"name": "ctr_ratio"}, {"name": "ndcg_ratio@10", "margin": 0.5}],
        ),
        experiment(name="later", start=FIRST + datetime.timedelta(days=40)),
    ],
    "alerts": [
        {"name": "ctr", "window": "24h", "segments": ["variant"], "baseline": "before"},
        {"name": "days", "window": "1h"},
    ],
}


class Site(NamedTuple):
    """State in Redis, an exporter over it, and the settings' file."""

    url: str
    config: Path
    settings: Settings
    records: list[Any]
    engines: Engines

    async def get(self, path: str) -> tuple[int, Any]:
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return answer.status, await answer.json(content_type=None)


@pytest.fixture
async def site(redis_url: str, redis_prefix: str, tmp_path: Path) -> AsyncIterator[Site]:
    document = {**DOCUMENT, "redis": {"url": redis_url, "prefix": redis_prefix}}
    settings = parse(document)
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml(document))
    lines = [json.dumps(event).encode() for event in visits(3, 250, FIRST_MS, DAYS, 0.2, 1)]
    records = records_of_log(lines, settings, partitions=2)
    store = RedisStore(settings.redis)
    run = await start(store, settings, 2)
    for chunk in chunks_of(to_log(records), 5000):
        run.engines.feed(chunk)
    run.engines.finish()
    for number in range(2):
        await commit(store, run, number)
    exporter = Exporter(settings, store)
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    port = await listen(runner, HOST, 0)
    yield Site(f"http://{HOST}:{port}", config, settings, records, run.engines)
    await runner.cleanup()


async def said(site: Site, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """What the command prints, beside the loop of the exporter."""
    command = ["readout", *words, "-c", str(site.config)]
    code = await asyncio.to_thread(main, command)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


async def test_command_api_and_gauges_say_the_same(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = await site.get("/api/experiments/ranker")
    assert status == 200
    code, out, _ = await said(site, capsys, "ranker", "--json")
    assert code == 0
    assert json.loads(out) == document
    assert len(document["history"]) == DAYS
    assert document["recommendation"]["action"] in list(Action)
    assert next(metric["role"] for metric in document["metrics"]) == "primary"
    assert document["first"] == FIRST.isoformat()
    _, readings = await site.get("/api/readings?experiment=ranker&at=stream")
    gauges = {}
    for r in readings["readings"]:
        labels = sorted((k, v) for k, v in r["labels"].items() if k != "experiment")
        gauges[r["name"], *labels] = r["value"]
    for arm, users in document["users"].items():
        assert gauges["streamer_experiment_users", ("arm", arm)] == users
    for metric in document["metrics"]:
        (comparison,) = metric["comparisons"]
        lift = comparison["relative"]
        for interval in ("fixed", "anytime"):
            at = (("arm", "B"), ("interval", interval), ("metric", metric["name"]))
            of = {"lift": lift["value"], "lower": lift[interval]["low"]}
            of |= {"upper": lift[interval]["high"]}
            for name, value in of.items():
                assert gauges[f"streamer_experiment_{name}_ratio", *at] == value
        last = document["history"][-1]["metrics"][metric["name"]]["B"]
        assert last == lift


async def test_command_and_api_explore_the_same(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = await site.get("/api/experiments/ranker?by=surface")
    code, out, _ = await said(site, capsys, "ranker", "--by", "surface", "--json")
    assert (status, code) == (200, 0)
    assert json.loads(out) == document
    assert set(document["values"]) == {"home", "search", "product"}
    _, whole = await site.get("/api/experiments/ranker")
    for arm, users in whole["users"].items():
        assert users == sum(its["users"][arm] for its in document["values"].values())
    _, listed = await site.get("/api/experiments")
    assert [each["explore"] for each in listed["experiments"]] == [["surface"], []]


async def test_the_table_has_a_verdict_for_each_metric(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = await said(site, capsys, "ranker")
    assert code == 0
    assert "ranker: B against A (variant)" in out
    words = " ".join(out.split())
    assert ", planned 50.0%; p = " in words
    assert " at any look, " in words
    assert " at one look)." in words
    assert "B: Days before: The lift and its ranges are adjusted (CUPED): behaviour in the" in words
    assert "B: Days until a change would be found: 1%: " in words
    _, document = await site.get("/api/experiments/ranker")
    advice = document["recommendation"]
    assert f"ranker: {advice['sentence']}. {advice['reason']}" in words
    for metric in document["metrics"]:
        assert metric["name"] in out
        (comparison,) = metric["comparisons"]
        assert f"B: {comparison['pill']['words']}." in out
        for lift in (comparison["lift"], comparison["lift"]["unadjusted"]):
            assert lift["text"] in out
    code, out, _ = await said(site, capsys, "later")
    assert (code, "starts on 2025-07-12" in out) == (0, True)


async def test_some_days(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = accept(site.records, site.settings)
    joins = join(verdict, site.settings)
    first = (FIRST_MS // 86_400_000) + 1
    expected = range_truth(verdict, joins, site.settings, "ranker", first, first)
    code, out, _ = await said(
        site, capsys, "ranker", "--from", "2025-06-03", "--to", "2025-06-03", "--json"
    )
    assert code == 0
    document = json.loads(out)
    assert (document["first"], document["last"]) == ("2025-06-03", "2025-06-03")
    for metric in document["metrics"]:
        for arm in metric["arms"]:
            truth = expected[metric["name"], arm["name"]]
            assert arm["users"] == truth.n
            unit = 1 if metric["name"] == "ctr_ratio" else 10**6
            assert arm["value"] == pytest.approx(truth.x / truth.y / unit, rel=1e-12)


async def test_what_is_not_there(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = await said(site, capsys, "none")
    assert (code, "no experiment 'none'; the settings have ranker, later" in err) == (2, True)
    code, _, err = await said(site, capsys, "ranker", "--from", "2025-06-01")
    assert (code, "--from 2025-06-01: experiment 'ranker' has the days from 2025-06-02" in err) == (
        2,
        True,
    )
    code, _, err = await said(site, capsys, "later", "--to", "2025-07-13")
    assert (code, "starts only on 2025-07-12" in err) == (2, True)
    code, _, err = await said(site, capsys, "ranker", "--to", "2025-06-30")
    message = "--to 2025-06-30: experiment 'ranker' has events up to 2025-06-05 so far"
    assert (code, message in err) == (2, True)
    code, _, err = await said(site, capsys, "ranker", "--to", "soon")
    assert (code, "'soon' is not a day" in err) == (2, True)
    status, answer = await site.get("/api/experiments/none")
    assert (status, "no experiment 'none'" in answer["error"]) == (404, True)
    paths = {"/api/experiments": "'only'", "/api/experiments/ranker": "'by' or 'across'"}
    for path, known in paths.items():
        status, answer = await site.get(f"{path}?surface=home")
        message = f"unknown parameter 'surface': {path} takes {known}"
        assert (status, answer["error"]) == (400, message)
    status, answer = await site.get("/api/explain?metric=cvr")
    assert (status, "ctr_ratio over 24h" in answer["error"]) == (404, True)
    status, answer = await site.get("/api/explain?by=x")
    assert (status, "'by'" in answer["error"]) == (400, True)


async def test_alerts_and_why_they_moved(site: Site) -> None:
    status, answer = await site.get("/api/alerts")
    assert status == 200
    of = {(a["alert"], a["segment"]["variant"]): a for a in answer["alerts"]}
    assert {key for key in of if key[0] == "ctr"} >= {("ctr", "all"), ("ctr", "A"), ("ctr", "B")}
    assert of["days", "all"]["checks"]["metric"]["status"] in (
        "no baseline",
        "within the tolerance",
        "too little data",
    )
    (alert, _) = site.settings.alerts
    sums = series_of(site.records, site.settings, alert)
    newest = max(p.stream_ms for p in site.engines.partitions) * PANES // alert.window_ms
    now, before = (window(sums, newest - shift) for shift in (0, PANES))
    status, found = await site.get("/api/explain?metric=ctr&window=24h")
    assert status == 200
    total = {name: group_sums(w, None) for name, w in (("now", now), ("then", before))}
    for name, whole in total.items():
        assert found[name] == pytest.approx(float(Fraction(sum(whole.x), sum(whole.y))), rel=1e-12)
    assert found["mix"] + found["rate"] == pytest.approx(found["change"], rel=1e-9)
    parts = sum(s["mix"] + s["rate"] for s in found["segments"])
    assert parts == pytest.approx(found["change"], rel=1e-9)
    assert {s["segment"] for s in found["segments"]} == {"A", "B"}
    assert of["ctr", "all"]["checks"]["metric"]["value"] == found["now"]


async def test_health(site: Site) -> None:
    status, found = await site.get("/api/health")
    assert status == 200
    assert found["partitions"] == 2
    assert found["dimensions"] == ["variant", "surface"]
    assert found["windows"] == ["24h"]
    assert found["is_ready"] is False  # nobody works on it
