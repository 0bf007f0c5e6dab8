"""The pictures of the documentation: ``python -m tests.docs.pictures`` makes them.

docs/demo.svg is what the demo shows in the end; docs/web.png is its page after a minute.
"""

from __future__ import annotations

import argparse
import base64
import io
import threading
import time
from pathlib import Path
from unittest.mock import patch

from rich.console import Console

from streamer.cli import demo
from streamer.testing.embedded import HOST, free_port
from tests.support.browser import browser

DOCS = Path(__file__).parents[2] / "docs"
DEMO_SECONDS, PAGE_SECONDS = 75.0, 60.0
DEMO_COLUMNS = 80
WIDTH, HEIGHT = 1280, 1400


def main() -> None:
    """Make both pictures of one run of the demo."""
    port = free_port()
    page = threading.Thread(target=draw_page, args=(DOCS / "web.png", port))
    page.start()
    console = Console(record=True, file=io.StringIO(), width=DEMO_COLUMNS)
    with patch.object(demo, "Console", lambda: console):
        demo.main(argparse.Namespace(kafka=None, rate=200.0, port=port, seconds=DEMO_SECONDS))
    text = console.export_svg(title="streamer demo")
    (DOCS / "demo.svg").write_text(text, encoding="utf-8")
    page.join()


def draw_page(path: Path, port: int) -> None:
    """The upper part of the page, as a wide window shows it."""
    time.sleep(PAGE_SECONDS - 10)
    with browser() as window:
        window.prefer(color_scheme="light")
        window.resize(WIDTH, HEIGHT)
        window.open(f"http://{HOST}:{port}/")
        window.until(lambda: window.is_shown("#experiments-table a"), "the page is complete")
        time.sleep(2.0)  # until everything has been drawn
        shot = window.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
