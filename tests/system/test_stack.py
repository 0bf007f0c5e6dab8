"""The whole stack of docker-compose.yml runs, and every query of every dashboard has data."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import redis

from streamer.monitoring.files import boards
from streamer.testing.embedded import HOST
from tests.support import opened
from tests.support.all_cases import hold_for_all
from tests.support.compose import (
    ROOT,
    SCRAPE_SECONDS,
    WITHOUT_PROGRAM,
    Stack,
    entrypoint,
    services,
)
from tests.support.lanes import long
from tests.support.past_traffic import everything, stack_with_past
from tests.support.required import require

pytestmark = [pytest.mark.integration, long]

ARRIVED_SECONDS = 45.0
"""Longest wait for a query to have data; most have it at once."""
INTERVAL = f"{5 * SCRAPE_SECONDS}s"
PAGES = boards(everything(), "http://localhost:8000")
(_STATUS,) = (
    panel["targets"]
    for panel in opened.panels_of(PAGES["overview"])
    if panel["title"] == "Watched metrics: which one has moved?"
)
NEVER_HERE = ("Settings that are new: what has been counted for a shorter time?-A",)
"""Queries of panels without data: no setting was changed while state was kept."""
ONLY_WHAT_IS_WRONG = (
    *(f"Alerts: what is firing?-{ref}" for ref in "AB"),
    f"Watched metrics: which one has moved?-{chr(ord('A') + len(_STATUS) - 1)}",
    *(f"Duplicates and more: what is left out, or counted as other?-{ref}" for ref in "ABCDEF"),
)
"""Queries that have data only while something is."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services but Grafana; the topics hold twenty minutes when the workers begin."""
    require("Apache Kafka", "Redis", "Prometheus", "Alertmanager", "wget")
    found = stack_with_past(tmp_path_factory.mktemp("stack"))
    try:
        yield found
    finally:
        found.stop()


def asked(stack: Stack, path: str, **parameters: str) -> Any:
    """What Prometheus' API answers."""
    return opened.asked(stack.url(9090), path, **parameters)


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


def queries() -> Iterator[Asked]:
    for name, page in PAGES.items():
        for target in opened.targets(page):
            yield Asked(name, f"{target.panel['title']}-{target.ref}", target.expr)


def chosen(stack: Stack, name: str, **others: str) -> dict[str, str]:
    """Variables of a page when it is opened."""

    def values(label: str, series: str) -> list[str]:
        found: list[str] = arrived(
            stack, f"label/{label}/values", lambda _: True, **{"match[]": series}
        )
        return found

    return opened.opened(PAGES[name], values, __rate_interval=INTERVAL, **others)


def has_data(stack: Stack, query: Asked) -> None:
    expr = opened.filled_in(query.text, chosen(stack, query.page))
    if query.title in (*NEVER_HERE, *ONLY_WHAT_IS_WRONG):
        result = asked(stack, "query", query=expr)["result"]
        assert not result or query.title in ONLY_WHAT_IS_WRONG
        return
    arrived(stack, "query", query=expr)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PAGES)
def test_every_panel_has_data(stack: Stack, name: str) -> None:
    own = [query for query in queries() if query.page == name]
    hold_for_all(own, lambda query: has_data(stack, query), lambda query: query.title)


@pytest.mark.parametrize("name", PAGES)
def test_annotations_can_be_asked_for(stack: Stack, name: str) -> None:
    found = chosen(stack, name)
    for each in PAGES[name]["annotations"]["list"]:
        asked(stack, "query", query=opened.filled_in(each["expr"], found))


@pytest.mark.parametrize(
    "query",
    [
        Asked(name, variable["name"], variable["query"])
        for name, page in PAGES.items()
        for variable in page["templating"]["list"]
        if variable["type"] == "query" and variable["current"]["value"] != ""
    ],
    ids=lambda q: f"{q.page}-{q.title}",
)
def test_every_variable_has_values(stack: Stack, query: Asked) -> None:
    found = chosen(stack, query.page)
    series, label = opened.series_and_label(opened.filled_in(query.text, found))
    values = arrived(stack, f"label/{label}/values", is_something, **{"match[]": series})
    assert found[query.title] in values


def test_a_second_exporter_doubles_nothing(stack: Stack) -> None:
    """Every query folds what exporters share: none adds over `instance`."""
    found = [q for q in queries() if "streamer_" in q.text and "streamer:" not in q.text]
    assert found
    for query in found:
        assert re.search(r"\b(?:max|min)(?: by \([\w, ]+\))?\s*\(", query.text), query


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
