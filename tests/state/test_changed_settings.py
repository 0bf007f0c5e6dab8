"""State that is continued under other settings: see ``tests.support.changed``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import astuple, replace
from random import Random
from typing import Any

import pytest

from streamer.metrics.catalogue import Catalogue
from streamer.metrics.item_counts import item_counts
from streamer.metrics.rings import Ring, rings_of
from streamer.metrics.sums import asks_impressions
from streamer.query.readings import ReadingSet, readout
from streamer.settings.durations import pane_length_ms
from streamer.settings.model import Redis, Settings
from streamer.settings.own_metrics import OwnRatio
from streamer.state.contents import contents_of
from streamer.state.counted_since import CountedSince
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store
from tests.oracle import random_log
from tests.oracle.oracle import Record, records_of_log
from tests.oracle.oracle import run as oracle_run
from tests.support.agreement import by_key, differences, read_engines, to_log
from tests.support.all_cases import hold_for_all
from tests.support.canonical import canonical
from tests.support.changed import (
    DIMENSIONS,
    FAMILIES,
    GAINS,
    Choice,
    Sums,
    both,
    chosen,
    chosen_of_twenty,
    from_then_on,
    hidden,
    item_rollups,
    item_sums,
    pane_sums,
    settings_of,
    unlike,
    user_sums,
)
from tests.support.engines import Engines, LogChunk, LogRecord, chunks_of
from tests.support.journals import Run, commit, start, take_over
from tests.support.lanes import long, shortened, sized
from tests.support.many_dimensions import crossings

LINES = 900


class Changed:
    """A log that was read under one setting up to its middle, and under another from there on."""

    def __init__(self, seed: int, first: Choice, second: Choice, lines: int = LINES) -> None:
        self.seed, self.first, self.second = seed, first, second
        gains = {
            kind: gain if kind in second["kinds"] else 0.0 for kind, gain in GAINS.items()
        }  # what slates mean is said by the settings that count them
        self.settings = [settings_of(first), settings_of(second)]
        self.whole = settings_of(both(first, second), gains)
        written = random_log.random_log(seed, self.whole, lines)
        log = to_log(records_of_log(written, self.whole, partitions=1))
        log.sort(key=lambda record: record.record_ms)
        middle = len(log) // 2
        self.halves = [
            [hidden(record, settings, self.whole) for record in part]
            for settings, part in zip(self.settings, (log[:middle], log[middle:]), strict=True)
        ]

    async def read(self, store: Store) -> Run:
        """In two halves, with a restart between them, and another one at the end."""
        run = await start(store, self.settings[0], 1)
        await self.feed(store, run, self.halves[0])
        await commit(store, run, 0)
        run = await self.restarted(store)
        if self.seed % 2:
            await commit(store, run, 0)
            before = canonical(run.engines.partitions[0])
            await take_over(store, run, 0)
            assert canonical(run.engines.partitions[0]) == before
        await self.feed(store, run, self.halves[1])
        await commit(store, run, 0)
        return run

    async def restarted(self, store: Store) -> Run:
        return await start(store, self.settings[1], 1)

    async def feed(self, store: Store, run: Run, log: list[LogRecord]) -> None:
        dice = Random(self.seed)
        for chunk in chunks_of(log, 100, self.seed):
            run.engines.feed(chunk)
            if dice.random() < 0.3:
                await commit(store, run, 0)

    def uninterrupted(self) -> Engines:
        """The whole run."""
        engines = Engines(self.whole, 1)
        for half in self.halves:
            for chunk in chunks_of(half, 100, self.seed):
                engines.feed(chunk)
        return engines


def two_of_few(dice: Random) -> tuple[Choice, Choice]:
    return chosen(dice), chosen(dice)


def two_of_twenty(dice: Random) -> tuple[Choice, Choice]:
    crossed = crossings(dice, 6)
    return chosen_of_twenty(dice, crossed), chosen_of_twenty(dice, crossed)


@pytest.mark.parametrize("choices", [two_of_few, two_of_twenty])
async def test_redis_keeps_it_likewise(
    choices: Callable[[Random], tuple[Choice, Choice]], redis_url: str, redis_prefix: str
) -> None:
    store = RedisStore(Redis(url=redis_url, prefix=redis_prefix))
    try:
        changed = Changed(5, *choices(Random(5)))
        run = await changed.read(store)
        agree(changed, run)
        names = decode((await store.read(0)).manifest).blob_names()
        claim = await store.owner(0) or ""
        assert await store.sweep(0, claim, names) == 0  # nothing of the first settings is left
    finally:
        await store.close()


def is_as_if_nothing_had_been_changed(seed: int) -> None:
    changed = Changed(seed, *two_of_few(Random(seed)))
    agree(changed, asyncio.run(changed.read(MemoryStore())))


@pytest.mark.timeout(600)
def test_what_both_count_is_as_if_nothing_had_been_changed() -> None:
    hold_for_all(range(sized(5, 60)), is_as_if_nothing_had_been_changed, "seed {}".format)


@long
@pytest.mark.parametrize("seed", shortened(list(range(16))))
async def test_what_both_count_of_twenty_dimensions_is_as_if_nothing_had_been_changed(
    seed: int,
) -> None:
    """Some dimensions and combinations of them are new, others leave, others stay. The one run that
    holds all of it reads as the oracle does."""
    choices = two_of_twenty(Random(seed))
    choices[seed % 2]["families"] = list(FAMILIES)
    changed = Changed(seed, *choices, sized(250, 600))
    whole = changed.uninterrupted()
    whole.finish()
    records = [Record(*astuple(record)) for half in changed.halves for record in half]
    expected = oracle_run(records, changed.whole).readings
    assert differences(read_engines(whole), expected)[:8] == []
    run = await changed.read(MemoryStore())
    agree(changed, run)


def kept_names(settings: Settings) -> dict[tuple[str, ...], set[str]]:
    """Dimensions of a rollup → what the sums are of that it keeps."""
    catalogue = Catalogue(settings)
    names = {code: name for name, code in contents_of(settings, catalogue).codes().items()}
    return {
        rollup.dimensions: {names[code] for code in rollup.codes if code in names}
        for rollup in catalogue.rollups
    }


def last_begin_ms(began: CountedSince) -> int:
    """When the last of all that began later did."""
    items = began.items
    of_rollups = (ms for spans in began.rollups.values() for *_, ms in spans)
    times = (*began.rings.values(), *(ms for *_, ms in began.codes), began.users_ms, *of_rollups)
    of_items = (*items.rings.values(), *items.cutoffs.values(), *items.lists.values())
    return max(*times, *of_items, items.clicked_ms, 0)


def agree(changed: Changed, run: Run) -> None:
    whole = changed.uninterrupted()
    ours, theirs = run.engines.partitions[0], whole.partitions[0]
    first, second = changed.first, changed.second
    common = [name for name in second["dimensions"] if name in first["dimensions"]]
    since_ms = last_begin_ms(ours.began)
    before, now = (spans(settings) for settings in changed.settings)
    kept_before, kept = (kept_names(settings) for settings in changed.settings)

    def compared(sums: Sums, known: set[str], wanted: set[str], is_ours: bool) -> Sums:
        def is_new(span: int, what: str) -> bool:
            return span not in before or what not in known

        if is_ours:
            late = sums_of_kinds if "users" in known else set()  # never read: see Times.users
            new = [key for key in sums if is_new(key[0], key[-1]) and is_past(key, since_ms)]
            assert [key for key in new if key[0] not in before or key[-1] not in late] == []
        due = from_then_on(sums, since_ms, is_new)
        if {*first["kinds"]} != {*second["kinds"]}:  # with more of them more conversions join
            whole = changed.whole
            due = {
                k: x for k, x in due.items() if not asks_impressions(k[-1].partition("/")[0], whole)
            }
        return {key: value for key, value in due.items() if key[0] in now and key[-1] in wanted}

    sums_of_kinds = users_of(changed.settings[1])
    both_ways = [(ours, True), (theirs, False)]
    for rollup, names in kept.items():
        known = kept_before.get(rollup, set())
        found = [compared(pane_sums(p, [*rollup]), known, names, of) for p, of in both_ways]
        assert list(unlike(*found))[:8] == []
    assert () in kept
    has_users = "engagement" in changed.first["families"]
    of_users = users_of(changed.settings[0]) if has_users else set()
    wanted = users_of(changed.settings[1])
    with_users = {r.dimensions for r in ours.catalogue.rollups if r.has_users}
    for rollup in with_users:
        if "engagement" in changed.second["families"] and {*rollup} <= {*common}:
            sums = [(user_sums(p, [*rollup]), is_ours) for p, is_ours in both_ways]
            found = [compared(of, of_users, wanted, is_ours) for of, is_ours in sums]
            assert list(unlike(*found))[:8] == []
    counted = places_of(changed.settings[0])
    wanted = places_of(changed.settings[1])
    went_on = {*item_rollups(changed.settings[0])}
    for rollup in item_rollups(changed.settings[1]):
        known = counted if rollup in went_on else set()
        mine, uninterrupted = (item_sums(partition, rollup) for partition, _ in both_ways)
        if rollup not in went_on:  # what was before has unknown values, and is not read
            mine = {key: sum_ for key, sum_ in mine.items() if not is_past(key, since_ms)}
        sums = [(mine, True), (uninterrupted, False)]
        found = [compared(of, known, wanted, is_ours) for of, is_ours in sums]
        assert list(unlike(*found))[:8] == []
    settle(run.engines)
    settle(whole)
    for rollup in kept.keys() & kept_before.keys():
        totals_agree(rollup, kept[rollup] & kept_before[rollup], (ours, theirs))


def totals_agree(
    rollup: tuple[str, ...], names: set[str], both: tuple[Partition, Partition]
) -> None:
    """Totals since the start of what both settings keep of a rollup."""
    found = [
        {key: v for key, v in pane_sums(partition, [*rollup]).items() if is_total(key, names)}
        for partition in both
    ]
    assert list(unlike(*found))[:8] == []
    assert found[0] or "impressions" not in names or rollup


def spans(settings: Settings) -> set[int]:
    return {ring.span_ms for ring in rings_of(settings)}


def is_past(key: tuple[Any, ...], since_ms: int) -> bool:
    """Whether a pane ends before what is new begins."""
    if key[0] == 0:
        return False
    pane_ms = pane_length_ms(key[0])
    ring = Ring("", pane_ms, key[0] // pane_ms)
    is_of_item = isinstance(key[2], int)
    return bool(key[1] + (ring.coarse if is_of_item else ring).pane_ms <= since_ms)


def is_total(key: tuple[Any, ...], known: set[str]) -> bool:
    return key[0] == 0 and key[-1] in known


def settle(engines: Engines) -> None:
    """Days later: all that was taken in is final."""
    partition = engines.partitions[0]
    at_ms = partition.stream_ms + 10 * 86_400_000
    event = {"ts": at_ms, "user_id": "last", "session_id": "s", "action": "end"}
    event |= dict.fromkeys(DIMENSIONS, "A")
    for kind, log in partition.logs.items():
        value = json.dumps(event if kind == "sessions" else {**event, "item_id": "i"}).encode()
        engines.feed(LogChunk(kind, 0, [LogRecord(kind, 0, log.next_offset, at_ms, value)]))


def users_of(settings: Settings) -> set[str]:
    kinds = settings.user_feedback_kinds
    by_kind = {f"{what} of {kind}" for what in ("rates", "users", "squares") for kind in kinds}
    return {"users", "hits", *by_kind}


def places_of(settings: Settings) -> set[str]:
    if item_counts(settings) is None:
        return set()
    has_lists = "diversity" in settings.metrics.families
    of = ("top", "weight", "excess") if has_lists else ("top",)
    by_k = {f"{what}@{k}" for what in of for k in settings.metrics.k}
    return {"shown", "category", *by_k} | ({"clicked"} if has_lists else set())


# Readings -----------------------------------------------------------------------------------------

LATER_MS = 12 * 3_600_000


def log_of(seed: int, settings: Settings) -> list[LogRecord]:
    records = records_of_log(random_log.random_log(seed, settings, LINES), settings, partitions=1)
    return sorted(to_log(records), key=lambda record: record.record_ms)


def read_of_store(reader: Reader, settings: Settings) -> ReadingSet:
    return readout(settings, Catalogue(settings), reader.views)


def joins_conversions(ratio: OwnRatio) -> bool:
    """Whether conversions count by the impression that they join."""
    parts = [part for part in (ratio.numerator, ratio.denominator) if part is not None]
    of = [part.where for part in parts if part.kind in ("conversions", "lines")]
    return any(path.startswith("impression.") for where in of for path in where)


@pytest.mark.parametrize("seed", shortened(list(range(40)), 2))
@long
async def test_a_window_shows_what_is_counted_over_all_of_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a day lies between the halves, which one window covers: in it everything that was there
    before the restart goes on, and is as if nothing had been changed; nothing is read in part."""
    dice = Random(seed)
    choices = [chosen(dice) for _ in range(2)]
    for choice in choices:
        choice["lengths"] = list(dict.fromkeys([*choice["lengths"], "1h", "24h"]))
    before, now = (settings_of(choice, max_values=100) for choice in choices)
    store = MemoryStore()
    run = await start(store, before, 1)
    whole = settings_of(both(*choices), max_values=100)
    earlier = log_of(seed, whole)
    for settings in (before, now):
        earlier = [hidden(record, settings, whole) for record in earlier]
    feed(run.engines, earlier)
    await commit(store, run, 0)
    shown = set(read_engines(run.engines))
    monkeypatch.setattr(random_log, "START_MS", random_log.START_MS + LATER_MS)
    later = log_of(seed, now)
    run = await start(store, now, 1)
    offsets = {kind: log.next_offset for kind, log in run.engines.partitions[0].logs.items()}
    later = [replace(r, offset=r.offset + offsets[r.kind]) for r in later]
    feed(run.engines, later)
    await commit(store, run, 0)
    reader = Reader(store, contents_of(now, Catalogue(now)))
    await reader.refresh()
    uninterrupted = Engines(now, 1)
    feed(uninterrupted, [*earlier, *later])
    expected = windowed(read_engines(uninterrupted))
    got = windowed(by_key(read_of_store(reader, now)))
    assert differences(got, {key: expected[key] for key in got if key in expected})[:8] == []
    went_on = {key for key in shown & expected.keys() if not is_of_slates(key, now)}
    if min(now.metrics.k) not in before.metrics.k:  # lists are those of the smallest one
        went_on = {key for key in went_on if key[0] != "streamer_window_lists"}
    kinds = {*now.user_feedback_kinds} - {*before.user_feedback_kinds}
    if kinds:  # with more of them more conversions join, and feedback takes over more dimensions
        joined = [ratio.name for ratio in now.ratios if joins_conversions(ratio)]
        went_on = {key for key in went_on if "cvr_attributed" not in key[0] and is_of_all(key)}
        went_on = {key for key in went_on if dict(key[1]).get("ratio") not in joined}
    assert sorted(went_on - got.keys(), key=repr)[:8] == []
    of_kinds = [labels for _, labels in got if dict(labels).get("feedback") in kinds]
    assert all(("window", "24h") not in labels for labels in of_kinds)


def is_of_all(key: Any) -> bool:
    """Whether a series is of all segments together."""
    return {value for name, value in key[1] if name in DIMENSIONS} <= {"all"}


def windowed(readings: Any) -> dict[Any, Any]:
    """Those of windows, without what is called otherwise under other settings."""
    return {
        key: x
        for key, x in readings.items()
        if "window" in dict(key[1]) and ("feedback", "other") not in key[1]
    }


def is_of_slates(key: Any, settings: Settings) -> bool:
    """Whether other gains count it anew."""
    families = (f for f in Catalogue(settings).families if f.name in ("ranking", "scoring"))
    names = {f"streamer_{metric.name}" for family in families for metric in family.metrics}
    return key[0] in names or key[0] == "streamer_composite"


def feed(engines: Engines, log: list[LogRecord]) -> None:
    for chunk in chunks_of(log, 200, 1):
        engines.feed(chunk)
