"""Whether the users of two arms carry an interval, one at any time, and a relative one.

The normal approximation behind every interval fails where a few users make up most of the
numerator, in one way more than in others: when the arms are of unlike size. The skewness of the
lift of two arms whose users have skewness γ, with the share s of the users in one of them, is

    γ (1 - 2 s) / √(N s (1 - s)),

0 at equal arms, however skewed the users are. Of values x that are not below 0,
γ² ≥ E x² / (E x)² to leading order (Cauchy and Schwarz; equal for rare conversions), which sums
tell. Users of both arms are taken together: the smaller arm may have missed what is rare. How far
this holds is measured in docs/experiments_statistics.md.

A ratio has a second way to fail. Let one user, a crawler, hold the share s of the denominator of
one arm, and nothing of the numerator: the lift is -s R, its standard error (1 - s) s R, and their
quotient 1 / (1 - s) whatever is true. So the denominator must be that of enough users: of as many
equal ones, (Σy)² / Σy² (Kish's effective sample size), in each arm, and in the smaller arm at what
both have together, for the heaviest users may all have come to the larger one.

At equal arms skewness is no guide, and variances of a few users are too small where the rare large
value is still to come: an interval that is to hold at every look, the early ones among them, waits
for users with a value other than 0. They are counted over both arms and spread as users are, so
that a treatment in which nobody converts any more is found by what the control has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

from streamer.formatting import percent
from streamer.stats.experiments.caps import Exact
from streamer.stats.experiments.sums import ArmSums

MIN_EFFECTIVE = 100
"""Effective users that the denominator of a ratio must have in each arm; for one look half of the
users do, where they are fewer."""
MAX_SKEWNESS = 0.1
"""Of the lift, by the bound above: beyond it intervals were seen to miss the truth too often."""
MIN_NONZERO = 30
"""Users of each arm with a numerator that is not 0, for a relative interval."""
ANYTIME_NONZERO = 100
"""Users with a numerator that is not 0 to be expected in each arm, were the arms alike, for an
interval that holds at every look."""


def skewness(treatment: ArmSums, control: ArmSums) -> float:
    """Least skewness that the lift can have; infinite where nothing is known of it.

    >>> some, more = ArmSums.of([(1, 1), (0, 1)] * 50), ArmSums.of([(1, 1), (0, 1)] * 450)
    >>> round(skewness(some, more), 3), skewness(some, some)
    (0.119, 0.0)
    """
    apart, users = treatment.n - control.n, treatment.n + control.n
    if not apart:
        return 0.0
    total = treatment.x + control.x
    if min(treatment.n, control.n) <= 0 or not total:
        return inf
    gamma2 = float(users * (treatment.xx + control.xx) / total**2)
    return sqrt(gamma2 * apart**2 / (treatment.n * control.n * users))


def effective(denominators: Sequence[tuple[Exact, Exact]]) -> float:
    """Effective users of the denominator, (Σy)² / Σy², of Σy and Σy² of several arms together.

    >>> effective([(20_000, 400_000)]), round(effective([(80_000, 60_000**2 + 400_000)]), 1)
    (1000.0, 1.8)
    """
    y, squares = (sum(part) for part in zip(*denominators, strict=True))
    return float(y * y / squares) if squares else 0.0


def _unfit(treatment: ArmSums, control: ArmSums, needed: float) -> str:
    """What is in the way of an arm's sums, or that the denominator is that of too few users, in
    words; empty if nothing is."""
    arms = {"treatment": treatment, "control": control}
    for name, arm in arms.items():
        if arm.obstacle:
            return f"of the {name} {arm.obstacle}"
    if (treatment.is_per_user and control.is_per_user) or not treatment.n + control.n:
        return ""
    for name, arm in arms.items():
        users = min(effective([each]) for each in arm.weights)
        if users < needed:
            return _few(f"the denominator of the {name}", (users, needed), arm)
    together = zip(treatment.weights, control.weights, strict=True)
    share = min(treatment.n, control.n) / (treatment.n + control.n)
    users = min(effective(both) for both in together) * share
    if users >= needed:
        return ""
    heavier = max(arms.values(), key=lambda arm: arm.largest.share if arm.largest else 0.0)
    what = "the denominator of the smaller arm, at what both arms have,"
    return _few(what, (users, needed), heavier)


def _few(what: str, users_and_needed: tuple[float, float], arm: ArmSums) -> str:
    users, needed = users_and_needed
    text = f"{what} is spread over effectively {users:.3g} users, and a range needs {needed:.3g}"
    if arm.largest is None:
        return text
    who = "user has" if arm.largest.users == 1 else f"{arm.largest.users} users have"
    return f"{text}: the largest {who} {percent(arm.largest.share)} of an arm's"


def few_before(sums: ArmSums) -> str:
    """Why a ratio from before the start is that of too few users, in words; empty if it is not."""
    then = sums.before
    if then is None or then.v <= 0 or sums.is_per_user or sums.denominators:
        return ""
    users = effective([(then.v, then.vv)])
    if users >= min(MIN_EFFECTIVE, sums.n / 2):
        return ""
    return f"a few users have most of the days before the start (effectively {users:.3g})"


def no_interval(treatment: ArmSums, control: ArmSums) -> str:
    """Why no interval is given, in words; empty if one is."""
    half = min(treatment.n, control.n) / 2
    if why := _unfit(treatment, control, min(MIN_EFFECTIVE, half)):
        return why
    found = skewness(treatment, control)
    if found <= MAX_SKEWNESS:
        return ""
    if found == inf:
        return "the users' values add up to 0 over both arms"
    share = min(treatment.n, control.n) / (treatment.n + control.n)
    return (
        f"the smaller arm has {percent(share)} of all users, and too few users make up most of the "
        f"metric: the skewness of the lift is at least {found:.2g}, and at most {MAX_SKEWNESS:g} "
        "is allowed"
    )


def no_anytime(treatment: ArmSums, control: ArmSums, min_users: int) -> str:
    """Why no interval is given that holds at every look, in words; empty if one is.

    >>> some, none = ArmSums.of([(1, 1)] * 24 + [(0, 1)] * 976), ArmSums.of([(0, 1)] * 1000)
    >>> no_anytime(none, some, 100)
    '24 users have a value other than 0, which is about 12 per arm; 100 are needed'
    """
    smaller, users = min(treatment.n, control.n), treatment.n + control.n
    if smaller < min_users:
        return f"there are fewer than {min_users:,} users in an arm"
    if why := _unfit(treatment, control, MIN_EFFECTIVE):
        return why
    nonzero = treatment.nonzero + control.nonzero
    if nonzero * smaller >= ANYTIME_NONZERO * users:
        return ""
    expected = nonzero * smaller // users
    have = "1 user has" if nonzero == 1 else f"{nonzero:,} users have"
    where = "per arm" if treatment.n == control.n else "in the smaller arm at equal rates"
    return (
        f"{have} a value other than 0, which is about {expected:,} {where}; {ANYTIME_NONZERO} are "
        "needed"
    )


def no_relative(treatment: ArmSums, control: ArmSums) -> str:
    """Why no relative interval is given, in words; empty if one is."""
    for name, sums in (("control", control), ("treatment", treatment)):
        if sums.nonzero < MIN_NONZERO:
            users = {0: "no user", 1: "only 1 user"}.get(sums.nonzero, f"only {sums.nonzero} users")
            have = "has" if sums.nonzero < 2 else "have"
            return (
                f"{users} of the {name} {have} a value other than 0, and a relative range "
                f"needs {MIN_NONZERO} in each arm"
            )
    return ""
