"""The log of the peers' benchmark, and its right result by plain addition.

Per hundred events: 88 impressions in slates of ten, 8 clicks, 1 conversion and 3 of sessions, of
about 200 bytes. Each carries variant and surface, so that a job may count it without a join, and
clicks name their impression, so that a job may join. Events are in the order of their time.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator

from benchmarks.peers.job import END, FIELDS, PARTITIONS, TOPICS, WINDOW_MS, ends

START_MS = 1_700_000_000_000
EVENTS_PER_SECOND = 500.0
USERS, ITEMS, SLATE = 100_000, 1_000, 10
VARIANTS, SURFACES = ("A", "B"), ("home", "search", "basket", "mail")
CLICKED, CONVERTED, SESSIONS = 8 / 88, 1 / 8, 30 / 88
"""Of an impression, of a click, and of a slate of ten."""
CLICK_MS, CONVERSION_MS = 30_000, 120_000
"""Longest delays: a click after its slate, a conversion after its click."""

Event = tuple[int, str, str, str, bytes]
"""(ts, topic, variant, surface, JSON)."""
Counts = dict[tuple[int, str, str], dict[str, int]]
"""{(end of a window, variant, surface): {field: count}}."""


def generate(events: int, seed: int = 0) -> Iterator[Event]:
    """So many events, and one more of ``END`` in each partition of each topic."""
    ahead: list[tuple[int, int, str, str, str, bytes]] = []
    given = number = 0
    ts = START_MS
    for slate in _slates(random.Random(seed)):
        for at, topic, variant, surface, text in slate:
            number += 1
            heapq.heappush(ahead, (at, number, topic, variant, surface, text))
        ts = slate[0][0]
        while ahead and ahead[0][0] <= ts:
            at, _, topic, variant, surface, text = heapq.heappop(ahead)
            if given == events:
                yield from _endings(at + 2 * WINDOW_MS)
                return
            yield at, topic, variant, surface, text
            given += 1


def _slates(chance: random.Random) -> Iterator[list[Event]]:
    """Each with all that follows it, its first impression first."""
    per_slate = SLATE * (1 + CLICKED * (1 + CONVERTED)) + SESSIONS
    number = 0
    while True:
        number += 1
        ts = START_MS + int(number * per_slate / EVENTS_PER_SECOND * 1000)
        user = chance.randrange(USERS)
        variant, surface = VARIANTS[user % 2], SURFACES[chance.randrange(len(SURFACES))]
        place = f'"user_id":"u{user}","request_id":"r{number}"'
        labels = f'"variant":"{variant}","surface":"{surface}"'

        def event(at: int, kind: str, eid: str, rest: str) -> Event:
            text = f'{{"type":"{kind}","ts":{at},"event_id":"{eid}",{place},{labels}{rest}}}'  # noqa: B023
            return at, f"{kind}s", variant, surface, text.encode()  # noqa: B023

        slate = []
        for position, item in enumerate(chance.sample(range(ITEMS), SLATE), 1):
            shown = f',"item_id":"i{item}","position":{position}'
            score = f',"score":{chance.random():.6f},"propensity":{1 - 0.99 * chance.random():.6f}'
            slate.append(event(ts, "impression", f"e{number}-{position}", shown + score))
            if chance.random() < CLICKED:
                at = ts + 1 + chance.randrange(CLICK_MS)
                dwell = f',"dwell_ms":{chance.randrange(60_000)}'
                slate.append(event(at, "click", f"c{number}-{position}", shown + dwell))
                if chance.random() < CONVERTED:
                    at += 1 + chance.randrange(CONVERSION_MS)
                    value = f',"value":{chance.randrange(1, 10_000) / 100:.2f}'
                    slate.append(event(at, "conversion", f"v{number}-{position}", shown + value))
        if chance.random() < SESSIONS:
            begun = f',"session_id":"s{number}","action":"start"'
            slate.append(event(ts, "session", f"s{number}", begun))
        yield slate


def _endings(ts: int) -> Iterator[Event]:
    for topic in TOPICS:
        left, number = set(range(PARTITIONS)), 0
        while left:
            number += 1
            user = f"end{number}"
            if zlib.crc32(user.encode()) % PARTITIONS not in left:
                continue
            left.remove(zlib.crc32(user.encode()) % PARTITIONS)
            more = ',"session_id":"end","action":"start"' if topic == "sessions" else ""
            yield (
                *(ts, topic, END, END),
                f'{{"type":"{topic[:-1]}","ts":{ts},"event_id":"end-{topic}-{number}",'
                f'"user_id":"{user}","request_id":"r{user}","item_id":"i0","variant":"{END}",'
                f'"surface":"{END}"{more}}}'.encode(),
            )


def expected(events: Iterable[Event]) -> Counts:
    """Counts of all windows of all segments that count something."""
    panes: Counter[tuple[int, str, str, str]] = Counter()
    for ts, topic, variant, surface, _ in events:
        if topic in FIELDS and variant != END:
            panes[ends(ts)[0], variant, surface, topic] += 1
    counts: Counts = {}
    for (pane, variant, surface, topic), count in panes.items():
        for end in ends(pane - 1):
            of = counts.setdefault((end, variant, surface), dict.fromkeys(FIELDS, 0))
            of[topic] += count
    return counts
