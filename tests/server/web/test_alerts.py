"""The section of alerts: what it shows is what `/api/alerts` and `/api/explain` say."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import asdict
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import pytest
from selenium.webdriver import Keys

from streamer.formatting import change
from streamer.query.checks import CHECKS
from streamer.settings.load import parse
from streamer.stats.alerting.baseline import STATUSES
from tests.server.web.conftest import open_page
from tests.server.web.documents import HEALTH, NOTHING_BEFORE, NOW_MS, ODD, listing
from tests.server.web.test_page import count, number, percent
from tests.support.browser import Browser
from tests.support.site import Documents, Site


def points_of(amounts: list[float]) -> Callable[[float], str]:
    """How differences of shares are written: all with the decimals of the largest."""
    most = max(abs(100 * amount) for amount in amounts)
    decimals = max(0, 2 - int(f"{most:e}".partition("e")[2])) if most else 0

    def write(value: float) -> str:
        text = f"{100 * value:+.{decimals}f}"
        return f"{text if float(text) else 0} points".replace("-", "\u2212")

    return write


LINES = """return [...document.querySelectorAll("#alerts > li, #alerts-open li")].map((line) => [
  [...line.querySelectorAll("summary > span")].map((e) => e.textContent),
  Object.fromEntries([...line.querySelectorAll("dl > div")].map(
    (e) => [e.children[0].textContent.trim().replace(/:$/, ""), e.children[1].textContent]))])"""


def lines(page: Browser) -> list[tuple[list[str], dict[str, str]]]:
    """Of every watched segment its line, and the reasons that it opens to."""
    return [(line, reasons) for line, reasons in page.run(LINES)]


# Of an exporter ----------------------------------------------------------------------------------


def said(verdict: dict[str, Any]) -> str:
    return f"{verdict['status'].capitalize()}: {verdict['reason']}"


def test_rows_are_the_watched_segments(page: Browser, site: Site) -> None:
    open_page(page, site)
    found = site.get("/api/alerts")["alerts"]
    assert {e["checks"]["metric"]["status"] for e in found} <= {"too little data", "days differ"}
    expected = []
    names = ["ctr", "order"]  # those of which nothing can be said yet stand by alert
    for entry in sorted(
        found,
        key=lambda e: (
            names.index(e["alert"]),
            e["checks"]["metric"]["status"] == "days differ",
            -e["checks"]["metric"]["support"],
        ),
    ):
        write = percent if entry["alert"] == "ctr" else number
        metric = entry["checks"]["metric"]
        values = [value for value in entry["segment"].values() if value != "all"]
        name = f"{entry['alert']}: {', '.join(values) or 'all together'}"
        about = {"ctr": "Click-through rate, 24h; 5%", "order": "NDCG@10, 24h; 10%"}[entry["alert"]]
        ends = [metric["change_low"], metric["change_high"]]
        is_bound = ends[1] is not None
        between = " to ".join(map(change, ends)) if is_bound else f"at least {change(ends[0])}"
        line = [f"? {metric['status'].capitalize()}", name]
        line += [f"{write(metric['value'])}, usually {write(metric['baseline'])}"]
        support = f"{count(metric['support'])}, usually {count(metric['expected_support'])}"
        reasons = {"Watched": f"{about} tolerated", "Support": support}
        reasons |= {"95% range": f"{write(metric['low'])} to {write(metric['high'])}"}
        reasons |= {"Range of the change": between}
        reasons |= {check.title: said(entry["checks"][check.name]) for check in CHECKS}
        expected.append(([*line, change(metric["change"])], reasons))
    found_lines = lines(page)
    past = {reasons.pop("Past 7 days").split()[0] for _, reasons in found_lines}
    assert found_lines == expected
    assert past <= {"beyond", "too", "no"}
    assert len(expected) == 5


def test_nothing_is_explained_where_nothing_fires(page: Browser, site: Site) -> None:
    open_page(page, site)
    assert page.text("#why-note") == "Nothing fires."
    assert not page.is_shown("#why-split")


def test_the_split_is_the_explanation(page: Browser, site: Site) -> None:
    open_page(page, site, "/?alert=ctr")
    found = site.get("/api/explain?alert=ctr")
    first, *others = found["sentences"]
    assert page.text("#why-first") == first
    whole = (
        f"Click-through rate over 24h is {percent(found['now'])}; at the same time on weekdays of"
        f" the past week it was {percent(found['then'])}."
    )
    assert page.text("#why-words") == " ".join([whole, *others])
    steps = page.texts("#waterfall tbody td:last-child")
    assert [steps[0], steps[-1]] == [percent(found["then"]), percent(found["now"])]
    amounts = [part["rate"] for part in sorted(found["segments"], key=lambda p: -abs(p["rate"]))]
    write = points_of([*amounts, found["mix"], found["change"]])
    assert steps[1:-1] == [write(amount) for amount in (*amounts, found["mix"])]
    assert page.complaints() == []


def test_another_alert_is_chosen_by_keyboard_and_stays(page: Browser, site: Site) -> None:
    open_page(page, site, "/?alert=ctr")
    assert not page.is_shown("#why-note")
    page.run("document.querySelector('#explain-alert').focus()")
    page.press("o")
    page.until(lambda: page.is_shown("#why-note"), "the other alert")
    assert page.run("return document.activeElement.id") == "explain-alert"
    assert page.text("#why-note") == (
        "This alert watches everything together, so there is nothing to split by. Add segments ="
        ' ["variant"] to the alert in the settings.'
    )
    assert not page.is_shown("#why-split")
    assert page.driver.current_url.endswith("/?alert=order")
    page.press(Keys.ARROW_UP)
    page.until(lambda: page.is_shown("#why-split"), "the first alert again")
    steps = page.texts("#waterfall tbody tr")
    assert len(steps) == len(site.get("/api/explain?alert=ctr")["segments"]) + 3


def test_the_link_of_a_message_leads_here(page: Browser, site: Site) -> None:
    page.resize(1280, 600)  # lower than what follows the section
    open_page(page, site, "/?alert=order#explain")
    focused = "return document.activeElement.id"
    page.until(lambda: page.run(focused) == "explain-title", "the focus")
    assert page.run("return document.querySelector('#explain').getBoundingClientRect().top") < 100
    assert page.run("return document.querySelector('#explain-alert').value") == "order"
    assert not page.is_shown("#why-missing")
    open_page(page, site, "/?alert=gone")
    text = "The settings have no alert gone: ctr is shown."
    assert page.text("#why-missing") == text


# Of documents that few exporters give ------------------------------------------------------------


NAMED = {"title": "Click-through rate", "form": "percent"}


def entry(status: str, variant: str = "all", /, **more: Any) -> dict[str, Any]:
    """``more``: of the entry, of its checks, or of what is said of the metric."""
    what = {"alert": "ctr", "metric": "ctr_ratio", **NAMED, "window": "1h", "drop": 0.1}
    what |= {name: more.pop(name) for name in ("alert", "metric") if name in more}
    checks = {name: more.pop(name, None) for name in ("traffic", "reference")}
    metric: dict[str, Any] = dict.fromkeys(("value", "low", "high", "baseline"), 0.25)
    metric |= {"change": -0.2, "change_low": -0.3, "change_high": -0.15, "days": 7}
    metric |= {"support": 100, "expected_support": 90.4, "reason": "because", "status": status}
    return {**what, "segment": {"variant": variant}, "checks": {"metric": metric | more, **checks}}


def alerts_document(*entries: dict[str, Any]) -> dict[str, Any]:
    """What ``/api/alerts`` says."""
    statuses = [{"status": each, **asdict(words)} for each, words in STATUSES.items()]
    checks = [{"name": check.name, "title": check.title} for check in CHECKS]
    return {"alerts": [*entries], "checks": checks, "statuses": statuses}


def explanation(**more: Any) -> dict[str, Any]:
    what: dict[str, Any] = {
        "alert": "ctr",
        "metric": "ctr_ratio",
        **NAMED,
        "window": "1h",
        "baseline": "before",
        "compared": "before",
        "traffic": [],
        "command": "streamer why ctr --from 2026-11-02T14:00:00 --to 2026-11-02T15:00:00",
    }
    sums = {"then": 0.5, "now": 0.25, "change": -0.25, "mix": -0.25, "rate": 0.0}
    return {**what, "segments_by": ["variant"], **sums, "segments": [part("A")]} | more


def part(segment: str, **more: Any) -> dict[str, Any]:
    rates = {"share_then": 0.5, "share_now": 1.0, "rate_then": 0.5, "rate_now": 0.25}
    return {"segment": segment, **rates, "mix": -0.25, "rate": 0.0} | more


def shown(
    page: Browser,
    served: Documents,
    alerts: list[Any],
    explained: tuple[int, Any] | None = None,
    more: Any = MappingProxyType({}),
    alert: str = "ctr",
) -> Browser:
    """The page over these documents, which is asked about an alert."""
    served.documents = {
        "/api/health": (200, HEALTH),
        "/api/readings": (200, {"stream_time_ms": 1, "readings": []}),
        "/api/experiments": (200, listing()),
        "/api/alerts": (200, alerts_document(*alerts)),
        "/api/explain": explained or (200, explanation()),
        "/api/alerts/ctr": (200, alert_history()),
        "/api/annotations": (200, {"annotations": []}),
        "/api/before": (200, NOTHING_BEFORE),
        **more,
    }
    page.open(f"{served.url}/?{urlencode({'alert': alert})}")
    page.until(lambda: page.is_shown("#no-experiments"), "all is shown")
    return page


def test_without_alerts_there_is_an_example(page: Browser, served: Documents) -> None:
    shown(page, served, [])
    assert page.is_shown("#no-alerts")
    assert not page.is_shown("#alerts-panel")
    (alert,) = parse(tomllib.loads(page.text("#no-alerts code"))).alerts
    assert alert.segments == ("surface",)
    assert page.complaints() == []


def test_what_needs_somebody_stands_first_and_colours_have_text(
    page: Browser, served: Documents
) -> None:
    states = ["within the tolerance", "no baseline", "days differ", "too little data",
              "perhaps beyond the tolerance", "no traffic", "risen", "dropped"]  # fmt: skip
    shown(page, served, [entry(status, f"v{i}") for i, status in enumerate(states)])
    assert page.texts("#alerts-open > details > summary") == [
        "ctr: 1 of 8 segments has too little data, 1 has days that differ too much, "
        "1 has no baseline yet"
    ]
    assert not page.is_shown("#alerts-open li")
    assert [line[0] for line, _ in lines(page)] == [
        *("▼ Dropped beyond the tolerance", "▲ Risen beyond the tolerance", "✕ No traffic"),
        *("▽ Perhaps beyond the tolerance", "✓ Within the tolerance"),
        *("? Too little data", "? Days differ", "? No baseline"),
    ]
    verdicts = "document.querySelectorAll('#explain summary .verdict')"
    kinds = f"return [...{verdicts}].map((e) => e.dataset.kind)"
    assert page.run(kinds) == ["bad"] * 3 + ["warn", "good"] + ["open"] * 3
    assert not page.is_shown("#no-alerts")


def alert_history(*segments: dict[str, Any]) -> dict[str, Any]:
    """What is known of the alert ``ctr`` over time, at NOW_MS."""
    what = {"alert": "ctr", "metric": "ctr_ratio", **NAMED, "window": "1h", "for_ms": 600_000}
    when = {"step_ms": 600_000, "from_ms": NOW_MS - 86_400_000, "at_ms": NOW_MS}
    return {**what, **when, "omitted": 0, "segments": [*segments]}


def of_segment(variant: str, expected_ms: int | None = None, *spans: Any) -> dict[str, Any]:
    return {"segment": {"variant": variant}, "expected_ms": expected_ms, "spans": [*spans]}


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        ([None, 110, 400], "110 minutes"),
        ([None, 130], "2 hours"),
        ([3_200], "2 days"),
        ([None], ""),
    ],
)
def test_when_something_could_be_said_is_said(
    page: Browser, served: Documents, minutes: list[int | None], words: str
) -> None:
    ahead = [
        of_segment(f"v{i}", None if m is None else NOW_MS + m * 60_000)
        for i, m in enumerate(minutes)
    ]
    history = {"/api/alerts/ctr": (200, alert_history(*ahead))}
    shown(page, served, [entry("no baseline"), entry("within the tolerance", "v9")], more=history)
    said = "ctr: 1 of 2 segments has no baseline yet"
    likely = f"; the first verdict is likely in about {words} if traffic holds" if words else ""
    summary = "#alerts-open > details > summary"
    page.until(lambda: page.texts(summary) == [said + likely], f"{words or 'nothing'} is said")


def test_what_is_not_defined_is_a_dash_and_read_as_no_data(
    page: Browser, served: Documents
) -> None:
    none: dict[str, Any] = dict.fromkeys(
        ("value", "low", "high", "baseline", "change", "change_low")
    )
    shown(page, served, [entry("no traffic", **none, change_high=0.5, support=0)])
    (((_, _, value, moved), reasons),) = lines(page)
    assert reasons["Traffic"] == reasons["Reference week"] == "switched off"
    assert (value, moved, reasons["95% range"]) == ("–", "–", "no data")
    assert reasons["Range of the change"] == "at most +50%"
    assert reasons["Support"] == "0, usually 90"


def test_a_change_of_traffic_or_from_the_reference_week_stands_first(
    page: Browser, served: Documents
) -> None:
    said = {"status": "dropped", "reason": "10 events"}
    entries = [
        entry("no traffic", "v0"),
        entry(
            "within the tolerance",
            "v1",
            traffic=said,
            reference={"status": "days differ", "reason": "why"},
        ),
        entry("within the tolerance", "v2", reference={"status": "risen", "reason": "drifted"}),
    ]
    shown(page, served, entries)
    (one, first), (two, second), (three, _) = lines(page)
    assert [line[1] for line in (one, two, three)] == ["ctr: v1", "ctr: v2", "ctr: v0"]
    assert [line[0][0] for line in (one, two, three)] == ["▼", "▲", "✕"]
    titles = [check.title for check in CHECKS]
    assert first[titles[1]] == "Dropped beyond the tolerance: 10 events"
    assert (first[titles[2]], second[titles[2]]) == (
        "Days differ: why", "Risen beyond the tolerance: drifted")  # fmt: skip


@pytest.mark.parametrize(
    ("whole", "explained", "text"),
    [
        ({"status": "no baseline", "reason": "0 of at least 3 past windows have traffic"},
         {"then": None, "change": None, "segments": []},
         "There is no baseline yet. There is too little data to tell a change from chance: 0 of at"
         " least 3 past windows have traffic."),
        ({"status": "no traffic"}, {"now": None, "change": None, "segments": []},
         "Nothing was counted in the window."),
        ({}, {"segments_by": [], "segments": [part("all")]},
         "This alert watches everything together, so there is nothing to split by. Add segments ="
         ' ["variant"] to the alert in the settings.'),
    ],
)  # fmt: skip
def test_why_there_is_no_split(
    page: Browser,
    served: Documents,
    whole: dict[str, Any],
    explained: dict[str, Any],
    text: str,
) -> None:
    alerts = [
        entry(whole.get("status", "within the tolerance"), **whole),
        entry("within the tolerance", "A"),
    ]
    shown(page, served, alerts, (200, explanation(**explained)))
    assert page.text("#why-note") == text
    assert not page.is_shown("#why-split")


def test_the_command_that_reads_the_log_again(page: Browser, served: Documents) -> None:
    shown(page, served, [entry("dropped", "A")], (200, explanation()))
    assert page.text("#why-command") == explanation()["command"]
    shown(page, served, [entry("dropped", "A")], (200, explanation(now=None)))
    assert not page.is_shown("#why-again")
    assert page.complaints() == []


def test_values_of_segments_are_text(page: Browser, served: Documents) -> None:
    found = explanation(segments=[part(ODD, rate_then=None, mix=0.0)])
    shown(page, served, [entry("dropped", ODD, alert=ODD)], (200, found), alert=ODD)
    assert lines(page)[0][0][1] == f"{ODD}: {ODD}"
    assert page.text("#explain-alert option") == ODD
    assert page.texts("#waterfall tbody th") == ["then", ODD, "now"]
    assert page.run("return document.querySelectorAll('img, [onerror]').length") == 0


def test_an_alert_that_is_gone_does_not_hide_the_rest(page: Browser, served: Documents) -> None:
    answer = 404, {"error": "no such alert"}
    shown(page, served, [entry("within the tolerance")], answer)
    assert page.text("#why-note") == "no such alert"
    assert not page.is_shown("#why-split")
    assert page.run("return document.body.className") == ""


def test_many_segments_are_cut_and_counted(page: Browser, served: Documents) -> None:
    many = [entry("within the tolerance", f"v{i:03}", support=i) for i in range(205)]
    shown(page, served, [*many, entry("dropped", "last", support=0)])
    assert page.text("#alerts-cut") == "196 less urgent segments not shown."
    page.run("document.querySelector('#alerts-more').click()")
    found = lines(page)
    assert len(found) == 200
    assert found[0][0][1] == "ctr: last"
    assert page.text("#alerts-cut") == "6 less urgent segments not shown."
    assert not page.is_shown("#alerts-more")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("percent", ["+1.25 points", "\u22120.01 points", "0 points"]),
        ("seconds", ["+0.0125 s", "\u22120.0001 s", "0 s"]),
        ("number", ["+0.0125", "\u22120.0001", "0"]),
    ],
)
def test_differences_below_each_other_have_the_same_decimals(
    page: Browser, served: Documents, form: str, words: list[str]
) -> None:
    if not page.driver.current_url.startswith(served.url):
        shown(page, served, [])
    body = "const write = it.differences(given[0], given[1]); return given[1].map(write)"
    values = [0.0125, -0.000124, 0.0]
    assert page.run_with("format.js", body, form, values) == words
