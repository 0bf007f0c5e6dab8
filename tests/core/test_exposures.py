"""Outcomes belong to users: where attribution would favour the arm that is clicked more."""

from __future__ import annotations

import datetime
from random import Random
from typing import Any

import msgspec
import pytest

from streamer.errors import SettingsError
from streamer.query.experiment_metrics import JudgedMetric
from streamer.query.experiments import stored_experiments
from streamer.settings.durations import DAY_MS, date_of, day_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from tests.oracle.experiments import truth_of
from tests.oracle.shape import Record
from tests.oracle.timeline import T0, H, Log, M
from tests.support.agreement import run_engines, to_log
from tests.support.engines import LogRecord
from tests.support.experiment_logs import run_in_passes, truth_from
from tests.support.lanes import shortened

FIRST = datetime.date(2026, 11, 2)
FIRST_MS = day_of(FIRST) * DAY_MS


def settings_of(**more: Any) -> Settings:
    experiment = {
        "name": "e",
        "dimension": "variant",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": FIRST,
        "metrics": [{"name": "conversion_value_per_user", **more.pop("metric", {})}],
    }
    return parse({"dimensions": [{"name": "variant"}], "experiments": [experiment | more]})


def log_of(users: int) -> list[LogRecord]:
    """Users of two arms who spend the same; those of B click first, those of A buy directly."""
    found: dict[str, list[LogRecord]] = {"impressions": [], "clicks": [], "conversions": []}

    def add(topic: str, ts: int, **event: Any) -> None:
        value = msgspec.json.encode({"ts": ts, **event})
        found[topic].append(LogRecord(topic, 0, len(found[topic]), ts, value))

    for i in range(users):
        arm, at = "AB"[i % 2], FIRST_MS + 1000 * i
        what = {"user_id": f"u{i}", "item_id": "x"}
        add("impressions", at, **what, variant=arm)
        if i % 10 < 2:
            if arm == "B":
                add("clicks", at + 100, **what)
            add("conversions", at + 200, **what, value=10 + i % 10 + i // 10 % 7 - i % 2)
    return [record for records in found.values() for record in records]


def read(settings: Settings, log: list[LogRecord]) -> JudgedMetric:
    engines = run_engines(settings, 1, log, 200)
    engines.partitions[0].refresh_user_sums()
    views = [view_of(engines.partitions[0])]
    stored = stored_experiments(settings, engines.catalogue.experiment_measures, views)["e"]
    (metric,) = stored.read().metrics
    return metric


def test_equal_revenue_is_no_lift_however_users_buy() -> None:
    log = log_of(2000)
    by_user = read(settings_of(), log).found
    assert by_user.arms[0].value == by_user.arms[1].value
    assert by_user.comparisons[0].verdict.outcome == "too early"
    attributed = read(settings_of(outcomes="attributed"), log).found
    assert attributed.arms[0].value == 0
    assert attributed.comparisons[0].verdict.outcome == "better"


def jumbled(seed: int) -> list[Record]:
    """Impressions, with and without an arm, and purchases that arrive up to an hour late."""
    dice, log = Random(seed), Log()
    for start in (0, 2 * H, 4 * H):
        for _ in range(120):
            at = start + dice.randrange(59 * M)
            user = f"u{dice.randrange(40)}"
            if dice.random() < 0.5:
                log.bought(at, start + H, user_id=user, value=dice.randrange(1, 9))
            else:
                variant = {"variant": "AB"[int(user[1:]) % 2]} if dice.random() < 0.4 else {}
                log.shown(at, start + H, user_id=user, **variant)
    return log.records


@pytest.mark.parametrize("seed", shortened(list(range(3))))
def test_exposures_that_come_late_move_outcomes_whatever_was_summed_before(seed: int) -> None:
    records = jumbled(seed)
    first = date_of(T0 // DAY_MS)
    settings = settings_of(start=first, metrics=[{"name": n} for n in ("ctr_ratio", "cvr_ratio")])
    expected = truth_of(records, settings)
    assert all(number for numbers in expected.outside.values() for number in numbers)
    for size in (1, 7, 1000):
        engines = run_in_passes(settings, 1, to_log(records), size, seed)
        found = truth_from(
            engines.catalogue.experiment_measures, [view_of(p) for p in engines.partitions]
        )
        assert found == expected, size


@pytest.mark.parametrize(("cap", "capped_at"), [(None, None), (12, 12.0), (0.5, 13.0), (0.9, None)])
def test_the_readout_says_where_users_are_capped(cap: float | None, capped_at: float) -> None:
    metric = {} if cap is None else {"cap": cap}
    assert read(settings_of(metric=metric), log_of(2000)).capped_at == capped_at


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"metric": {"cap": -1}}, "cap = -1.0: a quantile below 1, an amount from 1"),
        ({"min_days": 0}, "min_days = 0: 1 to 90"),
        ({"decide": "at_end"}, "decide = 'at_end' without an end: set end"),
        ({"planned_users": 5}, "planned_users = 5: above 0, and only with decide = 'at_end'"),
        ({"outcomes": "clicked"}, "outcomes = 'clicked': 'exposed' or 'attributed'"),
    ],
)
def test_wrong_settings_are_named(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings_of(**more)
