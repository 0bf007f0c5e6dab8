"""Coverage and diversity beside Jurity and RecTools."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import log2
from pathlib import Path

import numpy as np
import pandas as pd
from jurity.recommenders import InterListDiversity
from sklearn.metrics.pairwise import cosine_similarity

from streamer.settings.load import parse
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from tests.conformance.cases import START_MS
from tests.conformance.lists import ITEMS, K, cases, category_of

RECTOOLS: Mapping[str, Mapping[str, float]] = json.loads(
    Path(__file__).with_name("rectools.json").read_text(encoding="utf-8")
)
"""Case → metric of RecTools 0.19.0 → value: see ``rectools_values``."""


@dataclass(frozen=True)
class Comparison:
    """``unit``: what ours is multiplied by to have the library's unit."""

    metric: str
    compared_with: str
    theirs: Callable[[str], float]
    unit: float = 1.0


def _jurity(case: str) -> float:
    rows = [(user, item, 1.0) for user, some in enumerate(cases()[case]) for item in some]
    lists = pd.DataFrame(rows, columns=["user_id", "item_id", "score"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it takes all users
        return float(InterListDiversity("score", K).get_score(lists, lists))


def _novelty(case: str) -> float:
    """1 - people who were shown an item / people who clicked another or none, over impressions."""
    rows = [(user, item) for user, some in enumerate(cases()[case]) for item in some]
    shown = pd.DataFrame(rows, columns=["user", "item"])
    saw = shown.groupby("item").user.nunique()
    clicks = [item for user, some in enumerate(cases()[case]) for item in _clicked(user, some)]
    clicked = pd.Series(clicks).value_counts().reindex(saw.index, fill_value=0)
    return float((1 - saw / (shown.user.nunique() - clicked))[shown["item"]].mean())


def _co_occurrence(case: str) -> float:
    """1 - mean cosine of the people who clicked both, over pairs of items in lists."""
    users = enumerate(cases()[case])
    clicks = np.zeros((ITEMS, len(cases()[case])))
    for user, some in users:
        clicks[list(_clicked(user, some)), user] = 1
    alike = cosine_similarity(clicks)
    pairs = [alike[a, b] for some in cases()[case] for a, b in combinations(some[:K], 2)]
    return 1 - float(np.mean(pairs))


def _rectools(name: str) -> Callable[[str], float]:
    return lambda case: RECTOOLS[case][name]


COMPARISONS = (
    Comparison("inter_list_diversity_ratio", "Jurity: `InterListDiversity`", _jurity),
    Comparison(
        "intra_list_diversity_ratio",
        "RecTools: `IntraListDiversity`, Hamming distance of the category",
        _rectools("IntraListDiversity"),
    ),
    Comparison(
        "catalog_coverage_ratio", "RecTools: `CatalogCoverage`", _rectools("CatalogCoverage")
    ),
    Comparison(
        "novelty_ratio",
        "RecTools: `MeanInvUserFreq` of impressions by a user each, / log2(items)",
        _rectools("MeanInvUserFreq"),
        log2(ITEMS),
    ),
    Comparison("people_novelty_ratio", "pandas: the primer's formula", _novelty),
    Comparison(
        "co_occurrence_diversity_ratio",
        "scikit-learn: `cosine_similarity` of the people who clicked each item",
        _co_occurrence,
    ),
)


def _log(lists: list[list[int]]) -> Iterator[Line]:
    for user, some in enumerate(lists):
        items = [{"item_id": f"i{item}", "item_category": f"c{category_of(item)}"} for item in some]
        event = {"type": "impression", "ts": START_MS + user, "user_id": f"u{user}", "items": items}
        yield "impressions", START_MS + user, json.dumps(event).encode()
    at_ms = START_MS + len(lists)
    for user, some in enumerate(lists):
        for item in _clicked(user, some):
            click = {"type": "click", "ts": at_ms, "user_id": f"u{user}", "item_id": f"i{item}"}
            yield "clicks", at_ms, json.dumps(click).encode()


def _clicked(user: int, some: list[int]) -> set[int]:
    """What a user clicks of a list: one user in three up to three items."""
    return set(some[: user % 4]) if user % 3 == 0 else set()


@cache
def readings(case: str) -> dict[str, float]:
    """Metric → its value over all lists."""
    settings = parse(
        {
            "dimensions": [],
            "windows": {"lengths": ["1h"]},
            "metrics": {"families": ["coverage", "diversity", "engagement"], "k": [K]},
            "items": {"catalog_size": ITEMS, "pairs": True},
        }
    )
    replay = Replay(settings)
    replay.feed(list(_log(cases()[case])))
    replay.finish()
    found = replay.readout().readings
    return {
        r.name.removeprefix("streamer_"): r.value
        for r in found
        if r.labels.get("k", str(K)) == str(K) and r.labels.get("maturity") != "mature"
    }
