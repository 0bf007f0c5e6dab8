"""Experiments through journals, restarts and readers, on whatever store: one suite, inherited."""

from __future__ import annotations

import datetime
import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from streamer.encoding.limbs import Columns
from streamer.query.experiments import StoredExperiment, stored_experiments
from streamer.query.exploration import values_joined
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.manifest import decode
from streamer.state.reader import Reader
from streamer.state.snapshot import view_of
from streamer.state.store import Store
from streamer.state.user_days import Arm, Days, all_pairs, pairs_in, sums_of_days
from tests.oracle.acceptance import accept
from tests.oracle.experiments import apart_truth, range_truth, truth_of
from tests.oracle.joining import join
from tests.oracle.shape import Record
from tests.support import assigned, visitors
from tests.support.agreement import run_engines, states, to_log
from tests.support.canonical import canonical
from tests.support.engines import LogChunk, LogRecord, chunks_of
from tests.support.experiment_logs import NAMES, arms_of, truth_from, with_log
from tests.support.journals import Run, commit, feed_with_restarts, finish, start, take_over
from tests.support.lanes import shortened, sized


async def views_of(store: Store) -> Reader:
    reader = Reader(store)
    await reader.refresh()
    return reader


async def feed(store: Store, run: Run, records: list[Record], size: int, seed: int) -> None:
    """A whole log, committed now and then."""
    dice = random.Random(seed)
    for chunk in chunks_of(to_log(records), size, seed):
        run.engines.feed(chunk)
        if dice.random() < 0.3:
            await commit(store, run, chunk.partition, files=dice.random() < 0.5)


def records_of(events: Iterable[dict[str, Any]], partitions: int) -> list[Record]:
    """Events by user, in the order given."""
    return [
        Record(
            LINE_TYPES[event["type"]],
            sum(event["user_id"].encode()) % partitions,
            offset,
            event["ts"],
            json.dumps(event).encode(),
        )
        for offset, event in enumerate(events)
    ]


def without_experiments(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, experiments=())


DAY_MS = 86_400_000
FIRST = datetime.date(2023, 11, 14)
FIRST_MS = 19_675 * DAY_MS


def shown(run: Run, day: int, users: int = 20, variants: str = "AB") -> None:
    """Each user has one impression on a day, of a variant of his own and one of two surfaces."""
    offset = run.engines.partitions[0].logs["impressions"].next_offset
    records = []
    for i in range(users):
        ts = FIRST_MS + day * DAY_MS + 1000 * i
        event = {"ts": ts, "user_id": f"u{i}", "item_id": "i"}
        event |= {"variant": variants[i % len(variants)], "surface": ("home", "feed")[i % 2]}
        records.append(LogRecord("impressions", 0, offset + i, ts, msgspec.json.encode(event)))
    run.engines.feed(LogChunk("impressions", 0, records))


def trial(**changes: Any) -> dict[str, Any]:
    sound = {
        "name": "x",
        "dimension": "variant",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": FIRST,
    }
    return sound | changes


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another dimension": ({}, {"dimension": "surface", "control": "home",
                               "split": {"home": 1, "feed": 1}}),
    "an earlier start": ({"start": FIRST + datetime.timedelta(days=2)}, {}),
    "an end that had passed": ({"end": FIRST}, {"end": None}),
    "an arm more": ({}, {"split": {"A": 1, "B": 1, "C": 1}}),
    "covariates": ({"start": FIRST + datetime.timedelta(days=1)},
                   {"start": FIRST + datetime.timedelta(days=1), "covariate_days": 1}),
    "another metric": ({}, {"metrics": [{"name": "conversion_value_per_user"}]}),
    "outcomes that are attributed": ({}, {"outcomes": "attributed"}),
    "outcomes that are not attributed any more": ({"outcomes": "attributed"}, {}),
}  # fmt: skip
"""What was asked for, and what is asked for later, of which not all was counted."""


async def under_other_settings(
    store: Store, change: str, *others: dict[str, Any]
) -> tuple[dict[str, StoredExperiment], int]:
    """What is known after three days under the settings before a change and a restart under those
    after it, and the stream time of the restart. ``others``: experiments that do not change."""
    before, after = (parse({"experiments": [*others, trial(**some)]}) for some in CHANGES[change])
    run = await start(store, before, 1)
    for day in range(3):
        shown(run, day, variants="ABC")
    await commit(store, run, 0)
    stream_ms = run.engines.partitions[0].stream_ms
    run = await start(store, after, 1)
    await commit(store, run, 0)
    reader = await views_of(store)
    return stored_experiments(
        after, run.engines.catalogue.experiment_measures, reader.views
    ), stream_ms


