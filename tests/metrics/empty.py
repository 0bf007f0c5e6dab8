"""What each declared empty rule means: where a series is to be shown, from the sums alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamer.metrics import coverage, diversity, ranking, score_drift, scoring
from streamer.metrics.definition import Metric
from streamer.metrics.item_counts import CATEGORY, SHOWN, ItemTable, item_counts
from streamer.metrics.own_ratios import sketched, sums_of
from streamer.metrics.score_sums import EDGES
from streamer.metrics.sums import Sum
from streamer.metrics.users import USERS, positive_users
from streamer.settings.own_metrics import OwnRatio
from tests.metrics.counted import CountedSums

OF_GROUPS = {
    "ctr": "impressions",
    "ctr_attributed": "impressions",
    "zero_results": "requests",
    "cvr": "clicks",
    "cvr_attributed": "clicked",
    "conversion_value_per_click": "clicks",
    "order_value_mean": "conversions",
    "conversion_value_per_impression": "impressions",
    "dwell_mean": "viewings",
    "bounce_rate": "sessions",
    "views_per_session": "sessions",
    "session_length_mean": "sessions",
    "calibration": "scores.positives",
    "log_loss": "scores.probabilities",
    "mse": "scores.probabilities",
    "rmse": "scores.probabilities",
    "mae": "scores.probabilities",
    "rating_mse": "ratings.ratings",
    "rating_rmse": "ratings.ratings",
    "rating_mae": "ratings.ratings",
    "classifier_precision": "scores.predicted",
    "classifier_recall": "scores.positives",
    "ips": "off_policy.impressions",
    "snips": "off_policy.weight",
    "doubly_robust": "off_policy.estimated",
    "mean_weight": "off_policy.impressions",
    "intra_list_diversity": "lists.lists",
}
"""Metric with an interval → what its denominator counts."""
VALUES = {
    "conversion_value_per_click": "value",
    "order_value_mean": "value",
    "conversion_value_per_impression": "value",
    "dwell_mean": "dwell_ms",
    "views_per_session": "views",
    "session_length_mean": "session_ms",
    "calibration": "scores.score",
    "log_loss": "scores.log_loss",
    "mse": "scores.squared_error",
    "rmse": "scores.squared_error",
    "mae": "scores.absolute_error",
    "rating_mse": "ratings.squared_error",
    "rating_rmse": "ratings.squared_error",
    "rating_mae": "ratings.absolute_error",
    "ips": "off_policy.clicked_weight",
    "snips": "off_policy.clicked_weight",
    "doubly_robust": "off_policy.doubly_robust",
    "mean_weight": "off_policy.weight",
    "intra_list_diversity": "lists.diversity",
    "clicks_per_user": "clicks_of_users",
}
"""Of them those that are no shares → what their numerator adds up."""
WITHOUT = {
    "impressions": "impressions",
    "clicks": "clicks",
    "requests": "requests",
    "conversions": "conversions",
    "clicked impressions": "clicked",
    "ended sessions": "sessions",
    "dwell times": "viewings",
    "impressions with a score from 0 to 1": "scores.probabilities",
    "clicked impressions with a score from 0 to 1": "scores.positives",
    "ratings of impressions with a score": "ratings.ratings",
}
"""What a metric is absent without → the statistic that counts it."""
OF_POLICIES = {
    "absent without impressions with a propensity and a probability of the policy": (
        "off_policy.impressions"
    ),
    "absent without a weight above 0": "off_policy.weight",
    "absent without impressions with a propensity and a probability of the policy and a"
    " reward_estimate": "off_policy.estimated",
    "absent where no weight is above 0.0007, as squares are rounded to 1e-6 each": (
        "off_policy.weight_square"
    ),
}
OF_ITEMS = {m.name for m in (*coverage.FAMILY.metrics, *diversity.FAMILY.metrics)}
_POPULATIONS = {
    p.name: (family.slate_metric, i)
    for family in (ranking, scoring)
    for i, p in enumerate(family.slate_metric.populations)
}


def rule(metric: Metric, sums: CountedSums, labels: dict[str, str], suffix: str) -> Any:
    """Where the series of these labels is to be shown; KeyError for a rule that is not known."""
    said, is_mature = metric.empty, labels.get("maturity") == "mature"

    def stat(name: str) -> Any:
        found = sums.mature(name, 0) if is_mature else sums(name)
        assert found is not None
        return found.sum(axis=1) if found.ndim == 2 else found

    if said == "absent where it is 0":
        return _value(metric, sums, labels) != 0
    if said == "absent without impressions, feedback and conversions":
        feedback = sums("feedback").sum(axis=1)
        return (stat("impressions") + feedback + stat("conversions")) > 0
    if said == "absent without impressions there":
        place = 51 if labels["position"] == "other" else int(labels["position"])
        return sums("impressions_by_position")[:, place] > 0
    if said == "absent without expected clicks":
        return stat("impressions") - sums("impressions_by_position")[:, 0] > 0
    if said.startswith("absent where a part is"):
        return _of_composites(metric, sums, labels)
    if "windows.day_before" in said:
        return _of_drift(metric, sums)
    if "users" in said and "below" not in said:
        return _of_users(said, sums, labels)
    if said.startswith("absent below 30 users who"):
        kind = sums.settings.user_feedback_kinds.index(labels["feedback"])
        return sums.users(positive_users(kind)) >= 30
    if metric.name in ("ratio_lower", "ratio_upper"):
        return _of_ratio_intervals(sums, labels)
    if said.startswith(("absent below", "absent with data in fewer than")):
        return _of_intervals(metric, sums, labels)
    if metric.name in OF_ITEMS:
        return _of_items(said, sums, labels)
    if "ratio" in labels:
        return _of_ratios(metric, sums, labels)
    if "policy" in labels:
        return stat(f"{OF_POLICIES[said]}@{labels['policy']}") > 0
    if "score" in said or "bin" in said:
        return _of_scores(said, sums, labels)
    if said == "absent without lines of conversions and refunds":
        names = ("value", "value_high", "conversion_lines", "refunds")
        return np.any([stat(name) != 0 for name in names], axis=0)
    if "slates" in said:
        return _of_slates(metric, said, sums, labels)
    if metric.scope == "total" and metric.kind == "histogram":
        name = "dwell_class" if "dwell" in metric.name else "session_class"
        return sums(name).sum(axis=1) > 0
    return stat(WITHOUT[said.removeprefix("absent without ").partition(", and")[0]]) > 0


def of_groups(sums: CountedSums, name: str, horizon_ms: int | None = None) -> Any:
    """(segments, groups) of a sum."""
    return sums.statistic(*sums.layout.by_group[name], horizon_ms)


def _of_intervals(metric: Metric, sums: CountedSums, labels: dict[str, str]) -> Any:
    """What the ends of intervals need: groups of users with any below, and of values above."""
    base = metric.name.replace("_lower", "").replace("_upper", "")
    base = base.removesuffix("_ratio").removesuffix("_seconds")

    def groups(name: str) -> Any:
        if "predicted" in name:
            name = f"{name}@{labels['threshold']}"
        if "policy" in labels or "k" in labels:
            name = f"{name}@{labels.get('policy', labels.get('k'))}"
        horizon_ms = 0 if labels.get("maturity") == "mature" else None
        found = of_groups(sums, name.format(**labels), horizon_ms)
        assert found is not None
        return np.count_nonzero(found, axis=1)

    enough = groups(OF_GROUPS[base]) >= 8 if base in OF_GROUPS else sums.users(USERS) > 0
    assert ("14 of 16" in metric.empty) == (base in VALUES)
    return enough & (groups(VALUES[base]) >= 14) if base in VALUES else enough


def _ratio_named(sums: CountedSums, name: str) -> tuple[OwnRatio, Sum, Sum]:
    (of,) = (each for each in sums.settings.ratios if each.name == name)
    above, below = sums_of(of, sums.settings)
    assert below is not None
    return of, above, below


def _of_ratios(metric: Metric, sums: CountedSums, labels: dict[str, str]) -> Any:
    of, _, below = _ratio_named(sums, labels["ratio"])
    if metric.name == "ratio_quantile":
        return sums(sketched(of, sums.settings)[0]) > 0
    if below.name == "people":
        return sums.users(USERS) > 0
    return np.any([sums(name) != 0 for name in below.names], axis=0)


def _of_ratio_intervals(sums: CountedSums, labels: dict[str, str]) -> Any:
    """Values above in 14 groups, and anything below in 8."""
    _, above, below = _ratio_named(sums, labels["ratio"])

    def groups(of: Sum) -> Any:
        limbs = [of_groups(sums, name) for name in of.names]
        return np.any([limb != 0 for limb in limbs], axis=0).sum(axis=1)

    enough = sums.users(USERS) > 0 if below.name == "people" else groups(below) >= 8
    return enough & (groups(above) >= 14)


def _of_items(said: str, sums: CountedSums, labels: dict[str, str]) -> Any:
    """What metrics of items need: of all impressions, or of those with a category, and of lists."""
    if "with a category" in said or "that have a category" in said:
        if "slates" in said:
            return sums(f"lists.lists@{labels['k']}") > 0
        return _each(sums, lambda table: table.every[CATEGORY] > 0)
    declared = item_counts(sums.settings)
    assert declared is not None
    said = said.removesuffix(", and where items are a sample")  # here they are whole
    if said == "absent without two slates":
        place = declared.weight(int(labels["k"]))
        return _each(sums, lambda table: table.every[place] > 1)
    if "items.pairs" in said:
        at = declared.top(int(labels["k"]))
        return _each(sums, lambda table: bool(table.pairs and table.pairs.counts[:, at].any()))
    assert said.startswith("absent without impressions")
    is_mature = labels.get("maturity") == "mature"
    return _each(sums, lambda table: table.every[SHOWN] > 0, 0 if is_mature else None)


def _each(
    sums: CountedSums, holds: Callable[[ItemTable], bool], horizon_ms: int | None = None
) -> Any:
    tables = sums.items([], horizon_ms)
    return np.array([row in tables and bool(holds(tables[row])) for row in sums.rows])


def _value(metric: Metric, sums: CountedSums, labels: dict[str, str]) -> Any:
    (found,) = [s.values for s in sums.shown(metric) if dict(s.labels) == labels]
    return found


def _of_composites(metric: Metric, sums: CountedSums, labels: dict[str, str]) -> Any:
    """Where all parts are; "health" has the three that are named here."""
    counted = ("impressions", "viewings", "sessions")
    if labels["composite"] == "lists":
        assert metric.name == "composite"
        place = ranking.slate_metric.plan(sums.settings).populations["engaged"]
        is_mature = labels["maturity"] == "mature"
        now = sums.mature("ranking", 0) if is_mature else sums("ranking")
        then = sums.day_before("ranking", slice(None), None)
        assert now is not None
        assert then is not None
        return (now[:, place] > 0) & (then[:, place] > 0)
    if metric.name == "composite":
        found = [_pick(sums, name) for name in counted]
        return np.all([sum_ > 0 for sum_ in found], axis=0)
    groups = [of_groups(sums, name) for name in ("viewings", "sessions")]
    groups.append(of_groups(sums, "impressions", 0))
    return np.all([(g > 0).sum(axis=1) >= 8 for g in groups if g is not None], axis=0)


def _pick(sums: CountedSums, name: str) -> Any:
    """What was there a day before, and is still."""
    found = sums.day_before(name, slice(None), None)
    assert found is not None
    return found.sum(axis=1) if found.ndim == 2 else found


def _of_drift(metric: Metric, sums: CountedSums) -> Any:
    then = sums.day_before("score_bins", slice(None), None)
    assert then is not None
    now, past = (bins[:, : len(EDGES) + 1].sum(axis=1) for bins in (sums("score_bins"), then))
    if metric.name == "score_drift":
        return (now >= score_drift.LEAST_SCORES) & (past >= score_drift.LEAST_SCORES)
    return (past if "day_before" in metric.name else now) > 0


def _of_users(said: str, sums: CountedSums, labels: dict[str, str]) -> Any:
    users = sums.users(USERS)
    if labels.get("definition") == "gorse-0.5":
        assert "without users who gave the feedback (gorse-0.5)" in said
        kinds = sums.settings.user_feedback_kinds
        return sums.users(positive_users(kinds.index(labels["feedback"]))) > 0
    assert said.startswith("absent without users")
    return users > 0


def _of_scores(said: str, sums: CountedSums, labels: dict[str, str]) -> Any:
    def stat(name: str) -> Any:
        return sums.mature(name, 0) if labels["maturity"] == "mature" else sums(name)

    def is_mixed(shown: Any, clicked: Any) -> Any:
        return (clicked > 0) & (clicked < shown)

    of_probabilities = is_mixed(stat("scores.probabilities"), stat("scores.positives"))
    if said == "absent without scores from 0 to 1 of impressions clicked and not clicked":
        return of_probabilities
    if said.startswith("absent without scores from 0 to 1 that differ"):  # as they do here
        return of_probabilities
    if said == "absent without scores and ratings that differ":  # as they do here
        return stat("ratings.ratings") > 1
    if said == "absent without scored impressions clicked and not clicked":
        bins = stat("score_bins")
        return is_mixed(*(part.sum(axis=1) for part in np.split(bins, 2, axis=1)))
    if said == "absent without scores from the threshold to 1":
        return stat(f"scores.predicted@{labels['threshold']}") > 0
    if said == "absent without two values that have scores from 0 to 1":
        n = stat("scores.probabilities")
        return np.full(len(n), np.count_nonzero(n) > 1)
    if said == "absent without impressions in the bin":
        return stat("score_curve")[:, round(10 * float(labels["bin"])) - 1] > 0
    return stat(WITHOUT[said.removeprefix("absent without ")]) > 0


def _of_slates(metric: Metric, said: str, sums: CountedSums, labels: dict[str, str]) -> Any:
    """Slates of the population that a mean is over: of that of the label, or of its only one."""
    values = {m.name: m for f in (ranking, scoring) for m in f.slate_metric.values}
    name = labels.get("over") or values[metric.name.removesuffix("_stderr")].population.name
    family, place = _POPULATIONS[name]
    found = sums.mature(family.name, 0) if labels.get("maturity") == "mature" else sums(family.name)
    assert found is not None
    if said == "absent below two slates that it is over":
        return found[:, place] > 1
    if name == "all":
        assert "over all: absent without slates, else 0" in said
    else:
        assert f"absent without {name} slates" in said
    return found[:, place] > 0
