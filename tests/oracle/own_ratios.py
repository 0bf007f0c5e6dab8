"""Ratios of one's own, event by event: what each adds to a part, where it counts, and what is
shown."""

from __future__ import annotations

import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from streamer.settings.model import Settings
from streamer.settings.own_metrics import OwnRatio, RatioPart

from .acceptance import Acceptance
from .dimensions import Dims, Kept, Segment
from .joining import Joins, effective_dims
from .sessions import sessions_of
from .shape import Event, Row, Shown
from .sink import QUANTILES, Sink
from .slates import slates_of
from .span import Span
from .users import Tally

MICROS = 10**6
SMALLEST = 1000
"""The least magnitude that quantiles tell from 0: 0.001."""
SIGNS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
WITH_TAILS = ("value", "dwell_ms")


@dataclass(frozen=True)
class Value:
    """What something adds to a part of a ratio: in millionths, where that is of a field."""

    partition: int
    who: str
    is_of_user: bool
    event_ms: int
    dims: Dims
    ratio: str
    is_above: bool
    amount: int


# What a part is of ----------------------------------------------------------------------------


def topic_of(part: RatioPart) -> str | None:
    """The events that it is of; None: something else is counted."""
    if part.kind in ("slates", "people") or (part.kind == "sessions" and part.field is None):
        return None
    own = {"lines": "conversions"} | {k: k for k in ("impressions", "conversions", "sessions")}
    return own.get(part.kind, "clicks")


def is_of_kind(part: RatioPart, event: Event) -> bool:
    """Whether an event, or a line of it, is one that a part is of."""
    if event.topic != topic_of(part):
        return False
    if event.topic == "clicks":
        return event.kind == ("click" if part.kind == "clicks" else part.kind)
    is_order = part.kind == "conversions" and part.field is None
    return not (is_order and event.line)


def is_over_people(ratio: OwnRatio) -> bool:
    return ratio.denominator is not None and ratio.denominator.kind == "people"


def is_amount(ratio: OwnRatio) -> bool:
    """Whether both parts are in millionths, as one that is below counts a field."""
    return ratio.denominator is not None and ratio.denominator.field is not None


def unit_of(settings: Settings, name: str) -> int:
    """How many units of the numerator over those of the denominator are 1."""
    (ratio,) = (each for each in settings.ratios if each.name == name)
    return MICROS if ratio.numerator.field is not None and not is_amount(ratio) else 1


def is_share(settings: Settings, name: str) -> bool:
    """Whether it counts events of events, in percent."""
    (ratio,) = (each for each in settings.ratios if each.name == name)
    parts = (ratio.numerator, ratio.denominator)
    return ratio.unit == "percent" and all(p is None or p.field is None for p in parts)


def may_be_below_0(settings: Settings, name: str) -> bool:
    (ratio,) = (each for each in settings.ratios if each.name == name)
    return ratio.numerator.field not in (None, *WITH_TAILS)


# What is asked --------------------------------------------------------------------------------


def passes(value: str | float | None, wanted: Any) -> bool:
    """Whether a value, as it is written or as a number, is what it has to be."""
    if value is None:
        return False
    number = value if isinstance(value, float) else number_of(value)
    if isinstance(wanted, dict):
        return number is not None and all(SIGNS[s](number, n) for s, n in wanted.items())
    for one in wanted if isinstance(wanted, tuple) else (wanted,):
        if isinstance(one, bool):
            one = "true" if one else "false"
        if isinstance(one, str):
            if value == one:
                return True
        elif number is not None and number == one:
            return True
    return False


def number_of(text: str) -> float | None:
    if not NUMBER.fullmatch(text):
        return None
    found = float(text)
    return found if isfinite(found) else None


def asked_of(event: Event, shown: Shown | None, field: str) -> str | float | None:
    """What is asked of it, which also stands beside the lines of an order."""
    if field != "value" and field in event.asked:
        return event.asked[field]
    return said_by(event, shown, field)


