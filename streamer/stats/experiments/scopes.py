"""Since when what experiments need is counted, through changes of the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamer.settings.durations import DAY_MS
from streamer.stats.experiments.exposures import Exposure
from streamer.stats.experiments.trials import Trial

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
