"""Which function of which library is compared with which metric, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from tests.conformance import libraries as by
from tests.conformance.cases import Case, Slate, random_case
from tests.conformance.libraries import Function, Values
from tests.conformance.ours import METRICS, UNIT, Ours, Value, ours, populations

TREC, RANX, JURITY, SKLEARN, SCIPY = LIBRARIES = (
    *("trec_eval", "ranx", "Jurity", "scikit-learn", "SciPy"),
)


@dataclass(frozen=True)
class Comparison:
    """``function``: what the page says is called; ``kinds``: of the cases that it can do."""

    metric: str
    convention: str
    package: str
    function: str
    values: Function
    kinds: tuple[str, ...] = ("binary", "graded")


def _by(metric: str, convention: str, *rows: tuple[str, str, Function]) -> list[Comparison]:
    return [Comparison(metric, convention, *row) for row in rows]


def _jurity(metric: str, convention: str, name: str) -> Comparison:
    return Comparison(metric, convention, JURITY, name, by.jurity(name), ("binary",))


def _probed(metric: str, library: str, function: str, values: Function) -> Comparison:
    return Comparison(metric, "", library, function, values, ("probed",))


def _average(metric: str, part: str) -> list[Comparison]:
    """Averages over relevant ranks in three conventions, from trec_eval's values at each rank."""
    called = f"mean of `{part}_1` … `{part}_k`"
    return [
        *_by(metric, "", (TREC, called, by.trec_built(part, False, lambda r, k: r))),
        *_by(metric, "jurity", (TREC, called, by.trec_built(part, False, min))),
        *_by(metric, "primer", (TREC, called, by.trec_built(part, True, min))),
    ]


COMPARISONS: tuple[Comparison, ...] = (
    *_by(
        "precision_ratio",
        "",
        (TREC, "`P_k`", by.trec("P_{k}")),
        (RANX, "`precision@k`", by.by_ranx("precision@{k}")),
    ),
    _jurity("precision_ratio", "shown", "Precision"),
    *_by(
        "recall_ratio",
        "",
        (TREC, "`recall_k`", by.trec_engaged("recall_{k}")),
        (RANX, "`recall@k`", by.ranx_engaged("recall@{k}")),
    ),
    _jurity("recall_ratio", "", "Recall"),
    *_by(
        "hit_ratio",
        "",
        (TREC, "`success_k`", by.trec("success_{k}")),
        (RANX, "`hit_rate@k`", by.by_ranx("hit_rate@{k}")),
    ),
    *_by(
        "mrr",
        "",
        (TREC, "`recip_rank`", by.trec("recip_rank")),
        (RANX, "`mrr`", by.by_ranx("mrr")),
    ),
    *_by("arhr", "", (TREC, "sum of `recip_rank`, item by item", by.trec_single_ranks)),
    *_by(
        "map_ratio",
        "",
        (TREC, "`map_cut_k`", by.trec("map_cut_{k}")),
        (RANX, "`map@k`", by.by_ranx("map@{k}")),
        (SKLEARN, "`label_ranking_average_precision_score`", by.sklearn_average_precision),
    ),
    _jurity("map_ratio", "jurity", "MAP"),
    *_average("map_ratio", "P")[1:],
    *_average("mar_ratio", "recall"),
    *_by("cg", "", (RANX, "sum of `hits@k-l1`, `-l2` …", by.ranx_levels)),
    *_by(
        "dcg",
        "",
        (RANX, "`dcg@k`", by.by_ranx("dcg@{k}")),
        (SKLEARN, "`dcg_score`", by.sklearn_dcg),
    ),
    *_by(
        "ndcg_ratio",
        "",
        (TREC, "`ndcg_cut_k`", by.trec("ndcg_cut_{k}")),
        (RANX, "`ndcg@k`", by.by_ranx("ndcg@{k}")),
        (SKLEARN, "`ndcg_score`", by.sklearn_ndcg(float)),
    ),
    _jurity("ndcg_ratio", "jurity", "NDCG"),
    *_by(
        "ndcg_ratio",
        "jurity",
        (SKLEARN, "`dcg_score`, quotient of two", by.sklearn_ndcg_uncut),
    ),
    *_by(
        "ndcg_ratio",
        "exponential",
        (RANX, "`ndcg_burges@k`", by.by_ranx("ndcg_burges@{k}")),
        (SKLEARN, "`ndcg_score` of 2^grade − 1", by.sklearn_ndcg(lambda grade: 2.0**grade - 1)),
    ),
    *_by("fcp_ratio", "", (SCIPY, "(1 + `somersd(grade, order)`) / 2", by.concordance)),
    *_by("kendall_tau", "", (SCIPY, "`somersd(order, grade)`", by.tau_a)),
    *_by("kendall_tau", "tau_b", (SCIPY, "`kendalltau`", by.tau_b)),
    *_by("spearman_rho", "", (SCIPY, "`spearmanr`", by.rho)),
    _probed("hit_sampled_ratio", TREC, "`success_10`", by.trec_sampled("success_10")),
    _probed("hit_sampled_ratio", RANX, "`hit_rate@10`", by.ranx_sampled("hit_rate@10")),
    _probed("ndcg_sampled_ratio", TREC, "`ndcg_cut_10`", by.trec_sampled("ndcg_cut_10")),
    _probed("ndcg_sampled_ratio", RANX, "`ndcg@10`", by.ranx_sampled("ndcg@10")),
    _probed("index_recall_ratio", TREC, "`recall_k`", by.trec_reference),
    _probed("index_recall_ratio", RANX, "`recall@k`", by.ranx_reference),
    *_by("gauc_ratio", "", (SKLEARN, "`roc_auc_score`", by.sklearn_auc)),
    *_by("bpr_loss", "", (SCIPY, "−`log_expit`", by.scipy_log_expit)),
    *_by("hinge_loss", "", (SKLEARN, "`hinge_loss`", by.hinge)),
    *_by("margin_loss", "", (SKLEARN, "`hinge_loss`, scaled", by.margin)),
)


