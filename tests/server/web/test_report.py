"""The report: one file that needs nothing else and runs no script."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamer.formatting import printable
from streamer.query.readout import Readout
from streamer.query.scorecard import scorecard
from streamer.server.web.scorecards import report
from tests.server.web.documents import ODD
from tests.server.web.test_pictures import LOOKS, PROBLEMS
from tests.support.assigned import readout_of
from tests.support.browser import Browser
from tests.support.commands import called
from tests.support.visitors import FIRST, experiment, written

LONG = "retrieval_with_the_new_embeddings_and_a_reranker_trained_on_dwell_time_v2_holdout_eu_west_1"
EXPERIMENT = experiment(
    covariate_days=1,
    explore=["surface"],
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
    assert called(capsys, [*words, "--by", "surface"]) == (0, f"Written: {file}\n", "")
    made, seen = document_of(site, capsys), opened(page, file).text("main")
    card = scorecard(msgspec.convert(made, Readout))
    assert card.pill is not None
    for text in (card.pill.words, card.sentence, card.impact, *card.sure, card.readout.method):
        assert text in seen
    assert "B against A (variant)" in seen
    assert made["when"] in seen
    rows = page.texts("#scorecard tbody tr:first-child")
    assert len(rows) == len(made["metrics"]) == 4
    for row, shown in zip(card.rows, rows, strict=True):
        for text in (
            row.metric.title,
            row.metric.role,
            row.metric.rule,
            *row.values,
            row.comparison.lift.text,
            row.comparison.lift.range,
        ):
            assert text in shown
    for item in (*card.health, *card.settings):
        assert item.text in seen
    assert page.texts("#segments tbody th") == ["home", "search", "product"]
    assert re.search(r"Frozen on \d{4}-\d\d-\d\d \d\d:\d\d UTC by streamer", seen)
    assert page.run("return document.scripts.length") == 0
    assert page.lacks() == []
    assert called(capsys, words)[0] == 0  # it is replaced
    assert not opened(page, file).texts("#segments")


def test_whatever_is_said_is_text(page: Browser, tmp_path: Path) -> None:
    odd = f"</style><script>document.title = 'taken'</script>{ODD}"
    text = msgspec.json.encode(readout_of(new=0.3)).decode().replace('"new"', json.dumps(odd))
    made = json.loads(text) | {"title": odd, "hypothesis": odd, "owner": odd}
    made["notes"] = [{"kind": odd, "text": odd, "severity": "warning"}]
    file = tmp_path / "report.html"
    file.write_text(report(scorecard(msgspec.convert(made, Readout)), odd), encoding="utf-8")
    opened(page, file)
    odd = printable(odd)
    assert odd in page.driver.title
    assert odd in page.text("h1")
    assert odd in page.text(".warning")
    assert page.run("return document.querySelectorAll('img, script, [onerror]').length") == 0


STATES: dict[str, dict[str, Any]] = {
    "a winner": {"new": 0.3},
    "too early": {"users": 60, "days": 1},
    "nobody clicks": {"new": 0.0},
    "a broken split": {"arms": lambda user: {"prices": "new" if user % 4 else "old"}},
    "three arms": {
        "arms": lambda user: {"prices": ("old", "new", LONG)[user % 3]},
        "split": {"old": 1, "new": 1, LONG: 1},
        "title": LONG,
        "owner": LONG,
    },
    "not started": {"start": datetime.date(2030, 1, 2)},
    "two days": {"days": 2, "users": 300, "metrics": [{"name": "clicks_per_user"}]},
}


@pytest.mark.parametrize("state", list(STATES))
def test_every_state_is_a_correct_picture(page: Browser, tmp_path: Path, state: str) -> None:
    file = tmp_path / "report.html"
    made = readout_of(**STATES[state])
    file.write_text(report(scorecard(made), "2026-11-26"), encoding="utf-8")
    opened(page, file)
    page.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    for width, scheme in LOOKS:
        page.resize(width)
        page.prefer(color_scheme=scheme)
        assert page.run(PROBLEMS) == [], (width, scheme)
        assert page.lacks() == [], (width, scheme)


def test_what_is_missing_is_said(
    page: Browser, site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    file = tmp_path / "report.html"
    words = ["-c", config, "--file", log, "--html"]
    assert called(capsys, ["report", "later", *words, str(file)])[0] == 0
    assert opened(page, file).text(".lead") == "It starts on 2025-07-12."
    code, _, err = called(capsys, ["report", "none", *words, str(file)])
    assert (code, "no experiment 'none'" in err) == (2, True)
    code, _, err = called(capsys, ["report", "ranker", *words, str(tmp_path / "no" / "x")])
    assert code == 1
    assert err.startswith("streamer: cannot write the report: No such file or directory; at ")