def said_by(event: Event, shown: Shown | None, field: str) -> str | float | None:
    """What an event, or the item that it shows, says in a field."""
    of_item: dict[str, Any] = {}
    if shown is not None:
        of_item = {"item_id": shown.item_id, "item_category": shown.category}
        for name, number in (("score", shown.score), ("position", shown.position)):
            of_item[name] = None if number is None else float(number)
    else:
        of_item["item_id"] = event.item_id
        if event.dwell_ms is not None and not event.line:
            of_item["dwell_ms"] = float(event.dwell_ms)
        if event.rating is not None:
            of_item["rating"] = float(event.rating)
    if shown is not None:
        of_item = {**shown.texts, **shown.numbers, **of_item}
    found: str | float | None = {**event.texts, **event.numbers, **of_item}.get(field)
    return found


def is_wanted(
    part: RatioPart, event: Event, shown: Shown | None, joins: Joins, settings: Settings
) -> bool:
    """Whether an event meets all that a part asks, of it and of the impression that it joined."""
    named = dict(zip(settings.dimension_names, effective_dims(event, joins), strict=False))
    for path, wanted in part.where.items():
        if path.startswith("impression."):
            row = joins.joined.get(event.address)
            if row is None or not passes(said_by_row(row, path[11:], settings), wanted):
                return False
        elif path in named:
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            if named[path] not in {
                str(v).lower() if v in (True, False) else str(v) for v in values
            }:
                return False
        elif not passes(asked_of(event, shown, path), wanted):
            return False
    return True


def said_by_row(row: Row, field: str, settings: Settings) -> str | float | None:
    if field in settings.dimension_names:
        return row.event.dims[settings.dimension_names.index(field)]
    return said_by(row.event, row.shown, field)


# What is added --------------------------------------------------------------------------------


def amounts(
    part: RatioPart, event: Event, joins: Joins, settings: Settings, counts_millionths: bool
) -> Iterator[int]:
    """What an event adds to a part: something for each item that it shows."""
    if not is_of_kind(part, event):
        return
    for shown in event.shown if event.topic == "impressions" else (None,):
        if not is_wanted(part, event, shown, joins, settings):
            continue
        if part.field is None:
            orders = event.orders if event.topic == "conversions" else 1
            if orders:
                yield orders * (MICROS if counts_millionths else 1)
        else:
            found = said_by(event, shown, part.field)
            if found is not None:
                yield round(float(found) * 1e6) * (-1 if event.is_return else 1)


def values_of(verdict: Acceptance, joins: Joins, settings: Settings) -> Iterator[Value]:
    """Everything that counts, under its effective values of dimensions."""
    for ratio in settings.ratios:
        sides = [(True, ratio.numerator)]
        if ratio.denominator is not None and ratio.denominator.kind != "people":
            sides.append((False, ratio.denominator))
        for is_above, part in sides:
            yield from of_other_things(part, ratio, is_above, verdict, joins, settings)
            for event in verdict.events if topic_of(part) else ():
                dims = effective_dims(event, joins)
                who = (event.partition, event.who, event.person is not None, event.event_ms)
                for amount in amounts(part, event, joins, settings, is_amount(ratio)):
                    yield Value(*who, dims, ratio.name, is_above, amount)


def of_other_things(
    part: RatioPart,
    ratio: OwnRatio,
    is_above: bool,
    verdict: Acceptance,
    joins: Joins,
    settings: Settings,
) -> Iterator[Value]:
    """Sessions and slates, which are made of several events."""
    amount = MICROS if is_amount(ratio) else 1
    if part.kind == "sessions" and part.field is None:
        for session in sessions_of(verdict.events, settings):
            at = (*session.user, True, session.ended_ms, session.dims)
            yield Value(*at, ratio.name, is_above, amount)
    if part.kind == "slates":
        for slate in slates_of(joins, settings):
            event = slate.event
            who = (event.partition, event.who, event.person is not None)
            yield Value(*who, event.event_ms, event.dims, ratio.name, is_above, amount)


