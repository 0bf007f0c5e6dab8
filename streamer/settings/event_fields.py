"""The fields of events as the core declares them, and the kinds of events by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamer import _core
from streamer.settings import limits

LINE_TYPES = {line: kind for kind, line in _core.EVENT_KINDS}
"""``type`` of a line in a file, and key of ``[sources.kind]`` → kind."""
REFUND = _core.REFUND
"""Another ``type`` of conversions: of those that take their order back."""
TYPE_OF_KIND = {kind: line for line, kind in LINE_TYPES.items()}
ALL_KINDS = tuple(LINE_TYPES.values())
"""The kinds of events."""
EXPOSURES = "exposures"
"""The kind of events that only put a user into an arm of an experiment."""
KINDS = tuple(kind for kind in ALL_KINDS if kind != EXPOSURES)
"""The kinds of events that are counted; the four topics by their role."""
ACTIONS = tuple(_core.ACTIONS)
"""What a session event can report."""


@dataclass(frozen=True)
class EventField:
    """A field of events. ``kinds``: of events that have it; ``in_items``: of these, those whose
    elements of ``items`` have it; ``holds``: what it may hold in a word, ``expected`` in words,
    numbers from ``low`` to ``high``; ``reason``: that of refusals; ``about``: what it is."""

    name: str
    kinds: tuple[str, ...]
    in_items: tuple[str, ...]
    holds: str
    low: float | None
    high: float | None
    expected: str
    reason: str
    about: str


def _bound(bound: tuple[float, str]) -> float:
    times, name = bound
    return times * getattr(limits, name) if name else times


def _declared() -> dict[str, EventField]:
    fields = {}
    for name, kinds, in_items, holds, between, expected, reason, about in _core.FIELDS:
        low, high = map(_bound, between) if between is not None else (None, None)
        words = expected.format_map(vars(limits))
        of = (tuple(kinds), tuple(in_items))
        fields[name] = EventField(name, *of, holds, low, high, words, reason, about)
    return fields


_DECLARED = _declared()
FIELDS: Mapping[str, EventField] = {n: f for n, f in _DECLARED.items() if "." not in n}
"""By name."""
NAMED_BY_SETTINGS: Mapping[str, EventField] = {n: f for n, f in _DECLARED.items() if "." in n}
"""Those whose names are settings, by these: ``ratios.field``."""
ALL_FIELDS = tuple(FIELDS)
MOMENTS = tuple(field.name for field in FIELDS.values() if field.holds in ("time", "span"))
"""Fields that are times."""
NUMBERS = tuple(field.name for field in FIELDS.values() if field.low is not None)
"""Fields that are numbers, and nothing else."""
ELEMENT_FIELDS = {
    kind: tuple(field.name for field in FIELDS.values() if kind in field.in_items)
    for kind in ALL_KINDS
}
"""Kind of events → fields of an element of ``items``."""


def field_names(kind: str) -> tuple[str, ...]:
    """Our names of all fields of a kind of events, without those that the settings add.

    >>> field_names("conversions")[5:]
    ('type', 'item_id', 'impression_id', 'items', 'value')
    """
    return tuple(field.name for field in FIELDS.values() if kind in field.kinds)
