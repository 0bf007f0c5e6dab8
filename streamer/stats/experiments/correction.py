"""Holm's correction: several arms are compared with the control, and one of them will look good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Corrected:
    """An adjusted p-value, and the level that the arm's own interval must have.

    The interval at ``alpha`` excludes 0 exactly if ``p_value`` is at most the level of the family.
    """

    p_value: float
    alpha: float


def holm(p_values: Sequence[float], alpha: float) -> list[Corrected]:
    """Holm 1979, "A simple sequentially rejective multiple test procedure", over m p-values.

    In ascending order the adjusted one is the largest (m - j) p_j so far, j from 0. Arms that are
    rejected have the level α / (m - j) of their own step, all others that of the first step that
    rejects nothing. With valid p-values, no arm without a lift is rejected, but with probability α.

    >>> [(c.p_value, c.alpha) for c in holm([0.03, 0.01, 0.2], 0.06)]
    [(0.06, 0.03), (0.03, 0.02), (0.2, 0.06)]
    """
    m = len(p_values)
    found: dict[int, Corrected] = {}
    largest = 0.0
    stopped: float | None = None
    for j, i in enumerate(sorted(range(m), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (m - j) * p_values[i]))
        level = alpha / (m - j)
        if stopped is None and p_values[i] > level:
            stopped = level
        found[i] = Corrected(largest, level if stopped is None else stopped)
    return [found[i] for i in range(m)]