# Ratios of sums -------------------------------------------------------------------------------


def components(ratio: OwnRatio) -> tuple[str, str]:
    """Numerator and denominator; ``1`` where experiments compare it per user."""
    below = ratio.denominator
    is_per_user = below is None or below.kind == "people"
    return f"own {ratio.name} above", "1" if is_per_user else f"own {ratio.name} below"


def ratios(settings: Settings) -> dict[str, tuple[str, str]]:
    """Metric → its components: numerator and denominator."""
    return {f"ratio@{ratio.name}": components(ratio) for ratio in settings.ratios}


def added(
    verdict: Acceptance, joins: Joins, settings: Settings
) -> Iterator[tuple[Value, str, int]]:
    """(value, component, amount) of what intervals, experiments and alerts need: of ratios over
    people only what people did."""
    by_person = {ratio.name for ratio in settings.ratios if is_over_people(ratio)}
    for value in values_of(verdict, joins, settings):
        if value.ratio in by_person and not value.is_of_user:
            continue
        side = "above" if value.is_above else "below"
        yield value, f"own {value.ratio} {side}", value.amount


# What is shown --------------------------------------------------------------------------------


@dataclass
class RatioReadings:
    """What is shown of a log's ratios."""

    verdict: Acceptance
    joins: Joins
    kept: Kept
    settings: Settings

    def read(self, out: Sink, span: Span, tallied: Mapping[Segment, Tally]) -> None:
        """All series of a window; ``tallied``: its users."""
        sums: Counter[tuple[str, bool, Segment]] = Counter()
        each: dict[tuple[str, Segment], list[int]] = defaultdict(list)
        of_users: Counter[tuple[str, Segment]] = Counter()
        by_person = {ratio.name for ratio in self.settings.ratios if is_over_people(ratio)}
        for value in values_of(self.verdict, self.joins, self.settings):
            if not span.covers(value.event_ms):
                continue
            for segment in self.kept.segments(value.dims):
                sums[value.ratio, value.is_above, segment] += value.amount
                if value.is_above and (value.is_of_user or value.ratio not in by_person):
                    each[value.ratio, segment].append(value.amount)
                if value.is_above:
                    of_users[value.ratio, segment] += value.amount * value.is_of_user
        for ratio in self.settings.ratios:
            segments = {segment for name, _, segment in sums if name == ratio.name}
            for segment in segments | {*tallied}:
                labels = {"window": span.label, "ratio": ratio.name, **dict(segment)}
                above = sums[ratio.name, True, segment]
                if is_over_people(ratio):
                    above = of_users[ratio.name, segment]
                    below = tallied[segment].users if segment in tallied else 0
                    self.put(out, ratio, labels, above, below)
                else:
                    self.put(out, ratio, labels, above, sums[ratio.name, False, segment])
                if ratio.quantiles:
                    read_quantiles(out, labels, each[ratio.name, segment])

    def put(
        self, out: Sink, ratio: OwnRatio, labels: dict[str, str], above: int, below: int
    ) -> None:
        has_micros = ratio.numerator.field is not None or is_amount(ratio)
        x = Fraction(above, MICROS if has_micros else 1)
        y = Fraction(below, MICROS if is_amount(ratio) else 1)
        out.support("window_ratio_numerator", labels, float(x))
        if ratio.denominator is not None:
            out.support("window_ratio_denominator", labels, float(y))
            out.ratio("ratio", labels, x, y)


def read_quantiles(out: Sink, labels: dict[str, str], some: list[int]) -> None:
    ranked = sorted(some)
    for text, q in QUANTILES.items() if some else ():
        rank = max(1, -(-q.numerator * len(ranked) // q.denominator))
        value = shown_as(ranked[rank - 1])
        out.put("ratio_quantile", {"quantile": text, **labels}, value / 1e6)


def shown_as(value: int) -> int:
    """A value as far as quantiles tell magnitudes apart."""
    return 0 if abs(value) < SMALLEST else value
