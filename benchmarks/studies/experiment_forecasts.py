"""When experiments are decided, and when it was forecast on an early day, or planned from a log:
four kinds of traffic.

Users come, some of them again, and what they do on a day is drawn for each; the rest is done by
streamer.stats.experiments. Among experiments that are open on the day of the forecast, a share of
80 % should be found by the day that was forecast; of those that are planned likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.rates import rate, table
from streamer.stats.distributions import normal_quantile
from streamer.stats.experiments.anytime import p_value, rho_squared
from streamer.stats.experiments.duration import HalfTime, durations
from streamer.stats.experiments.forecast import Forecast, Growth, Precision, Sought
from streamer.stats.experiments.lift import Lift, Pair, contrast
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.sizing import Goal, anytime
from streamer.stats.experiments.sums import ArmSums

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PLAN = Plan("A", {"A": 1, "B": 1})
DAYS = 56


def once(dice: np.random.Generator, users: int) -> Bools:
    """Everybody comes on one day."""
    there: Bools = dice.integers(0, DAYS, users)[:, None] == np.arange(DAYS)
    return there


def new_and_returning(dice: np.random.Generator, users: int) -> Bools:
    """As many first come on each day, and then each with a probability of their own."""
    first, day = dice.integers(0, DAYS, users)[:, None], np.arange(DAYS)
    again = dice.random((users, DAYS)) < dice.beta(1, 3, users)[:, None]
    there: Bools = (day == first) | ((day > first) & again)
    return there


def all_within_six(dice: np.random.Generator, users: int) -> Bools:
    """All first come within six days, and are there on each day from then on."""
    return np.arange(DAYS) >= dice.integers(0, 6, users)[:, None]


def geometric(dice: np.random.Generator, users: int) -> Bools:
    """Each comes on any day with a probability of their own: fewer and fewer are new."""
    return dice.random((users, DAYS)) < dice.beta(0.5, 1.5, users)[:, None]


@dataclass(frozen=True)
class Traffic:
    """``users`` of each arm over all days, and the true relative lift. Clicks of ten impressions a
    day, or purchases by user (``is_per_user``), at 2 % a day."""

    name: str
    come: Callable[[np.random.Generator, int], Bools]
    users: int
    lift: float
    is_per_user: bool = False

    def arm(self, dice: np.random.Generator, more: float) -> list[ArmSums]:
        """The sums of an arm at the end of each day."""
        there = self.come(dice, self.users)
        if self.is_per_user:
            done = dice.random(there.shape) < 0.02 * more
            x = (there & done).cumsum(axis=1)
            y = there.cumsum(axis=1).astype(bool).astype(np.int64)
        else:
            likes = np.minimum(1.0, dice.beta(0.5, 9.5, self.users) * more)
            x = (there * dice.binomial(10, likes[:, None], there.shape)).cumsum(axis=1)
            y = 10 * there.cumsum(axis=1)
        n, nonzero = (y > 0).sum(0), (x > 0).sum(0)
        sums = [n, x.sum(0), (x * x).sum(0), y.sum(0), (y * y).sum(0), (x * y).sum(0), nonzero]
        return [ArmSums(*row) for row in np.stack(sums, axis=1).tolist()]


TRAFFIC = (
    Traffic("everybody is new", once, 56_000, 0.07),
    Traffic("new users daily, who return", new_and_returning, 18_000, 0.12),
    Traffic("all within six days, purchases of 2 % a day", all_within_six, 5000, 0.12, True),
    Traffic("the same users, geometric", geometric, 6000, 0.15),
)


def users_alone(growth: Growth, then: Precision, now: Precision) -> Forecast:
    """As if the information of one user were always the same."""
    information = (growth.users / growth.earlier_users) ** 0.5
    return Forecast(growth, Precision(now.stderr * information), Precision(now.stderr))


def precision(a: ArmSums, lift: Lift) -> Precision:
    """At one look."""
    assert lift.stderr is not None
    return Precision(lift.stderr, float(a.x / a.y))


def lifts_of(a: Sequence[ArmSums], b: Sequence[ArmSums]) -> list[Lift]:
    """At the end of each day."""
    return [contrast(Pair(ratio(t), ratio(c))) for t, c in zip(b, a, strict=True)]


def first_found(a: Sequence[ArmSums], b: Sequence[ArmSums], rho2: float) -> float:
    """The first day on which a lift is found, looking at any time; infinite where on none."""
    return min(
        (
            day
            for day, (lift, t, c) in enumerate(zip(lifts_of(a, b), b, a, strict=True), 1)
            if min(t.n, c.n) >= 100
            and t.nonzero + c.nonzero >= 200
            and lift.t is not None
            and lift.t > 0
            and p_value(lift.t, t.n + c.n, rho2) <= PLAN.alpha
        ),
        default=inf,
    )


def of_one(
    effect: float, a: Sequence[ArmSums], b: Sequence[ArmSums], today: int
) -> tuple[float, list[float]] | None:
    """The day a relative lift is found, and the days that are forecast: by Forecast, by the same as
    if the lift of today was not known, and by users alone. None where it is found before; infinite
    where it is not within DAYS, or not in sight."""
    lifts = lifts_of(a, b)
    users = [t.n + c.n for t, c in zip(b, a, strict=True)]
    day = first_found(a, b, PLAN.rho2)
    if day <= today:
        return None
    half = today // 2
    growth = Growth(half, users[half - 1], today, users[today - 1])
    then, now = (precision(a[at - 1], lifts[at - 1]) for at in (half, today))
    by = anytime(PLAN.alpha, PLAN.rho2)
    unseen = Sought(effect * (now.control or 0.0), users[today - 1], by, PLAN.power)
    waits = [
        Forecast(growth, then, now).days_until(replace(unseen, so_far=lifts[today - 1].value)),
        Forecast(growth, then, now).days_until(unseen),
        users_alone(growth, then, now).days_until(unseen),
    ]
    return day, [inf if wait is None else today + max(1, wait) for wait in waits]


def forecasts_of_days(runs: int) -> None:
    """The days forecast on day 7, on day 14, and those on which lifts are found."""
    rows = []
    for traffic in TRAFFIC:
        dice = np.random.default_rng(11)
        arms = [(traffic.arm(dice, 1.0), traffic.arm(dice, 1 + traffic.lift)) for _ in range(runs)]
        for today in (7, 14):
            made = [of_one(traffic.lift, *both, today) for both in arms]
            still = [each for each in made if each is not None]
            days = np.array([day for day, _ in still])
            ours, *others = (np.array([each[i] for _, each in still]) for i in range(3))
            cells = (f"{np.median(each):.0f}" for each in (ours, *others, days))
            shares = (_by_then(days, each) for each in (ours, others[0]))
            lost = days[np.isinf(ours)]
            found = f"{int(np.isfinite(lost).sum())} of {len(lost)}"
            rows.append((traffic.name, today, len(still), *cells, *shares, found))
    table(
        f"Days forecast of experiments that are open on a day, of {runs} each; found within {DAYS}",
        (
            *("users", "on day", "open", "median forecast", "the lift so far not known"),
            *("by users alone", "median found", "found by the forecast day"),
            *("by that without the lift so far", "found with no end in sight"),
        ),
        rows,
    )


def _by_then(days: Floats, forecast: Floats) -> str:
    """The share found by the day that was forecast, of those with one."""
    has_one = np.isfinite(forecast)
    found = days[has_one] <= np.minimum(forecast[has_one], DAYS)
    return rate(int(found.sum()), len(found)) if len(found) else ""


LOGGED = 7
"""Days of the log that is planned from."""


def days_of_plans(runs: int) -> None:
    """The days that ``streamer plan`` says from a log, and whether experiments on such users find
    the lift by then: at a single look, and looking daily at any time."""
    rows = []
    for traffic in TRAFFIC:
        dice = np.random.default_rng(12)
        found = {"fixed": 0, "anytime": 0}
        said: dict[str, list[int]] = {"fixed": [], "anytime": []}
        for _ in range(runs):
            log, a = traffic.arm(dice, 1.0), traffic.arm(dice, 1.0)
            b, half = traffic.arm(dice, 1 + traffic.lift), LOGGED // 2
            then, now = log[half - 1], log[LOGGED - 1]
            growth = Growth(half, 2 * then.n, LOGGED, 2 * now.n)
            plan = durations(now, HalfTime(growth, then), Goal(traffic.lift, PLAN.power))
            assert plan is not None
            if plan.fixed is not None and plan.fixed.days <= DAYS:
                said["fixed"].append(plan.fixed.days)
                lift = lifts_of(a, b)[plan.fixed.days - 1]
                is_found = lift.t is not None and lift.t > normal_quantile(PLAN.alpha / 2)
                found["fixed"] += is_found
            if plan.anytime is not None and plan.anytime.days <= DAYS:
                said["anytime"].append(plan.anytime.days)
                rho2 = rho_squared(PLAN.alpha, plan.anytime.users)
                found["anytime"] += first_found(a, b, rho2) <= plan.anytime.days
        cells = [
            (
                f"{np.median(said[look]):.0f}",
                rate(found[look], len(said[look])),
                runs - len(said[look]),
            )
            for look in ("fixed", "anytime")
        ]
        rows.append((traffic.name, *cells[0], *cells[1]))
    table(
        f"Days planned from the control's first {LOGGED}, of {runs} experiments each",
        (
            *("users", "single look: median day", "found on it", f"beyond {DAYS}"),
            *("at any time: median day", "found by it", f"beyond {DAYS}"),
        ),
        rows,
    )
