"""The pictures of the documentation show what the code draws now."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.docs import pictures

MEASURED = {"benchmarks-peers.svg", "how-to/scaling.svg"}
"""Those of ``python -m benchmarks.pictures``, of numbers that stand beside them."""


@pytest.mark.parametrize("name", pictures.DRAWN_FROM)
def test_pictures_are_newer_than_the_code_that_they_show(name: str) -> None:
    drawn = pictures.drawn_from(pictures.DOCS / name)
    assert drawn == pictures.digest(name), "draw them again: make pictures"


def test_a_picture_holds_what_it_was_drawn_from(tmp_path: Path) -> None:
    path, digest = tmp_path / "web.png", pictures.digest("web.png")
    png = (pictures.DOCS / "web.png").read_bytes()
    path.write_bytes(pictures.marked(png, digest))
    assert pictures.drawn_from(path) == digest != pictures.digest("demo.svg")
    with Image.open(path) as again, Image.open(pictures.DOCS / "web.png") as before:
        assert again.tobytes() == before.tobytes()


def test_each_picture_is_held() -> None:
    paths = [path for suffix in ("svg", "png") for path in pictures.DOCS.rglob(f"*.{suffix}")]
    names = {str(path.relative_to(pictures.DOCS)) for path in paths}
    assert names == {*pictures.DRAWN_FROM, *MEASURED}


def test_all_files_of_the_page_are_looked_at() -> None:
    patterns = pictures.DRAWN_FROM["web.png"].split()
    shown = {path.name for pattern in patterns for path in pictures.ROOT.glob(pattern)}
    web = pictures.ROOT / "streamer" / "server" / "web"
    page = {path.name for path in web.iterdir() if path.suffix in (".js", ".css", ".html")}
    assert page - shown == {f"scorecard.{suffix}" for suffix in ("js", "css", "html")}
