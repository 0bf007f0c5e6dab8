"""Sums: what the core adds up over events, each with a name and a unit.

The core has the table of them. A name may say which one it is behind ``@``: a threshold, a cut-off,
a policy, an own sum, or a kind of feedback. A statistic of windows, and sums by group of
users, of users and of alerts are known by the names of their sums.

What sums mean, where their names do not say it: sums of another meaning are not continued.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamer._core import SUMS
from streamer.metrics.definition import Values, money
from streamer.metrics.layout import Layout
from streamer.metrics.reads import Statistic, Sums
from streamer.settings.durations import DAY_MS
from streamer.settings.model import Settings

UNITS: dict[str, int] = dict(SUMS)
"""Name, without what stands behind ``@`` → how many of its integers are 1."""
OTHER_FEEDBACK = "feedback@other"
HIGH = "_high"
"""How the name of the sum of high limbs ends."""


def named(name: str, of: str) -> str:
    """A sum of something.

    >>> named("scores.predicted", "0.5")
    'scores.predicted@0.5'
    """
    return f"{name}@{of}"


@dataclass(frozen=True)
class Sum:
    """A sum as formulas know it. ``text``: what they call it; ``is_large``: it has a sum of high
    limbs beside it; ``is_signed``: it may be below 0."""

    name: str
    text: str = ""
    is_large: bool = False
    is_signed: bool = False

    @property
    def high(self) -> str | None:
        """The name of the sum of its high limbs.

        >>> Sum("own.sum@lines.margin", is_large=True).high, Sum("clicks").high
        ('own.sum_high@lines.margin', None)
        """
        base, at, of = self.name.partition("@")
        return f"{base}{HIGH}{at}{of}" if self.is_large else None

    @property
    def names(self) -> tuple[str, ...]:
        """Its own, and that of the high limbs."""
        return (self.name,) if self.high is None else (self.name, self.high)

    @property
    def unit(self) -> int:
        """How many of its integers are 1."""
        return UNITS.get(self.name.partition("@")[0], 1)


@dataclass(frozen=True)
class Summed:
    """What is read of a sum: integers of its unit, or currency; as ``Statistic`` says."""

    sum: Sum
    horizon_ms: int | None = None
    is_day_before: bool = False

    def parts(self, layout: Layout) -> Iterator[Statistic]:
        for name in self.sum.names:
            yield Statistic(name, self.horizon_ms, is_day_before=self.is_day_before)

    def of(self, sums: Sums) -> Values | None:
        read = [part.of(sums) for part in self.parts(sums.layout)]
        flat = [each if each.ndim == 1 else each.sum(axis=1) for each in read if each is not None]
        if len(flat) < len(read):
            return None
        return money(flat[1], flat[0]) if self.sum.is_large else flat[0]


def core_sum(name: str, settings: Settings) -> dict[str, Any]:
    """What the core calls a sum.

    >>> core_sum("clicks", Settings()), core_sum("scores.predicted@0.5", Settings())
    ({'name': 'clicks', 'at': 0}, {'name': 'scores.predicted', 'at': 500000000})
    """
    base, _, of = name.partition("@")
    if base == "feedback":
        return {"name": base, "at": _place_of_kind(of, settings)}
    if base == "slates":
        return {"name": base, "slates": {"population": of}}
    at = 0
    if base.startswith("scores.") and of:
        at = round(float(of) * UNITS["scores.score"])
    elif base.startswith("lists."):
        at = int(of)
    elif base.startswith("off_policy."):
        at = [policy.name for policy in settings.policies].index(of)
    elif base.startswith("own."):
        at = [own.id for own in settings.own_sums.sums].index(of)
    return {"name": base, "at": at}


def _place_of_kind(kind: str, settings: Settings) -> int:
    return -1 if named("feedback", kind) == OTHER_FEEDBACK else settings.feedback_kinds.index(kind)


IMPRESSIONS = Sum("impressions", "impressions")
CLICKS = Sum("clicks", "clicks")
CLICKS_OF_USERS = Sum("clicks_of_users", "clicks of users")
CONVERSIONS = Sum("conversions", "conversions")
CONVERSION_LINES = Sum("conversion_lines", "lines of conversions")
REFUNDS = Sum("refunds", "refunds")
VALUE = Sum("value", "sum of value", is_large=True)
REFUND_VALUE = Sum("refund_value", "sum of value below 0, as a positive number", is_large=True)
REQUESTS = Sum("requests", "requests")
EMPTY_SLATES = Sum("empty_slates", "empty slates")
CLICKED = Sum("clicked", "impressions with an attributed click")
CONVERTED = Sum("converted", "clicked impressions with an attributed conversion")
DWELL = Sum("dwell_ms", "sum of dwell")
VIEWINGS = Sum("viewings", "viewings with a dwell")
SESSIONS = Sum("sessions", "ended sessions")
BOUNCES = Sum("bounces", "ended sessions with exactly one view")
VIEWS = Sum("views", "views")
SESSION_LENGTH = Sum("session_ms", "sum of (last - first event)")
OF_SESSIONS = (SESSIONS, BOUNCES, VIEWS, SESSION_LENGTH)
ACTIVE_DAYS = Sum("active_days", "days with an impression")
RETURN_DAYS = Sum("return_days", "days with an impression after the first")
DERIVED = (ACTIVE_DAYS, RETURN_DAYS)
"""What follows of each user's impressions by day."""
_OF_CONVERSIONS = {of.name for of in (CONVERSIONS, CONVERSION_LINES, REFUNDS, VALUE, REFUND_VALUE)}
_OF_CLICKS = {CLICKS.name, CLICKS_OF_USERS.name, "feedback", "clicks_by_position"}
"""Statistics of feedback by its own time."""
_OF_VISITS = {
    *(each.name for each in (*OF_SESSIONS, DWELL, VIEWINGS)),
    *("session_bucket", "dwell_class", "dwell_bucket"),
}
"""Statistics of sessions and viewings: hardly any is longer than a day."""
_TOPICS = {
    "clicks": _OF_CLICKS | {CLICKED.name},
    "conversions": _OF_CONVERSIONS | {CONVERTED.name},
    "sessions": {each.name for each in OF_SESSIONS},
}
OUTCOMES = "outcomes"
"""Feedback of any kind, conversions and viewings."""


