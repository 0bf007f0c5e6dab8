"""Ranking: how well slates put what users respond to first; each value is one slate's.

Members have ranks i = 1 … n in the order shown; R are the relevant ones (grade above 0), r = |R|,
h(k) = |R in the first k|. Sources: P the recommender-evaluation primer, G Gorse's evaluation page,
J Jurity's metric page, L the learning-to-rank notes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamer import probes
from streamer.batch import I64, Bools
from streamer.metrics.declare import Family
from streamer.metrics.slate_metrics import BRIEF, Population, SlateFamily
from streamer.metrics.slates import (
    DISCOUNT,
    RECIPROCAL,
    TABLE_BITS,
    UNIT,
    Lists,
    exponential,
    from_table,
    quotient,
    rounded,
)

SAMPLED_CUTOFF = 10
"""k of the metrics of slates with a held-out item."""

ALL = Population("all", "window_slates", "every slate", None, has_over=True, brief=BRIEF)
ENGAGED = Population(
    "engaged", "window_slates", "with a relevant item", lambda x: x.relevant_count > 0, True
)
CONTRASTED = Population(
    "contrasted",
    "window_contrasted_slates",
    "with items of different grade",
    lambda x: x.is_contrasted,
)
SAMPLED = Population(
    "sampled",
    "window_sampled_slates",
    "with a held-out item",
    lambda x: x.total(probes.has_held_out(x.fact.probe)) > 0,
    has_maturity=False,
)
REFERENCE = Population(
    "reference",
    "window_reference_slates",
    "with a brute-force list",
    lambda x: x.total(probes.reference_rank(x.fact.probe) >= 0) > 0,
    has_maturity=False,
)

slate_metric = SlateFamily("ranking", (ALL, ENGAGED, CONTRASTED, SAMPLED, REFERENCE))
_BOTH = ("all", "engaged")


@slate_metric(
    "precision_ratio",
    formula="h(k) / k",
    unit="ratio",
    source="P G J L",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    conventions=("shown",),
)
def precision(lists: Lists, k: int, convention: str) -> I64:
    """Share of the first k places that hold a relevant item; shown: of those of them that there
    are, min(k, n) (Jurity)."""
    places = np.minimum(lists.size, k) if convention == "shown" else np.full(len(lists), k)
    return quotient(lists.hits_within(k), places)


@slate_metric(
    "recall_ratio",
    formula="h(k) / r",
    unit="ratio",
    source="P G J L",
    population=ENGAGED,
    over=("engaged",),
    by_k=True,
)
def recall(lists: Lists, k: int, convention: str) -> I64:
    """Share of the slate's relevant items that stand in the first k places."""
    return quotient(lists.hits_within(k), lists.relevant_count)


@slate_metric(
    "hit_ratio",
    formula="1 if h(k) > 0",
    unit="ratio",
    source="G",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
)
def hit(lists: Lists, k: int, convention: str) -> I64:
    """Whether any relevant item stands in the first k places."""
    return UNIT * (lists.hits_within(k) > 0)


@slate_metric(
    "mrr",
    formula="1 / rank of the first relevant item",
    unit="reciprocal rank",
    source="P",
    population=ENGAGED,
    over=_BOTH,
)
def reciprocal_rank(lists: Lists, k: int, convention: str) -> I64:
    """How early the first relevant item comes; 0 where there is none."""
    is_first = lists.is_relevant & (lists.hits == 1)
    return quotient(
        np.minimum(lists.relevant_count, 1), lists.total(np.where(is_first, lists.rank, 0))
    )


@slate_metric(
    "arhr",
    formula="sum over relevant i <= k of 1 / i",
    unit="reciprocal rank",
    source="P",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    largest=lambda gains, margin, k: (int(RECIPROCAL[: k + 1].sum()) >> TABLE_BITS) + 1,
)
def reciprocal_hits(lists: Lists, k: int, convention: str) -> I64:
    """Average reciprocal hit rate: every relevant item in the first k places counts its reciprocal
    rank."""
    counts = lists.is_relevant & (lists.rank <= k)
    return from_table(lists.total(np.where(counts, RECIPROCAL[lists.rank], 0)))


