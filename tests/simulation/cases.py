"""The logs that are simulated, and what has to come of them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import NamedTuple

from streamer.actions.occasions import occasions_of
from streamer.ingest.hash_key import HashKey
from streamer.metrics.catalogue import Catalogue
from streamer.query.experiment_list import ListedExperiment
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.generations import fingerprint_of
from tests.oracle.oracle import records_of_log, run
from tests.oracle.random_log import FAR_MS, START_MS, random_log
from tests.support.agreement import differences, read_engines, run_engines, states, to_log
from tests.support.canonical import Canonical
from tests.support.engines import LogRecord

PARTITIONS = 2
LOGS = 48
"""Different logs; each is run under many schedules."""
LIVE, ACTED = "written meanwhile", "acted on"
NAMES = ("written before", LIVE)
ACTED_LOGS = 4
ACTING_MS = 1_700_006_400_000
"""The day of the experiment begins, and the clock of the store of who acts."""
Occasions = frozenset[tuple[str, str]]
"""Kind and arm of each."""
_LINES = 60
HOSTILE = 6
"""A log in so many has a robot's lines."""
_CROWD = 50
"""Its impressions of one item."""
_EXPERIMENT = {
    "name": "simulated",
    "dimension": "variant",
    "control": "variant-0",
    "split": {"variant-0": 1, "variant-1": 1},
    "start": date(2023, 11, 15),
    "covariate_days": 1,
    "metrics": [
        *({"name": "clicks_per_user"}, {"name": "ndcg_ratio@5"}),
        {"name": "dwell_seconds_per_user@p50"},
    ],
}


_ACTED = {"max_loss": "5 clicks", "metrics": [{"name": "clicks_per_user"}]}
_ACTIONS = [
    {
        "url": "http://receiver.example",
        "on": ["harm", "loss", "split", "withdrawn", "decided"],
        "max_age": "20s",
    }
]


def settings_of(name: str, *more: str) -> Settings:
    """Short horizons where all is there at the start; a wide skew where topics are idle while
    the logs still grow much faster than their time. ``more``: windows that may come and go."""
    is_live, is_acted = name != NAMES[0], name == ACTED
    return parse(
        {
            "dimensions": [{"name": "variant", "max_values": 2}],
            "windows": {"lengths": ["30m", *more]},
            "metrics": {"k": [5]},
            "items": {"windows": ["30m"]},
            "attribution": {"click": "10m", "conversion": "1h"},
            "time": {
                "max_lateness": "10m",
                "max_skew": "240h" if is_live else "1m",
                "dedup_horizon": "20m",
            },
            "experiments": [_EXPERIMENT | (_ACTED if is_acted else {})],
            "actions": _ACTIONS if is_acted else [],
            "limits": {"gather_rows": 15, "flush_ms": 2000},
        }
    )


def hostile(seed: int, lines: list[bytes]) -> list[bytes]:
    """A log with a robot's lines at one place: more impressions of one item than a chain is
    searched for, their times falling, feedback with and without a request, control characters, and
    what is no event."""
    dice = Random(seed)
    at = dice.randrange(len(lines) // 2, len(lines))
    times = [found["ts"] for line in lines[:at] if (found := _as_event(line))]
    now_ms = max(times) if times else START_MS

    def event(kind: str, ts: int, **fields: object) -> bytes:
        robot = {"type": kind, "ts": ts, "user_id": "robot", "item_id": "i0", **fields}
        return json.dumps(robot).encode()

    variant = "\x1b[2J\u202e\n"
    shown = [
        event("impression", now_ms - n, request_id=f"robot{n}", variant=variant)
        for n in range(_CROWD)
    ]
    clicked = [
        event("click", now_ms + n, **({"request_id": f"robot{n}"} if n % 2 else {}))
        for n in range(_CROWD)
    ]
    bought = [event("conversion", now_ms + _CROWD + n, value=1.5) for n in range(_CROWD // 4)]
    strange = [
        b'{"a":' * 99 + b"1" + b"}" * 99,
        b"\xff\x00",
        b"",
        event("click", now_ms, position=10**9),
    ]
    robot = shown + clicked + bought + strange
    dice.shuffle(robot)
    return lines[:at] + robot + lines[at:]


def _as_event(line: bytes) -> dict[str, int] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    is_event = isinstance(found, dict) and isinstance(found.get("ts"), int)
    return found if is_event and found["ts"] < FAR_MS else None


def harmful(number: int) -> list[bytes]:
    """A log whose treatment has no clicks; of each other one they come back in the end."""
    dice, lines, ts = Random(number), list[bytes](), ACTING_MS
    for user in range(40 + 24 * (number % 2)):
        ts += dice.randrange(1000)
        arm = user % 2
        event = {"ts": ts, "user_id": f"u{user}", "item_id": "i", "variant": f"variant-{arm}"}
        lines.append(json.dumps({"type": "impression", **event}).encode())
        if not arm or user >= 40:
            lines.append(json.dumps({"type": "click", **event, "ts": ts + 1}).encode())
    return lines


@dataclass(frozen=True)
class Case:
    """Logs, and what has to come of them. ``states``: under the fixed key; ``occasions``: what
    there is to tell in the end."""

    settings: Settings
    catalogue: Catalogue
    log: list[LogRecord]
    states: list[Canonical]
    dead: set[tuple[str, int, int]]
    occasions: Occasions = frozenset()

    def states_under(self, key: HashKey) -> list[Canonical]:
        """What partitions hold that are counted under this key."""
        return states(run_engines(self.settings, PARTITIONS, self.log, 1000, key=key))


class Counted(NamedTuple):
    """Settings of a worker, and what follows from them."""

    settings: Settings
    catalogue: Catalogue
    fingerprint: str


@functools.lru_cache(maxsize=4)
def counted_of(name: str, *more: str) -> Counted:
    """What follows from settings, found once."""
    settings = settings_of(name, *more)
    return Counted(settings, Catalogue(settings), fingerprint_of(settings))


@functools.lru_cache(maxsize=2 * LOGS)
def case_of(number: int, name: str) -> Case:
    """A random log, run once without faults and held against the oracle."""
    settings = settings_of(name)
    is_acted = name == ACTED
    lines = harmful(number) if is_acted else random_log(number, settings, _LINES)
    if number % HOSTILE == HOSTILE - 1 and not is_acted:
        lines = hostile(number, lines)
    records = records_of_log(lines, settings, partitions=PARTITIONS)
    engines = run_engines(settings, PARTITIONS, to_log(records), 1000)
    assert not differences(read_engines(engines), run(records, settings).readings)
    dead = {(kind, p, offset) for kind, p, offset, _ in engines.dead}
    occasions = _occasions(settings, to_log(records)) if is_acted else frozenset()
    return Case(settings, engines.catalogue, to_log(records), states(engines), dead, occasions)


def _occasions(settings: Settings, log: list[LogRecord]) -> Occasions:
    """What there is to tell of a log that is counted in one piece."""
    replay = Replay(settings)
    replay.feed([(each.kind, each.record_ms, each.value or b"") for each in log])
    replay.finish()
    stored = replay.experiments()["simulated"]
    found = occasions_of(ListedExperiment(stored, stored.read(), {}))
    return frozenset((each.kind, each.arm) for each in found)
