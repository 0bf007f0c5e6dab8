"""Settings of metrics of one's own.

Ratios divide sums of any fields of events without code, composites weigh several metrics together,
and policies are what else could have been shown, whose click-through rate is estimated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from streamer.settings.event_fields import ALL_KINDS, KINDS
from streamer.settings.section import Section

KNOWN_FIELDS = {
    "impressions": ("score",),
    "clicks": ("dwell_ms", "rating"),
    "conversions": ("value",),
    "sessions": ("dwell_ms",),
}
"""Kind of events → its own numeric fields that ratios can add up, too."""
ASKED_FIELDS = {
    "impressions": ("score", "position", "item_id", "item_category"),
    "clicks": ("dwell_ms", "rating", "item_id"),
    "conversions": ("value", "item_id"),
    "sessions": ("dwell_ms", "item_id"),
}
"""Kind of events → its own fields that `where` can ask for, too."""
JOINED = "impression."
"""How the path of a field begins that is the impression's which feedback joined."""
PEOPLE = "people"
OF_KIND = {kind: kind for kind in KINDS} | {"lines": "conversions"}
"""Kind of a part → the events that it is of; kinds of feedback are clicks, and others are none."""
COUNTS = ("slates", PEOPLE)
"""Kinds that are counted and nothing else."""
Scalar = str | bool | int | float
Bounds = Mapping[str, float]
Where = Scalar | tuple[Scalar, ...] | dict[str, float]
"""What a field has to be: a value, one of several, or within bounds by their signs."""
SIGNS = {">": "above", "<": "below", ">=": "at_least", "<=": "at_most"}
"""Sign → what the core calls it."""


class RatioPart(Section, frozen=True):
    """[ratios.numerator]: a sum of a ratio; `[ratios.denominator]` likewise."""

    kind: str
    """Events to count: `impressions` (each shown item), `clicks` or another kind in
    `metrics.feedback`, `conversions` (orders), `lines` of orders, or `sessions` that ended; also
    `slates`, and in denominators `people`, who saw an impression."""
    field: str | None = None
    """A field with a number from -1e12 to 1e12 to add up (for items in a list: the item's own, else
    the event's); also `score`, `dwell_ms`, `rating` or `value`. Without it events are counted."""
    where: dict[str, Where] = msgspec.field(default_factory=dict)
    """Field = value, list of values, or bounds as `{ ">" = 5 }`: only these events count.
    `impression.campaign` is the field `campaign` of the impression that feedback joined."""


class OwnRatio(Section, frozen=True):
    """[[ratios]]: a ratio of two sums of any fields of events, or a sum."""

    name: str
    """Value of the label `ratio`: `a-z`, `0-9` and `_`. Experiments and alerts write
    `ratio@<name>`."""
    numerator: RatioPart
    """The sum to divide: `{ kind = "conversions", field = "value" }`."""
    denominator: RatioPart | None = None
    """The sum to divide by; without it the metric is the numerator."""
    title: str = ""
    """What pages and reports call it; its name by default."""
    unit: str = ""
    """The unit of its values in words, e.g. `EUR per click`; `percent` and `seconds` are written as
    such."""
    better: str = "higher"
    """`higher` or `lower`: which is better, where an alert or an experiment does not say it."""
    quantiles: bool = False
    """Whether `ratio_quantile` of the numerator's field is shown, too; for at most 4 ratios."""


