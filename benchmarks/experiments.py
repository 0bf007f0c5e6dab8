"""Whether the statistics of experiments hold what they say, by simulation; no servers.

    python -m benchmarks.experiments               everything, a few minutes of one core
    python -m benchmarks.experiments --runs 100    the same, coarser

Users see about twenty impressions each, over several days, with a propensity of their own: their
impressions are not so many observations. What is simulated are users; all the rest is done by
streamer.experiments. Prints the tables of docs/experiments_statistics.md, and fails if an error
rate is above what was promised by more than three standard errors of the simulation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from streamer.experiments.anytime import critical, p_value
from streamer.experiments.cuped import adjusted
from streamer.experiments.distributions import normal_two_sided, t_quantile, t_two_sided
from streamer.experiments.lift import Lift, absolute, lift, relative
from streamer.experiments.plan import Plan, Rule
from streamer.experiments.ratio import ratio
from streamer.experiments.srm import pearson, sequential
from streamer.experiments.sums import ArmSums, BeforeSums
from streamer.experiments.verdict import SPLIT_ALPHA

Ints = NDArray[np.int64]
PLAN, RULE = Plan("A", {"A": 1, "B": 1}), Rule()
LIKES = (0.5, 9.5)
"""Beta distribution of the users' propensities to click: 5 % in the mean, and very unlike."""
SHOWN = 20


def rate(found: int, runs: int) -> str:
    """A share with its standard error, which is that of one more found and one more not."""
    share = (found + 1) / (runs + 2)
    return f"{found / runs:.1%} ± {sqrt(share * (1 - share) / runs):.1%}"


def hold(what: str, found: int, runs: int, promised: float) -> None:
    """Fail if a rate is above what was promised by more than chance."""
    if found / runs > promised + 3 * sqrt(promised * (1 - promised) / runs):
        raise AssertionError(f"{what}: {found} of {runs}, promised at most {promised:.2%}")


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)


def always(found: Lift, users: int) -> bool:
    return found.t is not None and p_value(found.t, users, PLAN.rho2) <= PLAN.alpha


def once(found: Lift) -> bool:
    return found.t is not None and t_two_sided(found.t, found.df or 1.0) <= PLAN.alpha


def by_impressions(a: ArmSums, b: ArmSums) -> bool:
    """The z-test of two proportions that takes every impression for an observation."""
    pooled = (a.x + b.x) / (a.y + b.y)
    stderr = sqrt(pooled * (1 - pooled) * (1 / a.y + 1 / b.y))
    return stderr > 0 and normal_two_sided((b.x / b.y - a.x / a.y) / stderr) <= PLAN.alpha


# 1. Looking again ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Visits:
    """How users come: ``users`` in each arm, over ``days``, each with a look at its end."""

    name: str
    users: int
    days: int
    likes: tuple[float, float]
    is_new: bool
    """Users come one after the other, and again for some days; if not, all are there from the first
    day on and come until the last."""

    def arm(self, dice: np.random.Generator) -> list[ArmSums]:
        """The sums of one arm, day by day."""
        shape = self.users, SHOWN
        if self.is_new:
            first = dice.integers(0, self.days, self.users)
            day = first[:, None] + dice.geometric(1 / 7, shape) - 1
        else:
            day = dice.integers(0, self.days, shape)
        clicked = dice.random(shape) < dice.beta(*self.likes, self.users)[:, None]
        cell = (np.arange(self.users)[:, None] * self.days + day)[day < self.days]
        size = self.users * self.days
        clicks = np.bincount(cell, clicked[day < self.days], size).astype(np.int64)
        shown = np.bincount(cell, minlength=size)
        x, y = (c.reshape(self.users, self.days).cumsum(axis=1) for c in (clicks, shown))
        sums = [(y > 0).sum(0), x.sum(0), (x * x).sum(0), y.sum(0), (y * y).sum(0), (x * y).sum(0)]
        return [ArmSums(*row) for row in np.stack(sums, axis=1).tolist()]


VISITS = [
    Visits("users come day by day and return", 2000, 100, LIKES, is_new=True),
    Visits("all users are there from the first day", 2000, 100, LIKES, is_new=False),
    Visits("the same, and users are all alike", 2000, 100, (5000.0, 95000.0), is_new=False),
]


