"""Partitions written through journals and taken over, on whatever store: one suite, inherited."""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamer.errors import CodecError, SettingsError
from streamer.metrics.rings import rings_of
from streamer.query.readings import readout
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.manifest import decode
from streamer.state.reader import Reader
from streamer.state.store import Store
from tests.oracle.shape import Readings
from tests.state.store_suite import step
from tests.support import many_dimensions
from tests.support.agreement import (
    SETTINGS,
    by_key,
    differences,
    log_records,
    random_records,
    run_engines,
    states,
    to_log,
)
from tests.support.canonical import Canonical, canonical
from tests.support.engines import LogChunk, LogRecord, chunks_of
from tests.support.journals import (
    Run,
    commit,
    feed_with_crashes,
    feed_with_restarts,
    finish,
    start,
    take_over,
)
from tests.support.lanes import shortened, sized


async def assert_as_uninterrupted(
    store: Store, run: Run, reference: list[Canonical], expected: Readings
) -> None:
    """What was written is the state of another run, and the oracle's readings."""
    assert states(run.engines) == reference
    for number in range(len(run.engines.partitions)):
        await take_over(store, run, number)
    assert states(run.engines) == reference
    reader = Reader(store)
    await reader.refresh()
    shown = by_key(readout(run.engines.settings, run.engines.catalogue, reader.views))
    assert differences(shown, expected)[:8] == []


