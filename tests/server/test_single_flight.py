"""Many who ask at the same time share one run, and none gets an older result than it asked for."""

from __future__ import annotations

import asyncio

import pytest

from streamer.server.exporter import SingleFlight


class Work:
    """Counts its runs; the result of a run is its number."""

    def __init__(self) -> None:
        self.runs = 0
        self.at_once = 0
        self.most_at_once = 0

    async def run(self) -> int:
        self.runs += 1
        number = self.runs
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return number


async def test_who_asks_while_it_runs_shares_the_next_run() -> None:
    turns, work = SingleFlight(), Work()
    first = asyncio.create_task(turns.share("x", work.run))
    await asyncio.sleep(0.005)  # the first run is under way
    later = await asyncio.gather(*(turns.share("x", work.run) for _ in range(300)))
    assert (await first, set(later), work.runs) == (1, {2}, 2)


async def test_kinds_take_turns() -> None:
    turns, work = SingleFlight(), Work()
    asked = [turns.share(kind, work.run) for kind in "abcabc"]
    assert sorted(await asyncio.gather(*asked)) == [1, 1, 2, 2, 3, 3]
    assert work.most_at_once == 1


async def test_who_leaves_takes_nothing_away() -> None:
    turns, work = SingleFlight(), Work()
    left = asyncio.create_task(turns.share("x", work.run))
    stays = asyncio.create_task(turns.share("x", work.run))
    await asyncio.sleep(0)
    left.cancel()
    assert await stays == 1
    assert left.cancelled()


async def test_a_failure_is_everyones_and_the_next_run_is_another() -> None:
    turns, work = SingleFlight(), Work()

    async def fail() -> int:
        raise ValueError("once")

    found = await asyncio.gather(
        *(turns.share("x", fail) for _ in range(3)), return_exceptions=True
    )
    assert [str(each) for each in found] == ["once"] * 3
    with pytest.raises(ValueError, match="once"):
        await turns.share("x", fail)
    assert await turns.share("x", work.run) == 1
