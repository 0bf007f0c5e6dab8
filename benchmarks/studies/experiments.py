"""Whether the statistics of experiments hold what they say, by simulation; no servers.

    python -m benchmarks.studies.experiments               everything, a few minutes of one core
    python -m benchmarks.studies.experiments --runs 100    the same, coarser

Users see about twenty impressions each, over several days, with a propensity of their own: their
impressions are not so many observations. What is simulated are users; all the rest is done by
streamer.stats.experiments. Prints the tables from which docs/experiments_statistics.md is taken,
and fails if an error rate is above what was promised by more than three standard errors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, isclose, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from benchmarks.studies.experiment_advice import advised, families, shipped
from benchmarks.studies.experiment_crawlers import crawlers, dead_checkout
from benchmarks.studies.experiment_decisions import decisions, withdrawals
from benchmarks.studies.experiment_forecasts import days_of_plans, forecasts_of_days
from benchmarks.studies.experiment_looks import few_buyers, rare_buyers
from benchmarks.studies.experiment_percentiles import percentiles
from benchmarks.studies.rates import hold, rate, table
from streamer.stats.distributions import normal_quantile, normal_two_sided, t_two_sided
from streamer.stats.experiments import srm
from streamer.stats.experiments.anytime import p_value
from streamer.stats.experiments.estimate import Inference
from streamer.stats.experiments.forecast import Growth
from streamer.stats.experiments.lift import Lift, Pair, adjusted, contrast
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.sums import ArmSums, BeforeSums

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
PLAN, RULE = Plan("A", {"A": 1, "B": 1}), Rule()
LIKES = (0.5, 9.5)
"""Beta distribution of the users' propensities to click: 5 % in the mean, and very unlike."""
SHOWN = 20


def lift(a: ArmSums, b: ArmSums) -> Lift:
    """That of ``b`` over ``a``, raw."""
    return contrast(Pair(ratio(b), ratio(a)))


def always(found: Lift, users: int) -> bool:
    """Whether the test that holds at any look rejects."""
    return found.t is not None and p_value(found.t, users, PLAN.rho2) <= PLAN.alpha


def once(found: Lift) -> bool:
    """Whether Student's t-test, at a single look, rejects."""
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
            lifts = [lift(a, b) for a, b in days]
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
    """The sums of one arm, of numerators x and denominators y by user."""
    xx, yy, xy = (int(c) for c in (x @ x, y @ y, x @ y))
    return ArmSums(len(x), int(x.sum()), xx, int(y.sum()), yy, xy, int((x != 0).sum()))


def covers(found: Inference | None, truth: float) -> bool:
    """Whether an interval does not miss the truth; one that is not given does not."""
    return found is None or found.low <= truth <= found.high


