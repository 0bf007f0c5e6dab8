"""A hundred experiments at once: how many of what is shipped is false, by simulation.

    python -m benchmarks.studies.experiment_discoveries               some minutes of one core
    python -m benchmarks.studies.experiment_discoveries --runs 40     the same, coarser

Each portfolio has a hundred experiments of one treatment, and a look at the end of each of 28 days.
Users come on one day each. All looks are computed at once, by formulas written out here, of which
some are held against streamer.stats.experiments; those with a crawler go through the product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import erfc, log

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.experiment_crawlers import CTR, EDGES, HELD, arm_of
from benchmarks.studies.rates import hold, table
from streamer.settings.experiments import DEFAULT_RATIO_CAP
from streamer.stats.experiments import discoveries, support
from streamer.stats.experiments.caps import Denominator
from streamer.stats.experiments.converters import PRIORS, SHARE_OF_ALPHA
from streamer.stats.experiments.discoveries import EXACT_WEIGHT, Candidate
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import compare
from streamer.stats.experiments.recommendation import Action, Decision, Judged, recommend
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
DAYS, MIN_DAYS, EXPERIMENTS, PLANTED, FEWER, BATCH = 28, 7, 100, 10, 2, 20
LARGE = 1e300
RATES = (0.05, 0.1)
erfcs = np.vectorize(erfc, otypes=[float])


@dataclass(frozen=True)
class Kind:
    """Experiments on users of their own: ``a_day`` users of treatment and control, the share of
    buyers, the spread of the logarithm of what they are worth, and the lift of planted effects in
    the share of buyers."""

    name: str
    a_day: tuple[int, int]
    buyers: float
    lift: float
    sigma: float = 0.0

    @property
    def plan(self) -> Plan:
        return Plan("A", {"A": self.a_day[1], "B": self.a_day[0]})

    @property
    def rule(self) -> Rule:
        return Rule(can_be_negative=False, is_amount=self.sigma > 0)


CLEAN = Kind("10 % buy, 50 : 50", (400, 400), 0.1, 0.17)
FEW = Kind("1 % buy, 50 : 50", (1000, 1000), 0.01, 0.4)
UNEVEN = Kind("10 % buy, 10 : 90", (200, 1800), 0.1, 0.18)
WORTH = Kind("value, 2 % buy, log-normal 1.5, 50 : 50", (1000, 1000), 0.02, 0.8, 1.5)
EXACT = Kind("value, 2 % buy, log-normal 1.5, 10 : 90", (500, 4500), 0.02, 0.3, 1.5)
"""No interval until the last day: the exact test decides."""
SHARED_LIFT = 0.12


@dataclass(frozen=True)
class Arm:
    """Sums over users by (portfolio, experiment, day); ``n`` perhaps by day alone."""

    n: Floats
    x: Floats
    xx: Floats
    nonzero: Floats

    @property
    def mean(self) -> Floats:
        return self.x / self.n

    @property
    def variance(self) -> Floats:
        """Of the mean."""
        return (self.xx / self.n - self.mean**2) / (self.n - 1)

    def sums(self, *at: int) -> ArmSums:
        """As the engine would have them, in thousandths."""
        n = int(np.broadcast_to(self.n, self.x.shape)[at])
        x, xx = int(self.x[at] * 1000), int(self.xx[at] * 10**6)
        return ArmSums(n, x, xx, n, n, x, int(self.nonzero[at]), x_scale=1e-3)


@dataclass(frozen=True)
class Looks:
    """By (portfolio, experiment, day): the evidence at any time, and of a single look; whether the
    product would ship at that look, and whether it would if this were the one at the end."""

    evidence: Floats
    single: Floats
    ships: Bools
    ships_at_end: Bools

    @staticmethod
    def joined(parts: Sequence[Looks], axis: int) -> Looks:
        names = ("evidence", "single", "ships", "ships_at_end")
        columns = ([getattr(part, name) for part in parts] for name in names)
        return Looks(*(np.concatenate(column, axis=axis) for column in columns))


# What is simulated -------------------------------------------------------------------------------


def drawn(dice: np.random.Generator, kind: Kind, a_day: int, more: Floats) -> Arm:
    """One arm of BATCH portfolios; ``more`` multiplies the buyers, by experiment."""
    shape = BATCH, len(more), DAYS
    n = a_day * np.arange(1.0, DAYS + 1)
    buyers = dice.binomial(a_day, (kind.buyers * more)[None, :, None], shape)
    nonzero = buyers.cumsum(axis=2).astype(float)
    if not kind.sigma:
        return Arm(n, nonzero, nonzero, nonzero)
    worth = dice.lognormal(3, kind.sigma, int(buyers.sum()))
    where = np.repeat(np.arange(buyers.size), buyers.ravel())
    x, xx = (
        np.bincount(where, its, buyers.size).reshape(shape).cumsum(axis=2)
        for its in (worth, worth**2)
    )
    return Arm(n, x, xx, nonzero)


def log_gammas(start: float, most: int) -> Floats:
    """ln Γ(start + k) - ln Γ(start), for k up to ``most``."""
    return np.concatenate([[0.0], np.cumsum(np.log(start + np.arange(most)))])


def log_bayes_factors(t: Floats, c: Floats, q: float) -> Floats:
    """The exact test of who has any value (converters.py)."""
    first, second = t.astype(np.int64), c.astype(np.int64)
    most = int((first + second).max())
    logs = []
    for width in PRIORS:
        a = width / min(q, 1 - q)
        parts = [log_gammas(start, most) for start in (a * q, a * (1 - q), a)]
        logs.append(parts[0][first] + parts[1][second] - parts[2][first + second])
    mean = np.logaddexp.reduce(logs) - log(len(logs))
    found: Floats = mean - first * log(q) - second * log(1 - q)
    return found


def looked(kind: Kind, t: Arm, c: Arm) -> Looks:
    """The formulas of streamer.stats.experiments, over arrays."""
    plan = kind.plan
    users, smaller = t.n + c.n, np.minimum(t.n, c.n)
    stderr = np.sqrt(t.variance + c.variance)
    lift = t.mean - c.mean
    gamma2 = users * (t.xx + c.xx) / (t.x + c.x) ** 2
    skewness = np.sqrt(gamma2 * (t.n - c.n) ** 2 / (t.n * c.n * users))
    has_fixed = (stderr > 0) & ((t.n == c.n) | (skewness <= support.MAX_SKEWNESS))
    nonzero = (t.nonzero + c.nonzero) / users * smaller
    has_interval = has_fixed & (nonzero >= support.ANYTIME_NONZERO) & (smaller >= 100)
    score = np.where(stderr > 0, lift / stderr, 0.0)
    z = users * plan.rho2
    logs = z / (1 + z) * score**2 / 2 - np.log1p(z) / 2
    above = np.exp(logs) * erfcs(-score * np.sqrt(z / (1 + z) / 2))
    exact = log_bayes_factors(t.nonzero, c.nonzero, plan.shares["B"])
    rises = t.nonzero * plan.shares["A"] > c.nonzero * plan.shares["B"]
    rises &= (lift > 0) | (kind.sigma == 0)
    by_exact = EXACT_WEIGHT * np.exp(exact) * (rises & (exact > 0))
    is_exact = rises & (exact >= -log(SHARE_OF_ALPHA * plan.alpha))
    p = erfcs(score / np.sqrt(2)) / 2  # of a gain
    is_late = np.arange(1, DAYS + 1) >= MIN_DAYS
    return Looks(
        np.where(has_interval, (1 - EXACT_WEIGHT) * above, by_exact),
        np.where(has_fixed, (1 - EXACT_WEIGHT) / np.maximum(p, 1 / LARGE), by_exact),
        np.where(has_interval, (score > 0) & (logs >= -log(plan.alpha)), is_exact) & is_late,
        np.where(has_fixed, p <= plan.alpha / 2, is_exact) & is_late,
    )


def own_users(kind: Kind) -> Callable[[np.random.Generator, int, int], Looks]:
    """So many experiments of a kind, of which the first have the effect, in BATCH portfolios."""

    def of(dice: np.random.Generator, count: int, planted: int) -> Looks:
        more = np.where(np.arange(count) < planted, 1 + kind.lift, 1.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = drawn(dice, kind, kind.a_day[0], more)
            c = drawn(dice, kind, kind.a_day[1], np.ones(count))
            found = looked(kind, t, c)
        agrees(kind, t, c, found)
        return found

    return of


def agrees(kind: Kind, t: Arm, c: Arm, found: Looks) -> None:
    """Fail if the product says something else of some looks."""
    for at in ((0, 0, 2), (0, 1, 6), (1, 0, 13), (2, 1, 20), (3, 0, DAYS - 1), (4, -1, DAYS - 1)):
        arms = {"A": c.sums(*at), "B": t.sums(*at)}
        (theirs,) = product([arms], kind.plan, kind.rule, first_day=at[2] + 1)
        if theirs is None:
            continue
        evidence, single, ships, ships_at_end = theirs
        assert np.isclose(evidence, found.evidence[at], rtol=2e-2), (theirs, at)
        t_and_z = np.log1p((single, found.single[at]))
        assert np.isclose(t_and_z[0], t_and_z[1], rtol=2e-2, atol=2e-2), (theirs, at)
        assert ships == found.ships[at], (theirs, at)
        assert ships_at_end == found.ships_at_end[at], (theirs, at)


def product(
    looks: Sequence[dict[str, ArmSums]], plan: Plan, rule: Rule, first_day: int = 1
) -> Iterator[tuple[float, float, bool, bool] | None]:
    """What Looks has, by the product, day by day; None where the split is wrong."""
    final = replace(plan, at_end=True, is_over=True)
    for day, arms in enumerate(looks, first_day):
        row: list[float] = []
        ships: list[bool] = []
        for each in (plan, final):
            found = compare(each, rule, arms)
            if found.split.is_wrong:
                break
            row.append(discoveries.evidence(each, rule, found.comparisons[0]))
            judged = Judged("primary", rule, found)
            advice = recommend(Decision(each, judged, [], days=day, min_days=MIN_DAYS))
            ships.append(advice.action is Action.SHIP)
            assert ships[-1] <= (found.comparisons[0].verdict.outcome is Outcome.BETTER)
        yield (row[0], row[1], ships[0], ships[1]) if len(ships) == 2 else None


def shared_users(size: int) -> Callable[[np.random.Generator, int, int], Looks]:
    """All experiments on the same users, each with its own assignment; with ``size`` above 1 so
    many without an effect have one assignment."""

    def of(dice: np.random.Generator, count: int, planted: int) -> Looks:
        a_day, group = sum(CLEAN.a_day), np.arange(count)
        group[planted:] = planted + (group[planted:] - planted) // size
        n, x = np.zeros((2, BATCH, count, DAYS)), np.zeros((2, BATCH, count, DAYS))
        for batch in range(BATCH):
            treated = dice.integers(0, 2, (DAYS, a_day, int(group[-1]) + 1), dtype=np.uint8)
            more = np.prod(1 + SHARED_LIFT * treated[:, :, :planted], axis=2)
            bought = dice.random((DAYS, a_day)) < CLEAN.buyers * more
            both = treated.sum(1, dtype=np.int64), (treated & bought[:, :, None]).sum(1)
            for sums, its in zip((n, x), both, strict=True):
                sums[0, batch] = its.T[group].cumsum(axis=1)
            n[1, batch] = a_day * np.arange(1, DAYS + 1) - n[0, batch]
            x[1, batch] = bought.sum(axis=1).cumsum() - x[0, batch]
        t, c = (Arm(n[i], x[i], x[i], x[i]) for i in (0, 1))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = looked(CLEAN, t, c)
        agrees(CLEAN, t, c, found)
        return found

    return of


CRAWLED, CRAWLED_LIFT = 6000, 0.16
CRAWLED_PLAN, CRAWLED_RULE = Plan("A", {"A": 1, "B": 1}), Rule(can_be_negative=False)


def crawled(dice: np.random.Generator, lift: float) -> list[dict[str, ArmSums]]:
    """The click-through rate of users of whom one is a crawler with most of the impressions."""
    activity = dice.gamma(2.0, 10.0, CRAWLED)
    is_treated = dice.random(CRAWLED) < 0.5
    rate = np.clip(CTR * dice.beta(2, 8, CRAWLED) / 0.2 * (1 + lift * is_treated), 0, 1)
    first = dice.integers(0, DAYS, CRAWLED)
    activity[0], rate[0], first[0] = activity.sum() * HELD / (1 - HELD), 0.0, 0
    x, y = np.zeros(CRAWLED, np.int64), np.zeros(CRAWLED, np.int64)
    cap, found = Denominator(DEFAULT_RATIO_CAP), []
    for day in range(DAYS):
        shown = dice.poisson(np.where(first <= day, activity / (DAYS - first), 0))
        x, y = x + dice.binomial(shown, rate), y + shown
        users = np.bincount(np.searchsorted(EDGES, y[y > 0]))
        last = cap.bucket(dict(enumerate(users.tolist())))
        sides = (("A", (y > 0) & ~is_treated), ("B", (y > 0) & is_treated))
        found.append({name: arm_of(x[which], y[which], cap, last) for name, which in sides})
    return found


def with_crawlers(dice: np.random.Generator, count: int, planted: int) -> Looks:
    rows = [
        [each or (0.0, 0.0, False, False) for each in product(looks, CRAWLED_PLAN, CRAWLED_RULE)]
        for _ in range(BATCH)
        for i in range(count)
        for looks in [crawled(dice, CRAWLED_LIFT if i < planted else 0.0)]
    ]
    its = np.array(rows, float).reshape(BATCH, count, DAYS, 4)
    return Looks(its[..., 0], its[..., 1], its[..., 2] > 0, its[..., 3] > 0)


MIXED = (
    (own_users(CLEAN), 40, 4),
    (own_users(FEW), 25, 3),
    (own_users(UNEVEN), 25, 2),
    (with_crawlers, 10, 1),
)


# What is shipped ---------------------------------------------------------------------------------


def e_bh(counted: Floats, q: float) -> Bools:
    """The discoveries of each row."""
    count = counted.shape[1]
    steps = count / np.arange(1, count + 1) / q
    passed = -np.sort(-counted, axis=1) >= steps
    most = np.where(passed.any(axis=1), count - passed[:, ::-1].argmax(axis=1), 0)
    least = np.where(most > 0, count / np.maximum(most, 1) / q, np.inf)
    made: Bools = counted >= least[:, None]
    return made


def by_module(counted: Floats, q: float) -> list[bool]:
    """The same of one row, by the product."""
    its = [Candidate(str(i), "B", value) for i, value in enumerate(counted.tolist())]
    return [each.is_made for each in discoveries.discoveries(its, q)]


NEVER = DAYS + 1


def first_ship(ships: Bools) -> NDArray[np.int64]:
    """The day of the first `ship` of each experiment."""
    return np.where(ships.any(axis=2), ships.argmax(axis=2) + 1, NEVER)


def day_by_day(evidence: Floats, ships: Bools, q: float) -> NDArray[np.int64]:
    """The day on which each becomes a discovery, from which on its evidence stays."""
    kept = np.zeros(evidence.shape[:2])
    day_of = np.full(evidence.shape[:2], NEVER)
    for day in range(DAYS):
        now = np.where(ships[:, :, day], evidence[:, :, day], 0.0)
        counted = np.where(day_of < NEVER, kept, now)
        made = e_bh(counted, q)
        if day == DAYS - 1:
            assert by_module(counted[0], q) == made[0].tolist()
        is_new = made & (day_of == NEVER)
        assert (made | (day_of == NEVER)).all()
        day_of[is_new], kept[is_new] = day + 1, counted[is_new]
    return day_of


def after_stopping(looks: Looks, q: float) -> NDArray[np.int64]:
    """Each stops at its first `ship`, and is compared with the others on the last day."""
    day = first_ship(looks.ships)
    at = np.minimum(day, DAYS) - 1
    then = np.take_along_axis(looks.evidence, at[:, :, None], axis=2)[:, :, 0]
    return np.where(e_bh(np.where(day < NEVER, then, 0.0), q), day, NEVER)


def at_end(looks: Looks, q: float) -> NDArray[np.int64]:
    """One look on the last day, and Benjamini and Hochberg."""
    counted = np.where(looks.ships_at_end[:, :, -1], looks.single[:, :, -1], 0.0)
    return np.where(e_bh(counted, q), DAYS, NEVER)


def half_at_end(looks: Looks, q: float) -> NDArray[np.int64]:
    """Every other experiment is decided by one look on the last day, in one list with the rest."""
    is_single = np.arange(looks.evidence.shape[1]) % 2 == 1
    now = np.where(is_single, looks.single[:, :, -1], looks.evidence[:, :, -1])
    ships = np.where(is_single, looks.ships_at_end[:, :, -1], looks.ships[:, :, -1])
    return np.where(e_bh(np.where(ships, now, 0.0), q), DAYS, NEVER)


def largest_so_far(looks: Looks, q: float) -> NDArray[np.int64]:
    """By the largest evidence up to each day: not a valid way."""
    counted = np.maximum.accumulate(np.where(looks.ships, looks.evidence, 0.0), axis=2)
    return day_by_day(counted, np.ones_like(looks.ships), q)


def alone(looks: Looks, _: float) -> NDArray[np.int64]:
    """As the product is: the first `ship` counts."""
    return first_ship(looks.ships)


def alone_at_end(looks: Looks, _: float) -> NDArray[np.int64]:
    """The same with one look on the last day."""
    return np.where(looks.ships_at_end[:, :, -1], DAYS, NEVER)


def at_every_look(looks: Looks, q: float) -> NDArray[np.int64]:
    return day_by_day(looks.evidence, looks.ships, q)


def by_single_looks(looks: Looks, q: float) -> NDArray[np.int64]:
    """Benjamini and Hochberg again every day: not a valid way."""
    return day_by_day(looks.single, looks.ships_at_end, q)


@dataclass(frozen=True)
class Way:
    """A way to decide all experiments of a portfolio; ``is_valid``: it promises the rate ``q``."""

    what: str
    decide: Callable[[Looks, float], NDArray[np.int64]]
    q: float
    is_valid: bool

    @property
    def name(self) -> str:
        return self.what if self.q == 1 else f"{self.what}, q = {self.q:.0%}"


WAYS = (
    Way("each for itself, first `ship`", alone, 1.0, is_valid=False),
    *(Way("at every look", at_every_look, q, is_valid=True) for q in RATES),
    *(Way("stopped at the first `ship`", after_stopping, q, is_valid=True) for q in RATES),
    *(Way("largest e-value so far", largest_so_far, q, is_valid=False) for q in RATES),
    Way("each for itself, one look at the end", alone_at_end, 1.0, is_valid=False),
    *(Way("one look at the end", at_end, q, is_valid=True) for q in RATES),
    *(Way("last day, half of them by one look", half_at_end, q, is_valid=True) for q in RATES),
    *(Way("p of one look at every look", by_single_looks, q, is_valid=False) for q in RATES),
)


def mean(values: Floats, digits: int = 1, *, is_share: bool = True) -> str:
    """With its standard error, over portfolios."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    if is_share:
        return f"{values.mean():.{digits}%} ± {error:.{digits}%}"
    return f"{values.mean():.2f} ± {error:.2f}"


