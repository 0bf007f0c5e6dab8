"""Intervals of composites hold the truth as often as they say, with parts that hang together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from streamer.metrics import composites
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import parse
from streamer.stats.random_groups import GROUPS
from tests.metrics.counted import CountedSums
from tests.metrics.laws import read
from tests.support.lanes import long

Sums = npt.NDArray[np.int64]
SETTINGS = parse(
    {
        "windows": {"lengths": ["1h"], "day_before": ["1h"]},
        "composites": [
            {
                "name": "health",
                "parts": [
                    {"metric": "ctr_ratio", "against": "day_before"},
                    {
                        "metric": "dwell_mean_seconds",
                        "weight": 0.5,
                        "against": "target",
                        "target": 60,
                    },
                    {"metric": "bounce_rate_ratio", "weight": -0.5},
                ],
            }
        ],
    }
)
CATALOGUE = Catalogue(SETTINGS)
SUMS = ("clicks", "impressions", "dwell_ms", "viewings", "bounces", "sessions")
WINDOWS, USERS = 1500, 500


def did(dice: np.random.Generator, taste: npt.NDArray[np.float64]) -> dict[str, Sums]:
    """What users do on a day: who clicks more also stays longer, and leaves less."""
    busy = dice.lognormal(1.0, 0.8, taste.shape)
    shown = dice.poisson(busy)
    clicks = dice.binomial(shown, taste)
    dwell = np.round(clicks * 40_000 * (1 + 2 * taste) * dice.gamma(4, 0.25, taste.shape))
    visits = dice.poisson(busy / 2)
    bounces = dice.binomial(visits, 1 - taste)
    values = (clicks, shown, dwell.astype(np.int64), clicks, bounces, visits)
    return dict(zip(SUMS, values, strict=True))


def matrix_of(values: dict[str, Sums], groups: Sums) -> Sums:
    """(windows, statistics) as the core counts them."""
    layout = CATALOGUE.layout
    found = np.zeros((len(groups), layout.size), np.int64)
    rows = np.arange(len(groups))[:, None]
    for name in SUMS:
        stat, places = layout.by_group[name]
        found[:, layout.at[name]] = values[name].sum(axis=1)
        np.add.at(found, (rows, layout.at[stat] + places.start + groups), values[name])
    return found


@long
def test_an_interval_of_95_percent_holds_the_truth_in_94_to_96_of_100() -> None:
    # Users come again on the next day, so that both sides of a part vary together.
    dice = np.random.default_rng(11)
    taste = dice.beta(2, 6, (WINDOWS, USERS))
    groups = dice.integers(0, GROUPS, taste.shape)
    then, now = (matrix_of(did(dice, taste), groups) for _ in range(2))
    sums = CountedSums(CATALOGUE, now, now - then, np.zeros((20, WINDOWS), np.int64))
    known = {metric.name: metric for metric in composites.FAMILY.metrics}
    key = ("", (("composite", "health"), ("maturity", "provisional")))
    lower, upper = (read(known[f"composite_{end}"], sums)[key] for end in ("lower", "upper"))
    value, present = read(known["composite"], sums)[key]
    assert present.all()
    assert lower[1].all()
    assert ((lower[0] < value) & (value < upper[0])).all()
    whole = did(dice, dice.beta(2, 6, (1, 2_000_000)))
    total = {name: float(values.sum()) for name, values in whole.items()}
    dwell = total["dwell_ms"] / total["viewings"] / 1000 / 60
    truth = (1 + 0.5 * dwell - 0.5 * total["bounces"] / total["sessions"]) / 2
    held = np.mean((lower[0] <= truth) & (truth <= upper[0]))
    assert 0.94 <= held <= 0.96, held
    spread, width = value.std(), np.mean(upper[0] - lower[0]) / 2 / 2.131
    assert width == pytest.approx(spread, rel=0.05)
