"""The course of metrics on the page, sorting and filters, and the page of one metric."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from selenium.webdriver import Keys

from streamer.testing.embedded import EmbeddedRedis
from tests.server.web.conftest import open_documents, open_page, settings_of
from tests.server.web.documents import HISTORY, NOW_MS, ODD
from tests.server.web.test_alerts import (
    alert_history,
    alerts_document,
    entry,
    explanation,
    of_segment,
)
from tests.server.web.test_page import count, percent
from tests.support.browser import Browser
from tests.support.site import Documents, Site
from tests.support.visitors import FIRST_MS, visits

MINUTE_MS = 60_000
COURSE = HISTORY | {
    "starts_ms": [NOW_MS - m * MINUTE_MS for m in range(10, -1, -1)],
    "lines": [{"labels": {"variant": ODD}, "values": [0.1] * 11, "lower": [], "upper": []}],
}
COUNT = "return document.querySelectorAll(`${arguments[0]} polyline`).length"
READ = "return document.querySelector('{} .plot').ariaValueText"


def span(
    status: str, start: float, end: float | None, fires: float | None, check: str = "metric"
) -> dict[str, Any]:
    """In minutes before now; without an end it goes on."""
    ago = [None if m is None else NOW_MS - int(m * MINUTE_MS) for m in (start, end, fires)]
    return {"check": check, "status": status} | dict(
        zip(("from_ms", "until_ms", "fires_ms"), ago, strict=True)
    )


def has_lines(page: Browser, where: str) -> bool:
    return bool(page.run(COUNT, where))


def has_marks(page: Browser, number: int) -> bool:
    return bool(page.run("return document.querySelectorAll('#course .firing').length") == number)


def drawn(page: Browser) -> list[str]:
    """What the legend of its lane says."""
    texts = (
        "return [...document.querySelectorAll('#course .around-lines span')]"
        ".map((e) => e.textContent)"
    )
    return [str(text) for text in page.run(texts)]


def read(page: Browser, where: str = "#course") -> str:
    return str(page.run(READ.format(where)))


def test_the_course_is_that_of_the_api(page: Browser, site: Site) -> None:
    open_page(page, site, "/?window=24h&split=variant")
    page.until(lambda: has_lines(page, "#course"), "lines")
    points = int(page.run("return document.querySelector('#course .plot').ariaValueMax")) + 1
    found = site.get(f"/api/history?name=ctr_ratio&window=24h&split=variant&points={points}")
    assert len(found["starts_ms"]) == points
    assert page.texts("#course .legend .title") == [
        line["labels"]["variant"] for line in found["lines"]
    ]
    page.run("document.querySelector('#course .plot').focus()")
    for at in (points - 1, points - 2):
        for line in found["lines"]:
            value = line["values"][at]
            text = "no data" if value is None else percent(value)
            assert f"{line['labels']['variant']}: {text}" in read(page)
        page.press(Keys.ARROW_LEFT)
    page.run("document.querySelector('#course .points').open = true")
    rows = page.until(lambda: page.texts("#course tbody tr"), "the table")
    assert len(rows) == points
    assert page.complaints() == []


def test_after_a_start_the_axis_is_what_was_counted(redis: EmbeddedRedis) -> None:
    """Of three days in a window of seven; what is shown of a longer time begins with the window."""
    windows = {"lengths": ["24h", "7d"]}
    with Site(settings_of(redis, "young", windows=windows)) as young:
        events = visits(7, 40, FIRST_MS, 3, 0.2)
        young.add(events)
        first_ms = min(event["ts"] for event in events)
        week, day = (
            young.get(f"/api/history?name=ctr_ratio&window={label}")
            for label in windows["lengths"][::-1]
        )
    assert first_ms - week["step_ms"] < week["starts_ms"][0] <= first_ms
    assert len(week["starts_ms"]) > 20
    assert (
        day["at_ms"] - 86_400_000 - day["step_ms"] < day["starts_ms"][0] < day["at_ms"] - 80_000_000
    )


def test_a_pointer_reads_the_course(page: Browser, site: Site) -> None:
    open_page(page, site, "/?window=24h&split=variant")
    page.until(lambda: has_lines(page, "#course"), "lines")
    last = read(page)
    page.run(
        "const plot = document.querySelector('#course .plot'), box = plot.getBoundingClientRect();"
        "plot.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 60}))"
    )
    assert read(page) != last
    page.run(
        "document.querySelector('#course .plot').dispatchEvent(new PointerEvent('pointerleave'))"
    )
    assert read(page) == last


def test_alerts_mark_when_they_fired(page: Browser, documents: Documents) -> None:
    """Two segments fired, once it had not lasted; of the third it still had not."""
    fired = span("dropped", 8, 3, 7), span("dropped", 2, 1, None)
    history = alert_history(
        of_segment("all", None, *fired),
        of_segment(ODD, None, span("risen", 5, None, 4, "traffic")),
        of_segment("C", None, span("dropped", 8, 3, None)),
    )
    documents.documents |= {
        "/api/history": (200, COURSE),
        "/api/alerts": (200, alerts_document(entry("dropped"))),
        "/api/alerts/ctr": (200, history),
        "/api/explain": (200, explanation()),
    }
    open_documents(page, documents)
    page.until(lambda: page.run(COUNT.replace("polyline", ".firing"), "#course"), "marks")
    names = [f"alert ctr, {of}" for of in ("all together", ODD)]
    assert drawn(page) == [f"{names[0]}: dropped", f"{names[1]}: traffic risen"]
    boxes = page.run(
        "const left = (e) => Number(e.getAttribute('x'));"
        "return [...document.querySelectorAll('#course .firing')].map("
        "(e) => [left(e), left(e) + Number(e.getAttribute('width'))])"
    )
    width = page.run("return document.querySelector('#course .plot').clientWidth") - 56 - 12
    for box, minutes_ago in zip(boxes, [(7, 3), (4, 0)], strict=True):
        left, right = (56 + (10 - ago) / 10 * width for ago in minutes_ago)
        assert box == [pytest.approx(left, abs=1), pytest.approx(min(right, 56 + width), abs=1)]
    page.run("document.querySelector('#course .plot').focus()")
    expected = {
        0: f"Alert ctr, {ODD}: traffic risen. ",
        5: "Alert ctr, all together: dropped. ",
        9: f"{ODD}: ",  # only the value
    }
    for minutes, said in expected.items():
        page.press(Keys.END)
        for _ in range(minutes):
            page.press(Keys.ARROW_LEFT)
        _, _, after = read(page).partition(". ")
        assert after.startswith(said)
    page.run("document.querySelector('#course .points').open = true")
    rows = page.until(lambda: page.texts("#course tbody tr td:last-child"), "the table")
    assert len(rows) == 11
    assert rows[4] == f"{names[0]}: dropped; {names[1]}: traffic risen"
    assert rows[10] == ""
    assert page.texts("#course thead th")[-1] == "Alerts"
    assert page.text("#course caption") == "Click-through rate, the last 5m, the newest first"


def test_marks_are_those_of_the_metric_and_the_filter(page: Browser, documents: Documents) -> None:
    open_documents(page, documents)
    fired = span("dropped", 8, 3, 7)
    history = alert_history(*(of_segment(name, None, fired) for name in ("all", "A", "B")))
    firings = "return it.firingsOf(given[0], new URLSearchParams(given[1])).map((row) => row.name)"
    for query, names in {
        "variant=A&k=10": ["A"],
        "split=variant": ["all together", "A", "B"],
        "variant=all": ["all together", "A", "B"],
    }.items():
        found = page.run_with("alert_history.js", firings, history, query)
        assert found == [f"alert ctr, {name}" for name in names]
    documents.documents |= {
        "/api/history": (200, COURSE | {"name": "streamer_ndcg_ratio", "labels": ["k"]}),
        "/api/alerts": (200, alerts_document(entry("dropped", metric="ndcg_ratio@5"))),
        "/api/alerts/ctr": (200, history | {"from_ms": NOW_MS - 8 * MINUTE_MS}),
        "/api/explain": (200, explanation()),
    }
    for cut_off, marks in ((5, 3), (10, 0)):
        lines = [
            line | {"labels": line["labels"] | {"k": str(cut_off)}} for line in COURSE["lines"]
        ]
        documents.documents["/api/history"][1]["lines"] = lines
        open_documents(page, documents)
        page.until(lambda: has_lines(page, "#course"), "the course")
        page.until(functools.partial(has_marks, page, marks), f"{marks} marks")
        page.run("document.querySelector('#course .points').open = true")
        page.until(lambda: page.texts("#course tbody tr"), "the table")
        assert ("alert ctr, A (from before): dropped" in drawn(page)) == (marks > 0)
        assert (", alerts known since " in page.text("#course caption")) == (marks > 0)


def test_the_table_is_sorted_and_filtered_by_the_address(page: Browser, site: Site) -> None:
    open_page(page, site, "/?window=24h&split=surface&sort=ctr_ratio")
    values = [float(t.split("%")[0]) for t in page.texts("#segments tbody td:nth-child(4)")]
    assert values == sorted(values)
    page.run("document.querySelectorAll('#segments .sort')[0].click()")
    page.until(
        lambda: page.driver.current_url.endswith("sort=-window_impressions"), "sorted otherwise"
    )
    page.run(
        "const s = document.querySelector('#filters select'); s.value = 'A';"
        "s.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    page.until(lambda: "variant A, by surface" in page.text("#segments caption"), "filtered")
    assert "variant=A" in page.driver.current_url
    readings = site.get("/api/readings?window=24h&variant=A&name=window_impressions")["readings"]
    shown = {r["labels"]["surface"]: r["value"] for r in readings}
    shown.pop("all")
    texts = page.texts("#segments tbody td:nth-child(2)")
    assert texts == [count(value) for value in sorted(shown.values(), reverse=True)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sort=colour", "There is no column colour to sort by."),
        ("variant=Z&split=surface", "no variant 'Z'"),
    ],
)
def test_what_the_address_has_wrong_is_named(
    page: Browser, site: Site, query: str, said: str
) -> None:
    page.open(f"{site.url}/?{query}")
    page.until(lambda: said in page.text("#choice-missing"), said)


def test_a_metric_has_a_page_of_its_own(page: Browser, site: Site) -> None:
    open_page(page, site, "/?window=24h&split=variant")
    page.run("document.querySelector('#segments thead th:nth-child(4) a').click()")
    page.until(lambda: has_lines(page, "#metric-course"), "its course")
    assert "metric=ctr_ratio" in page.driver.current_url
    listed = {each["name"]: each for each in site.get("/api/metrics")["metrics"]}
    about = listed["streamer_ctr_ratio"]
    assert page.text("#metric-title") == about["title"]
    assert page.text("#metric-about") == about["about"]
    assert about["formula"] in page.text("#metric-facts")
    for dimension in ("variant", "surface"):
        assert f"Click-through rate by {dimension}, the last 24h" in page.texts(
            "#metric-splits caption"
        )
    assert not page.is_shown("#live")
    assert not page.is_shown("#experiments")
    alerts = page.text("#metric-alerts")
    assert "ctr, all together: " in alerts
    page.run(
        "const s = document.querySelector('#metric-split'); s.value = 'surface';"
        "s.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    page.until(
        lambda: "home" in page.texts("#metric-course .legend .title"), "the course by surface"
    )
    assert page.complaints() == []


def test_click_rates_have_a_curve_by_position(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/?metric=ctr_ratio&window=24h")
    page.until(lambda: page.is_shown("#metric-curve tbody tr"), "the curve")
    asked = "/api/readings?name=ctr_position_ratio&window=24h&variant=all&surface=all"
    found = {r["labels"]["position"]: r["value"] for r in site.get(asked)["readings"]}
    rows = page.run(
        "return [...document.querySelectorAll('#metric-curve tbody tr')].map("
        "(row) => [row.cells[0].innerText.trim(), row.cells[2].querySelector('.value').innerText])"
    )
    assert dict(rows) == {position: percent(value) for position, value in found.items()}


def test_metrics_of_scores_have_the_calibration_curve(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/?metric=log_loss&window=24h")
    page.until(lambda: page.is_shown("#metric-curve tbody tr"), "the curve")
    assert "Predicted and observed clicks by score" in page.text("#metric-curve caption")
    assert page.run("return document.querySelectorAll('#metric-curve .curve').length") == 1
    assert page.complaints() == []


def test_labels_of_a_metric_can_be_chosen(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/?metric=ndcg_ratio&k=5")
    page.until(lambda: has_lines(page, "#metric-course"), "its course")
    options = page.run(
        "return [...document.querySelectorAll('#metric-labels select')]"
        ".map((s) => [s.name, s.value])"
    )
    assert ["k", "5"] in options
    assert ["over", "all"] in options


def test_a_metric_without_a_course_says_why(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/?metric=positive_rate_ratio")
    page.until(lambda: "has no history" in page.text("#metric-course"), "why")
    page.open(f"{site.url}/?metric=colour")
    said = "The settings show no metric colour."
    page.until(lambda: page.text("#metric-title") == said, said)
