"""What random events say to custom metrics."""

from __future__ import annotations

from random import Random
from typing import Any

from streamer.settings.model import Settings

from .values import fields_of_custom

ODD = (0, -0.0, 7, 0.0000004, 0.0000005, -0.000999, 0.001, 1e12, -1e12, 1e9, 1.5e9, None)
Payload = dict[str, Any]


def numbers(random: Random, settings: Settings, topic: str, share: float) -> Payload:
    """Each field with this probability: mostly of an ordinary size, sometimes below 0."""
    found: Payload = {}
    for field in fields_of_custom(settings, topic):
        if random.random() < share:
            ordinary = random.lognormvariate(3, 2) * random.choice((1, 1, 1, -1))
            found[field] = random.choice((ordinary, round(ordinary, 3), round(ordinary)))
            if random.random() < 0.03:
                found[field] = random.choice(ODD)
    return found
