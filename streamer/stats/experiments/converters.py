"""Who has any of a metric, by arm: an exact test of rare outcomes that holds at every look.

Let K users of two arms have a value other than 0, k of them of the treatment. If the treatment
changes nothing for who has one, each of the K is of the treatment with the planned probability
q = s_t / (s_t + s_c), whatever the number of users is. This is the multinomial test of the split
(srm.py; Lindon and Malek 2022, arXiv 2011.03567) over those users alone, conditional on their
number: with a prior Beta(a q, a (1 - q)),

    BF(q) = B(a q + k, a (1 - q) + K - k) / B(a q, a (1 - q)) / (q^k (1 - q)^(K - k))

is a martingale with mean 1, and so is the mean of several of them: here of a = κ / min(q, 1 - q),
κ = 1, 10, 100, that is for changes of about 100, 30 and 10 % of the smaller arm. So 1 / BF is a
p-value at any number of looks, with no least number of users; and the q that are not rejected are a
confidence sequence, from which the relative change of the share of users with a value follows.

A dead checkout is found by a handful of buyers. The test has an alpha of its own, a fifth of the
experiment's (``SHARE_OF_ALPHA``), and is asked only where there is no interval at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log

from streamer.stats.experiments.estimate import holm
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.sums import ArmSums

SHARE_OF_ALPHA = 0.2
"""Part of the experiment's alpha that this test has, beside the intervals'."""
PRIORS = (1.0, 10.0, 100.0)
_STEPS = 60


@dataclass(frozen=True, slots=True)
class Converters:
    """Users with a value other than 0. ``low`` and ``high`` are the ends of the relative change of
    their share (``high`` None: no bound), at any time, at the level 1 - ``alpha``, which is Holm's;
    they exclude 0 exactly if ``p_adjusted`` is at most the alpha of the test."""

    treatment: int
    control: int
    low: float
    high: float | None
    p_value: float
    p_adjusted: float
    alpha: float
    log_bayes_factor: float = 0.0
    """Against the planned share."""


def converters(plan: Plan, arms: Sequence[tuple[str, ArmSums, ArmSums]]) -> list[Converters | None]:
    """For each treatment (name, its sums, the control's) who has any; of a metric that is not
    one per user only where nobody in the treatment has, else None.

    >>> plan = Plan("A", {"A": 1, "B": 1})
    >>> none, some = (ArmSums(10_000, y=10_000, yy=10_000, nonzero=n) for n in (0, 199))
    >>> (found,) = converters(plan, [("B", none, some)])
    >>> found.high < -0.9, found.p_value < 1e-40
    (True, True)
    """
    counts = [_counts(treatment, control) for _, treatment, control in arms]
    planned = [
        plan.shares[name] / (plan.shares[name] + plan.shares[plan.control]) for name, _, _ in arms
    ]
    against = [
        0.0 if both is None else _log_bayes_factor(both, q, q)
        for both, q in zip(counts, planned, strict=True)
    ]
    p_values = [min(1.0, exp(-each)) for each in against]
    corrected = holm(p_values, SHARE_OF_ALPHA * plan.alpha)
    found: list[Converters | None] = []
    for i, (both, q, its) in enumerate(zip(counts, planned, corrected, strict=True)):
        if both is None:
            found.append(None)
        else:
            ends = _interval(both, q, its.alpha)
            found.append(Converters(*both, *ends, p_values[i], its.p_value, its.alpha, against[i]))
    return found


def _counts(treatment: ArmSums, control: ArmSums) -> tuple[int, int] | None:
    is_per_user = treatment.is_per_user and control.is_per_user
    if not is_per_user and (treatment.nonzero or treatment.denominators):
        return None
    return max(0, treatment.nonzero), max(0, control.nonzero)


def _log_bayes_factor(counts: tuple[int, int], planned: float, q: float) -> float:
    """Of the mean of the priors around ``planned`` against ``q``."""
    logs = [_log_marginal(counts, planned, width) for width in PRIORS]
    most = max(logs)
    mean = most + log(sum(exp(each - most) for each in logs) / len(logs))
    return mean - counts[0] * log(q) - counts[1] * log(1 - q)


def _log_marginal(counts: tuple[int, int], planned: float, width: float) -> float:
    a = width / min(planned, 1 - planned)
    first, second = a * planned, a * (1 - planned)
    return (
        lgamma(first + counts[0])
        + lgamma(second + counts[1])
        - lgamma(a + sum(counts))
        - lgamma(first)
        - lgamma(second)
        + lgamma(a)
    )


def _interval(counts: tuple[int, int], planned: float, alpha: float) -> tuple[float, float | None]:
    """Ends of the relative change; BF is the least at the observed share, and grows to both
    sides."""
    tiny, total = 1e-12, sum(counts)
    if not total:
        return -1.0, None
    observed = min(1 - tiny, max(tiny, counts[0] / total))

    def excludes(q: float) -> bool:
        return _log_bayes_factor(counts, planned, q) >= -log(alpha)

    low = _end(tiny, observed, excludes)
    high = _end(1 - tiny, observed, excludes)
    odds = planned / (1 - planned)
    least = -1.0 if low <= tiny else low / (1 - low) / odds - 1
    return least, None if high >= 1 - tiny else high / (1 - high) / odds - 1


def _end(outer: float, inner: float, excludes: Callable[[float], bool]) -> float:
    """Where what is excluded ends, between ``outer`` and ``inner``."""
    if not excludes(outer):
        return outer
    for _ in range(_STEPS):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if excludes(middle) else (outer, middle)
    return outer
