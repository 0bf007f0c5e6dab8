"""A percentile of what users have, of one arm, as the mean of one number of each user.

Users are kept by buckets of their values (caps.py), within which they are taken to be spread
evenly: F(v), the share of the users with at most v, is a straight line from each edge to the next,
and the percentile q the value with F(q) = p. So it lies within a bucket of that of the sorted
values, and does not jump from one integer to the next. What is shown of an arm is the next whole
number, a user's value (the nearest rank) wherever the values have two digits. All users of the arm
count, those with nothing, too: whoever is made to do anything would else be compared with nobody.

The share at q is that of a sample of n users, with a standard error of √(p (1 - p) / n). Woodruff's
interval (1952, J. Am. Stat. Assoc. 47) takes shares that are ``REACH`` of them apart from p back to
values, and the standard error of q is

    s = (F⁻¹(p + REACH σ) - F⁻¹(p - REACH σ)) / (2 REACH).

With z = q + √n s ζ, where ζ has mean 0 and variance 1 over the users, q is a mean of z with its
variance. So a percentile is compared as a metric per user is (Deng, Knoblich and Lu 2018, arXiv
1803.06336, section 4, do so too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import accumulate
from math import ceil, sqrt

from streamer.stats.experiments.caps import EDGES, Exact, above_0
from streamer.stats.experiments.sums import ArmSums

REACH = 2
"""Standard errors of the share that Woodruff's interval has to each side."""
LEAST_USERS = 100
"""Users that an arm must have beyond a percentile, and between 0 and it, for an interval."""
FROM_ZERO = 5
"""Standard errors of the share that a percentile must be away from the users with nothing."""
MAX_LOPSIDED = 3
"""How many times as far one end of Woodruff's interval may be from the percentile as the other one:
beyond it there is a gap in the values, over which the percentile jumps. Of values without a gap it
is 1 to 2.5."""


def percentile_sums(n: int, users: Mapping[int, int], share: Fraction, x_scale: float) -> ArmSums:
    """The sums of z over the n users of an arm, of those of each bucket; who is in none has
    nothing, as who is below 0. ``share``: p, 0.9 of the 90th percentile.

    >>> found = percentile_sums(1000, dict.fromkeys(range(1, 101), 10), Fraction(9, 10), 1.0)
    >>> found.x / found.n, found.nonzero  # a thousand users, spread evenly from 0 to 100
    (Fraction(90, 1), 100)
    """
    with_any = {bucket: count for bucket, count in sorted(above_0(users).items()) if count}
    zeros = n - sum(with_any.values())
    rank = share * n
    if n <= 0 or rank <= zeros:
        nothing = f"{zeros:,} users have nothing, so that the percentile is 0"
        return ArmSums(n, y=n, yy=n, x_scale=x_scale, obstacle=nothing)
    beyond = int(min(n - rank, rank - zeros))
    value_of = _inverse(zeros, with_any)
    error = Fraction(sqrt(n * share * (1 - share)))
    low, value, high = (
        value_of(min(Fraction(n), max(Fraction(0), rank + side * REACH * error)))
        for side in (-1, 0, 1)
    )
    stderr = (high - low) / (2 * REACH)
    x = n * value
    squares = x * value + n * (n - 1) * stderr * stderr
    obstacle = ""
    if beyond < LEAST_USERS or rank - zeros < FROM_ZERO * error:
        obstacle = _few(n, rank, zeros)
    elif max(high - value, value - low) > MAX_LOPSIDED * min(high - value, value - low):
        obstacle = "the values have a gap at the percentile, over which it may jump"
    return ArmSums(n, x, squares, n, n, x, beyond, x_scale, obstacle=obstacle)


def nearest(value: Exact) -> int:
    """A percentile as it is shown, in whole units of x.

    >>> nearest(Fraction(11, 2)), nearest(5)
    (6, 5)
    """
    return ceil(value)


def _inverse(zeros: int, with_any: Mapping[int, int]) -> Callable[[Fraction], Fraction]:
    """The value that so many users do not exceed."""
    last = len(EDGES) - 1
    buckets = list(with_any)
    reached = list(accumulate(with_any.values(), initial=zeros))

    def value_of(rank: Fraction) -> Fraction:
        if rank <= zeros:
            return Fraction(0)
        at = next(i for i, count in enumerate(reached[1:]) if count >= rank)
        low, high = (EDGES[min(last, edge)] for edge in (buckets[at] - 1, buckets[at]))
        return low + (rank - reached[at]) * Fraction(high - low, with_any[buckets[at]])

    return value_of


def _few(n: int, rank: Fraction, zeros: int) -> str:
    """Why there is no interval, in words."""
    beyond = n - rank
    if beyond >= LEAST_USERS or rank - zeros < beyond:
        return f"the percentile is too near to the {zeros:,} users who have nothing"
    users = int(beyond)
    return f"only {users:,} users are beyond the percentile, and a range needs {LEAST_USERS}"
