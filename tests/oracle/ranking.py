"""What each metric of ranked lists is for one slate: integers in units of 1e-9, rounded once.

``grades``: of the shown items, rank 1 first. An item is relevant if its grade is above 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from functools import cache
from itertools import combinations

Grades = Sequence[float]

UNIT = 10**9
"""1.0."""
FINE = 2**20
"""Terms of sums are kept in units of 1e-9 / 2**20, so that only the sums are rounded."""
SAMPLED_K = 10


def quotient(top: int, bottom: int) -> int:
    """A ratio of counts."""
    return (2 * UNIT * top + bottom) // (2 * bottom)


def rounded(value: float) -> int:
    return math.floor(value + 0.5)


@cache
def reciprocal(rank: int) -> int:
    """1 / rank, fine."""
    return (2 * UNIT * FINE + rank) // (2 * rank)


@cache
def discount(rank: int) -> int:
    """1 / log2(rank + 1), fine, from 60 digits."""
    with localcontext(prec=60):
        exact = UNIT * FINE * Decimal(2).ln() / Decimal(rank + 1).ln()
        return int(exact.to_integral_value(ROUND_HALF_EVEN))


def relevant_ranks(grades: Grades, k: int) -> list[int]:
    return [rank for rank, grade in enumerate(grades[:k], 1) if grade > 0]


def relevant(grades: Grades) -> int:
    return len(relevant_ranks(grades, len(grades)))


# Which of the first k are relevant ------------------------------------------------------------


def precision(grades: Grades, k: int) -> int:
    return quotient(len(relevant_ranks(grades, k)), k)


def precision_shown(grades: Grades, k: int) -> int:
    """Where fewer than k were shown, of those."""
    return quotient(len(relevant_ranks(grades, k)), min(k, len(grades)))


def recall(grades: Grades, k: int) -> int:
    return quotient(len(relevant_ranks(grades, k)), relevant(grades))


def hit(grades: Grades, k: int) -> int:
    return UNIT if relevant_ranks(grades, k) else 0


def reciprocal_rank(grades: Grades) -> int:
    ranks = relevant_ranks(grades, len(grades))
    return quotient(1, ranks[0]) if ranks else 0


def reciprocal_hits(grades: Grades, k: int) -> int:
    total = sum(reciprocal(rank) for rank in relevant_ranks(grades, k))
    return (total + FINE // 2) // FINE


Divisor = Callable[[Grades, int], int]


def all_relevant(grades: Grades, k: int) -> int:
    """As trec_eval divides."""
    return relevant(grades)


def most_possible(grades: Grades, k: int) -> int:
    """As Jurity does."""
    return min(k, relevant(grades))


def found_relevant(grades: Grades, k: int) -> int:
    """As the primer does."""
    return len(relevant_ranks(grades, k))


def average_precision(grades: Grades, k: int, divisor: Divisor = all_relevant) -> int:
    """The precision at each relevant rank, added up."""
    ranks = relevant_ranks(grades, k)
    total = sum(hits * reciprocal(rank) for hits, rank in enumerate(ranks, 1))
    by = divisor(grades, k)
    return (2 * total + by * FINE) // (2 * by * FINE) if by else 0


def average_recall(grades: Grades, k: int, divisor: Divisor = all_relevant) -> int:
    """The recall at each relevant rank, added up."""
    total = sum(hits for hits, _ in enumerate(relevant_ranks(grades, k), 1))
    by = relevant(grades) * divisor(grades, k)
    return (2 * UNIT * total + by) // (2 * by) if by else 0


# Gains ----------------------------------------------------------------------------------------


def as_it_is(grade: float) -> float:
    return grade


def exponential(grade: float) -> float:
    """The gain of a grade where the best results count for far more than good ones."""
    return float(2.0**grade - 1.0)


def one(rank: int) -> int:
    return 1


def gained(
    grades: Grades,
    k: int,
    weight: Callable[[int], int],
    gain: Callable[[float], float] = as_it_is,
) -> float:
    """Σ gain · weight of the first k: grade by grade, the lowest first, as doubles."""
    total = 0.0
    for level in sorted({grade for grade in grades if grade > 0}):
        ranks = [rank for rank, grade in enumerate(grades[:k], 1) if grade == level]
        total += gain(level) * float(sum(weight(rank) for rank in ranks))
    return total


def cumulative_gain(grades: Grades, k: int) -> int:
    return rounded(gained(grades, k, one) * 1e9)


def discounted_gain(grades: Grades, k: int) -> int:
    return rounded(gained(grades, k, discount) / FINE)


def normalized_gain(
    grades: Grades,
    k: int,
    gain: Callable[[float], float] = as_it_is,
    is_ideal_cut: bool = True,
) -> int:
    """The discounted gain as a share of what the best order would have."""
    best = sorted(grades, reverse=True)
    ideal = gained(best, k if is_ideal_cut else len(best), discount, gain)
    return rounded(gained(grades, k, discount, gain) / ideal * 1e9) if ideal > 0 else 0


# Order ----------------------------------------------------------------------------------------


def ordered_pairs(grades: Grades) -> tuple[int, int]:
    """(concordant, discordant): pairs of different grade with the better one first, or last."""
    pairs = list(combinations(grades, 2))
    return sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)


def is_contrasted(grades: Grades) -> bool:
    return len(set(grades)) > 1


def concordance(grades: Grades) -> int:
    concordant, discordant = ordered_pairs(grades)
    return quotient(concordant, concordant + discordant)


def kendall_tau(grades: Grades) -> int:
    """Pairs of equal grade count as half right (tau-a)."""
    concordant, discordant = ordered_pairs(grades)
    all_pairs = len(grades) * (len(grades) - 1) // 2
    return (2 * UNIT * (concordant - discordant) + all_pairs) // (2 * all_pairs)


def kendall_tau_b(grades: Grades) -> int:
    concordant, discordant = ordered_pairs(grades)
    all_pairs = len(grades) * (len(grades) - 1) // 2
    product = all_pairs * (concordant + discordant)
    return rounded((concordant - discordant) / math.sqrt(float(product)) * 1e9)


def spearman_rho(grades: Grades) -> int:
    """Pearson's r of place and of place by grade, both twice and from their middle."""
    n = len(grades)
    places = [n + 1 - 2 * rank for rank in range(1, n + 1)]
    by_grade = [2 * sum(g < grade for g in grades) + grades.count(grade) - n for grade in grades]
    both = sum(x * r for x, r in zip(places, by_grade, strict=True))
    product = sum(x * x for x in places) * sum(r * r for r in by_grade)
    return rounded(both / math.sqrt(float(product)) * 1e9)


# The held-out item ----------------------------------------------------------------------------


def hit_sampled(rank: int | None) -> int:
    return UNIT if rank is not None and rank <= SAMPLED_K else 0


def gain_sampled(rank: int | None) -> int:
    if rank is None or rank > SAMPLED_K:
        return 0
    return (discount(rank) + FINE // 2) // FINE
