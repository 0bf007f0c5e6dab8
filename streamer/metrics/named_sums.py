"""Sums that the core adds up under names of their own: each has a statistic, a place by group of
users in one wide statistic, and is a component of experiments and alerts under the same name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamer.metrics.layout import Stat
from streamer.settings.model import Settings
from streamer.stats.random_groups import GROUPS


@dataclass(frozen=True)
class NamedSums:
    """``prefix``: how their names begin; ``component``: what the core calls a component that is one
    of them; ``by_group``: the wide statistic; ``names``: those that settings need, in its order;
    ``core_name``: what the core calls the sum of a name."""

    prefix: str
    component: str
    by_group: str
    names: Callable[[Settings], tuple[str, ...]]
    core_name: Callable[[str, Settings], Any]

    def has(self, name: str) -> bool:
        """Whether a name is of one of them."""
        return name.startswith(self.prefix)

    def first_group(self, name: str, settings: Settings) -> int | None:
        """Where a sum's groups of users begin; None where it is not counted."""
        counted = self.names(settings)
        return counted.index(name) * GROUPS if name in counted else None

    def group_stats(self, settings: Settings, largest: int) -> list[Stat]:
        """The wide statistic, if it is needed. ``largest``: the largest addend of an event."""
        counted = self.names(settings)
        if not counted or "intervals" not in settings.metrics.families:
            return []
        keys = tuple(f"{name}/{group}" for name in counted for group in range(GROUPS))
        return [Stat(self.by_group, "sums by group of users", largest, len(keys), keys)]

    def core_component(self, name: str, settings: Settings) -> dict[str, Any]:
        """What the core calls the component of a name."""
        return {self.component: self.core_name(name, settings)}

    def core_spec(self, settings: Settings) -> list[dict[str, Any]]:
        """The core's spec of them."""
        return [
            {"statistic": name, "sum": self.core_name(name, settings)}
            for name in self.names(settings)
        ]