def _divisor(lists: Lists, k: int, convention: str) -> I64:
    """What the average of precisions or recalls is taken over."""
    if convention == "primer":
        return lists.hits_within(k)
    return np.minimum(lists.relevant_count, k) if convention == "jurity" else lists.relevant_count


@slate_metric(
    "map_ratio",
    formula="sum over relevant i <= k of h(i) / i, / r",
    unit="ratio",
    source="P J",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    conventions=("jurity", "primer"),
)
def average_precision(lists: Lists, k: int, convention: str) -> I64:
    """Average precision at k, divided by r (trec_eval); jurity: by min(k, r); primer: by h(k)."""
    counts = lists.is_relevant & (lists.rank <= k)
    total = lists.total(np.where(counts, lists.hits * RECIPROCAL[lists.rank], 0))
    divisor = _divisor(lists, k, convention) << TABLE_BITS
    return np.where(divisor > 0, (2 * total + divisor) // np.maximum(2 * divisor, 1), 0)


@slate_metric(
    "mar_ratio",
    formula="sum over relevant i <= k of h(i) / r, / r",
    unit="ratio",
    source="P",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    conventions=("jurity", "primer"),
)
def average_recall(lists: Lists, k: int, convention: str) -> I64:
    """Average recall at k, divided as map_ratio is; recalls count at relevant ranks only."""
    hits = lists.hits_within(k)
    return quotient(hits * (hits + 1) // 2, lists.relevant_count * _divisor(lists, k, convention))


@slate_metric(
    "cg",
    formula="sum over i <= k of the gain",
    unit="gain",
    source="P L",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    largest=lambda gains, margin, k: int(k * max(gains, default=0.0) * UNIT) + 1,
)
def cumulative_gain(lists: Lists, k: int, convention: str) -> I64:
    """Gains of the first k items, wherever they stand."""
    return rounded(lists.gained(np.ones_like(lists.rank), k, lists.gains))


@slate_metric(
    "dcg",
    formula="sum over i <= k of gain / log2(i + 1)",
    unit="gain",
    source="P L",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    largest=lambda gains, margin, k: (
        int(max(gains, default=0.0) * float(DISCOUNT[: k + 1].sum()) / (1 << TABLE_BITS)) + 1
    ),
)
def discounted_gain(lists: Lists, k: int, convention: str) -> I64:
    """Discounted cumulative gain of the first k items."""
    discounted = lists.gained(DISCOUNT[lists.rank], k, lists.gains)
    return np.floor(discounted / (1 << TABLE_BITS) + 0.5).astype(np.int64)


@slate_metric(
    "ndcg_ratio",
    brief=BRIEF,
    formula="dcg(k) / dcg(k) of the best order",
    unit="ratio",
    source="P J L G",
    population=ENGAGED,
    over=_BOTH,
    by_k=True,
    conventions=("jurity", "exponential"),
)
def normalized_gain(lists: Lists, k: int, convention: str) -> I64:
    """Discounted gain as a share of that of the slate's items by grade, cut at k (trec_eval);
    jurity: the best order is not cut; exponential: gains are 2**gain - 1."""
    gains = lists.gains
    if convention == "exponential":
        gains = [exponential(gain) for gain in gains]
    ideal = lists.ideally_discounted(int(lists.size.max()) if convention == "jurity" else k, gains)
    found = lists.gained(DISCOUNT[lists.rank], k, gains)
    return rounded(np.divide(found, ideal, out=np.zeros(len(lists)), where=ideal > 0))


@slate_metric(
    "fcp_ratio",
    formula="concordant / (concordant + discordant) pairs of items of different grade",
    unit="ratio",
    source="P",
    population=CONTRASTED,
)
def concordance(lists: Lists, k: int, convention: str) -> I64:
    """Fraction of concordant pairs: those in which the item of higher grade stands first."""
    concordant, discordant = lists.ordered_pairs
    return quotient(concordant, concordant + discordant)


@slate_metric(
    "kendall_tau",
    formula="(concordant - discordant) / (n (n - 1) / 2)",
    unit="correlation",
    source="P L",
    population=CONTRASTED,
    conventions=("tau_b",),
)
def kendall(lists: Lists, k: int, convention: str) -> I64:
    """Rank correlation of the order shown and the grades (tau-a); tau_b: pairs of equal grade are
    left out of its denominator as usual."""
    concordant, discordant = lists.ordered_pairs
    pairs = lists.size * (lists.size - 1) // 2
    above = concordant - discordant
    if convention == "tau_b":
        below = np.sqrt((pairs * (concordant + discordant)).astype(np.float64))
        return rounded(np.divide(above, below, out=np.zeros(len(lists)), where=below > 0))
    return quotient(above, pairs)


@slate_metric(
    "spearman_rho",
    formula="Pearson correlation of ranks, equal grades sharing their mean rank",
    unit="correlation",
    source="P L",
    population=CONTRASTED,
)
def spearman(lists: Lists, k: int, convention: str) -> I64:
    """Rank correlation of the order shown and the grades."""
    size = lists.size
    order = size[lists.owner] + 1 - 2 * lists.rank
    above, below = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    lower = np.zeros(len(lists), np.int64)
    for at in (lists.grade == 0, *lists.at_grade):
        equal = lists.total(at)
        centred = 2 * lower + equal - size
        above += centred * lists.total(np.where(at, order, 0))
        below += equal * centred * centred
        lower += equal
    root = np.sqrt((below * (size * (size * size - 1) // 3)).astype(np.float64))
    return rounded(np.divide(above, root, out=np.zeros(len(lists)), where=root > 0))


def _held_out_rank(lists: Lists) -> I64:
    """Rank of the held-out item in each slate, or one that is beyond any."""
    beyond = np.int64(2**31)
    rank = np.where(probes.is_held_out(lists.fact.probe), lists.rank, beyond)
    return np.minimum.reduceat(rank, lists.start)


@slate_metric(
    "hit_sampled_ratio",
    formula="1 if the held-out item stands in the first 10",
    unit="ratio",
    source="G",
    population=SAMPLED,
)
def sampled_hit(lists: Lists, k: int, convention: str) -> I64:
    """HR@10 of one held-out item among sampled ones (`held_out` of the event)."""
    return UNIT * (_held_out_rank(lists) <= SAMPLED_CUTOFF)


@slate_metric(
    "ndcg_sampled_ratio",
    formula="1 / log2(rank of the held-out item + 1) if it stands in the first 10",
    unit="ratio",
    source="G",
    population=SAMPLED,
)
def sampled_gain(lists: Lists, k: int, convention: str) -> I64:
    """NDCG@10 of one held-out item among sampled ones (`held_out` of the event)."""
    rank = _held_out_rank(lists)
    return np.where(
        rank <= SAMPLED_CUTOFF, from_table(DISCOUNT[np.minimum(rank, SAMPLED_CUTOFF)]), 0
    )


@slate_metric(
    "index_recall_ratio",
    formula="|first k of the index in the first k of brute force| / k",
    unit="ratio",
    source="G",
    population=REFERENCE,
    by_k=True,
)
def index_recall(lists: Lists, k: int, convention: str) -> I64:
    """Share of the brute-force list's first k (`reference` of the event) that an approximate index
    put in its own first k."""
    listed = probes.reference_rank(lists.fact.probe)
    found: Bools = (lists.rank <= k) & (listed >= 1) & (listed <= k)
    return quotient(lists.total(found), np.full(len(lists), k))


def _stats(settings: Any) -> tuple[Any, ...]:
    return (slate_metric.stat(settings),)


FAMILY = Family("ranking", _stats, slate_metric.collect, tuple(slate_metric.metrics))
