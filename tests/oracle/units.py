"""Units of experiments that are not users: values of a field, or slots of time of one.

A value stands for all that carries it on a day: it is exposed from the day on whose events say its
arm, and has no time within a day. A slot has its arm from the settings, and exists where an
accepted event says its value in it; an event in its washout is nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from streamer.settings.durations import DAY_MS
from streamer.settings.experiments import Experiment
from streamer.settings.model import Settings

from .arms import Saw
from .dimensions import Dims, Kept
from .shape import Event
from .user_days import User


class Unit(NamedTuple):
    """A unit as if it were a user, and the time under which an event counts; the arm of a slot."""

    user: User
    at_ms: int
    arm: str = ""


class Units:
    """Those of one experiment."""

    def __init__(self, experiment: Experiment, kept: Kept, settings: Settings) -> None:
        self.experiment, self.kept = experiment, kept
        field = experiment.unit_field
        self.place = settings.kept_fields.index(field) if field else None

    def of(self, dims: Dims, event_ms: int) -> Unit | None:
        """The unit of what happened under these values at this time."""
        value = "" if self.place is None else self.kept.shown(dims)[self.place]
        if value in ("unknown", "other"):
            return None
        its = self.experiment.switchback
        if its is None:
            return Unit((0, f"user {value}"), event_ms // DAY_MS * DAY_MS)
        start_ms = self.experiment.days.start * DAY_MS
        schedule = its.schedule if isinstance(its.schedule, dict) else {"*": its.schedule}
        arms = schedule.get(value, schedule.get("*"))
        number, since_ms = divmod(event_ms - start_ms, its.slot_ms)
        if number < 0 or since_ms < its.washout_ms or not arms:
            return None
        at_ms = start_ms + number * its.slot_ms
        return Unit((0, f"user {value} in {number}"), at_ms, arms[number % len(arms)])

    def saw(self, events: list[Event], said: Iterable[Saw]) -> dict[User, list[Saw]]:
        """Which arms each unit saw: of slots all that there are events of."""
        found: dict[User, list[Saw]] = defaultdict(list)
        if self.experiment.switchback is not None:
            said = [Saw(event.event_ms, "", "schedule", event) for event in events]
        for saw in said:
            unit = self.of(saw.event.dims, saw.event_ms)
            if unit is not None:
                its = Saw(unit.at_ms, unit.arm or saw.arm, saw.how, saw.event)
                found[unit.user].append(its)
        return found
