"""What is fixed before an experiment starts, and how one metric of it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isfinite

from streamer.stats.experiments.anytime import rho_squared


@dataclass(frozen=True)
class Plan:
    """The arms, and the errors that are accepted.

    ``split`` has the planned share of users by arm, in any unit (1:1 is 50:50). ``alpha`` is the
    probability, over all arms of a metric and all looks, that an arm without a lift is called
    better or worse. The anytime-valid intervals are the narrowest at ``tuned_users`` users in both
    compared arms. ``power`` is that of the least detectable lift.
    """

    control: str
    split: Mapping[str, float]
    alpha: float = 0.05
    tuned_users: int = 5000
    power: float = 0.8

    def __post_init__(self) -> None:
        if len(self.split) < 2 or self.control not in self.split:
            raise ValueError(
                f"split has the arms {sorted(self.split)}: must be two or more, with the control "
                f"{self.control!r}"
            )
        for arm, share in self.split.items():
            if not (isfinite(share) and share > 0):
                raise ValueError(f"split of {arm!r} is {share!r}: must be finite and above 0")
        for name in ("alpha", "power"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be between 0 and 1")
        if self.tuned_users < 1:
            raise ValueError(f"tuned_users is {self.tuned_users!r}: must be at least 1")

    @cached_property
    def shares(self) -> dict[str, float]:
        """Planned shares that add up to 1."""
        total = fsum(self.split.values())
        return {arm: share / total for arm, share in self.split.items()}

    @property
    def treatments(self) -> list[str]:
        """All arms but the control."""
        return [arm for arm in self.split if arm != self.control]

    @cached_property
    def rho2(self) -> float:
        """ρ² of the confidence sequences."""
        return rho_squared(self.alpha, self.tuned_users)


@dataclass(frozen=True)
class Rule:
    """How a metric is judged.

    ``margin`` makes it a guardrail: a relative loss up to it is no harm (0.01: one in a hundred).
    Below ``min_users`` in an arm nothing is said. ``adjust``: where there are sums of the time
    before, the lift adjusted by them decides. Which of the two decides is said beforehand: the
    better looking one would be found too often.
    """

    higher_is_better: bool = True
    margin: float | None = None
    min_users: int = 100
    adjust: bool = True

    def __post_init__(self) -> None:
        if self.margin is not None and not 0 < self.margin < 1:
            raise ValueError(f"margin is {self.margin!r}: must be between 0 and 1")
        if self.min_users < 2:
            raise ValueError(f"min_users is {self.min_users!r}: must be at least 2")
