"""The engine reads what the oracle reads, however the log is cut and interleaved."""

from __future__ import annotations

import pytest

from streamer.settings.load import parse
from streamer.sources import open_bandit
from tests.oracle.oracle import records_of_log, run
from tests.support.agreement import (
    SETTINGS,
    differences,
    log_records,
    random_records,
    read_engines,
    run_engines,
    states,
    to_log,
)
from tests.support.lanes import long, shortened, sized

LINES = sized(300, 800)
WHOLE = 1_000_000


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", shortened(list(range(5))))
def test_engine_equals_oracle_whatever_the_cuts(seed: int, name: str) -> None:
    partitions = 1 + seed % 3
    records, expected = random_records(seed, name, LINES, partitions)
    log = to_log(records)
    cuts = [(WHOLE, None), (7, 1), (50, seed), (WHOLE, seed + 1)]
    reference = None
    for size, dice in cuts:
        engines = run_engines(SETTINGS[name], partitions, log, size, dice)
        readings = read_engines(engines)
        found = differences(readings, expected)
        assert not found, (size, dice, found[:8])
        state = (states(engines), readings)
        reference = reference or state
        assert state == reference, (size, dice)


@pytest.mark.parametrize("name", SETTINGS)
def test_one_record_at_a_time(name: str) -> None:
    records, expected = random_records(100, name, sized(150, 300), 2)
    log = to_log(records)
    engines = run_engines(SETTINGS[name], 2, log, 1, seed=4)
    assert differences(read_engines(engines), expected) == []
    whole = run_engines(SETTINGS[name], 2, log, WHOLE)
    assert states(engines) == states(whole)


@pytest.mark.parametrize("name", shortened(["defaults", "few values"]))
def test_a_longer_log_passes_compactions(name: str) -> None:
    records, expected = random_records(200, name, sized(2000, 10_000), 1)
    log = to_log(records)
    engines = run_engines(SETTINGS[name], 1, log, 700, seed=2)
    assert differences(read_engines(engines), expected) == []
    assert states(engines) == states(run_engines(SETTINGS[name], 1, log, WHOLE))


@pytest.mark.parametrize("order", ["impressions last", "feedback last"])
def test_whole_topics_one_after_the_other(order: str) -> None:
    records, expected = random_records(7, "defaults", sized(800, 2000), 2)
    log = to_log(records)
    log.sort(key=lambda r: (r.kind == "impressions") == (order == "impressions last"))
    engines = run_engines(SETTINGS["defaults"], 2, log, 300)
    assert differences(read_engines(engines), expected) == []


def test_dead_letters_are_the_oracles_rejects_and_late_events() -> None:
    records = log_records(3, "defaults", sized(1500, 3000), 2)
    result = run(records, SETTINGS["defaults"])
    engines = run_engines(SETTINGS["defaults"], 2, to_log(records), 90, seed=3)
    refused = {(kind, p, offset) for kind, p, offset, reason in engines.dead if reason != "late"}
    assert refused == {(kind, p, offset) for kind, p, offset, _ in result.rejects}
    late = [(kind, p, offset) for kind, p, offset, reason in engines.dead if reason == "late"]
    assert sorted(late) == sorted(result.late)
    assert len(engines.dead) == len(result.rejects) + len(result.late)
    wrong = {r[:3]: r[3] for r in result.rejects}
    reasons = {(k, p, o): reason for k, p, o, reason in engines.dead if reason != "late"}
    assert reasons == wrong


@long
def test_the_packaged_ab_test_counts_as_it_was() -> None:
    # Known of the data: 60,000 impressions, half by each policy; 130 and 157 clicks.
    settings = parse({"windows": {"lengths": ["1h", "24h"]}})
    lines = [line for _, line in open_bandit.lines(open_bandit.events())]
    records = records_of_log(lines, settings, partitions=4)
    expected = run(records, settings).readings
    engines = run_engines(settings, 4, to_log(records), 5000, seed=1)
    readings = read_engines(engines)
    assert differences(readings, expected) == []
    totals = {
        (dict(labels)["variant"], name.removeprefix("streamer_")): value
        for (name, labels), value in readings.items()
        if name in ("streamer_impressions_total", "streamer_clicks_total")
        and dict(labels)["surface"] == "all"
    }
    by_policy = {
        variant: (totals[variant, "impressions_total"], totals[variant, "clicks_total"])
        for variant in ("all", "bts", "random")
    }
    assert by_policy == {"all": (60_000, 287), "bts": (30_000, 157), "random": (30_000, 130)}
