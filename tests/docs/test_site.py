"""The pages of docs/ as a site: links and anchors hold, and nothing is loaded from outside."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.lanes import long
from tests.support.required import require_package

ROOT = Path(__file__).parents[2]
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""Elements that a browser loads something for, and the attribute that says what."""
NAVIGATION = {"canonical", "next", "prev"}
"""Kinds of `link` that a browser does not load."""
OUTSIDE = ("http:", "https:", "//")


def built(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """As ``make docs`` does it."""
    require_package("mkdocs", "material", extra="docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    return subprocess.run(
        [*command, str(folder)], check=False, capture_output=True, text=True, cwd=root, timeout=100
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    done = built(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@long
def test_a_link_to_nowhere_fails(tmp_path: Path) -> None:
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n[no page](none.md) [no section](events.md#none) [no file](../none.yml)\n")
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    for target in ("none.md", "events.md#none", "../none.yml"):
        assert f"'{target}'" in done.stderr


class Loaded(HTMLParser):
    """What a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and NAVIGATION & set((values.get("rel") or "").split()):
            return
        if values.get(LOADING.get(tag, "")):
            self.found.append(str(values[LOADING[tag]]))


def loaded(page: Path) -> Iterator[str]:
    parser = Loaded()
    parser.feed(page.read_text(encoding="utf-8"))
    yield from parser.found


def test_every_page_is_there(site: Path) -> None:
    pages = {p.relative_to(ROOT / "docs").with_suffix(".html") for p in ROOT.glob("docs/**/*.md")}
    pages.remove(Path("package.html"))  # for package indexes
    found = {path.relative_to(site) for path in site.rglob("*.html")}
    assert pages <= found
    assert found - pages == {Path("404.html"), Path("decisions/index.html")}


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert any(list(loaded(page)) for page in pages)
    for page in pages:
        assert [x for x in loaded(page) if x.startswith(OUTSIDE)] == [], page


def test_no_style_sheet_loads_from_outside(site: Path) -> None:
    sheets = list(site.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        assert not any(f"url({quote}{o}" in text for quote in ("", "'", '"') for o in OUTSIDE)
        assert "@import" not in text


def test_what_pages_load_is_there(site: Path) -> None:
    targets = [(page, target) for page in site.rglob("*.html") for target in loaded(page)]
    assert targets
    for page, target in targets:
        if not target.startswith(("data:", "/", "#")):
            assert (page.parent / target.split("?")[0]).exists(), f"{page.name}: {target}"


def test_links_out_of_the_folder_are_plain_text(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert any("docker-compose.yml" in page.read_text(encoding="utf-8") for page in pages)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for name in ("docker-compose.yml", "alertmanager.yml"):
            assert f'{name}"' not in text, page
