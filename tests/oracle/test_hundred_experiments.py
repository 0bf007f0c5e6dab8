"""A hundred experiments at once, each user in ten of them: every sum is the oracle's, and what is
shipped is what has an effect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from random import Random
from typing import Any

import pytest

from streamer.query.experiments import stored_experiments
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from streamer.stats.experiments.recommendation import Action
from tests.oracle.experiments import truth_of
from tests.oracle.files import records_of_file
from tests.oracle.shape import Record
from tests.support.agreement import to_log
from tests.support.experiment_logs import run_in_passes, truth_from
from tests.support.lanes import long

FIRST = 19_675
"""The first day; the log has nine."""
DAYS, USERS, EXPERIMENTS, OF_A_USER = 9, 3000, 100, 10
ALPHA, LIFT = 0.05, 0.8
NAMES = [f"e{number}" for number in range(EXPERIMENTS)]
PLANTED = {f"e{number}" for number in range(5, EXPERIMENTS, 10)}
"""Experiments whose treatment has an effect in the second log."""


def made() -> Settings:
    """Every other experiment reads its arm at a path that has those of all, the others at one of
    their own; the arms of every third come as events of exposures alone."""
    split = {"control": "off", "split": {"off": 1, "on": 1}, "alpha": ALPHA}
    metrics = [{"name": "clicks_per_user"}]
    some = [{"name": name, "start": date_of(FIRST), "metrics": metrics, **split} for name in NAMES]
    for number, experiment in enumerate(some):
        if number % 2:
            experiment["arm"] = f"flags.{experiment['name']}.variant"
    topics = {"exposures": "exposures"}
    defaults = {"arm": "experiments"}
    families = {"families": ["traffic"]}  # the oracle counts all of them
    return parse(
        {
            "experiments": some,
            "experiments_defaults": defaults,
            "kafka": {"topics": topics},
            "metrics": families,
        }
    )


def lines(dice: Random, planted: Set[str]) -> Iterator[dict[str, Any]]:
    """Two or three visits of each user; a treatment that is planted makes clicks likelier."""
    for user in range(USERS):
        arms = {name: dice.choice(("off", "on")) for name in dice.sample(NAMES, OF_A_USER)}
        rate = dice.betavariate(6, 14)
        for name, arm in arms.items():
            rate *= 1 + LIFT * (arm == "on" and name in planted)
        of_user = {"user_id": f"u{user}"}
        begun: set[str] = set()
        for at_ms in sorted(dice.randrange(DAYS * DAY_MS) for _ in range(dice.choice((2, 3)))):
            at_ms += FIRST * DAY_MS
            said = dict(dice.sample(sorted(arms.items()), 6)) if begun else arms
            for name, arm in said.items():
                if int(name[1:]) % 3 == 0 and (name not in begun or dice.random() < 0.2):
                    of_it = {"experiment": name, "arm": arm}
                    yield {"type": "exposure", "ts": at_ms, **of_user, **of_it}
            fields = {name: arm for name, arm in said.items() if int(name[1:]) % 3}
            begun |= said.keys()
            shown = {
                "experiments": {n: arm for n, arm in fields.items() if int(n[1:]) % 2 == 0},
                "flags": {n: {"variant": arm} for n, arm in fields.items() if int(n[1:]) % 2},
            }
            yield {"type": "impression", "ts": at_ms, **of_user, "items": list("abcde"), **shown}
            for place, item in enumerate("abcde", 1):
                if dice.random() < rate:
                    yield {"type": "click", "ts": at_ms + place * 1000, **of_user, "item_id": item}
    for day in range(DAYS):  # the last day is over
        yield {"type": "click", "ts": (FIRST + day + 1) * DAY_MS, "user_id": "z", "item_id": "a"}


def records(settings: Settings, planted: Set[str]) -> list[Record]:
    events = sorted(lines(Random(11), planted), key=lambda event: event["ts"])
    return records_of_file([json.dumps(event).encode() for event in events], settings)


@long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("planted", [set(), PLANTED], ids=["of no effect", "ten with an effect"])
def test_a_hundred_experiments(planted: set[str]) -> None:
    settings = made()
    log = records(settings, planted)
    engines = run_in_passes(settings, 1, to_log(log), 2000, 3)
    measures, views = engines.catalogue.experiment_measures, [view_of(engines.partitions[0])]
    expected = truth_of(log, settings)
    assert len(expected.sums) == EXPERIMENTS * 5 * 2 * (DAYS + 1)
    assert truth_from(measures, views) == expected
    found = {name: it.read() for name, it in stored_experiments(settings, measures, views).items()}
    assert found.keys() == {*NAMES}
    assert all(min(it.users.values()) > 100 for it in found.values())
    decided = {name: it.recommendation for name, it in found.items() if it.recommendation}
    shipped = {name for name, its in decided.items() if its.action is Action.SHIP}
    assert planted <= shipped
    assert len(shipped - planted) <= ALPHA * EXPERIMENTS