@dataclass(frozen=True)
class Condition:
    """What a field of a kind of events has to be: one of several values, or within bounds, each a
    sign and a number."""

    kind: str
    field: str
    values: tuple[Scalar, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()

    @property
    def words(self) -> str:
        """What it has to be, for people.

        >>> Condition("clicks", "x", bounds=((">", 5.0),)).words
        '> 5'
        """
        bounds = " and ".join(f"{sign} {bound:g}" for sign, bound in self.bounds)
        return bounds or f"is {' or '.join(map(written, self.values))}"

    @staticmethod
    def of(kind: str, field: str, where: Where) -> Condition:
        """As ``where`` says it."""
        if isinstance(where, dict):
            return Condition(kind, field, bounds=tuple(sorted(where.items())))
        return Condition(kind, field, values_in(where))


@dataclass(frozen=True)
class OwnSum:
    """What the core adds up for a part of a ratio. ``kind``: of events; ``feedback``: the kind of
    feedback; ``own``, ``joined``: what is asked of the event, and of its impression;
    ``is_of_users``: only of events that have a user."""

    kind: str
    feedback: str | None
    is_of_lines: bool
    field: str | None
    own: tuple[Condition, ...]
    joined: tuple[Condition, ...]
    dimensions: tuple[tuple[str, tuple[str, ...]], ...]
    is_of_users: bool

    @property
    def id(self) -> str:
        """What it is of, and a hash of what it asks.

        >>> own_sum(RatioPart(kind="lines", field="margin"), (), False).id
        'lines.margin'
        """
        kind = "lines" if self.is_of_lines else self.feedback or self.kind
        asked = (self.own, self.joined, self.dimensions, self.is_of_users)
        named = [kind, *([] if self.field is None else [self.field])]
        if any(asked):
            named.append(hashlib.blake2b(repr(asked).encode(), digest_size=4).hexdigest())
        return ".".join(named)


def event_kind(kind: str) -> str | None:
    """The events that a part is of; None for what is only counted.

    >>> event_kind("like"), event_kind("lines"), event_kind("people")
    ('clicks', 'conversions', None)
    """
    return None if kind in COUNTS else OF_KIND.get(kind, "clicks")


def values_in(where: Where) -> tuple[Scalar, ...]:
    """The values that are named, none of which is a bound."""
    if isinstance(where, dict):
        return ()
    return where if isinstance(where, tuple) else (where,)


def own_sum(part: RatioPart, dimensions: tuple[str, ...], is_of_users: bool) -> OwnSum:
    """What the core adds up for a part; values of dimensions are those that it counts under."""
    kind = event_kind(part.kind)
    assert kind is not None
    own, joined, by = [], [], []
    for path, where in sorted(part.where.items()):
        if path.startswith(JOINED):
            joined.append(Condition.of("impressions", path.removeprefix(JOINED), where))
        elif path in dimensions:
            by.append((path, tuple(map(written, values_in(where)))))
        else:
            own.append(Condition.of(kind, path, where))
    feedback = {"clicks": "click"}.get(part.kind, part.kind) if kind == "clicks" else None
    conditions = (tuple(own), tuple(joined), tuple(by))
    is_of_lines = kind == "conversions" and (part.kind == "lines" or part.field is not None)
    return OwnSum(kind, feedback, is_of_lines, part.field, *conditions, is_of_users)


def parts_of(ratio: OwnRatio) -> Iterator[tuple[RatioPart, bool]]:
    """The parts that are sums over events, and whether only those of users count."""
    is_of_users = ratio.denominator is not None and ratio.denominator.kind == PEOPLE
    yield ratio.numerator, is_of_users
    if ratio.denominator is not None and not is_of_users:
        yield ratio.denominator, False


def written(value: Scalar) -> str:
    """A value as events write it.

    >>> written("a"), written(True), written(3)
    ('a', 'true', '3')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def in_words(part: RatioPart) -> str:
    """A part for people, as every face says it.

    >>> where = {"impression.campaign": ("spring", "easter"), "price": {">": 5}}
    >>> in_words(RatioPart(kind="conversions", field="value", where=where))
    'sum of value of conversions where impression.campaign is spring or easter and price > 5'
    >>> in_words(RatioPart(kind="impressions"))
    'impressions'
    """
    whole = part.kind if part.field is None else f"sum of {part.field} of {part.kind}"
    asked = (f"{path} {Condition.of('', path, where).words}" for path, where in part.where.items())
    return f"{whole} where {' and '.join(asked)}" if part.where else whole


def words_of(ratio: OwnRatio) -> tuple[str, ...]:
    """Its numerator, and what it is divided by, for people."""
    parts = (ratio.numerator, ratio.denominator)
    return tuple(in_words(part) for part in parts if part is not None)


def definition(ratio: OwnRatio) -> str:
    """Both in a line."""
    return " / ".join(words_of(ratio))


@dataclass(frozen=True)
class OwnSums:
    """What all ratios add up and ask, each once."""

    sums: tuple[OwnSum, ...]
    amounts: tuple[tuple[str, str], ...]
    """Kinds of events and their fields."""
    conditions: tuple[Condition, ...]

    def named(self, name: str) -> OwnSum | None:
        """That of a sum ``own.count@id`` or ``own.sum@id``; None for others."""
        base, _, of = name.partition("@")
        found = (each for each in self.sums if base.startswith("own.") and each.id == of)
        return next(found, None)

    @staticmethod
    def of(ratios: tuple[OwnRatio, ...], dimensions: tuple[str, ...]) -> OwnSums:
        """Those of the settings."""
        parts = [each for ratio in ratios for each in parts_of(ratio)]
        countable = [(part, of) for part, of in parts if event_kind(part.kind) is not None]
        made = (own_sum(part, dimensions, of) for part, of in countable)
        sums = tuple(dict.fromkeys(made))
        amounts = dict.fromkeys((s.kind, s.field) for s in sums if s.field is not None)
        conditions = dict.fromkeys(c for s in sums for c in (*s.own, *s.joined))
        return OwnSums(sums, tuple(amounts), tuple(conditions))

    def fields(self, dimensions: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Kind of events → fields that only ratios read."""
        asked = [(c.kind, c.field) for c in self.conditions if c.field not in dimensions]
        own: dict[str, dict[str, None]] = {kind: {} for kind in ALL_KINDS}
        for kind, field in (*self.amounts, *asked):
            if field not in (*KNOWN_FIELDS[kind], *ASKED_FIELDS[kind]):
                own[kind][field] = None
        return {kind: tuple(fields) for kind, fields in own.items()}


class CompositePart(Section, frozen=True):
    """[[composites.parts]]: one of the metrics of a composite."""

    metric: str
    """A ratio, written as in `[[alerts]]`: `ctr_ratio`, `ndcg_ratio@10`, `snips_ratio@new`; also
    metrics of sessions, which experiments and alerts do not take."""
    weight: float = 1.0
    """Weight of the part; below 0 if lower is better."""
    against: str = "value"
    """The form of the metric: its `value`, the value divided by a `target`, or by the value of the
    same window on the `day_before`, which `windows.day_before` keeps."""
    target: float | None = None
    """With `against = "target"`: the divisor of the value, above 0."""


class Composite(Section, frozen=True):
    """[[composites]]: several metrics as one number, the weighted mean of its parts."""

    name: str
    """Value of the label `composite`; experiments and alerts write `composite@<name>`."""
    parts: tuple[CompositePart, ...]
    """The metrics, 2 to 6."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Weights over the sum of their sizes, which is never 0, so that weights of both signs are
        a difference of means.

        >>> parts = CompositePart("ctr_ratio", 3.0), CompositePart("bounce_rate_ratio", -1.0)
        >>> Composite("health", parts).shares
        (0.75, -0.25)
        """
        total = sum(abs(part.weight) for part in self.parts)
        return tuple(part.weight / total for part in self.parts)


class Policy(Section, frozen=True):
    """[[policies]]: a policy whose click-through rate is estimated from impressions of another
    one."""

    name: str
    """Value of the label `policy`."""
    propensity: str | None = None
    """Field with this policy's probability of showing the item at this position, 0 to 1."""
    positions: tuple[float, ...] = ()
    """Instead of a field: the probabilities by position from 1; further positions have 0."""
    estimate: str | None = None
    """Field with the clicks expected if this policy chooses, 0 to 1. `doubly_robust_ratio` needs
    it, and `reward_estimate` of the shown item."""

    @property
    def fields(self) -> dict[str, str]:
        """Its fields → the reason for which a wrong value is refused."""
        named = {"propensity": self.propensity, "reward_estimate": self.estimate}
        return {field: reason for reason, field in named.items() if field is not None}
