"""What every store must do: one suite, inherited for each of them.

A subclass gives a ``store`` fixture.
"""

from __future__ import annotations

import asyncio

import pytest

from streamer.settings import limits
from streamer.settings.durations import DAY_MS
from streamer.state.annotations import Annotation
from streamer.state.store import Answer, Commit, Store
from streamer.state.worker_report import WorkerReport


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

    async def test_one_has_the_lease_and_writes_under_it(self, store: Store) -> None:
        assert await store.acted() == {}
        assert not await store.lead("a", 60_000, {"x": b"0"})  # who writes has it already
        assert await store.lead("a", 60_000, {})
        assert await store.lead("a", 60_000, {"x": b"1", "y": b"2"})
        assert not await store.lead("b", 60_000, {"x": b"3"})
        assert await store.lead("a", 60_000, {"x": b"", "z": b"4"})
        assert await store.acted() == {"y": b"2", "z": b"4"}
        assert await store.lead("a", 0, {})  # given back
        assert await store.lead("b", 0, {"y": b"5"})  # for this only
        assert await store.lead("b", 30, {})
        await asyncio.sleep(0.06)
        assert not await store.lead("b", 30, {"y": b"6"})
        assert await store.lead("a", 60_000, {})  # it has run out
        assert not await store.lead("b", 60_000, {"y": b"6"})
        assert (await store.acted())["y"] == b"5"

    async def test_a_lease_ends_even_if_the_clock_is_set_back(self, store: Store) -> None:
        """It lasts no longer than those who wait would have it."""
        assert await store.lead("a", 86_400_000, {})
        assert not await store.lead("b", 0, {})
        assert not await store.lead("b", 30, {})
        await asyncio.sleep(0.06)
        assert await store.lead("b", 30, {})

    async def test_settings_have_generations(self, store: Store) -> None:
        """The first are declared by whoever comes; others have to be made the newest."""
        assert await store.declare_settings("a") == (1, 1)
        assert await store.declare_settings("b") == (0, 1)
        assert await store.declare_settings("b", above=0) == (2, 2)
        assert await store.declare_settings("a") == (1, 2)
        assert await store.declare_settings("b", above=2) == (2, 2)
        assert await store.declare_settings("a", above=7) == (8, 8)
        assert await store.declare_settings("b", known=5) == (2, 8)

    async def test_known_generations_come_back_to_an_emptied_store(self, store: Store) -> None:
        assert await store.declare_settings("old") == (1, 1)
        assert await store.declare_settings("new", known=2) == (2, 2)
        assert await store.declare_settings("other", known=1) == (3, 3)

    async def test_erasures_have_rising_numbers(self, store: Store) -> None:
        """Whatever the clock says: a partition knows the last one that it has carried out."""
        first = await store.erase(7, 0)
        assert await store.erase(8, 0) > first
        ahead = await store.erase(7, 2**45)
        assert ahead == 2**45 + 1
        assert await store.erasures() == {7: ahead, 8: (await store.erasures())[8]}
        await store.forget_erasure(7)
        await store.forget_erasure(8)
        assert await store.erasures() == {}
        assert await store.erase(9, 0) == ahead + 1

    async def test_a_commit_is_stored_whole(self, store: Store) -> None:
        claim, _ = await store.claim(0)
        commit = step(claim, b"", b"p1", {"a": b"\x00\xff", "b": b""})
        assert await store.commit(0, commit) == Answer.OK
        stored = await store.read(0)
        assert (stored.position, stored.manifest) == (b"p1", b"manifest of p1")
        assert stored.seen_ms > 1_600_000_000_000
        assert await store.blobs(0, ["b", "x", "a"]) == [b"", None, b"\x00\xff"]
        assert await store.blobs(1, ["a"]) == [None]
        assert await store.all_blobs({1: ["a"], 0: ["b", "x"], 2: []}) == {
            1: [None],
            0: [b"", None],
            2: [],
        }
        assert await store.read_all([1, 0]) == [await store.read(1), stored]
        assert await store.standing([1, 0]) == [(None, b""), (claim, b"p1")]

    async def test_a_commit_deletes_however_many_there_are(self, store: Store) -> None:
        claim, _ = await store.claim(0)
        names = tuple(f"b{i}" for i in range(2500))
        await store.commit(0, step(claim, b"", b"p1", {**dict.fromkeys(names, b"1"), "kept": b"2"}))
        again = step(claim, b"p1", b"p2", delete=names)
        assert await store.commit(0, again) == Answer.OK
        assert await store.commit(0, again) == Answer.ALREADY
        assert await store.blobs(0, [*names, "kept"]) == [*[None] * len(names), b"2"]
        assert await store.sweep(0, claim, {"kept"}) == 0

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

    async def test_the_group_is_set_once_unless_it_is_taken_over(self, store: Store) -> None:
        assert await store.group() is None
        assert await store.set_group("a@x") == "a@x"
        assert await store.set_group("b@x") == await store.group() == "a@x"
        assert await store.set_group("b@x", take_over=True) == await store.group() == "b@x"

    async def test_the_hash_key_is_set_once(self, store: Store) -> None:
        assert await store.hash_key() is None
        keys = [(number, 2**64 - 1 - number) for number in range(20)]
        (found,) = set(await asyncio.gather(*map(store.set_hash_key, keys)))
        assert found in keys
        assert await store.hash_key() == found
        assert await store.set_hash_key((7, 7)) == found

    async def test_reports_come_back(self, store: Store) -> None:
        assert await store.reports() == []
        report = WorkerReport("host:1", owned={2: "owned"}, read_to={"clicks/2": 7})
        report.commit_took(0.003)
        report.commit_took(99.0)
        await store.report(report)
        await store.report(WorkerReport("host:2", problems={0: "no store"}))
        found = {t.worker: t for t in await store.reports()}
        assert found == {
            "host:1": report,
            "host:2": WorkerReport("host:2", problems={0: "no store"}),
        }
        await store.report(WorkerReport("host:2"))
        assert [t.problems for t in await store.reports()] == [{}, {}]
        await store.leave("host:2")
        assert [t.worker for t in await store.reports()] == ["host:1"]

    async def test_a_fit_store_passes_its_check(self, store: Store) -> None:
        await store.check()

    async def test_marks_are_kept_up_to_a_bound(self, store: Store) -> None:
        assert await store.annotations() == {}
        most = limits.MAX_ANNOTATIONS
        for i in (*range(most), most + 1, 5):
            await store.annotate(Annotation(i, f"mark {i}", i + 1 if i % 2 else None))
        found = list((await store.annotations()).values())
        assert len(found) == most
        assert [mark.at_ms for mark in found] == sorted(mark.at_ms for mark in found)
        assert found[-1] == Annotation(
            most + 1, f"mark {most + 1}", most + 2 if most % 2 == 0 else None
        )
        assert Annotation(0, "mark 0") not in found

    async def test_marks_of_the_future_leave_first(self, store: Store) -> None:
        now_ms, most = await store.now_ms(), limits.MAX_ANNOTATIONS
        for i in range(most):
            await store.annotate(Annotation(now_ms + 2 * DAY_MS + i, "wrong"))
        name = await store.annotate(Annotation(now_ms, "deployed"))
        assert (await store.annotations())[name] == Annotation(now_ms, "deployed")
        assert len(await store.annotations()) == most
        assert await store.forget_annotation(name)
        assert not await store.forget_annotation(name)
        assert name not in await store.annotations()
