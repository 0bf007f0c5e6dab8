"""The folded part of a card that explores its experiment by another dimension."""

from __future__ import annotations

import time
from typing import Any

from tests.server.web.conftest import open_card
from tests.server.web.documents import (
    LISTED,
    ODD,
    comparison,
    estimate,
    experiment,
)
from tests.support.browser import Browser
from tests.support.site import Documents

SENTENCE = f"The lift of ctr_ratio differs by surface (p < 0.0001 at one look): {ODD} +1.2 %."
EXPLORED = "/api/experiments/known?by=surface"


def explored(page: Browser, documents: Documents, status: int, answer: dict[str, Any]) -> None:
    """The page of an experiment that has answered so, opened at its exploration."""
    known = {**LISTED, "name": "known", "explore": ["surface"]}
    documents.documents["/api/experiments"] = 200, {"experiments": [known]}
    pairs = [comparison("B", estimate(0.1, 0.05, 0.15))]
    documents.documents["/api/experiments/known"] = 200, experiment(pairs, name="known")
    documents.documents[EXPLORED] = status, answer
    open_card(page, documents)
    page.run("document.querySelector('.explore').open = true")
    page.until(lambda: page.text(".explore .answer, .explore caption"), "an answer")


def exploration(values: list[str], pairs: list[dict[str, Any]]) -> dict[str, Any]:
    found = experiment(pairs)
    found["metrics"][0]["role"] = "primary"
    tests = [{"sentence": SENTENCE}] if values else []
    return {
        "by": "surface",
        "alpha": 0.025,
        "words": "To explore, not to decide by.",
        "heterogeneity": tests,
        "values": dict.fromkeys(values, found),
    }


def test_values_of_several_treatments_are_rows_of_their_own(
    page: Browser, documents: Documents
) -> None:
    pairs = [comparison(ODD, estimate(0.1, 0.05, 0.15), "better"), comparison("C", estimate(None))]
    explored(page, documents, 200, exploration([f"{ODD}{i}" for i in range(101)], pairs))
    page.until(lambda: page.is_shown(".explore td"), "the rows")
    names = page.texts(".explore tbody th")
    assert (len(names), names[:2]) == (200, [f"{ODD}0: {ODD}", f"{ODD}0: C"])
    assert page.texts(".explore .tests p") == [SENTENCE]
    assert page.text(".explore .answer") == "2 rows with fewer users not shown."
    cells = [" ".join(text.split()) for text in page.texts(".explore td")]
    assert cells[1:3] == ["+10.0% between +5.00% and +15.0%", "Better Because."]
    assert cells[4] == "+0.0100 between \u22120.0100 and +0.0300"


def test_an_exploration_that_is_refused_is_asked_for_again(
    page: Browser, documents: Documents
) -> None:
    busy = {"error": "an experiment is being explored already"}
    explored(page, documents, 503, busy)
    wanted = f"Not updated, it is tried again: {busy['error']}."
    page.until(lambda: page.text(".explore .answer") == wanted, wanted)
    assert not page.is_shown(".explore table")
    assert page.run("return document.body.className") == ""
    pairs = [comparison("B", estimate(0.1, 0.05, 0.15))]
    documents.documents[EXPLORED] = 200, exploration([], pairs)
    again = "const e = document.querySelector('.explore'); e.open = arguments[0]"
    for is_open in (False, True):
        page.run(again, is_open)
        time.sleep(0.1)
    page.until(lambda: "Nobody has been in an arm yet." in page.text(".explore"), "nobody")
    assert not page.is_shown(".explore table")


def test_nothing_is_explored_before_the_first_day(page: Browser, documents: Documents) -> None:
    explored(page, documents, 200, exploration([], []))
    pairs = [comparison("B", estimate(0.1, 0.05, 0.15))]
    documents.documents["/api/experiments/known"] = (
        200,
        experiment(pairs, name="known", last=None, when="starts on 2025-07-12"),
    )
    open_card(page, documents)
    page.until(lambda: "starts on" in page.text(".card .who"), "the card")
    assert not page.is_shown(".explore")
