"""What stored state holds, by name: by it state of other settings is told apart, and continued."""

from __future__ import annotations

import json

import msgspec

from streamer.ingest.mapping import fields_of, said_of
from streamer.metrics import diversity, rollups
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.rings import rings_of
from streamer.metrics.sums import key_of, of_policy, of_slates, of_visible
from streamer.settings.logs import Log
from streamer.settings.model import Settings
from streamer.settings.own_metrics import definition

Listed = dict[str, tuple[str, str]]
"""What a setting lists: key → how it is called, and what else defines it."""
Span = tuple[int, int]
"""Milliseconds of a pane, and how many panes a ring has."""


class StoredStat(msgspec.Struct, array_like=True, frozen=True):
    """A statistic with its meaning; ``parts``: what its integers are, unless it is their place."""

    name: str
    at: int
    width: int
    parts: list[str]


class Contents(msgspec.Struct, frozen=True):
    """What every row and sum of a partition is of; equal under equal settings.

    ``fixed``: settings that cannot be changed in place → their values; ``fields``: log → our name
    of each field of its events → where it stands; ``listed``: settings that can be changed → what
    they list; ``units``: fields of events that are units of experiments, whose values are kept
    behind those of dimensions; ``rollups``: by ``Rollup.key``, codes of what each keeps, [first,
    stop).
    """

    fixed: dict[str, str]
    fields: dict[str, dict[str, str]]
    listed: dict[str, Listed]
    dimensions: list[str]
    units: list[str]
    rollups: dict[str, list[tuple[int, int]]]
    windows: list[Span]
    kinds: list[str]
    user_kinds: list[str]
    policies: list[str]
    amounts: list[str]
    conditions: list[str]
    keeps_items: bool
    has_users: bool
    blocks: list[StoredStat]

    @property
    def kept_fields(self) -> list[str]:
        """Fields of events whose values are kept."""
        return [*self.dimensions, *self.units]

    def encode(self) -> bytes:
        """As it is stored."""
        return msgspec.msgpack.encode(self)

    def codes(self) -> dict[str, int]:
        """What a sum is of → the code of its statistic."""
        found: dict[str, int] = {}
        for block in self.blocks:
            numbered = [f"{block.name}/{i}" for i in range(block.width)]
            names = block.parts or ([block.name] if block.width == 1 else numbered)
            found.update((name, block.at + i) for i, name in enumerate(names))
        return found


class ItemsHeld(msgspec.Struct, array_like=True, frozen=True):
    """Counts of items under their shape: by what, and whether of lists and clicks, of people, and
    of pairs, too."""

    shape: str
    dimensions: list[str]
    rollups: list[tuple[str, ...]]
    cutoffs: list[int]
    rings: list[Span]
    has_lists: bool
    has_people: bool = False
    has_pairs: bool = False


class Beside(msgspec.Struct, frozen=True):
    """What is held beside that, which readers tell apart by its shape. ``meanings``: sum of
    experiments and alerts → what it means, where its name does not say it."""

    day_before: dict[int, str]
    items: ItemsHeld | None
    meanings: dict[str, str]


def decode_contents(data: bytes) -> Contents:
    """What ``Contents.encode`` gave."""
    return msgspec.msgpack.decode(data, type=Contents)


def reads_as(stored: bytes, ours: Contents) -> bool:
    """Whether what is stored is of our settings, apart from logs that only one of both reads: a
    pattern fits a new topic, or a cluster is away. What they gave is counted in the same sums."""
    theirs = decode_contents(stored)
    both = theirs.fields.keys() & ours.fields.keys()
    if not both:
        return theirs == ours

    def of_both(contents: Contents) -> Contents:
        fields = {log: contents.fields[log] for log in both}
        return msgspec.structs.replace(contents, fields=fields)

    return of_both(theirs) == of_both(ours)


def contents_of(settings: Settings, catalogue: Catalogue) -> Contents:
    """What a partition holds under these settings."""
    layout = catalogue.layout
    blocks = []
    for stat in layout.stats:
        parts = [key_of(settings, part) for part in stat.keys]
        blocks.append(
            StoredStat(key_of(settings, stat.name), layout.at[stat.name], stat.width, parts)
        )
    return Contents(
        fixed=_fixed(settings),
        fields=_fields(settings),
        listed=_listed(settings, catalogue),
        dimensions=list(settings.dimension_names),
        units=list(settings.unit_fields),
        rollups={rollup.key: rollup.spans for rollup in catalogue.rollups},
        windows=[(ring.pane_ms, ring.panes) for ring in rings_of(settings)],
        kinds=list(settings.feedback_kinds),
        user_kinds=list(settings.user_feedback_kinds),
        policies=[f"{p.name} {of_policy(settings, p.name)}" for p in settings.policies],
        amounts=[f"{field} of {kind}" for kind, field in settings.own_sums.amounts],
        conditions=[repr(each) for each in settings.own_sums.conditions],
        keeps_items=diversity.has_lists(settings),
        has_users="engagement" in settings.metrics.families,
        blocks=blocks,
    )


