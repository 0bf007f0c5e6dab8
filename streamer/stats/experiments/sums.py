"""What one arm of an experiment adds up: integers over users, so that nothing is rounded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from math import isfinite


@dataclass(frozen=True, slots=True)
class BeforeSums:
    """Sums of the same users before the experiment, for CUPED.

    A user's numerator then is u, the denominator v, both 0 for who was not there; ``uu`` is Σu²,
    ``xu`` is Σxu, and so on, over the n users of the arm.
    """

    u: int = 0
    v: int = 0
    uu: int = 0
    uv: int = 0
    vv: int = 0
    xu: int = 0
    xv: int = 0
    yu: int = 0
    yv: int = 0

    def plus(self, other: BeforeSums, sign: int) -> BeforeSums:
        """Sums of both; with ``sign`` -1 what is left without the other."""
        names = [field.name for field in fields(self)]
        return BeforeSums(*(getattr(self, n) + sign * getattr(other, n) for n in names))


@dataclass(frozen=True, slots=True)
class ArmSums:
    """Sums over the n users of an arm, with numerator x and denominator y of the metric each.

    ``x_scale`` and ``y_scale`` are what one unit of x and of y is worth (1e-6 for micros). A metric
    per user has y = 1 for everybody. ``nonzero`` counts the users with x ≠ 0. Users are added, and
    retracted, exactly:

    >>> a = ArmSums.of([(1, 10), (0, 20)])  # 1 click of 10 impressions, and 0 of 20
    >>> a + ArmSums.of([(2, 5)]) == ArmSums.of([(0, 20), (2, 5), (1, 10)])
    True
    >>> a - a == ArmSums()
    True
    """

    n: int = 0
    x: int = 0
    xx: int = 0
    y: int = 0
    yy: int = 0
    xy: int = 0
    nonzero: int = 0
    x_scale: float = 1.0
    y_scale: float = 1.0
    before: BeforeSums | None = None

    def __post_init__(self) -> None:
        for name in ("x_scale", "y_scale"):
            scale = getattr(self, name)
            if not (isfinite(scale) and scale > 0):
                raise ValueError(f"{name} is {scale!r}: must be finite and above 0")

    @staticmethod
    def of(users: Iterable[tuple[int, ...]], x_scale: float = 1.0, y_scale: float = 1.0) -> ArmSums:
        """Sums of users given as (x, y), or all of them as (x, y, u, v)."""
        total = ArmSums(x_scale=x_scale, y_scale=y_scale)
        for i, (x, y, *then) in enumerate(users):
            before = None
            if then:
                u, v = then
                before = BeforeSums(u, v, u * u, u * v, v * v, x * u, x * v, y * u, y * v)
            squares = x * x, y, y * y, x * y
            one = ArmSums(1, x, *squares, int(x != 0), x_scale, y_scale, before)
            total = total + one if i else one
        return total

    def __add__(self, other: ArmSums) -> ArmSums:
        return self._plus(other, 1)

    def __sub__(self, other: ArmSums) -> ArmSums:
        return self._plus(other, -1)

    @property
    def scale(self) -> float:
        """What one unit of Σx / Σy is worth."""
        return self.x_scale / self.y_scale

    @property
    def kind(self) -> tuple[float, float, bool]:
        """What sums must share to be added or compared: both scales, and whether there is a time
        before."""
        return self.x_scale, self.y_scale, self.before is not None

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

    def _plus(self, other: ArmSums, sign: int) -> ArmSums:
        if self.kind != other.kind:
            raise ValueError(
                f"sums of {self.kind} and of {other.kind} (x_scale, y_scale, with a time before): "
                "must be of one kind to be added"
            )
        names = ("n", "x", "xx", "y", "yy", "xy", "nonzero")
        added = {name: getattr(self, name) + sign * getattr(other, name) for name in names}
        before = self.before.plus(other.before, sign) if self.before and other.before else None
        return replace(self, **added, before=before)
