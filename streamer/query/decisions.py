"""Which decision on an experiment counts: the first one, at the end of an earlier day or now.

Nothing is stored of it: each look is computed again from the sums up to its day, which late events
may correct. What has not changed is not computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from streamer.encoding.limbs import Columns
from streamer.stats.experiments.recommendation import Recommendation
from streamer.stats.experiments.trials import Trial

MAX_LOOKS = 8192
"""Looks that are kept, of all experiments."""


class Looks:
    """Recommendations at the end of earlier days, by what they were computed from."""

    def __init__(self) -> None:
        self._found: dict[bytes, Recommendation] = {}

    def at(self, key: bytes, compute: Callable[[], Recommendation]) -> Recommendation:
        """The recommendation from what ``key`` is of, which is computed where it is not known."""
        known = self._found.get(key)
        if known is not None:
            return known
        if len(self._found) >= MAX_LOOKS:
            self._found = {}
        return self._found.setdefault(key, compute())


LOOKS = Looks()


def keys_by_day(
    trial: Trial, parts: Sequence[Columns], settings: str, days: Sequence[int]
) -> Iterator[tuple[int, bytes]]:
    """For each of ``days``, ascending, a digest of the settings and of all sums up to it."""
    chain = blake2b(f"{trial.shape} {settings}".encode(), digest_size=16)
    of_parts = []
    for found in parts:
        day_of = found["key"] // trial.stats % len(trial.days) + trial.days.start
        order = np.argsort(day_of, kind="stable")
        of_parts.append((day_of[order], [column[order] for column in found.values()]))
    before = trial.days.start
    for day in days:
        for number, (sorted_days, columns) in enumerate(of_parts):
            first, stop = (int(np.searchsorted(sorted_days, each)) for each in (before, day + 1))
            chain.update(f"{number} {day} {stop - first}".encode())
            for column in columns:
                chain.update(np.ascontiguousarray(column[first:stop]).tobytes())
        before = day + 1
        yield day, chain.copy().digest()
