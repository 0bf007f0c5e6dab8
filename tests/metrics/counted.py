"""Sums of random logs, as the core counts them: what the laws read metrics from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from streamer._core import PAIR_ITEM_BITS, TOTAL_RING
from streamer.encoding.arrays import I64
from streamer.encoding.packed import ITEM_BITS, PAIR_PLACE, SAMPLE_PLACE, parts_of_item_code
from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.definition import Metric, Series, series_of
from streamer.metrics.item_counts import ItemPairs, ItemTable, item_counts
from streamer.metrics.users import (
    HITS,
    RATE_UNIT,
    USERS,
    positive_users,
    rate_squares,
    rate_sum,
    users_stats,
)
from streamer.settings.event_fields import KINDS, LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Metrics, Settings
from streamer.state.partition import Partition
from tests.oracle.siphash import siphash13
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.stored_sums import by_segment

SEGMENTS, EMPTY = 12, 2
"""Segments, of which the last ones have nothing."""
SIZE = 12
"""Members of a slate: more than the ten that tests of retrieval look at."""
SETTINGS: Settings = parse(
    {
        "dimensions": [{"name": "variant", "values": [f"v{i}" for i in range(SEGMENTS)]}],
        "windows": {"lengths": ["24h"], "day_before": ["24h"]},
        "metrics": {
            "families": [*Metrics().families, "scores", "off_policy", "diversity"],
            "thresholds": [0.2, 0.5],
            "max_weight": 3,
            "feedback": {"click": 1, "like": 3},
            "k": [2, 5],
            "detailed": [["variant"]],
            "conventions": {
                "precision_ratio": ["shown"],
                "map_ratio": ["primer", "jurity"],
                "mar_ratio": ["jurity", "primer"],
                "ndcg_ratio": ["exponential", "jurity"],
                "kendall_tau": ["tau_b"],
            },
        },
        "items": {"dimensions": ["variant"], "pairs": True},
        "policies": [
            {"name": "new", "propensity": "p_new", "estimate": "q_new"},
            {"name": "by-place", "positions": [0.5, 0.3]},
        ],
        "ratios": [
            {
                "name": "latency",
                "numerator": {"kind": "impressions", "field": "latency_ms"},
                "denominator": {"kind": "impressions", "where": {"latency_ms": {">=": -1e12}}},
                "quantiles": True,
            },
            {
                "name": "margin",
                "numerator": {"kind": "conversions", "field": "margin"},
                "denominator": {"kind": "people"},
                "quantiles": True,
            },
            {
                "name": "roas",
                "numerator": {"kind": "lines", "field": "value"},
                "denominator": {"kind": "clicks", "field": "dwell_ms"},
            },
        ],
        "composites": [
            {
                "name": "health",
                "parts": [
                    {"metric": "ctr_attributed_ratio", "against": "day_before"},
                    {"metric": "dwell_mean_seconds", "against": "target", "target": 30},
                    {"metric": "bounce_rate_ratio", "weight": 0.2},
                ],
            },
            {
                "name": "lists",
                "parts": [
                    {"metric": "ndcg_ratio@5.engaged", "against": "day_before"},
                    {"metric": "ctr_ratio"},
                ],
            },
        ],
    }
)
_IDS = [*(f"i{i}" for i in range(400)), *(f"c{i}" for i in range(5)), "lone"]
ITEMS = np.sort([0, *(siphash13(FIXED_KEY, text.encode()) >> 64 - ITEM_BITS for text in _IDS)])
"""No item, and the items and categories of the logs, as codes have them."""
_DECLARED = item_counts(SETTINGS)
assert _DECLARED is not None
NO_ITEMS = np.zeros((SEGMENTS, len(ITEMS), _DECLARED.places), np.int64)
T0 = 1_700_000_000_000
MONTH_MS = 31 * 86_400_000
VISITS = 250
FIELDS = ("propensity", "reward_estimate", "p_new", "q_new")
"""What items say of policies."""


class CountedSums:
    """One row a segment. Is the metrics' ``Sums``; it adds, as partitions do."""

    user_sample_ratio, is_total = 1.0, True

    def __init__(
        self,
        catalogue: Catalogue,
        matrix: I64,
        young: I64,
        people: I64,
        of_items: tuple[I64, I64] | None = None,
    ) -> None:
        """``of_items``: counts of all and of young items, (segments, items, places)."""
        self.catalogue, self.settings = catalogue, catalogue.settings
        self.layout = catalogue.layout
        self.matrix, self.young, self.people = matrix, young, people
        self.of_items = of_items or (NO_ITEMS, NO_ITEMS)

    def shown(self, metric: Metric) -> Iterator[Series]:
        """What the formula of a metric gives."""
        for variant in metric.variants(self.catalogue):
            yield from series_of(metric, variant, lambda read: read.of(self))

    def __add__(self, other: CountedSums) -> CountedSums:
        matrix, young = self.matrix + other.matrix, self.young + other.young
        every, late = (a + b for a, b in zip(self.of_items, other.of_items, strict=True))
        people = self.people + other.people
        return CountedSums(self.catalogue, matrix, young, people, (every, late))

    @cached_property
    def nothing(self) -> CountedSums:
        return CountedSums(self.catalogue, 0 * self.matrix, 0 * self.young, 0 * self.people)

    @property
    def rows(self) -> range:
        return range(SEGMENTS)

    def items(self, places: Sequence[int], horizon_ms: int | None) -> dict[int, ItemTable]:
        every, young = self.of_items
        found = every if horizon_ms is None else every - young
        return {row: _table(counts) for row, counts in enumerate(found) if counts.any()}

    @property
    def all_items(self) -> ItemTable:
        return _table(self.of_items[0].sum(axis=0))

    def users_of_longest(self, stat: int) -> I64:
        longest: I64 = 2 * self.people[stat] + self.people[HITS]
        return longest

    def _pick(self, matrix: I64, name: str, within: slice = slice(None)) -> I64:
        picked = matrix[..., self.layout.span(name)][..., within]
        return picked[..., 0] if self.layout.width[name] == 1 else picked

    def __call__(self, name: str) -> I64:
        return self._pick(self.matrix, name)

    def statistic(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        return self._pick(self.matrix if horizon_ms is None else self._old, name, within)

    def overall(self, name: str) -> I64:
        return self._pick(self.matrix.sum(axis=0), name)

    def users(self, stat: int) -> I64:
        row: I64 = self.people[stat]
        return row

    def by_value(self, name: str, horizon_ms: int | None) -> dict[str, I64]:
        return {"variant": self(name) if horizon_ms is None else self._pick(self._old, name)}

    def day_before(self, name: str, within: slice, horizon_ms: int | None) -> I64 | None:
        return self._pick(self._old, name, within)

    @property
    def _old(self) -> I64:
        return self.matrix - self.young

    def mature(self, name: str, horizon_ms: int) -> I64 | None:
        return self._pick(self._old, name)


def sums(catalogue: Catalogue, seed: int, scope: str = "window") -> CountedSums:
    """Of random logs; for totals what is settled."""
    (old, shown), (young, late) = (_counted(catalogue, 2 * seed + i, scope) for i in range(2))
    people = _people(np.random.default_rng(seed))
    of_items = (shown + late, late) if scope == "window" else None
    return CountedSums(catalogue, old + young, young, people, of_items)


def _table(counts: I64) -> ItemTable:
    """Of (items, places), of which the first is that of no item."""
    prefixes = ITEMS[1:] >> ITEM_BITS - PAIR_ITEM_BITS
    of_pairs = np.minimum(counts[1:-1], counts[2:])  # as if neighbours had all they can share
    pairs = ItemPairs((prefixes[:-1], prefixes[1:]), of_pairs, 0.5)
    return ItemTable(ITEMS[1:], counts[1:], counts[0], pairs=pairs)


def _counted(catalogue: Catalogue, seed: int, scope: str) -> tuple[I64, I64]:
    """(segments, statistics) of one log: of its one window, or of the totals; and its items."""
    engines = Engines(SETTINGS, 1)
    for chunk in chunks_of(_log(Random(seed)), 1000):
        engines.feed(chunk)
    engines.finish()
    matrix = np.zeros((SEGMENTS, catalogue.layout.size), np.int64)
    for (variant,), counted in by_segment(engines, 1 if scope == "window" else TOTAL_RING).items():
        matrix[int(variant.removeprefix("v"))] += counted
    return matrix, _items_of(engines.partitions[0])


def _items_of(partition: Partition) -> I64:
    """(segments, items, places) of one log."""
    series = partition.series[-1]
    _, code, value = partition.core.dump_panes(
        partition.core.live_panes(series.number), series.number
    )
    code, value = (column[code & SAMPLE_PLACE < PAIR_PLACE] for column in (code, value))
    item, label, place = parts_of_item_code(code)
    texts = [label["variant"].removeprefix("v") for label in series.labels]
    numbers = [0 if text == "unknown" else int(text) for text in texts]  # people, of whom 0 has all
    found = NO_ITEMS.copy()
    np.add.at(found, (np.array(numbers)[label], np.searchsorted(ITEMS, item), place), value)
    return found


def _log(dice: Random) -> list[LogRecord]:
    """Visits, and records a month later that are no events: so that everything is settled."""
    events = [event for visit in range(VISITS) for event in _visit(dice, visit)]
    logs: dict[str, list[tuple[int, bytes]]] = {kind: [] for kind in KINDS}
    for event in sorted(events, key=lambda event: event["ts"]):
        kind = LINE_TYPES.get(event["type"], "conversions")  # of a refund
        logs[kind].append((event["ts"], json.dumps(event).encode()))
    for log in logs.values():
        log.append((T0 + MONTH_MS, b"{"))
    return [
        LogRecord(kind, 0, offset, record_ms, value)
        for kind, log in logs.items()
        for offset, (record_ms, value) in enumerate(log)
    ]


def _visit(dice: Random, number: int) -> Iterator[dict[str, Any]]:
    """A slate, what its user does with it, and a session."""
    at_ms = T0 + 10_000 * number + dice.randrange(10_000)
    variant = f"v{dice.randrange(SEGMENTS - EMPTY)}"
    base = {"user_id": f"u{number}", "variant": variant}
    asked = base | {"request_id": f"r{number}"}
    items = [f"i{i}" for i in dice.sample(range(400), SIZE)]
    shown = [
        {"item_id": item, "position": dice.choice((place, 60))}
        | ({"item_category": f"c{int(item[1:]) % 5}"} if dice.random() < 0.9 else {})
        | ({"score": _score(dice)} if dice.random() < 0.9 else {})
        | ({field: 1 - dice.random() for field in FIELDS} if dice.random() < 0.9 else {})
        for place, item in enumerate(items, 1)
    ]
    slate = asked | {"type": "impression", "ts": at_ms, "items": shown}
    slate |= {"latency_ms": dice.lognormvariate(4, 1)} if dice.random() < 0.9 else {}
    if dice.random() < 0.7:
        slate |= {"held_out": dice.choice(items), "reference": dice.sample(items, SIZE - 3)}
    yield slate
    if dice.random() < 0.1:  # without a position, and nobody responds to it
        yield base | {"type": "impression", "ts": at_ms, "item_id": "lone"}
    if number % 5 == 0:
        yield base | {"type": "impression", "ts": at_ms, "items": []}
    liking = dice.random()
    for item in items if dice.random() < 0.85 else ():
        if dice.random() < 0.5 * liking:
            yield from _response(dice, asked | {"item_id": item}, at_ms + dice.randrange(60_000))
    session = base | {"type": "session", "session_id": f"s{number}"}
    for _ in range(dice.choice((1, 1, 2, 3))):
        yield session | {"ts": at_ms, "action": "view"}
        at_ms += dice.randrange(400_000)


def _score(dice: Random) -> float:
    """A probability, mostly; else a raw score."""
    return dice.random() ** 2 if dice.random() < 0.8 else dice.gauss(0, 2)


def _response(dice: Random, base: dict[str, Any], at_ms: int) -> Iterator[dict[str, Any]]:
    """Feedback of some kind, and perhaps a purchase."""
    kind = dice.choice(("click", "click", "like", "share"))
    dwell = {"dwell_ms": int(dice.lognormvariate(9, 2)) % 3_000_000} if dice.random() < 0.8 else {}
    rating = {"rating": round(dice.gauss(1, 1), 3)} if dice.random() < 0.8 else {}
    yield base | dwell | rating | {"type": "click", "ts": at_ms, "feedback": kind}
    if dice.random() < 0.4:
        value = round(dice.random() * 90, 6)
        sold = {"value": value, "margin": round(dice.gauss(1, 5), 2)}
        yield base | {"type": "conversion", "ts": at_ms + 5000, **sold}
        if value > 80:
            yield base | {"type": "refund", "ts": at_ms + 6000, "value": value - 60}


def _people(dice: np.random.Generator) -> I64:
    """Sums over users that may be: no more clicked than were there."""
    kinds = len(SETTINGS.user_feedback_kinds)
    people = np.zeros((users_stats(kinds), SEGMENTS), np.int64)
    filled = slice(0, SEGMENTS - EMPTY)
    people[USERS, filled] = dice.integers(1, 600, SEGMENTS - EMPTY)
    people[HITS] = (people[USERS] * dice.random(SEGMENTS)).astype(np.int64)
    for kind in range(kinds):
        positive = (people[USERS] * dice.random(SEGMENTS)).astype(np.int64)
        people[positive_users(kind)] = positive
        rates = (positive * RATE_UNIT * dice.random(SEGMENTS)).astype(np.int64)
        people[rate_sum(kind)] = rates
        people[rate_squares(kind)] = rates - (rates * dice.random(SEGMENTS) / 2).astype(np.int64)
    return people
