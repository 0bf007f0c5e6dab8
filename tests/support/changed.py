"""Two settings of one state, and the one run that holds all that either of them counts.

The whole run has the dimensions, windows, kinds and metrics of both. Of each half of the log what
its settings do not know is hidden from it, as they do not see it either. So what both settings
count must be equal in both runs to the last bit, and what is new equal from the time on since which
it is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from streamer.encoding.packed import (
    parts_of_item_code,
    parts_of_user_key,
    ring_and_pane,
    segment_and_stat,
)
from streamer.encoding.segments import rollup_of
from streamer.metrics.item_counts import item_counts
from streamer.metrics.rings import rings_of
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.contents import contents_of
from streamer.state.partition import Partition
from streamer.state.snapshot import panes_of
from tests.support import many_dimensions
from tests.support.engines import LogRecord

FEW: dict[str, dict[str, Any]] = {
    "variant": {"name": "variant", "values": ["A", "B"], "max_values": 2},
    "surface": {"name": "surface", "max_values": 3},
    "device": {"name": "device", "max_values": 1},
}
MANY = {name: many_dimensions.dimension_of(Random(name), name) for name in many_dimensions.NAMES}
DIMENSIONS = FEW | MANY
WINDOWS = ("10s", "1m", "5m", "90s", "1h", "24h")
FAMILIES = (
    *("traffic", "engagement", "ranking", "scoring", "calibration", "coverage", "intervals"),
    *("scores", "diversity", "off_policy"),
)
POLICIES = {
    "new": {"name": "new", "propensity": "p_new", "estimate": "q_new"},
    "by-place": {"name": "by-place", "positions": [0.5, 0.25, 0, 1]},
}
RATIOS = {
    "latency": {
        "name": "latency",
        "numerator": {"kind": "impressions", "field": "latency_ms"},
        "denominator": {"kind": "impressions"},
    },
    "depth": {
        "name": "depth",
        "numerator": {
            "kind": "clicks",
            "field": "depth",
            "where": {"impression.campaign": "spring"},
        },
        "denominator": {"kind": "clicks", "where": {"campaign": {">": 3}}},
        "quantiles": True,
    },
    "margin": {
        "name": "margin",
        "numerator": {"kind": "conversions", "field": "margin"},
        "denominator": {"kind": "lines", "where": {"impression.position": {"<": 3}}},
    },
    "visits": {"name": "visits", "numerator": {"kind": "sessions", "field": "dwell_ms"}},
}
GAINS = {"like": 2.0, "star": 0.0, "conversion": 3.0}
ROLLUPS = (
    *(("variant",), ("surface",), ("device",), ("variant", "surface"), ("surface", "device")),
    ("variant", "surface", "device"),
)
SECTIONS = (
    *("dimensions", "lengths", "families", "kinds", "k", "thresholds", "policies", "ratios"),
    *("rollups", "detailed", "items"),
)
Choice = dict[str, list[Any]]
Sums = dict[tuple[Any, ...], int]


def chosen(random: Random) -> Choice:
    """What settings list, at random and in any order."""
    pools: dict[str, tuple[Any, ...]] = {
        "dimensions": tuple(FEW),
        "lengths": WINDOWS,
        "families": FAMILIES,
        "kinds": tuple(GAINS),
        "k": (3, 5, 10),
        "thresholds": (0.1, 0.5),
        "policies": tuple(POLICIES),
        "ratios": tuple(RATIOS),
        "rollups": ROLLUPS,
        "detailed": ROLLUPS,
        "items": tuple(FEW),
    }
    least = {"lengths": 1, "families": 1, "k": 1, "thresholds": 1, "policies": 1}
    return {
        name: random.sample(pool, random.randint(least.get(name, 0), len(pool)))
        for name, pool in pools.items()
    }


def chosen_of_twenty(random: Random, crossed: Sequence[tuple[str, ...]]) -> Choice:
    """The same with most of twenty dimensions, and some of these combinations of them."""
    alone = [(name,) for name in random.sample(list(MANY), 8)]
    several = random.sample(crossed, random.randint(2, len(crossed)))
    rollups = random.sample([*alone, *several], len(alone) + len(several))
    return chosen(random) | {
        "dimensions": random.sample(list(MANY), random.randint(15, len(MANY))),
        "lengths": random.sample(WINDOWS, 2),
        "rollups": rollups,
        "detailed": rollups[:3],
        "items": random.sample(list(MANY), 12),
    }


def both(first: Choice, second: Choice) -> Choice:
    """All that either lists."""
    return {name: list(dict.fromkeys((*first[name], *second[name]))) for name in SECTIONS}


def settings_of(choice: Choice, gains: Mapping[str, float] = GAINS, **bounds: int) -> Settings:
    """Settings that list these; ``bounds``: of dimensions."""
    rollups = [x for x in choice["rollups"] if {*x} <= {*choice["dimensions"]}]
    return parse(
        {
            "dimensions": [DIMENSIONS[name] | bounds for name in choice["dimensions"]],
            "windows": {"lengths": choice["lengths"]},
            "metrics": {
                "families": choice["families"],
                "feedback": {"click": 1.0, **{kind: gains[kind] for kind in choice["kinds"]}},
                "k": choice["k"],
                "thresholds": sorted(choice["thresholds"]),
                "rollups": [[], *rollups],
                "detailed": [[], *(x for x in choice["detailed"] if x in rollups)],
            },
            "policies": [POLICIES[name] for name in choice["policies"]],
            "ratios": [RATIOS[name] for name in choice["ratios"]],
            "items": {
                "dimensions": [name for name in choice["items"] if name in choice["dimensions"]],
                "windows": choice["lengths"],
            },
            "attribution": {"click": "20m", "conversion": "40m", "session_gap": "5m"},
            "time": {"max_lateness": "10m"},
        }
    )


def hidden(record: LogRecord, settings: Settings, whole: Settings) -> LogRecord:
    """A record without what these settings do not know of it."""
    own = {*settings.dimension_names, *settings.policy_fields}
    own |= {name for kind in KINDS for name in settings.own_fields[kind]}
    every = {*whole.dimension_names, *whole.policy_fields}
    every |= {name for kind in KINDS for name in whole.own_fields[kind]}
    kinds = {*whole.feedback_kinds} - {*settings.feedback_kinds}
    try:
        event = json.loads(record.value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return record
    if not isinstance(event, dict):
        return record
    members = event.get("items")
    for each in [event, *(members if isinstance(members, list) else [])]:
        for name in every - own if isinstance(each, dict) else ():
            each.pop(name, None)
    if isinstance(event.get("feedback"), str) and event["feedback"] in kinds:
        event["feedback"] = "share"
    return replace(record, value=json.dumps(event).encode())


# What a partition holds, by name ------------------------------------------------------------------


def pane_sums(partition: Partition, dimensions: list[str]) -> Sums:
    """Sums by (milliseconds of the ring or 0, first ms of the pane, values, what it is of)."""
    rings = [None, *rings_of(partition.settings)]
    names = {code: name for name, code in _codes(partition).items()}
    texts = partition.segments
    places = [partition.settings.dimension_names.index(name) for name in dimensions]
    is_of = np.array([*map(_of_rollup(places), texts)], bool)
    found: Sums = {}
    for number, (codes, values) in panes_of(partition).items():
        at, index = ring_and_pane(number)
        ring = rings[at] if at < len(rings) else None
        place = (ring.span_ms, index * ring.pane_ms) if ring else (0, 0)
        segments, stats = segment_and_stat(codes)
        columns = [column[is_of[segments]].tolist() for column in (segments, stats, values)]
        for segment, code, value in zip(*columns, strict=True):
            labels = tuple(texts[segment][i] for i in places)
            key = (*place, labels, names[code])
            found[key] = found.get(key, 0) + value
    return {key: value for key, value in found.items() if value}


def _of_rollup(places: Sequence[int]) -> Callable[[Sequence[str]], bool]:
    """Whether values are those of a segment by the dimensions at these places."""
    return lambda values: {i for i, value in enumerate(values) if value != "all"} == {*places}


def _codes(partition: Partition) -> dict[str, int]:
    return contents_of(partition.settings, partition.catalogue).codes()


def user_sums(partition: Partition, dimensions: list[str]) -> Sums:
    """Sums over users by (milliseconds of the ring, first ms of the pane, values, statistic), of
    the rollup of these dimensions."""
    settings = partition.settings
    partition.refresh_user_sums()
    texts = partition.segments
    places = [settings.dimension_names.index(name) for name in dimensions]
    is_of = _of_rollup(places)
    stats = ["users", "hits"]
    for kind in settings.user_feedback_kinds:
        stats += [f"rates of {kind}", f"users of {kind}", f"squares of {kind}"]
    found: Sums = {}
    for number, ring in enumerate(rings_of(settings)):
        key, value = partition.core.user_sums(number)
        columns = [column.tolist() for column in parts_of_user_key(key)]
        for pane, segment, stat, v in zip(*columns, value.tolist(), strict=True):
            if pane >= ring.oldest(partition.stream_ms) and is_of(texts[segment]):
                labels = tuple(texts[segment][i] for i in places)
                at = (ring.span_ms, pane * ring.pane_ms, labels, stats[stat])
                found[at] = found.get(at, 0) + v
    return {key: value for key, value in found.items() if value}


def item_rollups(settings: Settings) -> tuple[tuple[str, ...], ...]:
    """Those that items are counted by, the total first."""
    declared = item_counts(settings)
    return tuple(dict.fromkeys(((), *declared.rollups))) if declared else ()


def item_sums(partition: Partition, rollup: tuple[str, ...]) -> Sums:
    """Counts of items by (milliseconds of the ring, first ms of the pane, item, values as they are
    now, what it is)."""
    declared = partition.catalogue.item_counts
    assert declared is not None
    labels = partition.series[-1].labels
    shown = [{*of["kept"], "unknown", "all"} for of in partition.core.dimensions()["values"]]
    kept = dict(zip(partition.settings.dimension_names, shown, strict=True))
    now = [{n: v if v in kept[n] else "other" for n, v in label.items()} for label in labels]
    own = {*(rollup or declared.rollups[0])}
    is_of = [{*rollup_of(label)} == own for label in labels]
    names = ["shown", "clicked", "category"]
    for what in ("top", "weight", "excess"):
        names += [f"{what}@{k}" for k in declared.cutoffs]
    found: Sums = {}
    for number, (codes, values) in panes_of(partition.series[-1]).items():
        at, index = ring_and_pane(number)
        ring = declared.rings[at - 1]
        columns = (*parts_of_item_code(codes), values)
        for item, label, place, value in zip(*(c.tolist() for c in columns), strict=True):
            if place < len(names) and is_of[label]:
                texts = tuple(now[label][name] for name in rollup)
                key = (ring.span_ms, index * ring.pane_ms, item, texts, names[place])
                found[key] = found.get(key, 0) + value
    return {key: value for key, value in found.items() if value}


def from_then_on(sums: Sums, since_ms: int, is_new: Any) -> Sums:
    """Without what is new and of a pane that begins before; ``is_new``: (span, what it is of)."""
    return {
        key: value
        for key, value in sums.items()
        if key[0] == 0 or key[1] >= since_ms or not is_new(key[0], key[-1])
    }


def unlike(ours: Sums, theirs: Sums) -> Iterator[str]:
    """What differs, to read."""
    for key in sorted(ours.keys() | theirs.keys(), key=repr):
        if ours.get(key) != theirs.get(key):
            yield f"{key}: {ours.get(key)} instead of {theirs.get(key)}"
