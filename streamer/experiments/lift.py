"""Lift of a treatment over the control, absolute and relative, with delta-method standard errors.

A lift is a function f of both arms' ratios. To first order, and with independent arms (Deng,
Knoblich and Lu 2018, arXiv 1803.06336),

    var(f) = (∂f/∂R_t)² var(R_t) + (∂f/∂R_c)² var(R_c):

    absolute  R_t - R_c        derivatives 1, -1
    relative  ln(R_t / R_c)    derivatives 1 / R_t, -1 / R_c

so that the relative lift also knows that the control is an estimate. It is shown as R_t / R_c - 1,
but has its interval and its p-value on the logarithmic scale, where both arms count alike: the
interval of R_t / R_c itself is too short where the control happens to be large, and with values of
long tails far too often so (docs/experiments_statistics.md has measured it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, log1p, sqrt

from streamer.experiments.ratio import Ratio

_LARGEST_LOG = 700.0
"""e to this is still a double."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """A function of both ratios: its value, and its derivatives by R_t and by R_c."""

    value: float
    treatment: float
    control: float
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class Lift:
    """A lift on the scale of its errors; ``is_log``: that of ln(1 + lift).

    ``stderr`` and ``df`` (degrees of freedom), or all three, are None where they are not defined,
    and then ``reason`` says why.
    """

    value: float | None
    stderr: float | None
    df: float | None
    reason: str = ""
    is_log: bool = False

    @property
    def t(self) -> float | None:
        """The lift in standard errors."""
        return None if self.value is None or self.stderr is None else self.value / self.stderr

    @property
    def shown(self) -> tuple[float | None, float | None]:
        """The lift itself and its standard error."""
        if self.value is None or not self.is_log:
            return self.value, self.stderr
        value = _unlogged(self.value)
        return value, None if self.stderr is None else (1 + value) * self.stderr

    def interval(self, critical: float) -> tuple[float, float] | None:
        """The lifts within ``critical`` standard errors of this one.

        >>> Lift(0.0, 0.1, 9.0, is_log=True).interval(2.0)
        (-0.18126924692201815, 0.22140275816016985)
        """
        if self.value is None or self.stderr is None:
            return None
        low, high = self.value - critical * self.stderr, self.value + critical * self.stderr
        return (_unlogged(low), _unlogged(high)) if self.is_log else (low, high)


def _unlogged(value: float) -> float:
    return expm1(min(value, _LARGEST_LOG))


Contrast = Callable[[Fraction, Fraction, float], Slopes | str]
"""Value and derivatives from R_t, R_c and what one unit is worth, or why there are none."""


def absolute(treatment: Fraction, control: Fraction, scale: float) -> Slopes | str:
    """R_t - R_c.

    >>> absolute(Fraction(3), Fraction(2), 0.5)
    Slopes(value=0.5, treatment=0.5, control=-0.5, is_log=False)
    """
    return Slopes(float(treatment - control) * scale, scale, -scale)


def relative(treatment: Fraction, control: Fraction, scale: float) -> Slopes | str:
    """ln(R_t / R_c), of values above 0.

    >>> relative(Fraction(3), Fraction(2), 0.5)
    Slopes(value=0.4054651081081644, treatment=0.3333333333333333, control=-0.5, is_log=True)
    """
    if control <= 0:
        return "control: the value is not above 0"
    if treatment <= 0:
        return "treatment: the value is not above 0"
    value = log1p(float(treatment / control - 1))
    return Slopes(value, float(1 / treatment), -float(1 / control), is_log=True)


def lift(contrast: Contrast, treatment: Ratio, control: Ratio, scale: float = 1.0) -> Lift:
    """The lift of two arms, with one unit worth ``scale``."""
    arms = {"control": control, "treatment": treatment}
    for name, arm in arms.items():
        if arm.value is None:
            return Lift(None, None, None, f"{name}: {arm.reason}")
    assert treatment.value is not None
    assert control.value is not None
    slopes = contrast(treatment.value, control.value, scale)
    if isinstance(slopes, str):
        return Lift(None, None, None, slopes)
    for name, arm in arms.items():
        if arm.variance is None:
            return Lift(slopes.value, None, None, f"{name}: {arm.reason}", slopes.is_log)
    assert treatment.variance is not None
    assert control.variance is not None
    parts = slopes.treatment**2 * treatment.variance, slopes.control**2 * control.variance
    return of_parts(slopes.value, parts, (treatment.users, control.users), slopes.is_log)


def of_parts(
    value: float, parts: tuple[float, float], users: tuple[int, int], is_log: bool
) -> Lift:
    """A lift from the parts p_t and p_c that both arms have in its variance.

    Degrees of freedom by Welch (1947) and Satterthwaite (1946):
    (p_t + p_c)² / (p_t² / (n_t - 1) + p_c² / (n_c - 1)).
    """
    variance = sum(parts)
    if not variance > 0:
        return Lift(value, None, None, "the standard error is 0", is_log)
    shares = [part / variance for part in parts]
    df = 1 / sum(share**2 / (n - 1) for share, n in zip(shares, users, strict=True))
    return Lift(value, sqrt(variance), df, "", is_log)
