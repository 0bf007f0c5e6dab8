"""What holds of every metric, whatever its formula. Each law calls the formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamer.metrics.definition import Family, Formula, Metric
from streamer.metrics.intervals import name_of
from tests.metrics.counted import CountedSums
from tests.metrics.empty import rule

ADDITIVE = {
    *("events", "impressions", "users", "viewings", "sessions", "slates", "currency"),
    *("nats in all", "units of the ratio in all", "ratings"),
}
"""Units of what adds up over partitions."""
BEYOND_1 = {
    *("ctr_ratio", "cvr_ratio", "ctr_position_ratio", "coec_ratio"),
    *("ips_ratio", "snips_ratio", "doubly_robust_ratio"),
    *("novelty_ratio", "serendipity_ratio"),
}
"""Ratios whose parts count by their own times, or with weights; and the ends of their intervals."""
NO_MEANS = {
    *("coec_ratio", "window_coec_expected_clicks", "auc_ratio", "auc_error_ratio", "pearson_r"),
    "rating_pearson_r",
    *("normalized_entropy", "expected_calibration_error", "fairness_loss"),
    *("effective_sample_size", "composite", "score_drift"),
    *("catalog_coverage_ratio", "window_items", "exposure_gini", "novelty_ratio"),
    *("people_novelty_ratio", "co_occurrence_diversity_ratio", "co_occurrence_diversity_error"),
    *("serendipity_ratio", "diversity_loss", "inter_list_diversity_ratio"),
}
"""What a union has depends on more than what its parts have."""
Key = tuple[str, tuple[tuple[str, str], ...]]
Shown = dict[Key, tuple[Any, Any]]
"""Series → values and where they are present, one a segment."""


def read(metric: Metric, sums: CountedSums) -> Shown:
    """What the formula gives."""
    found: Shown = {}
    for series in sums.shown(metric):
        key = (series.suffix, tuple(sorted(series.labels.items())))
        assert key not in found, f"{metric.name} gives {key} twice"
        found[key] = np.asarray(series.values, np.float64), np.asarray(series.present)
    return found


def empty_is_absent(metric: Metric, a: CountedSums, b: CountedSums) -> None:
    for values, present in read(metric, a.nothing).values():
        assert not present.any()
        assert np.isfinite(values).all()


def what_is_said_of_empty_is_shown(metric: Metric, a: CountedSums, b: CountedSums) -> None:
    for (suffix, labels), (_, present) in read(metric, a).items():
        expected = rule(metric, a, dict(labels), suffix)
        assert present.tolist() == expected.tolist(), (metric.empty, labels)


def range_is_that_of_the_unit(metric: Metric, a: CountedSums, b: CountedSums) -> None:
    signed = ("correlation", "as kendall_tau", "as spearman_rho", "probability, negated")
    least = -1.0 if metric.unit in signed else 0.0
    unbounded = ("doubly_robust", "composite", "ratio", "window_ratio")
    if metric.name == "log_likelihood" or metric.name.startswith(unbounded):
        least = -math.inf
    base = metric.name.replace("_lower", "").replace("_upper", "")
    for values, present in read(metric, a).values():
        assert np.isfinite(values[present]).all()
        assert (values[present] >= least).all()
        if metric.unit == "ratio" and base not in BEYOND_1:
            assert (values[present] <= 1.0).all()


def segments_are_told_apart(metric: Metric, a: CountedSums, b: CountedSums) -> None:
    """A value that is always the same is none."""
    shown = [np.concatenate([v[p] for v, p in read(metric, s).values()]) for s in (a, b, a + b)]
    assert len(set(np.concatenate(shown).tolist())) > 2, metric.name


def parts_make_the_whole(metric: Metric, a: CountedSums, b: CountedSums) -> None:
    """Counts add; means and ratios of a union lie between those of its parts."""
    if metric.name.endswith("_stderr") or _is_end(metric) or metric.name in NO_MEANS:
        return
    parts, whole = (read(metric, a), read(metric, b)), read(metric, a + b)
    for key, (total, present) in whole.items():
        (x, has_x), (y, has_y) = (part[key] for part in parts)
        assert present[has_x | has_y].all()
        x, y = np.where(has_x, x, np.nan), np.where(has_y, y, np.nan)
        if metric.unit in ADDITIVE or metric.kind == "histogram":
            added = np.nan_to_num(x) + np.nan_to_num(y)
            assert np.allclose(total[present], added[present], rtol=1e-12)
        else:
            low, high = np.fmin(x, y)[present], np.fmax(x, y)[present]
            slack = 1e-9 * (1 + np.abs(high))
            assert (total[present] >= low - slack).all()
            assert (total[present] <= high + slack).all()


def double_is_twice_or_the_same(metric: Metric, a: CountedSums, b: CountedSums) -> None:
    """Counts double with what is counted; rates stay as they are; errors shrink."""
    once, twice = read(metric, a), read(metric, a + a)
    for key, (values, present) in once.items():
        doubled = twice[key][0][present]
        if _is_end(metric) or metric.name == "inter_list_diversity_ratio":
            continue
        if metric.name.endswith("_stderr"):
            above = values[present] > 0
            assert (doubled[above] < values[present][above]).all()
        else:
            extensive = metric.unit in ADDITIVE or metric.kind == "histogram"
            factor = 2.0 if extensive or "expected_clicks" in metric.name else 1.0
            slack = 0.3 if metric.unit == "PSI" else 1e-9  # its halves weigh less then
            assert np.allclose(doubled, factor * values[present], rtol=slack)


LAWS: tuple[Callable[[Metric, CountedSums, CountedSums], None], ...] = (
    empty_is_absent,
    what_is_said_of_empty_is_shown,
    range_is_that_of_the_unit,
    segments_are_told_apart,
    parts_make_the_whole,
    double_is_twice_or_the_same,
)


def ends_hold_the_value(
    family: Family[Formula], known: Mapping[str, Metric], sums: CountedSums
) -> None:
    """The lower end is not above the value, the upper one not below it, and they differ."""
    for base in [m for m in known.values() if name_of(m.name, "lower") in known]:
        ends = [read(known[name_of(base.name, end)], sums) for end in ("lower", "upper")]
        for key, (values, _) in read(base, sums).items():
            if key not in ends[0]:  # a composite of means over slates
                continue
            (low, present), (high, _) = (end[key] for end in ends)
            assert (low[present] <= values[present] + 1e-12).all(), base.name
            assert (high[present] >= values[present] - 1e-12).all(), base.name
            assert not present.any() or (low[present] < high[present]).any(), base.name


def _is_end(metric: Metric) -> bool:
    return "_lower" in metric.name or "_upper" in metric.name


def sample_error(values: list[float]) -> float:
    """The standard error of a mean, by the textbook."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - 1) / len(values))
