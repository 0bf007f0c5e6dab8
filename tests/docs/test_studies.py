"""Studies, which nothing else looks at, still find what they import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

STUDIES = sorted((Path(__file__).parents[2] / "benchmarks" / "studies").glob("*.py"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_can_be_imported(path: Path) -> None:
    importlib.import_module(f"benchmarks.studies.{path.stem}")


def test_there_are_studies() -> None:
    assert len(STUDIES) > 15
