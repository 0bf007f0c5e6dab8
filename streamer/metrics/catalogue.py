"""The one list of metric families, and what a setting of families computes.

What metrics are called, and how their values are written, where they are shown to people.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection
from typing import Any

from streamer.errors import SettingsError
from streamer.metrics import (
    calibration,
    composite_parts,
    composites,
    coverage,
    diversity,
    engagement,
    intervals,
    off_policy,
    own_ratios,
    ranking,
    score_drift,
    scores,
    scoring,
    traffic,
    users,
)
from streamer.metrics.compared_metrics import (
    BY_LABEL,
    SLATE_FAMILIES,
    AlertMeasures,
    ExperimentMeasures,
)
from streamer.metrics.day_before import DayBefore
from streamer.metrics.definition import DeclaredSeries, Family, Form, Formula, Metric, Variant
from streamer.metrics.item_counts import item_counts
from streamer.metrics.layout import Layout, merge
from streamer.metrics.ratios import NAMED
from streamer.metrics.reads import ByValue, Overall, Part, Statistic, Users
from streamer.metrics.rollups import rollups_of
from streamer.settings.model import Settings

FAMILIES: tuple[Family[Formula], ...] = (
    traffic.FAMILY,
    engagement.FAMILY,
    ranking.FAMILY,
    scoring.FAMILY,
    calibration.FAMILY,
    scores.FAMILY,
    coverage.FAMILY,
    diversity.FAMILY,
    off_policy.FAMILY,
    own_ratios.FAMILY,
    intervals.FAMILY,
    composites.FAMILY,
)
PREFIX = "streamer_"


_USERS = [metric.name for metric in users.METRICS]
_ENDS = [intervals.name_of(name, end) for name in _USERS for end in ("lower", "upper")]
OF_USERS = frozenset([*_USERS, *_ENDS, *diversity.OF_USERS])
"""Metrics that count users, and the ends of their intervals."""


Periods = tuple[tuple[int, int], tuple[int, int]]
"""Then and now: from (ms), to before."""


class Catalogue:
    """The families that the settings ask for: what the core counts, and what is read of it."""

    def __init__(self, settings: Settings, periods: Periods | None = None) -> None:
        """``periods``: the core records the ratio of the one alert in them, and counts nothing."""
        self.settings, self.periods = settings, periods
        wanted = settings.families
        known = [f.name for f in FAMILIES]
        for name in wanted:
            if name not in known:
                raise SettingsError(f"metrics.families: {name!r} is none of {', '.join(known)}")
        self.families = tuple(f for f in FAMILIES if f.name in wanted)
        self.layout: Layout = merge([f.stats(settings) for f in self.families])
        self.composites = composite_parts.parts_of(settings)
        """Composite → its parts."""
        kept = composite_parts.kept(self.composites, settings, self.layout)
        self.day_before = DayBefore.of(settings, self.layout, (*kept, *score_drift.kept(settings)))
        """What is kept of the same windows a day before."""
        every = [metric for family in self.families for metric in family.metrics]
        self.variants = {metric.name: metric.variants(self) for metric in every}
        """What each metric reads."""
        reads = [(metric, self.variants[metric.name]) for metric in every]
        self.rollups = rollups_of(settings, self.layout, reads)
        """By which dimensions sums are kept, and which; the total is the first."""
        self.metrics = self._shown()
        self.item_counts = item_counts(settings)
        self.has_users = True
        """Whether metrics of users are shown."""
        self.experiment_measures = ExperimentMeasures(settings)
        self.alert_measures = AlertMeasures(settings)

    @property
    def asks_for_users(self) -> tuple[str, ...]:
        """The settings that ask for metrics of users, as messages name them."""
        is_shown = any(
            metric.name in OF_USERS
            or any(_counts_users(variant, self.layout) for variant in self.variants[metric.name])
            for metric in self.metrics
        )
        counts_users = "engagement" in self.settings.families and is_shown
        families = ("metrics.families: 'engagement'",) if counts_users else ()
        has_any = self.settings.experiments or self.settings.finds_experiments
        return families + (("experiments",) if has_any else ())

    def without_users(self) -> Catalogue:
        """The same without the metrics of users, for topics that are not keyed by user."""
        copy = self._of(lambda variant: not _counts_users(variant, self.layout))
        copy.metrics = tuple(m for m in copy.metrics if m.name not in OF_USERS)
        copy.has_users = False
        return copy

    def of_panes(self) -> Catalogue:
        """The same with what panes hold, whichever they are: nothing of users and items, of the day
        before, or of mature panes only."""
        copy = self._of(lambda variant: all(map(_is_of_panes, variant.parts(self.layout))))
        shown = (m for m in self.metrics if m.scope == "window" and copy.variants[m.name])
        copy.metrics = tuple(shown)
        return copy

    def _of(self, is_kept: Callable[[Variant], bool]) -> Catalogue:
        """The same with some variants of metrics only."""
        copy = Catalogue(self.settings)
        copy.variants = {
            name: tuple(filter(is_kept, variants)) for name, variants in copy.variants.items()
        }
        return copy

    def only(self, names: Collection[str]) -> Catalogue:
        """The same with these metrics only, for a reader that shows no others."""
        copy = Catalogue(self.settings)
        copy.metrics = tuple(m for m in copy.metrics if m.name in names)
        return copy

    def _shown(self) -> tuple[Metric, ...]:
        """The metrics of the families, without those that the settings hide."""
        hide = self.settings.metrics.hide
        every = [m.name for f in FAMILIES for m in f.metrics]
        hidden: set[str] = set()
        for pattern in hide:
            names = fnmatch.filter(every, pattern)
            if not names:
                raise SettingsError(f"metrics.hide: no metric is called {pattern!r}")
            hidden.update(names)
        return tuple(m for f in self.families for m in f.metrics if m.name not in hidden)


def _is_of_panes(part: Part) -> bool:
    if isinstance(part, Statistic):
        return part.horizon_ms is None and not part.is_day_before
    return isinstance(part, Overall) or (isinstance(part, ByValue) and part.horizon_ms is None)


def _counts_users(variant: Variant, layout: Layout) -> bool:
    return any(isinstance(part, Users) for part in variant.parts(layout))


_SLATES = {each.name: each for family in SLATE_FAMILIES.values() for each in family.values}
_WORDS = {"ctr": "CTR", "cvr": "CVR", "ips": "IPS", "snips": "SNIPS", "coec": "COEC"}


def title_of(metric: DeclaredSeries[Any]) -> str:
    """A metric in words.

    >>> from streamer.metrics.catalogue import FAMILIES
    >>> named = {metric.name: metric for family in FAMILIES for metric in family.metrics}
    >>> title_of(named["ctr_ratio"]), title_of(named["window_users"])
    ('Click-through rate', 'Users')
    """
    if declared := NAMED.get(metric.name) or BY_LABEL.get(metric.name) or _SLATES.get(metric.name):
        return declared.title
    text = metric.name.removeprefix("window_")
    for suffix in ("_ratio", "_seconds"):
        text = text.removesuffix(suffix)
    words = [_WORDS.get(word, word) for word in text.split("_")]
    return words[0][:1].upper() + " ".join(words)[1:]


def form_of(metric: DeclaredSeries[Any]) -> Form:
    """How its values are written."""
    if declared := NAMED.get(metric.name) or _SLATES.get(metric.name):
        return declared.form
    if metric.unit == "seconds":
        return "seconds"
    return "percent" if metric.unit == "ratio" else "number"
