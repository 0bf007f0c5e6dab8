"""Why a metric moved: the change of R = Σx / Σy, split into mix and rate by segment.

With the shares of traffic w_s and the rates r_s before (0) and after (1), R = Σ w_s r_s, and

    R1 - R0 = Σ (w1 - w0) (r̄ - R̄)  +  Σ w̄ (r1 - r0)
                mix_s                   rate_s

where a bar is the mean of both sides: the symmetric form of Kitagawa 1955, "Components of a
difference between two rates", with the mix against R̄ rather than 0, so that more traffic on a
segment counts as a loss only if the segment is poorer than the whole. What moved the mix is traffic
(a page of low rates is shown more often); only rate can be a regression.

All parts are fractions: they add up to the change exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Sums = Mapping[str, tuple[int, int]]
"""(Σx, Σy) by segment. Segments share nothing, and are all there is."""
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Contribution:
    """One segment: its shares of Σy and rates then and now (None without Σy), and what it gave to
    the change."""

    segment: str
    share_then: Fraction
    share_now: Fraction
    rate_then: Fraction | None
    rate_now: Fraction | None
    mix: Fraction
    rate: Fraction

    @property
    def total(self) -> Fraction:
        """What the segment adds to the change."""
        return self.mix + self.rate


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole then and now, and its parts, those that moved it most first.

    Without traffic on one of the sides there is no change, and there are no parts.
    """

    value_then: Fraction | None
    value_now: Fraction | None
    parts: tuple[Contribution, ...]

    @property
    def change(self) -> Fraction | None:
        """R1 - R0, which is ``mix`` + ``rate``."""
        if self.value_then is None or self.value_now is None:
            return None
        return self.value_now - self.value_then

    @property
    def mix(self) -> Fraction:
        """What traffic did."""
        return sum((part.mix for part in self.parts), _ZERO)

    @property
    def rate(self) -> Fraction:
        """What the segments' own rates did."""
        return sum((part.rate for part in self.parts), _ZERO)


def explain(now: Sums, then: Sums) -> Explanation:
    """The change from ``then`` to ``now``, (clicks, impressions) by segment.

    Simpson's paradox: both surfaces have become better, and the whole falls, for traffic went to
    the poor one.

    >>> then = {"home": (800, 10_000), "feed": (20, 1_000)}
    >>> now = {"home": (90, 1_000), "feed": (250, 10_000)}
    >>> found = explain(now, then)
    >>> [f"{float(part):+.4f}" for part in (found.change, found.mix, found.rate)]
    ['-0.0436', '-0.0511', '+0.0075']
    >>> found.mix + found.rate == found.change
    True

    A segment that is on one side only has no rate of its own on the other: it is taken not to have
    changed, so that all its effect is mix. ValueError if a Σy is below 0.
    """
    for side in (now, then):
        for segment, (_, y) in side.items():
            if y < 0:
                raise ValueError(f"y of {segment!r} is {y}: must not be below 0")
    whole = _whole(then), _whole(now)
    if whole[0] is None or whole[1] is None:
        return Explanation(*whole, ())
    middle = (whole[0] + whole[1]) / 2
    supports = (sum(y for _, y in side.values()) for side in (then, now))
    size_then, size_now = supports
    parts = [
        _part(segment, (*then.get(segment, (0, 0)), size_then),
              (*now.get(segment, (0, 0)), size_now), middle)
        for segment in dict.fromkeys((*then, *now))
    ]  # fmt: skip
    parts.sort(key=lambda part: (-max(abs(part.mix), abs(part.rate)), part.segment))
    return Explanation(*whole, tuple(parts))


def explain_sum(parts: Sequence[tuple[Fraction, Sums, Sums]]) -> Explanation:
    """The change of a sum of ratios, Σ c R, from (c, now, then) of each: what they give to it is
    added up by segment. Shares are those of the first ratio; rates the segment's own sum.

    >>> clicks = {"home": (9, 20), "feed": (1, 20)}, {"home": (9, 20), "feed": (3, 20)}
    >>> value = {"home": (4, 2), "feed": (4, 2)}, {"home": (4, 2), "feed": (8, 2)}
    >>> found = explain_sum([(Fraction(1), *clicks), (Fraction(1, 2), *value)])
    >>> [str(n) for n in (found.change, found.mix, found.rate)]  # -1/20 - 1/2
    ['-11/20', '0', '-11/20']
    """
    found = [(factor, explain(now, then)) for factor, now, then in parts]
    whole_then = _added([(factor, its.value_then) for factor, its in found])
    whole_now = _added([(factor, its.value_now) for factor, its in found])
    if whole_then is None or whole_now is None:
        return Explanation(whole_then, whole_now, ())
    by_segment = [(factor, {part.segment: part for part in its.parts}) for factor, its in found]
    names = dict.fromkeys(name for _, its in by_segment for name in its)
    none = Contribution("", _ZERO, _ZERO, None, None, _ZERO, _ZERO)
    summed = []
    for name in names:
        own = [(factor, its.get(name, none)) for factor, its in by_segment]
        summed.append(
            Contribution(
                name,
                own[0][1].share_then,
                own[0][1].share_now,
                _added([(factor, part.rate_then) for factor, part in own]),
                _added([(factor, part.rate_now) for factor, part in own]),
                sum((factor * part.mix for factor, part in own), _ZERO),
                sum((factor * part.rate for factor, part in own), _ZERO),
            )
        )
    summed.sort(key=lambda part: (-max(abs(part.mix), abs(part.rate)), part.segment))
    return Explanation(whole_then, whole_now, tuple(summed))


def _added(terms: Sequence[tuple[Fraction, Fraction | None]]) -> Fraction | None:
    """Σ c R, None where an R is."""
    known = [factor * value for factor, value in terms if value is not None]
    return sum(known, _ZERO) if len(known) == len(terms) else None


def _whole(side: Sums) -> Fraction | None:
    y = sum(y for _, y in side.values())
    return Fraction(sum(x for x, _ in side.values()), y) if y else None


def _part(
    segment: str, then: tuple[int, int, int], now: tuple[int, int, int], middle: Fraction
) -> Contribution:
    """One segment, given as (Σx, Σy, Σy of all). What it counts in x without any y, where no rate
    is defined, belongs to the rate: w r is x by Σy of all."""
    (x0, y0, size0), (x1, y1, size1) = then, now
    w0, w1 = Fraction(y0, size0), Fraction(y1, size1)
    r0, r1 = (Fraction(x, y) if y else None for x, y in ((x0, y0), (x1, y1)))
    unpaired = (_ZERO if y1 else Fraction(x1, size1)) - (_ZERO if y0 else Fraction(x0, size0))
    if r0 is None and r1 is None:
        return Contribution(segment, w0, w1, r0, r1, _ZERO, unpaired)
    before, after = (r1 if r0 is None else r0), (r0 if r1 is None else r1)
    assert before is not None
    assert after is not None
    mix = (w1 - w0) * ((before + after) / 2 - middle)
    rate = (w0 + w1) / 2 * (after - before) + unpaired
    return Contribution(segment, w0, w1, r0, r1, mix, rate)
