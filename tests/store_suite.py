"""What every store must do: one suite, inherited for each of them.

A subclass gives a ``store`` fixture; the journal's tests below restart partitions on it.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from streamer import limits
from streamer.canonical import canonical
from streamer.config import Settings
from streamer.engine.partition import Partition
from streamer.errors import CodecError, SettingsError
from streamer.readout.readout import readout
from streamer.store.base import Answer, Commit, Store
from streamer.store.journal import Journal, adopt
from streamer.store.manifest import decode
from streamer.store.reader import Reader
from streamer.telemetry import Telemetry
from streamer.testing import Chunk, Engines, LogRecord, chunks_of
from tests.agreement import (
    SETTINGS,
    by_key,
    differences,
    random_records,
    run_engines,
    states,
    to_log,
)


def step(
    claim: str,
    expected: bytes,
    position: bytes,
    blobs: dict[str, bytes] | None = None,
    delete: tuple[str, ...] = (),
) -> Commit:
    """A commit whose manifest names its position."""
    return Commit(claim, expected, position, b"manifest of " + position, blobs or {}, delete)


class StoreSuite:
    """Claims and commits."""

    async def test_nothing_is_stored_at_first(self, store: Store) -> None:
        claim, stored = await store.claim(3)
        assert (stored.position, stored.manifest) == (b"", b"")
        assert await store.owner(3) == claim
        assert await store.owner(4) is None
        assert await store.blobs(3, ["a"]) == [None]
        assert await store.blobs(3, []) == []
        assert await store.partitions() is None

    async def test_a_commit_is_stored_whole(self, store: Store) -> None:
        claim, _ = await store.claim(0)
        commit = step(claim, b"", b"p1", {"a": b"\x00\xff", "b": b""})
        assert await store.commit(0, commit) == Answer.OK
        stored = await store.read(0)
        assert (stored.position, stored.manifest) == (b"p1", b"manifest of p1")
        assert stored.seen_ms > 1_600_000_000_000
        assert await store.blobs(0, ["b", "x", "a"]) == [b"", None, b"\x00\xff"]
        assert await store.blobs(1, ["a"]) == [None]
        assert await store.standing([1, 0]) == [(None, b""), (claim, b"p1")]

    async def test_a_repeated_commit_is_already_done(self, store: Store) -> None:
        claim, _ = await store.claim(0)
        await store.commit(0, step(claim, b"", b"p1", {"a": b"1"}))
        again = step(claim, b"p1", b"p2", {"b": b"2"}, ("a",))
        assert await store.commit(0, again) == Answer.OK
        assert await store.commit(0, again) == Answer.ALREADY
        assert await store.blobs(0, ["a", "b"]) == [None, b"2"]
        assert (await store.read(0)).position == b"p2"

    async def test_a_commit_on_another_state_has_moved(self, store: Store) -> None:
        claim, _ = await store.claim(0)
        await store.commit(0, step(claim, b"", b"p1", {"a": b"1"}))
        for expected in (b"", b"p0"):
            moved = step(claim, expected, b"p2", {"b": b"2"}, ("a",))
            assert await store.commit(0, moved) == Answer.MOVED
        assert (await store.read(0)).manifest == b"manifest of p1"
        assert await store.blobs(0, ["a"]) == [b"1"]

    async def test_another_claim_fences(self, store: Store) -> None:
        old, _ = await store.claim(0)
        await store.commit(0, step(old, b"", b"p1", {"a": b"1"}))
        new, stored = await store.claim(0)
        assert new != old
        assert stored.position == b"p1"
        fenced = step(old, b"p1", b"p2", {"b": b"2"}, ("a",))
        assert await store.commit(0, fenced) == Answer.FENCED
        # Even what it had committed before is not ALREADY for it any more.
        assert await store.commit(0, step(old, b"", b"p1")) == Answer.FENCED
        assert (await store.read(0)).position == b"p1"
        assert await store.blobs(0, ["a"]) == [b"1"]
        assert await store.commit(0, step(new, b"p1", b"p2")) == Answer.OK

    async def test_blobs_of_a_failed_commit_are_swept(self, store: Store) -> None:
        old, _ = await store.claim(0)
        await store.commit(0, step(old, b"", b"p1", {"a": b"1", "b": b"2"}))
        claim, _ = await store.claim(0)
        await store.commit(0, step(old, b"p1", b"p2", {"c": b"3", "d": b"4"}))
        await store.commit(1, step("nobody", b"", b"q", {"c": b"5"}))
        assert await store.sweep(0, claim, {"a", "b"}) == 2
        assert await store.blobs(0, ["a", "b", "c", "d"]) == [b"1", b"2", None, None]
        assert await store.sweep(0, claim, {"a", "b"}) == 0
        assert await store.blobs(1, ["c"]) == [b"5"]

    async def test_who_lost_the_claim_sweeps_nothing(self, store: Store) -> None:
        asleep, _ = await store.claim(0)
        awake, _ = await store.claim(0)
        await store.commit(0, step(awake, b"", b"p1", {"a": b"1"}))
        assert await store.sweep(0, asleep, set()) == 0
        assert await store.blobs(0, ["a"]) == [b"1"]

    async def test_only_our_claim_is_released(self, store: Store) -> None:
        old, _ = await store.claim(0)
        new, _ = await store.claim(0)
        await store.release(0, old)
        assert await store.owner(0) == new
        await store.release(0, new)
        await store.release(0, new)
        assert await store.owner(0) is None
        assert await store.commit(0, step(new, b"", b"p1")) == Answer.FENCED

    @pytest.mark.parametrize("count", [1000, 1001, 3500])
    async def test_many_blobs_are_written_and_deleted(self, store: Store, count: int) -> None:
        claim, _ = await store.claim(0)
        blobs = {f"n{i}": b"%d" % i for i in range(count)}
        assert await store.commit(0, step(claim, b"", b"p1", blobs)) == Answer.OK
        assert await store.blobs(0, list(blobs)) == list(blobs.values())
        most, names = limits.MAX_SCRIPT_KEYS, tuple(blobs)
        for i in range(0, count, most):
            positions = b"p%d" % (i // most + 1), b"p%d" % (i // most + 2)
            commit = step(claim, *positions, {"last": b"x"}, names[i : i + most])
            assert await store.commit(0, commit) == Answer.OK
        assert await store.blobs(0, list(blobs)) == [None] * count
        assert await store.blobs(0, ["last"]) == [b"x"]
        assert await store.sweep(0, claim, {"last"}) == 0

    async def test_bytes_are_opaque(self, store: Store) -> None:
        claim, _ = await store.claim(0)
        every = bytes(range(256)) + b"9007199254740993"
        commit = Commit(claim, b"", every, every * 2, {"a": every * 3})
        assert await store.commit(0, commit) == Answer.OK
        assert await store.commit(0, commit) == Answer.ALREADY
        stored = await store.read(0)
        assert (stored.position, stored.manifest) == (every, every * 2)
        assert await store.blobs(0, ["a"]) == [every * 3]

    async def test_the_number_of_partitions_is_set_once(self, store: Store) -> None:
        assert await store.set_partitions(8) == 8
        assert await store.set_partitions(4) == 8
        assert await store.partitions() == 8

    async def test_reports_come_back(self, store: Store) -> None:
        assert await store.reports() == []
        told = Telemetry("host:1", owned={2: "owned"}, lag_records={"clicks/2": 7})
        told.commit_took(0.003)
        told.commit_took(99.0)
        await store.report(told)
        await store.report(Telemetry("host:2", problems={0: "no store"}))
        found = {t.worker: t for t in await store.reports()}
        assert found == {"host:1": told, "host:2": Telemetry("host:2", problems={0: "no store"})}
        await store.report(Telemetry("host:2"))
        assert [t.problems for t in await store.reports()] == [{}, {}]
        await store.leave("host:2")
        assert [t.worker for t in await store.reports()] == ["host:1"]

    async def test_a_fit_store_passes_its_check(self, store: Store) -> None:
        await store.check()


class Run(NamedTuple):
    """Partitions that are being fed, each with its journal."""

    engines: Engines
    journals: list[Journal]


async def take_over(store: Store, run: Run, number: int) -> None:
    """What a restarted worker does: a fresh partition, claimed and loaded."""
    engines = run.engines
    partition = Partition(engines.settings, engines.catalogue)
    claim, stored = await store.claim(number)
    run.journals[number] = await adopt(store, number, partition, claim, stored)
    engines.partitions[number] = partition


async def start(store: Store, settings: Settings, partitions: int) -> Run:
    await store.set_partitions(partitions)
    engines = Engines(settings, partitions)
    run = Run(engines, [Journal(p, "") for p in engines.partitions])
    for number in range(partitions):
        await take_over(store, run, number)
    return run


async def commit(store: Store, run: Run, number: int, files: bool = True) -> None:
    """``files``: whether the sums over users are brought up to date, too."""
    if files:
        run.engines.partitions[number].file_users()
    assert await store.commit(number, run.journals[number].prepare()) == Answer.OK


class JournalSuite:
    """Partitions written through journals, restarted again and again."""

    lines = 800
    seeds = 3

    @pytest.mark.parametrize("name", SETTINGS)
    @pytest.mark.parametrize("seed", range(3))
    async def test_restarts_change_nothing(
        self, store: Store, seed: int, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 2 + seed)
        settings, partitions = SETTINGS[name], 1 + seed % 2
        records, expected = random_records(seed, name, self.lines, partitions)
        log = to_log(records)
        reference = states(run_engines(settings, partitions, log, 60, seed))
        run = await start(store, settings, partitions)
        dice = random.Random(seed)
        for chunk in chunks_of(log, 60, seed + 1):
            run.engines.feed(chunk)
            if dice.random() < 0.5:
                await commit(store, run, chunk.partition, files=dice.random() < 0.5)
                if dice.random() < 0.4:
                    before = canonical(run.engines.partitions[chunk.partition])
                    await take_over(store, run, chunk.partition)
                    after = canonical(run.engines.partitions[chunk.partition])
                    assert after == before
        run.engines.finish()
        for number in range(partitions):
            await commit(store, run, number)
        assert states(run.engines) == reference
        for number in range(partitions):
            await take_over(store, run, number)
        assert states(run.engines) == reference
        reader = Reader(store)
        await reader.refresh()
        shown = by_key(readout(settings, run.engines.catalogue, reader.views))
        assert not differences(shown, expected)

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
        monkeypatch.setattr("streamer.store.journal._MAX_BLOB_ROWS", 150)
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
            run.engines.feed(Chunk("impressions", 0, records))
            await commit(store, run, 0)
            refs = decode((await store.read(0)).manifest).tables["user_items"]
            most, blobs = max(most, sum(ref.rows for ref in refs)), max(blobs, len(refs))
        rows = len(run.engines.partitions[0].users.items)
        assert rows == 300
        assert most < 4 * rows
        assert blobs < 20
        before = canonical(run.engines.partitions[0])
        await take_over(store, run, 0)
        assert canonical(run.engines.partitions[0]) == before

    async def test_blobs_merge_and_leave(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "BLOB_FAN_IN", 3)
        name = "no dimensions, short times"
        records, _ = random_records(4, name, 3000, 1)
        run = await start(store, SETTINGS[name], 1)
        most, levels = 0, set()
        for chunk in chunks_of(sorted(to_log(records), key=lambda r: r.record_ms), 30, 3):
            run.engines.feed(chunk)
            await commit(store, run, 0)
            manifest = decode((await store.read(0)).manifest)
            most = max(most, *(len(refs) for refs in manifest.tables.values()))
            levels |= {ref.level for refs in manifest.tables.values() for ref in refs}
            partition = run.engines.partitions[0]
            oldest = [ring.oldest(partition.stream_ms) for ring in partition.cells.rings]
            for pane in manifest.panes:
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

    async def test_other_settings_do_not_read_the_state(self, store: Store) -> None:
        run = await start(store, SETTINGS["defaults"], 1)
        await commit(store, run, 0)
        for name in list(SETTINGS)[1:]:
            with pytest.raises(SettingsError, match="written with other"):
                await start(store, SETTINGS[name], 1)

    async def test_a_missing_blob_is_an_error_in_words(self, store: Store) -> None:
        records, _ = random_records(4, "defaults", 300, 1)
        run = await start(store, SETTINGS["defaults"], 1)
        for chunk in chunks_of(to_log(records), 300):
            run.engines.feed(chunk)
        await commit(store, run, 0)
        names = decode((await store.read(0)).manifest).blob_names()
        claim = await store.owner(0) or ""
        assert await store.sweep(0, claim, set(sorted(names)[1:])) == 1
        with pytest.raises(CodecError, match=r"1 of \d+ blobs of its manifest are gone"):
            await take_over(store, run, 0)
