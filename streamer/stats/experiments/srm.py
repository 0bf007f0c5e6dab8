"""Sample-ratio mismatch: whether users are split over the arms as planned.

If they are not, something assigns, loses or doubles users of one arm, and the arms cannot be
compared (Fabijan et al. 2019, "Diagnosing sample ratio mismatch in online controlled experiments",
KDD).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, fsum, inf, lgamma, log

from streamer.formatting import p_words, percent
from streamer.stats.distributions import chi2_upper

CONCENTRATION = 1_000.0
"""Weight of the prior around the planned split, in users. Lindon and Malek's package has 10,000,
with which a split of 60 : 40 takes two to three times as many users to be found."""
ALPHA = 0.01
"""p at any look below which the split is wrong: so it is of one clean experiment in a hundred."""
ALPHA_FIXED = 0.001
"""p of Pearson's test below which a split is unusual, and after the last day wrong."""
MIN_EXPECTED = 10.0
"""Users that Pearson's test must expect in every arm: with fewer its p is far too small."""
_MIN_GAIN = 8.0
"""Log of the likelihood ratio from which on a change of the shares is named."""

Counts = tuple[int, ...]
History = Sequence[tuple[datetime.date, Counts]]
"""Day → users of each arm first exposed up to its end."""


@dataclass(frozen=True, slots=True)
class Turn:
    """From a day on users were split otherwise: by arm the users before it, and since."""

    day: datetime.date
    before: dict[str, int]
    since: dict[str, int]


@dataclass(frozen=True, slots=True)
class Split:
    """Users by arm, ``expected`` their planned shares, and how likely that is.

    ``p_value`` is valid at any number of looks, ``p_value_fixed`` (Pearson) at one alone.
    ``is_wrong``: the arms cannot be compared; ``is_unusual``: that is to be looked into. ``turn``:
    when the shares changed, of a wrong split. ``is_apart``: on no day users came to two arms.
    """

    users: dict[str, int]
    expected: dict[str, float]
    p_value: float
    p_value_fixed: float
    is_wrong: bool
    is_unusual: bool = False
    turn: Turn | None = None
    is_apart: bool = False

    @property
    def sentence(self) -> str:
        """What is to be thought of it."""
        if not sum(self.users.values()):
            return f"No user was in an arm yet ({', '.join(self.users)})."
        shares = self.shares
        p = f"{p_words(self.p_value)} at any look, {p_words(self.p_value_fixed)} at one look"
        if self.is_wrong:
            return (
                f"Users are not split as planned ({shares}; {p}).{self._since} Assignment or "
                "logging is broken for one arm, so the arms cannot be compared. One in a "
                "hundred sound experiments would look like this."
            )
        if self.is_unusual:
            return (
                f"The split is unusual ({shares}; {p}): one look in a thousand at a sound "
                "experiment looks like this. Check for a browser, country or platform with another "
                "split."
            )
        return f"Users are split as planned ({shares}; {p})."

    @property
    def shares(self) -> str:
        """Those of the arms, and as planned, in words; there are users."""
        total = sum(self.users.values())
        return "; ".join(
            f"{arm} {percent(count / total)}, planned {percent(self.expected[arm])}"
            for arm, count in self.users.items()
        )

    @property
    def _since(self) -> str:
        if self.is_apart:
            return " On no day users came to two arms."
        if self.turn is None:
            return ""
        before, since = map(_parts, (self.turn.before, self.turn.since))
        until = self.turn.day - datetime.timedelta(days=1)
        return f" {' : '.join(self.users)} was {before} until {until}, and {since} since."


def _parts(users: Mapping[str, int]) -> str:
    """
    >>> _parts({"A": 400, "B": 100})
    '80 : 20'
    """
    total = sum(users.values())
    return " : ".join(f"{100 * count / total:.3g}" for count in users.values())


def split(
    users: Mapping[str, int],
    shares: Mapping[str, float],
    history: History = (),
    *,
    is_over: bool = False,
    alpha: float = ALPHA,
) -> Split:
    """Users by arm against their planned shares, which add up to 1. ``history``: of the days before
    the last one; ``is_over``: no more users come.

    >>> split({"A": 420, "B": 180}, {"A": 0.5, "B": 0.5}).is_wrong
    True
    """
    counts, planned = tuple(users.values()), tuple(shares[arm] for arm in users)
    looks = (*(known for _, known in history), counts)
    p_value, fixed = over_time(looks, planned), pearson(counts, planned)
    is_asked = sum(counts) * min(planned) >= MIN_EXPECTED
    is_unusual = is_asked and fixed < ALPHA_FIXED
    is_apart = _is_apart(looks)
    is_wrong = p_value <= alpha or is_apart or (is_unusual and is_over)
    turn = _turn([*users], history, counts) if is_wrong else None
    found = dict(users), dict(shares), p_value, fixed, is_wrong
    return Split(*found, is_unusual and not is_wrong, turn, is_apart)