def looking_again(runs: int) -> None:
    """Experiments without any difference: how many are ever called significant."""
    rows = []
    for visits in VISITS:
        dice = np.random.default_rng(1)
        ever = dict.fromkeys(("anytime", "welch", "impressions", "welch last", "last"), 0)
        for _ in range(runs):
            days = list(zip(visits.arm(dice), visits.arm(dice), strict=True))
            days = [(a, b) for a, b in days if min(a.n, b.n) >= RULE.min_users]
            lifts = [lift(absolute, ratio(b), ratio(a)) for a, b in days]
            users = [a.n + b.n for a, b in days]
            ever["anytime"] += any(map(always, lifts, users))
            ever["welch"] += any(map(once, lifts))
            ever["impressions"] += any(by_impressions(a, b) for a, b in days)
            ever["welch last"] += once(lifts[-1])
            ever["last"] += by_impressions(*days[-1])
        hold(f"looking again, {visits.name}", ever["anytime"], runs, PLAN.alpha)
        rows.append((visits.name, *(rate(count, runs) for count in ever.values())))
    table(
        f"{runs} experiments without a difference, 100 looks: called significant at least once",
        (
            *("users", "anytime-valid", "Welch over users, every look"),
            *("z-test over impressions, every look", "Welch, last look only", "z-test, last only"),
        ),
        rows,
    )


# 2. Coverage --------------------------------------------------------------------------------------


def clicks(dice: np.random.Generator, users: int, more: float) -> tuple[Ints, Ints]:
    """Clicks by impressions: R = 5 % times ``more``."""
    shown = dice.poisson(SHOWN - 1, users) + 1
    return dice.binomial(shown, dice.beta(*LIKES, users) * more), shown


def cents(dice: np.random.Generator, users: int, more: float) -> tuple[Ints, Ints]:
    """Value per user, in cents: one in ten buys, for e**(8 + 1.5 N(0, 1)) cents."""
    spent = (dice.random(users) < 0.1) * dice.lognormal(8, 1.5, users) * more
    return np.rint(spent).astype(np.int64), np.ones(users, np.int64)


METRICS: dict[str, tuple[Callable[[np.random.Generator, int, float], tuple[Ints, Ints]], float]] = {
    "CTR": (clicks, 0.05),
    "value per user": (cents, 0.1 * exp(8 + 1.5**2 / 2)),
}
"""Users of each, and the mean of the control."""
MORE = 0.9
"""The treatment has a tenth less: a known truth that is not 0."""


def one_arm(x: Ints, y: Ints) -> ArmSums:
    xx, yy, xy = (int(c) for c in (x @ x, y @ y, x @ y))
    return ArmSums(len(x), int(x.sum()), xx, int(y.sum()), yy, xy)


def covered(found: Lift, truth: float, users: int) -> tuple[bool, bool]:
    """Whether the interval of one look contains the truth, and that of every look."""
    if found.value is None or found.stderr is None:
        return False, False
    off = abs(found.value - truth) / found.stderr
    always_critical = critical(PLAN.alpha, users, PLAN.rho2)
    return off <= t_quantile(PLAN.alpha, found.df or 1.0), off <= always_critical


def coverage(runs: int) -> None:
    """How often intervals contain the truth, at one look after so many users."""
    rows = []
    for name, (metric, mean) in METRICS.items():
        for users in (100, 1000, 10_000):
            dice = np.random.default_rng(users)
            held = np.zeros(6, np.int64)
            for _ in range(runs):
                arms = [ratio(one_arm(*metric(dice, users, more))) for more in (MORE, 1.0)]
                logged = lift(relative, arms[0], arms[1])
                plain = Lift(*logged.shown, logged.df)
                truths = (
                    (lift(absolute, arms[0], arms[1]), (MORE - 1) * mean),
                    (logged, log(MORE)),
                    (plain, MORE - 1),
                )
                held += np.ravel([covered(its, truth, 2 * users) for its, truth in truths])
            for count in held[[1, 3]].tolist():
                hold(f"coverage, {name}, {users} users", runs - count, runs, PLAN.alpha)
            shares = (rate(count, runs) for count in held[[0, 2, 4, 1, 3, 5]].tolist())
            rows.append((name, f"{users:,}", *shares))
    kinds = ("absolute", "relative", "relative without logarithm")
    table(
        f"Intervals of 95 % that contain the true lift of -10 %, {runs} experiments each",
        (
            *("metric", "users in each arm", *(f"fixed, {kind}" for kind in kinds)),
            *(f"anytime-valid, {kind}" for kind in kinds),
        ),
        rows,
    )


# 3. Power -----------------------------------------------------------------------------------------

LOOKS = 20
BEFORE = 60
"""Impressions of a user in the time before."""


