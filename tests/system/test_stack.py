"""The whole stack of docker-compose.yml runs, and every query of every dashboard has data."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import redis

from grafana.build import DASHBOARDS
from streamer.metrics.catalogue import FAMILIES
from streamer.settings.experiments import DAY_MS
from streamer.sources.synthetic import Traffic, generate
from streamer.testing.embedded import HOST
from tests.support.compose import (
    ROOT,
    SCRAPE_SECONDS,
    WITHOUT_PROGRAM,
    Stack,
    entrypoint,
    services,
)
from tests.support.lanes import long
from tests.support.required import require
from tests.system.topics import configure

pytestmark = [pytest.mark.integration, long]

TOPICS = ("impressions", "clicks", "conversions", "sessions")
PAST_SECONDS = 1200
PAST_RATE, PAST_DAYS_RATE = 60, 2
PAST_DAYS = 15
"""A whole week to compare with, and one after it."""
EVERYTHING = {
    "STREAMER_METRICS__FAMILIES": json.dumps([family.name for family in FAMILIES]),
    "STREAMER_POLICIES": '[{ name = "top", positions = [0.9, 0.1] }]',
    "STREAMER_CUSTOM": '[{ name = "t", kind = "clicks", field = "dwell_ms", quantiles = true }]',
    "STREAMER_ITEMS__WINDOWS": '["5m"]',
    "STREAMER_WINDOWS__DAY_BEFORE": '["1h"]',
    "STREAMER_COMPOSITES": '[{ name = "health", parts = [{ metric = "ctr_ratio" },'
    ' { metric = "dwell_mean_seconds", against = "target", target = 60 }] }]',
}
"""Families that are off by default have panels, too."""
ARRIVED_SECONDS = 45.0
"""Longest wait for a query to have data; most have it at once."""
INTERVAL = f"{5 * SCRAPE_SECONDS}s"


NEVER_HERE = ("Counted so far, of what was added-A", "Sources-A")
"""Queries of panels without data: no setting was changed while state was kept, and no topic is of
another shape."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services but Grafana; the topics hold twenty minutes when the workers begin."""
    require("Apache Kafka", "Redis", "Prometheus", "Alertmanager", "wget")
    found = Stack(tmp_path_factory.mktemp("stack"))
    for service in found.services.values():
        if "STREAMER_KAFKA__BROKERS" in (given := service.get("environment", {})):
            service["environment"] = {**given, **EVERYTHING}
    try:
        found.start({"topics": lambda: send_past(found)})
        send_probes(found)
        yield found
    finally:
        found.stop()


def send_past(stack: Stack) -> None:
    """As ``docker compose run -T traffic produce - < past.ndjson``: around this time on past days,
    and until now. The topics keep two days only."""
    asyncio.run(configure(f"{HOST}:{stack.ports[9092]}", TOPICS, {"retention.ms": "-1"}))
    start_ms = int((time.time() - PAST_SECONDS) * 1000)
    lines: list[bytes] = []
    for day in range(PAST_DAYS, 0, -1):
        then_ms = start_ms - day * DAY_MS
        then = Traffic(start_ms=then_ms, events_per_second=PAST_DAYS_RATE, users=2000)
        lines += [line for _, line in generate(then, 2 * PAST_SECONDS * PAST_DAYS_RATE)]
    traffic = Traffic(start_ms=start_ms, events_per_second=PAST_RATE, users=2000)
    lines += [line for _, line in generate(traffic, PAST_SECONDS * PAST_RATE)]
    send(stack, lines)


def send_probes(stack: Stack) -> None:
    """Slates with a held-out item, a brute-force list and propensities, one of which makes a weight
    that is clipped: synthetic traffic has none of it."""
    slate = {"type": "impression", "ts": int(time.time() * 1000), "surface": "home"}
    probe = {"held_out": "i2", "reference": ["i1", "i2", "i3"]}
    chances = {"i1": 0.001, "i2": 0.5}
    shown = {"items": [{"item_id": item, "propensity": p, "reward_estimate": 0.1, "score": 0.9,
                        "item_category": item}
                       for item, p in chances.items()]}  # fmt: skip
    ids = [{"user_id": f"probe{i}", "request_id": f"probe{i}", "variant": "AB"[i % 2]}
           for i in range(40)]  # fmt: skip
    send(stack, [json.dumps(slate | probe | shown | some).encode() for some in ids])


