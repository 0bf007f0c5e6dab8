"""Random sessions, and what clicks and sessions report of the time on an item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from streamer.settings.model import Settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_DWELL_MS = 86_400_000
CLASS_ENDS_MS = (0, 1000, 1001, 60_000, 1_800_000, 1_800_001)

Payload = dict[str, Any]
Timed = tuple[int, Payload, float | None]
"""(event_ms, payload, milliseconds until it reaches the log, None = as other events)."""


class Visits:
    """Sessions of users; ``fresh`` makes ids, ``corrected`` a few dimensions of their own."""

    def __init__(
        self,
        random: Random,
        settings: Settings,
        items: list[str],
        fresh: Callable[[str], str],
        corrected: Callable[[], Payload],
    ) -> None:
        self.random = random
        self.items = items
        self.fresh = fresh
        self.corrected = corrected
        self.gap_ms = settings.attribution.session_gap_ms
        self.lateness_ms = settings.time.max_lateness_ms
        self.ids: dict[str, list[str]] = defaultdict(list)

    def session(self, at_ms: int, user: str, dims: Payload) -> Iterator[Timed]:
        """Events of one session_id: mostly one visit, sometimes several, `end`s anywhere."""
        r = self.random
        base = {"type": "session", "user_id": user, "session_id": self.session_id(user)}
        if r.random() < 0.15:
            yield from self.bridged(at_ms, base, dims)
        yield self.event(at_ms, base, dims, "start" if r.random() < 0.7 else "view")
        for _ in range(r.choice((0, 0, 1, 1, 2, 3, 6))):
            at_ms += self.step_ms()
            action = r.choice(("view", "view", "view", "view", "start", "dwell", "end"))
            yield self.event(at_ms, base, dims, action)
        if r.random() < 0.5:
            at_ms += self.step_ms()
            yield self.event(at_ms, base, dims, "end")
            if r.random() < 0.3:  # something after the end, or in the same millisecond
                later_ms = at_ms + r.choice((0, 0, 1, self.step_ms()))
                yield self.event(later_ms, base, dims, r.choice(("view", "dwell", "end")))

    def bridged(self, at_ms: int, base: Payload, dims: Payload) -> Iterator[Timed]:
        """Two visits that are one as soon as an event between them reaches the log, afterwards."""
        r, gap_ms = self.random, self.gap_ms
        part_ms = min(gap_ms, self.lateness_ms) // 4
        between_ms = at_ms + gap_ms - r.randint(1, part_ms)
        second_ms = at_ms + gap_ms + r.randint(0, part_ms)
        yield self.event(at_ms, base, dims, r.choice(("view", "end")))
        yield self.event(second_ms, base, dims, r.choice(("view", "start")))
        event_ms, payload, _ = self.event(between_ms, base, dims, r.choice(("view", "end")))
        yield event_ms, payload, 2.5 * part_ms

    def event(self, at_ms: int, base: Payload, dims: Payload, action: str) -> Timed:
        r = self.random
        own = dims if r.random() < 0.7 else r.choice(({}, self.corrected()))
        payload = base | own | {"action": action}
        if action == "dwell":
            payload |= {"item_id": r.choice(self.items)} | self.dwell(at_ms, self.length_ms())
        return at_ms, payload, None

    def session_id(self, user: str) -> str:
        """A new one, or one that the user had at another time; others may have the same."""
        r, known = self.random, self.ids[user]
        if known and r.random() < 0.3:
            return r.choice(known)
        known.append(f"s{r.randint(0, 9)}" if r.random() < 0.1 else self.fresh("s"))
        return known[-1]

    def step_ms(self) -> int:
        r, gap_ms = self.random, self.gap_ms
        if r.random() < 0.25:
            return r.choice((0, 1, gap_ms - 1, gap_ms, gap_ms + 1))
        return int(r.random() * 0.3 * gap_ms)

    # Dwell ------------------------------------------------------------------------------------

    def length_ms(self) -> int | None:
        """Some time on an item; None = it is not reported."""
        r = self.random
        form = r.random()
        if form < 0.25:
            return None
        if form < 0.35:
            return r.choice((*CLASS_ENDS_MS, self.gap_ms - 1, self.gap_ms, 2 * self.gap_ms))
        return int(r.lognormvariate(9, 2)) % LONGEST_DWELL_MS

    def dwell(self, at_ms: int, length_ms: int | None) -> Payload:
        """The fields that say so, in one of the forms."""
        if length_ms is None:
            return {}
        start_ms = at_ms - length_ms
        forms: tuple[Payload, ...] = (
            {"dwell_ms": length_ms},
            {"start_ts": at_ms, "end_ts": at_ms + length_ms},
            {"start_ts": time_text(start_ms), "end_ts": at_ms},
            {"dwell_ms": length_ms, "start_ts": at_ms, "end_ts": at_ms + 7},
        )
        return self.random.choice(forms)

    def reports(self, click_ms: int, click: Payload, length_ms: int | None) -> Iterator[Timed]:
        """Sessions that report a clicked item, too: as much, less or more, soon or far away."""
        r, gap_ms = self.random, self.gap_ms
        known_ms = length_ms or 0
        for _ in range(r.choice((0, 0, 1, 1, 2, 3))):
            other_ms = r.choice((known_ms, known_ms - 1, known_ms + 1, self.length_ms() or 0))
            other_ms = min(max(other_ms, 0), LONGEST_DWELL_MS)
            if r.random() < 0.3:  # at the edge of another viewing, before or after
                after_ms = known_ms + gap_ms + min(other_ms, gap_ms)
                before_ms = min(known_ms, gap_ms) + gap_ms + other_ms
                at_ms = click_ms + r.choice((after_ms, -before_ms)) + r.randint(-1, 1)
                if r.random() < 0.3:  # reaching the log later: makes one viewing of the two
                    middle_ms = (click_ms + at_ms) // 2
                    yield middle_ms, self.report(middle_ms, click, 0), float(abs(at_ms - middle_ms))
            else:
                at_ms = click_ms + r.choice((0, 0, known_ms, 1000, -1000))
            yield at_ms, self.report(at_ms, click, other_ms), None

    def report(self, at_ms: int, click: Payload, dwell_ms: int) -> Payload:
        """What a session says of a clicked item; sometimes of another request, or nothing."""
        r = self.random
        payload = {
            "type": "session",
            "user_id": click["user_id"],
            "session_id": self.session_id(click["user_id"]),
            "item_id": click["item_id"],
            "action": "dwell" if r.random() < 0.85 else r.choice(("view", "start", "end")),
            **self.corrected(),
            **self.dwell(at_ms, dwell_ms if r.random() < 0.9 else None),
        }
        if "request_id" in click and r.random() < 0.8:
            payload["request_id"] = click["request_id"]
        elif r.random() < 0.2:
            payload["request_id"] = self.fresh("elsewhere")
        return payload


def time_text(time_ms: int, zone: str = "Z") -> str:
    """RFC 3339 text of epoch milliseconds."""
    moment = EPOCH + timedelta(milliseconds=time_ms)
    if zone[0] in "+-":
        minutes = int(zone[1:3]) * 60 + int(zone[4:])
        moment += timedelta(minutes=minutes if zone[0] == "+" else -minutes)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}{zone}"