class JournalSuite:
    """Partitions written through journals, restarted again and again."""

    lines = sized(400, 800)
    seeds = 3

    @pytest.mark.parametrize("name", SETTINGS)
    @pytest.mark.parametrize("seed", shortened([1, 0, 2]))
    async def test_restarts_change_nothing(
        self, store: Store, seed: int, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 2 + seed)
        settings, partitions = SETTINGS[name], 1 + seed % 2
        records, expected = random_records(seed, name, self.lines, partitions)
        log = to_log(records)
        reference = states(run_engines(settings, partitions, log, 60, seed))
        run = await start(store, settings, partitions)
        await feed_with_restarts(store, run, log, seed)
        await finish(store, run)
        await assert_as_uninterrupted(store, run, reference, expected)

    @pytest.mark.parametrize("seed", shortened(list(range(12))))
    async def test_crashes_change_nothing_of_twenty_dimensions(
        self, store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 2 + seed % 3)
        settings, partitions = many_dimensions.random_settings(seed), 1 + seed % 2
        records, expected = many_dimensions.random_records(seed, sized(250, 700), partitions)
        log = to_log(records)
        run = await start(store, settings, partitions)
        assert await feed_with_crashes(store, run, log, seed) > 0
        await finish(store, run)
        reference = states(run_engines(settings, partitions, log, 60, seed))
        await assert_as_uninterrupted(store, run, reference, expected)

    @pytest.mark.parametrize("seed", shortened(list(range(6))))
    async def test_restarts_change_nothing_of_full_rollups(self, store: Store, seed: int) -> None:
        """Which segments a full one keeps follows the cuts: they are the same here."""
        settings = many_dimensions.random_settings(seed, limits={"segments": 2 + seed})
        log = to_log(many_dimensions.random_records(seed, sized(250, 700), 1)[0])
        whole = run_engines(settings, 1, log, 60, seed + 1)
        run = await start(store, settings, 1)
        await feed_with_restarts(store, run, log, seed)
        await finish(store, run)
        full = run.engines.partitions[0].core.state()["segments_overflowed"]
        assert any(full)
        await take_over(store, run, 0)
        assert run.engines.partitions[0].core.state()["segments_overflowed"] == full
        assert states(run.engines) == states(whole)

    async def test_work_that_was_not_committed_is_done_again(self, store: Store) -> None:
        settings = SETTINGS["defaults"]
        records, expected = random_records(11, "defaults", self.lines, 1)
        log = to_log(records)
        run = await start(store, settings, 1)
        chunks = list(chunks_of(log, 40, 5))
        done = 0
        for crash_at in (7, 15, len(chunks)):
            kept = done
            for i in range(done, crash_at):
                run.engines.feed(chunks[i])
                if i % 5 == 4:
                    await commit(store, run, 0)
                    kept = i + 1
            if crash_at < len(chunks):
                # Prepared, and lost: its blobs are orphans now.
                lost = run.journals[0].prepare()
                await store.commit(0, step("another", b"", b"x", dict(lost.blobs)))
                await take_over(store, run, 0)
                assert await store.blobs(0, list(lost.blobs)) == [None] * len(lost.blobs)
            done = kept
        run.engines.finish()
        await commit(store, run, 0)
        reader = Reader(store)
        await reader.refresh()
        shown = by_key(readout(settings, run.engines.catalogue, reader.views))
        assert not differences(shown, expected)

    async def test_versions_that_are_out_of_date_do_not_pile_up(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 3)
        monkeypatch.setattr(limits, "BLOB_ROWS", 150)
        run = await start(store, SETTINGS["defaults"], 1)
        dice, most, blobs = random.Random(1), 0, 0
        for offset in range(0, 4000, 20):
            lines = [
                b'{"ts":%d,"user_id":"u%d","item_id":"i%d"}'
                % (10**12 + offset, dice.randint(1, 20), dice.randint(1, 15))
                for _ in range(20)
            ]
            records = [
                LogRecord("impressions", 0, offset + i, 10**12 + offset, line)
                for i, line in enumerate(lines)
            ]
            run.engines.feed(LogChunk("impressions", 0, records))
            await commit(store, run, 0)
            refs = decode((await store.read(0)).manifest).tables["user_items"]
            most, blobs = max(most, sum(ref.rows for ref in refs)), max(blobs, len(refs))
        rows = run.engines.partitions[0].core.sizes()["users_rows"]
        assert rows == 300
        assert most < 4 * rows
        assert blobs < 20
        before = canonical(run.engines.partitions[0])
        await take_over(store, run, 0)
        assert canonical(run.engines.partitions[0]) == before

    async def test_small_blobs_behind_large_ones_do_not_pile_up(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 4)
        monkeypatch.setattr(limits, "BLOB_ROWS", 200)
        run, offset = await start(store, SETTINGS["defaults"], 1), 0
        for rows in [90] * 12 + [2] * 150:
            records = [
                LogRecord(
                    *("impressions", 0, n, 10**12),
                    b'{"ts":1000000000000,"event_id":"e%d","user_id":"u%d","item_id":"i"}' % (n, n),
                )
                for n in range(offset, offset + rows)
            ]
            offset += rows
            run.engines.feed(LogChunk("impressions", 0, records))
            await commit(store, run, 0)
        tables = decode((await store.read(0)).manifest).tables
        for name in ("ids_impressions", "impressions", "user_items"):
            assert 12 <= len(tables[name]) < 30, name

    async def test_folded_segments_survive_merges_and_restarts(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 2)
        settings = parse({"dimensions": [{"name": "variant", "max_values": 1}]})
        run = await start(store, settings, 1)
        line = b'{"ts":%d,"user_id":"u","item_id":"i","variant":"%b"}'
        # Their hashes fall: each pushes out the one before, into the segment `other`.
        events = [("impressions", b"A"), ("clicks", b"A"), ("impressions", b"C"), ("clicks", b"B")]
        events += [("clicks", b"A"), ("impressions", b"B"), ("clicks", b"C"), ("clicks", b"B")] * 3
        for i, (kind, variant) in enumerate(events):
            offset = run.engines.partitions[0].logs[kind].next_offset
            value = line % (10**12 + 1000 * i, variant)
            record = LogRecord(kind, 0, offset, 10**12 + 1000 * i, value)
            run.engines.feed(LogChunk(kind, 0, [record]))
            await commit(store, run, 0)
            before = canonical(run.engines.partitions[0])
            await take_over(store, run, 0)
            assert canonical(run.engines.partitions[0]) == before, i

    @pytest.mark.parametrize("fan_in", shortened([2, 1000]))
    async def test_old_impressions_that_are_clicked_late_leave_no_gap(
        self, store: Store, fan_in: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A blob of impressions alone that were old when they were clicked stays until the newer
        ones before them have left, too."""
        monkeypatch.setattr(limits, "BLOB_FAN_IN", fan_in)
        settings = parse(
            {"attribution": {"click": "10m", "conversion": "10m"}, "time": {"max_lateness": "1m"}}
        )
        run = await start(store, settings, 1)
        for number in range(sized(80, 130)):
            at = 10**12 + 20_000 * number
            clicked = number - 26 * (number % 2)  # this one, and the next time an old one
            events = (("impressions", number), ("conversions", "nobody"), ("clicks", clicked))
            for kind, user in events:
                partition = run.engines.partitions[0]
                value = b'{"ts":%d,"user_id":"%b","item_id":"i"}' % (at, str(user).encode())
                record = LogRecord(kind, 0, partition.logs[kind].next_offset, at, value)
                run.engines.feed(LogChunk(kind, 0, [record]))
            await commit(store, run, 0)
            before = canonical(run.engines.partitions[0])
            await take_over(store, run, 0)
            assert canonical(run.engines.partitions[0]) == before, number

    async def test_blobs_merge_and_leave(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 3)
        name = "no dimensions, short times"
        records = log_records(4, name, 3000, 1)
        run = await start(store, SETTINGS[name], 1)
        most, levels = 0, set()
        for chunk in chunks_of(sorted(to_log(records), key=lambda r: r.record_ms), 30, 3):
            run.engines.feed(chunk)
            await commit(store, run, 0)
            manifest = decode((await store.read(0)).manifest)
            most = max(most, *(len(refs) for refs in manifest.tables.values()))
            levels |= {ref.level for refs in manifest.tables.values() for ref in refs}
            partition = run.engines.partitions[0]
            oldest = [ring.oldest(partition.stream_ms) for ring in rings_of(run.engines.settings)]
            for pane in (p for panes in manifest.panes.values() for p in panes):
                ring = pane >> 32
                assert ring > len(oldest) or pane & 0xFFFFFFFF >= oldest[ring - 1]
        commits = run.journals[0].commit_number
        assert commits > 60
        assert levels >= {0, 1, 2}
        assert most < commits / 3
        names = manifest.blob_names()
        held = await store.blobs(0, sorted(names))
        assert None not in held
        claim = await store.owner(0) or ""
        assert await store.sweep(0, claim, names) == 0, (
            "a blob that no manifest names was left behind"
        )

    @pytest.mark.parametrize(
        ("section", "setting", "other", "why"),
        [
            ("attribution", "click", "10m", "impressions that a longer time would join have left"),
            ("attribution", "session_gap", "1h", "sessions are stored as this gap made them"),
            ("time", "max_lateness", "2h", "joins are final"),
            ("time", "max_skew", "1m", "request ids belong to their slates"),
        ],
    )
    async def test_what_cannot_be_changed_in_place_is_refused_by_name(
        self, store: Store, section: str, setting: str, other: str, why: str
    ) -> None:
        run = await start(store, parse({}), 1)
        await commit(store, run, 0)
        with pytest.raises(SettingsError) as refused:
            await start(store, parse({section: {setting: other}}), 1)
        said = str(refused.value)
        assert f"{section}.{setting}: is {other}, was " in said
        assert why in said
        assert (
            "set it back, or start anew with another redis.prefix and another kafka.group" in said
        )
        await take_over(store, run, 0)  # nothing was changed

    async def test_every_refusal_is_said_at_once(self, store: Store) -> None:
        run = await start(store, parse({}), 1)
        await commit(store, run, 0)
        others = parse(
            {
                "attribution": {"click": "10m"},
                "events": {"fields": {"item_id": "sku", "variant": "arm"}},
            }
        )
        with pytest.raises(
            SettingsError,
            match=r"click: is 10m.*item_id in 'impressions', .*: is sku.*variant in .*: is arm",
        ):
            await start(store, others, 1)

    async def test_fields_of_what_is_new_have_any_name(self, store: Store) -> None:
        run = await start(store, parse({}), 1)
        await commit(store, run, 0)
        dimensions = [{"name": name} for name in ("variant", "surface", "country")]
        fields = {"fields": {"country": "geo"}}
        await start(store, parse({"dimensions": dimensions, "events": fields}), 1)

    async def test_categories_of_stored_lists_cannot_be_changed(self, store: Store) -> None:
        def made(**items: Any) -> Settings:
            return parse({"metrics": {"families": ["diversity"]}, "items": items})

        run = await start(store, made(), 1)
        await commit(store, run, 0)
        await start(store, made(catalog_size=9), 1)
        with pytest.raises(SettingsError, match=r"items\.category: is surface, was the field"):
            await start(store, made(category="surface"), 1)

    async def test_a_missing_blob_is_a_clear_error(self, store: Store) -> None:
        records = log_records(4, "defaults", 300, 1)
        run = await start(store, SETTINGS["defaults"], 1)
        for chunk in chunks_of(to_log(records), 300):
            run.engines.feed(chunk)
        await commit(store, run, 0)
        names = decode((await store.read(0)).manifest).blob_names()
        claim = await store.owner(0) or ""
        assert await store.sweep(0, claim, set(sorted(names)[1:])) == 1
        with pytest.raises(CodecError, match=r"1 of \d+ blobs of its manifest are missing"):
            await take_over(store, run, 0)
