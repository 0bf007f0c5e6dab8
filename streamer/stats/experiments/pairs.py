"""Two experiments on the same users: whether their splits are independent, and whom they share.

Where the arm in one experiment tells the arm in the other (both use one hash, say), each lift has a
part of the other's in it: if a share of the users that is higher by d gets a second treatment worth
r, about d r of the first lift is the second's.

Independence. Let n_ij users of both be in arm i of the first and arm j of the second. With a
Dirichlet(a) prior, a_ij = w s_i t_j around the product of the planned shares, and ``WEIGHTS`` as
w, of which the mean is taken,

    E = mean over w of Γ(w) / Γ(w + n) · Π Γ(a_ij + n_ij) / Γ(a_ij)  /  Π (n_i. n_.j / n²)^n_ij.

Below the line is the largest likelihood of any independent table. Against the likelihood of the
true one the quotient is a martingale with mean 1, and E is at most that: whatever the shares of
users in both really are, E ever reaches 1/p with probability p at most (Ville). So p = 1/E holds at
any look, and of few users in an arm, too: it is exact. Wasserman, Ramdas and Balakrishnan 2020,
"Universal inference" (PNAS).

Why not the planned shares themselves, as srm.py has them: users in both need not be split as
planned, if an arm of one experiment shows the other more often. That is no dependence. Why not the
Bayes factor of Gunel and Dickey 1974: it is a martingale only on average over a prior of the
shares. Why not Pearson's test: it holds at one look, and not of few users in a cell.

The shares must not change together: two experiments whose splits are changed on the same day are
dependent over all days, if not on any.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, fsum, lgamma, log, sqrt
from typing import TypeVar

from streamer.formatting import counted, p_words, share
from streamer.stats.experiments.estimate import holm

ALPHA = 0.001
"""That any pair of experiments is called dependent though none is."""
WEIGHTS = (10.0, 1_000.0, 100_000.0)
"""Of the prior, in users: for dependence that some dozens, thousands or a million of users show."""
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CrossTable:
    """Users of both experiments by (arm of the first, arm of the second); a cell without users may
    be missing. ``first`` and ``second``: the planned shares by arm, which add up to 1."""

    users: Mapping[tuple[str, str], int]
    first: Mapping[str, float]
    second: Mapping[str, float]

    @property
    def rows(self) -> list[list[int]]:
        """A row for each arm of the first, a column for each of the second."""
        return [[max(0, self.users.get((i, j), 0)) for j in self.second] for i in self.first]


@dataclass(frozen=True, slots=True)
class ShareDifference:
    """The share of an arm of the second experiment among the users of one arm of the first, and
    among those of its other arms."""

    first_arm: str
    second_arm: str
    share: float
    elsewhere: float


@dataclass(frozen=True, slots=True)
class Independence:
    """Whether two splits are independent, at any look; ``p_adjusted``: Holm's over all pairs.

    ``cramers_v`` is 0 where they are, and 1 where one arm tells the other; ``largest`` is the
    difference that is furthest beyond chance. Both are None where the users of both are in one arm
    of an experiment.
    """

    users: int
    p_value: float
    p_adjusted: float
    is_dependent: bool
    cramers_v: float | None
    largest: ShareDifference | None

    def sentence(self, first: str, second: str) -> str:
        """What is found, in words; by the names of both experiments."""
        if not self.users:
            return f"No user is in both {first} and {second}."
        p_value = f"{p_words(self.p_adjusted)} at any look, {counted(self.users, 'user')} in both"
        if not self.is_dependent or self.largest is None:
            return f"The splits of {first} and {second} show no dependence ({p_value})."
        its = self.largest
        return (
            f"The splits of {first} and {second} depend on each other ({p_value}): users of "
            f"{first}'s {its.first_arm} arm are {share(its.share)} in {second}'s "
            f"{its.second_arm} arm, others {share(its.elsewhere)}. The lift of each has a part "
            "of the other's in it."
        )


def independence(tables: Mapping[Key, CrossTable], alpha: float = ALPHA) -> dict[Key, Independence]:
    """Test all pairs, which share ``alpha``.

    >>> halves = {"a": 0.5, "b": 0.5}
    >>> users = {("a", "a"): 300, ("a", "b"): 200, ("b", "a"): 200, ("b", "b"): 300}
    >>> its = independence({0: CrossTable(users, halves, halves)})[0]
    >>> print(its.sentence("layout", "ranker"))  # doctest: +NORMALIZE_WHITESPACE
    The splits of layout and ranker depend on each other (p < 0.0001 at any look, 1,000 users in
    both): users of layout's b arm are 60% in ranker's b arm, others 40%. The lift of each has a
    part of the other's in it.
    """
    p_values = [any_look(table) for table in tables.values()]
    corrected = holm(p_values, alpha)
    return {
        key: Independence(
            sum(map(sum, table.rows)),
            p_value,
            its.p_value,
            its.p_value <= alpha,
            cramers_v(table),
            largest_difference(table),
        )
        for (key, table), p_value, its in zip(tables.items(), p_values, corrected, strict=True)
    }


def any_look(table: CrossTable) -> float:
    """p of independence that holds whenever one looks: 1 / E.

    It is that of the current users alone and may rise again; the least p that was ever seen is
    valid, too.

    >>> halves = {"a": 0.5, "b": 0.5}
    >>> any_look(CrossTable({("a", "a"): 40, ("b", "b"): 40}, halves, halves)) < 1e-15
    True
    """
    planned = [s * t for s, t in product(table.first.values(), table.second.values())]
    counts = [count for row in table.rows for count in row]
    logs = [_log_marginal(counts, [weight * share for share in planned]) for weight in WEIGHTS]
    most = max(logs)
    mean = most + log(fsum(exp(each - most) for each in logs) / len(logs))
    return exp(min(0.0, _log_independent(table) - mean))


def _log_marginal(counts: list[int], prior: list[float]) -> float:
    """The likelihood of users who come one after the other, over a Dirichlet prior."""
    total = fsum(prior)
    terms = [lgamma(total), -lgamma(total + sum(counts))]
    for count, a in zip(counts, prior, strict=True):
        if count:
            terms += [lgamma(a + count), -lgamma(a)]
    return fsum(terms)


def _log_independent(table: CrossTable) -> float:
    """The largest likelihood of the same users under independence."""
    rows = table.rows
    totals = [sum(row) for row in rows] + [sum(column) for column in zip(*rows, strict=True)]
    n = sum(map(sum, rows))
    return fsum(total * log(total / n) for total in totals if total)


def cramers_v(table: CrossTable) -> float | None:
    """√(X² / n / (k - 1)) with Pearson's X² and the smaller number k of arms that have users.

    >>> halves = {"a": 0.5, "b": 0.5}
    >>> cramers_v(CrossTable({("a", "a"): 40, ("b", "b"): 40}, halves, halves))
    1.0
    """
    cells = list(_cells(table))
    arms = min(len({i for i, _, _ in cells}), len({j for _, j, _ in cells}))
    if arms < 2:
        return None
    # X² / n = Σ n_ij² / (n_i. n_.j) - 1, as a sum of what is 0 under independence.
    parts = (
        Fraction((its.n * its.both - its.row * its.column) ** 2, its.n**2 * its.row * its.column)
        for _, _, its in cells
    )
    return sqrt(sum(parts, Fraction(0)) / (arms - 1))


def largest_difference(table: CrossTable) -> ShareDifference | None:
    """The one of the most standard errors (Haberman 1973, adjusted residuals): the largest by
    itself would be that of the arm with the fewest users. Of several the last, a treatment."""
    found: ShareDifference | None = None
    most = Fraction(-1)
    for i, j, its in _cells(table):
        rest, others = its.n - its.row, its.n - its.column
        if not rest or not others:
            continue
        squared = Fraction(
            (its.n * its.both - its.row * its.column) ** 2, its.row * its.column * rest * others
        )
        if squared >= most:
            most = squared
            elsewhere = (its.column - its.both) / rest
            found = ShareDifference(i, j, its.both / its.row, elsewhere)
    return found


@dataclass(frozen=True, slots=True)
class _Cell:
    """Users of a cell, of its row, of its column, and of all."""

    both: int
    row: int
    column: int
    n: int


def _cells(table: CrossTable) -> Iterator[tuple[str, str, _Cell]]:
    """Those of arms that have users."""
    rows = table.rows
    columns = [sum(column) for column in zip(*rows, strict=True)]
    n = sum(columns)
    for i, row in zip(table.first, rows, strict=True):
        for j, count, column in zip(table.second, row, columns, strict=True):
            if column and (total := sum(row)):
                yield i, j, _Cell(count, total, column, n)


@dataclass(frozen=True, slots=True)
class Overlap:
    """``both``: users who are in both of two experiments that must not share any (of one layer, or
    a holdout and any other); ``first`` and ``second``: users of each."""

    both: int
    first: int
    second: int

    @property
    def share(self) -> float:
        """Of the users of the experiment of which it is more.

        >>> Overlap(30, 1_000, 600).share, Overlap(0, 0, 600).share
        (0.05, 0.0)
        """
        fewer = min(self.first, self.second)
        return self.both / fewer if fewer > 0 else 0.0

    def sentence(self, first: str, second: str) -> str:
        """What is found, in words; by the names of both experiments.

        >>> print(Overlap(30, 1_000, 600).sentence("layout", "ranker"))
        30 users are in both layout (3% of its users) and ranker (5%), which must not share users.
        """
        if not self.both:
            return f"No user is in both {first} and {second}."
        are = "is" if self.both == 1 else "are"
        shares = (
            share(self.both / users) if users > 0 else "none" for users in (self.first, self.second)
        )
        of_first, of_second = shares
        return (
            f"{counted(self.both, 'user')} {are} in both {first} ({of_first} of its users) and "
            f"{second} ({of_second}), which must not share users."
        )
