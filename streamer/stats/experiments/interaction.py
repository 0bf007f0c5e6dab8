"""Whether the lift of one experiment depends on the arm that a user has in another one.

Each cell (arm of the first × arm of the second) has the sums of its users, who are in both. Within
an arm of the second, a treatment of the first has a lift over the first's control; Cochran's Q says
whether these lifts differ (heterogeneity.py), as between the values of any dimension. Relative
lifts: two experiments that each add 10 % do not interact if both together add 21 %.

Each treatment of each pair is a test, and all of them share alpha (Holm). Of thousands of tests
each has a level of 0.001 %, to which the normal distribution does not hold for few users, nor for
the relative lift over an uncertain control. So a cell is compared from ``MIN_USERS`` in each arm
on, and relative lifts where two cells or more have an interval of theirs at that level; else
absolute ones are.

All of it holds at one look at a time set before. A pair is tested in one direction, for
R_11 / R_01 and R_10 / R_00 are the same exactly where R_11 / R_10 and R_01 / R_00 are. The lifts
are those of users in both, and not the experiment's: if an arm shows the other experiment to other
users, they differ from it in all cells alike.

>>> def cell(rate):
...     return ArmSums.of([(1, 1)] * rate + [(0, 1)] * (10_000 - rate))
>>> old, new = {"A": cell(1000), "B": cell(1200)}, {"A": cell(1000), "B": cell(900)}
>>> crossing = Crossing(Plan("A", {"A": 1, "B": 1}), {"old": old, "new": new})
>>> (its,) = interactions({"layout × ranker": crossing}, 0.05)["layout × ranker"]
>>> its.treatment, its.differs
('B', True)
>>> print(its.sentence("user_hit_ratio", "ranker"))
The lift of user_hit_ratio differs by ranker's arm (p < 0.0001 at one look): old +20%, new −10%.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from streamer.formatting import p_words
from streamer.settings.limits import MIN_USERS
from streamer.stats.experiments.estimate import Lifts, holm
from streamer.stats.experiments.heterogeneity import Heterogeneity, heterogeneity
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.sums import ArmSums

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two experiments and one metric. ``plan``: that of the first; ``cells``: arm of the second →
    arm of the first → the sums of the users in both; a cell without users may be missing."""

    plan: Plan
    cells: Mapping[str, Mapping[str, ArmSums]]


@dataclass(frozen=True, slots=True)
class Interaction:
    """Whether the lift of one treatment of the first experiment depends on the arm of the second.

    ``test`` is at the level that Holm's method leaves to it, among ``tests``; ``p_adjusted`` is
    Holm's, None where fewer than two arms of the second have an interval.
    """

    treatment: str
    test: Heterogeneity
    p_adjusted: float | None
    tests: int

    @property
    def differs(self) -> bool:
        """Whether the lifts differ more than chance."""
        return self.test.differs

    def sentence(self, metric: str, second: str, form: str = "number") -> str:
        """What is found, in words; ``second``: the name of the second experiment; ``form``: how
        the values of the metric are written."""
        text = self.test.describe(metric, f"{second}'s arm", form)
        if self.p_adjusted is None or self.tests == 1:
            return text
        return f"{text} Corrected over {self.tests:,} tests: {p_words(self.p_adjusted)}."


def interactions(crossings: Mapping[Key, Crossing], alpha: float) -> dict[Key, list[Interaction]]:
    """Test all pairs that are looked at, each treatment of the first by itself."""
    tests = sum(len(crossing.plan.treatments) for crossing in crossings.values())
    lifts = {
        (key, treatment): its
        for key, crossing in crossings.items()
        for treatment, its in _lifts(crossing, alpha / max(1, tests)).items()
    }
    first = [heterogeneity(its, alpha).p_value for its in lifts.values()]
    corrected = holm([1.0 if p_value is None else p_value for p_value in first], alpha)
    found: dict[Key, list[Interaction]] = {key: [] for key in crossings}
    for ((key, treatment), by_arm), its in zip(lifts.items(), corrected, strict=True):
        test = heterogeneity(by_arm, its.alpha)
        p_adjusted = None if test.p_value is None else its.p_value
        found[key].append(Interaction(treatment, test, p_adjusted, tests))
    return found


def _lifts(crossing: Crossing, level: float) -> dict[str, dict[str, Lifts]]:
    """Treatment of the first → arm of the second → the lifts that decide, with intervals of this
    level."""
    plan = replace(crossing.plan, alpha=level)
    found: dict[str, dict[str, Lifts]] = {treatment: {} for treatment in plan.treatments}
    for arm, its in crossing.cells.items():
        sums = {name: _with_users(its.get(name, ArmSums())) for name in plan.split}
        for comparison in compare(plan, Rule(), sums).comparisons:
            found[comparison.arm][arm] = Lifts(comparison.absolute, comparison.relative)
    return found


def _with_users(sums: ArmSums) -> ArmSums:
    """Sums of a cell, without an interval if its users are too few."""
    if sums.n >= MIN_USERS:
        return sums
    return replace(sums, obstacle=f"there are fewer than {MIN_USERS} users")
