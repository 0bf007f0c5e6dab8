"""Whether a lift differs between the values of a dimension: Cochran's Q.

Cochran 1954, "The combination of estimates from different experiments" (Biometrics). With weights
w = 1 / stderr² and the weighted mean m of the lifts, Q = Σ w (lift - m)² is about chi-squared with
k - 1 degrees of freedom where all k lifts are the same. Each value is also compared with the
weighted mean of the others, by a normal test, corrected over the values (Holm): where lifts differ,
the value that is furthest from the others stands apart, and so on with those that are left. All of
it holds at one look at a time set before, not at every look.

The standard errors of few users vary too much for this. Relative lifts have an interval only
where many users have a value; of absolute ones w has the standard error as much wider as Student's
t makes the interval.

>>> from streamer.stats.experiments.estimate import Inference
>>> def lifts(value, stderr):
...     estimate = Estimate(value, stderr, Inference(-1.0, 1.0, 0.5, 0.5, 0.05), None)
...     return Lifts(estimate, estimate)
>>> devices = {"mobile": lifts(0.01, 0.01), "tv": lifts(0.08, 0.02), "web": lifts(0.04, 0.01)}
>>> found = heterogeneity(devices, 0.05)
>>> round(found.q, 2), found.df, round(found.p_value, 4)
(11.22, 2, 0.0037)
>>> print(found.describe("ctr_ratio", "device"))  # doctest: +NORMALIZE_WHITESPACE
The lift of ctr_ratio differs by device (p = 0.0037 at one look): mobile stands apart (+1.0%
against +4.8% elsewhere).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt

from streamer.formatting import p_words
from streamer.stats.distributions import chi2_upper, normal_quantile, normal_two_sided
from streamer.stats.experiments.estimate import Estimate, Lifts, holm
from streamer.stats.experiments.verdict import Scale

TOO_FEW = "Too few values have a range to compare their lifts."
_Pairs = Mapping[str, tuple[float, float]]
"""Value → its lift, and the weight of it."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The lift of one value, and that of all others together; ``p_adjusted``: Holm's."""

    lift: float
    elsewhere: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Cochran's test of one treatment over ``values``, those of ``asked`` that have an interval.

    ``q`` and ``p_value`` are None where fewer than two have one. ``apart``: the values that stand
    apart, each against those that are left. ``alpha`` is the level of all of it.
    """

    scale: Scale
    alpha: float
    asked: int
    q: float | None
    df: int
    p_value: float | None
    values: Mapping[str, Contrast]
    apart: Mapping[str, Contrast]

    @property
    def differs(self) -> bool:
        """Whether the lifts differ more than chance."""
        return self.p_value is not None and self.p_value <= self.alpha

    def describe(self, metric: str, by: str, form: str = "number") -> str:
        """What is found, in words; ``form``: how the values of the metric are written."""
        if self.p_value is None:
            return TOO_FEW
        count = len(self.values)
        of = "" if count == self.asked else f"; {count} of {self.asked} values compared"
        look = f"({p_words(self.p_value)} at one look{of})"
        lift = f"The {'' if self.scale is Scale.RELATIVE else 'absolute '}lift of {metric}"
        if not self.differs:
            return f"{lift} does not differ by {by} more than chance {look}."
        return f"{lift} differs by {by} {look}: {self._where(self.scale.writer(form))}."

    def _where(self, write: Callable[[float], str]) -> str:
        """Of two values each is the other's elsewhere."""
        if len(self.values) == 2:
            return ", ".join(f"{v} {write(its.lift)}" for v, its in self.values.items())
        apart = [
            (value, f"{write(its.lift)} against {write(its.elsewhere)} elsewhere")
            for value, its in self.apart.items()
        ]
        if not apart:
            return "no value stands apart by itself"
        *most, last = (f"{value} ({against})" for value, against in apart)
        if not most:
            return f"{apart[0][0]} stands apart ({apart[0][1]})"
        return f"{', '.join(most)} and {last} stand apart"


def heterogeneity(lifts: Mapping[str, Lifts], alpha: float) -> Heterogeneity:
    """Test one treatment; ``lifts``: value → the lifts that decide, of all values.

    Relative lifts are compared where two values or more have an interval of theirs, otherwise
    absolute ones: these differ where the control does, though all relative ones are the same.
    """
    scale, pairs = Scale.RELATIVE, _weighted({v: (its.relative, 1.0) for v, its in lifts.items()})
    if len(pairs) < 2:
        wider = {v: (its.absolute, _widening(its.absolute)) for v, its in lifts.items()}
        scale, pairs = Scale.ABSOLUTE, _weighted(wider)
    if len(pairs) < 2:
        return Heterogeneity(scale, alpha, len(lifts), None, 0, None, {}, {})
    q, p_value = _cochran(pairs)
    contrasts, apart = _contrasts(pairs, alpha), _apart(pairs, alpha)
    return Heterogeneity(scale, alpha, len(lifts), q, len(pairs) - 1, p_value, contrasts, apart)


def _weighted(estimates: Mapping[str, tuple[Estimate, float]]) -> _Pairs:
    """Of those that have an interval, with so many times their standard errors."""
    return {
        value: (its.value, (times * its.stderr) ** -2)
        for value, (its, times) in estimates.items()
        if its.fixed is not None and its.value is not None and its.stderr
    }


def _widening(absolute: Estimate) -> float:
    """By how much Student's t has made an interval wider than the normal distribution would: that
    of ten users is much wider, and has a standard error that may be far too small."""
    if absolute.fixed is None or not absolute.stderr:
        return 1.0
    reach = (absolute.fixed.high - absolute.fixed.low) / 2
    return reach / absolute.stderr / normal_quantile(absolute.fixed.alpha / 2)


def _cochran(pairs: _Pairs) -> tuple[float, float]:
    """Q and its p-value."""
    mean = _mean(pairs)
    q = sum(weight * (lift - mean) ** 2 for lift, weight in pairs.values())
    return q, chi2_upper(q, len(pairs) - 1)


def _apart(pairs: _Pairs, alpha: float) -> dict[str, Contrast]:
    """The value that is furthest from the others, as long as those that are left differ: one that
    stands apart shifts the mean of the others, too. Of two nobody can say which it is."""
    left, apart = dict(pairs), {}
    while len(left) > 2 and _cochran(left)[1] <= alpha:
        contrasts = _contrasts(left, alpha)
        value = min(contrasts, key=lambda each: contrasts[each].p_value)
        if contrasts[value].p_adjusted > alpha:
            break
        apart[value] = contrasts[value]
        del left[value]
    return apart


def _mean(pairs: _Pairs) -> float:
    """Weighted by the inverse variances."""
    total = sum(weight for _, weight in pairs.values())
    return sum(lift * weight for lift, weight in pairs.values()) / total


def _contrasts(pairs: _Pairs, alpha: float) -> dict[str, Contrast]:
    """Each value against the others. Two values are one test, which needs no correction."""
    elsewhere, p_values = [], []
    for value, (lift, weight) in pairs.items():
        others = {other: pair for other, pair in pairs.items() if other != value}
        mean, rest = _mean(others), sum(w for _, w in others.values())
        elsewhere.append(mean)
        p_values.append(normal_two_sided((lift - mean) / sqrt(1 / weight + 1 / rest)))
    is_one = len(pairs) == 2
    adjusted = p_values if is_one else [its.p_value for its in holm(p_values, alpha)]
    made = zip(pairs.items(), elsewhere, p_values, adjusted, strict=True)
    return {v: Contrast(lift, mean, p, p_adj) for (v, (lift, _)), mean, p, p_adj in made}
