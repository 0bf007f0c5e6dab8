"""Intervals and p-values of the lifts of all arms of one metric, corrected over the arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamer.experiments import anytime
from streamer.experiments.correction import holm
from streamer.experiments.distributions import t_quantile, t_two_sided
from streamer.experiments.lift import Lift
from streamer.experiments.plan import Plan


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


@dataclass(frozen=True, slots=True)
class _Test:
    """The p-value of one lift, and how many standard errors its interval has to both sides."""

    lift: Lift
    p_value: float
    critical: Callable[[float], float]


def estimates(plan: Plan, lifts: Sequence[Lift], users: Sequence[int]) -> list[Estimate]:
    """Estimates of the lifts of all treatments, each with ``users`` in it and the control."""
    single = _inferences(plan, [_welch(lift) for lift in lifts])
    pairs = zip(lifts, users, strict=True)
    shown = [lift.shown for lift in lifts]
    always = _inferences(plan, [_sequence(lift, n, plan.rho2) for lift, n in pairs])
    return [
        Estimate(*values, f, a, lift.reason)
        for values, lift, f, a in zip(shown, lifts, single, always, strict=True)
    ]


def _welch(lift: Lift) -> _Test | None:
    """Welch 1947: Student's t with the degrees of freedom of the lift."""
    if lift.t is None or lift.df is None:
        return None
    df = lift.df
    return _Test(lift, t_two_sided(lift.t, df), lambda alpha: t_quantile(alpha, df))


def _sequence(lift: Lift, users: int, rho2: float) -> _Test | None:
    """The confidence sequence (anytime.py)."""
    if lift.t is None:
        return None
    p_value = anytime.p_value(lift.t, users, rho2)
    return _Test(lift, p_value, lambda alpha: anytime.critical(alpha, users, rho2))


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
