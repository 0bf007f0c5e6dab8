"""Caps: what one user counts for at most, an amount or a quantile over the users of all arms.

So that a quantile can be taken at any time, and follows every event, sums are kept by buckets of
users. Two kinds of metrics are capped in two ways.

- *Per user* (Σx over users): buckets of numerators, whose upper edges are the integers of at most
  two significant digits; those below 0 lie in the same buckets, mirrored. Who is beyond the cap
  counts as the edge of the bucket that it lies in, so that the cap is exact for that edge. It holds
  on both sides of 0.
- *Ratios* (Σx / Σy): buckets of denominators y, ten a decade from 10 on. A user beyond the cap,
  whose bucket ends at e, counts with the weight cap / e: numerator and denominator are winsorised
  together, by the same weight, so that a user's own ratio stays what it is. So one crawler with
  60,000 impressions counts as the heaviest of the other users.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Final, Literal

EDGES: tuple[int, ...] = (*range(100), *(m * 10**k for k in range(1, 23) for m in range(10, 100)))
"""Of buckets of numerators: 0, 1, …, 99, 100, 110, …, 9.9e23; one more is for what is larger. Those
of -1, -2, … follow it."""
BUCKETS = 2 * len(EDGES) + 1
DENOMINATOR_EDGES = tuple(
    m * 10**k for k in range(17) for m in (10, 13, 16, 20, 25, 32, 40, 50, 63, 79)
)
"""Of buckets of denominators: 10 and less, 13, 16, …; one more is for what is larger."""
LARGEST_USERS = 10
"""Users whose share of a denominator is told, at most."""


@dataclass(frozen=True)
class Quantile:
    """A share of the users with a numerator above 0: theirs are not capped."""

    share: float

    def bucket(self, users: Mapping[int, int]) -> int:
        """The bucket that it lies in, of users by bucket; the last of all if there are none.

        >>> Quantile(0.75).bucket({0: 90, 3: 3, 7: 1})
        3
        """
        return _bucket_of(self.share, above_0(users))


@dataclass(frozen=True)
class Denominator:
    """Of a ratio: a share of the users with a denominator above 0, whose are not capped, or an
    ``amount`` of the denominator; nobody is capped without either. Sums are kept alike for all."""

    share: float | None = None
    amount: int | None = None

    def bucket(self, users: Mapping[int, int]) -> int:
        """The last bucket that is not capped, of users by bucket.

        >>> Denominator(amount=25).bucket({0: 90, 30: 1}), Denominator(0.99).bucket({0: 99, 30: 1})
        (4, 0)
        """
        if self.amount is not None:
            return bisect_left(DENOMINATOR_EDGES, self.amount)
        if self.share is None or not any(users.values()):
            return len(DENOMINATOR_EDGES)
        return _bucket_of(self.share, users)


ANY: Final = "any"
"""A user with a numerator above 0 counts as 1, any other as 0."""
Cap = int | Quantile | Denominator | Literal["any"] | None
"""An amount in units of the numerator, a quantile, that of a ratio, one of shares, or none."""


def above_0(users: Mapping[int, int]) -> dict[int, int]:
    """Those of them whose numerator is above 0.

    >>> above_0({0: 3, 5: 1, len(EDGES) + 1: 2})
    {5: 1}
    """
    return {bucket: n for bucket, n in users.items() if 0 < bucket <= len(EDGES)}


def _bucket_of(share: float, users: Mapping[int, int]) -> int:
    """The bucket with the quantile of the users; the last of all if there are none."""
    counts = {bucket: n for bucket, n in sorted(users.items()) if n}
    needed = Fraction(str(share)) * sum(counts.values())
    so_far = zip(counts, accumulate(counts.values()), strict=True)
    return next((bucket for bucket, n in so_far if n >= needed), len(EDGES))


Exact = int | Fraction
"""Sums; of users that count with a weight they are no integers."""


def folded(sums: Mapping[int, dict[str, Exact]], last: int) -> dict[str, Exact]:
    """The sums of a measure per user from those by bucket, where what is in buckets beyond
    ``last``, or mirrored ones, counts as much as its edge. Each user's denominator is 1, so that Σy
    is their number and Σyu is Σu."""
    total: dict[str, Exact] = dict.fromkeys(sums[0], 0)
    for bucket, its in sums.items():
        is_below_0 = bucket > len(EDGES)
        if bucket - is_below_0 * len(EDGES) > last:
            cap = -EDGES[last] if is_below_0 else EDGES[last]
            its = its | {"x": cap * its["y"], "xx": cap * cap * its["y"], "xy": cap * its["y"]}
            its |= {f"x{v}": cap * its[f"y{v}"] for v in "uv" if f"x{v}" in its}
            its["nz"] = its["y"]
        for name, value in its.items():
            total[name] += value
    return total


def weighted(sums: Mapping[int, dict[str, Exact]], last: int) -> dict[str, Exact]:
    """The sums of a ratio from those by bucket, where users in buckets beyond ``last`` count with
    the weight that takes them to its edge. What they were before the experiment stays."""
    total: dict[str, Exact] = dict.fromkeys(sums[0], 0)
    for bucket, its in sums.items():
        weight = Fraction(1)
        if bucket > last:
            beyond = DENOMINATOR_EDGES[min(bucket, len(DENOMINATOR_EDGES) - 1)]
            weight = Fraction(DENOMINATOR_EDGES[last], beyond)
        for name, value in its.items():
            degree = 0 if name.startswith("n") else sum(letter in "xy" for letter in name)
            total[name] += value * weight**degree if degree and weight != 1 else value
    return total


@dataclass(frozen=True)
class Largest:
    """The users with the largest denominators of an arm, and their share of all of it."""

    users: int
    share: float


def largest(sums: Mapping[int, Mapping[str, Exact]]) -> Largest | None:
    """Those of the topmost buckets, at most LARGEST_USERS; None where so few do not stand out, or
    nobody has any denominator.

    >>> largest({0: {"y": 100, "ny": 50}, 9: {"y": 300, "ny": 2}})
    Largest(users=2, share=0.75)
    """
    total = sum(its["y"] for its in sums.values())
    if total <= 0:
        return None
    users, y = 0, Fraction(0)
    for bucket in sorted(sums, reverse=True):
        more = int(sums[bucket]["ny"])
        if users + more > LARGEST_USERS:
            break
        users, y = users + more, y + sums[bucket]["y"]
    return Largest(users, float(y / total)) if users else None


def edge_of(cap: Quantile | Denominator, bucket: int) -> int | None:
    """What a user counts for at most where the cap lies in a bucket; None where there is none."""
    edges: Sequence[int] = DENOMINATOR_EDGES if isinstance(cap, Denominator) else EDGES
    return edges[bucket] if bucket < len(edges) else None
