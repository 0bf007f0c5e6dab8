"""Lift of a treatment over the control, with its standard error by the delta method.

Everything that is said of two arms is read off linear contrasts of their values,

    L(w) = R_t - w R_c,    var L(w) = var(R_t) + w² var(R_c)

(arms are independent): w = 1 is the absolute lift, w = 1 - margin asks whether a loss is beyond the
margin, and the relative lift is the w - 1 for which L(w) may be 0 (relative.py). A sum of values is
far closer to normal than a quotient or a logarithm is, above all where few users convert.

Where the same users were seen before the experiment, their difference D = Q_t - Q_c has expectation
0, so that L(w) - θ D estimates the same for any θ (CUPED). The least variance has

    θ = cov(L(w), D) / var(D) = (cov(R_t, Q_t) + w cov(R_c, Q_c)) / var(D).

CUPED: the lift less what the users' time before the experiment explains.

Deng, Xu, Kohavi and Walker 2013, "Improving the sensitivity of online controlled experiments by
utilizing pre-experiment data" (WSDM; ratio metrics in its appendix B). Arms did not differ before,
so that the difference D = Q_t - Q_c of the users' metric then has expectation 0, and for any θ the
lift less θ D estimates the same. The least variance has

    θ = cov(lift, D) / var(D),    var(lift - θ D) = var(lift) - cov(lift, D)² / var(D),

with covariances of the ratios R and Q over users, by the delta method (ratio.py). Where y = v = 1
and both arms have as many users, this is the coefficient of the treatment in the regression on
treatment and u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt

from streamer.stats.experiments.ratio import ArmRatio, covariance
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.support import few_before


@dataclass(frozen=True, slots=True)
class Before:
    """Q of one arm's users in the time before, var(Q), and cov(R, Q)."""

    value: Fraction
    variance: float
    covariance: float


@dataclass(frozen=True, slots=True)
class Pair:
    """A treatment and the control, one unit of both worth ``scale``.

    ``before``, of the treatment and of the control, adjusts every contrast of the two.
    ``no_interval`` says why no interval may be given (of the absolute lift or any other),
    ``no_anytime`` why none that holds at every look may, ``no_relative`` why none of the relative
    lift may; empty where one may. ``least``: the least relative lift that there can be.
    """

    treatment: ArmRatio
    control: ArmRatio
    scale: float = 1.0
    before: tuple[Before, Before] | None = None
    no_interval: str = ""
    no_anytime: str = ""
    no_relative: str = ""
    least: float = -inf

    @property
    def users(self) -> int:
        """Users of both arms."""
        return self.treatment.users + self.control.users


@dataclass(frozen=True, slots=True)
class Lift:
    """A contrast in the unit of the metric.

    ``stderr`` and ``df`` (degrees of freedom), or all three, are None where they are not defined,
    and then ``reason`` says why.
    """

    value: float | None
    stderr: float | None
    df: float | None
    reason: str = ""

    @property
    def t(self) -> float | None:
        """The contrast in standard errors."""
        return None if self.value is None or self.stderr is None else self.value / self.stderr

    def interval(self, critical: float) -> tuple[float, float] | None:
        """What is within ``critical`` standard errors.

        >>> Lift(0.5, 0.25, 9.0).interval(3.0)
        (-0.25, 1.25)
        """
        if self.value is None or self.stderr is None:
            return None
        return self.value - critical * self.stderr, self.value + critical * self.stderr


