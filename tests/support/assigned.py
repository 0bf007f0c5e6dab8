"""Logs of users who are in several experiments, whose arms events say."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from streamer.query.readout import Readout
from streamer.query.readout import readout_of as readout
from streamer.settings.durations import DAY_MS, day_of
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay

FIRST = datetime.date(2026, 11, 2)
FIRST_MS = day_of(FIRST) * DAY_MS
Arms = Callable[[int], Mapping[str, str]]
"""Number of a user → experiment → arm."""


def experiment(name: str, **more: Any) -> dict[str, Any]:
    """Settings of one of two arms, old and new."""
    split = {"old": 1, "new": 1}
    return {"name": name, "control": "old", "split": split, "start": FIRST, **more}


def events(
    users: int, arms: Arms, days: int = 1, rate: Callable[[Mapping[str, str]], float] | None = None
) -> Iterator[dict[str, Any]]:
    """Each user has five impressions a day with the arms under ``experiments``, and clicks each
    with a probability of ``rate``, 20 % by default."""
    dice = Random(7)
    for day in range(days):
        for user in range(users):
            at = FIRST_MS + day * DAY_MS + 1_000 * user
            own = arms(user)
            ids = {"user_id": f"u{user}", "request_id": f"r{day}", "experiments": own}
            for i in range(5):
                item = {"item_id": f"i{i}", **ids}
                yield {"type": "impression", "ts": at + i, **item}
                if dice.random() < (rate(own) if rate else 0.2):
                    yield {"type": "click", "ts": at + 100 + i, **item}


def exposure(user: int, name: str, arm: str, at_ms: int) -> dict[str, Any]:
    """An event of exposures."""
    ids = {"user_id": f"u{user}", "experiment": name, "arm": arm}
    return {"type": "exposure", "ts": at_ms, **ids}


def halves(user: int) -> Mapping[str, str]:
    """Arms of the experiment `prices`, half of the users each."""
    return {"prices": ("old", "new")[user % 2]}


def readout_of(
    arms: Arms = halves, users: int = 600, days: int = 8, new: float = 0.2, **more: Any
) -> Readout:
    """The readout of the experiment `prices`, with its history: clicks follow 20 % of impressions,
    and a share of ``new`` in the arm `new`."""
    own = experiment("prices", arm="experiments", **more)
    settings = parse({"experiments": [own], "dimensions": []})

    def rate(of: Mapping[str, str]) -> float:
        return new if of.get("prices") == "new" else 0.2

    stored = replayed(settings, list(events(users, arms, days, rate))).experiments()["prices"]
    return readout(stored, stored.read(), with_history=True)


def replayed(settings: Settings, log: Sequence[Mapping[str, Any]], partitions: int = 1) -> Replay:
    """All of it is read."""
    replay = Replay(settings, partitions)
    lines = [(LINE_TYPES[e["type"]], e["ts"], msgspec.json.encode(e)) for e in log]
    replay.feed(lines)
    replay.finish()
    return replay
