"""The interval of a relative change: all changes that the window's value does not contradict.

A window of support y has the value R; the baseline is B. If the metric has become u times what it
was, R - u B is 0 in the mean, and its variance is

    u · v / y       who was there: noise of counts grows with what is counted,
  + u² (τ² + var(B))  the day, and that the baseline is an estimate.

The interval holds all u with (R - u B)² <= t² · variance (Wilson 1927 of a share, Fieller 1954 of a
quotient): the ends are roots of a quadratic. It is defined of a window without a click, and
asymmetric where little is counted. The window's own random groups may show more noise than the
past knew, as when somebody new is a tenth of all traffic: u belongs to the interval, too, if
(R - u B)² is within t² · (var(R) + u² (τ² + var(B))).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import copysign, floor, inf, sqrt

from streamer.stats.alerting.past import Past
from streamer.stats.random_groups import GroupSums, critical


@dataclass(frozen=True, slots=True)
class Noise:
    """The parts of the variance at one window: ``sampling`` is v / y, ``own`` var(R) by its own
    groups, ``common`` is τ² + var(B), of which ``day`` is what days differ by, and
    ``are_unlike`` whether that is more than chance; ``t`` is how many standard errors the
    interval reaches."""

    sampling: float
    own: float
    common: float
    t: float
    day: float = 0.0
    are_unlike: bool = False

    @staticmethod
    def of(now: GroupSums, past: Past, level: float) -> Noise:
        """Of a window with support, and a past with a unit variance.

        var(B) = v / Σ y_d + τ² Σ y_d² / (Σ y_d)². Degrees of freedom by Satterthwaite (1946), from
        those of v and of τ², rounded down.
        """
        assert past.unit_variance is not None
        unit, day = past.unit_variance, past.between * (1 + past.uneven)
        sampling = unit / now.support
        people = sampling + unit / past.support
        t = student_t(level, (people, past.df), (day, past.between_df))
        return Noise(
            sampling, now.variance or 0.0, unit / past.support + day, t, day, past.are_unlike
        )

    @property
    def is_of_days(self) -> bool:
        """Whether what days differ by is most of it."""
        return self.day > max(self.sampling, self.own) + self.common - self.day

    @property
    def of_days_alone(self) -> Noise:
        """What would be left of it with unlimited traffic."""
        return replace(self, sampling=0.0, own=0.0, common=self.day)

    def factors(self, value: float, baseline: float) -> tuple[float, float]:
        """The lowest and the highest u; infinite where there is no bound.

        >>> one = Noise(sampling=0.01, own=0.0, common=0.0, t=2.0)
        >>> [round(u, 4) for u in one.factors(0.0, 1.0)]
        [0.0, 0.04]
        >>> [round(u, 4) for u in one.factors(1.0, 1.0)]
        [0.819, 1.221]
        """
        if value < 0:
            return self._roots(value, baseline, 0.0, max(self.own, self.sampling))
        low, high = self._roots(value, baseline, self.sampling, 0.0)
        its_low, its_high = self._roots(value, baseline, 0.0, self.own)
        return min(low, its_low), max(high, its_high)

    def score(self, value: float, baseline: float) -> float:
        """By how many standard errors the square root of the value is above that of the baseline
        (Bartlett 1936): the noise of counts does not grow with them there, and is hardly skewed. A
        value below 0 counts as 0; infinite where there is a difference and no noise.

        >>> one = Noise(sampling=0.01, own=0.0, common=0.0, t=2.0)
        >>> [round(one.score(value, 1.0), 2) for value in (0.0, 0.81, 1.0, 1.44)]
        [-20.0, -2.0, 0.0, 4.0]
        """
        ratio = max(0.0, value / baseline)
        own = self.own / ratio if ratio else 0.0
        moved = 2 * baseline * (sqrt(ratio) - 1)
        error = sqrt(max(self.sampling, own) + self.common)
        return moved / error if error else copysign(inf, moved) if moved else 0.0

    def _roots(
        self, value: float, baseline: float, growing: float, fixed: float
    ) -> tuple[float, float]:
        """Roots of a u² - 2 h u + c = 0, for the variance ``growing`` u + ``fixed`` + common u²."""
        square = self.t * self.t
        a = baseline * baseline - square * self.common
        h = value * baseline + square * growing / 2
        c = value * value - square * fixed
        inside = h * h - a * c
        if a <= 0 and (inside < 0 or c <= 0):
            return -inf, inf
        root = sqrt(max(0.0, inside))
        low = c / (h + root) if c > 0 and h > 0 else (h - root) / a if a > 0 else -inf
        return low, (h + root) / a if a > 0 else inf


def student_t(level: float, *parts: tuple[float, int]) -> float:
    """The quantile for a sum of variances, each with its degrees of freedom (Satterthwaite)."""
    total = sum(variance for variance, _ in parts)
    spread = sum(variance**2 / df for variance, df in parts if variance)
    df = floor(total**2 / spread + 1e-9) if spread else parts[0][1]
    return critical(level, max(1, df))