def send(stack: Stack, lines: list[bytes]) -> None:
    log = stack.directory / "some.ndjson"
    log.write_bytes(b"\n".join(lines))
    command = [*stack.environment("traffic"), "streamer", "produce", "-"]
    with log.open("rb") as lines_of_log:
        done = subprocess.run(command, check=False, capture_output=True, stdin=lines_of_log)
    assert done.returncode == 0, done.stderr


def asked(stack: Stack, path: str, **parameters: str) -> Any:
    """What Prometheus' API answers."""
    url = f"{stack.url(9090)}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{parameters}: {error.read().decode()}") from error


def is_something(data: Any) -> bool:
    """Whether there is a value, or a series with one that is a number."""
    if isinstance(data, list):
        return bool(data)
    return any(series["value"][1] != "NaN" for series in data["result"])


def arrived(
    stack: Stack, path: str, enough: Callable[[Any], bool] = is_something, **parameters: str
) -> Any:
    """What Prometheus' API answers, once it is enough."""
    deadline = time.monotonic() + ARRIVED_SECONDS
    while not enough(data := asked(stack, path, **parameters)):
        assert time.monotonic() < deadline, f"not enough: {path} {parameters}: {data}"
        time.sleep(0.5)
    return data


def test_every_service_runs_and_is_healthy(stack: Stack) -> None:
    assert set(stack.running) == set(services()) - WITHOUT_PROGRAM
    assert {name: len(some) for name, some in stack.running.items() if len(some) > 1} == {
        "worker": 2
    }
    assert stack.exited == {"topics": 0}
    for some in stack.running.values():
        for container in some:
            assert "Traceback" not in container.said()


def test_redis_keeps_what_it_is_given(stack: Stack) -> None:
    with contextlib.closing(redis.Redis(host=HOST, port=stack.ports[6379])) as client:
        config: Any = client.config_get(
            "appendonly", "maxmemory-policy", "maxmemory", "appendfsync"
        )
        assert config == {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory": str(2 << 30),
            "maxmemory-policy": "noeviction",
        }


def test_streamer_check_finds_no_error(stack: Stack) -> None:
    """As ``docker compose exec exporter streamer check``."""
    command = [*stack.environment("exporter"), *entrypoint(), "check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ctr_arrives_in_prometheus(stack: Stack) -> None:
    query = 'streamer_ctr_ratio{job="streamer", window="5m", variant="all", surface="all"}'
    (series,) = arrived(stack, "query", query=query)["result"]
    assert 0.01 < float(series["value"][1]) < 0.1  # of A 0.040, of B 0.046 are clicked in the end


def test_both_workers_share_the_partitions(stack: Stack) -> None:
    query = 'count by (worker) (streamer_partition_owner_info{phase="owned"})'
    data = arrived(stack, "query", lambda found: len(found["result"]) == 2, query=query)
    owners = data["result"]
    assert sum(int(owner["value"][1]) for owner in owners) == 4


# Dashboards --------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A query of a panel, or of a template variable."""

    page: str
    title: str
    text: str


def pages() -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))}


def variables(page: Any) -> list[Any]:
    found: list[Any] = page["templating"]["list"]
    return found


def queries() -> Iterator[Asked]:
    for name, page in pages().items():
        for panel in page["panels"]:
            for target in panel.get("targets", ()):
                yield Asked(name, f"{panel['title']}-{target['refId']}", target["expr"])


def interpolated(stack: Stack, text: str, page: Any) -> str:
    """As Grafana does it, with the values that are chosen when the page is opened."""
    chosen = {"__rate_interval": INTERVAL}
    for variable in variables(page):
        value = variable["current"]["value"]
        values = value if isinstance(value, list) else [value]
        if values == [""]:  # then it is the first there is
            values = values_of(stack, filled_in(variable["query"], chosen))[:1]
        everything = values == ["$__all"]
        chosen[variable["name"]] = variable["allValue"] if everything else "|".join(values)
    return filled_in(text, chosen)


