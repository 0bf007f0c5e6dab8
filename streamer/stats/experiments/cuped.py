"""CUPED: the lift less what the users' time before the experiment explains.

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

from streamer.stats.experiments.lift import Before, Pair, contrast
from streamer.stats.experiments.ratio import covariance
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.support import few_before

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
