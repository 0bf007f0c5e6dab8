"""Caps: a user's numerator counts up to an amount, or up to a quantile over the users of
all arms who have any.

So that a quantile can be taken at any time, and follows every event, sums are kept by buckets of
users' numerators. The upper edges of buckets are the integers of at most two significant digits;
the cap is the edge of the bucket that the quantile lies in, so that it is exact for that cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

EDGES = (*range(100), *(m * 10**k for k in range(1, 23) for m in range(10, 100)))
"""Of the buckets: 0 and less, 1, …, 99, 100, 110, …, 9.9e23; one more is for what is larger."""


@dataclass(frozen=True)
class Quantile:
    """A share of the users with a numerator above 0: theirs are not capped."""

    share: float

    def bucket(self, users: Mapping[int, int]) -> int:
        """The bucket that it lies in, of users by bucket; the last of all if there are none.

        >>> Quantile(0.75).bucket({0: 90, 3: 3, 7: 1})
        3
        """
        buyers = {bucket: n for bucket, n in sorted(users.items()) if bucket and n}
        needed = Fraction(str(self.share)) * sum(buyers.values())
        so_far = zip(buyers, accumulate(buyers.values()), strict=True)
        return next((bucket for bucket, n in so_far if n >= needed), len(EDGES))


Cap = int | Quantile | None
"""An amount in units of the numerator, a quantile, or none."""


def buckets_of(cap: Cap) -> int:
    """How many buckets sums are kept by."""
    return len(EDGES) + 1 if isinstance(cap, Quantile) else 1


def folded(sums: Mapping[int, dict[str, int]], last: int) -> dict[str, int]:
    """The sums of a measure from those by bucket, where what is in buckets beyond ``last`` counts
    as much as its edge. Each user's denominator is 1, so that Σy is their number and Σyu is Σu."""
    total = dict.fromkeys(sums[0], 0)
    for bucket, its in sums.items():
        if bucket > last:
            cap = EDGES[last]
            its = its | {"x": cap * its["y"], "xx": cap * cap * its["y"], "xy": cap * its["y"]}
            its |= {f"x{v}": cap * its[f"y{v}"] for v in "uv" if f"x{v}" in its}
            its["nz"] = its["y"]
        for name, value in its.items():
            total[name] += value
    return total
