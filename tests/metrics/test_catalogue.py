"""What metrics declare, and that random logs show all of them: see ``test_laws`` for formulas."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest

from streamer.errors import SettingsError
from streamer.metrics import score_drift
from streamer.metrics.catalogue import FAMILIES, OF_USERS, PREFIX
from streamer.metrics.definition import Family, Formula, Metric
from streamer.metrics.layout import MAX_BLOCKS, merge
from streamer.query.readings import family_of
from streamer.settings.load import parse
from tests.oracle.oracle import records_of_log
from tests.oracle.own_ratios import is_over_people
from tests.oracle.random_log import random_log
from tests.oracle.shape import Labels, Readings
from tests.oracle.test_composites import SETTINGS as OF_TWO_DAYS
from tests.support.agreement import (
    DOCUMENTS,
    SETTINGS,
    differences,
    read_engines,
    run_engines,
    to_log,
)
from tests.support.all_cases import hold_for_all
from tests.support.lanes import long, shortened, sized

METRICS = [metric for family in FAMILIES for metric in family.metrics]
RATIOS_BEYOND_1 = {
    *("ctr_ratio", "cvr_ratio", "ctr_position_ratio", "coec_ratio"),
    *("ctr_lower_ratio", "ctr_upper_ratio", "cvr_lower_ratio", "cvr_upper_ratio"),
    *("ips_ratio", "ips_lower_ratio", "ips_upper_ratio", "snips_upper_ratio"),
    *("doubly_robust_ratio", "doubly_robust_lower_ratio", "doubly_robust_upper_ratio"),
    *("novelty_ratio", "serendipity_ratio"),
}
"""Ratios whose parts count by their own times: clicks may be in a window without their
impressions; several clicks may join one impression. Or impressions have weights. All others are
shares."""
NO_SHARES = {
    *("calibration_ratio", "calibration_lower_ratio", "calibration_upper_ratio"),
    *("mean_weight_ratio", "mean_weight_lower_ratio", "mean_weight_upper_ratio"),
}
"""Ratios that have a unit of their own."""
LEAST = {"correlation": -1, "nats in all": -np.inf, "probability, negated": -1}
"""Unit → least value, where it is not 0."""
OF_PARTITIONS = {
    # What waits depends on the clocks of its partition, and a bound of values on what is in it.
    *("unattributed_total", "unsettled", "clicks_total", "conversions_total"),
    *("conversion_value_total", "feedback_total", "label_values_capped_total"),
    *("dwell_seconds", "session_length_seconds"),
}


def is_of_users(name: str, labels: Labels) -> bool:
    """Whose ``other`` counts a user once for each value that only the reader folds into it."""
    people = [r.name for r in SETTINGS["few values"].ratios if is_over_people(r)]
    return name.removeprefix(PREFIX) in OF_USERS or (
        dict(labels).get("ratio") in people and not name.endswith("_numerator")
    )


def settings_of(family: Family[Formula]) -> object:
    return parse({"metrics": {"families": [family.name], "feedback": {"click": 1, "like": 1}}})


def says_what_it_is(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert metric.formula
    assert metric.unit
    assert "absent" in metric.empty
    assert metric.doc.endswith(".")
    since_start = "histogram" if metric.labels == ("le",) else "counter"
    assert metric.kind == (since_start if metric.scope == "total" else "gauge")
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    is_ratio = metric.unit == "ratio" or metric.name in NO_SHARES
    assert metric.name.endswith("_ratio") == is_ratio
    assert metric.name.endswith("_seconds") == (metric.unit == "seconds")


def test_every_metric_says_what_it_is() -> None:
    hold_for_all(METRICS, says_what_it_is, lambda metric: metric.name, at_least=150)


@pytest.mark.parametrize("label", sorted({x for metric in METRICS for x in metric.labels}))
def test_no_dimension_has_the_name_of_a_label(label: str) -> None:
    with pytest.raises(SettingsError, match="label that streamer or Prometheus sets itself"):
        parse({"dimensions": [{"name": label}]})


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_statistics_fit_a_column(family: Family[Formula]) -> None:
    settings = SETTINGS["mapped names, own rollups"]
    stats = family.stats(settings)
    assert all(stat.largest > 0 and stat.width > 0 for stat in stats)
    layout = merge([stats])
    assert not stats or layout.size <= MAX_BLOCKS * 64
    spans = sorted((layout.span(s.name).start, layout.span(s.name).stop) for s in stats)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


@pytest.fixture(scope="module")
def readings() -> dict[str, list[tuple[dict[str, str], float]]]:
    """All readings of a few random logs, by name without prefix."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(score_drift, "LEAST_SCORES", 20)
    cases = [(seed + 41, SETTINGS[name], 1500) for seed, name in enumerate(DOCUMENTS)]
    cases.append((24, OF_TWO_DAYS, 4000))
    many_users = 48
    cases += [
        (many_users, each, sized(6_000, 15_000)) for each in SETTINGS.values() if each.policies
    ]
    for seed, settings, lines in cases:
        records = records_of_log(random_log(seed, settings, lines), settings)
        for (key, labels), value in read_engines(
            run_engines(settings, 1, to_log(records), 500)
        ).items():
            name_of = key.removeprefix(PREFIX)
            if any(label == "le" for label, _ in labels):
                name_of = name_of.removesuffix("_bucket")
            found.setdefault(name_of, []).append((dict(labels), value))
    monkeypatch.undo()
    return found


