"""A chunk that takes long is applied in several turns, and comes to what it does in one."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.raw_log import RawLog
from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Batches
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.sources.synthetic import SyntheticTraffic, generate
from streamer.state.partition import Partition
from streamer.state.snapshot import view_of

SETTINGS = parse({})
CATALOGUE = Catalogue(SETTINGS)
LINES = 2_000


def applied(
    left_ms: Callable[[], int] | None,
) -> tuple[Partition, int, dict[str, tuple[int, int, int]]]:
    """The partition, its turns, and the last record of each log."""
    partition = Partition(SETTINGS, CATALOGUE, FIXED_KEY)
    lines = list(generate(SyntheticTraffic(users=50, broken_share=0.02), LINES))
    left: list[Batches] = RawLog().batches(lines)
    turns, last = 0, dict[str, tuple[int, int, int]]()
    while left:
        found = partition.apply(left, left_ms=left_ms)
        left = left[len(left) - found.left :] if found.left else []
        turns += 1
        last |= found.last
    partition.refresh_user_sums()
    return partition, turns, last


def test_turns_change_nothing() -> None:
    (whole, one, last), (parted, many, last_of_parts) = applied(None), applied(lambda: 0)
    assert one == 1
    assert many > LINES / 100
    assert last == last_of_parts
    assert whole.core.counters() == parted.core.counters()
    assert whole.core.state() == parted.core.state()
    ours, theirs = (readout(SETTINGS, CATALOGUE, [view_of(each)]) for each in (whole, parted))
    assert ours.readings == theirs.readings
    assert len(ours.readings) > 100
