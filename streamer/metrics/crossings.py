"""Crossings: the sums of one metric by all dimensions together, for its window and the one before,
declared once for the core, the store and readers.

A pane has rows, each of the integers ``WHO`` and beyond, and its sample bits, in place of row 0.
The product of all dimensions is larger than any bound, so that a sample of the users stays in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streamer.metrics.rings import Ring
from streamer.settings import limits
from streamer.stats.experiments.trials import Measure

WHO, ABOVE, BELOW, HIGH, VALUES = range(5)
"""Places of a row: 1 more than the group of users and their leading zero bits (times
``stats.random_groups.GROUPS``), its sums, and 1 more than the code of each dimension's value."""


@dataclass(frozen=True)
class Crossings:
    """``dimensions``: all; ``lag_ms``: how long the metric changes by feedback still to come."""

    measure: Measure
    window_ms: int
    dimensions: tuple[str, ...]
    lag_ms: int

    @property
    def pane_ms(self) -> int:
        """Length of a pane: the window has ``limits.PANES_OF_ALERTS`` of them."""
        return self.window_ms // limits.PANES_OF_ALERTS

    @cached_property
    def rings(self) -> tuple[Ring]:
        """Panes of the two windows, as far behind stream time as feedback may change them."""
        panes = 2 * limits.PANES_OF_ALERTS + self.lag_ms // self.pane_ms + 2
        return (Ring(self.measure.name, self.pane_ms, panes),)

    @cached_property
    def shape(self) -> str:
        """What its sums depend on; they are stored under it."""
        return repr((self.measure.name, self.window_ms, self.dimensions, self.lag_ms, "crossings"))
