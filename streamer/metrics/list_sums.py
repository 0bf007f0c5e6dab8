"""What the core adds up over lists: slates by what they show, whatever comes of it.

A list's diversity at a cut-off is the share of the pairs of its items whose categories differ: a
whole number of 1e-6, rounded once; items without a category are left out.
"""

from __future__ import annotations

from typing import Any

from streamer.metrics.layout import Stat
from streamer.metrics.named_sums import NamedSums
from streamer.settings.model import Settings

UNIT = 1_000_000
"""Units of a diversity that is 1."""
PREFIX = "lists."
"""How the names of these sums begin."""
LISTS, DIVERSITY = "lists", "diversity"


def name_of(quantity: str, k: int) -> str:
    """The name of a sum: as a statistic, and as a component of experiments and alerts.

    >>> name_of(DIVERSITY, 10)
    'lists.diversity@10'
    """
    return f"{PREFIX}{quantity}@{k}"


def core_name(name: str, settings: Settings) -> dict[str, Any]:
    """What the core calls the sum of this name."""
    quantity, _, k = name.removeprefix(PREFIX).partition("@")
    return {"k": int(k), "quantity": quantity}


def names(settings: Settings) -> tuple[str, ...]:
    """The sums that the family needs, in the order that they have by group of users."""
    if "diversity" not in settings.metrics.families:
        return ()
    return tuple(name_of(each, k) for k in settings.metrics.k for each in (LISTS, DIVERSITY))


SUMS = NamedSums(PREFIX, "lists", "lists_by_user_group", names, core_name)


def stats(settings: Settings) -> tuple[Stat, ...]:
    """The statistics of the family."""
    own = []
    for name in names(settings):
        is_count = name.startswith(PREFIX + LISTS)
        own.append(Stat(name, "lists") if is_count else Stat(name, "1e-06", largest=UNIT))
    return (*own, *SUMS.group_stats(settings, UNIT))
