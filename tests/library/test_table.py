"""Tables and charts, as other libraries and people get them."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import streamer
from streamer.library.chart import axis
from tests.library.test_reading import EVENTS, SETTINGS
from tests.support.required import require

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


def test_a_chart_is_one_svg_with_a_line_for_each_segment(tmp_path: Path) -> None:
    log = streamer.read(EVENTS, SETTINGS)
    chart = log.history("ctr", by="variant").plot()
    root = ElementTree.fromstring(chart.svg)
    name = "{http://www.w3.org/2000/svg}"
    lines = [e for e in root.iter(f"{name}polyline") if "line" in e.get("class", "")]
    assert len(lines) == 2
    names = [e.text for e in root.iter(f"{name}text") if "name" in e.get("class", "")]
    assert sorted(map(str, names)) == ["A", "B"]
    assert list(root.iter(f"{name}polygon"))
    places = [float(x) for line in lines for x in line.get("points", "").replace(",", " ").split()]
    assert 0 <= min(places) <= max(places) <= 720
    chart.save(tmp_path / "ctr.svg")
    assert (tmp_path / "ctr.svg").read_text() == chart._repr_svg_() == chart.svg
    with pytest.raises(streamer.StreamerError, match="cannot write the chart: No such file"):
        chart.save(tmp_path / "nowhere" / "ctr.svg")


def test_an_axis_is_that_of_the_page() -> None:
    node = shutil.which("node")
    if node is None:
        require("node", "Node, which runs the page's own modules")
    cases: list[Any] = [
        [[0.03, 0.05], [0.02, 0.06]],
        [[0.01, 0.05], []],
        [[0, 0], []],
        [[0, 0], [0, 0.3]],
        [[], []],
        [[-3.5, 12], [-20, 40]],
        [[1e6, 1.01e6], [0.9e6, 1.2e6]],
        [[0.4], [0.39, 0.41]],
    ]
    module = (ROOT / "streamer/server/web/axis.js").as_uri()
    script = (
        f"import({json.dumps(module)}).then(({{ valueAxis }}) => console.log(JSON.stringify("
        f"{json.dumps(cases)}.flatMap(([v, b]) => "
        f"['number', 'percent'].map((form) => valueAxis(v, b, form))))))"
    )
    done = subprocess.run([str(node), "-e", script], capture_output=True, text=True, check=True)
    forms = [(*case, form) for case in cases for form in ("number", "percent")]
    for (values, ends, form), found in zip(forms, json.loads(done.stdout), strict=True):
        expected = (found["bottom"], found["top"], found["tick"])
        assert axis(values, ends, form) == pytest.approx(expected), (values, form)
