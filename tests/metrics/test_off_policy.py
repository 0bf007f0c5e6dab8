"""Off-policy estimates: of the other arm of a real A/B test, and beside plain NumPy."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from operator import mul
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from streamer.errors import SettingsError
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.compared_metrics import ComparedMetrics
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.sources.open_bandit import SURFACES, Place, events, rows
from streamer.sources.replay import Replay
from tests.support.lanes import long

TARGETS = ("p_bts", "p_wrong")
SETTINGS: dict[str, Any] = {
    "windows": {"lengths": ["31d"]},
    "metrics": {
        "families": ["traffic", "off_policy", "intervals"],
        "rollups": [["variant"], ["variant", "surface"]],
        "detailed": [["variant"], ["variant", "surface"]],
    },
    "policies": [{"name": name, "propensity": name} for name in TARGETS],
}
T0 = 1_700_000_000_000
PAGE = Path(__file__).parents[2] / "docs/off-policy.md"
Values = dict[str, float]


def wrong_probabilities() -> dict[Place, float]:
    """How likely `bts` shows an item at a position, by the plain mean of what it logged."""
    logged: dict[Place, list[float]] = defaultdict(list)
    for row in rows():
        if row["policy"] == "bts":
            place = (f"{row['campaign']}-{row['item_id']}", int(row["position"]))
            logged[place].append(float(row["propensity_score"]))
    return {place: sum(p) / len(p) for place, p in logged.items()}


@cache
def logged() -> list[dict[str, Any]]:
    """Impressions of the packaged log that carry both targets' probabilities, and its clicks."""
    wrong, found = wrong_probabilities(), []
    for event in events():
        if event["type"] == "impression":
            place = (event["item_id"], event["position"])
            found.append({**event, "p_wrong": wrong.get(place, 0.0)})
        elif event["type"] == "click":
            found.append(event)
    return found


@cache
def readings() -> dict[tuple[str, str, str], Values]:
    """(policy or "", arm, campaign) → metric → value."""
    replay = Replay(parse(SETTINGS))
    encode = msgspec.json.Encoder().encode
    replay.feed([(LINE_TYPES[e["type"]], e["ts"], encode(e)) for e in logged()])
    replay.finish()
    found: dict[tuple[str, str, str], Values] = defaultdict(dict)
    for r in replay.readout().readings:
        labels = r.labels
        if "variant" in labels and labels.get("maturity", "provisional") == "provisional":
            key = (labels.get("policy", ""), labels["variant"], labels["surface"])
            found[key][r.name.removeprefix(PREFIX)] = r.value
    return found


def weights(surface: str) -> tuple[Any, Any]:
    """Weights of the random arm's impressions, and which were clicked: by NumPy."""
    clicked = {e["request_id"] for e in logged() if e["type"] == "click"}
    some = [
        e
        for e in logged()
        if e["type"] == "impression"
        and e["variant"] == "random"
        and surface in ("all", e["surface"])
    ]
    w = np.minimum([e["p_bts"] / e["propensity"] for e in some], 100.0)
    return w, np.array([e["request_id"] in clicked for e in some])


@long
@pytest.mark.parametrize("surface", ["all", *SURFACES.values()])
def test_the_random_arm_tells_the_click_through_rate_of_the_other_arm(surface: str) -> None:
    shown = readings()["", "bts", surface]
    low, high = (shown[f"ctr_attributed_{end}_ratio"] for end in ("lower", "upper"))
    found = readings()["p_bts", "random", surface]
    for name in ("ips", "snips"):
        assert found[f"{name}_lower_ratio"] < high, (name, found)
        assert found[f"{name}_upper_ratio"] > low, (name, found)
    assert 0.9 < found["mean_weight_ratio"] < 1.1


@long
@pytest.mark.parametrize("surface", ["all", *SURFACES.values()])
def test_estimates_are_those_of_numpy(surface: str) -> None:
    w, y = weights(surface)
    found = readings()["p_bts", "random", surface]
    assert found["window_off_policy_impressions"] == len(w)
    assert found["ips_ratio"] == pytest.approx(np.mean(w * y), rel=1e-6)
    assert found["snips_ratio"] == pytest.approx(np.sum(w * y) / np.sum(w), rel=1e-6)
    assert found["mean_weight_ratio"] == pytest.approx(np.mean(w), rel=1e-6)
    assert found["effective_sample_size"] == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-5)


