"""What the page makes of documents that few exporters ever give."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from streamer.server import web
from tests.docs.test_adding import COLUMN, changed
from tests.server.web.conftest import open_documents
from tests.server.web.documents import (
    HEALTH,
    LISTED,
    NOW_MS,
    ODD,
    listing,
    odd_documents,
    reading,
)
from tests.support.browser import Browser
from tests.support.site import Documents

SILENT = {"what": "clicks", "dimension": "surface", "value": "women", "text": "No clicks of women"}


@pytest.fixture
def shown(page: Browser, documents: Documents) -> Browser:
    """The page, the same one for all tests that only call its modules."""
    if page.driver.current_url != documents.url + "/":
        open_documents(page, documents)
    return page


def health_line(page: Browser) -> str:
    return page.text("#health-state") + page.text("#health-detail")


def test_labels_and_names_are_text(page: Browser, documents: Documents) -> None:
    open_documents(page, documents)
    page.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.until(lambda: page.is_shown("#more-table tbody tr"), "more metrics")
    assert page.text("#segments tbody th") == ODD
    assert page.text("#more-segment option") == ODD
    assert f"odd={ODD}" in page.text("#more-table tbody")
    assert page.text(".legend .title") == ODD
    assert page.text("#experiments-table th a") == ODD
    assert page.run("return document.querySelectorAll('img, [onerror]').length") == 0
    assert page.complaints() == []
    link = page.run("return document.querySelector('#experiments-table th a').href")
    assert unquote(link.removeprefix(f"{documents.url}/experiments/")) == ODD


def test_markup_made_of_text_is_refused_by_the_browser(page: Browser, documents: Documents) -> None:
    open_documents(page, documents)
    script = "try { document.body.innerHTML = 'x' } catch (error) { return error.name }"
    assert page.run(script) == "TypeError"
    page.run("document.body.append(Object.assign(document.createElement('style'), "
             "{textContent: 'body { color: red }'}))")  # fmt: skip
    assert page.run("return getComputedStyle(document.body).color") != "rgb(255, 0, 0)"


def test_an_interval_stands_beside_its_ratio(page: Browser, documents: Documents) -> None:
    open_documents(page, documents)
    rows = page.texts("#segments tbody tr")
    assert "25.0%\n21.0% to\xa029.5%" in rows[0]
    assert "–" in rows[1]
    heads = page.texts("#segments thead th a")
    assert heads == ["Impressions", "CTR"]  # columns that nobody has are left out


def test_what_is_not_known_is_not_drawn(page: Browser, documents: Documents) -> None:
    early = {**LISTED, "name": "early", "title": "early", "bar": None, "needs": "running"}
    late = {"name": "late", "title": "late", "owner": "", "needs": "not-started"}
    late |= {"start": "2030-01-02", "waiting": "Starts on 2030-01-02"}
    documents.documents["/api/experiments"] = 200, listing(LISTED, early, late)
    open_documents(page, documents)
    shown = page.run(
        "return [...document.querySelectorAll('#experiments-table circle')]"
        ".map((e) => e.getAttribute('visibility'))"
    )
    assert shown == ["visible", "hidden", "hidden"]
    *_, row = page.texts("#experiments-table tbody tr")
    assert row.split()[:4] == ["late", "Starts", "on", "2030-01-02"]
    assert page.text("#experiments-badges") == "✓ 1 to ship"
    assert page.complaints() == []


def test_what_experiments_need_is_counted_by_colour(page: Browser, documents: Documents) -> None:
    needs = ("harm", "broken", "broken", "ship")
    entries = [{**LISTED, "name": f"e{i}", "needs": word} for i, word in enumerate(needs)]
    documents.documents["/api/experiments"] = 200, listing(*entries)
    open_documents(page, documents)
    badges = (
        "return [...document.querySelectorAll('#experiments-badges b')]"
        ".map((e) => [e.textContent, e.dataset.kind])"
    )
    counted = [["✓ 1 to ship", "good"], ["▼ 1 harmful", "bad"], ["✕ 2 broken", "warn"]]
    assert page.run(badges) == counted
    assert page.text("#experiments-answer") == "1 to ship, 1 harmful, 2 broken"


def test_of_many_experiments_the_first_are_shown(page: Browser, documents: Documents) -> None:
    needs = ["harm"] * 2 + ["running"] * 28
    listed = [
        {**LISTED, "name": f"e{i:02}", "title": f"e{i:02}", "needs": word}
        for i, word in enumerate(needs)
    ]
    documents.documents["/api/experiments"] = 200, listing(*listed)
    open_documents(page, documents)

    def names() -> list[str]:
        return page.texts("#experiments-table th a")

    assert names() == [f"e{i:02}" for i in range(12)]
    assert page.text("#experiments-shown") == "12 of 30 shown, what needs a decision first."
    page.run("document.getElementById('experiments-all').click()")
    page.until(lambda: len(names()) == 30, "all")
    choose = "const it = document.getElementById('experiments-only'); it.value = 'harm'; "
    page.run(choose + "it.dispatchEvent(new Event('change'))")
    page.until(lambda: names() == ["e00", "e01"], "those that do harm")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"is_ready": False, "problems": ["p: a"]}, "Not ready: p: a"),
        ({"is_ready": False, "problems": ["a", "b", "c"]}, "Not ready: a (and 2 more)"),
        ({"lag_records": {"clicks": 60}, "behind_seconds": 0.3}, "Up to date"),
        ({"lag_records": {"clicks": 60}, "behind_seconds": None}, "Up to date"),
        (
            {"lag_records": {"clicks": 1200}, "behind_seconds": 12.2},
            "Behind 12 seconds: 1,200 records wait",
        ),
        (
            {"lag_records": {"clicks": 1200}, "behind_seconds": None},
            "Behind: 1,200 records wait",
        ),
        ({"silent": [SILENT]}, "Clicks are missing: No clicks of women"),
        (
            {"silent": [SILENT | {"what": "impressions"}] * 3},
            "Events are missing: No clicks of women (and 2 more)",
        ),
        ({"workers": [], "stream_time_ms": 0}, "Waiting: no worker has reported yet"),
        ({"workers": []}, "Stopped: no worker is running"),
        ({"stream_time_ms": 0}, "Ready: no events yet"),
        ({}, "Up to date"),
        ({"stream_time_ms": NOW_MS - 180_000}, "Up to date, the last event 3 minutes ago"),
        ({"stream_time_ms": NOW_MS - 7_300_000}, "No new events, the last event 2 hours ago"),
        ({"stream_time_ms": NOW_MS + 7_300_000}, "Up to date"),
        ({"workers": [], "lag_records": {"clicks": 9}}, "Stopped: no worker is running"),
        ({"workers": [], "is_ready": False}, "Stopped: no worker is running"),
    ],
)
def test_health_is_spelled_out(shown: Browser, change: dict[str, Any], wanted: str) -> None:
    body = "return it.verdict(...given).slice(1).join('')"
    assert shown.run_with("health.js", body, {**HEALTH, **change}) == wanted


@pytest.mark.parametrize("workers", [HEALTH["workers"], []])
def test_old_values_are_grey_and_not_called_live(
    hurried: Browser, documents: Documents, workers: list[dict[str, Any]]
) -> None:
    page = hurried
    open_documents(page, documents)
    cell = "return getComputedStyle(document.querySelector('#segments td')).color"
    black = page.run(cell)
    assert page.text("#live-title") == "Live windows"
    assert not page.is_shown("#as-of")
    change = {"now_ms": NOW_MS + 7 * 3_600_000, "workers": workers}
    documents.documents["/api/health"] = 200, {**HEALTH, **change}
    page.until(lambda: page.run(cell) != black, "grey")
    page.until(lambda: page.text("#as-of").startswith("Values as of 15 Jun 2025, "), "old values")
    assert page.text("#live-title").startswith("Windows as of 15 Jun 2025, ")
    assert page.text("#as-of").endswith(", 7 hours ago.")
    word = "No new events" if workers else "Stopped"
    assert page.text("#health-state") == word
    assert "Live" not in page.text("body")
    documents.documents["/api/health"] = 200, HEALTH
    page.until(lambda: page.run(cell) == black, "black again")
    assert page.text("#live-title") == "Live windows"
    assert not page.is_shown("#as-of")


def test_a_link_to_what_the_settings_do_not_have(page: Browser, documents: Documents) -> None:
    page.open(f"{documents.url}/?window=7m&split=country")
    page.until(lambda: page.is_shown("#experiments-table a"), "the experiments")
    assert page.text("#choice-missing") == (
        "The settings have no window 7m: 5m is shown. "
        "There is no split by country: the split by variant is shown."
    )
    page.driver.find_element("css selector", "#windows input").send_keys(" ")
    page.run("document.querySelector('#windows input').dispatchEvent("
             "new Event('change', {bubbles: true}))")  # fmt: skip
    page.until(lambda: "7m" not in page.text("#choice-missing"), "the window is chosen")
    page.open(f"{documents.url}/?window=5m&split=variant")
    page.until(lambda: page.is_shown("#experiments-table a"), "the experiments")
    assert not page.is_shown("#choice-missing")


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("number(0.123456)", "0.123"),
        ("number(12.3456)", "12.3"),
        ("number(1234567.8)", "1,234,568"),
        ("number(-0.5)", "\u22120.500"),
        ("number(0)", "0"),
        ("percent(0.00012345)", "0.0123%"),
        ("percent(1)", "100%"),
        ("share(1 / 3)", "33.3%"),
        ("span(59)", "59 seconds"),
        ("span(3600)", "1 hour"),
        ("span(200000)", "2 days"),
    ],
)
def test_how_numbers_are_written(shown: Browser, call: str, wanted: str) -> None:
    assert shown.run_with("format.js", f"return it.{call}") == wanted


def test_a_topic_that_is_not_read_is_named(shown: Browser) -> None:
    change = {
        "inexact": [
            {"metrics": "counts", "cause": "unread_topics", "text": "Counts are not exact."}
        ],
        "warnings": ["topic web is not read: it does not exist"],
    }
    body = "return it.remarks(...given)"
    text = shown.run_with("health.js", body, {**HEALTH, **change})
    assert text == "Not everything is counted: topic web is not read: it does not exist."


def test_remarks_on_the_numbers(page: Browser, documents: Documents) -> None:
    sample = "Metrics of items are not exact: they are computed from a sample of the items."
    inexact = [{"metrics": "items", "cause": "item_sample", "text": sample}]
    change = {"inexact": inexact, "users_behind_seconds": 150.0}
    documents.documents["/api/health"] = 200, {**HEALTH, **change}
    open_documents(page, documents)
    assert page.text("#health-note") == (f"{sample} User metrics are 2 minutes behind the others.")


def test_a_split_that_the_settings_leave_out(hurried: Browser, documents: Documents) -> None:
    page = hurried
    whole = [reading("window_impressions", 200, "all")]
    documents.documents["/api/readings"] = 200, {"stream_time_ms": 1, "readings": whole}
    open_documents(page, documents)
    assert 'add ["variant"] to metrics.rollups in the settings' in page.text("#no-segments")
    documents.documents["/api/readings"] = 200, {"stream_time_ms": 1, "readings": []}
    page.until(lambda: "No events in the last 5m." in page.text("#no-segments"), "an empty window")


def test_an_error_of_the_exporter_is_shown(page: Browser, documents: Documents) -> None:
    documents.documents["/api/readings"] = 400, {"error": "unknown parameter 'x'"}
    page.open(documents.url)
    wanted = "Cannot reach the exporter: unknown parameter 'x'"
    page.until(lambda: health_line(page) == wanted, wanted)


def test_many_segments_are_cut_and_counted(page: Browser, documents: Documents) -> None:
    many = [reading("window_impressions", 1000 - i, f"v{i:03}") for i in range(230)]
    documents.documents["/api/readings"] = 200, {"stream_time_ms": 1, "readings": many}
    open_documents(page, documents)
    rows = "return document.querySelectorAll('#segments tbody tr').length"
    assert page.run(rows) == 10
    assert page.text("#segments-cut") == "10 of 230 are shown."
    for _ in range(2):
        page.run("document.querySelector('#segments-more').click()")
    assert page.run(rows) == 200
    assert page.text("#segments-cut") == "200 of 230 are shown."
    assert not page.is_shown("#segments-more")


def test_what_was_read_is_folded_and_what_is_wrong_is_not(
    page: Browser, documents: Documents
) -> None:
    counts = {"records": 1200, "accepted": 1000, "duplicates": 100, "late": 0, "ignored": 10}
    topic = {"topic": ODD, **counts, "rejected": {"kind": 80, "ts": 10}, "anonymous": 250}
    finding = {"what": f"of 528 clicks 0 joined {ODD}", "fix": "correct item_id"}
    clicks = {"kind": "clicks", "events": 400, "unattributed": 30}
    read = {"topics": [topic], "feedback": [clicks], "findings": [finding]}
    documents.documents["/api/health"] = 200, {**HEALTH, "read": read}
    open_documents(page, documents)
    page.until(lambda: page.is_shown("#read-findings li"), "the finding")
    assert page.texts("#read-findings li") == [f"of 528 clicks 0 joined {ODD}: correct item_id."]
    assert not page.is_shown("#read-table")
    page.run("document.querySelector('#more').open = true")
    row = page.texts("#read-table tbody td")
    assert row == ["1,200", "1,000", "100", "0", "10", "80 kind, 10 ts", "75.0%"]
    assert page.text("#read-table tbody th").strip() == ODD
    joins = ["30 of 400 clicks (7.50%) joined no impression, and no longer can."]
    assert page.texts("#read-joins li") == joins
    documents.documents["/api/health"] = 200, HEALTH
    page.until(lambda: not page.is_shown("#read-findings"), "no finding")
    assert page.complaints() == []


def test_a_column_is_an_entry_of_the_list(
    page: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/architecture.md says: of a copy that has one more."""
    changed(tmp_path, ("streamer",), COLUMN)
    folder = tmp_path / "streamer" / "server" / "web"
    files = {name: (folder / name).read_bytes() for name in web.contents()}
    monkeypatch.setattr(web, "contents", lambda: files)
    documents = odd_documents()
    readings = documents["/api/readings"][1]["readings"]
    readings.append(reading("conversion_value", 12.5, "A"))
    with Documents(documents) as served:
        page.open(served.url)
        page.until(lambda: "12.5" in page.text("#segments"), "the column")
    assert page.texts("#segments thead th")[-1].startswith("Value")
