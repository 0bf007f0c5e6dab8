"""What every picture of the page has to be, whatever is in it: no NaN, nothing wider than the
window, ticks that are told apart at round times, an estimate inside its bar."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from itertools import product
from typing import Any
from xml.dom import minidom

import pytest
from selenium.webdriver import Keys

from streamer import formatting
from streamer.query.alert_strip import Strip
from tests.server.web.documents import HEALTH, LISTED, NOTHING_BEFORE, NOW_MS, listing
from tests.server.web.test_alerts import (
    alert_history,
    alerts_document,
    entry,
    explanation,
    of_segment,
    part,
)
from tests.server.web.test_course import span
from tests.support.browser import Browser
from tests.support.lanes import sized
from tests.support.site import Documents

WIDTHS = (390, 1440, 2560)
LOOKS = sized([(390, "light"), (1440, "dark")], list(product(WIDTHS, ("light", "dark"))))
"""Widths of the window, and what people prefer."""
HOUR_MS = 3_600_000
LONG = "homepage_recommendations_carousel_above_the_fold_personalised_v2_experiment_holdout_eu"
LONG = (LONG + "_west_1_and_some_more_of_it_to_fill_up_the_room_there_is_for_names")[:128]
Answers = dict[str, tuple[int, Any]]

PROBLEMS = """
const found = [];
const wide = document.documentElement.scrollWidth;
if (wide > innerWidth) found.push(`${wide} px wide at ${innerWidth}`);
for (const e of document.querySelectorAll("svg *")) {
  for (const { name, value } of e.attributes) {
    if (/NaN|Infinity|undefined/.test(value)) found.push(`${e.tagName} ${name}=${value}`);
  }
}
const text = document.querySelector("main").innerText;
const bar = document.querySelector(".top > div");
if (bar?.offsetHeight > 56) found.push(`header ${bar.offsetHeight} px high`);
const padding = bar && parseFloat(getComputedStyle(bar).paddingRight);
const edge = bar && bar.getBoundingClientRect().right - padding;
for (const e of bar?.children ?? []) {
  const isOut = e.checkVisibility() && e.getBoundingClientRect().right > edge + 1;
  if (isOut) found.push(`header: ${e.textContent}`);
}
if (/NaN|Infinity|undefined|null/.test(text)) found.push("words");
for (const chart of document.querySelectorAll(".timeline")) {
  if (!chart.checkVisibility()) continue;
  const texts = (kind) => [...chart.querySelectorAll(kind)].map((e) => e.textContent);
  for (const kind of [".tick-x", ".tick-y"]) {
    const all = texts(kind);
    if (!all.length || new Set(all).size !== all.length) found.push(`${kind}: ${all}`);
  }
  const svg = chart.querySelector("svg").getBoundingClientRect();
  for (const e of chart.querySelectorAll("svg text")) {
    const box = e.getBoundingClientRect();
    if (box.left < svg.left - 2 || box.right > svg.right + 2) found.push(`cut: ${e.textContent}`);
  }
  const labels = [...chart.querySelectorAll("svg text")]
    .map((e) => [e.textContent, e.getBoundingClientRect()]);
  labels.forEach(([a, one], i) => labels.slice(i + 1).forEach(([b, two]) => {
    const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const along = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (across > 1 && along > 4) found.push(`over each other: ${a}, ${b}`);
  }));
  const bands = [...chart.querySelectorAll("polygon.around")].map((e) => e.className.baseVal);
  if (new Set(bands).size > 1) found.push("two bands");
}
for (const cell of document.querySelectorAll("table :is(th, td)")) {
  const panel = cell.closest(".scroll") ?? cell.closest(".panel");
  if (!cell.checkVisibility() || panel?.matches(".scroll")) continue;
  const [box, around] = [cell.getBoundingClientRect(), panel.getBoundingClientRect()];
  if (box.width > 2 && box.right > around.right + 1) found.push(`outside: ${cell.textContent}`);
}
for (const e of document.querySelectorAll("#segments, #experiments-table")) {
  if (e.offsetWidth > e.parentElement.clientWidth + 1) found.push(`${e.id} is cut`);
}
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const parent = node.parentElement;
  if (!parent.checkVisibility() || parent.closest("script, option")) continue;
  const range = document.createRange();
  for (const { 0: word, index } of node.data.matchAll(/(?<!\\S)[A-Za-z]{2,12}(?!\\S)/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
    if (tops.size > 1) found.push(`broken: ${word}`);
  }
  const panel = parent.closest(".panel, .banner, .top");
  if (!panel || parent.closest(".scroll, pre, svg, select, .hidden-text, thead")) continue;
  range.selectNodeContents(node);
  const { right, width } = range.getBoundingClientRect();
  const isBeyond = right > panel.getBoundingClientRect().right + 1;
  if (width > 2 && isBeyond) found.push(`beyond: ${node.data}`);
}
for (const bar of document.querySelectorAll(".lift-bar")) {
  const of = (part, name) => parseFloat(bar.querySelector(part)?.getAttribute(name));
  const [x, left, width] = [of("circle", "cx"), of("rect", "x"), of("rect", "width")];
  if (x < left - 0.5 || x > left + width + 0.5) found.push(`estimate ${x} of ${left}, ${width}`);
}
return found;
"""


def reading(name: str, value: float, variant: str) -> dict[str, Any]:
    labels = {"window": "24h", "variant": variant}
    return {"name": f"streamer_{name}", "labels": labels, "value": value}


def readings(segments: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """Variant → (impressions, clicks)."""
    whole = tuple(sum(pair[i] for pair in segments.values()) for i in (0, 1))
    found = []
    for variant, (shown, clicks) in {**segments, "all": whole}.items():
        found += [
            reading("window_impressions", shown, variant),
            reading("window_clicks", clicks, variant),
        ]
        if shown:
            found.append(reading("ctr_ratio", clicks / shown, variant))
            found.append(reading("ctr_lower_ratio", 0.8 * clicks / shown, variant))
            found.append(reading("ctr_upper_ratio", 1.2 * clicks / shown + 3 / shown, variant))
    return {"stream_time_ms": NOW_MS, "readings": found}


def course(
    lines: dict[str, list[float | None]], step_ms: int = HOUR_MS, band: float | None = 0.002
) -> dict[str, Any]:
    points = len(next(iter(lines.values())))
    begin = NOW_MS - NOW_MS % step_ms - (points - 1) * step_ms
    return {
        **{"name": "streamer_ctr_ratio", "title": "Click-through rate", "form": "percent"},
        **{"labels": [], "window": "24h", "at_ms": NOW_MS, "step_ms": step_ms, "omitted": 0},
        **{"starts_ms": [begin + i * step_ms for i in range(points)], "counted_since_ms": 0},
        **{"kept_from_ms": begin, "whole": None, "split": "variant"},
        "lines": [
            {
                "labels": {"variant": name},
                "values": values,
                "lower": []
                if band is None
                else [None if v is None else max(0, v - band) for v in values],
                "upper": [] if band is None else [None if v is None else v + band for v in values],
            }
            for name, values in lines.items()
        ],
    }


WINDOWS = {"windows": ["1h", "24h"], "default_view": {"window": "24h", "split": []}}


def base(segments: dict[str, tuple[int, int]], history: dict[str, Any]) -> Answers:
    return {
        "/api/health": (200, copy.deepcopy(HEALTH) | WINDOWS),
        "/api/readings": (200, readings(segments)),
        "/api/history": (200, history),
        "/api/before": (200, NOTHING_BEFORE),
        "/api/alerts": (200, alerts_document()),
        "/api/annotations": (200, {"annotations": []}),
        "/api/explain": (200, explanation()),
        "/api/metrics": (200, {"metrics": []}),
        "/api/experiments": (200, listing(LISTED | {"name": "ranker", "title": "ranker"})),
    }


USUAL = {"women": (2600, 16), "men": (2700, 19)}
STEADY: list[float | None] = [0.006, 0.007, 0.0065, 0.006] * 6
GONE: list[float | None] = [*STEADY[:12], *[0.0] * 12]


def zero() -> Answers:
    return base(
        {"women": (2600, 0), "men": (2700, 19)}, course({"women": [0.0] * 24, "men": STEADY})
    )


def all_zero() -> Answers:
    return base({"women": (2600, 0)}, course({"women": [0.0] * 24}, band=None))


def all_zero_with_bands() -> Answers:
    return base({"women": (60, 0)}, course({"women": [0.0] * 24}, band=0.06))


def one_point() -> Answers:
    return base(USUAL, course({"women": [0.006], "men": [0.007]}))


def gaps() -> Answers:
    return base(USUAL, course({"women": [None, 0.006, None] * 8, "men": [None] * 24}))


def seconds() -> Answers:
    return base(USUAL, course({"women": STEADY}, step_ms=5000))


def one_dimension() -> Answers:
    found = base(USUAL, course({"women": STEADY, "men": STEADY}))
    sample = {"name": "streamer_item_sample_ratio", "labels": {"window": "24h"}, "value": 0.5}
    found["/api/readings"][1]["readings"].append(sample)
    return found


def long_labels() -> Answers:
    found = base({LONG: (2600, 16), "men": (27, 1)}, course({LONG: STEADY, "men": STEADY}))
    firing = firing_line(LONG, f"Click-through rate of {LONG} is 0% instead of 0.590%")
    rows = alerts_document(entry("dropped", LONG), entry("within the tolerance")) | {
        "firing": [firing]
    }
    found["/api/alerts"] = 200, rows
    found["/api/explain"] = 200, explanation(segments=[part(LONG, rate=-0.1), part("men")])
    found["/api/alerts/ctr"] = (
        200,
        alert_history(of_segment(LONG, None, span("dropped", 700, None, 690))),
    )
    return found


def many_segments() -> Answers:
    segments = {f"segment-{i:03}": (5000 - i, i) for i in range(500)}
    return base(segments, course({f"segment-{i:03}": STEADY for i in range(12)}))


def many_experiments() -> Answers:
    found = base(USUAL, course({"women": STEADY, "men": STEADY}))
    names = [f"experiment {i} of {LONG}"[:128] for i in range(24)]
    found["/api/experiments"] = (
        200,
        listing(*(LISTED | {"name": name, "title": name, "owner": LONG} for name in names)),
    )
    return found


def started() -> Answers:
    """Fifteen minutes after the first event."""
    since = NOW_MS - 15 * 60_000
    history = course({"women": [None, 0.006, 0.0], "men": [None, None, 0.01]}, step_ms=300_000)
    found = base({"women": (26, 0), "men": (27, 1)}, history | {"counted_since_ms": since})
    low = dict.fromkeys(("value", "low", "high", "baseline", "change", "change_low", "change_high"))
    waiting = entry("no baseline", "women", **low, support=26, expected_support=None)
    found["/api/alerts"] = 200, alerts_document(waiting)
    found["/api/alerts/ctr"] = 200, alert_history(of_segment("women", NOW_MS + 6 * 86_400_000))
    wait = {"kind": "open", "sign": "…", "words": "Wait 6 more days"}
    few = {"pill": wait, "bar": None, "days": 0, "name": "ranker", "title": "ranker"}
    found["/api/experiments"] = 200, listing(LISTED | few)
    return found


def firing_line(name: str, headline: str) -> dict[str, Any]:
    what = {"alert": "ctr", "segment": {"variant": name}, "name": name, "where": f"variant {name}"}
    what |= {"check": "metric", "status": "dropped", "sign": "▼", "headline": headline}
    evidence = ["traffic 2,603, usually 2,836", "refused 0% in the past 50 minutes"]
    likely = "looks like lost events"
    return {
        **what,
        "size": "\u2212100%, at least \u221278%",
        "evidence": evidence,
        "likely": likely,
        "since_ms": NOW_MS - 37 * HOUR_MS,
        "since_low_ms": NOW_MS - 38 * HOUR_MS,
        "since_high_ms": NOW_MS - 37 * HOUR_MS,
    }


def outage() -> Answers:
    found = base({"women": (2600, 0), "men": (2700, 19)}, course({"women": GONE, "men": STEADY}))
    line = firing_line("women", "Click-through rate of women is 0% instead of 0.590%")
    gone = entry("dropped", "women", value=0.0, baseline=0.0059, change=-1.0, window="24h")
    gone["window"] = "24h"
    found["/api/alerts"] = (
        200,
        alerts_document(gone, entry("within the tolerance")) | {"firing": [line]},
    )
    strip = Strip(NOW_MS - 167 * HOUR_MS, HOUR_MS, [0.006] * 168, [0.006] * 168,
                  [False] * 120 + [None] * 10 + [True] * 38)  # fmt: skip
    told = of_segment("women", None, span("dropped", 700, None, 690))
    told["strip"] = {name: getattr(strip, name) for name in Strip.__slots__}
    found["/api/alerts/ctr"] = 200, alert_history(told)
    sums = {"then": 0.007, "now": 0.005, "change": -0.002, "mix": -0.0001, "rate": -0.0019}
    parts = [part("women", mix=0.0, rate=-0.0018), part("men", mix=-0.0001, rate=-0.0001)]
    texts = ["90% of the fall comes from women: 0.590% → 0%."]
    found["/api/explain"] = 200, explanation(segments=parts, sentences=texts, **sums)
    marks = [
        {"at_ms": NOW_MS - hours * HOUR_MS, "until_ms": None, "text": text}
        for hours, text in ((39, "tracker 2.8.1"), (12, "campaign"))
    ]
    found["/api/annotations"] = 200, {"annotations": marks}
    return found


def empty() -> Answers:
    found = base({}, {})
    found["/api/health"][1].update(stream_time_ms=0, workers=[], lag_records={})
    found["/api/readings"] = 200, {"stream_time_ms": 0, "readings": []}
    found["/api/experiments"] = 200, listing()
    found["/api/alerts"] = 200, alerts_document() | {"declared": ["ctr"]}
    return found


def hanging() -> Answers:
    away = 503, {"error": "Redis does not answer within 2 s: it hangs, or the network does"}
    return dict.fromkeys(base(USUAL, {}), away)


def stale() -> Answers:
    found = base(USUAL, course({"women": STEADY}))
    found["/api/health"][1].update(now_ms=NOW_MS + 7 * HOUR_MS)
    return found


STATES: dict[str, Callable[[], Answers]] = {
    each.__name__: each
    for each in (
        *(
            zero,
            all_zero,
            all_zero_with_bands,
            one_point,
            gaps,
            seconds,
            one_dimension,
            long_labels,
        ),
        *(many_segments, many_experiments, outage, empty, started, hanging, stale),
    )
}


def shown(page: Browser, served: Documents, state: str, path: str = "") -> None:
    served.documents = STATES[state]()
    page.open(served.url + path)
    if state == "hanging":
        page.until(lambda: "Redis does not answer" in page.text("#health"), "the failure")
    elif state == "empty":
        page.until(lambda: page.is_shown("#no-experiments"), "the empty page")
    else:
        page.until(lambda: page.is_shown("#experiments-table a"), "all is shown")
    page.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")


@pytest.mark.parametrize("state", list(STATES))
def test_every_state_is_a_correct_picture(page: Browser, served: Documents, state: str) -> None:
    shown(page, served, state)
    looked = 0
    for width, scheme in LOOKS:
        page.resize(width)
        page.prefer(color_scheme=scheme)
        page.run("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))")
        assert page.run(PROBLEMS) == [], f"{state} at {width} px, {scheme}"
        looked += 1
    assert looked == len(LOOKS) > 1
    if state != "hanging":
        assert page.complaints() == []


def test_a_word_that_is_broken_is_found(page: Browser, served: Documents) -> None:
    shown(page, served, "outage")
    page.until(lambda: page.is_shown("#waterfall td"), "the steps")
    page.run(
        "const title = document.querySelector('.legend .title');"
        "document.querySelector('.when').style.cssText = 'padding-left: 3000px; width: 9000px';"
        "title.style.width = '20px'; title.style.overflowWrap = 'anywhere';"
        "document.querySelector('#waterfall td').style.cssText = 'position: relative; left: 2000px'"
    )
    problems = " ".join(page.run(PROBLEMS))
    assert "broken: women" in problems
    assert "outside: " in problems
    assert "beyond: " in problems


def test_a_wrong_picture_is_found(page: Browser, served: Documents) -> None:
    shown(page, served, "zero")
    page.run("document.querySelector('footer').style.width = '3000px'")
    page.run(
        "document.querySelector('.timeline polyline').setAttribute('points', '1,NaN');"
        "document.querySelectorAll('.tick-y').forEach((e) => (e.textContent = '0%'))"
    )
    problems = " ".join(page.run(PROBLEMS))
    for wanted in ("NaN", ".tick-y", "px wide"):
        assert wanted in problems


def test_an_outage_looks_like_one(page: Browser, served: Documents) -> None:
    """The line lies on the axis, far below the usual level; the band is no block."""
    shown(page, served, "outage")
    boxes = page.run(
        "const box = (e) => e.getBoundingClientRect(), of = (s) => document.querySelector(s);"
        "const plot = [...document.querySelectorAll('#course .grid')].map((e) => box(e).top);"
        "const points = of('#course polyline.line:not(.thin)').getAttribute('points').split(' ');"
        "return { top: Math.min(...plot), bottom: Math.max(...plot), usual: box(of('.usual')).top,"
        " firing: document.querySelectorAll('#course .firing').length,"
        " outside: document.querySelectorAll('#course .outside').length,"
        " last: Number(points.at(-1).split(',')[1]), first: Number(points[0].split(',')[1]) }"
    )
    assert boxes["last"] > boxes["first"] + 40
    assert boxes["top"] < boxes["usual"] < boxes["bottom"] - 40
    assert (boxes["firing"], boxes["outside"]) == (1, 1)
    for width in WIDTHS:
        page.resize(width)
        for first in ("#firing", ".tile"):  # on the first screen
            end = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
            assert page.run(end, first) < 844, (first, width)


def test_the_first_seconds_show_what_will_be_there(page: Browser, served: Documents) -> None:
    served.documents, served.seconds = STATES["outage"](), 0.2
    try:
        page.open(served.url)
        page.until(lambda: page.is_shown(".skeleton"), "room for what comes")
        assert not any(map(page.is_shown, ("#no-events", "#experiments-title", "#no-alerts")))
        page.until(lambda: page.is_shown("#experiments-table a"), "all is shown")
    finally:
        served.seconds = 0.0
    assert not page.is_shown(".skeleton")


def test_the_header_is_one_line_at_every_width(page: Browser, served: Documents) -> None:
    served.documents = STATES["outage"]()
    silent = {"what": "clicks", "dimension": "variant", "value": "women", "text": f"No {LONG}"}
    served.documents["/api/health"][1]["silent"] = [silent]
    needs = ("ship", "ship", "harm", "broken")
    listed = [{**LISTED, "name": f"e{i}", "needs": word} for i, word in enumerate(needs)]
    served.documents["/api/experiments"] = 200, listing(*listed)
    page.open(served.url)
    page.until(lambda: page.is_shown("#experiments-table a"), "all is shown")
    assert page.text("#health-state") == "Clicks are missing"
    for width in (320, 390, 600, 768, 896, 1024, 1280, 1440, 1920, 2560):
        page.resize(width)
        header = [text for text in page.run(PROBLEMS) if text.startswith("header")]
        assert header == [], width
        assert page.text("#health-note").startswith("No homepage")


def test_an_alert_is_a_line_that_opens_by_keyboard(page: Browser, served: Documents) -> None:
    served.documents = STATES["outage"]()
    page.open(served.url)
    page.until(lambda: page.is_shown("#alerts li"), "the lines")
    heights = "return [...document.querySelectorAll('#alerts > li')].map((e) => e.offsetHeight)"
    assert max(page.run(heights)) <= 48
    assert page.text("#alerts-answer") == "1 of 2 watched segments fires"
    page.run("document.querySelector('#alerts summary').focus()")
    page.press(Keys.ENTER)
    assert page.is_shown("#alerts dl")
    assert not page.is_shown("#alerts li:nth-child(2) dl")


def test_all_zero_has_an_axis(page: Browser, served: Documents) -> None:
    for state in ("all_zero", "all_zero_with_bands"):
        shown(page, served, state)
        ticks = page.run(
            "return [...document.querySelectorAll('.tick-y')].map((e) => e.textContent)"
        )
        assert ticks[0].startswith("0")
        assert len(set(ticks)) == len(ticks) > 3


def test_ticks_of_time_are_round(page: Browser, served: Documents) -> None:
    body = "return it.timeTicks(...given).map(({ text }) => text)"
    day = 86_400_000
    midnight = NOW_MS - NOW_MS % day
    for since, until, wanted in (
        (midnight - 7 * day, midnight, r"\d+ [A-Z][a-z]{2}|12:00"),
        (midnight - day // 2, midnight + day // 3, r"\d+ [A-Z][a-z]{2}|\d\d:00"),
        (midnight + 61_000, midnight + 300_000, r"\d\d:\d\d(:[0-5]0)?"),
    ):
        found = page_ticks(page, served, body, since, until)
        assert 2 <= len(found) <= 9
        assert len(set(found)) == len(found)
        assert all(re.fullmatch(wanted, text) for text in found), found


def page_ticks(page: Browser, served: Documents, body: str, *given: int) -> list[str]:
    if not page.driver.current_url.startswith(served.url):
        shown(page, served, "zero")
    found: list[str] = page.run_with("axis.js", body, *given, 700)
    return found


def test_what_fires_is_counted_everywhere(page: Browser, served: Documents) -> None:
    shown(page, served, "outage")
    assert page.driver.title == "(1) ▼ ctr women – streamer"
    assert "b3261e" in page.run("return document.querySelector('#icon').href")
    assert page.text("#alerts-badges") == "▼ 1 firing"
    line = page.text("#firing li")
    for wanted in (
        "Click-through rate of women is 0% instead of 0.590%",
        "(\u2212100%, at least \u221278%)",
        "Since",
        "(37 hours), between ",
        "Shortly before tracker 2.8.1",
        "Likely looks like lost events",
        "traffic 2,603, usually 2,836",
    ):
        assert wanted in line, wanted
    href = page.run("return document.querySelector('#firing .why').getAttribute('href')")
    assert href == "?alert=ctr&segment=variant%3Awomen#explain"
    page.run("document.querySelector('#firing .why').click()")
    page.until(lambda: "segment=variant%3Awomen" in page.driver.current_url, "the address")
    page.until(lambda: page.run("return document.activeElement.id") == "explain-title", "focus")
    assert page.text("#why-first") == "90% of the fall comes from women: 0.590% → 0%."
    assert page.texts("#waterfall tbody th")[:2] == ["then", "women"]
    assert "Past 7 days: beyond tolerance in 38 of 158 h" in page.text("#alerts li dl")


def test_while_an_alert_fires_its_split_and_its_change_come_first(
    page: Browser, served: Documents
) -> None:
    shown(page, served, "outage")
    assert page.texts("#segments tbody th") == ["women", "men"]
    heads = page.texts("#segments thead th")
    assert [h.split("\u00a0")[0].split()[0] for h in heads[:6]] == [
        *("variant", "Impressions", "Clicks", "CTR", "Usual", "Change")
    ]
    row = page.texts("#segments tbody tr:first-child td .value")
    assert row[2:5] == ["0%", "0.590%", "\u2212100%"]
    bars = (
        "return [...document.querySelectorAll('#segments .change rect')].map((e) => e.dataset.kind)"
    )
    assert page.run(bars)[0] == "bad"


def test_many_segments_are_found_by_name_and_shown_step_by_step(
    page: Browser, served: Documents
) -> None:
    shown(page, served, "many_segments")
    count = "return document.querySelectorAll('#segments tbody tr').length"
    assert page.run(count) == 10
    for button, rows in (("Show 25", 25), ("Show all", 200)):
        assert page.text("#segments-more") == button
        page.run("document.querySelector('#segments-more').click()")
        assert page.run(count) == rows
    assert page.text("#segments-cut") == "200 of 500 are shown."
    page.driver.find_element("id", "segments-search").send_keys("-499")
    assert page.texts("#segments tbody th") == ["segment-499"]
    assert page.text("#segments-cut") == "1 of 1 that match are shown."


def test_tables_and_charts_can_be_saved(page: Browser, served: Documents) -> None:
    shown(page, served, "outage")
    csv = page.run_with("download.js", "return it.csvOf(document.querySelector('#segments'))")
    first, women, *_ = csv.split("\r\n")
    assert first.startswith("variant,Impressions,Clicks,CTR,CTR (more),Usual,Change")
    assert women.startswith('women,"2,600",0,0%,0% to 0.115%,0.590%,\u2212100%')
    svg = page.run_with(
        "download.js", "return it.svgOf(document.querySelector('#course .plot svg'))"
    )
    assert svg.startswith("<svg")
    assert 'stroke="rgb(' in svg
    assert "cursor" not in svg
    drawn = "const [s, t] = ['svg', 'text'].map((n) => document.createElementNS("
    drawn += "'http://www.w3.org/2000/svg', n)); t.textContent = given[0]; t.id = given[0]; "
    drawn += "s.append(t); document.body.append(s); return it.svgOf(s)"
    saved = page.run_with("download.js", drawn, "\x1b[2J<\x9b\u202e")
    node = minidom.parseString(saved).getElementsByTagName("text")[0]
    assert node.getAttribute("id") == "\\u001b[2J<\\u009b\\u202e"
    assert f">{node.getAttribute('id')}<".replace("J<", "J&lt;") in saved
    quoted = "const t = document.createElement('table'); const c = t.insertRow().insertCell();"
    quoted += "c.textContent = given[0]; return it.csvOf(t)"
    for text, wanted in (("=1+1", "'=1+1"), ('a"b,c', '"a""b,c"'), ("+5.0%", "+5.0%")):
        assert page.run_with("download.js", quoted, text) == wanted


def test_a_rate_above_one_is_none(page: Browser, served: Documents) -> None:
    shown(page, served, "zero")
    document = readings({"unknown": (1, 73)})
    served.documents["/api/readings"] = 200, document
    page.open(served.url)
    page.until(lambda: page.is_shown("#segments"), "the table")
    text = page.text("#segments tbody tr td:nth-child(4)")
    assert text == "–more clicks than impressions"


def test_an_empty_page_says_what_is_declared_and_what_is_missing(
    page: Browser, served: Documents
) -> None:
    shown(page, served, "empty")
    assert page.text("#alerts-waiting") == "1 alert (ctr), waiting for first events."
    assert not page.is_shown("#no-alerts")
    done = "return [...document.querySelectorAll('.checklist li')].map((e) => e.dataset.done ?? '')"
    assert page.run(done) == ["false", "false", ""]


def test_a_past_range_is_asked_for(page: Browser, served: Documents) -> None:
    shown(page, served, "zero")
    page.run(
        "const [from, until] = document.querySelectorAll('#course .range input');"
        "from.value = '2025-06-14T00:00'; until.value = '2025-06-14T12:00';"
        "document.querySelector('#course .range button').click()"
    )
    page.until(lambda: "from=" in page.driver.current_url, "the address")
    asked = page.until(
        lambda: [url for url in page.requests() if "from_ms=" in url], "the course of the range"
    )
    assert "from_ms=1749859200000&until_ms=1749902400000" in asked[0]


@pytest.mark.parametrize("form", ["percent", "seconds", "number"])
def test_the_page_and_the_server_write_numbers_alike(
    page: Browser, served: Documents, form: str
) -> None:
    values = [
        0,
        1,
        -1,
        0.5,
        0.0059,
        0.03125,
        -0.293,
        0.042,
        0.00042,
        12.3456,
        1234.5,
        999.49,
        1e-7,
        2,
        3.14,
    ]
    if not page.driver.current_url.startswith(served.url):
        shown(page, served, "zero")
    body = """const write = it.writer(given[0]);
      return given[1].map((v) => [write(v), it.change(Math.max(-1, v)), it.share(v / 1e4)])"""
    found = page.run_with("format.js", body, form, values)
    written = (
        [formatting.value_text(form, v), formatting.change(max(-1, v)), formatting.share(v / 1e4)]
        for v in values
    )
    assert found == list(written)
