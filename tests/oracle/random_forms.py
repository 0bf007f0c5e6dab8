"""Events written otherwise: ids as numbers, nobody as the user, odd values of dimensions, times of
all kinds, lists of bare ids, orders with lines."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from streamer.settings.model import Settings

from .random_fields import own_fields
from .random_visits import Payload, time_text

ODD_VALUES: tuple[Any, ...] = (
    *(
        "all",
        "other",
        "unknown",
        "all (value)",
        "New York",
        "Zürich 😀",
        'a "b"\\ {c}\n\t',
        " ",
        "\x7f",
    ),
    *("x" * 128, "x" * 129, "x" * 1000, "é" * 129, "7", 7, -0.5, 1e22, 10**20, "true", True, False),
    *("", None, [], ["A"], {"A": 1}),
)
ODD_FEEDBACK = ("sha re ✓", 'like "it"\n', "x" * 128, "")
_ID = re.compile(r"[a-z]+([0-9]*[05])")
"""Of such an id only the number is written, now as a text and then as an integer."""
_IDS = (
    *("user_id", "item_id", "event_id", "request_id", "session_id", "held_out", "item_category"),
    *("join_id", "impression_id"),
)


class Forms:
    """Dice of their own, so that events are the same whatever the forms are."""

    def __init__(self, seed: int, settings: Settings, items: list[str]) -> None:
        self.dice = Random(f"forms {seed}")
        self.settings = settings
        self.items = items
        self.zone = ZoneInfo(settings.events.zone)
        self.other_dice = other = Random(f"ids {seed}")
        self.joins = other.choice((0.0, 0.0, 0.3, 1.0))
        self.unnamed = other.choice((0.0, 0.0, 0.3, 1.0))
        self.devices: dict[str, str] = {}
        self.is_joined: dict[str | None, bool] = {}
        self.of_impressions = Random(f"impressions {seed}")
        self.are_named = self.of_impressions.choice((0.0, 0.0, 0.3, 1.0))
        self.impressions: dict[tuple[str, str], str] = {}

    def user(self, user: str) -> str:
        """The user of an episode, "" for nobody."""
        return "" if self.dice.random() < 0.06 else user

    def value(self, value: str) -> Any:
        """The value of a dimension."""
        return self.dice.choice(ODD_VALUES) if self.dice.random() < 0.02 else value

    def event(self, payload: Payload, is_in_time: bool) -> Payload:
        """An event; its time is left alone where it is not in time."""
        dice = self.dice
        payload = self.with_ids(payload)
        if payload["type"] == "click" and "feedback" in payload and dice.random() < 0.02:
            payload["feedback"] = dice.choice(ODD_FEEDBACK)
        if payload["type"] in ("click", "conversion") and dice.random() < 0.1:
            self.into_lines(payload)
        self.name_impressions(payload)
        if isinstance(payload.get("items"), list):
            payload["items"] = self.listed(payload["items"])
        if isinstance(payload.get("reference"), list):
            payload["reference"] = [self.id(item) for item in payload["reference"]]
        for field in ("ts", "start_ts", "end_ts"):
            if isinstance(payload.get(field), int) and is_in_time:
                payload[field] = self.time(payload[field])
        if payload["user_id"] == "" or dice.random() < 0.01:
            self.nobody(payload)
        return self.written(payload)

    def with_ids(self, payload: Payload) -> Payload:
        """An event with an id of joins, which some share, before a login without a user; or one of
        a session without an id."""
        dice, user, payload = self.other_dice, payload["user_id"], dict(payload)
        if payload["type"] == "session":
            if dice.random() < self.unnamed:
                payload["session_id"] = dice.choice(("", None))
                if dice.random() < 0.5:
                    del payload["session_id"]
        elif self.has_join(payload.get("request_id")):
            payload["join_id"] = self.devices.setdefault(user, f"d{dice.randrange(40)}")
            if payload["type"] == "impression" and dice.random() < 0.3:
                payload["user_id"] = ""
        elif dice.random() < 0.02:
            payload["join_id"] = dice.choice(("", None))
        return payload

    def name_impressions(self, payload: Payload) -> None:
        """Impressions and feedback that say which one, with an item or without; one shown twice has
        one id, and sometimes feedback that of another."""
        dice, elements = self.of_impressions, payload.get("items")
        is_compared = "reference" in payload or payload.get("held_out") is not None
        if payload["type"] == "session" or is_compared:
            return
        for one in elements if isinstance(elements, list) else [payload]:
            if "item_id" not in one or dice.random() >= self.are_named:
                continue
            of = (payload["user_id"], one["item_id"])
            known = self.impressions.setdefault(of, f"m{len(self.impressions)}")
            one["impression_id"] = known if dice.random() < 0.9 else f"m{dice.randrange(9)}"
            if dice.random() < 0.3:
                del one["item_id"]

    def has_join(self, request: str | None) -> bool:
        """Whether an event has an id of joins: all of a request, or none."""
        drawn = self.other_dice.random() < self.joins
        return drawn if request is None else self.is_joined.setdefault(request, drawn)

    def shorter(self, time: str) -> str:
        """A time whose offset of whole hours may have no minutes."""
        is_whole = time.endswith(":00") and time[-6] in "+-"
        return time[:-3] if is_whole and self.other_dice.random() < 0.5 else time

    def into_lines(self, payload: Payload) -> None:
        """Feedback on several items, or an order: the item, again perhaps, and others."""
        dice = self.dice
        is_click = payload["type"] == "click"
        kind, own = ("clicks", "position") if is_click else ("conversions", "value")
        first = payload.pop("item_id")
        said = payload.pop(own) if own in payload and dice.random() < 0.8 else None
        lines = []
        for n in range(dice.choice((1, 1, 2, 3))):
            item = first if n == 0 or dice.random() < 0.2 else dice.choice(self.items)
            line: Payload = {"item_id": item, **own_fields(dice, self.settings, kind, 0.3)}
            if said is not None and (n == 0 or dice.random() < 0.7):
                line[own] = (
                    said if n == 0 else dice.choice((1, 2, 30) if is_click else (0, 7.5, said))
                )
            if "rating" in payload and n != 1:
                line["rating"] = payload["rating"]
            lines.append(line)
        payload["items"] = lines
        if dice.random() < 0.2:
            payload["item_id"] = dice.choice(("", None))

    def listed(self, elements: list[Any]) -> list[Any]:
        """Elements of a list, some of which are ids alone."""
        share = self.dice.choice((0.0, 0.0, 0.0, 0.3, 1.0))
        return [
            self.id(x["item_id"])
            if self.dice.random() < share and "impression_id" not in x
            else self.written(x)
            for x in elements
        ]

    def nobody(self, payload: Payload) -> None:
        payload["user_id"] = self.dice.choice(("", None))
        if self.dice.random() < 0.5:
            del payload["user_id"]

    def time(self, time_ms: int) -> Any:
        """A time: mostly as it is."""
        dice = self.dice
        if dice.random() >= (0.08 if self.zone.key == "UTC" else 0.5):
            return time_ms
        wall = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(self.zone)
        local = f"{wall:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}"
        zoned = (local, local.replace("T", " "), time_text(time_ms, " UTC"))
        return dice.choice((time_ms + 0.25, time_ms + 0.75, str(time_ms), f"{time_ms}.9", *zoned))

    def written(self, payload: Payload) -> Payload:
        """Ids and positions as they are written."""
        found = {k: self.id(v) if k in _IDS else v for k, v in payload.items()}
        if isinstance(found.get("position"), int):
            found["position"] += self.settings.events.positions_from - 1
        return found

    def id(self, text: Any) -> Any:
        """An id: the number alone, where it ends in 0 or 5."""
        match = _ID.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            return text
        return int(match[1]) if self.dice.random() < 0.5 else str(int(match[1]))
