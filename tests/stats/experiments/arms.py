"""Arms of experiments made by hand, and their comparison."""

from __future__ import annotations

from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison, MetricComparisons, compare
from streamer.stats.experiments.sums import ArmSums

HALVES = Plan("A", {"A": 1, "B": 1})
THREE = Plan("A", {"A": 2, "B": 1, "C": 1})


def clicks(users: int, per_mille: int, shown: int = 10) -> ArmSums:
    """Users who were shown ten items each, of whom so many in a thousand clicked once."""
    count = users * per_mille // 1000
    y, yy, xy = shown * users, shown * shown * users, shown * count
    return ArmSums(users, count, count, y, yy, xy, count)


def changes(more: int, less: int) -> ArmSums:
    """Users of whom so many went up by one, and so many down."""
    return ArmSums.of([(1, 1)] * more + [(-1, 1)] * less + [(0, 1)] * (1000 - more - less))


def only(found: MetricComparisons) -> Comparison:
    (comparison,) = found.comparisons
    return comparison


def ab(a: ArmSums, b: ArmSums, rule: Rule | None = None, plan: Plan = HALVES) -> Comparison:
    return only(compare(plan, rule or Rule(), {"A": a, "B": b}))


LOWER, GUARD = Rule(higher_is_better=False), Rule(margin=0.05)
LOWER_GUARD = Rule(higher_is_better=False, margin=0.05)
MANY = 1_000_000
