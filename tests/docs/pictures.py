"""The pictures of the documentation: ``python -m tests.docs.pictures`` makes them.

docs/demo.svg is what the demo shows in the end; docs/web.png is the exporter's page over made-up
visitors, of whom fewer click in one surface on the last day.
"""

from __future__ import annotations

import argparse
import base64
import io
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from rich.console import Console

from streamer.cli import demo
from streamer.settings.load import parse
from tests.support.browser import browser
from tests.support.servers import own_redis
from tests.support.site import Site
from tests.support.visitors import DAY_MS, Event, visits

DOCS = Path(__file__).parents[2] / "docs"
DEMO_SECONDS = 75.0
DEMO_COLUMNS = 80
WIDTH = 1280
DAYS, BEFORE, USERS = 12, 3, 2500
LOST = 0.45
"""Share of the clicks that are missing in the broken surface."""


def main() -> None:
    """Make both pictures."""
    draw_demo(DOCS / "demo.svg")
    draw_page(DOCS / "web.png")


def draw_demo(path: Path) -> None:
    """The table that the demo ends with."""
    console = Console(record=True, file=io.StringIO(), width=DEMO_COLUMNS)
    with patch.object(demo, "Console", lambda: console):
        demo.main(argparse.Namespace(rate=200.0, port=0, seconds=DEMO_SECONDS))
    path.write_text(console.export_svg(title="streamer demo"), encoding="utf-8")


def draw_page(path: Path) -> None:
    """The whole page, as a wide window shows it."""
    now_ms = int(time.time() * 1000)
    first = datetime.now(UTC).date() - timedelta(days=DAYS - 1)
    first_ms = int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()) * 1000
    events = visits(3, USERS, first_ms, DAYS, 0.12, BEFORE)
    with own_redis() as redis, browser() as window:
        experiment = {
            "name": "new-ranker",
            "dimension": "variant",
            "control": "A",
            "split": {"A": 1, "B": 1},
            "start": first,
            "covariate_days": BEFORE,
            "metrics": [
                {"name": "ctr_ratio"},
                {"name": "conversion_value_per_user", "margin": 0.05},
            ],
        }
        alert = {"name": "ctr", "window": "24h", "segments": ["surface"]}
        settings = parse(
            {"redis": {"url": redis.url}, "experiments": [experiment], "alerts": [alert]}
        )
        with Site(settings) as site:
            site.add([e for e in broken(events, now_ms - DAY_MS) if e["ts"] <= now_ms])
            window.prefer(color_scheme="light")
            window.resize(WIDTH)
            window.open(f"{site.url}/?window=24h")
            window.until(lambda: window.is_shown("#why-split"), "the page is complete")
            time.sleep(2.0)  # until everything has been drawn
            height = int(window.run("return document.documentElement.scrollHeight"))
            window.resize(WIDTH, height)
            shot = window.command("Page.captureScreenshot", format="png")
            path.write_bytes(base64.b64decode(shot["data"]))


def broken(events: list[Event], since_ms: int) -> Iterator[Event]:
    """The events, without many of the last day's clicks on search results, and what follows."""
    dice = random.Random(5)
    surfaces: dict[str, str] = {}
    lost: set[tuple[str, str]] = set()
    for event in events:
        request = event["request_id"]
        if event["type"] == "impression":
            surfaces[request] = event["surface"]
            yield event
            continue
        place = request, event["item_id"]
        is_hit = event["ts"] > since_ms and surfaces[request] == "search"
        if is_hit and event["type"] == "click" and dice.random() < LOST:
            lost.add(place)
        if place not in lost:
            yield event


if __name__ == "__main__":
    main()
