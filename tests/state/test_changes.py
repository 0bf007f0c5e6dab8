"""What is said of a change of settings, and what readers make of state of other settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.cli.check_store import change_findings, changes_of
from streamer.cli.finding import ERROR, OK, WARN
from streamer.errors import CodecError, SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.changes import (
    changes,
    dropped_experiments,
    require_accepted,
    require_continuable,
)
from streamer.state.contents import Contents, contents_of, decode_contents
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from streamer.stats.experiments.trials import all_wanted
from tests.support.engines import LogChunk, LogRecord
from tests.support.journals import Run, commit, start
from tests.support.own_names import own_names

T0 = 1_700_000_000_000


def made(**document: Any) -> Contents:
    settings = parse(document)
    return contents_of(settings, Catalogue(settings))


def said(before: Contents, now: Contents) -> list[str]:
    return [str(change) for change in changes(before, now)]


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (
            {"dimensions": named("variant")},
            {"dimensions": named("country", "variant")},
            ["dimensions: country is new: counted from the restart on"],
        ),
        (
            {"windows": {"lengths": ["1m", "1h"]}},
            {"windows": {"lengths": ["60s", "24h"]}},
            [
                "windows.lengths: 24h is new: counted from the restart on",
                "windows.lengths: 1h is dropped, with what was counted of it",
                "items.windows: 24h is new: counted from the restart on",
                "items.windows: 1h is dropped, with what was counted of it",
            ],
        ),
        (
            {"metrics": {"feedback": {"click": 1, "like": 0}}},
            {"metrics": {"feedback": {"click": 1, "share": 0}}},
            [
                "metrics.feedback: share is new: counted from the restart on",
                "metrics.feedback: like is dropped, with what was counted of it",
            ],
        ),
        (
            {"metrics": {"feedback": {"click": 1}}},
            {"metrics": {"feedback": {"click": 2}}},
            [
                "metrics.feedback: gains: metrics of slates are counted again from the restart on",
            ],
        ),
        (
            {"metrics": {"k": [10]}},
            {"metrics": {"k": [10, 20], "margin": 0.5}},
            [
                "metrics.k: 20 is new: counted from the restart on",
                "metrics.margin: margin_loss is counted again from the restart on",
            ],
        ),
        (
            {"dimensions": named("variant", "surface")},
            {"dimensions": named("surface", "variant")},
            ["dimensions: in another order: nothing else changes"],
        ),
        (
            {"ratios": [{"name": "n", "numerator": {"kind": "clicks", "field": "depth"}}]},
            {"ratios": [{"name": "n", "numerator": {"kind": "clicks", "field": "height"}}]},
            ["ratios: n is defined otherwise: counted again from the restart on"],
        ),
        ({"limits": {"segments": 10}}, {"metrics": {"hide": ["mrr"]}}, []),
    ],
)
def test_a_change_is_said_in_words(
    before: dict[str, Any], now: dict[str, Any], words: list[str]
) -> None:
    assert said(made(**before), made(**now)) == words
    assert said(made(**now), made(**now)) == []


def test_what_is_dropped_is_refused_until_it_is_named() -> None:
    before = made(dimensions=named("country", "variant"), windows={"lengths": ["5m", "1h"]})
    now = made(dimensions=named("variant"), windows={"lengths": ["5m"]}, metrics={"k": [5, 10]})
    found = changes(before, now)
    with pytest.raises(SettingsError) as refused:
        require_accepted(found, ["country"])
    assert "windows.lengths: 1h is dropped" in str(refused.value)
    assert str(refused.value).endswith("or drop it with --accept-drop=1h")
    assert "country" not in str(refused.value)
    require_accepted(found, ["country", "1h"])
    require_accepted(changes(now, now), ())


def test_a_rollup_is_dropped_by_name_also_where_a_dimension_comes() -> None:
    both = {"rollups": [["country", "variant"], ["country"]]}
    before = made(dimensions=named("country", "variant"), metrics=both)
    now = made(
        dimensions=named("country", "variant", "device"),
        metrics={"rollups": [["country"], ["device"]]},
    )
    dropped = [change.value for change in changes(before, now) if change.drops]
    assert dropped == ["country x variant"]


def test_experiments_that_are_dropped_have_their_names() -> None:
    one = {"name": "ranker:x", "dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}}
    two = {**one, "name": "other", "dimension": "country"}
    stored, fewer, changed = (
        Catalogue(
            parse(
                {
                    "dimensions": named("country", "variant"),
                    "experiments": [
                        {"metrics": [{"name": "ctr_ratio"}], "start": "2025-06-02", **each}
                        for each in experiments
                    ],
                }
            )
        ).experiment_measures.trials
        for experiments in ([one, two], [one], [one, {**two, "split": {"A": 1, "C": 1}}])
    )
    scopes = [what.name for what, _ in all_wanted(stored)]
    assert list(dropped_experiments(scopes, stored)) == []
    for now in (fewer, changed):
        (found,) = dropped_experiments(scopes, now)
        assert found.drops
        assert found.setting == "experiments"
        assert found.value in str(found)
        with pytest.raises(SettingsError, match="--accept-drop"):
            require_accepted([found], ())


def test_contents_are_read_as_they_were_written() -> None:
    contents = made(ratios=[{"name": "n", "numerator": {"kind": "clicks", "field": "depth"}}])
    assert decode_contents(contents.encode()) == contents


def test_a_refusal_names_setting_values_reason_and_ways_out() -> None:
    before, now = made(), made(attribution={"click": "10m"}, dimensions=named("country"))
    with pytest.raises(SettingsError) as refused:
        require_continuable(before, now, "shop")
    words = (
        "'shop'",
        "attribution.click: is 10m, was 30m",
        "cannot be changed in place: impressions that",
        "set it back",
        "another redis.prefix and another kafka.group",
    )
    assert all(word in str(refused.value) for word in words)
    assert "country" not in str(refused.value)


async def stored(settings: Settings) -> tuple[MemoryStore, Run]:
    store = MemoryStore()
    run = await start(store, settings, 1)
    await commit(store, run, 0)
    return store, run


async def test_check_tells_before_it_is_tried() -> None:
    store, _ = await stored(parse({}))
    manifests = {0: decode((await store.read(0)).manifest)}
    added = changes_of(manifests, made(windows={"lengths": ["1m", "5m", "1h", "24h", "7d"]}))
    found = list(change_findings("state", 1, added))
    assert [each.level for each in found] == [WARN, WARN]
    assert "windows.lengths: 7d is new: counted from the restart on" in found[0].what
    refused = changes_of(manifests, made(time={"max_lateness": "2h"}))
    (error,) = change_findings("state", 1, refused)
    assert (error.level, "refused: time.max_lateness: is 2h" in error.what) == (ERROR, True)
    assert "another redis.prefix" in error.fix
    (fine,) = change_findings("state", 1, changes_of(manifests, made()))
    assert fine.level == OK


async def test_a_reader_does_not_show_state_of_other_settings() -> None:
    store, run = await stored(parse({}))
    fitting = Reader(store, made())
    await fitting.refresh()
    assert len(fitting.views) == 1
    other = Reader(store, made(dimensions=named("country")))
    with pytest.raises(CodecError, match=r"partition 0: it was written with other settings.*count"):
        await other.refresh()
    wider = parse({"windows": {"lengths": ["1m", "7d"]}})
    run = await start(store, wider, 1)
    await commit(store, run, 0)
    await fitting.refresh()  # what was read before is shown on
    assert len(fitting.views) == 1
    assert "windows.lengths: 7d is dropped" in fitting.damaged[0]


async def test_a_reader_shows_state_that_has_another_topic_of_a_pattern_too() -> None:
    fields = own_names(lists=False)
    web = {"topics": ["web-1"], "kind": {"fixed": "impression"}, "fields": fields}
    taps = {"topics": ["taps"], "kind": {"fixed": "click"}, "fields": fields}
    store, run = await stored(parse({"sources": [web | {"topics": ["web-1", "web-2"]}, taps]}))
    await commit(store, run, 0)
    fewer = Reader(store, made(sources=[web, taps]))
    await fewer.refresh()
    assert (fewer.damaged, len(fewer.views)) == ({}, 1)
    elsewhere = Reader(store, made(sources=[web | {"fields": fields | {"user_id": "who"}}, taps]))
    with pytest.raises(CodecError, match="user_id in 'web-1': is who, was user_id"):
        await elsewhere.refresh()
    strangers = Reader(store, made(sources=[web | {"topics": ["web-3"]}]))
    with pytest.raises(CodecError, match="none of the topics is the same"):
        await strangers.refresh()


async def test_what_began_later_says_since_when() -> None:
    store, run = await stored(parse({}))
    feed(run, T0)
    await commit(store, run, 0)
    settings = parse({"dimensions": named("variant", "surface", "country")})
    run = await start(store, settings, 1)
    feed(run, T0 + 60_000)
    await commit(store, run, 0)
    reader = Reader(store)
    await reader.refresh()
    readings = readout(settings, Catalogue(settings), reader.views).readings
    since = [r for r in readings if r.name == "streamer_counted_since_seconds"]
    assert [(r.labels, r.value) for r in since] == [
        ({"setting": "dimensions", "value": "country"}, (T0 + 1_000) / 1000)
    ]
    shown = {
        r.labels["country"]: r.value
        for r in readings
        if r.name == "streamer_window_impressions" and r.labels["window"] == "1h"
    }
    assert shown == {"all": 2}  # by country once the hour is wholly counted


def feed(run: Run, at_ms: int) -> None:
    event = {"ts": at_ms, "user_id": "u", "item_id": "i", "country": "DE"}
    partition = run.engines.partitions[0]
    offset = partition.logs["impressions"].next_offset
    value = json.dumps(event).encode()
    run.engines.feed(
        LogChunk("impressions", 0, [LogRecord("impressions", 0, offset, at_ms, value)])
    )