def hold_mean(what: str, values: Floats, promised: float) -> None:
    """Fail if a mean is above what was promised by more than three standard errors."""
    error = max(float(values.std(ddof=1)), np.sqrt(promised * (1 - promised))) / np.sqrt(
        len(values)
    )
    if values.mean() > promised + 3 * error:
        raise AssertionError(f"{what}: {values.mean():.3%}, promised at most {promised:.2%}")


Parts = Sequence[tuple[Callable[[np.random.Generator, int, int], Looks], int, int]]


def portfolios(parts: Parts, runs: int, *, is_null: bool) -> tuple[Looks, Bools]:
    """Looks at many portfolios, and which of the experiments have no effect."""
    dice = np.random.default_rng(21)
    batches = [
        Looks.joined([of(dice, n, 0 if is_null else planted) for of, n, planted in parts], 1)
        for _ in range(runs // BATCH)
    ]
    nulls = [np.arange(n) >= (0 if is_null else planted) for _, n, planted in parts]
    return Looks.joined(batches, 0), np.concatenate(nulls)


def rows_of(name: str, parts: Parts, runs: int) -> Iterator[tuple[str, ...]]:
    """What each way ships, of portfolios without an effect and of those with some."""
    nothing, _ = portfolios(parts, runs, is_null=True)
    some, is_null = portfolios(parts, runs, is_null=False)
    largest = nothing.evidence.max(axis=2)
    if "alike" not in name:
        calibration[name] = largest.ravel()
    if parts is MIXED:
        calibration["those with a crawler"] = largest[:, -MIXED[-1][1] :].ravel()
    for way in WAYS:
        false = (way.decide(nothing, way.q) < NEVER).sum(axis=1).astype(float)
        days = way.decide(some, way.q)
        shipped = days < NEVER
        wrong = (shipped & is_null).sum(axis=1) / np.maximum(1, shipped.sum(axis=1))
        power = shipped[:, ~is_null].mean(axis=1)
        found = days[:, ~is_null]
        if way.is_valid:
            hold_mean(f"{name}, {way.name}, no effects", (false > 0).astype(float), way.q)
            hold_mean(f"{name}, {way.name}, some effects", wrong, way.q)
        yield (
            *(way.name, mean(false, is_share=False), mean((false > 0).astype(float))),
            *(mean(wrong), mean(power)),
            f"{np.median(found[found < NEVER]):.0f}" if power.any() else "",
        )


calibration: dict[str, Floats] = {}
"""The largest e-value at any look of experiments without an effect, by portfolio."""


def discovered(runs: int) -> None:
    """All portfolios; those with crawlers are fewer."""
    cases: dict[str, tuple[Parts, int]] = {
        **{
            f"100 of: {kind.name}": ([(own_users(kind), EXPERIMENTS, PLANTED)], runs)
            for kind in (CLEAN, FEW, UNEVEN, WORTH, EXACT)
        },
        f"the first, of which {FEWER} have an effect": (
            [(own_users(CLEAN), EXPERIMENTS, FEWER)],
            runs,
        ),
        "100 on the same users": ([(shared_users(1), EXPERIMENTS, PLANTED)], runs),
        "100 on the same users, ten without an effect assigned alike": (
            [(shared_users(10), EXPERIMENTS, PLANTED)],
            runs,
        ),
        "mixed: 40 of 50 : 50, 25 with few buyers, 25 of 10 : 90, 10 with a crawler": (
            MIXED,
            max(BATCH, runs // 10 // BATCH * BATCH),
        ),
    }
    for name, (parts, its) in cases.items():
        begun, effects = time.perf_counter(), sum(planted for *_, planted in parts)
        table(
            f"{name}; {its} portfolios of 100 experiments, {DAYS} daily looks",
            (
                *("way", "no effects: shipped of 100", "any shipped"),
                *(f"{effects} effects: false rate", "found", "median day"),
            ),
            list(rows_of(name, parts, its)),
        )
        print(f"\n{time.perf_counter() - begun:.0f} s", flush=True)
    calibrated()


def calibrated() -> None:
    """How often the e-value of an experiment without an effect is ever so large."""
    least = (20, 100, 1000)
    for name, its in calibration.items():
        for each in least:
            hold(f"{name}, {each}", int((its >= each).sum()), len(its), 1 / each)
    table(
        "Experiments without an effect: the e-value is ever that large (promised: 5, 1, 0.1 %)",
        ("experiments", "number", *(f"{each:,}" for each in least)),
        [
            (name, f"{len(its):,}", *(f"{(its >= each).mean():.3%}" for each in least))
            for name, its in calibration.items()
        ],
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=600, help="portfolios of each kind")
    discovered(options.parse_args().runs)
