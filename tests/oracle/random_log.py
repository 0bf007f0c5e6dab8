"""Random logs with every complication, for comparing the engine with the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

from streamer.settings.model import Dimension, Settings

from .broken_lines import broken_line
from .random_fields import own_fields
from .random_forms import Forms
from .random_slates import NEVER_SHOWN, Slates
from .random_visits import Payload, Timed, Visits, time_text
from .shape import LINE_TYPES

START_MS = 1_700_000_000_000
FAR_MS = 3_000_000_000_000
"""Later than any wall clock of these tests: the year 2065."""
UNCONFIGURED = ("share", "skip")
RATINGS = (1, 2, 3, 4, 5, 4.5, 0, -100, 100.0, 0.3, 1 / 3, 2e-6, -2.5)


def random_log(seed: int, settings: Settings, n: int, start_ms: int = START_MS) -> list[bytes]:
    """``n`` NDJSON lines (no newlines), in log order; the same for the same arguments.

    Times are well in the past. Conversions name no request that is used again when its items can be
    more than repeats, so that what is joined by request stays final.
    """
    return _Log(seed, settings, start_ms).lines(n)


class _Log:
    def __init__(self, seed: int, settings: Settings, start_ms: int) -> None:
        self.start_ms = start_ms
        self.random = random = Random(seed)
        self.of_empty, self.of_refunds = Random(seed), Random(seed)
        self.of_ratings = Random(seed)
        self.settings = settings
        self.users = [f"u{i}" for i in range(random.choice((4, 15, 60)))] + ["Zoë ✓"]
        self.items = [f"i{i}" for i in range(random.choice((3, 8, 25)))]
        lateness_ms = settings.time.max_lateness_ms
        self.span_ms = random.choice((2, 8, 30)) * lateness_ms
        self.kinds = [k for k in settings.metrics.feedback if k not in ("click", "conversion")]
        self.pools = {d.name: _pool(d) for d in settings.dimensions}
        self.serial = 0
        self.forms = Forms(seed, settings, self.items)
        self.slates = Slates(random, settings, self.items)
        self.visits = Visits(random, settings, self.items, self.fresh, self.corrected)
        self.tail = random.choice((0.0, 0.0, 0.05))
        self.timed: list[tuple[float, int, Payload | bytes]] = []

    def lines(self, n: int) -> list[bytes]:
        """Episodes until there are enough lines, sorted by the time they reach the log.

        What would reach it after the span is left out, mostly, so that the last windows are full.
        """
        while len(self.timed) < n:
            self.episode(self.start_ms + int(self.random.random() * self.span_ms))
        self.timed.sort(key=lambda entry: entry[:2])
        running_ms = self.start_ms
        lines = []
        for _, _, payload in self.timed[:n]:
            if isinstance(payload, bytes):
                lines.append(payload)
                continue
            moves = payload["type"] != "impression" and payload["ts"] < FAR_MS
            if moves and self.random.random() < 0.004:  # exactly at the bound of late, or beyond
                late_ms = self.settings.time.max_lateness_ms + self.random.choice((-1, 0, 1))
                payload["ts"] = running_ms - late_ms
            if payload["ts"] < FAR_MS:
                running_ms = max(running_ms, payload["ts"])
            lines.append(self.encode(payload))
        return lines

    # One user's visit -------------------------------------------------------------------------

    def episode(self, at_ms: int) -> None:
        """A slate, perhaps shown again, feedback, conversions, a session, noise."""
        r = self.random
        if r.random() < 0.5:
            at_ms -= at_ms % 1000  # equal times happen
        user = self.forms.user(r.choice(self.users))
        dims = {name: self.pick(name) for name in self.pools if r.random() < 0.85}
        items = r.sample(self.items, min(len(self.items), r.choice((1, 2, 5, 12))))
        request = None if r.random() < 0.25 else self.fresh("r")
        is_reused = request is not None and r.random() < 0.1
        self.show(at_ms, user, request, items, dims)
        if self.of_empty.random() < 0.1:
            self.find_nothing(at_ms, user, request, dims)
        if r.random() < 0.25:  # the same again, soon: repeats, or new rows without a request
            again = request if r.random() < 0.7 else None
            some = items[: r.randint(1, 3)]
            if r.random() < 0.4:  # and one that may be new to the slate
                some = list(dict.fromkeys([*some, r.choice(self.items)]))
            self.show(self.later(at_ms, 0.9), user, again, some, dims)
        for item in items:
            if r.random() < 0.35:
                self.respond(at_ms, user, request, item, is_named=not is_reused)
        if r.random() < 0.2:
            ghost = self.fresh("ghost") if request is None or r.random() < 0.7 else request
            self.respond(at_ms, user, ghost, r.choice([*self.items, NEVER_SHOWN]), is_named=False)
        if is_reused:
            self.reuse(at_ms, user, request, items, dims)
        if r.random() < 0.2:
            self.elsewhere(self.later(at_ms, 0.9), user, items[: r.randint(1, 3)])
        if r.random() < 0.4:
            self.visit(self.visits.session(at_ms, user, dims))
        if r.random() < 0.5:
            self.add(at_ms, broken_line(r, self.settings, user, at_ms, self.fresh("b")))

    def show(
        self, at_ms: int, user: str, request: str | None, items: list[str], dims: Payload
    ) -> None:
        r = self.random
        base = {"type": "impression", "user_id": user, **dims}
        if request is not None:
            base["request_id"] = request
        form = r.random()
        if form >= 0.45:
            for member_ms, fields, delay_ms in self.slates.members(at_ms, items):
                self.event(member_ms, base | fields, delay_ms)
            return
        shown = self.slates.elements(items)
        if r.random() < 0.15:  # twice in one list
            shown.append({**shown[0], "score": r.random()})
        self.event(at_ms, base | self.slates.probes(items) | {"items": shown})

    def find_nothing(self, at_ms: int, user: str, request: str | None, dims: Payload) -> None:
        """Empty slates, of the same request or of their own."""
        r = self.of_empty
        base = {"type": "impression", "user_id": user, "items": [], **dims}
        named = {"request_id": r.choice((request, f"q{at_ms % 20}"))} if r.random() < 0.7 else {}
        for _ in range(r.choice((1, 1, 2))):
            at_ms += int(r.random() * self.settings.time.max_lateness_ms)
            own = {"event_id": f"e{r.randint(0, 9)}"} if r.random() < 0.2 else {}
            self.add(at_ms, base | named | own | {"ts": at_ms})

    def reuse(
        self, at_ms: int, user: str, request: str | None, items: list[str], dims: Payload
    ) -> None:
        """The request shows some of its items again, and others, long after."""
        r = self.random
        again_ms = self.slates.again_ms(at_ms)
        others = r.sample(self.items, min(len(self.items), 3))
        items = list(dict.fromkeys([*items[: r.randint(0, 3)], *others]))
        self.show(again_ms, user, request, items, dims)
        for item in items:
            if r.random() < 0.35:
                self.respond(again_ms, user, request, item, is_named=False)

    def respond(
        self, at_ms: int, user: str, request: str | None, item: str, is_named: bool = True
    ) -> None:
        """Feedback on one item; then perhaps more, and conversions, which can name the request."""
        r = self.random
        horizon_ms = self.settings.attribution.click_ms
        gap_ms = r.choice((0, 1, -1, horizon_ms, horizon_ms + 1, None, None, None, None, None))
        time_ms = self.later(at_ms, 1.2) if gap_ms is None else at_ms + gap_ms
        base: Payload = {"user_id": user, "item_id": item} | self.corrected()
        if request is not None and r.random() < 0.55:
            base["request_id"] = request
        for _ in range(r.choice((1, 1, 1, 2, 3))):
            length_ms = self.visits.length_ms()
            click = base | {"type": "click"} | self.visits.dwell(time_ms, length_ms)
            kind = r.choice((None, "click", *self.kinds, *self.kinds, r.choice(UNCONFIGURED)))
            if kind is not None:
                click["feedback"] = kind
            if r.random() < 0.15:
                click["position"] = r.randint(1, 60)
            if self.of_ratings.random() < 0.4:
                click["rating"] = self.of_ratings.choice(RATINGS)
            self.event(time_ms, click)
            if r.random() < 0.4:
                self.visit(self.visits.reports(time_ms, click, length_ms))
            time_ms = self.later(time_ms, 0.3)
        for _ in range(r.choice((0, 0, 0, 1, 2))):
            span_ms = r.choice((horizon_ms, self.settings.attribution.conversion_ms * 1.1))
            when_ms = at_ms + int(r.random() * span_ms)
            conversion = base | {"type": "conversion"} | self.corrected()
            if not is_named:
                conversion.pop("request_id", None)
            if r.random() < 0.8:
                conversion["value"] = r.choice(
                    (0, 1e12, 19.99, 0.0000005, round(r.random() * 99, 6))
                )
            order_id = self.event(when_ms, conversion)
            if self.of_refunds.random() < 0.3:
                self.refund(when_ms, conversion, order_id)

    def refund(self, at_ms: int, conversion: Payload, order_id: str | None) -> None:
        """It gives something of a conversion back, or all; of another order, of none, or too late
        to join what that joined."""
        r = self.of_refunds
        for _ in range(r.choice((1, 1, 2))):
            horizon_ms = self.settings.attribution.conversion_ms
            at_ms += int(r.random() * r.choice((0.01, 1)) * horizon_ms)
            paid = conversion.get("value", 5)
            refund = {**conversion, "ts": at_ms, "value": r.choice((-0.01, -5, -paid, -1e9))}
            if r.random() < 0.5:
                refund |= {"type": "refund", "value": r.choice((7, -paid, 0, 1e9, None))}
                if r.random() < 0.3:
                    del refund["item_id"]
            if r.random() < 0.2:
                refund.pop("request_id", None)
            if r.random() < 0.8:
                refund["event_id"] = order_id or f"order {at_ms}"
            self.add(at_ms + r.random() * 1000, refund)

    def elsewhere(self, at_ms: int, user: str, items: list[str]) -> None:
        """The same items for the same user in another segment, in a request of its own."""
        r = self.random
        request = self.fresh("r")
        dims = {name: self.pick(name) for name in self.pools}
        self.show(at_ms, user, request, items, dims)
        for item in r.sample(items, r.randint(0, len(items))):
            self.respond(at_ms, user, request, item)

    def visit(self, timed: Iterable[Timed]) -> None:
        for at_ms, payload, delay_ms in timed:
            self.event(at_ms, payload, delay_ms)

    # Pieces -----------------------------------------------------------------------------------

    def pick(self, name: str) -> Any:
        named, pool = self.pools[name]
        value = self.random.choice(named if self.random.random() < 0.7 else pool)
        return self.forms.value(value)

    def corrected(self) -> Payload:
        """Some dimensions of feedback: missing, said to be unknown, its own, or all its own."""
        r = self.random
        share = r.choice((0.0, 0.0, 0.3, 1.0))
        return {
            name: "unknown" if r.random() < 0.1 else self.pick(name)
            for name in self.pools
            if r.random() < share
        }

    def fresh(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def later(self, at_ms: int, share: float) -> int:
        """Up to a share of the click horizon later."""
        return at_ms + int(self.random.random() * share * self.settings.attribution.click_ms)

    def event(self, at_ms: int, payload: Payload, wanted_ms: float | None = None) -> str | None:
        """File one event, with its delay (``wanted_ms``, if given), its id, perhaps copies; the
        id."""
        r = self.random
        time = self.settings.time
        kind = LINE_TYPES[payload["type"]]
        payload = {**payload, "ts": at_ms, **own_fields(r, self.settings, kind, 0.6)}
        share = r.random()
        delay_ms = 0.0
        if share < 0.25:
            delay_ms = r.random() * min(600_000, time.max_lateness_ms)  # minutes
        elif share < 0.27:
            delay_ms = r.random() * time.max_lateness_ms * 1.5  # late, many of them
        delay_ms = delay_ms if wanted_ms is None else wanted_ms
        if r.random() < 0.004:
            payload["ts"] = FAR_MS + at_ms - self.start_ms
        if r.random() < 0.5:
            payload["event_id"] = self.fresh("e") if r.random() < 0.9 else f"e{r.randint(0, 9)}"
        if r.random() < 0.02:
            payload["more"] = {"of": [None, True, {"it": "\u00e9\n"}], "position": "x"}
        self.add(at_ms + delay_ms, payload)
        if "event_id" in payload and r.random() < 0.06:
            copy = payload if r.random() < 0.8 else {**payload, "user_id": r.choice(self.users)}
            gap_ms = r.choice((0.0, 1.0, 0.9, 1.3)) * time.dedup_horizon_ms * r.random()
            fresh_time = gap_ms > time.max_lateness_ms / 2 and payload["type"] == "click"
            self.add(
                at_ms + delay_ms + gap_ms,
                {**copy, "ts": int(at_ms + gap_ms)} if fresh_time else dict(copy),
            )
        return payload.get("event_id")

    def add(self, arrival_ms: float, payload: Payload | bytes) -> None:
        if arrival_ms > self.start_ms + self.span_ms and self.random.random() >= self.tail:
            return
        self.timed.append((arrival_ms, len(self.timed), payload))

    def encode(self, payload: Payload) -> bytes:
        """The line: sometimes RFC 3339 times, spaces, escapes; names as the settings map them."""
        r = self.random
        is_in_time = payload["ts"] < FAR_MS
        payload = self.forms.event(payload, is_in_time)
        if r.random() < 0.1 and isinstance(payload["ts"], int) and is_in_time:
            zone = r.choice(("Z", "+00:00", "+05:30", "-03:00"))
            payload["ts"] = self.forms.shorter(time_text(payload["ts"], zone))
        return encode_line(payload, self.settings, r)


def encode_line(payload: Payload, settings: Settings, random: Random) -> bytes:
    """JSON of a payload, fields renamed as ``[events.fields]`` says."""
    names = settings.events.fields
    renamed = {names.get(name, name): value for name, value in payload.items()}
    if isinstance(payload.get("items"), list):
        renamed[names.get("items", "items")] = [
            {names.get(k, k): v for k, v in x.items()} if isinstance(x, dict) else x
            for x in payload["items"]
        ]
    separators = random.choice(((",", ":"), (", ", ": ")))
    text = json.dumps(renamed, separators=separators, ensure_ascii=random.random() < 0.5)
    return text.encode()


def _pool(dimension: Dimension) -> tuple[list[str], list[str]]:
    """(often seen values, all values: more than will be kept)."""
    pool = [f"{dimension.name}-{i}" for i in range(min(dimension.max_values, 200) + 6)]
    return [*dimension.values, *pool[:3]], pool
