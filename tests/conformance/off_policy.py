"""Off-policy estimates beside Jurity, whose target policies choose one item each time."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

import pandas as pd
from jurity.recommenders.ctr import CTR

from streamer.settings.load import parse
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from tests.conformance.cases import START_MS

N = 4000
ITEMS = 5
COMPARISONS = {"ips_ratio": "ips", "doubly_robust_ratio": "dr"}
"""Metric → Jurity's name of the estimation."""


@dataclass(frozen=True)
class Impressions:
    """Shown and chosen items, propensities of the shown ones, clicks expected of the chosen ones
    and of the shown ones, and which were clicked."""

    name: str
    shown: list[int]
    chosen: list[int]
    propensity: list[float]
    expected: list[float]
    reward: list[float]
    clicked: list[bool]


@cache
def cases() -> tuple[Impressions, ...]:
    """Shown at random, and mostly one item: then weights vary."""
    return _case("random", 1 / ITEMS), _case("greedy", 0.9)


def _case(name: str, favourite: float) -> Impressions:
    dice = Random(name)
    other = (1 - favourite) / (ITEMS - 1)
    shares = [favourite, *[other] * (ITEMS - 1)]
    shown = dice.choices(range(ITEMS), shares, k=N)
    chosen = [dice.randrange(ITEMS) for _ in range(N)]
    clicked = [dice.random() < 0.1 * (1 + item) / ITEMS for item in shown]
    expected = [round(dice.random() / 5, 6) for _ in range(N)]
    rewards = [e if a == b else 0.05 for a, b, e in zip(shown, chosen, expected, strict=True)]
    return Impressions(
        name, shown, chosen, [shares[item] for item in shown], expected, rewards, clicked
    )


def _log(of: Impressions) -> Iterator[Line]:
    """Impressions one by one, of a user each, then the clicks."""
    for number in range(N):
        yield _line("impressions", number, number, {
            "type": "impression",
            "item_id": f"i{of.shown[number]}",
            "propensity": of.propensity[number],
            "p": int(of.shown[number] == of.chosen[number]),
            "q": of.expected[number],
            "reward_estimate": of.reward[number],
        })  # fmt: skip
    for number in (n for n, is_clicked in enumerate(of.clicked) if is_clicked):
        click = {"type": "click", "item_id": f"i{of.shown[number]}"}
        yield _line("clicks", number, N + number, click)


def _line(kind: str, user: int, after_ms: int, event: Mapping[str, object]) -> Line:
    at_ms = START_MS + after_ms
    return kind, at_ms, json.dumps({**event, "ts": at_ms, "user_id": f"u{user}"}).encode()


@cache
def readings(number: int) -> dict[str, float]:
    """What streamer reads of a case, by name."""
    replay = Replay(
        parse(
            {
                "dimensions": [],
                "windows": {"lengths": ["1h"]},
                "metrics": {"families": ["off_policy"]},
                "policies": [{"name": "chosen", "propensity": "p", "estimate": "q"}],
            }
        )
    )
    replay.feed(list(_log(cases()[number])))
    replay.finish()
    some = replay.readout().readings
    return {
        r.name.removeprefix("streamer_"): r.value
        for r in some
        if r.labels.get("maturity") == "provisional"
    }


def theirs(number: int, metric: str) -> float:
    """Jurity's value of a case."""
    of = cases()[number]
    users = range(N)
    actual = pd.DataFrame({"user_id": users, "item_id": of.shown, "propensity": of.propensity})
    actual["clicks"] = [float(is_clicked) for is_clicked in of.clicked]
    chosen = pd.DataFrame({"user_id": users, "item_id": of.chosen, "clicks": of.expected})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of pandas, about Jurity's assignments
        return float(CTR("clicks", estimation=COMPARISONS[metric]).get_score(actual, chosen))
