"""Seeded traffic of any size, with known true click rates and every trouble a log can have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from streamer.errors import UsageError

Line = tuple[str, bytes]
"""(kind, NDJSON line without its newline)."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BLOCK_SLATES = 2000
BROKEN = (
    b"",
    b"{",
    b"[]",
    b'{"type":"impression","ts":"yesterday","user_id":"u1","item_id":"i1"}',
    b'{"type":"impression","ts":1,"user_id":"","item_id":"i1"}',
    b'{"type":"impression","ts":1,"user_id":"u1"}',
    b'{"type":"purchase","ts":1,"user_id":"u1"}',
)
"""Lines that are rejects of the impressions, wherever they stand."""

_ITEM = b'"item_id":"i%d","position":%d,"score":%.6f,"propensity":%.6f'
_HEAD = b'{"type":"%b","ts":%d,"event_id":"e%d","user_id":"u%d",'
_IMPRESSION = _HEAD + b'"request_id":"r%d","variant":"%b","surface":"%b",%b}'
_CLICK = _HEAD + b'"item_id":"i%d",%b"dwell_ms":%d}'
_CONVERSION = _HEAD + b'"item_id":"i%d",%b"value":%.2f}'
_SESSION = _HEAD + b'"session_id":"s%d","action":"%b"}'


