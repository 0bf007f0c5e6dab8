"""Sums over users, from which means over people are read: what each user contributes, by pane.

A user counts in a window as if it began at one of his last touches: let v(s) be his value over
what he last touched in pane s or later. Under pane s stands v(s) - v(s + 1), so that the sum of
the panes from s on is v(s), whatever s: a window is read from its first pane, without an end.
Of one user: n(s) items seen, p(s) of them with feedback of a kind, p(s) / n(s) the positive rate.
"""

from __future__ import annotations

from streamer._core import USER_GROUP_BITS
from streamer.settings import limits

RATE_UNIT = 10**9
"""Positive rates are integers of 1e-9, rounded once for a user and a first pane."""
USERS, HITS = 0, 1
"""Statistics: users with an impression; those who clicked, too."""
assert limits.MAX_SEGMENTS * limits.MAX_ROLLUPS < 1 << USER_GROUP_BITS


def rate_sum(kind: int) -> int:
    """Statistic: sum of the positive rates of a feedback kind."""
    return 2 + 3 * kind


def positive_users(kind: int) -> int:
    """Statistic: users with an item seen and given feedback of the kind."""
    return 3 + 3 * kind


def rate_squares(kind: int) -> int:
    """Statistic: sum of the squares of these rates, each an integer of 1e-9, too."""
    return 4 + 3 * kind


def users_stats(kinds: int) -> int:
    """How many statistics there are."""
    return 2 + 3 * kinds
