"""CUPED: the lift less what the users' time before the experiment explains.

Deng, Xu, Kohavi and Walker 2013, "Improving the sensitivity of online controlled experiments by
utilizing pre-experiment data" (WSDM; ratio metrics in its appendix B). Arms did not differ before,
so that the difference D = Q_t - Q_c of the users' metric then has expectation 0, and for any θ the
lift less θ D estimates the same. The least variance has

    θ = cov(lift, D) / var(D),    var(lift - θ D) = var(lift) - cov(lift, D)² / var(D),

with covariances of the ratios R and Q over users, by the delta method (ratio.py); the relative lift
is adjusted on its logarithmic scale. Where y = v = 1 and both arms have as many users, the absolute
one is the coefficient of the treatment in the regression on treatment and u.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streamer.experiments.lift import Contrast, Lift, Slopes, lift, of_parts
from streamer.experiments.ratio import Ratio, covariance, ratio
from streamer.experiments.sums import ArmSums

_LEAST_LEFT = 1e-9
"""Share of the variance below which what is left is rounding."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """The adjusted lift, and ``explained``, the share of the variance that went.

    Where nothing could be adjusted it is the lift as it was, ``explained`` is None, and ``reason``
    says why.
    """

    lift: Lift
    theta: float | None
    explained: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Before:
    """Q of one arm, var(Q), and cov(R, Q)."""

    value: Fraction
    variance: float
    covariance: float


def adjusted(contrast: Contrast, treatment: ArmSums, control: ArmSums) -> Adjusted:
    """The lift of two arms, adjusted where their sums allow it."""
    arms = ratio(treatment), ratio(control)
    raw = lift(contrast, *arms, treatment.scale)
    if raw.stderr is None:
        return Adjusted(raw, None, None, raw.reason)
    before = _before(treatment), _before(control)
    if before[0] is None or before[1] is None:
        return Adjusted(raw, None, None, "an arm has nothing from the time before")
    assert arms[0].value is not None
    assert arms[1].value is not None
    slopes = contrast(arms[0].value, arms[1].value, treatment.scale)
    assert isinstance(slopes, Slopes)
    return _adjust(raw, slopes, arms, (before[0], before[1]))


def _before(sums: ArmSums) -> _Before | None:
    then = sums.before
    if then is None or then.v <= 0:
        return None
    first, second = (sums.x, sums.y), (then.u, then.v)
    return _Before(
        Fraction(then.u, then.v),
        covariance(sums.n, (then.uu, then.uv, then.uv, then.vv), second, second),
        covariance(sums.n, (then.xu, then.xv, then.yu, then.yv), first, second),
    )


def _adjust(
    raw: Lift, slopes: Slopes, arms: tuple[Ratio, Ratio], before: tuple[_Before, _Before]
) -> Adjusted:
    variance = before[0].variance + before[1].variance
    if not variance > 0:
        return Adjusted(raw, None, None, "users did not differ in the time before")
    # R_t has the slope f_t in the lift and Q_t the slope 1 in D; R_c has f_c, and Q_c has -1.
    steep = (slopes.treatment, 1.0), (slopes.control, -1.0)
    theta = sum(f * d * b.covariance for (f, d), b in zip(steep, before, strict=True)) / variance
    parts = [
        f * f * (arm.variance or 0.0) - 2 * theta * f * d * b.covariance + theta**2 * b.variance
        for (f, d), arm, b in zip(steep, arms, before, strict=True)
    ]
    assert raw.value is not None
    assert raw.stderr is not None
    left = sum(parts) / raw.stderr**2
    if left < _LEAST_LEFT:
        return Adjusted(raw, None, None, "the time before explains everything")
    value = raw.value - theta * float(before[0].value - before[1].value)
    users = arms[0].users, arms[1].users
    found = of_parts(value, (parts[0], parts[1]), users, slopes.is_log)
    return Adjusted(found, theta, 1 - left)
