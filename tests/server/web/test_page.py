"""What the page shows is what the JSON API says."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamer.cli import arguments
from streamer.formatting import change
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.testing.embedded import EmbeddedRedis
from tests.server.web.conftest import open_page, settings_of
from tests.support.browser import Browser
from tests.support.site import Site

ROWS = """const compared = (cell) => /( before|^Usual|^Change)$/.test(cell.dataset.title);
const text = (cell) => cell.innerText.trim().replaceAll("\u00a0", " ");
return [...document.querySelectorAll("#segments tbody tr, #segments tfoot tr")].map(
  (row) => [...row.cells].filter((cell) => !compared(cell)).map(text))"""
Write = Callable[[float], str]


@pytest.fixture
def shown(page: Browser, site: Site) -> Browser:
    """The page as it is opened first, the same one for all tests that only read it."""
    if page.driver.current_url != site.url + "/":
        open_page(page, site)
    return page


# Numbers as a reader expects them, by another implementation ------------------------------------


def count(value: float) -> str:
    return f"{value:,.0f}"


def number(value: float) -> str:
    """Three significant digits."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.2e}".partition("e")[2])
    return f"{value:.{max(0, 2 - exponent)}f}"


def percent(value: float) -> str:
    return f"{number(100 * value)}%"


COLUMNS: dict[str, tuple[str, dict[str, str], Write]] = {
    "Impressions": ("window_impressions", {}, count),
    "Clicks": ("window_clicks", {}, count),
    "CTR": ("ctr_ratio", {}, percent),
    "Conversions": ("window_conversions", {}, count),
    "CVR": ("cvr_ratio", {}, percent),
    "Users": ("window_users", {}, count),
    "Positive rate": (
        "positive_rate_ratio",
        {"feedback": "click", "definition": "docs"},
        percent,
    ),
    "Mean dwell": ("dwell_mean_seconds", {}, lambda value: f"{number(value)} s"),
    "NDCG@10": ("ndcg_ratio", {"k": "10", "over": "all", "maturity": "provisional"}, number),
}


def ends_of(name: str) -> list[str]:
    """Names of the ends of a metric's interval."""
    base, unit = re.fullmatch(r"(.*?)(_ratio|_seconds)?", name).groups("")  # type: ignore[union-attr]
    return [f"{base}_{end}{unit}" for end in ("lower", "upper")]


def expected_rows(readings: list[dict[str, Any]], split: list[str]) -> list[list[str]]:
    """Rows by support, then that of all together; below a value its interval, where it has one."""
    values: dict[tuple[str, ...], dict[str, float]] = {}
    for reading in readings:
        extra = dict(reading["labels"])
        segment = {d: extra.pop(d) for d in ("window", "variant", "surface")}
        name = json.dumps([reading["name"].removeprefix("streamer_"), extra], sort_keys=True)
        values.setdefault(tuple(segment[d] for d in split), {})[name] = reading["value"]
    rows = {}
    for key, its in values.items():
        rows[key] = [", ".join(key) if "all" not in key else "all"]
        for name, labels, write in COLUMNS.values():
            texts = [
                write(its[full]) if (full := json.dumps([n, labels], sort_keys=True)) in its else ""
                for n in (name, *ends_of(name))
            ]
            interval = f"\n{texts[1]} to {texts[2]}" if all(texts) else ""
            rows[key].append((texts[0] or "–") + interval)
    support = json.dumps(["window_impressions", {}])
    keys = sorted((k for k in rows if "all" not in k), key=lambda k: (-values[k][support], k))
    return [rows[key] for key in [*keys, ("all",) * len(split)]]


@pytest.mark.parametrize(
    ("path", "query", "split"),
    [
        ("/", "window=24h&surface=all", ["variant"]),
        ("/?window=1h&split=surface", "window=1h&variant=all", ["surface"]),
        ("/?window=24h&split=variant,surface", "window=24h", ["variant", "surface"]),
    ],
)
def test_rows_are_the_readings(
    page: Browser, site: Site, path: str, query: str, split: list[str]
) -> None:
    open_page(page, site, path)
    readings = site.get(f"/api/readings?{query}")["readings"]
    rows = page.run(ROWS)
    assert len(rows) > 2
    assert page.texts("#segments thead th a") == list(COLUMNS)
    assert rows == expected_rows(readings, split)


