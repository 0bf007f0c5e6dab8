"""What readers show of every store: one suite, inherited for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from streamer.query.readings import readout
from streamer.state.acted import Delivery, Told, stored
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from streamer.state.store import Commit, Store, Stored
from tests.support.agreement import (
    SETTINGS,
    by_key,
    differences,
    log_records,
    random_records,
    to_log,
)
from tests.support.engines import chunks_of
from tests.support.journals import commit, start


class ReaderSuite:
    """Reading without owning."""

    async def test_a_reader_shows_whole_commits_and_fetches_what_changed(
        self, store: Store
    ) -> None:
        settings = SETTINGS["defaults"]
        records, expected = random_records(2, "defaults", 600, 2)
        run = await start(store, settings, 2)
        reader = Reader(store)
        asked: list[str] = []
        trips = 0
        original = store.all_blobs

        async def counted(wanted: dict[int, list[str]]) -> dict[int, list[bytes | None]]:
            nonlocal trips
            trips += 1
            asked.extend(name for names in wanted.values() for name in names)
            return await original(wanted)

        store.all_blobs = counted  # type: ignore[method-assign,assignment]
        await reader.refresh()
        assert (reader.views, trips) == ([], 0)
        for chunk in chunks_of(to_log(records), 50, 1):
            run.engines.feed(chunk)
            await commit(store, run, chunk.partition)
            await reader.refresh()
        run.engines.finish()
        before = trips
        for number in range(2):
            await commit(store, run, number)
        await reader.refresh()
        assert trips == before + 1, "partitions were not read together"
        assert len(asked) == len(set(asked)), "a blob was read twice"
        await reader.refresh()
        assert trips == before + 1
        shown = by_key(readout(settings, run.engines.catalogue, reader.views))
        assert not differences(shown, expected)

    async def test_a_reader_retains_its_copy_when_a_commit_number_falls(self, store: Store) -> None:
        records = log_records(2, "defaults", 400, 1)
        log = to_log(records)
        run = await start(store, SETTINGS["defaults"], 1)
        chunks = list(chunks_of(log, 40, 1))
        reader = Reader(store)
        snapshots = []
        for chunk in chunks[:-1]:
            run.engines.feed(chunk)
            await commit(store, run, 0)
            snapshots.append(await store.read(0))
        await reader.refresh()
        shown = reader.views[0].header
        # The store is restored from an old copy: the state starts again, and is read past.
        empty = Commit((await store.claim(0))[0], snapshots[-1].position, b"", b"")
        await store.commit(0, empty)
        again = await start(store, SETTINGS["defaults"], 1)
        assert again.journals[0].commit_number == 0
        for chunk in chunks:
            again.engines.feed(chunk)
            await commit(store, again, 0)
            await reader.refresh()
            header = reader.views[0].header
            offsets = {kind: topic.next_offset for kind, topic in header.topics.items()}
            assert all(offsets[kind] >= t.next_offset for kind, t in shown.topics.items())
        await reader.refresh()
        assert reader.views[0].header.commit == again.journals[0].commit_number

    async def test_what_is_acted_on_is_an_update_and_a_look_that_finds_nothing_is_none(
        self, store: Store
    ) -> None:
        reader = Reader(store)
        await store.lead("w", 0, stored(looked_ms=5))
        await reader.refresh()
        assert (reader.updates, reader.acted.looked_ms) == (0, 5)
        sent = Delivery("ranker/1", "hook", "example.org")
        for count, each in enumerate((sent, replace(sent, state=Told.DELIVERED)), start=1):
            await store.lead("w", 0, stored(deliveries=[each], looked_ms=5 + count))
            await reader.refresh()
            assert (reader.updates, reader.acted.deliveries) == (count, {each.key: each})

    async def test_a_reader_forgets_partitions_that_a_new_state_has_not(self, store: Store) -> None:
        run = await start(store, SETTINGS["defaults"], 2)
        records = log_records(2, "defaults", 200, 2)
        for chunk in chunks_of(to_log(records), 50, 1):
            run.engines.feed(chunk)
        for number in range(2):
            await commit(store, run, number)
        reader = Reader(store)
        await reader.refresh()
        assert (len(reader.views), reader.behind) == (2, [])
        reader.store = MemoryStore()  # another one, as after a wipe
        await start(reader.store, SETTINGS["defaults"], 1)
        await reader.refresh()
        assert (len(reader.views), reader.behind) == (1, [0])

    async def test_a_state_from_before_a_log_was_recreated_is_not_shown(self, store: Store) -> None:
        run = await start(store, SETTINGS["defaults"], 1)
        records = log_records(2, "defaults", 200, 1)
        for chunk in chunks_of(to_log(records), 50, 1):
            run.engines.feed(chunk)
        await commit(store, run, 0)
        before = await store.read(0)
        run.engines.partitions[0].logs["impressions"].restart(3)
        await commit(store, run, 0)
        reader = Reader(store)
        await reader.refresh()
        claim, now = await store.claim(0)
        await store.commit(0, Commit(claim, now.position, b"rolled back", before.manifest))
        await reader.refresh()
        assert reader.behind == [0]
        assert reader.views[0].header.topics["impressions"].restarts == 1

    async def test_a_partition_that_is_committed_meanwhile_is_read_again(
        self, store: Store
    ) -> None:
        run = await start(store, SETTINGS["defaults"], 2)
        records = log_records(3, "defaults", 400, 2)
        chunks = list(chunks_of(to_log(records), 50, 1))
        late = chunks[len(chunks) // 2 :]
        assert {chunk.partition for chunk in late} == {0}
        for chunk in chunks[: len(chunks) // 2]:
            run.engines.feed(chunk)
        for number in range(2):
            await commit(store, run, number)
        original = store.read_all
        asked: list[list[int]] = []

        async def overtaken(numbers: Sequence[int]) -> list[Stored]:
            """Manifests that are out of date before their blobs are read, at first."""
            asked.append(list(numbers))
            found = await original(numbers)
            if len(asked) == 1:
                for chunk in late:
                    run.engines.feed(chunk)
                await commit(store, run, 0)
            return found

        store.read_all = overtaken  # type: ignore[method-assign,assignment]
        reader = Reader(store)
        await reader.refresh()
        assert asked == [[0, 1], [0]]
        expected = [decode((await store.read(n)).manifest) for n in range(2)]
        assert [view.header.commit for view in reader.views] == [m.commit for m in expected]
