"""What is fixed before an experiment starts, and how one metric of it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from streamer.settings.limits import MIN_USERS
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
    Below ``min_users`` in an arm nothing is said. Where there are sums of the time before, the lift
    adjusted by them decides: the better looking one of the two would be found too often.
    """

    higher_is_better: bool = True
    margin: float | None = None
    min_users: int = MIN_USERS
