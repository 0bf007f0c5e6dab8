"""Settings of metrics of one's own.

Custom metrics add up numeric fields of events without code, composites weigh several metrics
together, and policies are what else could have been shown, whose click-through rate is estimated.
"""

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
    """[[custom]]: a metric over any numeric field of events; it switches the family `custom` on."""

    name: str
    """Value of the label `custom`: `a-z`, `0-9` and `_`."""
    kind: str
    """Events to count: `impressions` (each shown item), `clicks` (feedback of every kind),
    `conversions` or `sessions` (each event of that topic)."""
    field: str | None = None
    """A field with a number from -1e12 to 1e12 (for items in a list: the item's own, else the
    event's); also `score`, `dwell_ms` or `value`. Without it each event counts as 1."""
    where: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Dimension = values: only events with these values count. The values never become `other`."""
    quantiles: bool = False
    """Whether `custom_quantile` is shown, too; for at most 4 metrics."""

    @property
    def own_field(self) -> str | None:
        """The field, where nothing else reads it."""
        return None if self.field in KNOWN_FIELDS.get(self.kind, ()) else self.field


def own_fields(customs: Iterable[Custom], kind: str) -> tuple[str, ...]:
    """Fields of a kind of events that only custom metrics read, each once."""
    found = (each.own_field for each in customs if each.kind == kind)
    return tuple(dict.fromkeys(field for field in found if field is not None))


class CompositePart(Section, frozen=True):
    """[[composites.parts]]: one of the metrics of a composite."""

    metric: str
    """A ratio, written as in `[[alerts]]`: `ctr_ratio`, `ndcg_ratio@10`, `snips_ratio@new`; also
    metrics of sessions, which experiments and alerts do not take."""
    weight: float = 1.0
    """Weight of the part; below 0 if lower is better."""
    against: str = "value"
    """The form of the metric: its `value`, the value divided by a `target`, or by the value of the
    same window on the `day_before`, which `windows.day_before` keeps."""
    target: float | None = None
    """With `against = "target"`: the divisor of the value, above 0."""


class Composite(Section, frozen=True):
    """[[composites]]: several metrics as one number, the weighted mean of its parts."""

    name: str
    """Value of the label `composite`; experiments and alerts write `composite@<name>`."""
    parts: tuple[CompositePart, ...]
    """The metrics, 2 to 6."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Weights over the sum of their sizes, which is never 0, so that weights of both signs are
        a difference of means.

        >>> parts = CompositePart("ctr_ratio", 3.0), CompositePart("bounce_rate_ratio", -1.0)
        >>> Composite("health", parts).shares
        (0.75, -0.25)
        """
        total = sum(abs(part.weight) for part in self.parts)
        return tuple(part.weight / total for part in self.parts)


class Policy(Section, frozen=True):
    """[[policies]]: a policy whose click-through rate is estimated from impressions of another
    one."""

    name: str
    """Value of the label `policy`."""
    propensity: str | None = None
    """Field with this policy's probability of showing the item at this position, 0 to 1."""
    positions: tuple[float, ...] = ()
    """Instead of a field: the probabilities by position from 1; further positions have 0."""
    estimate: str | None = None
    """Field with the clicks expected if this policy chooses, 0 to 1. `doubly_robust_ratio` needs
    it, and `reward_estimate` of the shown item."""

    @property
    def fields(self) -> dict[str, str]:
        """Its fields → the reason for which a wrong value is refused."""
        named = {"propensity": self.propensity, "reward_estimate": self.estimate}
        return {field: reason for reason, field in named.items() if field is not None}
