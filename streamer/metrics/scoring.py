"""Scores: how well the model's scores separate what users respond to, within a slate.

Over the members that carry a score. Sources: P the recommender-evaluation primer, G Gorse's
evaluation page, J Jurity's metric page.

The clicked item has a higher score than two of the three others:

    >>> from streamer.testing import value_of
    >>> scores = {"a": 0.9, "b": 0.5, "c": 0.2, "d": 0.1}
    >>> shown = [{"item_id": item, "score": score} for item, score in scores.items()]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": "b"}]
    >>> round(value_of(events, "gauc_ratio", maturity="provisional"), 4)
    0.6667
"""

from __future__ import annotations

from streamer.metrics.slate_metrics import BRIEF, Population, SlateFamily
from streamer.metrics.slates import UNIT
from streamer.settings import limits

GAUC = Population(
    "gauc",
    "window_gauc_slates",
    "with scored items clicked and not clicked",
    brief=BRIEF,
)
PAIRED = Population("paired", "window_paired_slates", "with scored items relevant and not relevant")
slate_metric = SlateFamily("scoring", (GAUC, PAIRED))

slate_metric(
    "gauc_ratio",
    title="Grouped AUC",
    brief=BRIEF,
    formula="probability that a clicked item has a higher score than another one, ties one half",
    doc="Area under the ROC curve within a slate, over its scored items.",
    source="G J",
    population=GAUC,
)


def _largest_loss(gains: tuple[float, ...], margin: float, k: int) -> int:
    return int((2 * limits.MAX_SCORE + 1 + margin) * UNIT)


slate_metric(
    "bpr_loss",
    title="BPR loss",
    formula="mean over pairs (relevant i, other j) of -ln sigmoid(score i - score j)",
    doc="Bayesian personalised ranking loss of a slate's pairs.",
    unit="nats",
    source="P",
    population=PAIRED,
    largest=_largest_loss,
)

slate_metric(
    "hinge_loss",
    title="Hinge loss",
    formula="mean over pairs (relevant i, other j) of max(0, 1 - (score i - score j))",
    doc="Hinge loss of a slate's pairs.",
    unit="score",
    source="P",
    population=PAIRED,
    largest=_largest_loss,
)

slate_metric(
    "margin_loss",
    title="Margin loss",
    formula="mean over pairs (relevant i, other j) of max(0, margin - (score i - score j))",
    doc="Margin loss of a slate's pairs, with `metrics.margin`.",
    unit="score",
    source="P",
    population=PAIRED,
    largest=_largest_loss,
)

FAMILY = slate_metric.family()
