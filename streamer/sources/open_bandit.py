"""A real A/B test, packaged: 60,000 impressions and 287 clicks of the Open Bandit Dataset.

Real: time, policy (``variant``), campaign (``surface``), item, position, propensity, whether it
was clicked. Synthetic, with a fixed seed, for the data set has none of it: user and request ids,
the moment of a click, dwell, conversions and their value, sessions. See ``data/ATTRIBUTION.md``.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from importlib import resources
from random import Random
from typing import Any

import msgspec

from streamer.events import LINE_TYPES

SEED = 2008
USERS_PER_COMBINATION = 10
"""Synthetic users for each combination of the four user features."""
SURFACES = {"all": "all_items", "men": "men", "women": "women"}
"""Campaign → surface; ``all`` is what a rollup is called."""
CLICK_DELAY_MS = (1000, 29 * 60_000)
DWELL_MS = (500, 20 * 60_000)
CONVERSION_SHARE = 0.12
"""Synthetic conversions per click."""
CONVERSION_DELAY_MS = (10_000, 12 * 3_600_000)

Event = dict[str, Any]


def rows() -> Iterator[dict[str, str]]:
    """The rows of the packaged file, in time order."""
    packed = resources.files("streamer.sources").joinpath("data/open_bandit.csv.gz").read_bytes()
    return csv.DictReader(io.StringIO(gzip.decompress(packed).decode()))


def events(lap: int = 0) -> list[Event]:
    """All events in time order, as a file would carry them.

    Another ``lap`` gives the same events under other request, event and session ids, to be
    replayed after the first ones.
    """
    random = Random(SEED)
    log: list[Event] = []
    for i, row in enumerate(rows()):
        log += _events_of(row, f"{lap}-{i}", random)
    log.sort(key=lambda event: event["ts"])
    return log


def _events_of(row: dict[str, str], name: str, random: Random) -> list[Event]:
    """One impression and what followed it."""
    shown_ms = int(row["ts_ms"])
    features = "-".join(row[f"uf{k}"] for k in range(4))
    user = {"user_id": f"u{features}-{random.randrange(USERS_PER_COMBINATION)}"}
    keys = {**user, "request_id": f"r{name}", "item_id": f"{row['campaign']}-{row['item_id']}"}
    impression = {
        "type": "impression",
        "ts": shown_ms,
        "event_id": f"i{name}",
        **keys,
        "position": int(row["position"]),
        "propensity": float(row["propensity_score"]),
        "variant": row["policy"],
        "surface": SURFACES[row["campaign"]],
    }
    if row["click"] != "1":
        return [impression]
    clicked_ms = shown_ms + _lognormal(random, 15_000, 1.0, CLICK_DELAY_MS)
    dwell_ms = _lognormal(random, 20_000, 1.2, DWELL_MS)
    click = {
        "type": "click",
        "ts": clicked_ms,
        "event_id": f"c{name}",
        **keys,
        "dwell_ms": dwell_ms,
    }
    log = [impression, click, *_session(name, user, shown_ms, clicked_ms + dwell_ms, random)]
    if random.random() < CONVERSION_SHARE:
        log.append(
            {
                "type": "conversion",
                "ts": clicked_ms + _lognormal(random, 600_000, 1.0, CONVERSION_DELAY_MS),
                "event_id": f"v{name}",
                **keys,
                "value": round(random.lognormvariate(3.6, 0.7), 2),
            }
        )
    return log


def _session(name: str, user: Event, start_ms: int, end_ms: int, random: Random) -> list[Event]:
    """The visit around a click: a start, one to four views, for most an end."""
    views = [
        start_ms,
        *sorted(random.randint(start_ms, end_ms) for _ in range(random.randrange(4))),
    ]
    moments = [(start_ms, "start"), *((at_ms, "view") for at_ms in views)]
    if random.random() < 0.7:
        moments.append((end_ms, "end"))
    base = {**user, "session_id": f"s{name}"}
    return [{"type": "session", "ts": at_ms, **base, "action": a} for at_ms, a in moments]


def _lognormal(random: Random, median_ms: float, sigma: float, bounds_ms: tuple[int, int]) -> int:
    low_ms, high_ms = bounds_ms
    return int(min(max(median_ms * random.lognormvariate(0, sigma), low_ms), high_ms))


def replay_at(log: Iterable[Event], start_ms: int, speed: float = 1.0) -> Iterator[Event]:
    """The same events with the first at ``start_ms`` and time running ``speed`` times as fast.

    >>> list(replay_at([{"ts": 100}, {"ts": 400}], start_ms=1000, speed=3))
    [{'ts': 1000}, {'ts': 1100}]
    """
    first_ms = None
    for event in log:
        if first_ms is None:
            first_ms = event["ts"]
        yield {**event, "ts": start_ms + int((event["ts"] - first_ms) / speed)}


def lines(log: Iterable[Event]) -> Iterator[tuple[str, bytes]]:
    """(kind, NDJSON line without its newline) of each event."""
    encode = msgspec.json.Encoder().encode
    for event in log:
        yield LINE_TYPES[event["type"]], encode(event)
