"""Arms over periods with splits of their own, as one: a ramp from 1 to 50 % compares nobody of the
first days, most of whom are in the control, with those of later ones.

Let period p have N users and planned shares π. The mean of a value in an arm is Σ w x̄ / Σ w over
the periods, with the weights w = N / Σ 1/π (N π_t π_c of two arms), the same for all arms, so that
they are the best where users vary alike (Mantel and Haenszel 1959). A ratio is that of two such
means. Its variance adds up over the periods, within which users are compared with their own mean.

So a user of an arm with n users in the period counts M w / n times, where M makes the weights of
all its users theirs on the average; squares and products are those around the period's means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from streamer.stats.experiments.caps import Exact
from streamer.stats.experiments.sums import MOMENTS, ArmSums, BeforeSums


@dataclass(frozen=True)
class SplitSums:
    """The planned shares of a period, in any unit, and the sums of its arms."""

    shares: Mapping[str, float]
    arms: Mapping[str, ArmSums]


def pooled(periods: Sequence[SplitSums]) -> dict[str, ArmSums]:
    """The sums of each arm over periods in which all arms have two users or more.

    >>> first = {"A": ArmSums.of([(0, 1), (2, 1)] * 99), "B": ArmSums.of([(1, 1), (2, 1)])}
    >>> later = {"A": ArmSums.of([(4, 1), (6, 1)] * 50), "B": ArmSums.of([(5, 1), (6, 1)] * 50)}
    >>> both = [SplitSums({"A": 99, "B": 1}, first), SplitSums({"A": 1, "B": 1}, later)]
    >>> {arm: round(float(its.x / its.y), 2) for arm, its in pooled(both).items()}
    {'A': 4.85, 'B': 5.35}
    """
    known = [p for p in periods if min(its.n for its in p.arms.values()) > 1]
    if not known:
        return {arm: ArmSums() for arm in periods[-1].arms}
    weights = []
    for period in known:
        planned = sum(period.shares.values())
        inverse = sum(planned / share for share in period.shares.values())
        weights.append(sum(its.n for its in period.arms.values()) / Fraction(inverse))
    total = sum(weights, Fraction(0))
    shares = [weight / total for weight in weights]
    return {arm: _pooled([p.arms[arm] for p in known], shares) for arm in known[0].arms}


def _pooled(sums: Sequence[ArmSums], shares: Sequence[Fraction]) -> ArmSums:
    n = sum(its.n for its in sums)
    times = [n * share / its.n for its, share in zip(sums, shares, strict=True)]
    parts = [{**_moments(its), **_moments(its.before or BeforeSums())} for its in sums]
    found: dict[str, Fraction] = {}
    for name in sorted(parts[0], key=len):
        if len(name) == 1:
            both = zip(parts, times, strict=True)
            found[name] = sum((part[name] * factor for part, factor in both), Fraction(0))
            continue
        a, b = name[0], name[1]
        spread = Fraction(0)
        for part, factor, its in zip(parts, times, sums, strict=True):
            around = Fraction(part[name] * its.n - part[a] * part[b], its.n - 1)
            spread += factor * factor * around
        found[name] = spread * (n - 1) / n + found[a] * found[b] / n
    own = {name: value for name, value in found.items() if not set(name) & {"u", "v"}}
    before = {name: value for name, value in found.items() if name not in own}
    denominators = []
    for column in zip(*(its.denominators for its in sums), strict=True):
        y, yy = Fraction(0), Fraction(0)
        for (total, squares), factor in zip(column, times, strict=True):
            y, yy = y + total * factor, yy + squares * factor * factor
        denominators.append((y, yy))
    x, xx, y, yy, xy = (own[name] for name in MOMENTS)
    return ArmSums(
        *(n, x, xx, y, yy, xy),
        sum(its.nonzero for its in sums),
        sums[-1].x_scale,
        None if sums[-1].before is None else BeforeSums(**before),
        tuple(denominators),
        obstacle=next((its.obstacle for its in sums if its.obstacle), ""),
    )


def _moments(sums: ArmSums | BeforeSums) -> dict[str, Exact]:
    names = (each.name for each in fields(sums))
    return {name: getattr(sums, name) for name in names if set(name) <= set("xyuv")}
