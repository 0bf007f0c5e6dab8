"""Means over impressions with a score from 0 to 1: declared once, as other ratios are.

Intervals, experiments and alerts follow from these declarations. Sources: P the
recommender-evaluation primer, G Gorse's evaluation page, J Jurity's metric page, H He et al.,
*Practical Lessons from Predicting Clicks on Ads at Facebook*, 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from streamer.metrics.ratios import Ratio, RatioBy
from streamer.metrics.score_sums import name_of
from streamer.metrics.sums import Sum

HORIZON = "click_ms"
"""The setting of [attribution] after which an impression is clicked or not for good."""


def _sum(kind: str, text: str, threshold: float | None = None) -> Sum:
    return Sum(name_of(kind, threshold), text)


PROBABILITIES = _sum("probabilities", "impressions with a score from 0 to 1")
POSITIVES = _sum("positives", "clicked impressions with a score from 0 to 1")
SCORE = _sum("score", "sum of scores from 0 to 1")
LOG_LOSS = _sum("log_loss", "sum of -ln(predicted probability of what happened)")
SQUARED_ERROR = _sum("squared_error", "sum of (score - clicked)²")
ABSOLUTE_ERROR = _sum("absolute_error", "sum of |score - clicked|")
RATINGS = Sum("ratings.ratings", "ratings of impressions with a score")


_CLICKED, _SCORED = "window_probability_clicked", "window_probability_impressions"
_SUPPORT = {POSITIVES: _CLICKED, PROBABILITIES: _SCORED, RATINGS: "window_ratings"}


def _ratio(
    name: str,
    title: str,
    above: Sum,
    below: Sum,
    doc: str,
    unit: str = "ratio",
    source: str = "",
) -> Ratio:
    support = _SUPPORT.get(below, "")
    return Ratio(
        *(name, title, above, below, doc, unit), source=source, horizon=HORIZON, support=support
    )


CALIBRATION = _ratio(
    *("calibration_ratio", "Calibration", SCORE, POSITIVES),
    "Predicted clicks divided by clicks. Above 1 the scores predict too many.",
    "predicted clicks per click",
    source="H",
)
MSE = _ratio(
    *("mse", "Mean squared error", SQUARED_ERROR, PROBABILITIES),
    "Mean squared error of the scores (Brier score); squares are rounded to 1e-9 each.",
    "squared score",
    source="P",
)
RATING_MSE = _ratio(
    *("rating_mse", "Mean squared error of ratings"),
    *(Sum("ratings.squared_error", "sum of (score - rating)²"), RATINGS),
    "Mean squared error of scores that predict ratings; squares are rounded to 1e-6 each.",
    "squared rating",
    source="P",
)
RATIOS = (
    CALIBRATION,
    _ratio(
        *("log_loss", "Log loss", LOG_LOSS, PROBABILITIES),
        "Mean log loss (cross-entropy); scores within 1e-15 of 0 and 1 count as that far away.",
        "nats",
        source="P",
    ),
    MSE,
    _ratio(
        *("mae", "Mean absolute error", ABSOLUTE_ERROR, PROBABILITIES),
        "Mean absolute error of the scores. Predicting 0 throughout may minimise it.",
        "score",
        source="P",
    ),
    RATING_MSE,
    _ratio(
        *("rating_mae", "Mean absolute error of ratings"),
        *(Sum("ratings.absolute_error", "sum of |score - rating|"), RATINGS),
        "Mean absolute error of scores that predict ratings.",
        "rating",
        source="P",
    ),
)
"""Means over impressions: they have intervals, and experiments and alerts compare them."""


@dataclass(frozen=True)
class ByThreshold(RatioBy):
    """A ratio for each of ``metrics.thresholds``."""

    label: ClassVar[str] = "threshold"
    setting: ClassVar[str] = "metrics.thresholds"
    below: Callable[[float], Sum]

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        for threshold in settings.metrics.thresholds:
            yield {self.label: f"{threshold:.9g}"}, self.at(threshold)

    def at(self, threshold: float) -> Ratio:
        """The ratio at one threshold."""
        name, title = (f"{text}@{threshold:.9g}" for text in (self.name, self.title))
        above = _sum("true_positives", "clicked ones of those predicted", threshold)
        return _ratio(name, title, above, self.below(threshold), self.doc)


def _predicted(threshold: float) -> Sum:
    return _sum("predicted", "impressions with a score of at least that", threshold)


BY_THRESHOLD = (
    ByThreshold(
        *("classifier_precision_ratio", "Classifier precision"),
        "Share of the impressions with a score of at least the threshold that were clicked.",
        "clicked ones / impressions with a score from the threshold to 1",
        "absent without scores from the threshold to 1",
        _predicted,
        source="G",
    ),
    ByThreshold(
        *("classifier_recall_ratio", "Classifier recall"),
        "Share of the clicked impressions that had a score of at least the threshold.",
        "those with a score from the threshold to 1 / clicked impressions with one from 0 to 1",
        f"absent without {POSITIVES.text}",
        lambda threshold: POSITIVES,
        source="G",
        support=_CLICKED,
    ),
)
FAMILY_OF = {
    CALIBRATION.name: "calibration",
    **{each.name: "scores" for each in (*RATIOS, *BY_THRESHOLD) if each is not CALIBRATION},
}
"""Metric → its family."""
