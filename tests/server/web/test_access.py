"""The page by keyboard, for screen readers, on phones, in both colour schemes."""

from __future__ import annotations

import base64
import itertools
import re
from typing import Any

import pytest
from selenium.webdriver import Keys

from tests.server.web.conftest import open_page, unfold
from tests.support.browser import Browser
from tests.support.lanes import long
from tests.support.site import Demo, Served, Site

pytestmark = long

STOPS = """
const shown = (e) => e.checkVisibility() && !e.disabled && (e.type !== "radio" || e.checked);
const stops = "a[href], button, select, input, summary, [tabindex='0']";
window.stops = [...document.querySelectorAll(stops)].filter(shown);
return window.stops.map((e) => e.id || e.textContent.trim());"""
FOCUSED = """
const e = document.activeElement;
const marked = e.type === "radio" ? e.nextElementSibling : e;
const style = getComputedStyle(marked);
const box = marked.getBoundingClientRect();
return {
  place: window.stops.indexOf(e),
  outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
  isInView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
};"""
CONTRASTS = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (c) => c.slice(0, 3)
  .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  throw new Error("no background");
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  const isText = walker.currentNode.data.trim() && !e.closest("script, noscript, title, desc");
  if (isText && e.checkVisibility() && !e.closest(".cut, .hidden-text")) {
    const style = getComputedStyle(e);
    const ink = parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => x - y);
    found.push([(b + 0.05) / (a + 0.05), e.className || e.nodeName, walker.currentNode.data]);
  }
}
return found;"""
OUTSIDE = """
return [...document.querySelectorAll("main *, header *, footer *")]
  .filter((e) => e.checkVisibility() && !e.closest("svg, pre, .hidden-text, thead, .scroll"))
  .filter((e) => e.getBoundingClientRect().right > arguments[0] + 0.5)
  .map((e) => e.outerHTML.slice(0, 80));"""
NAMED = {
    *("button", "combobox", "DisclosureTriangle", "heading", "image", "link", "slider"),
    *("navigation", "radio", "radiogroup", "group", "region", "searchbox", "table", "article"),
}
BROKEN = """
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode, e = text.parentElement;
  if (e.checkVisibility() && !e.closest("svg, pre, select, script, .hidden-text")) {
    for (const word of text.data.matchAll(/[\\p{L}\\p{N}.,%@]+/gu)) {
      const range = new Range();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const tops = [...range.getClientRects()].map((box) => Math.round(box.top));
      if (new Set(tops).size > 1) found.push(`${word[0]} in ${e.outerHTML.slice(0, 99)}`);
    }
  }
}
return [...new Set(found)];"""
SIZES = ((320, 640), (390, 844), (768, 1024), (1280, 800))
WIDTHS = (320, 360, 390, 480, 600, 768, 1024, 1280, 1600, 1920, 2560)
PHONE = (390, 844)


def open_all(page: Browser, site: Served) -> None:
    """Open the page, and everything that can be disclosed."""
    open_page(page, site)
    unfold(page)
    page.until(lambda: page.is_shown("#more-table tbody tr"), "more metrics")


def test_tab_reaches_every_control_in_order_and_shows_where_it_is(
    page: Browser, site: Site
) -> None:
    open_page(page, site)
    names = page.run(STOPS)
    assert {"Skip to the metrics", "pause", "split", "More metrics", "ranker"} <= set(names)
    for place, name in enumerate(names):
        page.press(Keys.TAB)
        focused: dict[str, Any] = page.run(FOCUSED)
        assert focused["place"] == place, f"{name}: the focus is elsewhere"
        assert focused["outline"] >= 2, f"{name}: nothing shows the focus"
        assert focused["isInView"], f"{name}: out of view"


def test_everything_works_by_keyboard(page: Browser, site: Site) -> None:
    open_page(page, site)
    page.press(Keys.TAB)
    page.press(Keys.ENTER)
    assert page.run("return document.activeElement.id") == "main"
    page.press(Keys.TAB)
    page.press(Keys.ARROW_LEFT)
    page.until(lambda: "The last 1h" in page.text("#segments caption"), "the other window")
    assert page.run("return document.activeElement.value") == "1h"
    tab_to(page, "split")
    page.press("s")  # a select goes to the option that begins so
    page.until(lambda: "by surface" in page.text("#segments caption"), "the other split")
    page.run("document.querySelector('#segments .sort').focus()")
    page.press(Keys.ENTER)
    page.until(lambda: page.run(SORTED) == ["descending"], "the table is sorted")
    page.run("document.querySelector('#course .plot').focus()")
    last = page.run("return document.activeElement.ariaValueText")
    page.press(Keys.ARROW_LEFT)
    page.until(
        lambda: page.run("return document.activeElement.ariaValueText") != last, "another time"
    )
    rows = "#more-table tbody tr"
    page.run("document.querySelector('#more summary').focus()")
    page.press(Keys.ENTER)
    page.until(lambda: page.is_shown(rows), rows)


SORTED = """return [...document.querySelectorAll("#segments [aria-sort]")]
  .map((e) => e.ariaSort).filter((sort) => sort !== "none");"""


def tab_to(page: Browser, name: str) -> None:
    for _ in range(20):
        if page.run("return document.activeElement.id") == name:
            return
        page.press(Keys.TAB)
    raise AssertionError(f"Tab does not reach #{name}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440, 2560])
def test_axe_finds_nothing(page: Browser, told: Demo, scheme: str, width: int) -> None:
    page.prefer(color_scheme=scheme, reduced_motion="reduce")
    page.resize(width)
    open_page(page, told)
    assert page.lacks() == []
    unfold(page)
    page.until(lambda: page.is_shown("#more-table tbody tr"), "more metrics")
    assert page.lacks() == []
    page.open(f"{told.url}/?metric=ctr_ratio&window=24h")
    page.until(lambda: page.is_shown("#metric-splits table"), "the page of a metric")
    unfold(page)
    assert page.lacks() == []
    page.open(f"{told.url}/experiments/ranker")
    page.until(lambda: page.text("#experiments-badges"), "its header")
    assert page.lacks() == []


def test_axe_would_find_something(page: Browser, told: Demo) -> None:
    open_page(page, told)
    page.run("document.querySelector('#copy-link').textContent = ''")
    assert [rule for rule, _ in page.lacks()] == ["button-name"]


def test_everything_has_a_name(page: Browser, site: Site) -> None:
    open_all(page, site)
    nodes = page.accessible()
    found = {node.role for node in nodes}
    assert {"button", "combobox", "DisclosureTriangle", "heading"} <= found
    assert {"link", "radio", "searchbox", "table", "region"} <= found
    assert not [node for node in nodes if node.role in NAMED - {"group"} and not node.name.strip()]
    names = {(node.role, node.name) for node in nodes}
    assert ("button", "Pause updates") in names
    assert ("combobox", "Split by") in names
    assert ("radio", "24h") in names
    assert ("table", "The last 24h, by variant, with 95% intervals below the values") in names
    assert ("table", "What to do with each experiment, by its primary metric") in names
    assert ("link", "ranker") in names


def test_headings_leave_out_no_level(page: Browser, site: Site) -> None:
    open_page(page, site)
    headings = [node for node in page.accessible() if node.role == "heading"]
    levels = [node.level or 0 for node in headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    sections = [node.name for node in headings if node.level == 2]
    assert sections == ["Live windows", "Experiments", "Alerts", "Health"]


def test_the_table_is_one_at_every_width(page: Browser, site: Site) -> None:
    open_page(page, site)
    rows = page.run("return document.querySelectorAll('#segments tr').length")
    for size in SIZES:
        page.resize(*size)
        if page.is_shown("#columns[aria-expanded=false]"):
            page.run("document.querySelector('#columns').click()")
        roles = [node.role for node in page.accessible()]
        table = roles[roles.index("table") : roles.index("heading", roles.index("table"))]
        counts = [table.count(role) for role in ("row", "columnheader", "rowheader")]
        assert counts == [rows, 10, rows - 1], size


def test_what_is_missing_is_read_as_such(page: Browser, site: Site) -> None:
    page.open(f"{site.url}/?window=1h&split=variant,surface")
    page.until(lambda: page.is_shown("#segments"), "the table")
    cells = page.run(
        "return [...document.querySelectorAll('#segments td')].map((e) => e.textContent)"
    )
    assert "–no data" in cells
    assert "0" not in cells
    assert any("no data" in node.name for node in page.accessible() if node.role == "cell")
    assert not any("–" in node.name for node in page.accessible() if node.role == "cell")


@pytest.mark.parametrize("is_folded", [True, False], ids=["folded", "unfolded"])
def test_nothing_is_wider_than_the_window_and_no_word_is_broken(
    page: Browser, told: Demo, is_folded: bool
) -> None:
    open_page(page, told)
    for width in WIDTHS:
        page.resize(width)
        if not is_folded:
            unfold(page)
            page.until(lambda: page.is_shown("#more-table tbody tr"), "more metrics")
        assert fits(page, width), width


def test_the_page_of_a_metric_fits_at_every_width(page: Browser, told: Demo) -> None:
    page.open(f"{told.url}/?metric=ctr_ratio&window=24h")
    page.until(lambda: page.is_shown("#metric-splits table"), "the page of a metric")
    unfold(page)
    for width in WIDTHS:
        page.resize(width)
        assert fits(page, width), width


def fits(page: Browser, width: int) -> bool:
    """Whether all is within the window, and words are whole."""
    page.run("scrollTo(200, 0)")
    assert page.run("return [scrollX, document.documentElement.scrollWidth]") == [0, width]
    assert page.run(OUTSIDE, width) == []
    assert page.run(BROKEN) == []
    return True


def test_a_phone_shows_what_fires_first_and_all_in_six_screens(page: Browser, told: Demo) -> None:
    width, height = PHONE
    page.resize(width, height)
    open_page(page, told)
    assert not page.is_shown("#read-findings")
    page.until(lambda: page.run("return !!document.querySelector('#course .firing')"), "its marks")
    assert page.run("return document.documentElement.scrollHeight") <= 6 * height
    assert page.run("return document.querySelector('#firing').getBoundingClientRect().top") < 400
    advice = page.texts("#experiments-table .verdict")
    assert advice == ["✕ Do not use: broken split", "✓ Ship new", "→ Keep running"]
    assert seen(page, "#segments thead a") == ["Impressions", "CTR"]
    page.run("document.querySelector('#columns').focus()")
    page.press(Keys.ENTER)
    assert len(seen(page, "#segments thead a")) == 9


def test_paper_has_everything_and_no_controls(page: Browser, told: Demo) -> None:
    page.resize(*PHONE)
    open_page(page, told, "/?window=24h")
    page.run("addEventListener('beforeprint', () => { window.atPrint = "
             "[...document.querySelectorAll('.fold')].map((e) => e.open); })")  # fmt: skip
    assert pages_of(page) == 2
    assert page.run("return window.atPrint.length > 0 && window.atPrint.every(Boolean)")
    page.until(lambda: not page.is_shown("#windows ~ .fold .controls"), "all is folded again")
    page.resize(700)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.command("Emulation.setEmulatedMedia", media="print", features=dark)
    try:
        assert len(seen(page, "#segments thead a")) == 9
        assert not any(map(page.is_shown, ("button", "footer", "nav", ".fold > summary", "#more")))
        assert seen(page, "#windows span") == ["24h"]
        colours = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        assert page.run(colours) == ["rgb(255, 255, 255)", "rgb(26, 34, 48)"]
        assert page.run(OUTSIDE, 700) == []
        assert page.run(BROKEN) == []
    finally:
        page.command("Emulation.setEmulatedMedia", media="", features=[])


def pages_of(page: Browser) -> int:
    """On so many sheets of A4 it is printed."""
    printed = page.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    return len(re.findall(rb"/Type /Page\b", base64.b64decode(printed)))


def test_an_experiment_is_printed_on_two_pages(page: Browser, told: Demo) -> None:
    page.open(f"{told.url}/experiments/ranker")
    page.until(lambda: page.text("#experiments-badges"), "its header")
    assert pages_of(page) == 2


def seen(page: Browser, selector: str) -> list[str]:
    """The texts of the elements that can be seen."""
    script = """return [...document.querySelectorAll(arguments[0])]
      .filter((e) => e.checkVisibility()).map((e) => e.innerText);"""
    return list(page.run(script, selector))


def test_contrast_of_every_text(page: Browser, site: Site) -> None:
    open_all(page, site)
    for scheme in ("light", "dark"):
        page.prefer(color_scheme=scheme, reduced_motion="reduce")
        for is_stale in (False, True):
            page.run("document.body.classList.toggle('stale', arguments[0])", is_stale)
            found = page.run(CONTRASTS)
            assert len(found) > 100
            low = sorted(
                (round(ratio, 2), what, text) for ratio, what, text in found if ratio < 4.5
            )
            assert low == [], (scheme, is_stale)


def test_both_schemes_differ_and_motion_can_be_switched_off(page: Browser, site: Site) -> None:
    open_page(page, site)
    ground = "return getComputedStyle(document.body).backgroundColor"
    moves = "return getComputedStyle(document.querySelector('#pause')).transitionDuration"
    light = page.run(ground)
    page.prefer(color_scheme="dark")
    assert page.run(ground) != light
    assert page.run(moves) != "0s"
    page.prefer(reduced_motion="reduce")
    assert page.run(moves) == "0s"
