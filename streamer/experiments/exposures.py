"""Since when each user is exposed to an experiment: later outcomes count towards the arm.

Whether an event counts is known for good once its user was exposed no later than it, or once no
impression that early can be accepted any more. Until then it is kept by its own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from streamer.experiment_settings import DAY_MS

if TYPE_CHECKING:
    from streamer.experiments.trials import Trial


@dataclass(frozen=True)
class Exposure:
    """What exposes a user: an impression under one of these values, on this day (since 1970-01-01)
    or later. ``is_attributed``: every event counts whenever it was, to the arm that is its own."""

    dimension: str
    arms: tuple[str, ...]
    first_day: int
    is_attributed: bool = False

    @cached_property
    def name(self) -> str:
        """Under which it is stored what is counted, and since when."""
        how = "attributed" if self.is_attributed else "exposed"
        return f"{how} {self.dimension}={'|'.join(sorted(self.arms))} from {self.first_day}"

    def code(self, since_ms: int) -> int:
        """A number below 2**62 for the rows that are counted since then: those counted before, with
        a gap, are others."""
        name = f"{self.name} since {since_ms}".encode()
        return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 2


Scope = tuple[int, int, int, int]
"""First day and end of what is wanted of an exposure, since when (ms) all of it is counted, and
when it was first counted (rows from before an interruption are others)."""


def all_since(since: Mapping[str, int], scopes: Mapping[str, Scope]) -> dict[str, int]:
    """Component or exposure → the stream time (ms) from which on it is counted; 0: always."""
    return {**since, **{name: since_ms for name, (_, _, since_ms, _) in scopes.items()}}


def wanted_days(trials: Sequence[Trial]) -> dict[Exposure, range]:
    """What exposes users → the days that are wanted."""
    wanted: dict[Exposure, range] = {}
    for trial in trials:
        first, end = trial.first_day, trial.days.stop
        known = wanted.get(trial.exposure, range(first, end))
        wanted[trial.exposure] = range(min(known.start, first), max(known.stop, end))
    return wanted


def scopes_after(
    trials: Sequence[Trial], known: Mapping[str, Scope], stream_ms: int
) -> dict[str, Scope]:
    """What is counted of exposures from this stream time on, where this was counted before."""
    scopes: dict[str, Scope] = {}
    for exposure, days in wanted_days(trials).items():
        first, end, before = days.start, days.stop, known.get(exposure.name)
        if before is None:
            scopes[exposure.name] = (first, end, stream_ms, stream_ms)
            continue
        is_whole = first >= before[0]
        if end > before[1]:  # what came after its end was not counted
            is_whole = is_whole and stream_ms // DAY_MS < before[1]
        since_ms = before[2] if is_whole else stream_ms
        scopes[exposure.name] = (first, end, since_ms, before[3])
    return scopes
