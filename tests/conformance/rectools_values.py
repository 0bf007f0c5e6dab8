"""Values of RecTools, which needs NumPy below 2: they are computed in an environment of its own.

pip install rectools==0.19.0, elsewhere, and from the repository:
python -m tests.conformance.rectools_values > tests/conformance/rectools.json
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import pandas as pd

from tests.conformance import offline_log
from tests.conformance.lists import ITEMS, K, cases, category_of


def values(lists: list[list[int]]) -> dict[str, float]:
    """Metric of RecTools → its value."""
    rectools: Any = importlib.import_module("rectools.metrics")
    distances: Any = importlib.import_module("rectools.metrics.distances")
    shown = [(user, item, at) for user, some in enumerate(lists) for at, item in enumerate(some, 1)]
    lists_of = pd.DataFrame(shown, columns=["user_id", "item_id", "rank"])
    each = [(number, item) for number, (_, item, _) in enumerate(shown)]
    seen = pd.DataFrame(each, columns=["user_id", "item_id"])
    categories = pd.DataFrame({"category": [category_of(item) for item in range(ITEMS)]})
    unlike = distances.PairwiseHammingDistanceCalculator(categories)
    return {
        "CatalogCoverage": rectools.CatalogCoverage(K, normalize=True).calc(lists_of, range(ITEMS)),
        "IntraListDiversity": rectools.IntraListDiversity(K, unlike).calc(lists_of),
        "MeanInvUserFreq": rectools.MeanInvUserFreq(K).calc(lists_of, seen),
    }


def offline() -> dict[str, float]:
    """Metric → its value of the binary log that is evaluated offline."""
    rectools: Any = importlib.import_module("rectools.metrics")
    shown, clicked = offline_log.log("binary")
    lists_of = pd.DataFrame(shown, columns=["user_id", "item_id", "score"])
    lists_of["rank"] = lists_of.groupby("user_id")["score"].rank(ascending=False).astype(int)
    relevant = pd.DataFrame(clicked, columns=["user_id", "item_id", "weight"])
    k = offline_log.K
    metrics = {name: getattr(rectools, name)(k) for name in ("Precision", "Recall", "HitRate")}
    metrics |= {"MAP": rectools.MAP(k), "MRR": rectools.MRR(k)}
    metrics["NDCG"] = rectools.NDCG(k, divide_by_achievable=True)
    return {name: float(metric.calc(lists_of, relevant)) for name, metric in metrics.items()}


if __name__ == "__main__":
    found = {name: values(lists) for name, lists in cases().items()} | {"offline": offline()}
    json.dump(found, sys.stdout, indent=2)
    print()
