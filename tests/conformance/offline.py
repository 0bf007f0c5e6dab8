"""``streamer.evaluate`` beside libraries, each left to its own rules about items not shown."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytrec_eval
import ranx
from jurity.recommenders import MAP, NDCG, Precision, Recall

from streamer.library.evaluation import Evaluation, evaluate
from tests.conformance.offline_log import K, log

RECTOOLS: dict[str, float] = json.loads(
    Path(__file__).with_name("rectools.json").read_text(encoding="utf-8")
)["offline"]
"""Metric of RecTools 0.19.0 → its value of the binary log: see ``rectools_values``."""
Function = Callable[[str], float]
"""Kind of the log → the library's value."""
BINARY, BOTH = ("binary",), ("binary", "graded")


@dataclass(frozen=True)
class OfflineComparison:
    """``asked``: the metric as ``evaluate`` takes it; ``kinds``: of the logs that the library can
    do."""

    asked: str
    library: str
    function: str
    value: Function
    kinds: tuple[str, ...]


def frames(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Impressions and clicks of a log."""
    shown, clicked = log(kind)
    return (
        pd.DataFrame(shown, columns=["user_id", "item_id", "score"]),
        pd.DataFrame(clicked, columns=["user_id", "item_id", "grade"]),
    )


def ours(kind: str) -> Evaluation:
    """The values of all metrics that are compared."""
    return evaluate(*frames(kind), sorted({c.asked for c in COMPARISONS}))


def _judged(kind: str) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for user, item, grade in log(kind)[1]:
        judged.setdefault(user, {})[item] = grade
    return judged


def _ranked(kind: str) -> dict[str, dict[str, float]]:
    ranked: dict[str, dict[str, float]] = {}
    for user, item, score in log(kind)[0]:
        ranked.setdefault(user, {})[item] = score
    return ranked


def _trec(measure: str) -> Function:
    def value(kind: str) -> float:
        name, _, k = measure.rpartition("_")
        asked = f"{name}.{k}" if k.isdigit() else measure
        found = pytrec_eval.RelevanceEvaluator(_judged(kind), {asked}).evaluate(_ranked(kind))
        return float(np.mean([of[measure] for of in found.values()]))

    return value


def _ranx(measure: str) -> Function:
    def value(kind: str) -> float:
        judged, ranked = ranx.Qrels.from_dict(_judged(kind)), ranx.Run.from_dict(_ranked(kind))
        return float(ranx.evaluate(judged, ranked, measure, make_comparable=True))

    return value


def _jurity(metric: Callable[..., object]) -> Function:
    def value(kind: str) -> float:
        shown, clicked = (of.set_axis(["user_id", "item_id", "click"], axis=1)
                          for of in frames(kind))  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas
            return float(metric("click", k=K).get_score(clicked, shown))  # type: ignore[attr-defined]

    return value


def _rectools(name: str) -> Function:
    return lambda kind: RECTOOLS[name]


def _of(
    library: str, kinds: tuple[str, ...], *rows: tuple[str, str, Function]
) -> list[OfflineComparison]:
    return [OfflineComparison(row[0], library, row[1], row[2], kinds) for row in rows]


COMPARISONS = (
    *_of(
        *("trec_eval", BOTH),
        (f"precision@{K}", "P_k", _trec(f"P_{K}")),
        (f"recall@{K}", "recall_k", _trec(f"recall_{K}")),
        (f"hit@{K}", "success_k", _trec(f"success_{K}")),
        ("mrr", "recip_rank", _trec("recip_rank")),
        (f"map@{K}", "map_cut_k", _trec(f"map_cut_{K}")),
        ("map", "map", _trec("map")),
        (f"ndcg@{K}", "ndcg_cut_k", _trec(f"ndcg_cut_{K}")),
        ("ndcg", "ndcg", _trec("ndcg")),
    ),
    *_of(
        *("ranx", BOTH),
        (f"precision@{K}", "precision@k", _ranx(f"precision@{K}")),
        (f"recall@{K}", "recall@k", _ranx(f"recall@{K}")),
        (f"hit@{K}", "hit_rate@k", _ranx(f"hit_rate@{K}")),
        (f"mrr@{K}", "mrr@k", _ranx(f"mrr@{K}")),
        (f"map@{K}", "map@k", _ranx(f"map@{K}")),
        (f"dcg@{K}", "dcg@k", _ranx(f"dcg@{K}")),
        (f"ndcg@{K}", "ndcg@k", _ranx(f"ndcg@{K}")),
        (f"ndcg@{K}.exponential", "ndcg_burges@k", _ranx(f"ndcg_burges@{K}")),
    ),
    *_of(
        *("Jurity", BINARY),
        (f"precision@{K}.shown", "Precision", _jurity(Precision)),
        (f"recall@{K}", "Recall", _jurity(Recall)),
        (f"map@{K}.jurity", "MAP", _jurity(MAP)),
        (f"ndcg@{K}.jurity", "NDCG", _jurity(NDCG)),
    ),
    *_of(
        *("RecTools", BINARY),
        (f"precision@{K}", "Precision", _rectools("Precision")),
        (f"recall@{K}", "Recall", _rectools("Recall")),
        (f"hit@{K}", "HitRate", _rectools("HitRate")),
        (f"mrr@{K}", "MRR", _rectools("MRR")),
        (f"map@{K}", "MAP", _rectools("MAP")),
        (f"ndcg@{K}", "NDCG(divide_by_achievable=True)", _rectools("NDCG")),
    ),
)