def filled_in(text: str, chosen: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], text)


def values_of(
    stack: Stack, query: str, enough: Callable[[Any], bool] = lambda found: True
) -> list[str]:
    """What a variable can be."""
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    assert found, query
    values: list[str] = arrived(stack, f"label/{found[2]}/values", enough, **{"match[]": found[1]})
    return values


@pytest.mark.parametrize("query", list(queries()), ids=lambda q: f"{q.page}-{q.title}")
def test_every_panel_has_data(stack: Stack, query: Asked) -> None:
    expr = interpolated(stack, query.text, pages()[query.page])
    assert "$" not in expr
    if query.title in NEVER_HERE:
        assert asked(stack, "query", query=expr)["result"] == []
        return
    arrived(stack, "query", query=expr)


@pytest.mark.parametrize(
    "query",
    [
        Asked(name, variable["name"], variable["query"])
        for name, page in pages().items()
        for variable in variables(page)
        if variable["type"] == "query" and variable["current"]["value"] != ""
    ],
    ids=lambda q: f"{q.page}-{q.title}",
)
def test_every_variable_has_values(stack: Stack, query: Asked) -> None:
    page = pages()[query.page]
    values = values_of(stack, interpolated(stack, query.text, page), is_something)
    (variable,) = [v for v in variables(page) if v["name"] == query.title]
    for value in (
        variable["current"]["value"] if variable["multi"] else [variable["current"]["value"]]
    ):
        assert value in {*values, "$__all"}, f"{query.title}: {value} of {values}"


def test_arms_take_the_variants_one_after_the_other(stack: Stack) -> None:
    """Hidden variables: each is the first value that its forerunners are not."""
    text = "$arm_1 $arm_2 $arm_3 $arm_4"
    assert interpolated(stack, text, pages()["ranking"]).split(" ") == ["A", "B", "", ""]
    panel = next(q for q in queries() if "(streamer_ndcg_ratio{" in q.text and "__arm" in q.text)
    expr = interpolated(stack, panel.text, pages()["ranking"])
    found = arrived(stack, "query", lambda data: len(data["result"]) == 3, query=expr)["result"]
    arms = {series["metric"]["__arm"]: series["metric"]["variant"] for series in found}
    assert arms == {"0": "all", "1": "A", "2": "B"}


def test_a_second_exporter_doubles_nothing(stack: Stack) -> None:
    """Every query folds what exporters share: none adds over `instance`."""
    for query in queries():
        if "streamer_" in query.text and "streamer:" not in query.text:
            assert re.search(r"\bmax(?: by \([\w, ]+\))?\s*\(", query.text), query


# Rules -------------------------------------------------------------------------------------------


def test_rules_are_evaluated_and_nothing_critical_fires(stack: Stack) -> None:
    groups = (
        arrived(stack, "query", query="streamer:events:rate10m") and asked(stack, "rules")["groups"]
    )
    rules = [rule for group in groups for rule in group["rules"]]
    assert rules
    assert [r["name"] for r in rules if r["health"] not in ("ok", "unknown")] == []
    firing = [
        r["name"] for r in rules if r.get("state") == "firing" and r["labels"]["severity"] != "info"
    ]
    assert firing == []


def test_scrapes_stay_far_below_their_limits(stack: Stack) -> None:
    text = (ROOT / "grafana" / "prometheus" / "prometheus.yml").read_text()
    limit = int(re.findall(r"sample_limit: (\d+)", text)[0])
    data = arrived(stack, "query", query='scrape_samples_scraped{job="streamer"}')
    (samples,) = [float(series["value"][1]) for series in data["result"]]
    assert 100 < samples < limit / 10


def test_it_stops_cleanly(stack: Stack) -> None:
    """The last test: workers and traffic end with 0 when they are told to."""
    for name in ("traffic", "worker", "exporter"):
        for container in stack.running[name]:
            assert container.told_to_stop() == 0, container.said()
    (traffic,) = stack.running["traffic"]
    assert "lines in Kafka" in traffic.said()
