"""Schedules of switchback experiments: how often and at which hours each arm has its turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.settings.durations import DAY_MS

_DAYS = 28
"""Days over which a schedule is looked at."""
_QUARTER_MS = DAY_MS // 4
MOST_APART = 0.2
"""By how much an arm's share of a quarter of the day may differ from its share of all slots."""


@dataclass(frozen=True, slots=True)
class TiedToHours:
    """An arm has another share of some hours than of all."""

    arm: str
    hours: tuple[int, int]
    share: float
    of_all: float

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        first, last = self.hours
        return (
            f"The schedule gives arm {self.arm} {self.share:.0%} of the slots from {first}:00 to "
            f"{last}:00 UTC and {self.of_all:.0%} of all: what differs by the hour looks like an "
            "effect. Draw the arms of the slots at random, or turn their order each day."
        )


def shares_of(schedule: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Arm → its share of the slots of a schedule, each list counting the same.

    >>> shares_of({"*": ["A", "B", "B", "B"]})
    {'A': 0.25, 'B': 0.75}
    """
    found: Counter[str] = Counter()
    for arms in schedule.values():
        for arm in arms:
            found[arm] += 1 / len(arms) / len(schedule)  # type: ignore[assignment]
    return {arm: float(found[arm]) for arm in sorted(found)}


def tied_to_hours(schedule: Mapping[str, Sequence[str]], slot_ms: int) -> TiedToHours | None:
    """The arm whose share of some quarter of the day differs most from its share of all slots, if
    that is by more than ``MOST_APART``. Slots of a day have all hours.

    >>> tied = tied_to_hours({"*": ["A", "B"]}, 12 * 3_600_000)
    >>> tied.arm, tied.hours, tied.share, tied.of_all
    ('A', (0, 6), 1.0, 0.5)
    >>> tied_to_hours({"*": ["A", "B", "B", "A"]}, 12 * 3_600_000)
    >>> tied_to_hours({"*": ["A", "B"]}, DAY_MS)
    """
    if slot_ms == DAY_MS:
        return None
    by_quarter: dict[int, Counter[str]] = {quarter: Counter() for quarter in range(4)}
    for arms in schedule.values():
        for slot in range(_DAYS * DAY_MS // slot_ms):
            for quarter in _quarters(slot * slot_ms % DAY_MS, slot_ms):
                by_quarter[quarter][arms[slot % len(arms)]] += 1
    every = sum(by_quarter.values(), Counter[str]())
    found = [
        TiedToHours(arm, (6 * quarter, 6 * quarter + 6), share, of_all)
        for arm in sorted(every)
        for quarter, its in by_quarter.items()
        for share, of_all in [(its[arm] / its.total(), every[arm] / every.total())]
    ]
    worst = max(found, key=lambda each: abs(each.share - each.of_all))
    return worst if abs(worst.share - worst.of_all) > MOST_APART else None


def _quarters(start_ms: int, slot_ms: int) -> range:
    """The quarters of the day that a slot has a part of."""
    return range(start_ms // _QUARTER_MS, (start_ms + slot_ms - 1) // _QUARTER_MS + 1)