def test_rates_are_compared_with_the_window_before(page: Browser, site: Site) -> None:
    open_page(page, site, "/?window=1h&split=surface&sort=change")
    found = {}
    query = "window=1h&variant=all&name=ctr_ratio&name=window_impressions"
    for reading in site.get(f"/api/readings?{query}")["readings"]:
        found[reading["labels"]["surface"], reading["name"]] = reading["value"]
    asked = "/api/before?name=ctr_ratio&window=1h"
    whole, parts = site.get(asked), site.get(f"{asked}&split=surface")
    assert whole["title"] == parts["title"] == "1h before"
    begin, end = parts["from_ms"], parts["until_ms"]
    query = f"name=ctr_ratio&window=24h&split=surface&from_ms={begin}&until_ms={end}"
    course = site.get(f"/api/history?{query}")
    assert course["whole"] == parts["lines"]
    assert end - begin == 72 * 60_000  # whole panes that end by then
    assert course["at_ms"] + 1 - 3_600_000 - 24 * 60_000 < end <= course["at_ms"] + 1 - 3_600_000
    past = {line["labels"]["surface"]: line["values"][0] for line in parts["lines"]}
    past["all"] = whole["lines"][0]["values"][0]
    rows = page.run(
        "return [...document.querySelectorAll('#segments tr.row')].map((row) => "
        "[row.cells[0].textContent, ...['1h before', 'Change'].map((title) => "
        "row.querySelector(`[data-title='${title}'] .value`).textContent)])"
    )
    assert len(rows) > 2
    looked = 0
    for name, then, moved in rows:
        if found[name, "streamer_window_impressions"] < 100 or name not in past:
            assert (then, moved) == ("–", "–")
        else:
            looked += 1
            now = found[name, "streamer_ctr_ratio"]
            assert (then, moved) == (percent(past[name]), change(now / past[name] - 1))
    assert looked


def test_all_together_is_one_row(page: Browser, site: Site) -> None:
    open_page(page, site, "/?split=-")
    (row,) = page.run(ROWS)
    readings = site.get("/api/readings?window=24h&variant=all&surface=all")["readings"]
    shown = {r["name"]: r["value"] for r in readings if len(r["labels"]) == 3}
    assert row[:2] == ["all together", count(shown["streamer_window_impressions"])]


def test_more_metrics_are_all_the_others(shown: Browser, site: Site) -> None:
    page = shown
    readings = site.get("/api/readings?window=24h&variant=A&surface=all")["readings"]
    page.run("document.querySelector('#more summary').click()")
    page.run(
        "const s = document.querySelector('#more-segment'); s.value = '[\"A\"]';"
        "s.dispatchEvent(new Event('change'))"
    )
    rows = page.until(lambda: page.run(_MORE), "rows of more metrics")
    in_table = [r for r in readings if _is_column(r)]
    assert len(in_table) == len(COLUMNS)
    assert len(rows) == len(readings) - len(in_table)
    values = {(name, labels): value for name, labels, value, _ in rows}
    mrr = next(
        r["value"]
        for r in readings
        if r["name"] == "streamer_mrr" and r["labels"]["over"] == "engaged"
    )
    assert values["mrr", "over=engaged maturity=provisional"] == f"{mrr:.6g}"
    box = page.driver.find_element("id", "more-search")
    box.send_keys("NDCG k=5 engaged")
    found = page.run(_MORE)
    assert found
    assert all("ndcg" in name and "k=5" in labels for name, labels, *_ in found)
    assert page.text("#more-table caption").startswith(f"{len(found)} of {len(rows)} metrics of A")


_MORE = """const text = (cell) => cell.querySelector("a")?.textContent ?? cell.textContent;
return [...document.querySelectorAll("#more-table tbody tr:not(.family)")].map(
  (row) => [...row.cells].map(text))"""


def test_more_metrics_stand_by_family_with_unit_and_meaning(shown: Browser, site: Site) -> None:
    page = shown
    page.run(
        "const s = document.querySelector('#more-search'); s.value = '';"
        "document.querySelector('#more').open = true; s.dispatchEvent(new Event('input'))"
    )
    page.until(lambda: "traffic" in page.texts("#more-table .family"), "families")
    families = page.texts("#more-table .family")
    assert families[:3] == ["traffic", "engagement", "ranking"]
    assert len(set(families)) == len(families)
    listed = {each["name"]: each for each in site.get("/api/metrics")["metrics"]}
    row = page.run(
        "return [...document.querySelectorAll('#more-table tbody tr')].map((r) => r.textContent)"
        ".find((text) => text.startsWith('conversion_value_per_click'))"
    )
    about = listed["streamer_conversion_value_per_click"]
    assert about["about"] in row
    assert row.endswith(about["unit"])


def test_the_calibration_curve_is_that_of_the_segment(page: Browser, site: Site) -> None:
    readings = site.get("/api/readings?window=24h&variant=B&surface=all")["readings"]
    values: dict[str, dict[str, float]] = {}
    for reading in readings:
        labels = reading["labels"]
        if "bin" in labels and labels["maturity"] == "provisional":
            values.setdefault(labels["bin"], {})[reading["name"].removeprefix("streamer_")] = (
                reading["value"]
            )
    page.open(f"{site.url}/?metric=log_loss&window=24h&variant=B")
    rows = page.until(lambda: page.run(_CURVE), "rows of the calibration curve")
    assert len(rows) > 2
    assert rows == [
        [
            f"up to {name}",
            percent(of["calibration_predicted_ratio"]),
            percent(of["calibration_observed_ratio"]),
            count(of["window_calibration_impressions"]),
        ]
        for name, of in sorted(values.items(), key=lambda each: float(each[0]))
        if "calibration_observed_ratio" in of
    ]
    assert page.run("return document.querySelectorAll('#metric-curve circle').length") == len(rows)


