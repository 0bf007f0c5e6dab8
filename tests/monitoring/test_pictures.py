"""The pictures of the dashboards: legends, columns, and that every kind of panel can be drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.test_dashboards import PAGES, titled
from tests.pictures import named
from tests.support.drawing import Data, Line, Row, draw, properties, shown
from tests.support.lanes import shortened
from tests.support.opened import panels_of

SPAN = (0.0, 240.0)


def data(panel: Any) -> Data:
    """Two points, or one value, of every query."""
    chosen = {"by": "variant"}
    labels = {"variant": "A", "arm": "B", "alert": "ctr", "status": "dropped"}
    lines, rows, refs = [], [], {}
    for number, target in enumerate(panel["targets"]):
        name = named(target, labels, chosen)
        if target["range"]:
            lines.append(Line(name, list(SPAN), [float(number), number + 1.5]))
        else:
            rows.append(Row(target["refId"], name, labels, float(number)))
            refs[target["refId"]] = target["legendFormat"]
    return Data(lines, rows, refs)


@pytest.mark.parametrize("name", shortened(list(PAGES)))
def test_every_page_can_be_drawn(name: str, tmp_path: Path) -> None:
    page = PAGES[name]
    found = {panel["id"]: data(panel) for panel in panels_of(page)}
    draw(page, found, tmp_path / "page.png", SPAN)
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    nothing = dict.fromkeys(found, Data([], [], {}))
    draw(page, nothing, tmp_path / "empty.png", SPAN)
    assert (tmp_path / "empty.png").stat().st_size < (tmp_path / "page.png").stat().st_size


def test_overrides_say_how_a_line_is_drawn() -> None:
    panel = titled(PAGES["overview"], "CTR by $by: are clicks falling?")
    line, high = (properties(panel, name) for name in ("A", "A high"))
    support = properties(panel, "A: impressions")
    assert (line["unit"], line["custom.lineWidth"]) == ("percentunit", 2)
    assert (high["custom.fillBelowTo"], high["custom.lineWidth"]) == ("A low", 0)
    assert (support["unit"], support["custom.axisPlacement"]) == ("short", "hidden")
    assert {p["color"]["fixedColor"] for p in (line, high, support)} == {"blue"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.04321, "percentunit", "4.32 %"),
        (0.0123, "s", "12.3 ms"),
        (90.0, "s", "1.5 min"),
        (1.0, "bool_yes_no", "Yes"),
        (64_600.0, "short", "64.6 K"),
        (12.5, "cps", "12.5 /s"),
    ],
)
def test_numbers_have_their_units(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text
