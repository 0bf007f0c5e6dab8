"""The sums of all experiments in one partition, day by day, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from streamer.encoding.limbs import Columns
from streamer.stats.experiments.trials import UNEXPOSED, CompiledExperiment

_ALL_OUTCOMES = 0
"""The key of the outcomes of all users on a day."""


class FoundExperiment(msgspec.Struct, array_like=True, frozen=True):
    """An experiment that events name and settings do not, in one partition. ``slot``: where its
    sums are; ``arms``: in the order of their numbers; first and last day on which an event named
    it; ``first_ms``: when it exposed a user first, None: it did not; ``named_by``: of the key and
    of each arm the smallest hash of a person of whom an event named it."""

    slot: int
    key: str
    arms: tuple[str, ...]
    first_day: int
    last_day: int
    code: int
    """Of its stored exposures."""
    first_ms: int | None = None
    named_by: tuple[int, ...] = ()


@dataclass(frozen=True)
class ExperimentSlot:
    """Where the sums of an experiment that was found are. ``counted``: as it is counted; ``arms``:
    the names of its arms, by number."""

    counted: CompiledExperiment
    arms: Sequence[str]


@dataclass(frozen=True)
class ExperimentSums:
    """``first_keys``: ``CompiledExperiment.shape`` → the first of its keys on each day; ``days``:
    day since 1970-01-01 → columns of the day."""

    first_keys: Mapping[str, int] = field(default_factory=dict)
    days: Mapping[int, Columns] = field(default_factory=dict)
    _found: dict[str, Columns] = field(default_factory=dict, compare=False, repr=False)

    def of(self, trial: CompiledExperiment, slot: ExperimentSlot | None = None) -> Columns | None:
        """The sums of an experiment: columns ``key``, one number of arm, day and statistic, and
        limbs. None where it is not counted. ``slot``: of one that was found."""
        counted = trial if slot is None else slot.counted
        if counted.shape not in self.first_keys:
            return None
        if trial.shape not in self._found:
            numbers = range(len(trial.arms) + 1) if slot is None else arm_numbers(trial, slot.arms)
            self._found[trial.shape] = _joined(list(self._parts(counted, trial, numbers)))
        return self._found[trial.shape]

    def _parts(
        self, counted: CompiledExperiment, trial: CompiledExperiment, numbers: Sequence[int]
    ) -> Iterator[Columns]:
        """``numbers``: of the arms as they are counted → those that they have in the experiment."""
        stats, length, own = trial.stats, len(trial.days), np.array(numbers, np.int64)
        first = self.first_keys[counted.shape]
        stop = first + len(own) * stats
        for day in sorted(set(self.days).intersection(trial.days)):
            columns, at = self.days[day], day - trial.days.start
            start, end = np.searchsorted(columns["key"], [first, stop])
            arm, stat = np.divmod(columns["key"][start:end] - first, stats)
            key = (own[arm] * length + at) * stats + stat
            yield {name: key if name == "key" else c[start:end] for name, c in columns.items()}
            is_all = columns["key"][:1] == _ALL_OUTCOMES
            key = np.full(is_all.sum(), at * stats + UNEXPOSED)
            yield {name: key if name == "key" else c[:1][is_all] for name, c in columns.items()}


def arm_numbers(trial: CompiledExperiment, arms: Sequence[str]) -> list[int]:
    """The number in an experiment of no arm, and of each of these."""
    return [0, *(1 + trial.arms.index(arm) for arm in arms)]


def rebased(
    columns: Columns, counted: CompiledExperiment, trial: CompiledExperiment, arms: Sequence[str]
) -> Columns:
    """Columns of sums with the keys of a slot, with those of the experiment that it counts."""
    place, stat = np.divmod(columns["key"], counted.stats)
    arm, at = np.divmod(place, len(counted.days))
    day = at + counted.days.start - trial.days.start
    own = np.array(arm_numbers(trial, arms), np.int64)[arm]
    key = (own * len(trial.days) + day) * trial.stats + stat
    return {name: key if name == "key" else column for name, column in columns.items()}


def _joined(parts: list[Columns]) -> Columns:
    """Columns below each other; where one lacks a limb, it is 0."""
    names = dict.fromkeys(("key", "limb_0", *(name for part in parts for name in part)))
    none = np.zeros(0, np.int64)
    return {
        name: np.concatenate([none, *(_column(part, name) for part in parts)]) for name in names
    }


def _column(part: Columns, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return part[name] if name in part else np.zeros(len(part["key"]), np.int64)
