"""A ratio of one's own as experiments and alerts have it: its lift is that of the delta method, its
words are the same in every face."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import streamer
from streamer.metrics.catalogue import Catalogue
from streamer.monitoring.files import boards
from streamer.query.notes import notes_of
from streamer.query.why import sides
from streamer.settings.load import parse
from tests.query.test_dirty_logs import stored_of
from tests.support.opened import panels_of
from tests.support.visitors import DAY_MS, FIRST_MS, Event, experiment

SPRING = {"impression.campaign": "spring"}
RATIO: dict[str, Any] = {
    "name": "roas",
    "numerator": {"kind": "conversions", "field": "value", "where": SPRING},
    "denominator": {"kind": "clicks", "field": "cost", "where": SPRING},
    "title": "Return on ad spend",
}
Values = np.ndarray[Any, Any]
WORDS = (
    "sum of value of conversions where impression.campaign is spring",
    "sum of cost of clicks where impression.campaign is spring",
)
USERS = 300
GBSTATS = [(2.974320101482008, 0.006680218519972178), (2.8481577387452037, 0.005813159660372662)]
"""Mean and variance of both arms of seed 4 by ``RatioStatistic`` of gbstats 0.8.0."""


def sums_of_users(dice: Random) -> dict[str, Values]:
    """Value and cost of each user of two arms, and of the days before: x, y, u, v."""
    n = 2 * USERS
    cost = [[round(dice.uniform(0.1, 2), 2) for _ in range(n)] for _ in range(2)]
    worth = [[round(y * dice.lognormvariate(1, 0.4), 2) for y in ys] for ys in cost]
    return {"x": np.array(worth[0]), "y": np.array(cost[0]), "u": np.array(worth[1]),
            "v": np.array(cost[1])}  # fmt: skip


def events_of(sums: dict[str, Values]) -> list[Event]:
    """A click of each cost, and what was bought; and as much of another campaign."""
    found = list[Event]()
    for user in range(2 * USERS):
        for day, worth, cost in ((-2, "u", "v"), (1, "x", "y")):
            at, arm = FIRST_MS + day * DAY_MS + 1000 * user, "AB"[user % 2]
            who = {"user_id": f"u{user}", "variant": arm if day > 0 else "before"}
            for item, campaign in (("a", "spring"), ("b", "autumn")):
                of = {**who, "item_id": item}
                money = {"cost": float(sums[cost][user])}
                found.append({"type": "impression", "ts": at, "campaign": campaign, **of})
                found.append({"type": "click", "ts": at + 100, **money, **of})
                money = {"value": float(sums[worth][user])}
                found.append({"type": "conversion", "ts": at + 200, **money, **of})
    return found


def delta(x: Values, y: Values) -> tuple[float, float]:
    """A ratio of means and its variance, by the delta method (gbstats: ``RatioStatistic``)."""
    n, mean = len(x), np.mean(x) / np.mean(y)
    cov = np.cov(x, y)
    variance = cov[0, 0] / np.mean(y) ** 2
    variance += cov[1, 1] * np.mean(x) ** 2 / np.mean(y) ** 4
    variance -= 2 * cov[0, 1] * np.mean(x) / np.mean(y) ** 3
    return float(mean), float(variance / n)


def settings_of(**more: Any) -> dict[str, Any]:
    metrics = [{"name": "ratio@roas", "cap": 0}]
    return {"ratios": [RATIO], "experiments": [experiment(name="x", metrics=metrics, **more)]}


def test_the_lift_is_that_of_the_delta_method() -> None:
    sums = sums_of_users(Random(4))
    found = read(events_of(sums), settings_of())
    (metric,) = found.metrics
    arms = [delta(sums["x"][i::2], sums["y"][i::2]) for i in range(2)]
    assert arms == [pytest.approx(of, rel=1e-12) for of in GBSTATS]
    assert [arm.value for arm in metric.found.arms] == pytest.approx([m for m, _ in arms], rel=1e-9)
    (comparison,) = metric.found.comparisons
    (control, of_control), (treatment, of_treatment) = arms
    assert comparison.absolute.value == pytest.approx(treatment - control, rel=1e-9)
    expected = np.sqrt(of_control + of_treatment)
    assert comparison.absolute.stderr == pytest.approx(expected, rel=1e-9)
    said = [note for note in notes_of(found) if note.kind == "definition"]
    assert [(note.metric, note.text) for note in said] == [("ratio@roas", f"{' / '.join(WORDS)}.")]


def test_the_days_before_narrow_it() -> None:
    """Value before is as good a covariate of a ratio as of any other metric."""
    sums = sums_of_users(Random(4))
    noise = np.exp(np.random.default_rng(1).normal(0, 0.05, 2 * USERS))
    sums["u"], sums["v"] = (sums["x"] * noise).round(2), sums["y"]
    found = read(events_of(sums), settings_of(covariate_days=5))
    (comparison,) = found.metrics[0].found.comparisons
    assert comparison.adjustment is not None
    assert comparison.absolute.stderr < 0.6 * comparison.adjustment.unadjusted.absolute.stderr


def read(events: list[Event], document: dict[str, Any]) -> Any:
    return stored_of(events, parse(document)).read()


def test_every_face_says_what_is_divided() -> None:
    alert = {"name": "spend", "metric": "ratio@roas"}
    settings = parse({"ratios": [RATIO], "alerts": [alert]})
    ratio = Catalogue(settings).alert_measures.ratios["ratio@roas"]
    assert (ratio.title, ratio.words) == ("Return on ad spend", WORDS)
    pages = boards(settings, "https://numbers")
    panels = {panel["title"]: panel for panel in panels_of(pages["overview"])}
    panel = panels["Ratios: how do they move?"]
    assert f"roas: {' / '.join(WORDS)}." in panel["description"]
    (said,) = sides(ratio.words, (80, 200), (100, 100))
    assert said == (
        f"The numerator, {WORDS[0]}, moved by −20%; the denominator, {WORDS[1]}, by +100%."
    )


def test_python_reads_it() -> None:
    sums = sums_of_users(Random(5))
    counter = streamer.read(events_of(sums), settings_of())
    rows = counter.metrics("ratio", window="file").to_dicts()
    expected = (sums["x"].sum() + sums["u"].sum()) / (sums["y"].sum() + sums["v"].sum())
    found = {row["ratio"]: row["value"] for row in rows}
    assert found == {"roas": pytest.approx(expected, rel=1e-9)}
