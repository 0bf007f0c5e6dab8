"""Settings of composites: which metrics are weighed together, and how each is normalised."""

from __future__ import annotations

from streamer.settings.section import Section


class CompositePart(Section, frozen=True):
    """[[composites.parts]]: one of the metrics of a composite."""

    metric: str
    """A ratio, written as in `[[alerts]]`: `ctr_ratio`, `ndcg_ratio@10`, `snips_ratio@new`; also
    metrics of sessions, which experiments and alerts do not take."""
    weight: float = 1.0
    """Its weight; below 0 where less is better."""
    against: str = "value"
    """What stands for the metric: its `value`, the value over a `target`, or the value over that of
    the same window on the `day_before`, which `windows.day_before` keeps."""
    target: float | None = None
    """With `against = "target"`: what the value is divided by, above 0."""


class Composite(Section, frozen=True):
    """[[composites]]: several metrics as one number, the weighted mean of its parts."""

    name: str
    """Value of the label `composite`; in experiments and alerts it is `composite@<name>`."""
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
