"""Metrics of slates as independent libraries compute them: each returns slate → value.

Libraries get what was shown, in its order (scores n, n − 1, … 1), and the grade of every shown
item, 0 included: so a slate without feedback is known to them, and counts 0 where they count it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytrec_eval
import ranx
import sklearn
from jurity.recommenders import MAP, NDCG, Precision, Recall
from scipy import special, stats
from sklearn import metrics

from tests.conformance.cases import Slate
from tests.conformance.ours import MARGIN

sklearn.set_config(assume_finite=True, skip_parameter_validation=True)  # half of the time
Slates = Sequence[Slate]
Values = dict[str, float]
Function = Callable[[Slates, int], Values]
"""Slates and cut-off (0: none) → values of those slates for which the library has one."""
Judged = dict[str, dict[str, int]]
Ranked = dict[str, dict[str, float]]


def judged_of(slates: Slates) -> Judged:
    return {s.name: {item.name: item.grade for item in s.items} for s in slates if s.items}


def ranked_of(slates: Slates) -> Ranked:
    return {s.name: _descending([item.name for item in s.items]) for s in slates if s.items}


def _descending(names: Sequence[str]) -> dict[str, float]:
    return {name: float(len(names) - i) for i, name in enumerate(names)}


# trec_eval ------------------------------------------------------------------------------------


def trec_of(measure: str, judged: Judged, ranked: Ranked) -> Values:
    """A measure with its cut-off, as ``ndcg_cut_5``."""
    name, _, k = measure.rpartition("_")
    asked = f"{name}.{k}" if k.isdigit() else measure
    found = pytrec_eval.RelevanceEvaluator(judged, {asked}).evaluate(ranked)
    return {slate: float(values[measure]) for slate, values in found.items()}


def trec(measure: str) -> Function:
    def values(slates: Slates, k: int) -> Values:
        return trec_of(measure.format(k=k), judged_of(slates), ranked_of(slates))

    return values


def trec_engaged(measure: str) -> Function:
    return lambda slates, k: trec(measure)([s for s in slates if any(s.grades)], k)


def trec_built(part: str, divide_by_hits: bool, divide_by: Callable[[int, int], int]) -> Function:
    """Mean of a measure's values at the relevant ranks up to k, from its values at each rank."""

    def values(slates: Slates, k: int) -> Values:
        judged, ranked = judged_of(slates), ranked_of(slates)
        at_rank = [trec_of(f"{part}_{i}", judged, ranked) for i in range(1, k + 1)]
        found = {}
        for slate in slates:
            hits = [i for i, grade in enumerate(slate.grades[:k]) if grade]
            below = len(hits) if divide_by_hits else divide_by(sum(map(bool, slate.grades)), k)
            total = sum(at_rank[i][slate.name] for i in hits)
            if slate.items:
                found[slate.name] = total / below if below else 0.0
        return found

    return values


def trec_single_ranks(slates: Slates, k: int) -> Values:
    """Reciprocal ranks of the relevant items, each judged as if it were the only one."""
    judged: Judged = {}
    ranked: Ranked = {}
    for slate in slates:
        order = _descending([item.name for item in slate.items[:k]])
        for item in slate.items[:k]:
            key = f"{slate.name} {item.name}"
            judged[key], ranked[key] = {item.name: int(item.grade > 0)}, order
    found = {slate.name: 0.0 for slate in slates if slate.items}
    for key, value in trec_of("recip_rank", judged, ranked).items():
        found[key.split()[0]] += value
    return found


def trec_sampled(measure: str) -> Function:
    """The held-out item is the only relevant one."""

    def values(slates: Slates, k: int) -> Values:
        held_out = {s.name: {s.held_out: 1} for s in slates if s.held_out}
        return trec_of(measure, held_out, ranked_of(slates))

    return values


def referenced(slates: Slates, k: int) -> Judged:
    """The first k of the brute-force list are the relevant ones."""
    return {s.name: dict.fromkeys(s.reference[:k], 1) for s in slates if s.reference}


def trec_reference(slates: Slates, k: int) -> Values:
    return trec_of(f"recall_{k}", referenced(slates, k), ranked_of(slates))


# ranx -----------------------------------------------------------------------------------------


def ranx_of(measure: str, judged: Judged, ranked: Ranked) -> Values:
    run = {name: order for name, order in ranked.items() if name in judged}
    qrels, found = ranx.Qrels.from_dict(judged), ranx.Run.from_dict(run)
    values = ranx.evaluate(qrels, found, measure, return_mean=False, make_comparable=True)
    return dict(zip(found.get_query_ids(), map(float, values), strict=True))


def by_ranx(measure: str) -> Function:
    def values(slates: Slates, k: int) -> Values:
        return ranx_of(measure.format(k=k), judged_of(slates), ranked_of(slates))

    return values


def ranx_engaged(measure: str) -> Function:
    return lambda slates, k: by_ranx(measure)([s for s in slates if any(s.grades)], k)


def ranx_levels(slates: Slates, k: int) -> Values:
    """Sum of whole-numbered grades: hits of level 1, and of level 2, and so on."""
    judged, ranked = judged_of(slates), ranked_of(slates)
    top = max(max(grades.values()) for grades in judged.values())
    levels = [ranx_of(f"hits@{k}-l{level}", judged, ranked) for level in range(1, top + 1)]
    return {name: sum(level[name] for level in levels) for name in judged}