# What comes of it -----------------------------------------------------------------------------


@dataclass
class Found:
    """Differences of one comparison; ``units``: of values rounded to 1e-9, ``slate``: of a slate's
    value, ``mean`` and ``error``: of means and standard errors (None: the library leaves slates
    out)."""

    compared: int = 0
    unequal: int = 0
    units: int = 0
    slate: float = 0.0
    mean: float | None = None
    error: float | None = None


def members(case: Case, metric: str) -> dict[str, set[str]]:
    """Population → names of its slates, for those that a metric is averaged over."""
    return {
        name: {s.name for s in case.slates if s.items and _belongs(s, name)}
        for name in populations(metric)
    }


def _belongs(slate: Slate, population: str) -> bool:
    scored = slate.scored
    return {
        "all": True,
        "engaged": any(slate.grades),
        "contrasted": len(set(slate.grades)) > 1,
        "gauc": len({item.is_clicked for item in scored}) > 1,
        "paired": len({item.grade > 0 for item in scored}) > 1,
        "sampled": slate.held_out is not None,
        "reference": bool(slate.reference),
    }[population]


def values_of(comparison: Comparison, case: Case) -> Iterator[tuple[Value, Values]]:
    """The library's values of a case, at each cut-off."""
    for k in case.cutoffs if METRICS[comparison.metric].by_k else (0,):
        value = Value(comparison.metric, k, comparison.convention)
        yield value, comparison.values(case.slates, k)


def compare(comparison: Comparison, case: Case, got: Ours, found: Found) -> None:
    """Add the differences of one case."""
    for value, theirs in values_of(comparison, case):
        units = got.units[value]
        for slate, number in theirs.items():
            apart = abs(units[slate] - math.floor(number * UNIT + 0.5))
            found.compared += 1
            found.unequal += apart > 0
            found.units = max(found.units, apart)
            found.slate = max(found.slate, abs(units[slate] / UNIT - number))
        for population, names in members(case, value.metric).items():
            if len(names) > 1 and names <= theirs.keys():
                sample = [theirs[name] for name in sorted(names)]
                mean = abs(got.mean[value, population] - float(np.mean(sample)))
                error = abs(got.error[value, population] - float(stats.sem(sample)))
                found.mean = max(found.mean or 0.0, mean)
                found.error = max(found.error or 0.0, error)


@cache
def random_cases() -> tuple[tuple[Case, Ours], ...]:
    """Random slates and our readings of them."""
    cases = [random_case(kind) for kind in ("binary", "graded", "probed")]
    return tuple((case, ours(case)) for case in cases)


@cache
def of_random_slates(comparison: Comparison) -> Found:
    """The differences on random slates."""
    found = Found()
    for case, got in random_cases():
        if case.kind in comparison.kinds:
            compare(comparison, case, got, found)
    return found
