"""What the core adds up over impressions that say something of other policies.

The *weight* of an impression for a policy is the policy's probability of showing the item there,
over that of the policy that did (`propensity`), at most ``metrics.max_weight``: a whole number of
1e-6, rounded once. Squares have the same unit; doubly robust values are whole numbers of 1e-9.
"""

from __future__ import annotations

from typing import Any

from streamer.metrics.layout import Stat
from streamer.metrics.named_sums import NamedSums
from streamer.settings.model import Settings

WEIGHT_UNIT = 1_000_000
"""Units of a weight that is 1."""
VALUE_UNIT = 1_000_000_000
"""Units of a doubly robust value that is 1."""
PREFIX = "off_policy."
"""How the names of these sums begin."""
QUANTITIES = {
    "impressions": 1,
    "clipped": 1,
    "weight": WEIGHT_UNIT,
    "weight_square": WEIGHT_UNIT,
    "clicked_weight": WEIGHT_UNIT,
    "estimated": 1,
    "doubly_robust": VALUE_UNIT,
}
"""What is added up for each policy, and how many units are 1."""


def name_of(quantity: str, policy: str) -> str:
    """The name of a sum: as a statistic, and as a component of experiments and alerts.

    >>> name_of("weight", "new")
    'off_policy.weight@new'
    """
    return f"{PREFIX}{quantity}@{policy}"


def core_name(name: str, settings: Settings) -> dict[str, Any]:
    """What the core calls the sum of this name."""
    quantity, _, policy = name.removeprefix(PREFIX).partition("@")
    names = [each.name for each in settings.policies]
    return {"policy": names.index(policy), "quantity": quantity}


def names(settings: Settings) -> tuple[str, ...]:
    """The sums that the family needs, in the order that they have by group of users."""
    if "off_policy" not in settings.metrics.families:
        return ()
    return tuple(name_of(each, policy.name) for policy in settings.policies for each in QUANTITIES)


SUMS = NamedSums(PREFIX, "off_policy", "off_policy_by_user_group", names, core_name)


def stats(settings: Settings) -> tuple[Stat, ...]:
    """The statistics of the family."""
    largest = round(settings.metrics.max_weight * VALUE_UNIT)
    own = [_stat(name, settings) for name in names(settings)]
    return (*own, *SUMS.group_stats(settings, largest))


def _stat(name: str, settings: Settings) -> Stat:
    quantity = name.removeprefix(PREFIX).partition("@")[0]
    unit, most = QUANTITIES[quantity], settings.metrics.max_weight
    if unit == 1:
        return Stat(name, "impressions")
    power = 2 if quantity == "weight_square" else 1
    return Stat(name, f"{1 / unit:g}", largest=round(most**power * unit))
