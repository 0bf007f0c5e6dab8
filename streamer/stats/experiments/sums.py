"""What one arm of an experiment adds up over users: exact numbers, so that nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul

from streamer.stats.experiments.caps import Exact, Largest

MOMENTS = ("x", "xx", "y", "yy", "xy")
"""What is added up of numerators and denominators, as ``ArmSums`` has it."""


@dataclass(frozen=True, slots=True)
class BeforeSums:
    """Sums of the same users before the experiment, for CUPED.

    A user's numerator then is u, the denominator v, both 0 for who was not there; ``uu`` is Σu²,
    ``xu`` is Σxu, and so on, over the n users of the arm.
    """

    u: Exact = 0
    v: Exact = 0
    uu: Exact = 0
    uv: Exact = 0
    vv: Exact = 0
    xu: Exact = 0
    xv: Exact = 0
    yu: Exact = 0
    yv: Exact = 0


@dataclass(frozen=True, slots=True)
class ArmSums:
    """Sums over the n users of an arm, with numerator x and denominator y of the metric each.

    ``x_scale`` is what one unit of x is worth (1e-6 for micros). A metric per user has y = 1 for
    everybody. ``nonzero`` counts the users with x ≠ 0, of a percentile those beyond it.
    ``denominators``: of a composite Σy and Σy² of each of its parts. ``largest``: the users with
    most of the denominator, where that is known. ``obstacle``: why there is no interval, where that
    follows from how the sums were made.

    >>> found = ArmSums.of([(1, 10), (0, 20)])  # 1 click of 10 impressions, and 0 of 20
    >>> found.x, found.y, found.yy, found.xy, found.nonzero
    (1, 30, 500, 10, 1)
    """

    n: int = 0
    x: Exact = 0
    xx: Exact = 0
    y: Exact = 0
    yy: Exact = 0
    xy: Exact = 0
    nonzero: int = 0
    x_scale: float = 1.0
    before: BeforeSums | None = None
    denominators: tuple[tuple[Exact, Exact], ...] = ()
    largest: Largest | None = None
    obstacle: str = ""

    @staticmethod
    def of(users: Iterable[tuple[int, ...]], x_scale: float = 1.0) -> ArmSums:
        """Sums of users given as (x, y), or all of them as (x, y, u, v)."""
        x, y, *then = tuple(zip(*users, strict=True)) or ((), ())
        before = None
        if then:
            u, v = then
            products = ((u, u), (u, v), (v, v), (x, u), (x, v), (y, u), (y, v))
            before = BeforeSums(sum(u), sum(v), *(_dot(a, b) for a, b in products))
        squares = _dot(x, x), sum(y), _dot(y, y), _dot(x, y)
        return ArmSums(len(x), sum(x), *squares, sum(map(bool, x)), x_scale, before)

    @property
    def is_per_user(self) -> bool:
        """Whether every user's denominator is 1."""
        return not self.denominators and self.y == self.yy == self.n

    @property
    def weights(self) -> tuple[tuple[Exact, Exact], ...]:
        """Σy and Σy² of each denominator."""
        return self.denominators or ((self.y, self.yy),)

    @property
    def is_possible(self) -> bool:
        """Whether users can have such sums (Cauchy and Schwarz); after a bound of memory was hit,
        what is left may be none."""
        return (
            self.n >= 0
            and self.n * self.xx >= self.x * self.x
            and self.n * self.yy >= self.y * self.y
            and self.xx * self.yy >= self.xy * self.xy
        )


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(map(mul, a, b))
