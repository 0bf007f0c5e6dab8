"""A hundred experiments on the same users: whether splits are called dependent and lifts differing.

    python -m benchmarks.studies.experiment_pairs              everything, five minutes of one core
    python -m benchmarks.studies.experiment_pairs --runs 30    as the documentation has it

Users come day by day, as many on each, and are in any experiment that shows itself to them. All
4,950 pairs are looked at. Tests over all pairs at every look are computed over arrays, and are
compared with streamer.stats.experiments.pairs on the last day.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy
from scipy.stats import chi2

from benchmarks.studies.experiment_crawlers import World, measured
from benchmarks.studies.rates import hold, rate, table
from streamer.settings.experiments import DEFAULT_RATIO_CAP
from streamer.stats.experiments import pairs, srm
from streamer.stats.experiments.caps import DENOMINATOR_EDGES, Denominator
from streamer.stats.experiments.interaction import Crossing, interactions
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.sums import ArmSums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXPERIMENTS, DAYS = 100, 28
PAIRS = list(combinations(range(EXPERIMENTS), 2))
OF_ALL = pairs.ALPHA / len(PAIRS)
PEARSON = 1e-6
"""Level of Pearson's test that is compared."""
"""p of one pair below which Holm calls it dependent, as the first of all."""
HALVES = (0.5, 0.5)
UNEQUAL = (HALVES, (0.9, 0.1), (0.99, 0.01), (1 / 3,) * 3, (0.6, 0.1, 0.1, 0.1, 0.1))

# 1. False alarms ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traffic:
    """Users of a hundred experiments without any dependence.

    ``splits`` are those of the experiments in turn; each is shown to a share between ``seen`` and
    1 of the users. ``triggers``: the last arm of every other experiment shows the next experiment
    to twice as many. ``lost``: so many of the last arm's users are never counted (a split that is
    wrong). ``bots``: as many ids again as there are users, all on one day. ``fallback``: a share of
    users who are in the first arm of all experiments, whatever the hash says: a true dependence.
    ``ramps``: every experiment has 90 : 10 on the first half of the days.
    """

    name: str
    users: int
    splits: tuple[tuple[float, ...], ...] = (HALVES,)
    seen: float = 1.0
    triggers: bool = False
    lost: float = 0.0
    bots: bool = False
    fallback: float = 0.0
    ramps: bool = False

    def arms(self) -> list[tuple[float, ...]]:
        """Planned shares of each experiment."""
        return [self.splits[e % len(self.splits)] for e in range(EXPERIMENTS)]

    def days(self, dice: np.random.Generator) -> tuple[Ints, Ints]:
        """Of each user the day, and the arm in each experiment, -1 for none."""
        count = self.users * (2 if self.bots else 1)
        day = dice.integers(DAYS, size=count)
        if self.bots:
            day[self.users :] = DAYS // 2
        arm = np.empty((count, EXPERIMENTS), np.int64)
        for e, shares in enumerate(self.arms()):
            arm[:, e] = dice.choice(len(shares), count, p=shares)
            if self.ramps:
                early = day < DAYS // 2
                arm[early, e] = dice.random(int(early.sum())) < 0.1
        arm[dice.random(count) < self.fallback] = 0
        shown = np.broadcast_to(dice.uniform(self.seen, 1, EXPERIMENTS), arm.shape)
        last = np.array([len(shares) - 1 for shares in self.arms()])
        if self.triggers:
            shown = shown.copy()
            shown[:, 1::2] *= np.where(arm[:, ::2] == last[::2], 1.0, 0.5)
        is_in = dice.random(arm.shape) < shown
        is_in &= ~((arm == last) & (dice.random(arm.shape) < self.lost))
        arm[~is_in] = -1
        return day, arm


def one_hot(arm: Ints, counts: list[int]) -> Floats:
    """A column for each arm of each experiment."""
    columns = [arm[:, e] == a for e, count in enumerate(counts) for a in range(count)]
    return np.stack(columns, axis=1).astype(np.float64)


@dataclass(frozen=True)
class Looks:
    """p of each pair at one look: ours, of the planned shares (srm.py), and Pearson's, of which
    ``least`` has the least number of users that is expected in a cell."""

    ours: Floats
    planned: Floats
    pearson: Floats
    least: Floats