def test_the_page_shows_what_is_measured() -> None:
    page = PAGE.read_text()
    for surface in ("all", *SURFACES.values()):
        found = readings()["p_bts", "random", surface]
        ctr = [readings()["", arm, surface]["ctr_attributed_ratio"] for arm in ("random", "bts")]
        cells = [surface.removesuffix("_items"), *(f"{100 * value:.2f} %" for value in ctr)]
        if surface == "all":
            cells[0] = "together"
        for name in ("ips", "snips"):
            low, high = (100 * found[f"{name}_{end}_ratio"] for end in ("lower", "upper"))
            cells.append(f"{100 * found[f'{name}_ratio']:.2f} % ({low:.2f} to {high:.2f})")
        cells.append(f"{found['mean_weight_ratio']:.2f}")
        cells.append(f"{found['effective_sample_size']:,.0f}")
        row = f"| {' | '.join(cells)} |"
        assert row in page, row
    wrong = readings()["p_wrong", "random", "all"]
    for value in (f"{wrong['mean_weight_ratio']:.2f}", f"{100 * wrong['ips_ratio']:.2f} %"):
        assert value in page, wrong


def test_sums_are_those_of_the_policies() -> None:
    def of(*families: str) -> tuple[str, ...]:
        policies = SETTINGS["policies"] if "off_policy" in families else []
        settings = parse({"metrics": {"families": families}, "policies": policies})
        names = [stat.name for stat in Catalogue(settings).layout.stats]
        return tuple(name for name in names if name.startswith("off_policy."))

    assert of("traffic", "intervals") == ()
    assert len(of("off_policy")) == 14
    assert of("off_policy")[0] == "off_policy.impressions@p_bts"


RATES, TARGET = (0.3, 0.05), (0.9, 0.1)
"""Clicks of two items, which the logging policy shows alike, and what another one would show."""
TRUTH = sum(map(mul, TARGET, RATES))


@pytest.mark.parametrize(
    ("propensity", "model", "is_right"),
    [
        ((0.5, 0.5), RATES, True),
        ((0.5, 0.5), (0.2, 0.2), True),
        ((0.7, 0.3), RATES, True),
        ((0.7, 0.3), (0.2, 0.2), False),
    ],
)
def test_doubly_robust_is_right_where_either_propensities_or_the_model_are(
    propensity: tuple[float, float], model: tuple[float, float], is_right: bool
) -> None:
    found = of_two_items(propensity, model, {"estimate": "q"})
    low, high = found["doubly_robust_lower_ratio"], found["doubly_robust_upper_ratio"]
    assert (low < TRUTH < high) == is_right, (low, TRUTH, high)


def test_there_is_none_of_a_policy_that_says_no_estimate() -> None:
    """What the model expects of the item that was shown is what the logging policy got."""
    found = of_two_items((0.5, 0.5), RATES, {})
    assert not any(name.startswith("doubly_robust") for name in found)
    assert found["ips_lower_ratio"] < TRUTH < found["ips_upper_ratio"]
    settings = parse({**SETTINGS, "policies": [{"name": "new", "propensity": "p"}]})
    with pytest.raises(SettingsError, match="@policy is one of policies with an estimate: none"):
        ComparedMetrics(settings, [("doubly_robust_ratio@new", "an experiment")])


def of_two_items(
    propensity: tuple[float, float], model: tuple[float, float], more: dict[str, str]
) -> Values:
    """Readings of 8,000 impressions."""
    dice, records = np.random.default_rng(1), []
    estimate = sum(map(mul, TARGET, model))
    for i, item in enumerate(dice.integers(0, 2, 8000).tolist()):
        who = {"user_id": f"u{i % 2000}", "item_id": "ab"[item], "request_id": f"r{i}"}
        said = {"propensity": propensity[item], "p": TARGET[item], "q": estimate}
        shown = {**who, **said, "reward_estimate": model[item], "ts": T0 + i}
        records.append(("impressions", T0 + i, msgspec.json.encode(shown)))
        if dice.random() < RATES[item]:
            clicked = msgspec.json.encode({**who, "ts": T0 + i})
            records.append(("clicks", T0 + i, clicked))
    policies = [{"name": "new", "propensity": "p", **more}]
    families = ["traffic", "off_policy", "intervals"]
    replay = Replay(parse({"metrics": {"families": families}, "policies": policies}))
    replay.feed(records)
    replay.finish()
    return {
        r.name.removeprefix(PREFIX): r.value
        for r in replay.readout().readings
        if r.labels.get("window") == "1h" and r.labels.get("maturity") == "provisional"
    }
