"""The simulated months of benchmarks/claims.py: their sums are those of the core, and what is false
in them is rarely said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.claims import DAYS, MONDAY, WORLDS, Month, looks_of, stored_of
from streamer.settings.durations import DAY_MS, day_of
from streamer.stats.experiments.trials import cumulated
from tests.query.test_dirty_logs import settings_of
from tests.query.test_dirty_logs import stored_of as counted
from tests.support.lanes import long

BY_NAME = {world.name: world for world in WORLDS}


def events_of(month: Month) -> Iterator[dict[str, Any]]:
    """A log of the same."""
    for user, arm in enumerate(month.arm.tolist()):
        who = {"user_id": f"u{user}", "variant": "AB"[arm]}
        for day in range(DAYS):
            at = (day_of(MONDAY) + day) * DAY_MS + 1000 * user
            for kind, of in (("impression", month.shown), ("click", month.done)):
                for i in range(int(of[user, day])):
                    yield {"type": kind, "ts": at + i, "item_id": f"i{i}", **who}


def test_months_add_up_as_the_core_does() -> None:
    month = Month.drawn(np.random.default_rng(1), 60)
    simulated = stored_of(BY_NAME["no difference"], month, MONDAY)
    core = counted(events_of(month), settings_of("ctr_ratio", start=MONDAY))
    last = simulated.trial.days.start + DAYS - 1
    for day in (last - 20, last - 7, last):
        its, own = (cumulated(each.trial, each.parts, day) for each in (simulated, core))
        assert its.users_by_age == own.users_by_age
        assert its.measures == own.measures
        assert [c["users"] for c in its.counts[1:]] == [c["users"] for c in own.counts[1:]]


def said_in(name: str, months: int) -> list[str]:
    return [claim for n in range(months) for _, claim, _ in looks_of(BY_NAME[name], n)]


@pytest.mark.parametrize("name", ["a bad day", "novelty"])
def test_dirty_months_ship_nothing(name: str) -> None:
    assert "ship" not in said_in(name, 2)


@long
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_false_ships_are_rare(world: Any) -> None:
    """Four standard errors above 5 in 1,000, and a true gain is found."""
    ships = said_in(world.name, 40).count("ship")
    assert ships > 0 if "ship" in world.true else ships <= 2