def look(n: Floats, blocks: Floats, shares: Floats) -> Looks:
    """All pairs at once: ``n`` of arm by arm, ``blocks`` of arm by experiment."""
    upper = np.triu_indices(EXPERIMENTS, 1)
    rows = n @ blocks
    total = blocks.T @ rows
    planned = np.outer(shares, shares)

    def summed(cells: Floats) -> Floats:
        found: Floats = (blocks.T @ cells @ blocks)[upper]
        return found

    def marginal(weight: float) -> Floats:
        prior = weight * planned
        of_all = gammaln(weight) - gammaln(weight + total[upper])
        return summed(gammaln(prior + n) - gammaln(prior)) + of_all

    logs = np.stack([marginal(weight) for weight in pairs.WEIGHTS])
    mean = logs.max(axis=0) + np.log(np.exp(logs - logs.max(axis=0)).mean(axis=0))
    of_rows = xlogy(rows, rows).T @ blocks
    independent = (of_rows + of_rows.T - 2 * xlogy(total, total))[upper]
    planned_log = marginal(srm.CONCENTRATION) - summed(n * np.log(planned))
    own = rows @ blocks.T
    expected = own * own.T / np.maximum(1, blocks @ total @ blocks.T)
    squares = (n - expected) ** 2 / np.where(expected > 0, expected, 1)
    used = blocks.T @ (rows > 0)
    df = ((used - 1) * (used.T - 1))[upper]
    at = np.flatnonzero(np.diff(np.r_[-1, blocks.argmax(axis=1)]))
    least = np.minimum.reduceat(np.minimum.reduceat(expected, at, axis=0), at, axis=1)[upper]
    return Looks(
        np.exp(np.minimum(0, independent - mean)),
        np.exp(np.minimum(0, -planned_log)),
        np.where(df > 0, chi2.sf(summed(squares), np.maximum(1, df)), 1.0),
        least,
    )