def leaning(began: Mapping[str, int], shares: Mapping[str, float]) -> str:
    """Where users who were seen in several arms began, in words; empty where that is as it may be.

    Where arms change nothing, the share of them that began in an arm lies between its planned one
    (all users are as likely to change) and an even one. The Bayes factor of any share (uniform)
    against each share between is at least that against the nearest of them, which so holds at every
    look and for any number of users; the arms share ``ALPHA``.

    >>> leaning({"A": 0, "B": 299}, {"A": 1, "B": 1}), leaning({"A": 8, "B": 6}, {"A": 1, "B": 1})
    ('299 of 299 began in B, and 50.0% would be expected', '')
    """
    several, planned = sum(began.values()), fsum(shares.values())
    found = {}
    for arm, count in began.items():
        low, high = sorted((shares[arm] / planned, 1 / len(shares)))
        near, rest = min(max(count / max(1, several), low), high), several - count
        factor = lgamma(1 + count) + lgamma(1 + rest) - lgamma(2 + several)
        factor -= count * log(near) + rest * log(1 - near)
        if factor >= log(len(shares) / ALPHA):
            began_in = f"{count:,} of {several:,} began in {arm}"
            found[arm] = f"{began_in}, and {percent(near)} would be expected"
    return found[max(found, key=began.__getitem__)] if found else ""


def over_time(looks: Sequence[Counts], shares: Sequence[float]) -> float:
    """p that holds whenever one looks, of everybody and of those who came from any day on.

    ``looks``: users of each arm up to the end of each day, and now. BF: see ``log_bayes_factor``.

        E = ½ BF(all) + ½ Σ w_d BF(those first exposed from day d on), w_d = 1 / (d (d + 1)),

    is a martingale with mean 1, like each BF, where d counts days from the second on; BF of days
    that are still to come is 1. So the largest E that was ever seen is above 1/p with probability p
    at most, and p = 1 / the largest E cannot rise again. A split that is wrong on some days only,
    and right in sum, is found by those who came from the first of them on.

    >>> over_time([(400, 100), (500, 500)], (0.5, 0.5)) < 1e-6
    True
    """
    largest = max(_log_e(tuple(looks[: n + 1]), tuple(shares)) for n in range(len(looks)))
    return exp(-max(0.0, largest))


@lru_cache(maxsize=4096)
def _log_e(looks: tuple[Counts, ...], shares: tuple[float, ...]) -> float:
    """Log of E at the last of the looks."""
    now = looks[-1]
    terms = [log(0.5) + log_bayes_factor(now, shares)]
    rest = 1.0
    for n, before in enumerate(looks[:-1], 1):
        weight = 1 / (n * (n + 1))
        since = tuple(max(0, count - known) for count, known in zip(now, before, strict=True))
        terms.append(log(0.5 * weight) + log_bayes_factor(since, shares))
        rest -= weight
    terms.append(log(0.5 * rest) if rest > 0 else -inf)
    most = max(terms)
    return most + log(fsum(exp(term - most) for term in terms))


def _is_apart(looks: Sequence[Counts]) -> bool:
    """Whether on no day users came to two arms, though both have as many as Pearson's test asks."""
    if sum(count >= MIN_EXPECTED for count in looks[-1]) < 2 or len(looks) < 2:
        return False
    before = (tuple(0 for _ in looks[-1]), *looks[:-1])
    return all(
        sum(count > known for count, known in zip(now, then, strict=True)) < 2
        for now, then in zip(looks, before, strict=True)
    )


def _turn(arms: Sequence[str], history: History, now: Counts) -> Turn | None:
    """The day from which on other shares explain the users best."""
    best, found = _MIN_GAIN, None
    for at, (_, before) in enumerate(history):
        since = tuple(max(0, count - known) for count, known in zip(now, before, strict=True))
        if not min(sum(before), sum(since)):
            continue
        gain = _likelihood(before) + _likelihood(since) - _likelihood(now)
        if gain > best:
            last = history[at][0]
            parts = (dict(zip(arms, each, strict=True)) for each in (before, since))
            best, found = gain, Turn(last + datetime.timedelta(days=1), *parts)
    return found


def _likelihood(counts: Counts) -> float:
    """Log of that of counts by their own shares."""
    n = sum(counts)
    return fsum(count * log(count / n) for count in counts if count)


def pearson(counts: Sequence[int], shares: Sequence[float]) -> float:
    """p of Σ (n_i - n s_i)² / (n s_i) with k - 1 degrees of freedom; 1 without users.

    ``shares`` are above 0 and add up to 1.

    >>> round(pearson([5200, 4800], [0.5, 0.5]), 9)
    6.3342e-05
    """
    n = sum(counts)
    if n == 0:
        return 1.0
    terms = ((count - n * s) ** 2 / (n * s) for count, s in zip(counts, shares, strict=True))
    return chi2_upper(fsum(terms), len(counts) - 1)


def log_bayes_factor(
    counts: Sequence[int], shares: Sequence[float], weight: float = CONCENTRATION
) -> float:
    """Log of the Bayes factor of any split against the planned; 0 without users.

    Lindon and Malek 2022, "Anytime-valid inference for multinomial count data" (arXiv 2011.03567):
    with a Dirichlet(a) prior, a_i = ``weight`` · s_i, and A = Σ a_i,

        BF = Γ(A) / Γ(A + n) · Π Γ(a_i + n_i) / Γ(a_i) / Π s_i^n_i

    is a martingale with mean 1 while users are split as planned: it ever reaches 1/p with
    probability p at most. It is that of the current counts alone, and may fall again.

    >>> round(exp(-log_bayes_factor([5200, 4800], [0.5, 0.5])), 6)
    0.002298
    """
    n = sum(counts)
    terms = [lgamma(weight), -lgamma(weight + n)]
    for count, share in zip(counts, shares, strict=True):
        prior = weight * share
        terms += [lgamma(prior + count), -lgamma(prior), -count * log(share)]
    return fsum(terms)
