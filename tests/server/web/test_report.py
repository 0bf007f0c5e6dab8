"""The report: one file that needs nothing else, with everything that a mail about it asks for."""

from __future__ import annotations

import datetime
import json
from html import escape
from pathlib import Path
from typing import Any

import pytest

from streamer.query.readout_document import heading_of, lines_of
from streamer.server.web.frozen import frozen
from tests.server.web.documents import ODD, comparison, estimate
from tests.server.web.documents import experiment as document
from tests.support.browser import Browser
from tests.support.commands import called
from tests.support.visitors import FIRST, experiment, written

EXPERIMENT = experiment(
    covariate_days=1,
    metrics=[
        {"name": "ctr_ratio"},
        {"name": "ndcg_ratio@10", "margin": 0.5},
        {"name": "clicks_per_user", "margin_absolute": 3.0},
        {"name": "dwell_mean_seconds"},
    ],
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log and of settings."""
    folder = tmp_path_factory.mktemp("report")
    later = {**EXPERIMENT, "name": "later", "start": FIRST + datetime.timedelta(days=40)}
    return written(folder, 600, EXPERIMENT, later)


def document_of(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    log, config = site
    code, out, _ = called(capsys, ["readout", "ranker", "-c", config, "--file", log, "--json"])
    assert code == 0
    made: dict[str, Any] = json.loads(out)
    return made


def opened(page: Browser, file: Path) -> Browser:
    """The report as somebody opens it: no server, nothing but the file."""
    page.open(file.as_uri())
    page.until(lambda: page.texts(".card .who"), "the card")
    asked = [url for url in page.requests() if not url.startswith("data:")]
    assert asked == [file.as_uri()]
    assert page.complaints() == []
    return page


def test_it_says_what_the_readout_says(
    page: Browser, site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    file = tmp_path / "report.html"
    words = ["report", "ranker", "-c", config, "--file", log, "--html", str(file)]
    assert called(capsys, words) == (0, f"Written: {file}\n", "")
    made, seen = document_of(site, capsys), opened(page, file).text("main")
    advice = made["recommendation"]
    assert advice["words"][1:] in seen
    assert advice["reason"] in seen
    assert f"B against A (variant), {made['when']}" in seen
    assert made["when"].startswith("2025-06-02 to 2025-06-05, ")
    for arm, users in made["users"].items():
        assert f"{arm} {'control' if arm == 'A' else 'treatment'}{users:,} users" in seen
    assert len(made["metrics"]) == len(page.texts(".comparison")) == 4
    for metric in made["metrics"]:
        (pair,) = metric["comparisons"]
        assert metric["rule"] in seen
        assert pair["verdict"]["reason"] in seen
        assert pair["adjustment"] in seen
        assert f"Lift of B over A, {metric['title']}" in seen
    assert made["metrics"][0]["split_test"]["words"] in seen
    assert made["method"] in seen
    unscripted = page.text("noscript")  # as text, for scripts run here
    for line in (*heading_of(made), *(x for metric in made["metrics"] for x in lines_of(metric))):
        assert escape(line) in unscripted
    assert page.lacks() == []
    assert called(capsys, words)[0] == 0  # it is replaced


def test_whatever_is_said_is_text(page: Browser, tmp_path: Path) -> None:
    pairs = [comparison(ODD, estimate(0.1, 0.05, 0.15), "better"), comparison("C", estimate(None))]
    odd = f"</script><script>document.title = 'taken'</script>{ODD}"
    made = document(pairs, name=odd, warnings=[ODD], notes=[ODD])
    file = tmp_path / "report.html"
    file.write_text(frozen(made), encoding="utf-8")
    opened(page, file)
    assert page.driver.title == odd
    assert page.text("h3") == odd
    assert page.texts(".warnings li") == page.texts(".notes li") == [ODD]
    assert page.run("return document.querySelectorAll('img, [onerror]').length") == 0


def test_what_is_missing_is_said(
    page: Browser, site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    file = tmp_path / "report.html"
    words = ["-c", config, "--file", log, "--html"]
    assert called(capsys, ["report", "later", *words, str(file)])[0] == 0
    said = opened(page, file).text(".card .who")
    assert said == "B against A (variant), starts on 2025-07-12"
    code, _, err = called(capsys, ["report", "none", *words, str(file)])
    assert (code, "no experiment 'none'" in err) == (2, True)
    code, _, err = called(capsys, ["report", "ranker", *words, str(tmp_path / "no" / "x")])
    assert code == 1
    assert err.startswith("streamer: cannot write the report: No such file or directory; at ")
