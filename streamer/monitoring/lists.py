"""Panels of what is shown: how much of the catalogue, and how varied."""

from __future__ import annotations

from streamer.monitoring.panels import Panel, Query, graph, support
from streamer.monitoring.series import PERCENT
from streamer.monitoring.windowed import Windowed

_VARIETY = {
    "novelty_ratio": "novelty",
    "people_novelty_ratio": "novelty, by people",
    "serendipity_ratio": "serendipity",
    "exposure_gini": "concentration (Gini)",
}


def panels(windowed: Windowed) -> list[Panel]:
    """Those whose metrics the settings show."""
    return [*_coverage(windowed), *_lists(windowed), *_variety(windowed), *_conventions(windowed)]


def _items_window(windowed: Windowed) -> str:
    """Items are counted in some windows only: the first of these, whichever is chosen."""
    windows = windowed.settings.item_windows
    return f'window="{windows[0]}"' if windows else ""


def _coverage(windowed: Windowed) -> list[Panel]:
    window = _items_window(windowed)
    if not window or not windowed.has("catalog_coverage_ratio", "window_items"):
        return []
    rolled_up = windowed.total("catalog_coverage_ratio", by=["k"], window=window)
    queries = [
        Query(rolled_up, "first {{k}}"),
        Query(windowed.total("window_items", window=window), "items"),
    ]
    description = windowed.texts("catalog_coverage_ratio", "window_items")
    title = f"Coverage: how much of the catalogue is shown in {windowed.settings.item_windows[0]}?"
    return [
        graph(
            title,
            description,
            PERCENT,
            queries,
            empty="no items in this window",
            overrides=[support("^items$")],
        )
    ]


def _lists(windowed: Windowed) -> list[Panel]:
    return windowed.split(
        "Diversity of lists: how varied is one?",
        "intra_list_diversity_ratio",
        "window_category_lists",
    )


def _variety(windowed: Windowed) -> list[Panel]:
    window = _items_window(windowed)
    names = [name for name in _VARIETY if windowed.has(name)]
    if not window or not names:
        return []
    queries = [Query(windowed.total(name, window=window), _VARIETY[name]) for name in names]
    if windowed.settings.items.pairs:
        name = "co_occurrence_diversity_ratio"
        names.append(name)
        within = windowed.total(name, by=["k"], window=window)
        queries.append(Query(within, "within lists, by people, first {{k}}"))
    overrides = []
    if windowed.has("window_lists"):
        queries.append(Query(windowed.total("window_lists", window=window), "lists"))
        overrides = [support("^lists$")]
    title = "Novelty and concentration: is it always the same items?"
    texts, empty = windowed.texts(*names), "no lists in this window"
    return [graph(title, texts, PERCENT, queries, empty=empty, overrides=overrides)]


def _conventions(windowed: Windowed) -> list[Panel]:
    """Metrics in the conventions that the settings ask for, beside the default ones."""
    chosen = windowed.settings.metrics.conventions
    names = [name for name, options in chosen.items() if options and windowed.has(name)]
    if not names:
        return []
    queries = []
    for name in names:
        narrowed = windowed.total(name, by=["convention"]).replace(', convention=""', "")
        queries.append(Query(narrowed, f"{name.removesuffix('_ratio')} {{{{convention}}}}"))
    description = "\n\n".join(
        [windowed.texts(*names), "The line whose convention is empty is the default one."]
    )
    title = "Metrics in other conventions: what do other libraries say?"
    return [graph(title, description, PERCENT, queries, empty="no slates in this window")]
