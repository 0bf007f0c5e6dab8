"""Random logs with random experiments: what always holds, and what they must have."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from streamer.settings.durations import DAY_MS
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.all_cases import hold_for_all
from tests.support.lanes import long, sized

from .acceptance import Acceptance, accept
from .arms import saw_of
from .dimensions import Kept
from .experiments import (
    ArmTruth,
    ExperimentTruth,
    Trial,
    experiment_truth,
    range_truth,
    trial_of,
)
from .files import records_of_log
from .joining import join
from .random_arms import NOWHERE, with_arms
from .random_experiments import settled, with_experiments
from .random_log import random_log
from .shape import ALL_KINDS, EXPOSURES

SETTINGS = {
    "hours": parse({}),
    "few values": parse(
        {
            "dimensions": [{"name": "variant", "values": ["A", "B"], "max_values": 2}],
            "metrics": {
                "feedback": {"like": 1.0, "conversion": 3.0},
                "k": [3],
                "conventions": {"ndcg_ratio": ["jurity"], "kendall_tau": ["tau_b"]},
            },
        }
    ),
    "days": parse(
        {
            "dimensions": [{"name": "variant", "max_values": 9}, {"name": "surface"}],
            "time": {"max_lateness": "6h"},
            "events": {"fields": {"user_id": "uid", "variant": "group"}},
        }
    ),
}
SEEDS = sized(2, 12)
CASES = [(name, seed) for name in SETTINGS for seed in range(SEEDS)]


class Case(NamedTuple):
    settings: Settings
    verdict: Acceptance
    truth: ExperimentTruth
    trials: dict[str, Trial]
    ranges: dict[str, dict[tuple[str, str], ArmTruth]]
    """Experiment → the sums of all of its days."""


@cache
def case_of(name: str, seed: int) -> Case:
    plain = SETTINGS[name]
    log = settled(random_log(seed, plain, 500), plain, Random(seed))
    settings = with_experiments(plain, log)
    settings, log = with_arms(settings, log, Random(f"{name} {seed}"))
    verdict = accept(records_of_log(log, settings, partitions=1 + seed % 3), settings)
    joins = join(verdict, settings)
    truth = experiment_truth(verdict, joins, settings)
    ranges = {
        e.name: range_truth(verdict, joins, settings, e.name, e.days[0], e.days[-1])
        for e in settings.experiments
    }
    trials = {
        e.name: trial
        for e in settings.experiments
        if (trial := trial_of(verdict, joins, settings, e.name, e.days)) is not None
    }
    return Case(settings, verdict, truth, trials, ranges)


def everybody_is_in_an_arm_or_in_several(name: str, seed: int) -> None:
    settings, verdict, truth, _, _ = case_of(name, seed)
    kept = Kept(verdict.events, settings)
    for experiment in settings.experiments:
        names, own = settings.dimension_names, experiment.dimension
        i = names.index(own) if own else None
        said = {id(saw.event) for saw in saw_of(verdict.events, experiment, settings)}
        first: dict[tuple[int, str], int] = {}
        for event in verdict.events:
            day = event.event_ms // DAY_MS
            is_in_arm = i is not None and kept.shown(event.dims)[i] in experiment.arms
            is_shown = event.topic == "impressions" and event.person is not None
            is_exposed = (is_shown and is_in_arm) or id(event) in said
            if is_exposed and day in experiment.days:
                user = (event.partition, event.who)
                first[user] = min(day, first.get(user, day))
        for (of, metric, arm, day), sums in truth.sums.items():
            if of == experiment.name and arm == experiment.control:
                others = [truth.sums[of, metric, a, day].n for a in experiment.arms[1:]]
                seen = sum(one <= day for one in first.values())
                n = sums.n + sum(others) + truth.mixed[of, day]
                assert n == seen or (experiment.outcomes == "attributed" and n < seen)


@long
def test_everybody_who_saw_an_arm_is_in_one_or_in_several() -> None:
    hold_for_all(
        CASES, lambda case: everybody_is_in_an_arm_or_in_several(*case), at_least=3 * SEEDS
    )


def the_last_day_is_the_range(name: str, seed: int) -> None:
    # but for what is dated beyond stream time
    settings, verdict, truth, _, ranges = case_of(name, seed)
    stream_ms = verdict.stream_time_ms()
    assert stream_ms is not None
    last_day = stream_ms // DAY_MS
    if any(e.event_ms // DAY_MS > last_day for e in verdict.events):
        return
    for experiment in settings.experiments:
        day = min(last_day, experiment.days[-1])
        for (metric, arm), sums in ranges[experiment.name].items():
            assert sums == truth.sums.get((experiment.name, metric, arm, day), ArmTruth())


@long
def test_the_last_day_is_the_range_of_all_days() -> None:
    hold_for_all(CASES, lambda case: the_last_day_is_the_range(*case), at_least=3 * SEEDS)


@long
def test_random_experiments_have_every_complication() -> None:
    seen: Counter[str] = Counter()
    used: set[str] = set()
    for name, seed in CASES:
        settings, _, truth, _, _ = case_of(name, seed)
        for experiment in settings.experiments:
            sums = {key: s for key, s in truth.sums.items() if key[0] == experiment.name}
            mixed = {day: n for (of, day), n in truth.mixed.items() if of == experiment.name}
            used |= {metric for _, metric, _, _ in sums}
            seen["two arms"] += len(experiment.arms) == 2
            seen["three arms"] += len(experiment.arms) == 3
            seen["an end"] += experiment.end is not None
            seen["an arm that nobody saw"] += any("never" in arm for arm in experiment.arms)
            seen["not begun"] += not sums
            seen["one day"] += len(mixed) == 1
            seen["several days"] += len(mixed) > 2
            seen["mixed"] += any(mixed.values())
            seen["mixed later"] += len(set(mixed.values())) > 1
            seen["two arms with users"] += len({k[2] for k, s in sums.items() if s.n > 1}) > 1
            seen["a past"] += any(s.xu and s.yv for s in sums.values())
            seen["no past"] += bool(sums) and not experiment.covariate_days
            seen["values below zero"] += any(s.x < 0 for s in sums.values())
    assert min(seen.values()) > 1, seen
    assert len(used) > 50


@long
def test_random_arms_have_every_complication() -> None:
    seen: Counter[str] = Counter()
    for name, seed in CASES:
        settings, verdict, _, trials, _ = case_of(name, seed)
        seen["experiments"] += len(trials)
        seen["events that are not read"] += settings.kafka.topics.exposures is None
        for trial in trials.values():
            seen.update(complications(trial))
        wrong = [reason for topic, _, _, reason in verdict.rejects if topic == EXPOSURES]
        for reason in ("user_id", "experiment", "arm"):
            seen[f"wrong {reason}"] += wrong.count(reason)
        seen["late"] += sum(topic == EXPOSURES for topic, _, _ in verdict.late)
        seen["copies"] += sum(topic == EXPOSURES for topic, _, _ in verdict.duplicates)
    assert 0.35 < seen["by field"] / seen["experiments"] < 0.65, seen
    assert min(seen.values()) > 1, seen
    ways = [*(f"by field, field of {kind}" for kind in ALL_KINDS), "by field, first an event"]
    ways += ["by dimension, event of exposures", "by dimension, first an event"]
    assert {*ways} <= seen.keys(), seen


def complications(trial: Trial) -> Counter[str]:
    """What there is of an experiment."""
    seen: Counter[str] = Counter()
    experiment = trial.experiment
    kind = "by dimension" if experiment.dimension else "by field"
    seen[kind] += 1
    seen["several paths"] += len(experiment.paths) > 1
    seen["the default path"] += not experiment.dimension and not experiment.paths
    seen["a key"] += experiment.key != ""
    seen["nothing at the path"] += experiment.paths == (NOWHERE,)
    seen["attributed with events"] += experiment.outcomes == "attributed" and any(
        saw.how == "event" for its in trial.saw.values() for saw in its
    )
    seen["several arms"] += bool(trial.mixed)
    for user, arm in ((user, arm) for arm, users in trial.members.items() for user in users):
        saw = [one for one in trial.saw[user] if one.event_ms // DAY_MS in experiment.days]
        for one in saw:
            seen[f"{kind}, {one.how} of {one.event.topic}"] += 1
        first = min(saw, key=lambda one: one.event_ms)
        did = trial.did.get(user, [])
        on_day = [d for d in did if d.day == first.event_ms // DAY_MS]
        outcomes = [d.event_ms - first.event_ms for d in on_day if d.component == "outcomes"]
        seen[f"{kind}, first an {first.how}"] += 1
        seen["first on another day"] += first.event_ms // DAY_MS > experiment.days.start
        seen["outcomes of the day before and after"] += (
            min([0, *outcomes]) < 0 < max([0, *outcomes])
        )
        seen["an outcome at the same time"] += 0 in outcomes
        seen["nothing afterwards"] += not any(d.event_ms >= first.event_ms for d in did)
        seen["began in nothing"] += trial.began_in(user, arm, 0) == "unknown"
        ways = {one.how for one in saw}
        seen["dimension and event"] += ways == {"dimension", "event"}
        seen["field and event"] += ways == {"field", "event"}
        seen["said on several days"] += len({one.event_ms // DAY_MS for one in saw}) > 1
        seen["came later than others"] += any(
            one.event.arrival_ms < first.event.arrival_ms for one in saw
        )
    return seen


@pytest.mark.parametrize("name", SETTINGS)
def test_a_log_gives_the_same_experiments_again(name: str) -> None:
    plain = SETTINGS[name]
    log = random_log(7, plain, 100)
    found = with_experiments(plain, log)
    assert found == with_experiments(plain, log)
    assert 1 <= len(found.experiments) <= 3
    assert len({repr(with_experiments(plain, log, Random(i))) for i in range(5)}) > 1


def test_without_dimensions_or_impressions_there_are_no_experiments() -> None:
    none = parse({"dimensions": []})
    assert with_experiments(none, random_log(1, none, 50)) == none
    assert with_experiments(SETTINGS["hours"], []) == SETTINGS["hours"]


def test_settled_users_keep_their_value() -> None:
    plain = SETTINGS["days"]
    log = random_log(5, plain, 1500)
    changed = settled(log, plain, Random(5), share=1.0)
    assert [line.count(b'"') for line in changed] == [line.count(b'"') for line in log]
    values: dict[str, set[str]] = {}
    for event in accept(records_of_log(changed, plain), plain).events:
        if event.user_id is None:
            continue
        own = values.setdefault(event.user_id, set())
        own |= {value for value in event.dims if value is not None}
    names = [(user, value.split("-")[0]) for user, own in values.items() for value in own]
    several = {user for (user, _), n in Counter(names).items() if n > 1}
    assert len(values) > 3
    assert not several - {"Zoë ✓"}  # who is sometimes written in two ways
