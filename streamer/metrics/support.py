"""The support of a metric: the count that its denominator is, found by its declared formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamer.metrics.definition import DeclaredSeries

_COUNT = "window_"
_SLATES = re.compile(r"absent without (?:([a-z]+) )?slates$")
_OF_SLATES = "mean over slates of"


def supports_of(metrics: Iterable[DeclaredSeries[Any]]) -> Mapping[str, str]:
    """Metric of a window → the count of what it is a share or a mean of, by their names; of metrics
    of which nothing counts that there is no entry.

    >>> from streamer.metrics.catalogue import Catalogue
    >>> from streamer.settings.model import Settings
    >>> found = supports_of(Catalogue(Settings()).metrics)
    >>> found["ctr_ratio"], found["ndcg_ratio"], found["gauc_ratio"]
    ('window_impressions', 'window_slates', 'window_gauc_slates')
    """
    of_windows = [metric for metric in metrics if metric.scope == "window"]
    counts: dict[str, list[DeclaredSeries[Any]]] = {}
    for metric in of_windows:
        if metric.name.startswith(_COUNT):
            counts.setdefault(metric.formula, []).append(metric)
    found = {metric.name: _of(metric, counts) for metric in of_windows}
    names = {metric.name for metric in of_windows}
    return {name: count for name, count in found.items() if count in names}


def _of(
    metric: DeclaredSeries[Any], counts: Mapping[str, Sequence[DeclaredSeries[Any]]]
) -> str | None:
    if metric.formula.startswith(_OF_SLATES):
        if "over" in metric.labels:
            return "window_slates"
        population = _SLATES.search(metric.empty)
        return None if population is None else f"window_{population[1]}_slates"
    _, is_ratio, below = metric.formula.rpartition(" / ")
    if not is_ratio:
        return None
    needed = metric.empty.removeprefix("absent without ")
    fitting = [
        count
        for count in (*counts.get(needed, ()), *counts.get(below, ()))
        if set(count.labels) <= set(metric.labels)
    ]
    return max(fitting, key=lambda count: len(count.labels)).name if fitting else None
