"""What an event costs where somebody means harm, against the usual traffic, in this process.

python -m benchmarks.hostile

Each log goes into a partition of its own, in turns with the usual one; what was counted is checked.
Prints one JSON object: nanoseconds of processor time an event, and the ratio to the usual log.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from benchmarks.endless import Log
from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Settings
from streamer.sources.synthetic import KindLine, SyntheticTraffic, generate
from streamer.state.partition import Partition

EVENTS = 300_000
ROUNDS = 3
START_MS = 1_700_000_000_000
ROBOT_EVENTS = 100_000
SLATE = 1000
CHUNK = 20_000


def usual() -> Iterator[KindLine]:
    """The traffic of the other benchmarks."""
    yield from generate(SyntheticTraffic(users=100_000, events_per_second=5000.0), EVENTS)


def event(kind: str, at_ms: int, user: str, item: str, more: str = "") -> KindLine:
    """One line; ``more``: further fields as JSON, with a leading comma."""
    text = f'{{"ts":{at_ms},"event_id":"{kind}{user}{item}{at_ms}","user_id":"{user}"'
    return kind, f'{text},"item_id":"{item}"{more}}}'.encode()


def robot() -> Iterator[KindLine]:
    """The usual traffic, and in it a user who sees 100,000 items and clicks without requests."""
    other = usual()
    for n in range(ROBOT_EVENTS):
        yield from islice(other, 2)
        at_ms = START_MS + n
        yield event("impressions", at_ms, "robot", f"i{n}")
        if n % 10 == 0:
            yield event("clicks", at_ms, "robot", f"i{n // 2}")


def wide_slates() -> Iterator[KindLine]:
    """Slates of 1,000 items, scored, of which some ten are clicked."""
    rates = (("A", 0.010), ("B", 0.012))
    traffic = SyntheticTraffic(users=100_000, items=10_000, slate=SLATE, variants=rates)
    yield from generate(traffic, EVENTS)


def clicked_slates() -> Iterator[KindLine]:
    """Slates of 1,000 items, scored; 499 of each are clicked in turn."""
    for slate in range(EVENTS // 1500):
        at_ms, request = START_MS + 100 * slate, f',"request_id":"r{slate}"'
        for n in range(SLATE):
            more = f'{request},"position":{n + 1},"score":{(7919 * n) % 1000 / 1000}'
            yield event("impressions", at_ms, f"u{slate}", f"i{n}", more)
        for n in range(499):
            yield event("clicks", at_ms + n, f"u{slate}", f"i{2 * n}", request)


def open_slates() -> Iterator[KindLine]:
    """200 slates of 1,000 items stay open; then each is clicked once, and again."""
    for slate in range(200):
        request = f',"request_id":"r{slate}"'
        for n in range(SLATE):
            more = f'{request},"position":{n + 1},"score":{(7919 * n) % 1000 / 1000}'
            yield event("impressions", START_MS + slate, f"u{slate}", f"i{n}", more)
    for click in range(100):
        for slate in range(200):
            request = f',"request_id":"r{slate}"'
            yield event("clicks", START_MS + 1000 + click, f"u{slate}", f"i{9 * click}", request)


def new_values() -> Iterator[KindLine]:
    """A new value of a dimension in every event."""
    for n, (kind, raw) in enumerate(usual()):
        yield kind, raw[:-1] + b',"surface":"s%d"}' % n


LOGS: dict[str, Callable[[], Iterator[KindLine]]] = {
    "robot": robot,
    "slates of 1,000": wide_slates,
    "slates of 1,000, 499 clicked": clicked_slates,
    "200 open slates of 1,000": open_slates,
    "new values": new_values,
}


@dataclass
class Fed:
    """What feeding a log cost."""

    events: int
    nanoseconds: float


def feed(records: list[Records]) -> Fed:
    """Into an empty partition."""
    settings = Settings()
    partition = Partition(settings, Catalogue(settings), FIXED_KEY)
    started, rows = time.process_time_ns(), 0
    rest = 0
    for some in records:
        began = time.process_time_ns()
        rows += partition.apply([some]).rows
        rest -= time.process_time_ns() - began
        if rest <= 0:  # as a worker that has to catch up does
            began = time.process_time_ns()
            partition.refresh_user_sums()
            rest = limits.USER_REFRESH_PARTS * (time.process_time_ns() - began)
    partition.apply((), at_end=KINDS)
    spent = time.process_time_ns() - started
    logs = [log["counters"] for log in partition.core.state()["logs"].values()]
    counted = sum(t["accepted"] + t["late"] + t["duplicates"] for t in logs)
    assert counted == rows, f"{counted} of {rows} events were counted"
    return Fed(rows, spent / rows)


def records_of(lines: Iterator[KindLine]) -> list[Records]:
    """Chunks of each topic, in the order of the log."""
    log, found = Log(), []
    while block := list(islice(lines, CHUNK)):
        found += log.records(block)
    return found


def main() -> None:
    assert limits.MAX_ITEMS == SLATE
    clean = records_of(usual())
    result: dict[str, dict[str, float]] = {}
    for name, lines in LOGS.items():
        records = records_of(lines())
        rounds = [(feed(records), feed(clean)) for _ in range(ROUNDS)]
        result[name] = {
            "events": rounds[0][0].events,
            "ns": round(statistics.median(fed.nanoseconds for fed, _ in rounds)),
            "usual_ns": round(statistics.median(fed.nanoseconds for _, fed in rounds)),
            "ratio": round(statistics.median(a.nanoseconds / b.nanoseconds for a, b in rounds), 2),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
