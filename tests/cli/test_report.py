"""The report: one file that needs nothing else, with everything that a mail about it asks for."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.main import main
from streamer.cli.report import page
from streamer.cli.report_chart import ChartRange, extent, history, interval
from tests.support.visitors import FIRST, experiment, written

ODD = "<script>alert('x')</script> & \"q\""
EXPERIMENT = experiment(
    covariate_days=1,
    metrics=[
        {"name": "ctr_ratio"},
        {"name": "ndcg_ratio@10", "margin": 0.5},
        {"name": "clicks_per_user", "margin_absolute": 3.0},
        {"name": "dwell_mean_seconds"},
    ],
)


class Seen(HTMLParser):
    """Tags that were closed as they were opened, their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data if self._open[-1:] != ["style"] else ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log and of settings."""
    folder = tmp_path_factory.mktemp("report")
    later = {**EXPERIMENT, "name": "later", "start": FIRST + datetime.timedelta(days=40)}
    return written(folder, 600, EXPERIMENT, later)


def run(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def document_of(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    log, config = site
    code, out, _ = run(["readout", "ranker", "-c", config, "--file", log, "--json"], capsys)
    assert code == 0
    made: dict[str, Any] = json.loads(out)
    return made


def test_it_says_what_the_readout_says(
    site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    file = tmp_path / "report.html"
    words = ["report", "ranker", "-c", config, "--file", log, "--html", str(file)]
    assert run(words, capsys) == (0, f"Written: {file}\n", "")
    text = file.read_text(encoding="utf-8")
    seen, made = Seen(text), document_of(site, capsys)
    advice = made["recommendation"]
    assert advice["words"][1:] + "." in seen.words
    assert advice["reason"] in seen.words
    assert "B against A (variant), 2025-06-02 to 2025-06-05" in seen.words
    for arm, users in made["users"].items():
        assert f"{arm}{users:,}" in seen.words
    for metric in made["metrics"]:
        (comparison,) = metric["comparisons"]
        assert f"{metric['name']}{metric['role']}" in seen.words
        assert comparison["verdict"]["reason"] in seen.words
        assert f"{metric['name']}: lift of B at the end of each day" in seen.words
    lift = made["metrics"][0]["comparisons"][0]["adjusted"]["relative"]["anytime"]
    assert f"{lift['low']:+.2%} to {lift['high']:+.2%}" in seen.words
    assert "Users are split as planned" in seen.words
    assert "variances by the delta method, less what the day before the start" in seen.words
    assert seen.tags.count("svg") == 2 * len(made["metrics"])
    assert run(words, capsys)[0] == 0  # it is replaced


def test_it_needs_nothing_else(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    text = page(document_of(site, capsys))
    seen = Seen(text)
    assert not {"script", "link", "img", "iframe", "form", "a"} & set(seen.tags)
    names = {name for name, _ in seen.attributes}
    assert not {"src", "href", "style"} & names
    assert not [name for name in names if name.startswith("on")]
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_whatever_is_said_is_text(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = document_of(site, capsys)
    text = json.dumps(made).replace('"B"', json.dumps(ODD)).replace('"variant"', json.dumps(ODD))
    odd = json.loads(text) | {"name": ODD, "warnings": [ODD], "control": ODD}
    odd["recommendation"] |= {"reason": ODD, "words": ODD}
    for metric in odd["metrics"]:
        metric["comparisons"][0]["verdict"] |= {"reason": ODD, "outcome": ODD}
    text = page(odd)
    assert "<script" not in text
    assert "script" not in Seen(text).tags
    assert Seen(text).words.count(ODD) > 20


def test_what_is_missing_is_said(
    site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    file = tmp_path / "report.html"
    words = ["-c", config, "--file", log, "--html"]
    assert run(["report", "later", *words, str(file)], capsys)[0] == 0
    seen = Seen(file.read_text(encoding="utf-8"))
    assert seen.words.endswith("not started yet\nIts first day is 2025-07-12.\n")
    code, _, err = run(["report", "none", *words, str(file)], capsys)
    assert (code, "no experiment 'none'" in err) == (2, True)
    code, _, err = run(["report", "ranker", *words, str(tmp_path / "no" / "x")], capsys)
    assert code == 1
    assert err.startswith("streamer: cannot write the report: No such file or directory; at ")
    made = document_of(site, capsys)
    made |= {"notes": ["3 users seen in several arms are left out."], "warnings": ["Look."]}
    made["metrics"][0]["split_test"]["is_wrong"] = True
    for said in (
        "3 users seen in several arms are left out. Look.",
        "Users are NOT split as planned",
    ):
        assert said in Seen(page(made)).words


def test_pictures() -> None:
    """A bar from 60 % to 80 % of the width, the dot in its middle; nothing of what is not known."""
    drawn = interval(ChartRange(0.4, 0.2, 0.6), (-1.0, 1.0), -0.5)
    assert '<rect class="bar" x="131.2" ' in drawn
    assert 'width="42.4"' in drawn
    assert '<circle class="dot" cx="152.4"' in drawn
    assert '<line class="zero" x1="110.0"' in drawn
    assert '<line class="margin" x1="57.0"' in drawn
    nothing = ChartRange(None, None, None)
    assert extent([nothing]) == (-1.0, 1.0)
    assert "rect" not in interval(nothing, (-1.0, 1.0), None)
    days = ["2025-06-02", "2025-06-03"]
    drawn = history("<b>", days, [nothing, ChartRange(1.0, 0.5, 1.5)], "{:+.1f}".format, None)
    assert "<title>&lt;b&gt;</title>" in drawn
    assert drawn.count("<rect") == drawn.count("<circle") == 1
    assert ">0</text>" in drawn
    assert ">+1.6</text>" in drawn
    assert all(day in drawn for day in days)
