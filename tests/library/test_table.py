"""Tables and charts, as other libraries and people get them."""

from __future__ import annotations

import datetime
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import streamer

ROOT = Path(__file__).parents[2]
ROWS: dict[str, list[Any]] = {
    "variant": ["A", "<b>", None],
    "value": [0.25, None, 1234.5],
    "support": [1_000_000, 2, 3],
    "time": [datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)] * 3,
}


def test_other_libraries_get_the_same() -> None:
    table = streamer.Table(ROWS)
    assert polars.DataFrame(table.to_dicts()).equals(table.to_polars())
    assert table.to_polars()["support"].to_list() == ROWS["support"]
    assert table.to_arrow().to_pydict() == ROWS
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["support"].tolist() == ROWS["support"]
    assert frame.shape == (3, 4)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    table = streamer.Table(ROWS)
    for call, package in (
        (table.to_pandas, "pandas"),
        (table.to_polars, "polars"),
        (table.to_arrow, "pyarrow"),
    ):
        with pytest.raises(streamer.UsageError, match=f"needs {package}, which is not installed"):
            call()


def test_people_read_a_table() -> None:
    table = streamer.Table(ROWS)
    assert repr(table).splitlines()[1] == "A           0.25  1,000,000  2026-01-02 03:04:00"
    html = table._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    ElementTree.fromstring(f"<div>{html}</div>")
    long = streamer.Table({"value": list(range(1000))})
    assert len(repr(long).splitlines()) < 70
    assert "1,000 rows, of which 60 are shown" in repr(long)
    assert repr(streamer.Table({"value": []})) == "value"
    with pytest.raises(ValueError, match="all need as many"):
        streamer.Table({"a": [1], "b": []})
    with pytest.raises(KeyError, match="no column 'c'"):
        _ = table["c"]
    assert table[-1]["support"] == 3
    assert table[0:2] == table.to_dicts()[:2]
