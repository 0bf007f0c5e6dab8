"""The pictures of the documentation: ``make pictures`` draws them, those of the demo with
``python -m tests.docs.pictures``.

docs/demo.svg is what the demo shows in the end; docs/web.png is its page after a minute. Each holds
a digest of the files that it shows, by which a test knows whether they have changed since.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import re
import struct
import threading
import time
import zlib
from pathlib import Path
from unittest.mock import patch

from rich.console import Console

from streamer.cli import demo
from streamer.testing.embedded import HOST, free_port
from tests.support.browser import browser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DEMO_SECONDS = 75.0
"""How long the demo runs; for the last third of it the page is open."""
DEMO_COLUMNS = 80
WIDTH, HEIGHT = 1280, 1400
DRAWN_FROM = {
    "demo.svg": "streamer/cli/demo.py streamer/cli/demo_log.py",
    "web.png": "streamer/cli/demo_log.py streamer/server/web/[!s]*.js streamer/server/web/s[!c]*.js"
    " streamer/server/web/index.html streamer/server/web/[!s]*.css streamer/server/web/style.css",
}
"""Picture → the files that it shows, as patterns."""
_MARK = "Drawn from"


def main() -> None:
    """Make both pictures of one run of the demo."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs.pictures", description=__doc__)
    parser.add_argument("--seconds", type=float, default=DEMO_SECONDS, help="more if slow")
    seconds, port = parser.parse_args().seconds, free_port()
    page = threading.Thread(target=draw_page, args=(DOCS / "web.png", port, seconds))
    page.start()
    console = Console(record=True, file=io.StringIO(), width=DEMO_COLUMNS)
    with patch.object(demo, "Console", lambda: console):
        demo.main(argparse.Namespace(kafka=None, rate=200.0, port=port, seconds=seconds))
    text = console.export_svg(title="streamer demo")
    text = f"{text.rstrip()}\n<!-- {_MARK} {digest('demo.svg')} -->\n"
    (DOCS / "demo.svg").write_text(text, encoding="utf-8")
    page.join()


def digest(name: str) -> str:
    """Of the files that a picture shows."""
    found = hashlib.sha256()
    for pattern in DRAWN_FROM[name].split():
        for path in sorted(ROOT.glob(pattern)):
            found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def drawn_from(path: Path) -> str:
    """The digest that a picture holds; "" where it holds none."""
    found = re.search(_MARK.encode() + rb"[\0 ]([0-9a-f]{64})", path.read_bytes())
    return found[1].decode() if found else ""


def marked(png: bytes, text: str) -> bytes:
    """A PNG with a text before its last chunk, which nobody sees."""
    chunk = b"tEXt" + f"{_MARK}\0{text}".encode()
    size, check = struct.pack(">I", len(chunk) - 4), struct.pack(">I", zlib.crc32(chunk))
    return png[:-12] + size + chunk + check + png[-12:]


def draw_page(path: Path, port: int, seconds: float) -> None:
    """The upper part of the page, as a wide window shows it, near the end of the demo."""
    time.sleep(seconds * 2 / 3)
    with browser() as window:
        window.prefer(color_scheme="light")
        window.resize(WIDTH, HEIGHT)
        window.open(f"http://{HOST}:{port}/")
        window.until(
            lambda: window.is_shown("#experiments-table a"), "the page is complete", seconds / 3
        )
        time.sleep(2.0)  # until everything has been drawn
        shot = window.command("Page.captureScreenshot", format="png")
        path.write_bytes(marked(base64.b64decode(shot["data"]), digest(path.name)))


if __name__ == "__main__":
    main()
