"""Seeded traffic of any size, with known true click rates and every trouble a log can have; and
live traffic, without an end: what ``streamer produce --synthetic`` sends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from streamer.encoding.arrays import F64, I64, Bools
from streamer.errors import UsageError
from streamer.ingest.record import line_stamper
from streamer.settings.model import Settings
from streamer.sources.line_batch import LineBatch

KindLine = tuple[str, bytes]
"""(kind, NDJSON line without its newline)."""

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

_SCORE_SPREAD = 0.3
"""Standard deviation of the logarithm of score / true click rate."""
_ALWAYS_MS = 2**62
"""A wall clock beyond which no event is."""
_ITEM = b'"item_id":"i%d","position":%d,"score":%.6f,"propensity":%.6f'
_HEAD = b'{"type":"%b","ts":%d,"event_id":"e%d","user_id":"u%d",'
_SLATE = b'"request_id":"r%d"%b'
_IMPRESSION = _HEAD + b"%b,%b}"
_CLICK = _HEAD + b'"item_id":"i%d",%b"dwell_ms":%d}'
_CONVERSION = _HEAD + b'"item_id":"i%d",%b"value":%.2f}'
_DWELL = b',"request_id":"r%d","item_id":"i%d",%b%b'
_DIMENSIONS = b',"variant":"%b","surface":"%b"'
_SESSION = _HEAD + b'"session_id":"s%d","action":"%b"%b}'
BATCHES_PER_SECOND = 4
"""How often the traffic can be stopped."""
_IDS_PER_MS = 1000
"""Ids begin at the start time times this, so that no two runs share one."""
STAY_MS = (500, 10 * 60_000)
"""Shortest and longest stay on a page: within the gap of a session."""
PAUSE_MS = (31 * 60_000, 90 * 60_000)
"""Shortest and longest absence that ends a session."""


@dataclass(frozen=True)
class SyntheticTraffic:
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
    tested_every: int = 0
    """Of the slates with ``items`` each so many-th carries ``reference`` (its items in another
    order) and ``held_out`` (one of them); 0: none."""
    requestless_click_share: float = 0.0
    conversion_share: float = 0.08
    """Clicks that are followed by a conversion."""
    session_share: float = 0.1
    """Slates that come with a session."""
    bounce_share: float = 0.4
    """Sessions of one view."""
    session_views: float = 4.0
    """Views of the other sessions, on average; they follow a geometric law from 2 on."""
    unended_share: float = 0.25
    """Sessions without an ``end``: the gap ends them."""
    pause_share: float = 0.02
    """Views after which the user is away for longer than the gap, and comes back under the same
    session id."""
    dwell_share: float = 0.3
    """Views of an item of the slate whose dwell the session reports."""
    click_dwell_share: float = 0.5
    """Of these, where the slate was clicked, those of the clicked item: the click has it, too."""
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
        if self.session_views < 2:
            raise UsageError(f"session_views = {self.session_views}: must be 2 or more")
        for name, rate in self.variants:
            if not 0 <= rate * self.position_weights().max() <= 1:
                raise UsageError(f"variant {name}: rate {rate} is too high at the first position")

    def position_weights(self) -> F64:
        """Click rate at each position over the overall one; their mean is 1."""
        weights = np.arange(1, self.slate + 1) ** -self.position_decay
        return np.asarray(weights / weights.mean(), np.float64)

    def events_per_session(self) -> float:
        """A start, views, their dwells, and perhaps an end."""
        views = self.bounce_share + (1 - self.bounce_share) * self.session_views
        return 1 + views * (1 + self.dwell_share) + (1 - self.unended_share)

    def slates_per_second(self) -> float:
        """How many slates make ``events_per_second``."""
        rate = sum(r for _, r in self.variants) / len(self.variants)
        impressions = self.items_form_share + (1 - self.items_form_share) * self.slate
        clicks = self.slate * rate * (1 + self.conversion_share)
        events = impressions + clicks + self.session_share * self.events_per_session()
        return self.events_per_second / (events * (1 + self.duplicate_share))


@dataclass(frozen=True)
class Slates:
    """Columns of what was shown: one row a request, ``item`` and ``clicked`` (row, position)."""

    shown_ms: I64
    user: I64
    request: I64
    variant: I64
    surface: I64
    item: I64
    clicked: Bools


def generate(traffic: SyntheticTraffic, n: int | None) -> Iterator[KindLine]:
    """``n`` lines in log order, or without an end; the same for the same arguments."""
    return islice(_Generator(traffic).lines(), n)


class _Generator:
    """Makes blocks of slates; what reaches the log after a block's end waits for a later one."""

    def __init__(self, traffic: SyntheticTraffic) -> None:
        self.t = traffic
        self.random = np.random.default_rng(traffic.seed)
        self.user_odds = _zipf(traffic.users, traffic.user_exponent)
        self.item_odds = _zipf(traffic.items, traffic.item_exponent)
        self.item_weights = np.diff(self.item_odds, prepend=0.0)
        self.names = [name.encode() for name, _ in traffic.variants]
        self.surfaces = [name.encode() for name in traffic.surfaces]
        self.clock_ms = float(traffic.start_ms)
        self.slates = traffic.first_id
        self.serial = traffic.first_id
        self.waiting: list[tuple[list[KindLine], F64]] = []

    def lines(self) -> Iterator[KindLine]:
        """Lines without end, in order of arrival."""
        while True:
            self._block()
            lines = list(chain.from_iterable(part for part, _ in self.waiting))
            arrival_ms = np.concatenate([a for _, a in self.waiting])
            order = np.argsort(arrival_ms, kind="stable")
            now = int(np.searchsorted(arrival_ms[order], self.clock_ms))
            come, waiting = order[:now].tolist(), order[now:]
            self.waiting = [([lines[i] for i in waiting.tolist()], arrival_ms[waiting])]
            yield from self._with_broken(list(map(lines.__getitem__, come)))

    def _with_broken(self, lines: list[KindLine]) -> Iterator[KindLine]:
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
        rates = np.array([rate for _, rate in t.variants])[variant]
        chance = rates[:, None] * t.position_weights()
        slates = Slates(
            shown_ms=shown_ms,
            user=user,
            request=np.arange(self.slates, self.slates + n),
            variant=variant,
            surface=r.integers(len(t.surfaces), size=n),
            item=self._distinct_items(n),
            clicked=r.random((n, t.slate)) < chance,
        )
        self.slates += n
        error = r.lognormal(-(_SCORE_SPREAD**2) / 2, _SCORE_SPREAD, chance.shape)  # 1 on average
        score = np.clip(chance * error, 1e-6, 1 - 1e-6)
        self._impressions(slates, score)
        self._feedback(slates)
        self._sessions(slates)

    def _distinct_items(self, n: int) -> I64:
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

    def _impressions(self, of: Slates, score: F64) -> None:
        t, n = self.t, len(of.user)
        propensity = np.clip(self.item_weights[of.item] * t.slate, 1e-6, 1)
        position = np.tile(np.arange(1, t.slate + 1), n)
        columns = (of.item, position, score, propensity)
        cells = zip(*(x.ravel().tolist() for x in columns), strict=True)
        bodies = list(map(_ITEM.__mod__, cells))
        whole = self.random.random(n) < t.items_form_share
        slate = np.repeat(np.arange(n), np.where(whole, 1, t.slate))
        shown: list[bytes] = []
        for i, as_list in enumerate(whole.tolist()):
            part = bodies[i * t.slate : (i + 1) * t.slate]
            if as_list:
                part = [b'"items":[{%b}]%b' % (b"},{".join(part), self._test_of(of, i))]
            shown += part
        dims = self._dimensions_of(of, np.arange(n))
        heads = list(map(_SLATE.__mod__, zip(of.request.tolist(), dims, strict=True)))
        head = [heads[i] for i in slate.tolist()]
        self._add("impressions", _IMPRESSION, of.shown_ms[slate], of.user[slate], head, shown)

    def _test_of(self, of: Slates, i: int) -> bytes:
        """The fields of a slate that is a test of retrieval."""
        request, items = int(of.request[i]), of.item[i].tolist()
        if not self.t.tested_every or request % self.t.tested_every:
            return b""
        listed = b'","'.join(b"i%d" % item for item in sorted(items))
        held_out = items[request // self.t.tested_every % len(items)]
        return b',"reference":["%b"],"held_out":"i%d"' % (listed, held_out)

    def _feedback(self, of: Slates) -> None:
        t, r = self.t, self.random
        row, column = np.nonzero(of.clicked)
        n, user, item = len(row), of.user[row], of.item[row, column]
        after_ms = np.clip(r.lognormal(9.2, 1.0, n), 200, 25 * 60_000)
        click_ms = of.shown_ms[row] + after_ms.astype(np.int64)
        dwell_ms = np.clip(r.lognormal(9.9, 1.1, n), 100, 3_600_000).astype(np.int64)
        named = (r.random(n) >= t.requestless_click_share).tolist()
        requests = [
            b'"request_id":"r%d",' % q if has else b""
            for q, has in zip(of.request[row].tolist(), named, strict=True)
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

    def _sessions(self, of: Slates) -> None:
        """Visits of some slates: starts and dwells carry the dimensions, ends may be missing."""
        t, r = self.t, self.random
        chosen = np.flatnonzero(r.random(len(of.user)) < t.session_share)
        visits = _draw_visits(t, r, of.shown_ms[chosen])
        view, leave_ms = chosen[visits.session], visits.leave_ms
        reported = r.random(len(view)) < t.dwell_share
        over = visits.is_last.copy()
        over[over] = r.random(len(chosen)) >= t.unended_share
        row = view[reported]
        item = of.item[row, _draw_items(t, r, of.clicked[row])]
        times = _dwell_bodies(r, leave_ms[reported], visits.stay_ms[reported])
        dims = self._dimensions_of(of, row)
        dwells = zip(of.request[row].tolist(), item.tolist(), times, dims, strict=True)
        for action, slate, at_ms, bodies in (
            (b"start", chosen, of.shown_ms[chosen], self._dimensions_of(of, chosen)),
            (b"view", view, visits.begin_ms, [b""] * len(view)),
            (b"dwell", row, leave_ms[reported], list(map(_DWELL.__mod__, dwells))),
            (b"end", view[over], leave_ms[over], [b""] * int(over.sum())),
        ):
            request = of.request[slate].tolist()
            actions = [action] * len(slate)
            self._add("sessions", _SESSION, at_ms, of.user[slate], request, actions, bodies)

    def _dimensions_of(self, of: Slates, row: I64) -> list[bytes]:
        """Variant and surface of slates, as a part of a line."""
        return [
            _DIMENSIONS % (self.names[v], self.surfaces[s])
            for v, s in zip(of.variant[row].tolist(), of.surface[row].tolist(), strict=True)
        ]

    # Collecting -----------------------------------------------------------------------------------

    def _add(self, kind: str, template: bytes, at_ms: I64, user: I64, *rest: list[Any]) -> None:
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
        lines = list(zip(repeat(kind), map(template.__mod__, rows)))
        self.waiting.append((lines, arrival_ms))
        if t.duplicate_share:
            again = np.flatnonzero(r.random(n) < t.duplicate_share)
            second_ms = arrival_ms[again] + r.exponential(10_000, len(again))
            self.waiting.append(([lines[i] for i in again.tolist()], second_ms))


def _zipf(n: int, exponent: float) -> F64:
    """Cumulative shares of ranks 1 to n."""
    odds = np.cumsum(np.arange(1, n + 1) ** -exponent)
    odds /= odds[-1]
    return np.asarray(odds, np.float64)


class LiveTraffic:
    """Made-up traffic without an end, from now on, with a little of every trouble, so that every
    panel and counter has something to show.

    Batches of lines in log order; a line's record timestamp is the largest ``ts`` so far.

    ``rate``: events per second; ``start_ms``: event time of the first, epoch milliseconds.
    """

    total_bytes = None
    read_bytes = 0

    def __init__(self, rate: float, settings: Settings, start_ms: int) -> None:
        self.traffic = SyntheticTraffic(
            seed=start_ms,
            start_ms=start_ms,
            first_id=start_ms * _IDS_PER_MS,
            events_per_second=rate,
            items_form_share=0.2,
            tested_every=20,
            requestless_click_share=0.1,
            out_of_order_share=0.05,
            late_share=0.002,
            duplicate_share=0.005,
            broken_share=0.002,
        )
        self._batch = max(1, int(rate / BATCHES_PER_SECOND))
        self._names, self._stamper = tuple(settings.logs), line_stamper(settings, "")

    def __iter__(self) -> Iterator[LineBatch]:
        lines = generate(self.traffic, None)
        while True:
            kinds, raws = map(list, zip(*islice(lines, self._batch), strict=True))
            _, record_ms, _ = self._stamper.stamp(raws, _ALWAYS_MS, self.traffic.start_ms)
            logs = np.array([self._names.index(kind) for kind in kinds], np.int16)
            yield LineBatch(self._names, logs, record_ms, raws)


@dataclass(frozen=True)
class _Visits:
    """Views in the order of sessions; ``session`` is the row of the session that a view is of."""

    session: I64
    begin_ms: I64
    stay_ms: I64
    is_last: Bools

    @property
    def leave_ms(self) -> I64:
        """When the user left the page."""
        return self.begin_ms + self.stay_ms


def _draw_visits(t: SyntheticTraffic, r: np.random.Generator, start_ms: I64) -> _Visits:
    """One session for each ``start_ms``, whose first view comes a millisecond later."""
    n = len(start_ms)
    more = r.geometric(1 / (t.session_views - 1), n)
    count = np.where(r.random(n) < t.bounce_share, 1, 1 + more)
    session = np.repeat(np.arange(n), count)
    last = np.cumsum(count) - 1
    is_last = np.zeros(len(session), bool)
    is_last[last] = True
    stay_ms = np.clip(r.lognormal(9.9, 1.1, len(session)), *STAY_MS).astype(np.int64)
    pauses = (r.random(len(session)) < t.pause_share) & ~is_last
    pause_ms = pauses * r.integers(*PAUSE_MS, len(session))
    until_ms = np.cumsum(stay_ms + pause_ms)
    before_ms = np.concatenate([[0], until_ms[last]])[session]
    begin_ms = start_ms[session] + 1 + until_ms - before_ms - stay_ms - pause_ms
    return _Visits(session, begin_ms, stay_ms, is_last)


def _draw_items(t: SyntheticTraffic, r: np.random.Generator, clicked: Bools) -> I64:
    """The column of its slate that each view is of; ``clicked``: the slate's items, by view."""
    n, size = clicked.shape
    column = r.integers(size, size=n)
    follows = clicked.any(1) & (r.random(n) < t.click_dwell_share)
    return np.where(follows, clicked.argmax(1), column)


def _dwell_bodies(r: np.random.Generator, leave_ms: I64, stay_ms: I64) -> list[bytes]:
    """What a dwell event says of the time: a part of the stay, as a length or as two times."""
    part: F64 = r.uniform(0.3, 1, len(stay_ms))
    dwell_ms = (stay_ms * part).astype(np.int64)
    both = r.random(len(stay_ms)) < 0.5
    return [
        b'"start_ts":%d,"end_ts":%d' % (end_ms - ms, end_ms) if as_times else b'"dwell_ms":%d' % ms
        for end_ms, ms, as_times in zip(
            leave_ms.tolist(), dwell_ms.tolist(), both.tolist(), strict=True
        )
    ]