def ranx_sampled(measure: str) -> Function:
    def values(slates: Slates, k: int) -> Values:
        held_out = {s.name: {s.held_out: 1} for s in slates if s.held_out}
        return ranx_of(measure, held_out, ranked_of(slates))

    return values


def ranx_reference(slates: Slates, k: int) -> Values:
    return ranx_of(f"recall@{k}", referenced(slates, k), ranked_of(slates))


# Jurity ---------------------------------------------------------------------------------------

JURITY = {"NDCG": NDCG, "MAP": MAP, "Precision": Precision, "Recall": Recall}


def jurity_of(name: str, judged: Judged, ranked: Ranked, k: int) -> Any:
    """Values of users with feedback, in the order of their names."""
    columns = ["user_id", "item_id", "click"]
    actual = [(u, item, grade) for u, items in judged.items() for item, grade in items.items()]
    shown = [(u, item, score) for u, items in ranked.items() for item, score in items.items()]
    metric = JURITY[name]("click", k=k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of pandas
        frames = (pd.DataFrame(rows, columns=columns) for rows in (actual, shown))
        metric.get_score(*frames, batch_accumulate=True)
    return np.concatenate([np.asarray(values) for values in metric._results])


def jurity(name: str) -> Function:
    def values(slates: Slates, k: int) -> Values:
        users = sorted(s.name for s in slates if any(s.grades))
        found = jurity_of(name, judged_of(slates), ranked_of(slates), k)
        return dict(zip(users, map(float, found), strict=True))

    return values


# scikit-learn ---------------------------------------------------------------------------------


def _dcg(grades: Sequence[float], order: Sequence[float], k: int | None) -> float:
    return float(metrics.dcg_score([grades], [order], k=k, ignore_ties=True))


def _order(slate: Slate) -> list[float]:
    return [float(i) for i in range(len(slate.items), 0, -1)]


def sklearn_dcg(slates: Slates, k: int) -> Values:
    """A list of one item is refused, here and by the next."""
    return {s.name: _dcg(s.grades, _order(s), k) for s in slates if len(s.items) > 1}


def sklearn_ndcg(gain: Callable[[int], float]) -> Function:
    def values(slates: Slates, k: int) -> Values:
        return {
            s.name: float(
                metrics.ndcg_score(
                    [[gain(g) for g in s.grades]], [_order(s)], k=k, ignore_ties=True
                )
            )
            for s in slates
            if len(s.items) > 1
        }

    return values


def sklearn_ndcg_uncut(slates: Slates, k: int) -> Values:
    """The best order is not cut at k."""
    found = {}
    for slate in slates:
        if len(slate.items) > 1:
            best = _dcg(slate.grades, slate.grades, None)
            found[slate.name] = _dcg(slate.grades, _order(slate), k) / best if best else 0.0
    return found


def sklearn_average_precision(slates: Slates, k: int) -> Values:
    """The whole list, of slates that the cut-off does not cut. A list without feedback gives 1."""
    return {
        s.name: float(
            metrics.label_ranking_average_precision_score([[g > 0 for g in s.grades]], [_order(s)])
        )
        for s in slates
        if any(s.grades) and len(s.items) <= k
    }


def sklearn_auc(slates: Slates, k: int) -> Values:
    found = {}
    for slate in slates:
        clicked = [item.is_clicked for item in slate.scored]
        if 0 < sum(clicked) < len(clicked):
            found[slate.name] = metrics.roc_auc_score(clicked, [i.score for i in slate.scored])
    return found


def _leads(slates: Slates) -> Iterable[tuple[str, Any]]:
    """By how much the score of each relevant item is above that of each other one."""
    for slate in slates:
        score = np.array([item.score for item in slate.scored])
        is_relevant = np.array([item.grade > 0 for item in slate.scored], np.bool_)
        leads = np.subtract.outer(score[is_relevant], score[~is_relevant]).ravel()
        if len(leads):
            yield slate.name, leads


def sklearn_hinge(margin: float) -> Function:
    """Each pair once either way round, since two classes are asked for."""

    def values(slates: Slates, k: int) -> Values:
        found = {}
        for name, leads in _leads(slates):
            truth = np.repeat([1, -1], len(leads))
            decision = np.concatenate((leads, -leads)) / margin
            found[name] = margin * float(metrics.hinge_loss(truth, decision))
        return found

    return values


# SciPy ----------------------------------------------------------------------------------------


def scipy_log_expit(slates: Slates, k: int) -> Values:
    return {name: float(np.mean(-special.log_expit(leads))) for name, leads in _leads(slates)}


def of_order(correlate: Callable[[list[float], list[int]], float]) -> Function:
    """A correlation of the order shown and the grades, of slates with different ones."""

    def values(slates: Slates, k: int) -> Values:
        different = [s for s in slates if len(set(s.grades)) > 1]
        return {s.name: float(correlate(_order(s), s.grades)) for s in different}

    return values


hinge = sklearn_hinge(1.0)
margin = sklearn_hinge(MARGIN)
tau_b = of_order(lambda order, grades: stats.kendalltau(order, grades).statistic)
tau_a = of_order(lambda order, grades: stats.somersd(order, grades).statistic)
concordance = of_order(lambda order, grades: (1 + stats.somersd(grades, order).statistic) / 2)
rho = of_order(lambda order, grades: stats.spearmanr(order, grades).statistic)
