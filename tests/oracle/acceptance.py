"""Which records count: each topic-partition's log alone, in offset order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.settings.model import Settings

from .decoding import decode_all
from .parsing import BrokenError
from .shape import ALL_KINDS, KINDS_OF, Event, Place, Record

NEVER = float("-inf")


@dataclass
class Acceptance:
    """The verdict on every record, and the clocks at the end of the log. ``key``: which values are
    kept, and the groups of users, go by hashes under it."""

    key: HashKey = FIXED_KEY
    events: list[Event] = field(default_factory=list)
    rejects: list[tuple[str, int, int, str]] = field(default_factory=list)
    late: list[Place] = field(default_factory=list)
    duplicates: list[Place] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ALL_KINDS, 0))
    ignored: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ALL_KINDS, 0))
    """Records without a value."""
    arrival_ms: dict[tuple[str, int], int] = field(default_factory=dict)

    def stream_time_ms(self) -> int | None:
        """S: the largest min(event_ms, A) accepted, over all partitions."""
        return max((min(e.event_ms, e.arrival_ms) for e in self.events), default=None)

    def join_clock_ms(self, topic: str, partition: int, max_skew_ms: int) -> float:
        """E: the topic's own A, or what the others, all read to their end, lend it."""
        own = self.arrival_ms.get((topic, partition), NEVER)
        others = [
            self.arrival_ms[other, partition] - max_skew_ms
            for other in ALL_KINDS
            if other != topic and (other, partition) in self.arrival_ms
        ]
        return max(own, max(others, default=NEVER))


def accept(
    records: Iterable[Record],
    settings: Settings,
    dead_letters: list[tuple[Record, str]] | None = None,
    key: HashKey = FIXED_KEY,
) -> Acceptance:
    """Judge every record; rejects and late ones are also appended to ``dead_letters``."""
    logs: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in records:
        logs[record.topic, record.partition].append(record)
    verdict = Acceptance(key)
    for log in sorted(logs):
        judge(logs[log], settings, verdict, [] if dead_letters is None else dead_letters)
    return verdict


def judge(
    log: list[Record], settings: Settings, out: Acceptance, dead_letters: list[tuple[Record, str]]
) -> None:
    """One topic-partition from its first record to its last."""
    arrival_ms: int | None = None
    seen = Seen(settings)
    for record in log:
        arrival_ms = record.record_ms if arrival_ms is None else max(arrival_ms, record.record_ms)
        for kind in KINDS_OF[record.topic]:
            out.arrival_ms[kind, record.partition] = arrival_ms
            out.seen[kind] += 1
            out.ignored[kind] += record.raw is None
        if record.raw is None:
            continue
        for found in decode_all(record.topic, record.raw, settings, record.record_ms):
            said = (
                str(found) if isinstance(found, BrokenError) else seen.judge(found[0], arrival_ms)
            )
            if said == "duplicate":
                out.duplicates.append(record.address)
            elif said == "late":
                out.late.append(record.address)
                dead_letters.append((record, "late"))
            elif said is not None and said != "ignored":
                out.rejects.append((*record.address, said))
                dead_letters.append((record, said))
            elif not isinstance(found, BrokenError):
                for line in found:
                    line.partition, line.offset = record.partition, record.offset
                    line.arrival_ms = arrival_ms
                    line.order = seen.order_of(line, arrival_ms) if line.is_refund else None
                order = found[0].order if found else None
                if order is not None and 0 < sum(order.worth_micros) <= -sum(found[0].worth_micros):
                    for line in found:
                        line.refunds_order = True
                out.events += found


@dataclass
class Seen:
    """When which events came, by kind and id."""

    settings: Settings
    first_ms: dict[tuple[Any, ...], int] = field(default_factory=dict)
    orders: dict[tuple[Any, ...], Event] = field(default_factory=dict)

    def judge(self, event: Event, arrival_ms: int) -> str | None:
        """Why an event does not count; None where it does."""
        time = self.settings.time
        if event.event_ms - arrival_ms > time.max_skew_ms:
            return "future"
        if arrival_ms - event.event_ms > time.max_lateness_ms:
            return "late"
        if event.event_id is not None:
            is_order = event.topic == "conversions"
            line = (event.of_item or None) if is_order and not event.is_list else None
            key: tuple[Any, ...] = (event.topic, event.event_id, line)
            if event.is_refund:
                key += event.worth_micros
            ms = time.conversion_dedup_horizon_ms if is_order else time.dedup_horizon_ms
            if key in self.first_ms and arrival_ms - self.first_ms[key] <= ms:
                return "duplicate"
            self.first_ms[key] = arrival_ms
            self.orders[key] = event
        elif event.topic == "impressions" and not event.shown and event.request_id is not None:
            asked = (f"nothing for {event.request_id}", event.join_id or event.user_id, None)
            if arrival_ms - self.first_ms.get(asked, -(10**15)) <= time.dedup_horizon_ms:
                return "duplicate"
            self.first_ms[asked] = arrival_ms
        return None

    def order_of(self, refund: Event, arrival_ms: int) -> Event | None:
        """The order that a line of a refund is of: the row of its item, or one with lines."""
        ms = self.settings.time.conversion_dedup_horizon_ms
        for item in dict.fromkeys((refund.of_item or None, None)):
            key = (refund.topic, refund.event_id, item)
            if refund.event_id is None or key not in self.orders:
                continue
            is_row = item is not None or not self.orders[key].is_list
            if item is None and is_row:
                continue
            if arrival_ms - self.first_ms[key] <= ms:
                return self.orders[key]
        return None
