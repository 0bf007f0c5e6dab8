"""One browser, one Redis and the sites of the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.testing.embedded import EmbeddedRedis
from tests.server.web.documents import odd_documents
from tests.support.browser import Browser, browser
from tests.support.required import require
from tests.support.rollups import every
from tests.support.servers import own_redis
from tests.support.site import Demo, Documents, Served, Site
from tests.support.visitors import DAY_MS, FIRST_MS, experiment, visits

COMPLETE = "return !document.body.matches('.loading, .waiting')"
DAYS, USERS = 3, 320
HURRY = 5
"""So many times as fast do timers run where a test has to wait for them."""
EXPERIMENT = experiment(
    covariate_days=1,
    explore=["surface"],
    metrics=[
        {"name": "ctr_ratio"},
        {"name": "ndcg_ratio@10", "margin": 0.5},
        {"name": "dwell_mean_seconds", "direction": "lower"},
    ],
)
ALERTS = [
    {"name": "ctr", "window": "24h", "segments": ["surface"], "drop": 0.05},
    {"name": "order", "metric": "ndcg_ratio@10", "window": "24h", "baseline": "before"},
]
_HURRY = f"""
const real = window.setTimeout;
window.setTimeout = (work, ms, ...rest) => real(work, ms / {HURRY}, ...rest);
"""


def settings_of(redis: EmbeddedRedis, prefix: str, **more: Any) -> Settings:
    few = {
        "windows": {"lengths": ["1h", "24h"]},
        "metrics": every(
            *("variant", "surface"),
            k=[5, 10],
            families=["traffic", "engagement", "ranking", "scores", "intervals"],
        ),
    }
    return parse({"redis": {"url": redis.url, "prefix": prefix}, **few, **more})


@pytest.fixture(scope="session")
def window() -> Iterator[Browser]:
    """The browser of all tests."""
    require("Chromium")
    with browser() as found:
        yield found


@pytest.fixture
def page(window: Browser) -> Browser:
    """The browser at its usual size and in the light."""
    window.resize(1280)
    window.prefer(color_scheme="light")
    return window


@pytest.fixture
def hurried(page: Browser) -> Iterator[Browser]:
    """The same, with faster timers on the pages that are opened."""
    added = page.command("Page.addScriptToEvaluateOnNewDocument", source=_HURRY)
    yield page
    page.command("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


def open_page(page: Browser, site: Served, path: str = "/") -> None:
    """Load the page, and wait until all is shown."""
    page.open(site.url + path)
    page.until(lambda: page.run(COMPLETE) and page.is_shown("#segments"), "all is shown")


def unfold(page: Browser) -> None:
    """Open everything that can be disclosed."""
    page.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")


@pytest.fixture(scope="session")
def redis() -> Iterator[EmbeddedRedis]:
    """A Redis that nothing else uses."""
    with own_redis() as server:
        yield server


@pytest.fixture(scope="module")
def site(redis: EmbeddedRedis, request: pytest.FixtureRequest) -> Iterator[Site]:
    """An exporter, three days of visitors of two variants, and an experiment."""
    prefix = f"site-{request.module.__name__.rpartition('.')[2]}"
    with Site(settings_of(redis, prefix, experiments=[EXPERIMENT], alerts=ALERTS)) as made:
        made.add(visits(5, USERS, FIRST_MS, DAYS, 0.5, covariate_days=1))
        yield made


@pytest.fixture(scope="session")
def told() -> Iterator[Demo]:
    """The page of the demo."""
    with Demo() as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[Documents]:
    """The page over documents that a test gives."""
    with Documents({}) as made:
        yield made


@pytest.fixture
def documents(served: Documents) -> Documents:
    """The page over an experiment of three arms, and a segment of an odd name."""
    served.documents = odd_documents()
    return served


def open_documents(page: Browser, documents: Documents) -> None:
    """Load the page, and wait for its first experiment, whatever that says."""
    page.open(documents.url)
    page.until(lambda: page.is_shown("#experiments-table a"), "the experiments")


def later(count: int, user: str = "new") -> list[dict[str, Any]]:
    """Impressions of variant A with a click each, after all visits."""
    end_ms = FIRST_MS + DAYS * DAY_MS
    found: list[dict[str, Any]] = []
    for i in range(count):
        same = {"user_id": f"{user}{i}", "request_id": "r", "item_id": "i1"}
        segment = {"variant": "A", "surface": "home"}
        shown = {"type": "impression", "ts": end_ms + i, **same, **segment, "position": 1}
        found += [shown, {"type": "click", "ts": end_ms + 1000 + i, **same}]
    return found
