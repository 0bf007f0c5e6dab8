"""Ranking: how well slates put what users respond to first; each value is one slate's.

Members have ranks i = 1 … n in the order shown; R are the relevant ones (grade above 0), r = |R|,
h(k) = |R in the first k|. Sources: P the recommender-evaluation primer, G Gorse's evaluation page,
J Jurity's metric page, L the learning-to-rank notes.

One slate of four items; the second and the fourth are clicked:

    >>> from streamer.testing import value_of
    >>> shown = [{"item_id": item, "position": i} for i, item in enumerate("abcd", 1)]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": item} for item in "bd"]
    >>> slates = {"maturity": "provisional", "over": "all"}
    >>> value_of(events, "mrr", **slates)  # 1 / 2
    0.5
    >>> value_of(events, "precision_ratio", {"metrics": {"k": [4]}}, k="4", **slates)
    0.5
    >>> value_of(events, "map_ratio", {"metrics": {"k": [4]}}, k="4", **slates)  # (1/2 + 2/4) / 2
    0.5

The cut-off `visible` is what people see: on the surface `phone` one position, elsewhere four:

    >>> settings = {"metrics": {"k": [4], "visible": {"surface": {"phone": 1}}}}
    >>> value_of(events, "hit_ratio", settings, k="visible", **slates)
    1.0
    >>> events[0]["surface"] = "phone"
    >>> value_of(events, "hit_ratio", settings, k="visible", **slates)
    0.0
"""

from __future__ import annotations

from functools import partial

from streamer.metrics.slate_metrics import BRIEF, Population, SlateFamily
from streamer.metrics.slates import DISCOUNT, RECIPROCAL, TABLE_BITS, UNIT

SAMPLED_CUTOFF = 10
"""k of the metrics of slates with a held-out item."""

ALL = Population("all", "window_slates", "every slate", has_over=True, brief=BRIEF)
ENGAGED = Population("engaged", "window_slates", "with a relevant item", has_over=True)
CONTRASTED = Population(
    "contrasted",
    "window_contrasted_slates",
    "with items of different grade",
)
SAMPLED = Population(
    "sampled",
    "window_sampled_slates",
    "with a held-out item",
    has_maturity=False,
)
REFERENCE = Population(
    "reference",
    "window_reference_slates",
    "with a brute-force list",
    has_maturity=False,
)

slate_metric = SlateFamily("ranking", (ALL, ENGAGED, CONTRASTED, SAMPLED, REFERENCE))
_BOTH = ("all", "engaged")
_over_both = partial(slate_metric, population=ENGAGED, over=_BOTH, by_k=True)

_over_both(
    "precision_ratio",
    title="Precision",
    formula="h(k) / k",
    doc="Share of the first k places that hold a relevant item. `shown`: share of the existing "
    "places, min(k, n) (Jurity).",
    source="P G J L",
)

slate_metric(
    "recall_ratio",
    title="Recall",
    formula="h(k) / r",
    doc="Share of the slate's relevant items in the first k places.",
    source="P G J L",
    population=ENGAGED,
    over=("engaged",),
    by_k=True,
)

_over_both(
    "hit_ratio",
    title="Hit rate",
    formula="1 if h(k) > 0",
    doc="Share of slates with a relevant item in the first k places.",
    source="G",
    form="percent",
)

slate_metric(
    "mrr",
    title="Mean reciprocal rank",
    formula="1 / rank of the first relevant item",
    doc="Reciprocal rank of the first relevant item; 0 if there is none.",
    unit="reciprocal rank",
    source="P",
    population=ENGAGED,
    over=_BOTH,
)

_over_both(
    "arhr",
    title="Reciprocal hit rank",
    formula="sum over relevant i <= k of 1 / i",
    doc="Average reciprocal hit rate: every relevant item in the first k places counts its "
    "reciprocal rank.",
    unit="reciprocal rank",
    source="P",
    largest=lambda gains, margin, k: (int(RECIPROCAL[: k + 1].sum()) >> TABLE_BITS) + 1,
)

_over_both(
    "map_ratio",
    title="Mean average precision",
    formula="sum over relevant i <= k of h(i) / i, / r",
    doc="Average precision at k, divided by r (trec_eval); jurity: by min(k, r); primer: by h(k).",
    source="P J",
)

_over_both(
    "mar_ratio",
    title="Mean average recall",
    formula="sum over relevant i <= k of h(i) / r, / r",
    doc="Average recall at k, divided like map_ratio. Recalls count at relevant ranks only.",
    source="P",
)

_over_both(
    "cg",
    title="Cumulative gain",
    formula="sum over i <= k of the gain",
    doc="Gains of the first k items, whatever their rank.",
    unit="gain",
    source="P L",
    largest=lambda gains, margin, k: int(k * max(gains, default=0.0) * UNIT) + 1,
)

_over_both(
    "dcg",
    title="DCG",
    formula="sum over i <= k of gain / log2(i + 1)",
    doc="Discounted cumulative gain of the first k items.",
    unit="gain",
    source="P L",
    largest=lambda gains, margin, k: (
        int(max(gains, default=0.0) * float(DISCOUNT[: k + 1].sum()) / (1 << TABLE_BITS)) + 1
    ),
)

_over_both(
    "ndcg_ratio",
    title="NDCG",
    brief=BRIEF,
    formula="dcg(k) / dcg(k) of the best order",
    doc="Discounted gain divided by that of the slate's best order, cut at k (trec_eval). `jurity`:"
    " the best order is not cut. `exponential`: gains are 2**gain - 1.",
    source="P J L G",
)

slate_metric(
    "fcp_ratio",
    title="Fraction of concordant pairs",
    formula="concordant / (concordant + discordant) pairs of items of different grade",
    doc="Fraction of concordant pairs, in which the item of higher grade comes first.",
    source="P",
    population=CONTRASTED,
)

slate_metric(
    "kendall_tau",
    title="Kendall's tau",
    formula="(concordant - discordant) / (n (n - 1) / 2)",
    doc="Rank correlation of the order shown and the grades (tau-a); tau_b: pairs of equal "
    "grade are left out of its denominator as usual.",
    unit="correlation",
    source="P L",
    population=CONTRASTED,
)

slate_metric(
    "spearman_rho",
    title="Spearman's rho",
    formula="Pearson correlation of ranks, equal grades sharing their mean rank",
    doc="Rank correlation of the order shown and the grades.",
    unit="correlation",
    source="P L",
    population=CONTRASTED,
)

slate_metric(
    "hit_sampled_ratio",
    title="Hit rate, sampled",
    formula="1 if the held-out item stands in the first 10",
    doc="HR@10 of one held-out item among sampled ones (`held_out` of the slate).",
    source="G",
    population=SAMPLED,
)

slate_metric(
    "ndcg_sampled_ratio",
    title="NDCG, sampled",
    formula="1 / log2(rank of the held-out item + 1) if it stands in the first 10",
    doc="NDCG@10 of one held-out item among sampled ones (`held_out` of the slate).",
    source="G",
    population=SAMPLED,
)

slate_metric(
    "index_recall_ratio",
    title="Index recall",
    formula="|first k of the index in the first k of brute force| / min(k, items that brute force"
    " gives)",
    doc="Share of the brute-force list's first k (`reference` of the slate) that an "
    "approximate index put in its own first k.",
    source="G",
    population=REFERENCE,
    by_k=True,
)

FAMILY = slate_metric.family()
