"""Experiments told apart by four values of a dimension: how often any of them claims an effect, and
how often their lifts are said to differ.

    python -m benchmarks.studies.exploring

4,000 users, of whom the values have 50, 25, 15 and 10 %; a look on each of 14 days.
Values share alpha, as ``streamer readout --by`` has it, or each has all of it. With a lift it is
how often any finds it. Whether lifts differ is asked at one look, of worlds in which they do not,
and of some in which that of the second value does.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.experiments import one_arm
from benchmarks.studies.rates import rate, table
from streamer.stats.experiments.estimate import Lifts
from streamer.stats.experiments.heterogeneity import Heterogeneity, heterogeneity
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.verdict import Outcome

USERS, DAYS = 4000, 14
SHARES = (0.5, 0.25, 0.15, 0.1)
CLAIMS = (Outcome.BETTER, Outcome.WORSE)


def is_claimed(seed: int, alpha: float, lift: float) -> bool:
    """Whether any value claims an effect at any look."""
    dice = np.random.default_rng(seed)
    plan = Plan("A", {"A": 0.5, "B": 0.5}, alpha)
    value, arm = dice.choice(len(SHARES), USERS, p=SHARES), dice.integers(2, size=USERS)
    first = dice.integers(DAYS, size=USERS)
    rate = dice.beta(4, 26, USERS) * (1 + lift * arm)
    shown, clicked = np.zeros(USERS, np.int64), np.zeros(USERS, np.int64)
    for day in range(DAYS):
        impressions = 10 * ((first <= day) & (dice.random(USERS) < 0.5))
        shown += impressions
        clicked += dice.binomial(impressions, rate)
        for each in range(len(SHARES)):
            here = (value == each) & (shown > 0)
            arms = {
                name: one_arm(clicked[here & (arm == i)], shown[here & (arm == i)])
                for i, name in enumerate("AB")
            }
            found = compare(plan, Rule(), arms)
            if any(comparison.verdict.outcome in CLAIMS for comparison in found.comparisons):
                return True
    return False


@dataclass(frozen=True)
class World:
    """Users of four values whose treatment has ``lift``, and in the second value ``second``.

    ``likes``: the mean click-through rate of each value; ``crawler``: impressions of one user of
    the first value who never clicks; ``spends``: clicks are worth a log-normal amount.
    """

    name: str
    lift: float = 0.0
    second: float | None = None
    users: int = USERS
    shares: tuple[float, ...] = SHARES
    treated: float = 0.5
    likes: tuple[float, ...] = (0.13,)
    crawler: int = 0
    spends: bool = False

    def test(self, seed: int) -> Heterogeneity:
        """One experiment."""
        dice = np.random.default_rng(seed)
        count = len(self.shares)
        value, arm = dice.choice(count, self.users, p=self.shares), dice.random(self.users)
        is_treated = arm < self.treated
        lifts = np.full(count, self.lift)
        lifts[1] = self.lift if self.second is None else self.second
        mean = np.resize(self.likes, count)[value] * (1 + lifts[value] * is_treated)
        shown = 10 * (1 + dice.binomial(6, 0.5, self.users))
        clicked = dice.binomial(shown, dice.beta(30 * mean, 30 * (1 - mean)))
        if self.spends:
            worth = np.rint(100 * dice.lognormal(0, 1, self.users)).astype(np.int64)
            clicked, shown = clicked // 4 * worth, np.ones_like(shown)
        if self.crawler:
            shown[value.argmin()], clicked[value.argmin()] = self.crawler, 0
        plan = Plan("A", {"A": 1 - self.treated, "B": self.treated})
        found = {}
        for each in range(count):
            here = [(value == each) & (is_treated == is_b) for is_b in (False, True)]
            arms = {n: one_arm(clicked[h], shown[h]) for n, h in zip("AB", here, strict=True)}
            (comparison,) = compare(plan, Rule(), arms).comparisons
            found[str(each)] = Lifts(comparison.absolute, comparison.relative)
        return heterogeneity(found, plan.alpha)


UNLIKE = (0.02, 0.1, 0.2, 0.3)
TWENTY = (0.05,) * 20
WORLDS = [
    World("no lift"),
    World("lift +20 % everywhere", 0.2),
    World("the same, rates of 2 to 30 %", 0.2, likes=UNLIKE),
    World("the same, ten users in a value", 0.2, likes=UNLIKE, shares=(0.4, 0.4, 0.1975, 0.0025)),
    World("200 users", 0.2, users=200),
    World("20 values of 20 users", 0.2, users=400, shares=TWENTY),
    World("20 values of 200 users", 0.2, users=4000, shares=TWENTY),
    World("arms 90 : 10", 0.2, treated=0.1),
    World("a crawler of 20,000 impressions", 0.2, crawler=20_000),
    World("amounts, log-normal", 0.2, spends=True),
    World("second value +10 %", 0.0, 0.1),
    World("second value +20 %", 0.0, 0.2),
    World("second value +20 %, a crawler in another", 0.0, 0.2, crawler=20_000),
]


def differing(runs: int) -> None:
    """How often lifts are said to differ, and values to stand apart."""
    rows = []
    for world in WORLDS:
        tests = [world.test(seed) for seed in range(runs)]
        asked = [t for t in tests if t.p_value is not None]
        differs = sum(t.differs for t in tests)
        second, other = (sum(pick(t) for t in tests) for pick in (_second, _other))
        scales = sum(t.scale == "relative" for t in asked)
        compared = sum(len(t.values) for t in asked) / max(1, len(asked))
        shares = (rate(count, runs) for count in (differs, second, other, scales))
        rows.append((world.name, *shares, f"{compared:.1f}"))
    table(
        f"Lifts said to differ at 5 %, {runs:,} experiments each",
        ("world", "differ", "second apart", "another apart", "relative", "values compared"),
        rows,
    )


def _second(test: Heterogeneity) -> bool:
    return "1" in test.apart


def _other(test: Heterogeneity) -> bool:
    return bool(test.apart.keys() - {"1"})


def main(runs: int) -> None:
    """Print the shares."""
    differing(runs)
    for lift in (0.0, 0.2):
        for name, alpha in (("shared", 0.05 / len(SHARES)), ("of each", 0.05)):
            claimed = sum(is_claimed(seed, alpha, lift) for seed in range(runs)) / runs
            print(f"lift {lift:.0%}, alpha {name}: {claimed:.1%} of {runs:,}", flush=True)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--runs", type=int, default=1000)
    main(flags.parse_args().runs)