def topic_of(name: str) -> str:
    """The kind of topic whose events a sum counts; empty where that may be several."""
    return next((topic for topic, names in _TOPICS.items() if name in names), "")


def is_of_conversions(name: str) -> bool:
    """Whether a sum by the time of impressions depends on what conversions join."""
    return name == CONVERTED.name or name.startswith(("ranking", "scoring", "slates"))


def filtered_by(name: str, settings: Settings) -> tuple[str, ...]:
    """The dimensions by whose values a sum chooses what it counts."""
    own = settings.own_sums.named(name)
    return () if own is None else tuple(dimension for dimension, _ in own.dimensions)


def asks_impressions(name: str, settings: Settings) -> bool:
    """Whether a sum chooses what it counts by the impression that it joined."""
    own = settings.own_sums.named(name)
    return own is not None and bool(own.joined)


def joined_within_ms(name: str, settings: Settings) -> int:
    """How long after something else what a sum counts may have the dimensions of that: feedback
    after the impression that it joins, a session or a viewing after its first event; 0: it has its
    own.

    >>> joined_within_ms("clicks", Settings()), joined_within_ms("impressions", Settings())
    (1800000, 0)
    """
    base = name.partition("@")[0].removesuffix(HIGH)
    if base in _OF_VISITS:
        return DAY_MS
    if (own := settings.own_sums.named(name)) is not None:
        base = {"clicks": CLICKS.name, "conversions": CONVERSIONS.name}.get(own.kind, "")
    if base in _OF_CONVERSIONS:
        return settings.feedback_horizon_ms
    return settings.attribution.click_ms if base in _OF_CLICKS else 0


_SLATES = ("ranking.", "scoring.", "slates")
_MARGIN, _VISIBLE = "margin_loss", "@visible."


def of_slates(settings: Settings) -> str:
    """What makes items of slates relevant, and how much."""
    gains = {kind: gain for kind, gain in settings.metrics.feedback.items() if gain > 0}
    return repr(sorted(gains.items()))


def of_visible(settings: Settings) -> str:
    """How many positions people see."""
    return repr((settings.metrics.visible, settings.metrics.k[0]))


def of_policy(settings: Settings, name: str) -> str:
    """What weights of a policy are made of."""
    policies = {p.name: (p.propensity, p.positions, p.estimate) for p in settings.policies}
    return repr((policies[name], settings.metrics.max_weight))


def meaning(settings: Settings, name: str) -> str:
    """Of a sum, or of a part of a statistic; "" where its name says all."""
    whole = name.partition("/")[0]
    if name.startswith("off_policy."):
        return of_policy(settings, whole.partition("@")[2])
    if name.startswith(_SLATES):
        margin = settings.metrics.margin if _MARGIN in name else None
        visible = (of_visible(settings),) if _VISIBLE in name else ()
        return repr((of_slates(settings), margin, *visible))
    return ""


def key_of(settings: Settings, name: str) -> str:
    """A sum's name with what it means, as stored.

    >>> key_of(Settings(), "clicked"), key_of(Settings(), "ranking.engaged")
    ('clicked', 'ranking.engaged#cfb2037f')
    """
    found = meaning(settings, name)
    if not found:
        return name
    return f"{name}#{hashlib.blake2b(found.encode(), digest_size=4).hexdigest()}"
