"""Where a log goes on after it was cut, compacted or recreated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.kafka.fingerprints import Fingerprint, Resumption, fingerprint_of, resume

TP = TopicPartition("clicks", 3)


class Logs:
    """One log: its start and its records, by offset."""

    def __init__(self, start: int, values: Mapping[int, bytes]) -> None:
        self.start = start
        self.values = {n: v for n, v in values.items() if n >= start}
        self.asked: list[int] = []

    async def bounds(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        end = max(self.values, default=self.start - 1) + 1
        return dict.fromkeys(tps, (self.start, end))

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Fingerprint]:
        self.asked += offsets.values()
        after = [n for n in sorted(self.values) if n >= offsets[TP]]
        return {TP: fingerprint_of(after[0], after[0], self.values[after[0]])} if after else {}


def numbered(first: int, end: int, what: bytes = b"old") -> dict[int, bytes]:
    return {n: what + b"%d" % n for n in range(first, end)}


OLD = numbered(0, 100)
FINGERPRINTES = [fingerprint_of(n, n, OLD[n]) for n in (9, 60, 90, 97, 99)]


@pytest.mark.parametrize(
    ("start", "values", "expected"),
    [
        pytest.param(0, OLD, Resumption(100), id="nothing happened"),
        pytest.param(0, OLD | numbered(100, 120), Resumption(100), id="it went on"),
        pytest.param(95, OLD, Resumption(100), id="cut before us"),
        pytest.param(100, {}, Resumption(100), id="all retained away, nothing lost"),
        pytest.param(130, numbered(130, 150), Resumption(130, (100, 129)), id="cut beyond us"),
        pytest.param(0, {}, Resumption(0, is_other_log=True), id="recreated, empty"),
        pytest.param(0, numbered(0, 50, b"new"), Resumption(0, None, True), id="recreated, short"),
        pytest.param(
            0, numbered(0, 500, b"new"), Resumption(0, None, True), id="recreated, longer"
        ),
        pytest.param(0, numbered(0, 70), Resumption(61, None, True), id="its tail is gone"),
        pytest.param(
            0,
            numbered(0, 92) | numbered(92, 200, b"new"),
            Resumption(91, None, True),
            id="its tail was replaced",
        ),
        pytest.param(
            95,
            numbered(0, 98) | numbered(98, 200, b"new"),
            Resumption(98, None, True),
            id="cut, and its tail replaced",
        ),
        pytest.param(
            0,
            {n: v for n, v in OLD.items() if n % 2} | numbered(100, 110),
            Resumption(100),
            id="compacted",
        ),
        pytest.param(
            0, numbered(0, 9) | numbered(100, 110), Resumption(100), id="all fingerprints compacted"
        ),
    ],
)
async def test_where_it_goes_on(start: int, values: dict[int, bytes], expected: Resumption) -> None:
    found = await resume(Logs(start, values), {TP: 100}, {TP: FINGERPRINTES})
    assert found == {TP: expected}


async def test_a_log_without_the_markers_behind_its_last_record_is_another_one() -> None:
    found = await resume(Logs(0, OLD), {TP: 103}, {TP: FINGERPRINTES})
    assert found == {TP: Resumption(100, None, True)}


async def test_an_unchanged_log_is_asked_for_one_record() -> None:
    logs = Logs(0, OLD)
    await resume(logs, {TP: 100}, {TP: FINGERPRINTES})
    assert logs.asked == [99]


async def test_a_log_that_both_ends_and_goes_on_is_asked_again() -> None:
    """The new leader of a partition, which does not know yet how far the log is."""
    logs = Logs(0, OLD)

    async def nothing(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Fingerprint]:
        return {}

    logs.records_at = nothing  # type: ignore[method-assign]
    with pytest.raises(BrokerError, match="no record at or after offset 99"):
        await resume(logs, {TP: 100}, {TP: FINGERPRINTES})


async def test_a_log_without_fingerprints_goes_by_its_bounds() -> None:
    assert await resume(Logs(0, {}), {TP: 7}, {TP: []}) == {TP: Resumption(0, None, True)}
    assert await resume(Logs(7, {}), {TP: 7}, {TP: []}) == {TP: Resumption(7)}
