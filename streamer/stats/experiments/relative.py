"""The relative lift: every r for which R_t - (1 + r) R_c may be 0 (Fieller's theorem).

Fieller 1954, "Some problems in interval estimation" (Journal of the Royal Statistical Society B):
the interval of a quotient of two means is the set of quotients that a test does not reject. The
test is the one of the absolute lift, with the same critical value c and the same CUPED adjustment:

    (L - r C)² ≤ c² (var L - 2 r cov(L, C) + r² var C)

with the absolute lift L = R_t - R_c and the control C = R_c. So the interval excludes 0 exactly
where that of the absolute lift does, it excludes a loss of ``margin`` exactly where the contrast
R_t - (1 - margin) R_c does, and it contains the true r whenever one linear contrast is within its
interval: at any time, if c is the critical value of a confidence sequence. It is bounded only where
C itself is more than c standard errors above 0.

CUPED: with θ as in lift.py, L(w) - θ D = T - w C, where

    T = R_t - cov(R_t, Q_t) / var(D) · D,    C = R_c + cov(R_c, Q_c) / var(D) · D.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import copysign, sqrt

from streamer.stats.experiments.lift import Lift, Pair

NOT_ABOVE_0 = "the control's value is not above 0"
UNBOUNDED = "the control's value is too uncertain: it may be 0"


@dataclass(frozen=True, slots=True)
class Relative:
    """Absolute lift and control, in the unit of the metric, and what a quotient of them needs."""

    lift: float
    control: float
    variance_of_lift: float
    variance_of_control: float
    covariance: float

    @property
    def value(self) -> float:
        """The relative lift."""
        return self.lift / self.control

    @property
    def stderr(self) -> float:
        """Its standard error, by the delta method."""
        return sqrt(max(0.0, self._variance(self.value))) / self.control

    def interval(self, critical: float) -> tuple[float, float] | None:
        """Fieller's interval; None where it is not bounded.

        >>> low, high = Relative(1.0, 10.0, 0.02, 0.01, -0.01).interval(2.0)
        >>> round(low, 5), round(high, 5)
        (0.0707, 0.13018)
        """
        squared = critical**2
        curvature = self.control**2 - squared * self.variance_of_control
        if not curvature > 0:
            return None
        reach = critical * sqrt(self.variance_of_lift)
        # The sign of the product of both ends is that of the absolute interval's, exactly.
        product = (self.lift - reach) * (self.lift + reach)
        middle = self.lift * self.control - squared * self.covariance
        far = middle + copysign(sqrt(max(0.0, middle**2 - curvature * product)), middle)
        ends = far / curvature, product / far if far else 0.0
        return min(ends), max(ends)

    def _variance(self, r: float) -> float:
        """Of L - r C."""
        return self.variance_of_lift - r * (2 * self.covariance - r * self.variance_of_control)


def relative(pair: Pair, lift: Lift) -> Relative | str:
    """What the relative lift of a pair with this absolute lift is made of, or why there is none."""
    if lift.value is None:
        return lift.reason
    assert pair.control.value is not None
    control, variance = float(pair.control.value), pair.control.variance or 0.0
    own = 0.0
    if pair.before is not None and lift.stderr is not None:
        treatment_before, control_before = pair.before
        total = treatment_before.variance + control_before.variance
        slope = control_before.covariance / total
        shift = Fraction(treatment_before.value - control_before.value)
        control += slope * float(shift)
        variance -= slope * control_before.covariance
        own = slope * treatment_before.covariance
    if not control > 0:
        return NOT_ABOVE_0
    squared = pair.scale**2
    return Relative(
        lift.value,
        control * pair.scale,
        0.0 if lift.stderr is None else lift.stderr**2,
        max(0.0, variance) * squared,
        (own - variance) * squared,
    )
