"""A real A/B test, packaged: 60,000 impressions and 287 clicks of the Open Bandit Dataset.

Real: time, policy (``variant``), campaign (``surface``), item, position, propensity, whether it
was clicked. Computed from it: ``p_bts``. Synthetic, with a fixed seed, for the data set has none of
it: user and request ids, the moment of a click, dwell, conversions and their value, visits. See
``data/ATTRIBUTION.md``.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from random import Random
from typing import Any

import msgspec

from streamer.settings.event_fields import LINE_TYPES

SEED = 2008
POLICIES = ("random", "bts")
USERS_PER_COMBINATION = 10
"""Synthetic users, each of one policy, for each combination of the four user features."""
SURFACES = {"all": "all_items", "men": "men", "women": "women"}
"""Campaign → surface; ``all`` is what a rollup is called."""
CLICK_DELAY_MS = (1000, 29 * 60_000)
DWELL_MS = (500, 20 * 60_000)
CONVERSION_SHARE = 0.12
"""Synthetic conversions per click."""
VISIT_SHARE = 0.03
"""Impressions without a click that begin a visit; each with one does."""
BOUNCE_SHARE = 0.3
"""Visits without a click that surely end after the first page; of the others some do."""
NEXT_PAGE_SHARE = 0.65
"""Pages that are followed by another one."""
DWELL_SHARES = {True: 0.6, False: 0.25}
"""Pages of the item whose dwell the session reports; True: clicked, where the click has it, too."""
END_SHARE = 0.7
"""Visits that end with an ``end``; the others by the gap."""
STAY_MS = (500, 10 * 60_000)
CONVERSION_DELAY_MS = (10_000, 12 * 3_600_000)
TESTED_EVERY, TESTED_AMONG = 20, 20
"""Of the clicks each so many-th is a retrieval test, among so many other items."""
RETRIEVAL_TEST = "retrieval-test"
"""The variant of these tests."""
Place = tuple[str, int]
"""Item (with its campaign) and position."""
Row = dict[str, str]
Event = dict[str, Any]
"""A line of a log."""


def rows() -> Iterator[Row]:
    """The rows of the packaged file, in time order."""
    packed = resources.files("streamer.sources").joinpath("data/open_bandit.csv.gz").read_bytes()
    return csv.DictReader(io.StringIO(gzip.decompress(packed).decode()))


@dataclass(frozen=True)
class _Summary:
    """What is known of all rows together: the propensities that Bernoulli Thompson sampling logged,
    impressions by item, and the rows that were clicked."""

    logged: dict[Place, list[float]]
    shown: Counter[str]
    clicked: list[Row]


@cache
def _summary() -> _Summary:
    """Of the packaged file, which is read once for it."""
    logged: dict[Place, list[float]] = defaultdict(list)
    shown = Counter[str]()
    clicked = []
    for row in rows():
        shown[_item_of(row)] += 1
        if row["policy"] == "bts":
            logged[_item_of(row), int(row["position"])].append(float(row["propensity_score"]))
        if row["click"] == "1":
            clicked.append(row)
    return _Summary(logged, shown, clicked)


def _item_of(row: Row) -> str:
    return f"{row['campaign']}-{row['item_id']}"


@cache
def bts_probabilities() -> dict[Place, float]:
    """How likely Bernoulli Thompson sampling shows an item at a position, from the propensities
    that it logged with n of its impressions: n / Σ(1 / propensity). Their plain mean is wrong:
    probable items are in it more often."""
    logged = _summary().logged
    return {place: len(p) / sum(1 / x for x in p) for place, p in logged.items()}


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


def _events_of(row: Row, name: str, random: Random) -> list[Event]:
    """One impression and what followed it."""
    shown_ms = int(row["ts_ms"])
    features = "-".join(row[f"uf{k}"] for k in range(4))
    user_number = 2 * random.randrange(USERS_PER_COMBINATION) + POLICIES.index(row["policy"])
    user = {"user_id": f"u{features}-{user_number}"}
    keys = {**user, "request_id": f"r{name}", "item_id": _item_of(row)}
    item_and_position = (keys["item_id"], int(row["position"]))
    impression = {
        "type": "impression",
        "ts": shown_ms,
        "event_id": f"i{name}",
        **keys,
        "position": int(row["position"]),
        "propensity": float(row["propensity_score"]),
        "p_bts": bts_probabilities().get(item_and_position, 0.0),
        "variant": row["policy"],
        "surface": SURFACES[row["campaign"]],
    }
    if row["click"] != "1":
        is_visit = random.random() < VISIT_SHARE
        return [impression, *(_visit(impression, None, random) if is_visit else ())]
    delay_ms, dwell_ms = click_times(random)
    clicked_ms = shown_ms + delay_ms
    click = {
        "type": "click",
        "ts": clicked_ms,
        "event_id": f"c{name}",
        **keys,
        "dwell_ms": dwell_ms,
    }
    log = [impression, click, *_visit(impression, click, random)]
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


def click_times(random: Random) -> tuple[int, int]:
    """How long after its impression a click comes, and the time then spent (ms)."""
    delay_ms = _lognormal(random, 15_000, 1.0, CLICK_DELAY_MS)
    return delay_ms, _lognormal(random, 20_000, 1.2, DWELL_MS)


def retrieval_tests(lap: int = 0) -> list[Event]:
    """Offline tests of a retrieval by popularity, a slate each: would it have found the item that
    was clicked (``held_out``) among others of the campaign? The slate is in the order of clicks,
    that of the tested click left out; ``reference`` in the order of smoothed click rates."""
    random, shown, clicked = Random(SEED), _summary().shown, _summary().clicked
    clicks = Counter(map(_item_of, clicked))
    tests = []
    for test_number, row in enumerate(clicked[::TESTED_EVERY]):
        wanted = _item_of(row)
        other_clicks = clicks - Counter([wanted])
        others = [x for x in sorted(shown) if x.startswith(f"{row['campaign']}-") and x != wanted]
        candidates = [wanted, *random.sample(others, TESTED_AMONG)]
        rates = {item: (other_clicks[item] + 1) / (shown[item] + 200) for item in candidates}
        name = f"t{lap}-{test_number}"
        tests.append(
            {
                "type": "impression",
                "ts": int(row["ts_ms"]),
                **dict.fromkeys(("event_id", "request_id", "user_id"), name),
                "variant": RETRIEVAL_TEST,
                "items": [
                    {"item_id": item}
                    for item in sorted(candidates, key=lambda x: (-other_clicks[x], x))
                ],
                "held_out": wanted,
                "reference": sorted(candidates, key=lambda item: (-rates[item], item)),
            }
        )
    return tests


def _visit(impression: Event, click: Event | None, random: Random) -> list[Event]:
    """The visit around an impression: pages, times spent on the item, for most an end."""
    name, shown_ms = impression["event_id"][1:], impression["ts"]
    base = {"type": "session", "user_id": impression["user_id"], "session_id": f"s{name}"}
    about = {key: impression[key] for key in ("variant", "surface")}
    item = {key: impression[key] for key in ("request_id", "item_id")}
    log = [{**base, "ts": shown_ms, "action": "start", **about}]

    def view(at_ms: int, stay_ms: int, dwell_share: float) -> int:
        log.append({**base, "ts": at_ms, "action": "view"})
        if random.random() < dwell_share:
            dwell = {"action": "dwell", **item, "dwell_ms": int(stay_ms * random.uniform(0.7, 1))}
            log.append({**base, "ts": at_ms + stay_ms, **dwell, **about})
        return at_ms + stay_ms

    if click:
        view(shown_ms, click["ts"] - shown_ms, 0)
        now_ms = view(click["ts"], click["dwell_ms"] + 500, DWELL_SHARES[True])
    else:
        now_ms = view(shown_ms, _lognormal(random, 15_000, 1.0, STAY_MS), DWELL_SHARES[False])
    if click or random.random() >= BOUNCE_SHARE:
        while random.random() < NEXT_PAGE_SHARE:
            now_ms = view(now_ms, _lognormal(random, 15_000, 1.0, STAY_MS), 0)
    if random.random() < END_SHARE:
        log.append({**base, "ts": now_ms, "action": "end"})
    return log


def _lognormal(random: Random, median_ms: float, sigma: float, bounds_ms: tuple[int, int]) -> int:
    low_ms, high_ms = bounds_ms
    return int(min(max(median_ms * random.lognormvariate(0, sigma), low_ms), high_ms))


def lines(log: Iterable[Event]) -> Iterator[tuple[str, bytes]]:
    """(kind, NDJSON line without its newline) of each event."""
    encode = msgspec.json.Encoder().encode
    for event in log:
        yield LINE_TYPES[event["type"]], encode(event)
