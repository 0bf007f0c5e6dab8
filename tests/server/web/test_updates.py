"""What changes on the page while somebody looks, and what stays."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Keys

from streamer.testing.embedded import EmbeddedRedis
from tests.server.web.conftest import (
    DAYS,
    EXPERIMENT,
    HURRY,
    later,
    open_page,
    settings_of,
)
from tests.support.browser import Browser
from tests.support.lanes import long
from tests.support.servers import own_redis
from tests.support.site import Site
from tests.support.visitors import FIRST_MS, visits

pytestmark = long

EVERY_SECONDS = 5 / HURRY
HEALTH = "return document.querySelector('#health .words').textContent"
LOOKS = """return performance.getEntriesByType("resource")
  .filter((e) => e.name.endsWith("/api/health")).map((e) => e.startTime)"""
CELL = """return [...document.querySelectorAll("#segments tbody tr")].find(
  (row) => row.cells[0].textContent === "A").cells[1].innerText"""


@pytest.fixture
def page(hurried: Browser) -> Browser:
    return hurried


def impressions(site: Site) -> str:
    query = "window=24h&variant=A&surface=all&name=window_impressions"
    (reading,) = site.get(f"/api/readings?{query}")["readings"]
    return f"{reading['value']:,}"


def test_new_events_change_their_number_and_nothing_else(page: Browser, site: Site) -> None:
    page.resize(1280, 500)
    open_page(page, site)
    page.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    box = page.driver.find_element("id", "more-search")
    box.send_keys("ctr")
    page.run("scrollTo(0, 150); window.seen = document.querySelector('#segments tbody tr')")
    y = page.run("return scrollY")
    before = page.run(CELL)
    site.add(later(40))
    page.until(lambda: page.run(CELL) != before, "the cell changes")
    assert page.run(CELL) == impressions(site) != before
    assert page.run("return document.activeElement.id") == "more-search"
    assert box.get_attribute("value") == "ctr"
    assert page.run("return scrollY") == y > 0
    assert page.run("return window.seen.isConnected && document.querySelector('#more').open")
    assert page.run("return document.querySelectorAll('details:not([open])').length") == 0
    page.press("x")
    assert box.get_attribute("value") == "ctrx"


def test_looks_without_news_change_nothing(page: Browser, site: Site) -> None:
    open_page(page, site)
    page.run(
        "window.changes = []; new MutationObserver((all) => window.changes.push("
        "...all.map((one) => one.target.id || one.target.className || one.target.nodeName)))"
        ".observe(document.body, {subtree: true, childList: true, characterData: true})"
    )
    found = page.until(lambda: looks if len(looks := page.run(LOOKS)) > 3 else None, "four looks")
    gaps = [b - a for a, b in itertools.pairwise(found)]
    assert min(gaps) >= 1000 * EVERY_SECONDS - 20  # later under load, never sooner
    assert set(page.run("return window.changes")) <= {"health-detail"}  # "the last event … ago"


def test_only_the_health_line_is_announced(page: Browser, site: Site) -> None:
    open_page(page, site)
    ids = "return [...document.querySelectorAll('[aria-live], [role=status], [role=alert]')]"
    assert page.run(f"{ids}.map((e) => e.id)") == ["health-state"]


def test_pause_and_resume(page: Browser, site: Site) -> None:
    open_page(page, site)
    button = page.driver.find_element("id", "pause")
    button.send_keys(Keys.SPACE)
    assert button.accessible_name == "Resume updates"
    assert page.text("#as-of").startswith("Updates are paused. Values as of ")
    before = page.run(CELL)
    site.add(later(7, "paused"))
    time.sleep(2 * EVERY_SECONDS)
    assert page.run(CELL) == before
    button.send_keys(Keys.SPACE)
    page.until(lambda: page.run(CELL) != before, "the cell changes")
    assert button.accessible_name == "Pause updates"
    assert not page.is_shown("#as-of")


def test_nothing_is_asked_for_while_hidden(page: Browser, site: Site) -> None:
    open_page(page, site)
    hide = (
        "Object.defineProperty(document, 'hidden', {get: () => arguments[0], configurable: true})"
    )
    announce = "document.dispatchEvent(new Event('visibilitychange'))"
    looks = "return performance.getEntriesByType('resource').length"
    page.run(f"const [is] = arguments; {hide.replace('arguments[0]', 'is')}; {announce}", True)
    time.sleep(0.3)
    before = page.run(looks)
    time.sleep(2 * EVERY_SECONDS)
    assert page.run(looks) == before
    page.run(f"const [is] = arguments; {hide.replace('arguments[0]', 'is')}; {announce}", False)
    page.until(lambda: page.run(looks) > before, "it asks again")


def test_lag_is_spelled_out(page: Browser, site: Site) -> None:
    open_page(page, site)
    assert page.run(HEALTH) == "Up to date"
    site.lag = {"impressions/0": 12_000, "impressions/1": 345, "clicks/0": 0}
    try:
        expected = r"Behind( [\w ]+)?: 12,345 records wait"  # for how long, where the rate is known
        page.until(lambda: re.fullmatch(expected, page.run(HEALTH)), expected)
    finally:
        site.lag = {}
    page.until(lambda: page.run(HEALTH).startswith("Up to date"), "live again")


def test_a_site_whose_workers_stopped(page: Browser, redis: EmbeddedRedis) -> None:
    with Site(settings_of(redis, "stopped", experiments=[EXPERIMENT])) as site:
        site.add(visits(8, 40, FIRST_MS, DAYS, 0.1))
        open_page(page, site)
        assert page.text("#live-title") == "Live windows"
        site.has_stopped = True
        site.call(site.store.leave("worker:1"))
        page.until(lambda: page.run(HEALTH) == "Stopped: no worker is running", "stopped")
        assert page.text("#live-title").startswith("Windows as of ")
        old = "Values as of "  # once all that was asked for has come
        page.until(lambda: page.text("#as-of").startswith(old), old)
        assert "past" in page.run("return document.body.className")


# Away ------------------------------------------------------------------------------------------


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[tuple[EmbeddedRedis, Site]]:
    """A site over a Redis that may be killed."""
    options = {"appendfsync": "always"}
    with own_redis(tmp_path / "redis", appendonly=True, options=options) as redis:
        settings = settings_of(redis, "lonely", experiments=[EXPERIMENT])
        with Site(settings) as site:
            site.add(visits(6, 60, FIRST_MS, DAYS, 0.1))
            yield redis, site


def test_redis_away_and_back(page: Browser, lonely: tuple[EmbeddedRedis, Site]) -> None:
    redis, site = lonely
    open_page(page, site)
    before = page.texts("#segments tbody tr"), page.texts("#experiments-table tbody tr")
    redis.kill()
    page.until(
        lambda: page.run(HEALTH).startswith("Cannot reach the store: "), "the error is shown"
    )
    assert (page.texts("#segments tbody tr"), page.texts("#experiments-table tbody tr")) == before
    assert "stale" in page.run("return document.body.className")
    assert page.text("#as-of").startswith("Values as of ")
    redis.start()
    page.until(lambda: page.run(HEALTH).startswith("Up to date"), "live again")
    page.until(lambda: not page.is_shown("#as-of"), "no date any more")
    assert page.run("return document.body.className") == ""


def test_the_exporter_away(page: Browser, redis: EmbeddedRedis) -> None:
    with Site(settings_of(redis, "short")) as site:
        page.open(site.url)
        page.until(lambda: page.is_shown("#no-events"), "the empty page")
    expected = "Cannot reach the exporter: it does not answer"
    page.until(lambda: page.run(HEALTH) == expected, expected)
