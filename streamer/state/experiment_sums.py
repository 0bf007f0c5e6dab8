"""The sums of all experiments in one partition, day by day, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from streamer.encoding.limbs import Columns
from streamer.stats.experiments.trials import UNEXPOSED, CompiledExperiment

_ALL_OUTCOMES = 0
"""The key of the outcomes of all users on a day."""


@dataclass(frozen=True)
class ExperimentSums:
    """``first_keys``: ``CompiledExperiment.shape`` → the first of its keys on each day; ``days``:
    day since 1970-01-01 → columns of the day."""

    first_keys: Mapping[str, int] = field(default_factory=dict)
    days: Mapping[int, Columns] = field(default_factory=dict)
    _found: dict[str, Columns] = field(default_factory=dict, compare=False, repr=False)

    def of(self, trial: CompiledExperiment) -> Columns | None:
        """The sums of an experiment: columns ``key``, one number of arm, day and statistic, and
        limbs. None where it is not counted."""
        if trial.shape not in self.first_keys:
            return None
        if trial.shape not in self._found:
            self._found[trial.shape] = _joined(list(self._parts(trial)))
        return self._found[trial.shape]

    def _parts(self, trial: CompiledExperiment) -> Iterator[Columns]:
        first, length = self.first_keys[trial.shape], len(trial.days)
        stop = first + (len(trial.arms) + 1) * trial.stats
        for day in sorted(set(self.days).intersection(trial.days)):
            columns, at = self.days[day], day - trial.days.start
            start, end = np.searchsorted(columns["key"], [first, stop])
            arm, stat = np.divmod(columns["key"][start:end] - first, trial.stats)
            key = (arm * length + at) * trial.stats + stat
            yield {name: key if name == "key" else c[start:end] for name, c in columns.items()}
            is_all = columns["key"][:1] == _ALL_OUTCOMES
            key = np.full(is_all.sum(), at * trial.stats + UNEXPOSED)
            yield {name: key if name == "key" else c[:1][is_all] for name, c in columns.items()}


def _joined(parts: list[Columns]) -> Columns:
    """Columns below each other; where one lacks a limb, it is 0."""
    names = dict.fromkeys(("key", "limb_0", *(name for part in parts for name in part)))
    lengths = [len(part["key"]) for part in parts]
    return {
        name: np.concatenate(
            [
                np.zeros(0, np.int64),
                *(
                    part.get(name, np.zeros(n, np.int64))
                    for part, n in zip(parts, lengths, strict=True)
                ),
            ]
        )
        for name in names
    }
