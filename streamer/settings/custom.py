"""Settings of custom metrics: numeric fields of events that are added up without code."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamer.settings.section import Section

KNOWN_FIELDS = {
    "impressions": ("score",),
    "clicks": ("dwell_ms",),
    "conversions": ("value",),
    "sessions": ("dwell_ms",),
}
"""Kind of events → its own numeric fields that custom metrics can read, too."""


class Custom(Section, frozen=True):
    """[[custom]]: a metric over any numeric field of events; the family `custom` is on where there
    is one."""

    name: str
    """Value of the label `custom`: `a-z`, `0-9` and `_`."""
    kind: str
    """Which events: `impressions` (each shown item), `clicks` (feedback of every kind),
    `conversions` or `sessions` (each event of that topic)."""
    field: str | None = None
    """A field of theirs with a number from -1e12 to 1e12 (of items in a list: the item's own, else
    the event's); also `score`, `dwell_ms` or `value`. Without it each event is 1."""
    where: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Dimension = values: only events under these, which are always kept."""
    quantiles: bool = False
    """Whether `custom_quantile` is shown, too; of at most 4 metrics."""

    @property
    def own_field(self) -> str | None:
        """The field, where nothing else reads it."""
        return None if self.field in KNOWN_FIELDS.get(self.kind, ()) else self.field


def own_fields(customs: Iterable[Custom], kind: str) -> tuple[str, ...]:
    """Fields of a kind of events that only custom metrics read, each once."""
    found = (each.own_field for each in customs if each.kind == kind)
    return tuple(dict.fromkeys(field for field in found if field is not None))
