"""Intervals and p-values of the lifts of all arms of one metric, corrected over the arms.

Holm's correction: several arms are compared with the control, and one of them will look good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from streamer.stats.distributions import t_quantile, t_two_sided
from streamer.stats.experiments import anytime
from streamer.stats.experiments.lift import Lift, Pair, contrast
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.relative import UNBOUNDED, relative


@dataclass(frozen=True, slots=True)
class Corrected:
    """An adjusted p-value, and the level that the arm's own interval must have.

    The interval at ``alpha`` excludes 0 exactly if ``p_value`` is at most the level of the family.
    """

    p_value: float
    alpha: float


def holm(p_values: Sequence[float], alpha: float) -> list[Corrected]:
    """Holm 1979, "A simple sequentially rejective multiple test procedure", over m p-values.

    In ascending order the adjusted one is the largest (m - j) p_j so far, j from 0. Arms that are
    rejected have the level α / (m - j) of their own step, all others that of the first step that
    rejects nothing. With valid p-values, no arm without a lift is rejected, but with probability α.

    >>> [(c.p_value, c.alpha) for c in holm([0.03, 0.01, 0.2], 0.06)]
    [(0.06, 0.03), (0.03, 0.02), (0.2, 0.06)]
    """
    m = len(p_values)
    found: dict[int, Corrected] = {}
    largest = 0.0
    stopped: float | None = None
    for j, i in enumerate(sorted(range(m), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (m - j) * p_values[i]))
        level = alpha / (m - j)
        if stopped is None and p_values[i] > level:
            stopped = level
        found[i] = Corrected(largest, level if stopped is None else stopped)
    return [found[i] for i in range(m)]


@dataclass(frozen=True, slots=True)
class Inference:
    """An interval of level 1 - ``alpha``, which is Holm's of that arm, and the p-value of no lift.

    The interval excludes 0 exactly if ``p_adjusted`` is at most the alpha of the plan.
    """

    low: float
    high: float
    p_value: float
    p_adjusted: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A lift; ``fixed`` holds at one look at a time set before, ``anytime`` at every look.

    What is not defined is None, and ``reason`` says why.
    """

    value: float | None
    stderr: float | None
    fixed: Inference | None
    anytime: Inference | None
    reason: str = ""

    def deciding(self, plan: Plan) -> Inference | None:
        """The interval that decides."""
        return self.fixed if plan.is_final else self.anytime


@dataclass(frozen=True, slots=True)
class Lifts:
    """The lift of one treatment in the unit of the metric, and relative to the control's value.

    Both are read off one test and have its p-values: where both have an interval, both exclude 0 or
    neither does.
    """

    absolute: Estimate
    relative: Estimate


@dataclass(frozen=True, slots=True)
class _Test:
    """The p-value of one contrast, and how many standard errors its interval has to both sides."""

    lift: Lift
    p_value: float
    critical: Callable[[float], float]


def estimates(plan: Plan, pairs: Sequence[Pair]) -> list[Lifts]:
    """Estimates of the lifts of all treatments."""
    lifts = [contrast(pair) for pair in pairs]
    tests = [
        [test(plan, pair, lift) for pair, lift in zip(pairs, lifts, strict=True)]
        for test in (_welch, _sequence)
    ]
    single, always = (_inferences(plan, those) for those in tests)
    return [
        Lifts(
            Estimate(lift.value, lift.stderr, f, a, _why_none(pair, lift)),
            _relative(pair, lift, zip(those, (f, a), strict=True)),
        )
        for pair, lift, *those, f, a in zip(pairs, lifts, *tests, single, always, strict=True)
    ]


def guardrails(
    plan: Plan, pairs: Sequence[Pair], weight: float, shift: float
) -> list[Inference | None]:
    """Intervals that decide (at any time, or at the end) of R_t - ``weight`` R_c + ``shift``,
    corrected over the treatments."""
    tests = []
    for pair in pairs:
        lift = contrast(pair, weight)
        moved = lift if lift.value is None else replace(lift, value=lift.value + shift)
        tests.append((_welch if plan.is_final else _sequence)(plan, pair, moved))
    return _inferences(plan, tests)


def _welch(plan: Plan, pair: Pair, lift: Lift) -> _Test | None:
    """Welch 1947: Student's t with the degrees of freedom of the lift."""
    if lift.t is None or lift.df is None or pair.no_interval:
        return None
    df = lift.df
    return _Test(lift, t_two_sided(lift.t, df), lambda alpha: t_quantile(alpha, df))


def _sequence(plan: Plan, pair: Pair, lift: Lift) -> _Test | None:
    """The confidence sequence (anytime.py)."""
    if lift.t is None or pair.no_interval or pair.no_anytime:
        return None
    p_value = anytime.p_value(lift.t, pair.users, plan.rho2)
    return _Test(lift, p_value, lambda alpha: anytime.critical(alpha, pair.users, plan.rho2))


def _inferences(plan: Plan, tests: Sequence[_Test | None]) -> list[Inference | None]:
    """Corrected over all arms. An arm without a test is one that shows nothing: p = 1."""
    corrected = holm([1.0 if test is None else test.p_value for test in tests], plan.alpha)
    found: list[Inference | None] = []
    for test, its in zip(tests, corrected, strict=True):
        ends = None if test is None else test.lift.interval(test.critical(its.alpha))
        if test is None or ends is None:
            found.append(None)
        else:
            found.append(Inference(*ends, test.p_value, its.p_value, its.alpha))
    return found


def _relative(
    pair: Pair, lift: Lift, single_and_always: Iterable[tuple[_Test | None, Inference | None]]
) -> Estimate:
    """Of the same tests at the same levels, by Fieller (relative.py)."""
    made = relative(pair, lift)
    if isinstance(made, str):
        return Estimate(None, None, None, None, made)
    stderr = None if lift.reason else made.stderr
    found: list[Inference | None] = []
    for test, inference in single_and_always:
        ends = None
        if test is not None and inference is not None and not pair.no_relative:
            ends = made.interval(test.critical(inference.alpha))
        if ends is not None:
            ends = max(pair.least, ends[0]), max(pair.least, ends[1])
        found.append(ends and inference and replace(inference, low=ends[0], high=ends[1]))
    single, always = found
    reason = "" if all(found) else _why_none(pair, lift) or pair.no_relative or UNBOUNDED
    return Estimate(made.value, stderr, single, always, reason)


def _why_none(pair: Pair, lift: Lift) -> str:
    if lift.value is None:
        return lift.reason
    return pair.no_interval or lift.reason or pair.no_anytime
