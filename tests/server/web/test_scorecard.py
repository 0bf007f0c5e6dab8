"""The page of an experiment, which the exporter makes, and the files that it gives."""

from __future__ import annotations

import csv
import io
import urllib.error
import urllib.request

import msgspec
import pytest

from streamer.query.readout import Readout
from streamer.query.scorecard import scorecard
from tests.server.web.test_access import WIDTHS, fits
from tests.server.web.test_pictures import PROBLEMS
from tests.support.browser import Browser
from tests.support.site import Site


def fetch(url: str) -> tuple[int, str, str]:
    """Status, text and name of the file."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return (
                answer.status,
                answer.read().decode(),
                answer.headers["Content-Disposition"] or "",
            )
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), ""


def test_it_shows_what_the_document_has(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/experiments/ranker")
    card = scorecard(msgspec.convert(site.get("/api/experiments/ranker"), Readout))
    assert card.pill is not None
    assert page.driver.title == f"{card.pill.sign} {card.pill.words}: ranker – streamer"
    assert page.text(".lead") == card.sentence
    rows = page.texts("#scorecard tbody tr:first-child")
    for row, shown in zip(card.rows, rows, strict=True):
        for text in (
            row.metric.title,
            *row.values,
            row.comparison.lift.text,
            row.comparison.lift.range,
        ):
            assert text in shown
    assert len(page.texts("#days table tbody tr")) == len(card.course) == 3
    points = page.run("return document.querySelector('#days .band').getAttribute('points')")
    known = [point for point in card.course if point.lift.low is not None]
    assert len(points.split()) == 2 * len(known)
    assert page.complaints() == []
    assert page.lacks() == []


def test_it_fits_every_window(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/experiments/ranker?by=surface")
    page.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.until(lambda: page.text("#pipeline-badges") == "✓ OK", "its header")
    for width in WIDTHS:
        page.resize(width)
        assert fits(page, width), width
        assert page.run(PROBLEMS) == [], width


def test_it_has_the_header_of_every_page(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/experiments/ranker")
    page.until(lambda: page.is_shown("#alerts-link"), "what was read")
    assert page.text("#health-state") == "Up to date"
    assert page.text("#pipeline-badges") == "✓ OK"
    assert page.text("#stream-time").endswith(" UTC")
    page.run("document.querySelector('#pause').click()")
    assert page.text("#as-of").startswith("Updates are paused.")
    assert page.complaints() == []


def test_a_dimension_is_explored_where_it_is_asked_for(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/experiments/ranker")
    assert page.texts("#segments a") == ["By surface", "By day"]
    page.driver.find_element("css selector", "#segments a").click()
    page.until(lambda: page.texts("#segments tbody th"), "the groups")
    found = site.get("/api/experiments/ranker?by=surface")
    assert page.texts("#segments tbody th") == list(found["values"])
    assert found["heterogeneity"][0]["sentence"] in page.text("#segments")
    assert page.lacks() == []


def test_its_files(site: Site) -> None:
    base = f"{site.url}/experiments/ranker"
    card = scorecard(msgspec.convert(site.get("/api/experiments/ranker"), Readout))
    status, text, name = fetch(f"{base}/scorecard.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (status, name) == (200, "attachment; filename*=UTF-8''ranker.csv")
    assert [row["metric"] for row in rows] == [row.metric.title for row in card.rows]
    assert [row["change"] for row in rows] == [row.comparison.lift.text for row in card.rows]
    status, text, name = fetch(f"{base}/report.html")
    assert (status, name) == (200, "attachment; filename*=UTF-8''ranker.html")
    assert card.sentence in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("nope", 404, "no experiment 'nope'; there are ranker\n"),
        ("nope/report.html", 404, "no experiment 'nope'; there are ranker\n"),
        ("ranker?of=x", 400, "unknown parameter 'of': the page takes 'by' or 'arm'\n"),
        ("ranker?arm=A", 400, "arm = 'A': one of B\n"),
    ],
)
def test_what_there_is_not(site: Site, path: str, status: int, text: str) -> None:
    assert fetch(f"{site.url}/experiments/{path}")[:2] == (status, text)


def test_what_it_cannot_be_explored_by(site: Site) -> None:
    status, text, _ = fetch(f"{site.url}/experiments/ranker?by=shoes")
    assert (status, text.startswith("by = 'shoes': ")) == (400, True)
