"""Values of single fields, as the oracle lets them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamer.settings.model import Settings
from streamer.settings.own_metrics import RatioPart

from .parsing import Decimals, Whole, broken
from .shape import KINDS

MAX_ITEMS = 1000
MAX_SCORE = 1_000_000
MAX_RATING = 100
MAX_VALUE = 1e12
MAX_AMOUNT = 1e12
MAX_LABEL = 128
MAX_ID_BYTES = 512

Get = Callable[[str], Any]


def integer(value: Any, low: int, high: int, reason: str) -> int:
    if not isinstance(value, int) or value is True or value is False or not low <= value <= high:
        broken(reason)
    return int(value)


def number(value: Any, reason: str) -> float:
    """A finite JSON number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        broken(reason)
    try:
        result = float(value)
    except OverflowError:
        broken(reason)
    if result in (float("inf"), float("-inf")):
        broken(reason)
    return result


def identity(value: Any, reason: str) -> str:
    """A text or an integer: 17 and "17" are the same."""
    if isinstance(value, Whole):
        value = value.text
    if not isinstance(value, str) or not 1 <= len(value.encode()) <= MAX_ID_BYTES:
        broken(reason)
    return value


def optional_identity(value: Any, reason: str) -> str | None:
    return None if value in (None, "") else identity(value, reason)


def label_or_none(value: Any) -> str:
    return value if isinstance(value, str) else ""


def label(value: Any, reason: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LABEL:
        broken(reason)
    return value


def dimension(value: Any) -> str | None:
    """A dimension's own value; None when missing or said to be unknown. Numbers and booleans are
    what they are written as; lists and objects are none."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, Whole | Decimals):
        value = value.text
    if not isinstance(value, str) or value in ("", "unknown"):
        return None
    return f"{value} (value)" if value in ("all", "other") else value[:MAX_LABEL]


def is_cut(value: Any) -> bool:
    """Whether a dimension's value is too long."""
    text = value.text if isinstance(value, Whole | Decimals) else value
    return isinstance(text, str) and len(text) > MAX_LABEL


def position(value: Any, settings: Settings, reason: str = "position") -> int | None:
    """A position from 1, whichever number the first one has."""
    if value is None:
        return None
    first = settings.events.positions_from
    return integer(value, first, 9_999 + first, reason) - first + 1


def scored(value: Any, reason: str) -> float | None:
    """The score of a shown item."""
    if value is None:
        return None
    score = number(value, reason)
    if abs(score) > MAX_SCORE:
        broken(reason)
    return score


def rated(value: Any, reason: str) -> float | None:
    """The rating of an item."""
    rating = None if value is None else number(value, reason)
    if rating is not None and abs(rating) > MAX_RATING:
        broken(reason)
    return rating


def fields_of_policies(settings: Settings) -> dict[str, str]:
    """Fields that say something of policies → the reason of a wrong value."""
    found = {"propensity": "propensity", "reward_estimate": "reward_estimate"}
    for policy in settings.policies:
        if policy.propensity is not None:
            found[policy.propensity] = "propensity"
        if policy.estimate is not None:
            found[policy.estimate] = "reward_estimate"
    return found


def probability(field: str, value: Any, reason: str) -> float:
    """A number from 0 to 1; only the logging policy's cannot be 0."""
    found = number(value, reason)
    if not 0 <= found <= 1 or (field == "propensity" and found == 0):
        broken(reason)
    return found


def said_of_policies(get: Get, reasons: Mapping[str, str]) -> dict[str, float]:
    given = {field: get(field) for field in reasons}
    return {f: probability(f, v, reasons[f]) for f, v in given.items() if v is not None}


ANYWAY = ("score", "dwell_ms", "rating", "value", "position", "item_id", "item_category")
"""Fields that ratios may name, and that events have anyway."""


def parts_of_ratios(settings: Settings) -> list[tuple[str, RatioPart]]:
    """Topic of the events → each part of a ratio that is of some."""
    found = []
    for ratio in settings.ratios:
        for part in (ratio.numerator, ratio.denominator):
            if part is not None and part.kind not in ("people", "slates"):
                topic = {"lines": "conversions"}.get(part.kind, part.kind)
                found.append((topic if topic in KINDS else "clicks", part))
    return found


def fields_of_ratios(settings: Settings, topic: str) -> list[str]:
    """Numbers of a topic's events that are there for ratios alone."""
    fields = {part.field for of, part in parts_of_ratios(settings) if of == topic and part.field}
    return sorted(fields - {*ANYWAY})


def asked_by_ratios(settings: Settings, topic: str) -> list[str]:
    """Other fields of a topic's events that ratios ask for alone."""
    found = set()
    for of, part in parts_of_ratios(settings):
        for path in part.where:
            field = path.removeprefix("impression.")
            if topic == ("impressions" if field != path else of):
                found.add(field)
    own = {*ANYWAY, *settings.dimension_names, *fields_of_ratios(settings, topic)}
    return sorted(found - own)


def texts(get: Get, fields: list[str]) -> dict[str, str]:
    """What fields say, as it is written; lists and objects say nothing."""
    given = {field: as_written(get(field)) for field in fields}
    return {field: text for field, text in given.items() if text}


def as_written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Whole | Decimals):
        return str(value.text)
    return value if isinstance(value, str) else ""


def bounded(value: Any, reason: str) -> float:
    """A number that ratios add up."""
    found = number(value, reason)
    if abs(found) > MAX_AMOUNT:
        broken(reason)
    return found


def numbers(get: Get, fields: list[str], reason: str) -> dict[str, float]:
    given = {field: get(field) for field in fields}
    return {field: bounded(v, reason) for field, v in given.items() if v is not None}


def reference(value: Any) -> tuple[str, ...]:
    """A list of items, best first; empty where it is missing."""
    if value is None:
        return ()
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_ITEMS:
        broken("reference")
    return tuple(identity(part, "reference") for part in value)


def worth(value: Any, reason: str) -> float | None:
    """What a conversion is worth."""
    if value is None:
        return None
    found = number(value, reason)
    if abs(found) > MAX_VALUE:
        broken(reason)
    return found
