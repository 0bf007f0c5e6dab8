"""Made-up visitors of two variants, as events in order of time."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.workers import as_toml

Event = dict[str, Any]
DAY_MS = 86_400_000
SLATE = 10
FIRST = datetime.date(2025, 6, 2)
FIRST_MS = int(datetime.datetime(2025, 6, 2, tzinfo=datetime.UTC).timestamp()) * 1000


def experiment(**more: Any) -> dict[str, Any]:
    """The settings of an experiment of the two variants, from the first day on."""
    arms = {"dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}}
    return {"name": "ranker", **arms, "start": FIRST, **more}


def written(folder: Path, users: int, *experiments: dict[str, Any]) -> tuple[str, str]:
    """Paths of a log of four days of visits, and of settings with these experiments."""
    log, config = folder / "events.ndjson", folder / "streamer.toml"
    events = visits(3, users, FIRST_MS, 4, 0.2, 1)
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    config.write_text(as_toml({"experiments": list(experiments)}))
    return str(log), str(config)


def visits(
    seed: int, users: int, first_ms: int, days: int, effect: float, covariate_days: int = 0
) -> list[Event]:
    """Events of users who come about once a day, split over variants A and B at random.

    In B items are clicked more by the factor 1 + ``effect``. In the days before, there was only
    the variant ``before``.
    """
    dice = random.Random(seed)
    found: list[Event] = []
    for user in range(users):
        arm, liking = dice.choice("AB"), dice.betavariate(4, 26)
        for day in range(-covariate_days, days):
            if dice.random() < 0.6:
                variant = arm if day >= 0 else "before"
                rate = liking * (1 + effect * (variant == "B"))
                ts = first_ms + day * DAY_MS + dice.randrange(DAY_MS - 600_000)
                found += _visit(dice, f"u{user}", f"{user}-{day}", ts, variant, rate)
    return sorted(found, key=lambda event: event["ts"])


def _visit(
    dice: random.Random, user: str, request: str, ts: int, variant: str, rate: float
) -> Iterator[Event]:
    """A slate; the rate of clicks falls with the position, and some clicks are followed by more."""
    surface = dice.choices(("home", "search", "product"), (5, 3, 1))[0]
    items = [f"i{number}" for number in dice.sample(range(300), SLATE)]
    segment = {"variant": variant, "surface": surface}
    same = {"user_id": user, "request_id": request}
    shown = [{"item_id": item, "score": int(item[1:]) % 60 / 150} for item in items]
    yield {"type": "impression", "ts": ts, **same, **segment, "items": shown}
    for position, item in enumerate(items):
        if dice.random() < rate * 1.6 * 0.85**position:
            clicked = ts + 2000 * (position + 1)
            dwell_ms = int(dice.lognormvariate(9.5, 1.0))
            yield {"type": "click", "ts": clicked, **same, "item_id": item, "dwell_ms": dwell_ms}
            if dice.random() < 0.12:
                value = round(dice.lognormvariate(3.0, 0.6), 2)
                bought = clicked + 60_000
                yield {"type": "conversion", "ts": bought, **same, "item_id": item, "value": value}