@dataclass(frozen=True)
class Traffic:
    """What the traffic looks like. Shares are of the lines concerned, 0 to 1."""

    seed: int = 0
    start_ms: int = 1_700_000_000_000
    """Event time of the first slate, epoch milliseconds."""
    first_id: int = 0
    """Where the numbers in event, request and session ids begin."""
    events_per_second: float = 1000.0
    """Events of all kinds per second of event time, on average."""
    users: int = 10_000
    items: int = 1000
    slate: int = 10
    """Items shown in one request."""
    variants: tuple[tuple[str, float], ...] = (("A", 0.040), ("B", 0.046))
    """(name, true share of impressions that are clicked); a user sees one variant."""
    surfaces: tuple[str, ...] = ("home", "search")
    user_exponent: float = 0.6
    """Of the Zipf law that users follow; 0 is uniform."""
    item_exponent: float = 1.0
    position_decay: float = 0.6
    """Clicks at position p are proportional to p ** -position_decay."""
    items_form_share: float = 0.0
    """Slates that are one event with ``items``."""
    requestless_click_share: float = 0.0
    conversion_share: float = 0.08
    """Clicks that are followed by a conversion."""
    session_share: float = 0.1
    """Slates that come with a session of three events."""
    out_of_order_share: float = 0.0
    """Events that reach the log up to ``out_of_order_ms`` after their time."""
    out_of_order_ms: int = 60_000
    late_share: float = 0.0
    """Events dated 61 to 120 minutes before their place in the log."""
    duplicate_share: float = 0.0
    """Events that come a second time, seconds later."""
    broken_share: float = 0.0
    """Lines that are no events, in addition to the events."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name.endswith("_share") and not 0 <= value <= 1:
                raise UsageError(f"{f.name} = {value}: must be 0 to 1; in the traffic")
        if not 1 <= self.slate <= self.items / 2:
            raise UsageError(f"slate = {self.slate}: must be 1 to items / 2 = {self.items / 2:g}")
        if self.events_per_second <= 0 or self.users < 1 or not self.variants:
            raise UsageError("traffic needs a positive rate, a user and a variant")
        for name, rate in self.variants:
            if not 0 <= rate * self.position_weights().max() <= 1:
                raise UsageError(f"variant {name}: rate {rate} is too high at the first position")

    def position_weights(self) -> Floats:
        """Click rate at each position over the overall one; their mean is 1."""
        weights = np.arange(1, self.slate + 1) ** -self.position_decay
        return np.asarray(weights / weights.mean(), np.float64)

    def slates_per_second(self) -> float:
        """How many slates make ``events_per_second``."""
        rate = sum(r for _, r in self.variants) / len(self.variants)
        impressions = self.items_form_share + (1 - self.items_form_share) * self.slate
        clicks = self.slate * rate * (1 + self.conversion_share)
        events = impressions + clicks + 3 * self.session_share
        return self.events_per_second / (events * (1 + self.duplicate_share))


def generate(traffic: Traffic, n: int | None) -> Iterator[Line]:
    """``n`` lines in log order, or without an end; the same for the same arguments."""
    return islice(_Generator(traffic).lines(), n)


class _Generator:
    """Makes blocks of slates; what reaches the log after a block's end waits for a later one."""

    def __init__(self, traffic: Traffic) -> None:
        self.t = traffic
        self.random = np.random.default_rng(traffic.seed)
        self.user_odds = _zipf(traffic.users, traffic.user_exponent)
        self.item_odds = _zipf(traffic.items, traffic.item_exponent)
        self.item_weights = np.diff(self.item_odds, prepend=0.0)
        self.clock_ms = float(traffic.start_ms)
        self.slates = traffic.first_id
        self.serial = traffic.first_id
        self.waiting: list[tuple[list[Line], Floats]] = []

    def lines(self) -> Iterator[Line]:
        while True:
            self._block()
            lines = [line for part, _ in self.waiting for line in part]
            arrival_ms = np.concatenate([a for _, a in self.waiting])
            order = np.argsort(arrival_ms, kind="stable")
            now = int(np.searchsorted(arrival_ms[order], self.clock_ms))
            waiting = order[now:]
            self.waiting = [([lines[i] for i in waiting.tolist()], arrival_ms[waiting])]
            yield from self._with_broken([lines[i] for i in order[:now].tolist()])

    def _with_broken(self, lines: list[Line]) -> Iterator[Line]:
        if not self.t.broken_share:
            yield from lines
            return
        breaks = (self.random.random(len(lines)) < self.t.broken_share).tolist()
        for line, broken in zip(lines, breaks, strict=True):
            if broken:
                yield "impressions", BROKEN[self.random.integers(len(BROKEN))]
            yield line

    # One block --------------------------------------------------------------------------------

    def _block(self) -> None:
        t, r, n = self.t, self.random, BLOCK_SLATES
        gaps_ms = r.exponential(1000 / t.slates_per_second(), n)
        shown_ms = (self.clock_ms + np.cumsum(gaps_ms)).astype(np.int64)
        self.clock_ms = float(shown_ms[-1])
        user = np.searchsorted(self.user_odds, r.random(n))
        variant = (user * 2654435761 >> 16) % len(t.variants)
        item = self._distinct_items(n)
        request = np.arange(self.slates, self.slates + n)
        self.slates += n
        rates = np.array([rate for _, rate in t.variants])[variant]
        chance = rates[:, None] * t.position_weights()
        clicked = r.random((n, t.slate)) < chance
        score = np.clip(chance * r.lognormal(0, 0.3, chance.shape), 1e-6, 1 - 1e-6)
        self._impressions(shown_ms, user, request, variant, item, score)
        row, column = np.nonzero(clicked)
        self._feedback(shown_ms[row], user[row], request[row], item[row, column])
        self._sessions(shown_ms, user, request)

    def _distinct_items(self, n: int) -> Ints:
        """n slates of different items: Zipf draws, what comes twice drawn again uniformly."""
        items = np.searchsorted(self.item_odds, self.random.random((n, self.t.slate)))
        rows = np.arange(n)
        while len(rows):
            part = items[rows]
            order = np.argsort(part, axis=1, kind="stable")
            ranked = np.take_along_axis(part, order, 1)
            twice = np.zeros_like(part, bool)
            np.put_along_axis(twice[:, :], order[:, 1:], ranked[:, 1:] == ranked[:, :-1], 1)
            part[twice] = self.random.integers(self.t.items, size=int(twice.sum()))
            items[rows] = part
            rows = rows[twice.any(1)]
        return items

    def _impressions(
        self, shown_ms: Ints, user: Ints, request: Ints, variant: Ints, item: Ints, score: Floats
    ) -> None:
        t = self.t
        propensity = np.clip(self.item_weights[item] * t.slate, 1e-6, 1)
        position = np.tile(np.arange(1, t.slate + 1), len(user))
        cells = zip(*(x.ravel().tolist() for x in (item, position, score, propensity)), strict=True)
        bodies = list(map(_ITEM.__mod__, cells))
        names = [name.encode() for name, _ in t.variants]
        surfaces = [s.encode() for s in t.surfaces]
        surface = self.random.integers(len(surfaces), size=len(user))
        whole = self.random.random(len(user)) < t.items_form_share
        size = np.where(whole, 1, t.slate)
        slate = np.repeat(np.arange(len(user)), size)
        shown: list[bytes] = []
        for i, as_list in enumerate(whole.tolist()):
            part = bodies[i * t.slate : (i + 1) * t.slate]
            shown += [b'"items":[{%b}]' % b"},{".join(part)] if as_list else part
        self._add(
            "impressions",
            _IMPRESSION,
            shown_ms[slate],
            user[slate],
            request[slate].tolist(),
            [names[v] for v in variant[slate].tolist()],
            [surfaces[s] for s in surface[slate].tolist()],
            shown,
        )

    def _feedback(self, shown_ms: Ints, user: Ints, request: Ints, item: Ints) -> None:
        t, r, n = self.t, self.random, len(user)
        click_ms = shown_ms + np.clip(r.lognormal(9.2, 1.0, n), 200, 25 * 60_000).astype(np.int64)
        dwell_ms = np.clip(r.lognormal(9.9, 1.1, n), 100, 3_600_000).astype(np.int64)
        named = (r.random(n) >= t.requestless_click_share).tolist()
        requests = [
            b'"request_id":"r%d",' % q if has else b""
            for q, has in zip(request.tolist(), named, strict=True)
        ]
        self._add("clicks", _CLICK, click_ms, user, item.tolist(), requests, dwell_ms.tolist())
        bought = np.flatnonzero(r.random(n) < t.conversion_share)
        delay_ms = np.clip(r.exponential(600_000, len(bought)), 1000, 20 * 3_600_000)
        value = np.clip(r.lognormal(3.5, 0.8, len(bought)), 0.01, 1e6)
        self._add(
            "conversions",
            _CONVERSION,
            click_ms[bought] + delay_ms.astype(np.int64),
            user[bought],
            item[bought].tolist(),
            [requests[i] for i in bought.tolist()],
            value.tolist(),
        )

    def _sessions(self, shown_ms: Ints, user: Ints, request: Ints) -> None:
        chosen = np.flatnonzero(self.random.random(len(user)) < self.t.session_share)
        length_ms = np.clip(self.random.lognormal(10.5, 1.0, len(chosen)), 1000, 20 * 60_000)
        steps = np.stack([0 * length_ms, 1 + 0 * length_ms, length_ms], 1).astype(np.int64)
        self._add(
            "sessions",
            _SESSION,
            (shown_ms[chosen][:, None] + steps).ravel(),
            np.repeat(user[chosen], 3),
            np.repeat(request[chosen], 3).tolist(),
            [b"start", b"view", b"end"] * len(chosen),
        )

    # Filing -----------------------------------------------------------------------------------

    def _add(self, kind: str, template: bytes, at_ms: Ints, user: Ints, *rest: list[Any]) -> None:
        """Encode events, and file them with the time at which they reach the log."""
        t, r, n = self.t, self.random, len(at_ms)
        arrival_ms = at_ms.astype(np.float64)
        if t.out_of_order_share:
            moved = r.random(n) < t.out_of_order_share
            arrival_ms += moved * r.random(n) * t.out_of_order_ms
        if t.late_share:
            moved = r.random(n) < t.late_share
            at_ms = at_ms - moved * r.integers(61 * 60_000, 120 * 60_000, n)
        type_ = kind.removesuffix("s").encode()
        serial = range(self.serial, self.serial + n)
        self.serial += n
        rows = zip([type_] * n, at_ms.tolist(), serial, user.tolist(), *rest, strict=True)
        lines = [(kind, line) for line in map(template.__mod__, rows)]
        self.waiting.append((lines, arrival_ms))
        if t.duplicate_share:
            again = np.flatnonzero(r.random(n) < t.duplicate_share)
            second_ms = arrival_ms[again] + r.exponential(10_000, len(again))
            self.waiting.append(([lines[i] for i in again.tolist()], second_ms))


def _zipf(n: int, exponent: float) -> Floats:
    """Cumulative shares of ranks 1 to n."""
    odds = np.cumsum(np.arange(1, n + 1) ** -exponent)
    odds /= odds[-1]
    return np.asarray(odds, np.float64)
