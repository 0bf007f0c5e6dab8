"""When a browser paints the page of an exporter: medians of loads without a cache."""

from __future__ import annotations

import statistics
import time
from typing import Any

from streamer.errors import StreamerError
from tests.support.browser import Browser, browser

LOADS = 10
SETTLED_SECONDS = 0.5
"""After all is filled: the largest paint so far is the last one then."""
FILLED = "#segments tbody tr|#course .legend li|#alerts tbody tr|.card:last-child h4"
"""One of each section, and the course."""
_WATCH = """
const wanted = "FILLED".split("|");
const watch = () => {
  if (window.filledMs === undefined && wanted.every((each) => document.querySelector(each))) {
    window.filledMs = performance.now();
  }
};
new MutationObserver(watch).observe(document, { childList: true, subtree: true });
new PerformanceObserver((list) => { window.largestMs = list.getEntries().at(-1).startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
"""
_TIMES = """return [
  performance.getEntriesByName("first-contentful-paint")[0].startTime, window.largestMs,
  window.filledMs]"""
_WHOLE = "#segments tfoot td[data-title=Impressions] .value"
_NAMES = ("first_contentful_paint_ms", "largest_contentful_paint_ms", "filled_ms")


def paints(url: str, filled: str = FILLED) -> tuple[dict[str, Any] | str, set[int]]:
    """Milliseconds from the start of a load, and the impressions that the page has shown; where
    there is no browser, what is missing instead. ``filled``: what there has to be of each part."""
    try:
        with browser() as window:
            window.resize(1280)
            window.command(
                "Page.addScriptToEvaluateOnNewDocument", source=_WATCH.replace("FILLED", filled)
            )
            loads = [_load(window, url) for _ in range(1 + LOADS)][1:]
    except StreamerError as error:
        return f"not measured: {error}", set()
    columns = zip(*(times for times, _ in loads), strict=True)
    medians = [round(statistics.median(column), 1) for column in columns]
    return {**dict(zip(_NAMES, medians, strict=True)), "loads": LOADS}, {n for _, n in loads}


def _load(window: Browser, url: str) -> tuple[list[float], int]:
    window.command("Network.clearBrowserCache")
    window.open(url)
    window.until(lambda: window.run("return window.filledMs !== undefined"), "all is filled")
    time.sleep(SETTLED_SECONDS)
    return window.run(_TIMES), int(window.text(_WHOLE).replace(",", ""))