def growing(dice: np.random.Generator, users: int, more: float) -> list[ArmSums]:
    """The sums of one arm after every twentieth of its users."""
    likes = dice.beta(*LIKES, users)
    shown, v = (dice.poisson(mean - 1, users) + 1 for mean in (SHOWN, BEFORE))
    clicked, u = dice.binomial(shown, np.minimum(1.0, likes * more)), dice.binomial(v, likes)
    columns = [np.ones_like(u), clicked, clicked**2, shown, shown**2, clicked * shown]
    columns += [u, v, u * u, u * v, v * v, clicked * u, clicked * v, shown * u, shown * v]
    parts = np.add.reduceat(np.stack(columns), np.arange(LOOKS) * users // LOOKS, axis=1)
    sums = parts.cumsum(axis=1).T.tolist()
    return [
        ArmSums(n, x, xx, y, yy, xy, before=BeforeSums(*before))
        for n, x, xx, y, yy, xy, *before in sums
    ]


def power(runs: int) -> None:
    """How often a lift is found."""
    rows = []
    for more in (1.0, 1.05, 1.1, 1.2):
        for users in (1000, 5000, 20_000):
            dice = np.random.default_rng(users)
            repeats = 2 * runs if more == 1 else runs
            found = np.zeros(6, np.int64)
            for _ in range(repeats):
                a, b = growing(dice, users, 1.0), growing(dice, users, more)
                looks = [k for k in range(LOOKS) if a[k].n >= RULE.min_users]
                raw = [lift(absolute, ratio(b[k]), ratio(a[k])) for k in looks]
                sharper = [adjusted(absolute, b[k], a[k]).lift for k in looks]
                size = [a[k].n + b[k].n for k in looks]
                for i, lifts in enumerate((raw, sharper)):
                    seen = list(map(always, lifts, size))
                    found[[i, 2 + i, 4 + i]] += [once(lifts[-1]), seen[-1], any(seen)]
            if more == 1:
                for i in (4, 5):
                    hold("looking again, growing", int(found[i]), repeats, PLAN.alpha)
            shares = (rate(count, repeats) for count in found.tolist())
            rows.append((f"{more - 1:+.0%}", f"{users:,}", *shares))
    table(
        f"Called significant, {runs} experiments each ({2 * runs} without a lift)",
        (
            *("true lift of the CTR", "users in each arm", "fixed, one look", "with CUPED"),
            *("anytime-valid, last look", "with CUPED", f"any of {LOOKS} looks", "with CUPED"),
        ),
        rows,
    )


# 4. Splits ----------------------------------------------------------------------------------------


def first(p_values: Iterator[float]) -> int | None:
    """The first look at which the split is called wrong, from 1."""
    return next((i for i, p in enumerate(p_values, 1) if p < SPLIT_ALPHA), None)


def splits(runs: int) -> None:
    """How often a split is called wrong in 100 looks up to 100,000 users, and how soon."""
    rows = []
    halves = (0.5, 0.5)
    for share in (0.5, 0.505, 0.51, 0.52):
        dice = np.random.default_rng(4)
        arrived = dice.binomial(1000, share, (runs, 100)).cumsum(axis=1).tolist()
        counts = [[(a, 1000 * k - a) for k, a in enumerate(run, 1)] for run in arrived]
        ours = [first(sequential(c, halves) for c in run) for run in counts]
        peeked = sum(first(pearson(c, halves) for c in run) is not None for run in counts)
        when = [look for look in ours if look is not None]
        if share == 0.5:
            hold("honest splits", len(when), runs, SPLIT_ALPHA)
        if share == 0.52 and len(when) < runs:
            raise AssertionError(f"splits of 52:48: {len(when)} of {runs} found")
        after = f"{1000 * int(np.median(when)):,}" if len(when) > runs / 2 else ""
        split = f"{share:.1%} : {1 - share:.1%}"
        rows.append((split, rate(len(when), runs), after, rate(peeked, runs)))
    table(
        f"Splits called wrong (p < {SPLIT_ALPHA}) in 100 looks up to 100,000 users, {runs} each",
        ("true split", "sequential test", "users by then, median", "Pearson at every look"),
        rows,
    )


def main(runs: int) -> None:
    for part, its in ((looking_again, runs), (coverage, runs), (power, runs // 4), (splits, runs)):
        begun = time.perf_counter()
        part(its)
        print(f"\n{part.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=1000, help="experiments of each kind")
    main(options.parse_args().runs)
