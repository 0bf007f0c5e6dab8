"""Sums that are computed from users' days as they are stored: those before the start."""

from __future__ import annotations

import datetime

import pytest

from streamer.metrics.catalogue import Catalogue
from streamer.query.experiments import users_of
from streamer.settings.load import parse
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.user_days import DaysBefore, sums_of_days
from tests.oracle.acceptance import accept
from tests.oracle.experiments import trial_of
from tests.oracle.joining import join
from tests.state.experiment_suite import FIRST, feed, records_of, shown, trial
from tests.support import visitors
from tests.support.experiment_logs import arms_of
from tests.support.journals import commit, finish, start


@pytest.mark.parametrize("is_before", [True, False])
async def test_days_before_the_start_are_read_from_the_rows(is_before: bool) -> None:
    """Before the start there are no sums; after it the days before stay what they were."""
    metrics = [{"name": name} for name in ("ctr_ratio", "user_return_ratio", "ndcg_ratio@10")]
    first = visitors.experiment(metrics=metrics, covariate_days=2)
    own = first | {"name": "own", "covariate_days": 3, "outcomes": "attributed"}
    store = MemoryStore()
    settings = parse({"dimensions": [{"name": "variant"}], "experiments": [first, own]})
    days = 0 if is_before else 2
    records = records_of(visitors.visits(7, 120, visitors.FIRST_MS, days, 0.2, 4), 2)
    run = await start(store, settings, 2)
    await feed(store, run, records, 100, 7)
    await finish(store, run)
    manifest = decode((await store.read(1)).manifest)
    assert bool(manifest.experiment_days) != is_before
    catalogue, verdict = run.engines.catalogue, accept(records, settings)
    for one in catalogue.experiment_measures.trials:
        parts = await sums_of_days(store, settings, catalogue, DaysBefore(one))
        slow = trial_of(verdict, join(verdict, settings), settings, one.name, range(0))
        assert slow is not None
        for day in one.covariates:
            found = arms_of(one.before, parts[""], day)
            assert {m: s for (m, arm), s in found.items() if arm == "A"} == slow.before(day)
            assert found["ctr_ratio", "A"].n > 50


async def test_days_before_that_were_not_counted_are_not_zero() -> None:
    store = MemoryStore()
    later = {"start": FIRST + datetime.timedelta(days=2), "covariate_days": 2}
    value = {"metrics": [{"name": "conversion_value_per_user"}]}
    run = await start(store, parse({"experiments": [trial(**later)]}), 1)
    shown(run, 0)
    await commit(store, run, 0)
    for more, users in (({}, 20), (value, None)):
        settings = parse({"experiments": [trial(**later, **more)]})
        catalogue = Catalogue(settings)
        (one,) = catalogue.experiment_measures.trials
        parts = await sums_of_days(store, settings, catalogue, DaysBefore(one))
        assert parts.keys() == ({""} if users else set())
        if users:
            assert users_of(one.before, parts[""], one.before.days[-1]) == users