def lists(columns: Columns) -> dict[str, list[int]]:
    """Columns that can be compared."""
    return {name: column.tolist() for name, column in columns.items()}


class ExperimentSuite:
    """Experiments of partitions written through journals."""

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("seed", shortened([1, 0, 2, 5]))
    async def test_restarts_change_no_sum(
        self, store: Store, seed: int, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 2 + seed)
        partitions = 1 + seed % 3
        settings, records = with_log(seed, name, sized(400, 800), partitions)
        reference = states(run_engines(settings, partitions, to_log(records), 60, seed))
        run = await start(store, settings, partitions)
        await feed_with_restarts(store, run, to_log(records), seed)
        await finish(store, run)
        assert states(run.engines) == reference
        reader = await views_of(store)
        found = truth_from(run.engines.catalogue.experiment_measures, reader.views)
        expected = truth_of(records, settings)
        assert found.sums == expected.sums
        assert found.mixed == expected.mixed
        assert found.outside == expected.outside

    @pytest.mark.parametrize("seed", shortened([0, 1, 2, 3]))
    async def test_some_days_are_read_from_the_rows(self, store: Store, seed: int) -> None:
        settings, records = with_log(seed, "defaults", sized(800, 1500), 2)
        run = await start(store, settings, 2)
        await feed(store, run, records, 100, seed)
        await finish(store, run)
        verdict = accept(records, settings)
        joins = join(verdict, settings)
        measures = run.engines.catalogue.experiment_measures
        stream_ms = verdict.stream_time_ms()
        assert stream_ms is not None
        for experiment in settings.experiments[: len(measures.of_users)]:
            trial = next(of for of in measures.of_users if of.name == experiment.name)
            days = range(trial.days.start, min(trial.days.stop, stream_ms // 86_400_000 + 1))
            for first in days:
                for last in range(first, days.stop):
                    within = range(first, last + 1)
                    parts = await sums_of_days(
                        store, settings, run.engines.catalogue, Days(trial, within)
                    )
                    expected = range_truth(verdict, joins, settings, experiment.name, first, last)
                    assert arms_of(trial, parts.get("", []), last) == expected, (
                        experiment,
                        first,
                        last,
                    )
                    for by in experiment.explore:
                        asked = Days(trial, within, by)
                        sums = await sums_of_days(store, settings, run.engines.catalogue, asked)
                        apart = values_joined(sums, settings, (await views_of(store)).views, by)
                        found = {value: arms_of(trial, its, last) for value, its in apart.items()}
                        of_day = (verdict, joins, settings, experiment.name, within)
                        assert found == apart_truth(*of_day, by), (experiment, by, within)

    @pytest.mark.parametrize("outcomes", ["exposed", "attributed"])
    async def test_users_are_told_apart_by_another_dimension(
        self, store: Store, outcomes: str
    ) -> None:
        metrics = [{"name": name} for name in ("ctr_ratio", "user_return_ratio", "ndcg_ratio@10")]
        more = {"metrics": metrics, "explore": ["surface"], "outcomes": outcomes}
        dimensions = [{"name": "variant"}, {"name": "surface", "max_values": 2}]
        settings = parse({"dimensions": dimensions, "experiments": [visitors.experiment(**more)]})
        records = records_of(visitors.visits(7, 300, visitors.FIRST_MS, 4, 0.2), 2)
        run = await start(store, settings, 2)
        await feed(store, run, records, 100, 7)
        await finish(store, run)
        catalogue, views = run.engines.catalogue, (await views_of(store)).views
        (trial,) = catalogue.experiment_measures.trials
        days = trial.days[:4]
        sums = await sums_of_days(store, settings, catalogue, Days(trial, days, "surface"))
        apart = values_joined(sums, settings, views, "surface")
        verdict = accept(records, settings)
        truth = apart_truth(verdict, join(verdict, settings), settings, "ranker", days, "surface")
        assert {v: arms_of(trial, parts, days[-1]) for v, parts in apart.items()} == truth, "apart"
        assert len(truth) == 3, list(truth)
        assert all(arms["ctr_ratio", arm].n > 8 for arms in truth.values() for arm in "AB")

    async def test_an_experiment_that_comes_later_says_since_when_it_is_counted(
        self, store: Store
    ) -> None:
        settings, records = with_log(5, "defaults", 1500, 1)
        bare = without_experiments(settings)
        run = await start(store, bare, 1)
        half = len(records) // 2
        await feed(store, run, records[:half], 100, 1)
        await commit(store, run, 0)
        middle_ms = run.engines.partitions[0].stream_ms
        assert decode((await store.read(0)).manifest).counted_since_ms == {}
        run = await start(store, settings, 1)
        await feed(store, run, records[half:], 100, 2)
        await finish(store, run)
        reader = await views_of(store)
        measures = run.engines.catalogue.experiment_measures
        for name, stored in stored_experiments(settings, measures, reader.views).items():
            assert stored.since_ms == middle_ms, name
            assert stored.read().counted_since_ms == (middle_ms if stored.is_partial else None)
        whole = truth_of(records, settings)
        found = truth_from(measures, reader.views)
        fewer = [found.sums[key].n < sums.n for key, sums in whole.sums.items() if sums.n]
        assert any(fewer)

    async def test_a_session_that_is_open_when_a_metric_comes_counts_once(
        self, store: Store
    ) -> None:
        day_ms = 20_000 * 86_400_000
        seen = {"user_id": "u", "ts": day_ms, "variant": "A"}
        visit = {"type": "session", "session_id": "s", "action": "view", "user_id": "u"}
        events = [
            {"type": "impression", "item_id": "i", **seen},
            {**visit, "ts": day_ms + 1000},
            {**visit, "ts": day_ms + 2000},
            {"type": "impression", "item_id": "i", **seen, "ts": day_ms + 9_000_000},
        ]
        names = ["sessions_per_user", "bounce_rate_ratio"]
        experiment = {
            **{"name": "e", "dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}},
            "start": datetime.date(2024, 10, 4),
        }
        records = records_of(events, 1)
        for metrics, some in ((["ctr_ratio"], records[:2]), (names, records[2:])):
            measured = {"metrics": [{"name": name} for name in metrics]}
            settings = parse({"experiments": [experiment | measured]})
            run = await start(store, settings, 1)
            await feed(store, run, some, 100, 1)
            await commit(store, run, 0)
        await finish(store, run)
        reader = await views_of(store)
        measures = run.engines.catalogue.experiment_measures
        stored = stored_experiments(settings, measures, reader.views)["e"]
        found = {m.name: m.found.arms[0].value for m in stored.read().metrics}
        assert found == {"sessions_per_user": 1.0, "bounce_rate_ratio": 0.0}

    async def test_what_was_found_goes_on_after_restarts(self, store: Store) -> None:
        defaults = {"arm": "experiments", "metrics": [{"name": "ctr_ratio"}], "max_found": 2}
        settings = parse({"experiments_defaults": defaults, "dimensions": []})

        def arms(user: int) -> dict[str, str]:
            return {name: random.Random(f"{name} {user}").choice("ab") for name in ("x", "y", "z")}

        records = records_of(assigned.events(120, arms, days=3), 2)
        run = await start(store, settings, 2)
        await feed_with_restarts(store, run, to_log(records), 5)
        await finish(store, run)
        reader = await views_of(store)
        measures = run.engines.catalogue.experiment_measures
        stored = stored_experiments(settings, measures, reader.views)
        whole = run_engines(settings, 2, to_log(records), 10**6)
        views = [view_of(partition) for partition in whole.partitions]
        expected = stored_experiments(settings, measures, views)
        assert len(expected) == 2
        assert stored.keys() == expected.keys()
        for name, its in stored.items():
            assert its.read() == expected[name].read()
            rows = await sums_of_days(
                store, settings, run.engines.catalogue, Days(its.trial, its.so_far)
            )
            last = its.so_far[-1]
            assert its.of_parts(rows[""], its.so_far.start, last).users == its.read().users
        counts = await all_pairs(store, settings, run.engines.catalogue)
        assert sum(counts.values()) == 120
        assert counts == sum(map(pairs_in, whole.partitions), Counter[tuple[Arm, Arm]]())

    async def test_what_was_found_and_is_declared_since_goes_on(self, store: Store) -> None:
        metrics = [{"name": "ctr_ratio"}]
        defaults = {"arm": "experiments", "metrics": metrics}
        own = assigned.experiment("x", metrics=metrics)
        found = parse({"experiments_defaults": defaults, "dimensions": []})
        declared = parse({"experiments_defaults": defaults, "dimensions": [], "experiments": [own]})

        def arms(user: int) -> dict[str, str]:
            dice = random.Random(user)
            return {name: dice.choice(("old", "new")) for name in ("x", "y")}

        log = list(assigned.events(80, arms, days=4))
        half = len(log) // 2
        some, rest = records_of(log[:half], 1), records_of(log, 1)[half:]
        run = await start(store, found, 1)
        await feed(store, run, some, 50, 3)
        await finish(store, run)
        for settings in (declared, declared):  # what it takes over is stored as its own
            run = await start(store, settings, 1)
            await commit(store, run, 0)
        await feed(store, run, rest, 50, 4)
        await finish(store, run)
        reader = await views_of(store)
        measures = run.engines.catalogue.experiment_measures
        stored = stored_experiments(declared, measures, reader.views)
        whole = run_engines(declared, 1, to_log(records_of(log, 1)), 10**6)
        expected = stored_experiments(declared, measures, [view_of(whole.partitions[0])])
        assert {name: its.is_found for name, its in stored.items()} == {"x": False, "y": True}
        for name, its in stored.items():
            assert its.counted_since_ms is None
            ours, theirs = its.read(), expected[name].read()
            assert (ours.users, ours.outside) == (theirs.users, theirs.outside)
            assert [m.found for m in ours.metrics] == [m.found for m in theirs.metrics]

    async def test_a_slot_has_no_rows_of_what_was_retired(self, store: Store) -> None:
        defaults = {"arm": "experiments", "metrics": [{"name": "ctr_ratio"}], "max_found": 1}
        settings = parse({"experiments_defaults": {**defaults, "silent_days": 2}, "dimensions": []})
        log = list(assigned.events(30, lambda user: {"x": "ab"[user % 2]}))
        for day in (5, 6):
            later = assigned.events(20, lambda user: {"y": "ba"[user % 2]})
            log += [{**event, "ts": event["ts"] + day * DAY_MS} for event in later]
        run = await start(store, settings, 1)
        await feed(store, run, records_of(log, 1), 40, 3)
        await finish(store, run)
        for _ in range(2):
            await take_over(store, run, 0)
            await commit(store, run, 0)
        reader = await views_of(store)
        measures = run.engines.catalogue.experiment_measures
        (stored,) = stored_experiments(settings, measures, reader.views).values()
        assert (stored.experiment.name, stored.read().users) == ("y", {"a": 10, "b": 10})

    async def test_what_no_experiment_needs_any_more_is_dropped(self, store: Store) -> None:
        settings, records = with_log(5, "defaults", 1500, 1)
        run = await start(store, settings, 1)
        await feed(store, run, records, 100, 1)
        await commit(store, run, 0)
        manifest = decode((await store.read(0)).manifest)
        assert manifest.tables["user_days"]
        assert manifest.experiment_days
        bare = without_experiments(settings)
        run = await start(store, bare, 1)
        await commit(store, run, 0)
        manifest = decode((await store.read(0)).manifest)
        assert not manifest.tables["user_days"]
        assert not manifest.experiment_days
        # Asked for again, it begins again: what was counted before has gaps.
        run = await start(store, settings, 1)
        await finish(store, run)
        reader = await views_of(store)
        found = truth_from(run.engines.catalogue.experiment_measures, reader.views)
        assert not any(sums.n for sums in found.sums.values())

    @pytest.mark.parametrize("change", CHANGES)
    async def test_what_was_not_counted_under_other_settings_is_reported(
        self, store: Store, change: str
    ) -> None:
        found, stream_ms = await under_other_settings(store, change)
        assert found["x"].read().counted_since_ms == stream_ms

    @pytest.mark.parametrize("change", CHANGES)
    async def test_what_another_experiment_counted_is_no_substitute(
        self, store: Store, change: str
    ) -> None:
        """An experiment on the same arms runs all the time, from before all of them."""
        early = trial(name="other", start=FIRST - datetime.timedelta(days=1))
        found, stream_ms = await under_other_settings(store, change, early)
        assert found["x"].read().counted_since_ms == stream_ms
        assert found["other"].read().counted_since_ms is None

    @pytest.mark.parametrize("change", ["an end that had passed", "covariates", "another metric"])
    async def test_what_was_counted_before_a_change_stays(self, store: Store, change: str) -> None:
        before, after = (parse({"experiments": [trial(**some)]}) for some in CHANGES[change])
        for day, settings in enumerate((before, before, after)):
            run = await start(store, settings, 1)
            shown(run, day, users=20 - 10 * (day == 2))
            await commit(store, run, 0)
        reader = await views_of(store)
        found = stored_experiments(after, run.engines.catalogue.experiment_measures, reader.views)
        assert found["x"].read().users == {"A": 10, "B": 10}

    async def test_what_was_dropped_does_not_return(self, store: Store) -> None:
        """Removed and asked for again, while another one goes on."""
        both = parse({"experiments": [trial(), trial(name="other", outcomes="attributed")]})
        other = parse({"experiments": [trial(name="other", outcomes="attributed")]})
        for day, settings in enumerate((both, other, both)):
            run = await start(store, settings, 1)
            shown(run, day, users=20 - 5 * day)
            await commit(store, run, 0)
        reader = await views_of(store)
        found = stored_experiments(both, run.engines.catalogue.experiment_measures, reader.views)
        assert found["x"].read().users == {"A": 5, "B": 5}
        assert found["x"].read().counted_since_ms is not None
        assert found["other"].read().users == {"A": 10, "B": 10}
        assert found["other"].read().counted_since_ms is None

    async def test_what_was_counted_all_along_is_not_reported(self, store: Store) -> None:
        early, late = (FIRST + datetime.timedelta(days=days) for days in (5, 9))
        run = await start(store, parse({"experiments": [trial(end=early)]}), 1)
        shown(run, 0)
        await commit(store, run, 0)
        after = parse({"experiments": [trial(end=late), trial(name="y", start=late)]})
        run = await start(store, after, 1)
        shown(run, 6)
        await commit(store, run, 0)
        reader = await views_of(store)
        stored = stored_experiments(after, run.engines.catalogue.experiment_measures, reader.views)[
            "x"
        ]
        assert stored.read().counted_since_ms is None
        assert stored.read().users == {"A": 10, "B": 10}

    async def test_they_are_aggregated_without_metrics_of_users(self, store: Store) -> None:
        document = {"experiments": [trial()], "metrics": {"families": ["traffic"]}}
        run = await start(store, parse(document), 1)
        shown(run, 0)
        partition = run.engines.partitions[0]
        assert partition.users_behind_ms > 0
        await commit(store, run, 0)
        reader = await views_of(store)
        found = stored_experiments(
            partition.settings, run.engines.catalogue.experiment_measures, reader.views
        )
        assert found["x"].read().users == {"A": 10, "B": 10}

    async def test_sums_of_other_settings_are_not_read(self, store: Store) -> None:
        settings, records = with_log(5, "defaults", 1500, 1)
        run = await start(store, settings, 1)
        await feed(store, run, records, 100, 1)
        await finish(store, run)
        reader = await views_of(store)
        first = settings.experiments[0]
        other = msgspec.structs.replace(first, split=dict.fromkeys(("X", *first.arms), 1.0))
        changed = msgspec.structs.replace(settings, experiments=(other,))
        measures = type(run.engines.catalogue.experiment_measures)(changed)
        stored = stored_experiments(changed, measures, reader.views)[first.name]
        assert not stored.parts
        assert sum(stored.read().users.values()) == 0

    async def test_beyond_the_bound_a_sample_of_the_users_is_compared(self, store: Store) -> None:
        settings, records = with_log(5, "defaults", 1500, 1)
        bounds = msgspec.structs.replace(settings.limits, user_days=60)
        sampled = msgspec.structs.replace(settings, limits=bounds)
        run = await start(store, sampled, 1)
        await feed(store, run, records, 50, 1)
        await finish(store, run)
        partition = run.engines.partitions[0]
        bits = partition.core.counters()["day_sample_bits"]
        assert bits > 0
        assert partition.core.sizes()["user_days_rows"] <= 60
        whole = run_engines(settings, 1, to_log(records), 100).partitions[0]
        whole.core.restore_experiments([], 0)
        whole.core.restore(whole.core.state() | {"counters": {"day_sample_bits": bits}})
        whole.refresh_user_sums()
        found, kept = partition.experiment_sums, whole.experiment_sums
        assert found.first_keys == kept.first_keys
        assert {day: lists(sums) for day, sums in found.days.items() if len(sums["key"])} == {
            day: lists(sums) for day, sums in kept.days.items() if len(sums["key"])
        }
        reader = await views_of(store)
        measures = run.engines.catalogue.experiment_measures
        for stored in stored_experiments(sampled, measures, reader.views).values():
            if stored.trial.unit is None:
                assert stored.read().user_sample_ratio == 2.0**-bits
        before = canonical(partition)
        await take_over(store, run, 0)
        assert canonical(run.engines.partitions[0]) == before
