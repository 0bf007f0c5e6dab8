"""The oracle: what metrics of ranked lists are for one slate, by hand and by their formulas."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from . import ranking, scoring
from .ranking import UNIT
from .scoring import Scored

GRADES = st.lists(st.sampled_from((0.0, 0.0, 0.0, 1.0, 1.5, 2.0, 5.0)), min_size=1, max_size=14)
CUTOFFS = st.integers(1, 20)

Grades = list[float]


def near(value: int, exact: float | Fraction) -> bool:
    """Half a unit for the rounding, and what doubles cannot say."""
    return abs(value - exact * UNIT) <= 0.5 + 1e-15 * UNIT * max(1.0, abs(float(exact)))


# By hand --------------------------------------------------------------------------------------


def test_reciprocals_and_discounts() -> None:
    assert ranking.reciprocal(1) == ranking.discount(1) == UNIT * 2**20
    assert ranking.reciprocal(3) == 349525333333333
    assert ranking.discount(3) == UNIT * 2**19
    log_of_2_to_3 = Fraction("0.6309297535714574370995271143427608542995856401")
    assert ranking.discount(2) == round(log_of_2_to_3 * UNIT * 2**20)
    assert ranking.discount(1023) == UNIT * 2**20 // 10
    for rank in range(1, 1001):
        exact = UNIT * 2**20 / math.log2(rank + 1)
        assert abs(ranking.discount(rank) - exact) <= 1


def test_example_of_the_primer_for_gains() -> None:
    grades = [0, 5, 1, 4, 2]
    dcg = 5 / math.log2(3) + 1 / 2 + 4 / math.log2(5) + 2 / math.log2(6)
    ideal = 5 + 4 / math.log2(3) + 2 / 2 + 1 / math.log2(5)
    assert (round(dcg, 3), round(dcg / ideal, 4)) == (6.151, 0.6869)
    for k in (5, 10):
        assert ranking.cumulative_gain(grades, k) == 12 * UNIT
        assert near(ranking.discounted_gain(grades, k), dcg)
        assert near(ranking.normalized_gain(grades, k), dcg / ideal)
    # Of the first two: 5 at rank 2; the best have 5 and 4; all of the best as above.
    two = 5 / math.log2(3)
    assert ranking.cumulative_gain(grades, 2) == 5 * UNIT
    assert near(ranking.normalized_gain(grades, 2), two / (5 + 4 / math.log2(3)))
    assert near(ranking.normalized_gain(grades, 2, is_ideal_cut=False), two / ideal)
    powers = 31 / math.log2(3)
    best = 31 + 15 / math.log2(3)
    assert near(ranking.normalized_gain(grades, 2, gain=ranking.exponential), powers / best)


def test_example_of_the_primer_for_pairs() -> None:
    # One pair of three as it should be, as the text counts. (Its own lists, B A C where A > B > C,
    # have two.)
    assert ranking.ordered_pairs([2, 3, 1]) == (2, 1)
    grades = [1, 3, 2]
    assert ranking.ordered_pairs(grades) == (1, 2)
    assert ranking.concordance(grades) == 333_333_333
    assert ranking.kendall_tau(grades) == ranking.kendall_tau_b(grades) == -333_333_333


def test_example_of_the_primer_for_first_hits() -> None:
    lists = [[0, 0, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]]
    values = [ranking.reciprocal_rank(grades) for grades in lists]
    assert values == [333_333_333, UNIT, 333_333_333, 0]
    assert round(statistics.mean(values) / UNIT, 3) == 0.417
    assert [ranking.reciprocal_hits(grades, 3) for grades in lists] == [
        *(333_333_333, 1_333_333_333, 333_333_333, 0)
    ]


def test_precision_and_its_kin() -> None:
    grades = [1, 0, 5, 0, 0, 2]
    assert [ranking.precision(grades, k) for k in (1, 2, 3, 8)] == [
        *(UNIT, UNIT // 2, 666_666_667, 375_000_000)
    ]
    assert ranking.precision_shown(grades, 8) == UNIT // 2
    assert ranking.precision_shown(grades, 3) == 666_666_667
    assert [ranking.recall(grades, k) for k in (1, 3, 6, 9)] == [
        *(333_333_333, 666_666_667, UNIT, UNIT)
    ]
    assert [ranking.hit([0, 0, 2], k) for k in (1, 2, 3, 4)] == [0, 0, UNIT, UNIT]


def test_average_precision_in_each_convention() -> None:
    grades = [1, 0, 5, 0, 0, 2]  # precision 1, 2/3 and 1/2 at the relevant ranks
    jurity = partial(ranking.average_precision, divisor=ranking.most_possible)
    primer = partial(ranking.average_precision, divisor=ranking.found_relevant)
    assert near(ranking.average_precision(grades, 3), Fraction(5, 9))
    assert near(ranking.average_precision(grades, 6), Fraction(13, 18))
    assert near(jurity(grades, 2), Fraction(1, 2))
    assert near(primer(grades, 2), 1)
    assert near(primer(grades, 3), Fraction(5, 6))
    assert primer([0, 0, 1], 2) == jurity([0, 0, 1], 2) == 0


def test_average_recall_in_each_convention() -> None:
    grades = [1, 0, 5, 0, 0, 2]  # recall 1/3, 2/3 and 1 at the relevant ranks
    jurity = partial(ranking.average_recall, divisor=ranking.most_possible)
    primer = partial(ranking.average_recall, divisor=ranking.found_relevant)
    assert near(ranking.average_recall(grades, 3), Fraction(1, 3))
    assert near(ranking.average_recall(grades, 6), Fraction(2, 3))
    assert near(jurity(grades, 2), Fraction(1, 6))
    assert near(primer(grades, 2), Fraction(1, 3))
    assert primer([0, 0, 1], 2) == 0


def test_without_anything_relevant() -> None:
    for k in (1, 3):
        for value in (
            *(ranking.precision, ranking.precision_shown, ranking.hit, ranking.reciprocal_hits),
            *(ranking.average_precision, ranking.average_recall, ranking.cumulative_gain),
            *(ranking.discounted_gain, ranking.normalized_gain),
        ):
            assert value([0, 0], k) == 0
    assert ranking.reciprocal_rank([0, 0]) == 0


def test_rank_correlations_with_ties() -> None:
    # pairs of 0 5 5 1 1: concordant 4 (5s over 1s), discordant 4 (0 below all), equal 2
    grades = [0, 5, 5, 1, 1]
    assert ranking.ordered_pairs(grades) == (4, 4)
    assert ranking.kendall_tau(grades) == ranking.kendall_tau_b(grades) == 0
    # 5 1 1 0: concordant 5, equal 1
    assert ranking.kendall_tau([5, 1, 1, 0]) == 833_333_333
    assert near(ranking.kendall_tau_b([5, 1, 1, 0]), 5 / math.sqrt(6 * 5))
    assert ranking.concordance([5, 1, 1, 0]) == ranking.kendall_tau([3, 2, 1]) == UNIT
    assert ranking.spearman_rho([3, 2, 1]) == UNIT
    assert ranking.spearman_rho([0, 7]) == ranking.kendall_tau([0, 7]) == -UNIT
    # by grade from the middle, twice: 3 0 0 -3; by place 3 1 -1 -3
    assert near(ranking.spearman_rho([5, 1, 1, 0]), 18 / math.sqrt(20 * 18))


def test_the_held_out_item() -> None:
    assert [ranking.hit_sampled(rank) for rank in (1, 10, 11, None)] == [UNIT, UNIT, 0, 0]
    assert [ranking.gain_sampled(rank) for rank in (1, 3, 11, None)] == [UNIT, UNIT // 2, 0, 0]
    assert near(ranking.gain_sampled(10), 1 / math.log2(11))


# By their formulas ----------------------------------------------------------------------------


def is_relevant(grades: Grades, i: int) -> bool:
    return i <= len(grades) and grades[i - 1] > 0


def hits(grades: Grades, k: int) -> int:
    return sum(is_relevant(grades, i) for i in range(1, k + 1))


@given(GRADES, CUTOFFS)
def test_shares(grades: Grades, k: int) -> None:
    found, r = hits(grades, k), hits(grades, len(grades))
    assert near(ranking.precision(grades, k), Fraction(found, k))
    assert near(ranking.precision_shown(grades, k), Fraction(found, min(k, len(grades))))
    assert ranking.hit(grades, k) == UNIT * (found > 0)
    if r:
        assert near(ranking.recall(grades, k), Fraction(found, r))
    reciprocals = [1 / i for i in range(1, k + 1) if is_relevant(grades, i)]
    assert near(ranking.reciprocal_hits(grades, k), sum(reciprocals))


@given(GRADES, CUTOFFS)
def test_averages(grades: Grades, k: int) -> None:
    r = hits(grades, len(grades))
    for divisor, d in (
        (ranking.all_relevant, r),
        (ranking.most_possible, min(k, r)),
        (ranking.found_relevant, hits(grades, k)),
    ):
        precisions = recalls = Fraction(0)
        for i in range(1, k + 1):
            if is_relevant(grades, i):
                precisions += Fraction(hits(grades, i), i)
                recalls += Fraction(hits(grades, i), r)
        precision = precisions / d if d else Fraction(0)
        recall = recalls / d if d else Fraction(0)
        assert near(ranking.average_precision(grades, k, divisor), precision)
        assert near(ranking.average_recall(grades, k, divisor), recall)


def dcg(gains: Grades) -> float:
    return sum(gain / math.log2(i + 1) for i, gain in enumerate(gains, 1))


@given(GRADES, CUTOFFS)
def test_gains(grades: Grades, k: int) -> None:
    assert near(ranking.cumulative_gain(grades, k), sum(grades[:k]))
    assert near(ranking.discounted_gain(grades, k), dcg(grades[:k]))
    if not any(grades):
        return
    best = sorted(grades, reverse=True)
    powers = [2**grade - 1 for grade in grades]
    most = sorted(powers, reverse=True)
    assert near(ranking.normalized_gain(grades, k), dcg(grades[:k]) / dcg(best[:k]))
    uncut = ranking.normalized_gain(grades, k, is_ideal_cut=False)
    assert near(uncut, dcg(grades[:k]) / dcg(best))
    of_powers = ranking.normalized_gain(grades, k, gain=ranking.exponential)
    assert near(of_powers, dcg(powers[:k]) / dcg(most[:k]))
    assert 0 <= uncut <= ranking.normalized_gain(grades, k) <= UNIT


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


@given(GRADES)
def test_order(grades: Grades) -> None:
    signs = [sign(a - b) for a, b in combinations(grades, 2)]
    assert ranking.is_contrasted(grades) == any(signs)
    if not any(signs):
        return
    assert near(ranking.concordance(grades), Fraction(signs.count(1), len(signs) - signs.count(0)))
    assert near(ranking.kendall_tau(grades), Fraction(sum(signs), len(signs)))
    places = [-float(i) for i in range(len(grades))]
    of_places = [sign(a - b) for a, b in combinations(places, 2)]
    both = sum(a * b for a, b in zip(signs, of_places, strict=True))
    scale = math.sqrt(sum(a * a for a in signs) * sum(a * a for a in of_places))
    assert near(ranking.kendall_tau_b(grades), both / scale)
    mean_ranks = [
        statistics.mean(i for i, g in enumerate(sorted(grades)) if g == grade) for grade in grades
    ]
    rho = statistics.correlation(places, mean_ranks)
    assert near(ranking.spearman_rho(grades), rho)


# Scores ---------------------------------------------------------------------------------------


def items(scores: list[float], marks: str) -> list[Scored]:
    """``marks``: c clicked and relevant, s clicked only, r relevant only, - neither."""
    return [
        Scored(score, mark in "cs", mark in "cr") for score, mark in zip(scores, marks, strict=True)
    ]


def test_pairs_of_clicked_and_not() -> None:
    # 0.9 and 0.5 clicked; over 0.5 and 0.1: 1 1, then a tie and 1
    pairs = scoring.clicked_pairs(items([0.9, 0.5, 0.5, 0.1], "cs--"))
    assert scoring.gauc(pairs) == 875_000_000
    assert scoring.gauc(scoring.clicked_pairs(items([0.1, 0.9], "c-"))) == 0
    for marks in ("cc", "--", "rr"):
        assert scoring.clicked_pairs(items([0.1, 0.9], marks)) == []


def test_relevant_is_not_clicked() -> None:
    assert scoring.differences(items([3.0, 1.0, 0.5], "rs-")) == [2.0, 2.5]
    assert scoring.clicked_pairs(items([3.0, 1.0, 0.5], "rs-")) == [(1.0, 3.0), (1.0, 0.5)]


def test_losses_by_hand() -> None:
    assert scoring.mean_loss([0.0], scoring.bpr) == 693_147_181
    assert scoring.mean_loss([2.0, -1.0], scoring.hinge) == UNIT
    assert scoring.mean_loss([0.05, 0.3], partial(scoring.hinge, margin=0.1)) == 25_000_000
    assert scoring.mean_loss([-2e6], scoring.bpr) == 2_000_000 * UNIT
    assert scoring.mean_loss([2e6], scoring.bpr) == 0
    assert scoring.mean_loss([-2e6, 2e6], scoring.hinge) == 1_000_000_500_000_000


def in_two_orders(values: list[float]) -> st.SearchStrategy[tuple[list[float], list[float]]]:
    return st.tuples(st.just(values), st.permutations(values))


SCORES = st.floats(-1e6, 1e6) | st.floats(-3, 3) | st.sampled_from((0.0, 0.5, 1.0))


@given(st.lists(st.tuples(SCORES, st.sampled_from("cr-s")), max_size=9))
def test_scores_by_their_formulas(given: list[tuple[float, str]]) -> None:
    found = items([score for score, _ in given], "".join(mark for _, mark in given))
    ups = [a for a, mark in given if mark in "cs"]
    downs = [b for b, mark in given if mark in "r-"]
    if ups and downs:
        wins = [Fraction(sign(a - b) + 1, 2) for a in ups for b in downs]
        assert near(scoring.gauc(scoring.clicked_pairs(found)), statistics.mean(wins))
    best = [a for a, mark in given if mark in "cr"]
    others = [b for b, mark in given if mark in "s-"]
    apart = [a - b for a in best for b in others]
    assert scoring.differences(found) == apart
    if not apart:
        return
    losses: tuple[Callable[[float], float], ...] = (
        lambda d: -d if d < -500 else -math.log(1 / (1 + math.exp(-d))),
        lambda d: max(0.0, 1.0 - d),
    )
    for value, loss in zip((scoring.bpr, scoring.hinge), losses, strict=True):
        mean = statistics.fmean(loss(d) for d in apart)
        assert near(scoring.mean_loss(apart, value), mean)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30).flatmap(in_two_orders))
def test_the_order_of_pairs_does_not_matter(apart: tuple[list[float], list[float]]) -> None:
    one, other = apart
    for loss in (scoring.bpr, scoring.hinge):
        assert scoring.mean_loss(one, loss) == scoring.mean_loss(other, loss)