def beside_of(settings: Settings, catalogue: Catalogue) -> Beside:
    """What a partition holds beside its contents."""
    counts, items = catalogue.item_counts, None
    if counts is not None:
        rings = [(ring.pane_ms, ring.panes) for ring in counts.rings]
        by = (list(counts.dimensions), list(counts.rollups))
        has_lists = diversity.has_lists(settings)
        has = (has_lists, diversity.has_people(settings), counts.has_pairs)
        items = ItemsHeld(counts.shape, *by, list(counts.cutoffs), rings, *has)
    meanings = {}
    for measures in (catalogue.experiment_measures, catalogue.alert_measures):
        for name in measures.sums:
            of_slates_too = f"slates.{name}" if name in measures.slate_sums else name
            meanings[name] = key_of(settings, of_slates_too)
    return Beside(dict(catalogue.day_before.shapes), items, meanings)


def _fixed(settings: Settings) -> dict[str, str]:
    time, join = settings.time, settings.attribution
    fixed = {
        "attribution.click": join.click,
        "attribution.conversion": join.conversion,
        "attribution.session_gap": join.session_gap,
        "time.max_lateness": time.max_lateness,
        "time.max_skew": time.max_skew,
    }
    if "diversity" in settings.metrics.families:
        fixed["items.category"] = settings.items.category or "the field item_category"
    return fixed


def _fields(settings: Settings) -> dict[str, dict[str, str]]:
    """Log → where each field of each kind of events stands in its records."""
    return {log.name: _fields_in(settings, log) for log in settings.logs.values()}


def _fields_in(settings: Settings, log: Log) -> dict[str, str]:
    source = settings.read_sources[log.source]
    fields = {
        f"{name} of {kind}": said_of(source, kind, name)
        for kind in log.kinds
        for name in fields_of(settings, kind)
        if name != "type" and (source.is_own or name != "items")
    }
    missing = json.dumps(source.missing)
    texts = [source.json, source.split, source.decimals]
    opened = json.dumps([source.each, *texts, source.whole_ids])
    said = {"positions_from": str(source.positions_from), "missing": missing}
    return {**fields, **said, "each, json, split, decimals and whole_ids": opened}


def _listed(settings: Settings, catalogue: Catalogue) -> dict[str, Listed]:
    metrics, windows, counts = settings.metrics, settings.windows, catalogue.item_counts
    kinds = dict.fromkeys((*settings.feedback_kinds, *settings.user_feedback_kinds))
    found: dict[str, Listed] = {
        "dimensions": {
            d.name: (d.name, repr((sorted(d.values), d.max_values))) for d in settings.dimensions
        },
        "units of experiments": _plain(settings.unit_fields),
        "metrics.rollups": _plain(rollup.key for rollup in catalogue.rollups[1:]),
        "windows.lengths": {str(ms): (label, "") for label, ms in windows.lengths_ms.items()},
        "windows.day_before": _plain(windows.day_before),
        "metrics.feedback": {kind: (kind, "") for kind in kinds},
        "metrics.families": _plain(metrics.families),
        "metrics.k": _plain(metrics.k),
        "metrics.thresholds": _plain(metrics.thresholds),
        "metrics.conventions": _plain(
            f"{name} {each}" for name, some in metrics.conventions.items() for each in some
        ),
        "items.dimensions": _plain(
            rollups.key_of(r) for r in (counts.rollups if counts else ()) if r
        ),
        "items.windows": _plain(settings.item_windows),
        "policies": {p.name: (p.name, of_policy(settings, p.name)) for p in settings.policies},
        "ratios": {
            r.name: (r.name, definition(r) + (", quantiles" if r.quantiles else ""))
            for r in settings.ratios
        },
    }
    if {"ranking", "scoring"} & set(metrics.families):
        found["metrics.feedback: gains"] = {"": ("gains", of_slates(settings))}
    if metrics.visible:
        found["metrics.visible"] = {"": ("positions", of_visible(settings))}
    if "scoring" in metrics.families:
        found["metrics.margin"] = {"": ("margin", repr(metrics.margin))}
    return found


def _plain(values: object) -> Listed:
    return {str(value): (str(value), "") for value in values}  # type: ignore[attr-defined]
