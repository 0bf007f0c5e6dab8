"""Which fields are the item: those of impressions and feedback that have most values in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamer.ingest.discovery.profile import Seen
from streamer.settings.paths import Path

_WHOLE = re.compile(r"(-?\d+)\.0")
_TIMES = 2
"""A field goes before one with a likelier name if it has so many times its common values."""
_LEAST_COMMON = 0.4
"""Share of the values of feedback that impressions of a sample have, too, where an id stands for
the item; of a field of the same name one value is enough."""
_FEW = 0.05
"""Share of impressions that may have the id of another one."""


@dataclass(frozen=True, eq=False)
class ItemField:
    """A field that may be the item: of the record, or of the elements of a list."""

    list: Path | None
    path: Path | None
    """None where elements are ids themselves, and where there is no item."""
    seen: Seen
    is_named: bool = True
    impression: Path | None = None
    """The id of the impression, by which feedback without an item joins."""

    @property
    def values(self) -> set[str]:
        """Its values; whole numbers alike, however they are written."""
        return {whole(text) for text in self.seen.values}


def whole(text: str) -> str:
    """A number without decimals that are 0.

    >>> whole("78.0"), whole("78.5"), whole("v1.0")
    ('78', '78.5', 'v1.0')
    """
    found = _WHOLE.fullmatch(text)
    return found[1] if found else text


def are_floats(seen: Seen) -> bool:
    """Whether whole numbers are written with decimals that are 0."""
    return bool(seen.values) and all(_WHOLE.fullmatch(text) for text in seen.values)


def chosen(
    shown: Sequence[ItemField], others: Sequence[Sequence[ItemField]]
) -> tuple[ItemField | None, list[ItemField | None]]:
    """The item of impressions, and of each other kind: those with most common values, the first
    of equals. ``shown``, ``others``: what they may be, the likeliest first."""
    counts = [
        sum(max((_common(one, other) for other in of), default=0) for of in others) for one in shown
    ]
    own = _best(shown, counts)
    if own is None:
        return None, [next(iter(of), None) for of in others]
    return own, [_best(of, [_common(own, one) for one in of]) for of in others]


def shared(shown: Sequence[ItemField], other: Sequence[ItemField]) -> list[ItemField] | None:
    """An id of impressions, and that of feedback which names the impression by it: for feedback
    that says no item."""
    for one in sorted(shown, key=lambda one: -one.seen.distinct):
        is_alone = one.list is None and one.seen.repeats <= _FEW * one.seen.count
        for own in other if is_alone else ():
            least = 1 if own.path == one.path else _LEAST_COMMON * len(own.values)
            if own.values and _common(one, own) >= least:
                return [replace(of, path=None, impression=of.path) for of in (one, own)]
    return None


def _common(one: ItemField, other: ItemField) -> int:
    return len(one.values & other.values)


def _best(fields: Sequence[ItemField], counts: Sequence[int]) -> ItemField | None:
    """The likeliest field, unless another has many more common values."""
    if not fields:
        return None
    most = max(range(len(fields)), key=lambda i: counts[i])
    return fields[most] if counts[most] > _TIMES * counts[0] else fields[0]