def contrast(pair: Pair, weight: float = 1.0) -> Lift:
    """R_t - ``weight`` R_c, adjusted if the pair has a time before.

    >>> arms = ArmRatio(10, Fraction(3), 0.04), ArmRatio(10, Fraction(2), 0.05)
    >>> found = contrast(Pair(*arms))
    >>> found.value, round(found.stderr, 6), round(found.df, 2)
    (1.0, 0.3, 17.78)
    """
    arms = {"control": pair.control, "treatment": pair.treatment}
    for name, arm in arms.items():
        if arm.value is None:
            return Lift(None, None, None, f"{name}: {arm.reason}")
    assert pair.treatment.value is not None
    assert pair.control.value is not None
    exact = pair.treatment.value - Fraction(weight) * pair.control.value
    for name, arm in arms.items():
        if arm.variance is None:
            return Lift(float(exact) * pair.scale, None, None, f"{name}: {arm.reason}")
    theta = _theta(pair, weight)
    value = (float(exact) - theta * _difference_before(pair)) * pair.scale
    users = pair.treatment.users, pair.control.users
    return of_parts(value, _parts(pair, weight, theta), users)


def _theta(pair: Pair, weight: float) -> float:
    if pair.before is None:
        return 0.0
    treatment, control = pair.before
    together = treatment.covariance + weight * control.covariance
    return together / (treatment.variance + control.variance)


def _difference_before(pair: Pair) -> float:
    return float(pair.before[0].value - pair.before[1].value) if pair.before else 0.0


def _parts(pair: Pair, weight: float, theta: float) -> tuple[float, float]:
    """What both arms have in the variance of the contrast."""
    parts = [pair.treatment.variance or 0.0, weight**2 * (pair.control.variance or 0.0)]
    if pair.before is not None:
        for i, (before, steep) in enumerate(zip(pair.before, (1.0, weight), strict=True)):
            parts[i] += theta * (theta * before.variance - 2 * steep * before.covariance)
    return parts[0] * pair.scale**2, parts[1] * pair.scale**2


def of_parts(value: float, parts: tuple[float, float], users: tuple[int, int]) -> Lift:
    """A contrast from the parts p_t and p_c that both arms have in its variance.

    Degrees of freedom by Welch (1947) and Satterthwaite (1946):
    (p_t + p_c)² / (p_t² / (n_t - 1) + p_c² / (n_c - 1)).
    """
    variance = sum(parts)
    if not variance > 0:
        return Lift(value, None, None, "the standard error is 0")
    shares = [part / variance for part in parts]
    df = 1 / sum(share**2 / (n - 1) for share, n in zip(shares, users, strict=True))
    return Lift(value, sqrt(variance), df)


_LEAST_LEFT = 1e-9
"""Share of the variance below which what is left is rounding."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """The pair with its time before, and ``explained``, the share of the absolute lift's variance
    that this takes away.

    Where nothing could be adjusted it is the pair as it was, ``explained`` is None, and ``reason``
    says why.
    """

    pair: Pair
    explained: float | None
    reason: str = ""


def adjusted(pair: Pair, treatment: ArmSums, control: ArmSums) -> Adjusted:
    """``pair``, made of these sums, adjusted where they allow it."""
    raw = contrast(pair)
    if raw.stderr is None:
        return Adjusted(pair, None, raw.reason)
    if why := few_before(treatment) or few_before(control):
        return Adjusted(pair, None, why)
    before = _before(treatment), _before(control)
    if before[0] is None or before[1] is None:
        return Adjusted(pair, None, "an arm has no data from before the start")
    if not before[0].variance + before[1].variance > 0:
        return Adjusted(pair, None, "users did not differ before the start")
    found = replace(pair, before=(before[0], before[1]))
    stderr = contrast(found).stderr
    left = 0.0 if stderr is None else (stderr / raw.stderr) ** 2
    if left < _LEAST_LEFT:
        return Adjusted(pair, None, "behaviour before the start explains everything")
    return Adjusted(found, 1 - left)


def _before(sums: ArmSums) -> Before | None:
    then = sums.before
    if then is None or then.v <= 0:
        return None
    first, second = (sums.x, sums.y), (then.u, then.v)
    return Before(
        Fraction(then.u, then.v),
        covariance(sums.n, (then.uu, then.uv, then.uv, then.vv), second, second),
        covariance(sums.n, (then.xu, then.xv, then.yu, then.yv), first, second),
    )
