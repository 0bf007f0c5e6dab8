"""A composite of one arm, C = Σ c X / Y over its parts, as the mean of one number of each user.

By the delta method (``ratio``) a user moves a part by (x - R y) / Y, R = X / Y: with n users let

    z = C + n Σ c (x - R y) / Y.

The mean of z is C, and its variance over n that of C, with all that hangs together among the parts
of one user in it. So a composite is compared as a metric per user is, z being the numerator, and 1
the denominator; before the experiment likewise. Sums of z, and of its products, follow from the
products of all numerators and denominators over users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from streamer.stats.experiments.caps import Exact
from streamer.stats.experiments.sums import ArmSums, BeforeSums

UNIT = 10**18
"""Units of z that are 1: its sums are whole numbers of it."""
NOW, BEFORE = ("x", "y"), ("u", "v")


@dataclass(frozen=True)
class _Term:
    """One part: Σ of numerator and denominator, how they are called, and c."""

    above: str
    below: str
    total: Exact
    support: Exact
    factor: Fraction


def names_of(parts: int, letters: Sequence[str]) -> list[str]:
    """What the values of users are called.

    >>> names_of(2, NOW)
    ['x1', 'y1', 'x2', 'y2']
    """
    return [f"{letter}{i}" for i in range(1, parts + 1) for letter in letters]


def composite_sums(
    n: int, moments: Mapping[str, Exact], factors: Sequence[Fraction], has_before: bool
) -> ArmSums:
    """The sums of z over the n users of an arm, from those of its parts: `x1`, `x1y2`, …, `nz1`,
    …, and the same of `u1`, … if there is a time before. Without a denominator there is no value.

    >>> users = [(1, 2, 3, 1), (0, 1, 1, 1), (2, 3, 2, 1)]  # two ratios: 3 / 6 and 6 / 3
    >>> names = names_of(2, NOW)
    >>> sums = {name: sum(u[i] for u in users) for i, name in enumerate(names)}
    >>> for i, a in enumerate(names):
    ...     for j, b in enumerate(names[i:], i):
    ...         sums[a + b] = sum(u[i] * u[j] for u in users)
    >>> factors = [Fraction(1), Fraction(-1, 2)]
    >>> found = composite_sums(3, sums | {"nz1": 2, "nz2": 3}, factors, has_before=False)
    >>> found.x / found.y * found.x_scale, found.nonzero  # 1/2 - 2/2
    (-0.5, 2)
    """
    now = _terms(moments, factors, NOW)
    nonzero = min(moments[f"nz{i}"] for i in range(1, len(factors) + 1))
    numbers = range(1, len(factors) + 1)
    denominators = tuple((moments[f"y{i}"], moments[f"y{i}y{i}"]) for i in numbers)
    if n <= 0 or any(term.support <= 0 for term in now):
        held = max(0, int(nonzero))
        return ArmSums(n, nonzero=held, x_scale=1 / UNIT, denominators=denominators)
    value = _value(now)
    squares = n * value * value + _spread(n, moments, now, now)
    before = _before(n, moments, factors, now) if has_before else None
    x = n * value
    return ArmSums(n, x, squares, n, n, x, int(nonzero), 1 / UNIT, before, denominators)


def _before(
    n: int, moments: Mapping[str, Exact], factors: Sequence[Fraction], now: Sequence[_Term]
) -> BeforeSums:
    """Nothing where a part has no denominator before the experiment."""
    then = _terms(moments, factors, BEFORE)
    if any(term.support <= 0 for term in then):
        return BeforeSums()
    value, before = _value(now), _value(then)
    u = n * before
    return BeforeSums(
        u=u,
        v=n,
        uu=n * before * before + _spread(n, moments, then, then),
        uv=u,
        vv=n,
        xu=n * value * before + _spread(n, moments, now, then),
        xv=n * value,
        yu=u,
        yv=n,
    )


def _terms(
    moments: Mapping[str, Exact], factors: Sequence[Fraction], letters: Sequence[str]
) -> list[_Term]:
    names = names_of(len(factors), letters)
    pairs = zip(names[::2], names[1::2], factors, strict=True)
    return [_Term(a, b, moments[a], moments[b], factor) for a, b, factor in pairs]


def _value(terms: Sequence[_Term]) -> int:
    """C in units."""
    return round(UNIT * sum((t.factor * Fraction(t.total, t.support) for t in terms), Fraction(0)))


def _spread(
    n: int, moments: Mapping[str, Exact], first: Sequence[_Term], second: Sequence[_Term]
) -> int:
    """n² Σ c c' Σ (x - R y)(x' - R' y') / (Y Y') over users and pairs of parts, in squared
    units."""

    def product(a: str, b: str) -> Exact:
        return moments[a + b] if a + b in moments else moments[b + a]

    found = Fraction(0)
    for a in first:
        for b in second:
            spread = (
                product(a.above, b.above) * a.support * b.support
                - product(a.above, b.below) * a.support * b.total
                - product(a.below, b.above) * a.total * b.support
                + product(a.below, b.below) * a.total * b.total
            )
            found += a.factor * b.factor * Fraction(spread, (a.support * b.support) ** 2)
    return round(n * n * UNIT * UNIT * found)
