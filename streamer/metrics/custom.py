"""Custom metrics: sums, means and quantiles of any numeric field of events, from ``[[custom]]``.

An event counts where it carries the field, at its own time and under its effective segment.

Four impressions, of which three say how long they took; two are on the surface `home`:

    >>> from streamer.testing import value_of
    >>> took = [{"latency_ms": 80}, {"latency_ms": 120, "surface": "home"}, {"latency_ms": 400}, {}]
    >>> shown = [{"type": "impression", "item_id": "a", **said} for said in took]
    >>> latency = {"kind": "impressions", "field": "latency_ms"}
    >>> home = {"name": "home", **latency, "where": {"surface": ["home"]}}
    >>> settings = {"custom": [{"name": "latency", **latency, "quantiles": True}, home]}
    >>> def read(name, **labels):
    ...     return round(value_of(shown, name, settings, **{"custom": "latency", **labels}), 1)
    >>> read("window_custom_value"), read("custom_mean"), read("window_custom_events")
    (600.0, 200.0, 3.0)
    >>> read("custom_per_impression"), read("custom_per_user")
    (150.0, 600.0)
    >>> read("custom_quantile", quantile="0.5"), read("custom_mean", custom="home")
    (120.0, 120.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from streamer.metrics.custom_sums import (
    events_of,
    quantile,
    sketch_of,
    stats,
    sum_of,
    sum_of_users,
)
from streamer.metrics.definition import Brief, Declarations, Family, Series, Sums, count, ratio
from streamer.metrics.ratios import IMPRESSIONS, PerUser, Quantity, Ratio, RatioBy, declare_ratio_by
from streamer.metrics.sketch import QUANTILES
from streamer.metrics.user_sums import USERS
from streamer.settings.model import Settings

NAME = "custom"
_UNIT = "units of the field"
PER_USER = "custom_per_user"


@dataclass(frozen=True)
class ByCustom(RatioBy):
    """A ratio for each of ``[[custom]]``. ``family``: the one without which windows have nothing
    below."""

    label: ClassVar[str] = NAME
    setting: ClassVar[str] = NAME
    has_maturity: ClassVar[bool] = False
    below: Callable[[str], Quantity]
    family: str = NAME

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        for custom in settings.custom:
            yield {self.label: custom.name}, self.of(custom.name)

    def of(self, custom: str) -> Ratio:
        """The ratio of one custom metric."""
        name, title = (f"{text}@{custom}" for text in (self.name, self.title))
        return Ratio(name, title, sum_of(custom), self.below(custom), self.doc, self.unit)

    def series(self, w: Sums) -> Iterator[Series]:
        """Those of all custom metrics."""
        if self.family in w.settings.families:
            yield from super().series(w)


BY_CUSTOM = (
    ByCustom(
        *("custom_mean", "Custom mean"),
        "Mean of the field over the events that carry it, exact.",
        "sum of values / events with a value",
        "absent without events with a value",
        events_of,
        unit=_UNIT,
    ),
    ByCustom(
        *("custom_per_impression", "Custom per impression"),
        "Sum of the field over all impressions of the segment, each by its own event time.",
        "sum of values / impressions",
        "absent without impressions, and without the family `traffic`",
        lambda custom: IMPRESSIONS,
        "traffic",
        unit=f"{_UNIT} per impression",
    ),
)
"""Means and rates: they have intervals, and experiments and alerts compare them."""


def per_user(settings: Settings) -> dict[str, PerUser]:
    """Custom metric → its sum by user, which experiments compare."""
    return {
        each.name: PerUser(
            f"{PER_USER}@{each.name}", f"Custom per user@{each.name}", sum_of(each.name)
        )
        for each in settings.custom
    }


metric = Declarations()


@metric(
    "window_custom_value",
    formula="sum of values",
    unit=f"{_UNIT} in all",
    empty="absent without events with a value",
    labels=(NAME,),
    brief=Brief(),
)
def window_custom_value(w: Sums) -> Iterator[Series]:
    """Sum of the field in the window, in whole millionths."""
    for custom in w.settings.custom:
        with w.apart():
            present = events_of(custom.name).total(w) != 0
            yield Series({NAME: custom.name}, sum_of(custom.name).total(w), present)


for each in BY_CUSTOM:
    declare_ratio_by(metric, each, brief=Brief())


@metric(
    PER_USER,
    formula="sum of values of users / users with an impression",
    unit=f"{_UNIT} per user",
    empty="absent without users, and without the family `engagement`",
    labels=(NAME,),
    brief=Brief(),
)
def custom_per_user(w: Sums) -> Iterator[Series]:
    """Sum of the field in events that have a user, over the users with an impression in the
    window."""
    if "engagement" in w.settings.families:
        for custom in w.settings.custom:
            with w.apart():
                above = sum_of_users(custom.name).total(w)
                yield ratio(above, w.users(USERS), **{NAME: custom.name})


@metric(
    "custom_quantile",
    formula="value at rank ceil(q n) of the n values",
    unit=_UNIT,
    empty="absent without events with a value, and without `quantiles = true`",
    labels=(NAME, "quantile"),
    brief=Brief(),
)
def custom_quantile(w: Sums) -> Iterator[Series]:
    """Quantiles of the field from a sketch: relative error at most 1 % from 0.001 to 1e9, likewise
    below 0; magnitudes below 0.001 are shown as 0, those above 1e9 as 1e9."""
    for custom in w.settings.custom:
        with w.apart():
            yield from _quantiles(w, custom.name) if custom.quantiles else ()


def _quantiles(w: Sums, custom: str) -> Iterator[Series]:
    counts, present = w(sketch_of(custom)), events_of(custom).total(w) != 0
    for label, share in QUANTILES.items():
        yield Series({NAME: custom, "quantile": label}, quantile(counts, *share), present)


@metric(
    "window_custom_events",
    formula="events with a value",
    unit="events",
    empty="absent where it is 0",
    labels=(NAME,),
    brief=Brief(),
)
def window_custom_events(w: Sums) -> Iterator[Series]:
    """Support of window_custom_value, custom_mean and custom_quantile."""
    for custom in w.settings.custom:
        with w.apart():
            yield count(events_of(custom.name).total(w), **{NAME: custom.name})


FAMILY = Family(NAME, tuple(metric.metrics), stats)
