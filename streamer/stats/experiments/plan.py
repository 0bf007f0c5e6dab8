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
    compared arms. ``power`` is that of the least detectable lift. ``at_end``: the arms are compared
    by one look at the end, set before the start, and until then only harm is said, by the interval
    at any time; ``is_over``: that end is there.
    """

    control: str
    split: Mapping[str, float]
    alpha: float = 0.05
    tuned_users: int = 5000
    power: float = 0.8
    at_end: bool = False
    is_over: bool = False

    @property
    def is_final(self) -> bool:
        """Whether this is the one look at the end."""
        return self.at_end and self.is_over

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

    A margin makes it a guardrail: a loss up to it is no harm; ``margin`` is relative (0.01: one in
    a hundred), ``margin_absolute`` in the unit of the metric, and at most one is set.
    Below ``min_users`` in an arm there is no interval at any time. ``can_be_negative``: the metric;
    without it no relative interval goes below -1. ``form``: how its values are written (percent,
    seconds or number). ``is_amount``: a value above 0 says how much, not only that there is one, so
    that who has any decides only with the lift. ``is_percentile``, ``is_ramp`` (on some days the
    split is not that of the plan): who has any says nothing of it.
    Where there are sums of the time before, the lift adjusted by them decides: the better looking
    one of the two would be found too often.
    """

    higher_is_better: bool = True
    margin: float | None = None
    margin_absolute: float | None = None
    min_users: int = MIN_USERS
    can_be_negative: bool = True
    is_amount: bool = False
    is_percentile: bool = False
    is_ramp: bool = False
    form: str = "number"

    @property
    def is_guardrail(self) -> bool:
        """Whether it has a margin."""
        return self.margin is not None or self.margin_absolute is not None

    @property
    def limit(self) -> tuple[float, float]:
        """(w, s) of the contrast R_t - w R_c + s that is on the good side of 0 where a loss as
        large as the margin is excluded.

        >>> Rule(margin=0.25).limit, Rule(higher_is_better=False, margin_absolute=3.0).limit
        ((0.75, 0.0), (1.0, -3.0))
        """
        sign = 1 if self.higher_is_better else -1
        return 1 - sign * (self.margin or 0.0), sign * (self.margin_absolute or 0.0)

    def tolerated(self, control: float | None) -> float | None:
        """The loss that the margin allows, in the unit of the metric, at this value of the control;
        None where that is not known."""
        if self.margin is None or control is None:
            return self.margin_absolute
        return self.margin * control
