"""The smallest change that fires, against changes that are put into windows."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from streamer.cli.check_alerts import minutes_until
from streamer.settings.alerts import Alert
from streamer.stats.alerting.baseline import ChangeRule, Status, compare, smallest_change
from streamer.stats.random_groups import GROUPS, GroupSums

RULES = [
    ChangeRule(0.1),
    ChangeRule(0.3),
    ChangeRule(0.1, higher_is_better=False),
    ChangeRule(0.5, higher_is_better=False),
]


def panes(dice: np.random.Generator, users: int, n: int = 6) -> list[GroupSums]:
    """Parts of a window."""
    found = []
    for _ in range(n):
        y = dice.poisson(20.0, users)
        x = 100 * dice.binomial(y, dice.beta(0.5, 9.5, users))
        group = np.arange(users) % GROUPS
        its = (np.bincount(group, part, GROUPS).astype(np.int64).tolist() for part in (x, y))
        found.append(GroupSums(*map(tuple, its)))
    return found


def total(parts: list[GroupSums]) -> GroupSums:
    return sum(parts[1:], parts[0])


def changed(window: GroupSums, by: float) -> GroupSums:
    return GroupSums(tuple(round(by * x) for x in window.x), window.y)


def fires(now: GroupSums, past: list[GroupSums], rule: ChangeRule) -> bool:
    return compare(now, past, rule).status in (Status.DROPPED, Status.RISEN)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("users", [30, 300, 3000])
def test_it_fires_there_and_not_below(rule: ChangeRule, users: int) -> None:
    dice = np.random.default_rng(users)
    now, *past = (total(panes(dice, users)) for _ in range(8))
    smallest = smallest_change(now, past, rule)
    assert smallest is not None
    assert smallest > rule.drop
    baseline = compare(now, past, rule).baseline
    assert baseline is not None
    assert now.value is not None
    side = -1 if rule.higher_is_better else 1
    for nearly, fired in ((1.02, True), (0.98, False)):
        by = (1 + side * nearly * smallest) * baseline / float(now.value)
        assert fires(changed(now, by), past, rule) == fired, (nearly, smallest)


def test_where_there_is_little_nothing_fires() -> None:
    dice = np.random.default_rng(1)
    now, *past = (total(panes(dice, 3, 1)) for _ in range(8))
    for rule in RULES:
        assert smallest_change(now, past, rule) is None
    assert smallest_change(GroupSums((0,) * GROUPS, past[0].y), past, ChangeRule()) is None


@pytest.mark.parametrize("fall", [0.3, 0.5, 1.0])
def test_a_lasting_fall_fires_when_it_has_filled_enough_of_the_window(fall: float) -> None:
    """All days are alike, and a fall begins at one of six panes of the window."""
    parts = panes(np.random.default_rng(2), 2000)
    past, rule = [total(parts)] * 7, ChangeRule(0.1)
    smallest = smallest_change(total(parts), past, rule)
    assert smallest is not None
    first = next(
        fallen
        for fallen in range(1, 7)
        if fires(
            total([*parts[fallen:], *(changed(p, 1 - fall) for p in parts[:fallen])]), past, rule
        )
    )
    alert = Alert(name="ctr", for_="10m")
    assert 10 * first == 10 * ceil((minutes_until(alert, 0, smallest, fall) - 10) / 10)