NET = ("window_conver", "cvr_ratio", "conversion_value_per", "order_value_mean")
"""Less refunds, of which there may be more."""


def is_in_range_with_its_labels(
    metric: Metric, readings: list[tuple[dict[str, str], float]]
) -> None:
    assert readings, "no random log ever shows it"
    dimensions = {name for s in SETTINGS.values() for name in s.dimension_names}
    for labels, value in readings:
        assert np.isfinite(value)
        signed = ("doubly_robust", "composite", "ratio", "window_ratio", *NET)
        is_signed = metric.name.startswith(signed)
        assert is_signed or value >= LEAST.get(metric.unit, 0)
        if metric.unit == "ratio" and metric.name not in RATIOS_BEYOND_1:
            assert value <= 1
        extra = set(labels) - dimensions - {"window"}
        assert extra == set(metric.labels) - ({"convention"} - extra)
        assert ("window" in labels) == (metric.scope == "window")


def test_values_are_in_range_and_labels_as_declared(
    readings: dict[str, list[tuple[dict[str, str], float]]],
) -> None:
    hold_for_all(
        METRICS,
        lambda metric: is_in_range_with_its_labels(metric, readings.get(metric.name, [])),
        lambda metric: metric.name,
        at_least=150,
    )


def has_user(line: bytes) -> bool:
    try:
        return bool(json.loads(line).get("user_id"))
    except (ValueError, AttributeError, RecursionError):
        return True


USERS_OF_OTHER = frozenset({"cause": "kept_values", "metrics": "users"}.items())


@pytest.mark.parametrize("seed", shortened(list(range(3))))
@long
def test_merging_partitions_changes_no_reading(seed: int) -> None:
    # The same users' events on 1, 2 or 5 partitions, without event ids: a copy is one only in the
    # same log. All have a user: others are told apart by where they stand. None has an id of joins,
    # by which a user's events would be in several partitions.
    settings = SETTINGS["few values"]
    log = [line for line in random_log(seed, settings, sized(600, 1500)) if has_user(line)]
    lines = [
        line.replace(b'"event_id"', b'"another"').replace(b'"join_id"', b'"device"') for line in log
    ]
    results: list[Readings] = []
    users_of_other: list[Readings] = []
    for partitions in (1, 2, 5):
        records = records_of_log(lines, settings, partitions=partitions)
        engines = run_engines(settings, partitions, to_log(records), 300, seed)
        found = {
            key: value
            for key, value in read_engines(engines).items()
            if key[0].removeprefix(PREFIX) not in OF_PARTITIONS
            and family_of(key[0], "histogram").removeprefix(PREFIX) not in OF_PARTITIONS
            and (value or not key[0].endswith("_total"))  # 0 beside what is settled
        }
        is_inexact = found.pop(("streamer_inexact", USERS_OF_OTHER), None)
        of_other = {key for key in found if is_of_users(*key) and "other" in dict(key[1]).values()}
        users_of_other.append({key: found.pop(key) for key in of_other})
        results.append(found)
        assert is_inexact or users_of_other[-1].keys() == users_of_other[0].keys()
    assert len(results[0]) > 300
    for shown in users_of_other:  # what is not known is not shown
        assert differences(shown, {k: users_of_other[0][k] for k in shown}) == []
    assert differences(results[1], results[0]) == []
    assert differences(results[2], results[0]) == []
