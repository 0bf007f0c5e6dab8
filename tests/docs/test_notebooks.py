"""Notebooks run, and print what stands in them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import polars
import pytest

import streamer
from streamer.library.live import connect
from tests.docs.notebooks import PATHS, demo_state, executed, texts
from tests.docs.test_docs import blocks
from tests.library.test_live import fill
from tests.library.test_reading import EVENTS, SETTINGS
from tests.support.lanes import long, shortened


@pytest.fixture(scope="module")
def folder(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where notebooks run: with the settings of a demo, whose state is in Redis."""
    found = tmp_path_factory.mktemp("notebooks")
    demo_state(redis_url, found)
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/use-it-from-python.md"])
def test_python_of_the_pages_runs(
    page: str, redis_url: str, redis_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**SETTINGS, "redis": {"url": redis_url, "prefix": redis_prefix}}
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    (tmp_path / "events.ndjson").write_text("".join(f"{json.dumps(e)}\n" for e in EVENTS))
    polars.DataFrame(EVENTS).write_parquet(tmp_path / "events.parquet")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in blocks("python", page):
        if "log" in names:  # the experiment is declared in these settings
            names["log"] = streamer.read("events.parquet", settings)
        monkeypatch.setattr(streamer, "connect", lambda _: connect(settings))
        exec(code, names)
    assert names["log"].metrics("ctr", by="variant")["value"]


@long
@pytest.mark.parametrize("path", shortened(PATHS[::-1]), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_prints_what_stands_in_it(path: Path, folder: Path) -> None:
    stored = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    found, expected = texts(executed(path, folder)), texts(stored)
    assert len(expected) > 5
    assert found == expected, "run `python -m tests.docs.notebooks`"
    for cell in stored.cells:
        errors = [o for o in cell.get("outputs", ()) if o.output_type == "error"]
        assert not errors
