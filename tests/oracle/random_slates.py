"""How random logs show the items of a request: places, scores, order, and what else is reported."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from streamer.settings.model import Settings

from .random_fields import own_fields
from .random_visits import Payload

NEVER_SHOWN = "hidden"
PLACES = (*("given",) * 4, *("none",) * 2, "some", "gaps", "equal", "turned", "any")
SCORES = (*("none",) * 3, *("all",) * 2, *("some",) * 2, "ties", "ties", "wide")
TIED = (0.1, 0.1, 0.5, 1)
WIDE = (-1_000_000, 1e6, -0.0, 0, 3, -2.5, 1e-300, 37.25, 40)
CARRIERS = ("all", "any", "any", "first", "last", "one")
"""Which of the single impressions of a slate have its brute-force list and held-out item."""
FAR_PLACES = (50, 51, 10_000)


def probability(draw: float) -> float:
    """Half of them small."""
    return (2 * draw) ** 8 if draw < 0.5 else 2 * draw - 1


def category(item: str, n: int) -> Payload:
    """One of three, not always the same of an item; some items have none."""
    number = int(item.removeprefix("i")) if item != NEVER_SHOWN else 0
    return {"item_category": f"c{(number + n) % 3}"} if number % 4 else {}


class Slates:
    """Shows of requests, one after the other; ``items``: all that there are."""

    def __init__(self, random: Random, settings: Settings, items: list[str]) -> None:
        self.random = random
        self.items = items
        self.settings = settings
        self.fields = list(settings.policy_fields)
        times = settings.time
        self.click_ms = settings.attribution.click_ms
        self.reuse_ms = self.click_ms + times.max_lateness_ms + times.max_skew_ms

    def elements(self, items: list[str]) -> list[Payload]:
        """One for each item, in an order that need not be that of the positions."""
        r = self.random
        places, scores = r.choice(PLACES), r.choice(SCORES)
        propensities = r.choice((0.3, 0.3, 0.9))
        found = []
        for i, item in enumerate(items):
            element: Payload = {"item_id": item}
            position = self.position(places, i, len(items))
            score = self.score(scores)
            if position is not None:
                element["position"] = position
            if score is not None:
                element["score"] = score
            element |= self.said(propensities) | category(item, len(items))
            element |= own_fields(r, self.settings, "impressions", 0.4)
            found.append(element)
        return found

    def position(self, style: str, i: int, n: int) -> int | None:
        r = self.random
        styles = {
            "given": r.choice(FAR_PLACES) if r.random() < 0.03 else i + 1,
            "none": None,
            "some": i + 1 if r.random() < 0.5 else None,
            "gaps": 3 * i + 2,
            "equal": 1 + n % 3,
            "turned": n - i,
            "any": r.randint(1, 3),
        }
        return styles[style]

    def score(self, style: str) -> float | None:
        r = self.random
        value = {
            "none": None,
            "all": probability(r.random()),
            "some": round(r.gauss(0, 3), 3) if r.random() < 0.6 else None,
            "ties": r.choice(TIED),
            "wide": r.choice((*WIDE, r.gauss(0, 1e5))),
        }
        return value[style]

    def said(self, share: float) -> Payload:
        """What an element says of policies: of each field nothing, mostly, or with that share."""
        r = self.random
        found: Payload = {}
        for field in ("propensity", "reward_estimate", *self.fields):
            if r.random() < share:
                found[field] = r.choice((1 - r.random(), 1 - r.random(), 0.001, 0.5, 1))
        for field in self.fields:
            if field in found and r.random() < 0.2:
                found[field] = 0
        return found

    def probes(self, items: list[str], share: float = 0.2) -> Payload:
        """A brute-force list, the held-out item, both, or mostly neither."""
        r = self.random
        found: Payload = {}
        if r.random() < share:
            others = (*items, *self.items, NEVER_SHOWN)
            found["reference"] = [r.choice(others) for _ in range(r.choice((1, 3, 10, 40)))]
        if r.random() < share:
            found["held_out"] = r.choice((*items, *items, *self.items, NEVER_SHOWN))
        return found

    def members(self, at_ms: int, items: list[str]) -> Iterator[tuple[int, Payload, float | None]]:
        """Single impressions (event_ms, fields, milliseconds until it reaches the log, None = as
        other events), mostly in any order; what each reports beside its item is its own."""
        r = self.random
        elements = self.elements(items)
        if r.random() < 0.5:
            r.shuffle(elements)
        probes = self.probes(items)
        carriers = r.choice(CARRIERS)
        spread = r.choice((0.5,) if carriers == "any" else (0.0, 0.0, 0.0, 0.1, 0.5))
        only = {"first": 0, "last": len(items) - 1, "one": r.randrange(len(items))}
        for i, element in enumerate(elements):
            own = probes if only.get(carriers, i) == i else {}
            if carriers == "any" and r.random() < 0.5:
                own = r.choice(({}, self.probes(items, 0.6)))
            member_ms, delay_ms = at_ms, None
            if r.random() < spread:
                apart_ms = r.randint(1, max(1, self.click_ms // r.choice((20, 400))))
                is_earlier = r.random() < 0.5
                member_ms += -apart_ms if is_earlier else apart_ms
                if is_earlier and r.random() < 0.7:  # it becomes the first one afterwards
                    delay_ms = apart_ms * (1 + r.random())
            yield member_ms, own | element, delay_ms

    def again_ms(self, at_ms: int) -> int:
        """When a request is used again: about when its items can no longer be repeats."""
        r = self.random
        offset_ms = r.choice((-1, 0, 1, 1000, self.click_ms // 2, -self.click_ms // 2))
        return at_ms + self.reuse_ms * r.choice((1, 1, 2)) + offset_ms
