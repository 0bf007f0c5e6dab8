"""A list that is shown to a device and clicked by the user who then logged in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.settings.load import parse
from tests.support.agreement import read_engines
from tests.support.engines import Engines, LogRecord, chunks_of

MS = 1_793_527_200_000


def counted(fields: dict[str, Any]) -> dict[str, float]:
    """What counts of a hundred devices whose users log in between the list and the click; users are
    those with an impression."""
    source = {
        "topics": ["web"],
        "kind": {"field": "event", "impression": ["shown"], "click": ["clicked"]},
        "fields": {"ts": "ts", "item_id": "item", **fields},
    }
    settings = parse({"sources": [source], "windows": {"lengths": ["1h"]}, "dimensions": []})
    log: list[LogRecord] = []
    for n in range(100):
        shown = {"event": "shown", "ts": MS + 20 * n, "item": n % 7, "device": f"d{n}"}
        clicked = {**shown, "event": "clicked", "ts": MS + 20 * n + 10, "user": f"u{n}"}
        for event in (shown, clicked):
            value = json.dumps(event).encode()
            log.append(LogRecord("web", 0, len(log), MS + 5_000, value))
    engines = Engines(settings, 1)
    for chunk in chunks_of(log, 30, seed=1):
        engines.feed(chunk)
    engines.finish()
    found = {
        name.removeprefix("streamer_window_"): value
        for (name, labels), value in read_engines(engines).items()
        if dict(labels).get("maturity", "provisional") == "provisional"
    }
    return {name: found.get(name, 0) for name in ("impressions", "ctr_attributed_clicked", "users")}


@pytest.mark.parametrize(
    ("fields", "joined", "users"),
    [
        ({"user_id": ["user", "device"]}, 0, 100),
        ({"user_id": ["user", "device"], "join_id": "device"}, 100, 100),
        ({"user_id": "user", "join_id": "device"}, 100, 100),
        ({"user_id": "device"}, 100, 100),
    ],
    ids=[
        "the user changes",
        "with an id of joins",
        "without a user before the login",
        "the device is the user",
    ],
)
def test_what_a_login_joins_and_counts(fields: dict[str, Any], joined: int, users: int) -> None:
    found = counted(fields)
    assert found["impressions"] == 100
    assert (found["ctr_attributed_clicked"], found["users"]) == (joined, users)
