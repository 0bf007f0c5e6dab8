"""What random events say to ratios."""

from __future__ import annotations

from random import Random
from typing import Any

from streamer.settings.model import Settings

from .values import asked_by_ratios, fields_of_ratios

ODD = (0, -0.0, 7, 0.0000004, 0.0000005, -0.000999, 0.001, 1e12, -1e12, 1e9, 1.5e9, None)
ASKED: tuple[Any, ...] = (
    *("spring", "spring", "autumn", "autumn", "Spring", "", "5", " 5", "5.0", "1e1", "true"),
    *(5, 5.0, 6, -3, 10, True, False, None, [], {"spring": 1}, "x" * 200, "sp\u00e9cial"),
)
Payload = dict[str, Any]


def own_fields(random: Random, settings: Settings, topic: str, share: float) -> Payload:
    """Each field with this probability: numbers mostly of an ordinary size, sometimes below 0."""
    found: Payload = {}
    for field in fields_of_ratios(settings, topic):
        if random.random() < share:
            ordinary = random.lognormvariate(3, 2) * random.choice((1, 1, 1, -1))
            found[field] = random.choice((ordinary, round(ordinary, 3), round(ordinary)))
            if random.random() < 0.03:
                found[field] = random.choice(ODD)
    for field in asked_by_ratios(settings, topic):
        if random.random() < share:
            found[field] = random.choice(ASKED if random.random() < 0.5 else ASKED[:4])
    return found