_CURVE = """return [...document.querySelectorAll("#metric-curve tbody tr")].map(
  (row) => [...row.cells].map((cell) => cell.textContent))"""


def _is_column(reading: dict[str, Any]) -> bool:
    extra = {
        k: v for k, v in reading["labels"].items() if k not in ("window", "variant", "surface")
    }
    return any(
        (reading["name"], extra) == (f"streamer_{name}", labels)
        for name, labels, _ in COLUMNS.values()
    )


def test_a_row_is_an_experiment(shown: Browser, site: Site) -> None:
    (found,) = site.get("/api/experiments")["experiments"]
    (row,) = shown.run(_EXPERIMENTS)
    assert row == [
        "ranker",
        f"{found['advice']['pill']['sign']} {found['advice']['pill']['words']}",
        f"{found['lift']['text']} Click-through rate, {found['lift']['range']}",
        "",
        found["guardrails"]["text"],
        count(found["users"]),
        found["days"]["text"],
        "✓ as planned",
    ]
    dot = shown.run("return document.querySelector('#experiments-table circle').getAttribute('cx')")
    assert dot == f"{found['bar']['dot']:g}%"
    ticks = shown.run(
        "return [...document.querySelectorAll('#experiments-table thead text')]"
        ".map((e) => e.textContent)"
    )
    assert ticks == [tick["text"] for tick in site.get("/api/experiments")["scale"]]
    link = shown.run("return document.querySelector('#experiments-table a').href")
    assert link == f"{site.url}/experiments/ranker"


_EXPERIMENTS = """return [...document.querySelectorAll("#experiments-table tbody tr")].map((row) =>
  [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, " ").trim()))"""


def test_the_shape_of_a_window_is_read_when_it_is_opened(page: Browser, site: Site) -> None:
    open_page(page, site, "/?window=24h")
    assert not page.is_shown("#funnel td")
    page.run("document.querySelector('#shape').open = true")
    page.until(lambda: page.is_shown("#funnel td"), "the funnel")
    readings = site.get("/api/readings?window=24h&variant=all&surface=all")["readings"]
    value = {
        r["name"].removeprefix("streamer_"): r["value"] for r in readings if len(r["labels"]) == 3
    }
    names = ("window_impressions", "window_clicks", "window_conversions")
    shown, clicks, bought = (value[name] for name in names)
    rows = [" ".join(text.split()) for text in page.texts("#funnel tbody tr")]
    assert rows[0].startswith(f"Impressions {count(shown)}")
    assert rows[1] == f"Clicks {count(clicks)} {percent(clicks / shown)}"
    assert rows[2] == f"Conversions {count(bought)} {percent(bought / clicks)}"
    first = next(r for r in readings if r["labels"].get("position") == "1"
                 and r["name"] == "streamer_ctr_position_ratio")  # fmt: skip
    assert percent(first["value"]) in page.texts("#positions tbody tr")[0]
    assert not page.is_shown("#items")  # no such metrics here
    assert page.lacks() == []


def test_links_of_former_versions_lead_to_the_experiment(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/?window=1h#experiment=ranker")
    page.until(lambda: page.driver.current_url == f"{site.url}/experiments/ranker", "its page")


def test_the_choice_is_part_of_the_address(page: Browser, site: Site) -> None:
    open_page(page, site)
    page.driver.find_element("css selector", "#windows [value='1h']").click()
    page.until(lambda: "The last 1h" in page.text("#segments caption"), "the other window")
    page.run(
        "const s = document.querySelector('#split'); s.value = 'surface';"
        "s.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    page.until(lambda: "by surface" in page.text("#segments caption"), "the other split")
    assert page.driver.current_url.endswith("/?window=1h&split=surface")
    before = page.run(ROWS)
    open_page(page, site, page.driver.current_url.removeprefix(site.url))
    assert page.run(ROWS) == before


# Without anything ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty_site(redis: EmbeddedRedis) -> Iterator[Site]:
    with Site(settings_of(redis, "empty")) as made:
        yield made


def test_an_empty_store_says_what_to_do(page: Browser, empty_site: Site) -> None:
    page.open(empty_site.url)
    page.until(lambda: page.is_shown("#no-events") and page.is_shown("#no-experiments"), "empty")
    assert page.text("#health-state") + page.text("#health-detail") == (
        "Waiting: no worker has reported yet"
    )
    assert not page.is_shown("#segments-panel")
    commands = page.text("#no-events code").splitlines()
    assert [c.split()[:2] for c in commands] == [
        ["streamer", "run"],
        ["streamer", "produce"],
        ["streamer", "produce"],
    ]
    for command in commands:
        arguments.parser().parse_args(command.split()[1:])
    settings: Settings = parse(tomllib.loads(page.text("#no-experiments code")))
    assert settings.experiments[0].arms == ("A", "B")
    assert page.complaints() == []