def coverage(runs: int) -> None:
    """How often intervals contain the truth, at one look after so many users."""
    rows = []
    for name, (metric, mean) in METRICS.items():
        for users in (100, 1000, 10_000):
            dice = np.random.default_rng(users)
            held, given = np.zeros(4, np.int64), np.zeros(2, np.int64)
            for _ in range(runs):
                a, b = (one_arm(*metric(dice, users, more)) for more in (1.0, MORE))
                (found,) = compare(PLAN, RULE, {"A": a, "B": b}).comparisons
                truths = (found.absolute, (MORE - 1) * mean), (found.relative, MORE - 1)
                intervals = [(i, at) for its, at in truths for i in (its.fixed, its.anytime)]
                held += [covers(*each) for each in intervals]
                given += [found.relative.fixed is not None, found.relative.anytime is not None]
            for count in held[[1, 3]].tolist():
                hold(f"coverage, {name}, {users} users", runs - count, runs, PLAN.alpha)
            shares = (rate(count, runs) for count in held.tolist())
            rows.append((name, f"{users:,}", *shares, *(f"{g / runs:.0%}" for g in given.tolist())))
    table(
        f"Intervals of 95 % that do not miss the true lift of -10 %, {runs} experiments each",
        (
            *("metric", "users in each arm", "fixed, absolute", "anytime-valid, absolute"),
            *("fixed, relative", "anytime-valid, relative"),
            *("fixed relative given", "anytime-valid relative given"),
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
                raw = [lift(a[k], b[k]) for k in looks]
                pairs = [(Pair(ratio(b[k]), ratio(a[k])), b[k], a[k]) for k in looks]
                sharper = [contrast(adjusted(*pair).pair) for pair in pairs]
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

DAYS_OF_SPLITS = 28
HONEST = {"50 : 50": (0.5, 1000), "10 : 90": (0.1, 1000), "1 : 99": (0.01, 5000)}
"""Planned share of the first arm, and users a day."""
WRONG: dict[str, tuple[float, int, Sequence[float]]] = {
    "60 : 40, 580 users": (0.5, 58, [0.6] * 10),
    "52 : 48, 8,000 users": (0.5, 800, [0.52] * 10),
    "51 : 49, 39,000 users": (0.5, 3900, [0.51] * 10),
    "12 : 88 in place of 10 : 90, 2,000 users": (0.1, 200, [0.12] * 10),
    "80 : 20 for 4 days, then 20 : 80, 4,000 users": (0.5, 500, [0.8] * 4 + [0.2] * 4),
    "60 : 40 on one day of 14, 14,000 users": (0.5, 1000, [0.5] * 7 + [0.6] + [0.5] * 6),
}
"""Planned share, users a day, and the true share on each day."""


def log_bayes_factor(first: Ints, users: Ints, share: float) -> Floats:
    """As in streamer.stats.experiments.srm, of two arms, over arrays."""
    weight, parts = srm.CONCENTRATION, (share, 1 - share)
    found = gammaln(weight) - gammaln(weight + users)
    for count, part in zip((first, users - first), parts, strict=True):
        found = found + gammaln(weight * part + count) - gammaln(weight * part) - count * log(part)
    return np.asarray(found)


def p_over_time(first: Ints, users: Ints, share: float) -> Floats:
    """p at any look of runs, by users of the first arm and of both at the ends of days."""
    largest = np.zeros(len(first))
    for now in range(first.shape[1]):
        terms = [log(0.5) + log_bayes_factor(first[:, now], users[:, now], share)]
        for n in range(1, now + 1):
            since = first[:, now] - first[:, n - 1], users[:, now] - users[:, n - 1]
            terms.append(log(0.5 / (n * (n + 1))) + log_bayes_factor(*since, share))
        terms.append(np.full(len(first), log(0.5 / (now + 1))))
        largest = np.maximum(largest, np.logaddexp.reduce(terms, axis=0))
    return np.asarray(np.exp(-largest))


def splits(runs: int) -> None:
    """How often a split is called wrong at any of the daily looks, or unusual at the last one."""
    cases = [(name, share, a_day, [share] * DAYS_OF_SPLITS, True)
             for name, (share, a_day) in HONEST.items()]
    cases += [(name, *its, False) for name, its in WRONG.items()]
    rows = []
    for name, share, a_day, by_day, is_honest in cases:
        count = 10 * runs if is_honest else runs
        dice = np.random.default_rng(4)
        came = np.full((count, len(by_day)), a_day).cumsum(axis=1)
        first = dice.binomial(a_day, by_day, (count, len(by_day))).cumsum(axis=1)
        p = p_over_time(first, came, share)
        for run in range(3):  # the product's own
            looks = [(a, n - a) for a, n in zip(first[run], came[run], strict=True)]
            own = srm.over_time([(int(a), int(b)) for a, b in looks], (share, 1 - share))
            assert isclose(own, p[run], rel_tol=1e-6, abs_tol=1e-300), (own, p[run])
        expected = came[:, -1] * share
        pearson = (first[:, -1] - expected) ** 2 / (expected * (1 - share))
        red = p <= srm.ALPHA
        amber = ~red & (pearson > normal_quantile(srm.ALPHA_FIXED / 2) ** 2)
        if is_honest:
            hold(f"honest splits, {name}", int(red.sum()), count, srm.ALPHA)
        rows.append((name, rate(int(red.sum()), count), rate(int(amber.sum()), count)))
    table(
        f"Splits over {DAYS_OF_SPLITS} days as planned ({10 * runs:,} experiments each), and wrong "
        f"ones ({runs:,} each): called so at any of the daily looks, and at the last one",
        ("split", "wrong", "unusual"),
        rows,
    )


# 5. Forecasts -------------------------------------------------------------------------------------

HORIZON = 61
COMING: dict[str, Callable[[np.random.Generator], Ints]] = {
    "all are new": lambda dice: dice.integers(1, HORIZON, 60_000),
    "the same users, each on 3 of 10 days": lambda dice: dice.geometric(0.3, 5000),
    "the same users, Beta(0.5, 1.5)": lambda dice: dice.geometric(dice.beta(0.5, 1.5, 8000)),
    "the same users, Beta(1, 9)": lambda dice: dice.geometric(dice.beta(1, 9, 20_000)),
    "300 new a day, and 6,000 of Beta(0.5, 1.5)": lambda dice: np.concatenate(
        [dice.geometric(dice.beta(0.5, 1.5, 6000)), np.repeat(np.arange(1, HORIZON), 300)]
    ),
}
"""The first day of each user."""


def forecasts(_: int) -> None:
    """How many distinct users there will have been, by Growth and by a straight line."""
    rows = []
    for name, come in COMING.items():
        first = come(np.random.default_rng(6))
        users = np.bincount(first[first < HORIZON], minlength=HORIZON).cumsum().tolist()
        for now, then in ((2, 7), (3, 7), (7, 14), (7, 28), (14, 28), (14, 56)):
            half = now // 2
            growth = Growth(half, users[half], now, users[now])
            ours, straight = growth.users_at(then), users[now] / now * then
            errors = (f"{found / users[then] - 1:+.0%}" for found in (ours, straight))
            rows.append((name, now, then, f"{users[then]:,}", *errors))
            if abs(ours / users[then] - 1) > 0.5:
                raise AssertionError(f"forecast of {name} for day {then} on day {now}: {ours:.0f}")
    table(
        "Forecasts of distinct users",
        ("users", "on day", "for day", "there were", "forecast", "by a straight line"),
        rows,
    )


def main(runs: int) -> None:
    parts = (
        *((looking_again, runs), (coverage, runs), (few_buyers, runs // 2)),
        *((rare_buyers, runs // 2), (power, runs // 4), (splits, runs), (forecasts, 1)),
        *((forecasts_of_days, runs // 10), (days_of_plans, runs // 10)),
        (decisions, runs // 4),
        (withdrawals, runs // 2),
        *((crawlers, runs // 5), (dead_checkout, runs // 2)),
        *((shipped, runs), (advised, runs // 5), (families, runs // 2)),
        (percentiles, runs // 5),
    )
    for part, its in parts:
        begun = time.perf_counter()
        part(its)
        print(f"\n{part.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=1000, help="experiments of each kind")
    main(options.parse_args().runs)