def alarms_of(traffic: Traffic, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Which pairs are ever called dependent, by each method."""
    dice = np.random.default_rng(seed)
    day, arm = traffic.days(dice)
    planned = traffic.arms()
    counts = [len(shares) for shares in planned]
    blocks = np.repeat(np.eye(EXPERIMENTS), counts, axis=0)
    shares = np.concatenate(planned)
    n = np.zeros((len(shares), len(shares)))
    ever: dict[str, NDArray[np.bool_]] = {}
    for today in range(DAYS):
        hot = one_hot(arm[day == today], counts)
        n += hot.T @ hot
        found = look(n, blocks, shares)
        is_asked = found.least >= srm.MIN_EXPECTED
        calls = {
            "ours at 5 %": found.ours <= 0.05,
            "ours": found.ours <= OF_ALL,
            "planned": found.planned <= OF_ALL,
            "Pearson at 5 %": found.pearson <= 0.05,
            "Pearson": found.pearson <= OF_ALL,
            "Pearson, small": (found.pearson <= PEARSON / len(PAIRS)) & is_asked,
        }
        for name, its in calls.items():
            ever[name] = ever.get(name, False) | its
    agree(n, planned, found)
    return ever


def agree(n: Floats, planned: list[tuple[float, ...]], found: Looks) -> None:
    """Arrays are right: some pairs of the last day by the function itself."""
    start = np.concatenate([[0], np.cumsum([len(shares) for shares in planned])])
    for k in range(0, len(PAIRS), 250):
        a, b = PAIRS[k]
        first, second = ({str(i): s for i, s in enumerate(planned[e])} for e in (a, b))
        users = {
            (i, j): int(n[start[a] + int(i), start[b] + int(j)]) for i in first for j in second
        }
        p_value = pairs.any_look(pairs.CrossTable(users, first, second))
        assert np.isclose(p_value, found.ours[k], rtol=1e-6), (p_value, found.ours[k])


TRAFFIC = [
    Traffic("all users in all, 50 : 50", 20_000),
    Traffic("unequal arms and 3 to 5 arms, few users in both", 2_000, UNEQUAL, 0.1),
    Traffic("the same, 20,000, bots, arms that show others", 20_000, UNEQUAL, 0.1, True, bots=True),
    Traffic("the same, and 10 % of an arm's users lost", 20_000, UNEQUAL, 0.1, True, 0.1, True),
]
TRUE = [
    Traffic("5 % of users in the first arm of all", 20_000, fallback=0.05),
    Traffic("all splits change on the same day", 20_000, ramps=True),
]


def false_alarms(runs: int) -> None:
    """Pairs, and worlds with any, that are ever called dependent."""
    rows = []
    for traffic in TRAFFIC + TRUE:
        worlds = [alarms_of(traffic, seed) for seed in range(runs)]
        pairs_of = {name: sum(int(w[name].sum()) for w in worlds) for name in worlds[0]}
        any_of = {name: sum(bool(w[name].any()) for w in worlds) for name in worlds[0]}
        count = runs * len(PAIRS)
        if traffic in TRAFFIC:
            hold(f"pairs, {traffic.name}", pairs_of["ours at 5 %"], count, 0.05)
            hold(f"worlds, {traffic.name}", any_of["ours"], runs, pairs.ALPHA)
        rows.append(
            (
                traffic.name,
                f"{pairs_of['ours at 5 %'] / count:.2%}",
                f"{pairs_of['Pearson at 5 %'] / count:.1%}",
                *(
                    f"{any_of[name]} ({pairs_of[name]:,})"
                    for name in ("ours", "planned", "Pearson", "Pearson, small")
                ),
            )
        )
    table(
        f"{runs} times 100 experiments, {DAYS} daily looks: pairs ever below 5 %, and how many "
        f"times any pair is called dependent (pairs, of {runs * len(PAIRS):,}); the last two are "
        "dependent",
        (
            *("traffic", "pairs below 5 %", "Pearson, every look", "called, alpha 0.1 % over all"),
            *("against the planned shares", "Pearson, the same alpha", "Pearson, 1e-6 over all"),
        ),
        rows,
    )


# 2. Dependence that is found ----------------------------------------------------------------------

DEPENDENT: dict[str, tuple[tuple[float, ...], tuple[float, ...], Floats]] = {
    "one hash": (HALVES, HALVES, np.array([[0.5, 0.0], [0.0, 0.5]])),
    "half of the users": (HALVES, HALVES, np.array([[0.375, 0.125], [0.125, 0.375]])),
    "55 : 45": (HALVES, HALVES, np.array([[0.275, 0.225], [0.225, 0.275]])),
    "51 : 49": (HALVES, HALVES, np.array([[0.255, 0.245], [0.245, 0.255]])),
    "55 : 45, of 60 : 40 who are in both": (
        *(HALVES, HALVES),
        np.array([[0.55 * 0.4, 0.45 * 0.4], [0.45 * 0.6, 0.55 * 0.6]]),
    ),
    "one hash, 99 : 1": ((0.99, 0.01), (0.99, 0.01), np.diag([0.99, 0.01])),
    "one hash, five arms": ((0.2,) * 5, (0.2,) * 5, np.eye(5) / 5),
}


def found_after(dice: np.random.Generator, case: str, grid: Ints) -> tuple[float, float]:
    """Users by which one pair of 4,950 is called dependent, and by Pearson's test."""
    first, second, cells = DEPENDENT[case]
    planned = [{str(i): s for i, s in enumerate(its)} for its in (first, second)]
    names = [(i, j) for i in planned[0] for j in planned[1]]
    steps = [dice.multinomial(more, cells.ravel()) for more in np.diff(grid, prepend=0)]
    counts = np.cumsum(steps, axis=0)
    ours = fixed = float("inf")
    for n, its in zip(grid.tolist(), counts, strict=True):
        users = dict(zip(names, its.tolist(), strict=True))
        one = pairs.CrossTable(users, *planned)
        if ours == float("inf") and pairs.any_look(one) <= OF_ALL:
            ours = n
        if fixed == float("inf"):
            v = pairs.cramers_v(one)
            df = (len(first) - 1) * (len(second) - 1)
            x2 = 0.0 if v is None else n * v * v * (min(len(first), len(second)) - 1)
            expected = np.outer(its.reshape(cells.shape).sum(1), its.reshape(cells.shape).sum(0))
            is_asked = expected.min() / n >= srm.MIN_EXPECTED
            if is_asked and chi2.sf(x2, df) <= PEARSON / len(PAIRS):
                fixed = n
        if max(ours, fixed) < float("inf"):
            break
    return ours, fixed


def power(runs: int) -> None:
    """Users by which half of the pairs are called dependent."""
    grid = np.unique(np.geomspace(10, 1_000_000, 250).astype(np.int64))
    rows = []
    for case in DEPENDENT:
        dice = np.random.default_rng(2)
        found = np.array([found_after(dice, case, grid) for _ in range(runs)])
        half, most = np.median(found, axis=0), np.quantile(found, 0.9, axis=0)
        cells = DEPENDENT[case][2]
        names = [[str(i) for i in range(len(cells))], [str(j) for j in range(len(cells))]]
        big = {(i, j): round(1e6 * cells[int(i), int(j)]) for i in names[0] for j in names[1]}
        v = pairs.cramers_v(pairs.CrossTable(big, *(dict.fromkeys(n, 0.0) for n in names)))
        rows.append((case, f"{v:.2f}", *(f"{u:,.0f}" for u in (half[0], most[0], half[1]))))
    table(
        f"One dependent pair of 4,950, {runs} times each: users in both by which it is called",
        ("dependence", "Cramér's V", "half", "nine of ten", "Pearson below 1e-6 / 4,950: half"),
        rows,
    )


# 3. Interaction -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Behaviour:
    """A metric of users of a hundred experiments, each of which multiplies it by what is up to
    ``lift`` more or less in its last arm; no two interact.

    ``metric``: clicks of impressions (ratio), who converts, or log-normal values of one user in
    ten (``buyers``), σ = 1.5. ``crawler``: so many impressions of one user who never clicks.
    """

    name: str
    users: int
    metric: str
    lift: float = 0.2
    splits: tuple[tuple[float, ...], ...] = (HALVES,)
    crawler: int = 0
    seen: float = 1.0
    buyers: float = 0.1

    def values(self, dice: np.random.Generator, factor: Floats) -> tuple[Floats, Floats]:
        """Numerator and denominator of each user."""
        count = len(factor)
        factor = factor / factor.mean()
        if self.metric == "ratio":
            y = dice.poisson(19, count) + 1
            x = dice.binomial(y, np.minimum(1, dice.beta(0.5, 9.5, count) * factor))
            if self.crawler:
                y[0], x[0] = self.crawler, 0
            return capped(x, y)
        buys = dice.random(count) < np.minimum(1, self.buyers * factor)
        worth = np.rint(dice.lognormal(5, 1.5, count)) if self.metric == "value" else 1.0
        return buys * worth, np.ones(count)

    def crossings(self, seed: int) -> dict[tuple[int, int], Crossing]:
        """All pairs of a hundred experiments."""
        dice = np.random.default_rng(seed)
        planned = Traffic(self.name, self.users, self.splits, self.seen)
        _, arm = planned.days(dice)
        shares = planned.arms()
        counts = [len(its) for its in shares]
        lifts = dice.uniform(-self.lift, self.lift, EXPERIMENTS)
        last = np.array(counts) - 1
        x, y = self.values(dice, np.prod(np.where(arm == last, 1 + lifts, 1.0), axis=1))
        hot = one_hot(arm, counts)
        moments = [
            hot.T @ (hot * by[:, None]) for by in (y * 0 + 1, x, x * x, y, y * y, x * y, x > 0)
        ]
        start = np.concatenate([[0], np.cumsum(counts)])

        def sums(i: int, j: int) -> ArmSums:
            return ArmSums(*(int(each[i, j]) for each in moments))

        found = {}
        for a, b in PAIRS:
            plan = Plan("0", {str(i): s for i, s in enumerate(shares[a])})
            found[a, b] = Crossing(
                plan,
                {
                    str(j): {
                        name: sums(start[a] + i, start[b] + j) for i, name in enumerate(plan.split)
                    }
                    for j in range(counts[b])
                },
            )
        return found


def capped(x: Ints, y: Ints) -> tuple[Floats, Floats]:
    """Users beyond the cap count with less weight, as readers fold them (caps.py); in thousandths,
    for sums are whole numbers."""
    cap, edges = Denominator(DEFAULT_RATIO_CAP), np.array(DENOMINATOR_EDGES, np.float64)
    at = np.searchsorted(edges, y)
    last = cap.bucket(dict(enumerate(np.bincount(at).tolist())))
    weight = 1000 * np.minimum(1, edges[last] / edges[np.minimum(at, len(edges) - 1)])
    return np.rint(x * weight), np.rint(y * weight)


SPLITS = (HALVES, (0.9, 0.1), (1 / 3,) * 3)
BEHAVIOURS = [
    Behaviour("click-through rate, 50 : 50", 20_000, "ratio"),
    Behaviour("the same, a crawler of 20,000 impressions", 20_000, "ratio", crawler=20_000),
    Behaviour("conversion of 10 %, 500 users", 500, "share"),
    Behaviour("conversion of 10 %", 20_000, "share"),
    Behaviour("conversion of 1 %", 20_000, "share", buyers=0.01),
    Behaviour("values, log-normal, σ = 1.5, 2,000 users", 2_000, "value"),
    Behaviour("values, log-normal, σ = 1.5", 20_000, "value"),
    Behaviour("the same, 50 : 50, 90 : 10, three arms", 20_000, "value", splits=SPLITS),
    Behaviour(
        "conversion, the same splits, 30 to 100 % in each", 20_000, "share", 0.2, SPLITS, 0, 0.3
    ),
]


def level(runs: int) -> None:
    """How often lifts are said to differ though no two experiments interact."""
    rows = []
    for behaviour in BEHAVIOURS:
        p_values, claimed, tests, asked, relative = [], 0, 0, 0, 0
        for seed in range(runs):
            found = interactions(behaviour.crossings(seed), 0.05)
            its = [each for those in found.values() for each in those]
            claimed += any(each.differs for each in its)
            tests += len(its)
            known = [each.test for each in its if each.test.p_value is not None]
            asked += len(known)
            relative += sum(test.scale == "relative" for test in known)
            p_values += [test.p_value for test in known]
        p = np.array(p_values)
        shares = (f"{(p <= a).sum() / max(1, len(p)):.3%}" for a in (0.05, 1e-3, 1e-4, 1e-5))
        rows.append(
            (
                *(behaviour.name, f"{tests:,}", f"{asked / tests:.0%}"),
                f"{relative / max(1, asked):.0%}",
                *shares,
                f"{claimed} of {runs}",
            )
        )
    table(
        f"{runs} times 100 experiments of which each has a lift of up to ±20 % and none interact: "
        "tests with p below, and times that any lift is said to differ at 5 %",
        (
            *("metric", "tests", "compared", "relative", "5 %", "0.1 %", "0.01 %", "0.001 %"),
            "any said to differ",
        ),
        rows,
    )


def opposite(runs: int) -> None:
    """How often +10 % in one arm and -10 % in the other is found, alone and among all pairs."""
    rows = []
    plan = Plan("0", {"0": 1, "1": 1})
    for metric in ("ratio", "share", "value"):
        for users in (10_000, 40_000, 160_000):
            dice = np.random.default_rng(5)
            alone = among = 0
            for _ in range(runs):
                first, second = dice.integers(2, size=users), dice.integers(2, size=users)
                factor = 1 + 0.1 * first * np.where(second == 1, 1, -1)
                x, y = Behaviour("", users, metric).values(dice, factor)
                cells = {
                    str(j): {
                        str(i): arm_sums(x[where], y[where])
                        for i in range(2)
                        if (where := (first == i) & (second == j)).any()
                    }
                    for j in range(2)
                }
                for alpha in (0.05, 0.05 / len(PAIRS)):
                    (its,) = interactions({0: Crossing(plan, cells)}, alpha)[0]
                    alone, among = (
                        alone + (its.differs and alpha == 0.05),
                        among + (its.differs and alpha < 0.05),
                    )
            rows.append((metric, f"{users:,}", rate(alone, runs), rate(among, runs)))
    table(
        f"Lifts of +10 and -10 %, {runs} times each: said to differ",
        ("metric", "users in both", "one pair, 5 %", "among 4,950 pairs, 5 %"),
        rows,
    )


def arm_sums(x: Floats, y: Floats) -> ArmSums:
    """The sums of the users of a cell."""
    products = (len(x), x.sum(), x @ x, y.sum(), y @ y, x @ y, (x > 0).sum())
    return ArmSums(*(int(each) for each in products))


# 4. Holdout ---------------------------------------------------------------------------------------


def holdout(runs: int) -> None:
    """An experiment whose control is 5 % of the users, with crawlers."""
    rows = []
    for crawlers in (0, 1, 10):
        found = measured(World(20_000, 0.95, crawlers), runs)
        hold(f"holdout, {crawlers} crawlers", found.claims, runs, 0.05)
        shares = (f"{v:.1%}" for v in (found.claimed, found.covered, found.shown))
        rows.append((crawlers, *shares))
    table(
        f"Holdout of 5 % of 20,000 users, no difference, 14 daily looks, {runs} times each",
        ("crawlers with 57 % of impressions", "false", "covers", "interval on the last day"),
        rows,
    )


def main(runs: int) -> None:
    """Print all tables."""
    parts = ((false_alarms, runs), (power, 5 * runs), (level, runs // 5), (opposite, 10 * runs))
    for part, its in (*parts, (holdout, 4 * runs)):
        begun = time.perf_counter()
        part(max(2, its))
        print(f"\n{part.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument(
        "--runs", type=int, default=15, help="hundreds of experiments of each kind"
    )
    main(options.parse_args().runs)
