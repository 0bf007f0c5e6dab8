"""Means over people: how many of them respond, and to how much of what they saw.

Sources: P the recommender-evaluation primer (clicks per user, hit rate), G Gorse's evaluation page
(positive feedback rate; ``docs`` as its text says, ``gorse-0.5`` as its release 0.5 computes).
Exact, or over a uniform sample of the users (by hash) where ``limits.user_items`` was reached:
both parts are scaled by the inverse of ``user_sample_ratio`` q. Of n users in the sample the
relative standard error of a count of users is sqrt((1 - q) / n), and the standard error of a mean
over users sqrt(1 - q) s / sqrt(n), s being the standard deviation over users.

Two users see two items each; one clicks one of them:

    >>> from streamer.testing import value_of
    >>> seen = [("u", "a"), ("u", "b"), ("v", "a"), ("v", "c")]
    >>> events = [{"type": "impression", "user_id": u, "item_id": i} for u, i in seen]
    >>> events += [{"type": "click", "user_id": "v", "item_id": "c"}]
    >>> value_of(events, "user_hit_ratio"), value_of(events, "clicks_per_user")
    (0.5, 0.5)
    >>> value_of(events, "positive_rate_ratio", feedback="click", definition="docs")  # (0 + ½) / 2
    0.25

Sums over users, from which means over people are read: what each user contributes, by pane.

A user counts in a window as if it began at one of his last touches: let v(s) be his value over
what he last touched in pane s or later. Under pane s stands v(s) - v(s + 1), so that the sum of
the panes from s on is v(s), whatever s: a window is read from its first pane, without an end.
Of one user: n(s) items seen, p(s) of them with feedback of a kind, p(s) / n(s) the positive rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamer.encoding.arrays import I64
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Series,
    Variant,
    quotient,
    ratio,
)
from streamer.metrics.layout import Stat
from streamer.metrics.reads import Statistic, Users
from streamer.metrics.sums import CLICKS, CONVERSIONS

RATE_UNIT = 10**9
"""Positive rates are integers of 1e-9, rounded once for a user and a first pane."""
USERS, HITS = 0, 1
"""Statistics: users with an impression; those who clicked, too."""


def rate_sum(kind: int) -> int:
    """Statistic: sum of the positive rates of a feedback kind."""
    return 2 + 3 * kind


def positive_users(kind: int) -> int:
    """Statistic: users with an item seen and given feedback of the kind."""
    return 3 + 3 * kind


def rate_squares(kind: int) -> int:
    """Statistic: sum of the squares of these rates, each an integer of 1e-9, too."""
    return 4 + 3 * kind


def users_sum(stat: int, settings: Any) -> str:
    """The sum of the feedback that a statistic waits for: "" where it is none."""
    if stat in (USERS, HITS):
        return CLICKS.name if stat == HITS else ""
    kind = settings.user_feedback_kinds[(stat - 2) // 3]
    return CONVERSIONS.name if kind == "conversion" else CLICKS.name


def users_stats(kinds: int) -> int:
    """How many statistics there are."""
    return 2 + 3 * kinds


def stats(settings: Any) -> tuple[Stat, ...]:
    """Statistics of events; those of users are kept apart (``metrics.user_sums``)."""
    return (Stat("clicks_of_users"),)


metric = Declarations()


def by_kind(*stats: Callable[[int], int]) -> Callable[[Declared], Iterator[Variant]]:
    """What reads these statistics of each kind of feedback."""

    def variants(of: Declared) -> Iterator[Variant]:
        for i, kind in enumerate(of.settings.user_feedback_kinds):
            yield Variant({"feedback": kind}, tuple(Users(stat(i)) for stat in stats))

    return variants


def by_definition(*stats: Callable[[int], int]) -> Callable[[Declared], Iterator[Variant]]:
    """What reads these statistics of each kind, and the users over whom each definition of the
    positive rate takes the mean."""

    def variants(of: Declared) -> Iterator[Variant]:
        for i, kind in enumerate(of.settings.user_feedback_kinds):
            for definition, users in (("docs", USERS), ("gorse-0.5", positive_users(i))):
                reads = (*(Users(stat(i)) for stat in stats), Users(users))
                yield Variant({"feedback": kind, "definition": definition}, reads)

    return variants


metric.count(
    *("window_users", "users", "users with an impression"),
    "Distinct users with an impression: support of user_hit_ratio and clicks_per_user.",
    (Users(USERS),),
    brief=Brief(),
)
metric.count(
    *("window_hit_users", "users", "users with an impression and a click"),
    "Distinct users with an impression and a click.",
    (Users(HITS),),
)
metric.count(
    *("window_positive_users", "users", "users with feedback of the kind on an item seen"),
    "Support of the positive rate by the definition gorse-0.5 (that of docs is window_users).",
    by_kind(positive_users),
    labels=("feedback",),
)


metric.row(
    *("clicks_per_user", "clicks per user", "clicks of users / users with an impression"),
    "Clicks with a user, by event time, divided by the distinct users with an impression.",
    quotient,
    empty="absent without users",
    source="P",
    support="window_users",
    reads=(Statistic("clicks_of_users"), Users(USERS)),
)
metric.row(
    *("user_hit_ratio", "ratio"),
    "users with an impression and a click / users with an impression",
    "Share of the users with an impression who also clicked in the window.",
    quotient,
    empty="absent without users",
    source="P",
    brief=Brief(),
    support="window_users",
    reads=(Users(HITS), Users(USERS)),
)


@metric(
    "positive_rate_ratio",
    brief=Brief({"definition": "docs"}),
    formula="mean over users of (items seen and given the feedback / items seen)",
    unit="ratio",
    empty="absent without users (docs), without users who gave the feedback (gorse-0.5)",
    source="G",
    labels=("feedback", "definition"),
    reads=by_definition(rate_sum),
)
def positive_rate(sums: I64, users: I64) -> Iterator[Series]:
    """Share of a user's distinct items in the window that got the user's feedback in it, averaged
    over users who saw items (docs) or gave feedback (gorse-0.5); unit 1e-9 a user."""
    yield ratio(sums, RATE_UNIT * users)


METRICS = tuple(metric.series)
