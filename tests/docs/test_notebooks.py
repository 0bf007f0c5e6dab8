"""Notebooks run, and print what stands in them."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.docs.notebooks import PATHS, demo_state, executed, texts


@pytest.fixture(scope="module")
def folder(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where notebooks run: with the settings of a demo, whose state is in Redis."""
    found = tmp_path_factory.mktemp("notebooks")
    demo_state(redis_url, found)
    return found


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_prints_what_stands_in_it(path: Path, folder: Path) -> None:
    stored = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    found, expected = texts(executed(path, folder)), texts(stored)
    assert len(expected) > 5
    assert found == expected, "run `python -m tests.docs.notebooks`"
    for cell in stored.cells:
        errors = [o for o in cell.get("outputs", ()) if o.output_type == "error"]
        assert not errors
