"""Independence of two splits against SciPy and slow recomputations, and users that two share."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats.contingency import association

from streamer.stats.experiments.pairs import (
    CrossTable,
    Overlap,
    ShareDifference,
    any_look,
    cramers_v,
    independence,
    largest_difference,
)
from tests.support.lanes import long

HALVES = {"a": 0.5, "b": 0.5}
WEIGHTS = (10.0, 1_000.0, 100_000.0)
FEW = st.integers(0, 40)


def of(rows: list[list[int]], first: list[float] | None = None) -> CrossTable:
    """A table with equal planned shares, unless those of the first are said."""
    arms = [f"r{i}" for i in range(len(rows))], [f"c{j}" for j in range(len(rows[0]))]
    shares = [dict.fromkeys(names, 1 / len(names)) for names in arms]
    if first is not None:
        shares[0] = dict(zip(arms[0], first, strict=True))
    names = product(*arms)
    users = dict(zip(names, (count for row in rows for count in row), strict=True))
    return CrossTable(users, *shares)


@st.composite
def tables(draw: st.DrawFn) -> list[list[int]]:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    row = st.lists(FEW, min_size=columns, max_size=columns)
    return draw(st.lists(row, min_size=rows, max_size=rows))


# The test ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_p_is_the_largest_independent_likelihood_by_the_mean_of_the_priors(seed: int) -> None:
    dice = np.random.default_rng(seed)
    shares = [dice.dirichlet([3.0] * k) for k in (2 + seed % 3, 2 + seed % 2)]
    planned = np.outer(*shares)
    counts = dice.multinomial(10 ** (1 + seed % 4), dice.dirichlet(50 * planned.ravel()))
    n = counts.sum()
    first, second = ({f"{i}": share for i, share in enumerate(its.tolist())} for its in shares)
    users = dict(zip(product(first, second), counts.tolist(), strict=True))
    table = CrossTable(users, first, second)
    priors = [
        stats.dirichlet_multinomial.logpmf(counts, weight * planned.ravel(), n)
        for weight in WEIGHTS
    ]
    square = counts.reshape(planned.shape) / n
    largest = np.outer(square.sum(axis=1), square.sum(axis=0)).ravel()
    independent = stats.multinomial.logpmf(counts, n, largest)
    e_value = np.mean(np.exp(np.array(priors) - independent))
    assert any_look(table) == pytest.approx(min(1.0, 1 / e_value), rel=1e-6)


def test_e_of_one_look_has_a_mean_of_at_most_1() -> None:
    """Over all tables of ten users, whatever the true shares are: exact, with no least number of
    users. 1/p is at least E, but where E is below 1."""
    n, checked = 10, 0
    for p, q in product((0.5, 0.3, 0.02), repeat=2):
        cells = np.outer([p, 1 - p], [q, 1 - q]).ravel()
        mean = chance = 0.0
        for a in range(n + 1):
            for b in range(n + 1 - a):
                for c in range(n + 1 - a - b):
                    counts = [a, b, c, n - a - b - c]
                    likely = float(stats.multinomial.pmf(counts, n, cells))
                    p_value = any_look(of([counts[:2], counts[2:]]))
                    mean += likely / p_value if p_value < 1 else 0.0
                    chance += likely if p_value <= 0.05 else 0.0
                    checked += 1
        assert mean <= 1
        assert chance <= 0.05
    assert checked == 9 * 286


@long
def test_honest_pairs_are_rarely_ever_called_dependent() -> None:
    """Looked at after every 20 users up to 2,000; arms of which one has 2 %, and of users who are
    not split as planned."""
    dice, runs = np.random.default_rng(3), 200
    for first in (0.5, 0.98, 0.6):
        cells = np.outer([first, 1 - first], [0.5, 0.5]).ravel()
        planned = [0.98, 0.02] if first == 0.98 else [0.5, 0.5]
        ever = 0
        for _ in range(runs):
            looks = dice.multinomial(20, cells, 100).cumsum(axis=0).tolist()
            ever += any(any_look(of([n[:2], n[2:]], planned)) <= 0.05 for n in looks)
        assert ever / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_one_hash_is_found_by_forty_users_among_all_pairs_of_a_hundred_experiments() -> None:
    honest = {i: of([[500, 500], [500, 500]]) for i in range(4949)}
    found = independence(honest | {-1: of([[20, 0], [0, 20]])})
    assert [key for key, its in found.items() if its.is_dependent] == [-1]
    assert found[-1].p_adjusted == pytest.approx(4950 * found[-1].p_value)


def test_what_one_pair_shows_may_be_chance_among_many() -> None:
    """p = 0.0003 alone, one of 41 pairs."""
    suspect = of([[6200, 5780], [5780, 6200]])
    (alone,) = independence({0: suspect}).values()
    among = independence({i: of([[5, 5], [5, 5]]) for i in range(40)} | {-1: suspect})
    assert (alone.is_dependent, among[-1].is_dependent) == (True, False)
    assert alone.p_value == among[-1].p_value


def test_a_split_that_is_not_the_planned_one_is_no_dependence() -> None:
    assert any_look(of([[54_000, 6_000], [36_000, 4_000]])) == 1.0


def test_both_experiments_are_alike() -> None:
    rows = [[120, 80, 30], [70, 130, 40]]
    columns = [list(column) for column in zip(*rows, strict=True)]
    assert any_look(of(rows)) == pytest.approx(any_look(of(columns)), rel=1e-9)


# How strong ---------------------------------------------------------------------------------------


@given(tables())
def test_cramer_s_v_is_scipy_s(rows: list[list[int]]) -> None:
    found = cramers_v(of(rows))
    kept = np.array(rows)
    kept = kept[kept.sum(axis=1) > 0][:, kept.sum(axis=0) > 0]
    if min(kept.shape) < 2:
        assert found is None
    else:
        assert found == pytest.approx(association(kept, method="cramer"), abs=1e-9)
        x2 = stats.chi2_contingency(kept, correction=False).statistic
        assert found == pytest.approx(math.sqrt(x2 / kept.sum() / (min(kept.shape) - 1)), abs=1e-9)


@given(tables())
def test_the_largest_difference_is_that_of_the_largest_residual(rows: list[list[int]]) -> None:
    table, counts = of(rows), np.array(rows)
    found = largest_difference(table)
    n, by_row, by_column = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    residuals = {}
    for i, j in np.ndindex(*counts.shape):
        r, c = by_row[i] / max(1, n), by_column[j] / max(1, n)
        if 0 < r < 1 and 0 < c < 1:
            spread = math.sqrt(n * r * c * (1 - r) * (1 - c))
            residuals[f"r{i}", f"c{j}"] = abs(counts[i, j] - n * r * c) / spread
    if found is None:
        assert not residuals
        return
    i, j = int(found.first_arm[1:]), int(found.second_arm[1:])
    assert residuals[found.first_arm, found.second_arm] == pytest.approx(max(residuals.values()))
    others = np.delete(counts, i, axis=0)
    assert found.share == pytest.approx(counts[i, j] / counts[i].sum())
    assert found.elsewhere == pytest.approx(others[:, j].sum() / others.sum())


def test_the_arm_with_the_fewest_users_is_not_the_largest_difference() -> None:
    found = largest_difference(of([[0, 1], [6200, 3800], [5000, 5000], [5000, 5000]]))
    assert found is not None
    assert found.first_arm == "r1"


def test_of_two_arms_the_treatments_are_said() -> None:
    users = {("old", "old"): 500, ("old", "new"): 500, ("wide", "old"): 380, ("wide", "new"): 620}
    table = CrossTable(users, {"old": 0.5, "wide": 0.5}, {"old": 0.5, "new": 0.5})
    assert largest_difference(table) == ShareDifference("wide", "new", 0.62, 0.5)


# Edges and words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [[[0, 0], [0, 0]], [[7, 9], [0, 0]], [[7, 0], [9, 0]], [[9, 0], [0, 0]], [[3, 4]], [[5]]],
)
def test_without_two_arms_in_both_nothing_is_said(rows: list[list[int]]) -> None:
    (found,) = independence({0: of(rows)}).values()
    assert (found.p_value, found.is_dependent) == (1.0, False)
    assert found.cramers_v is None
    assert found.largest is None
    assert found.users == sum(map(sum, rows))


def test_cells_that_are_missing_or_below_0_have_no_users() -> None:
    some = CrossTable({("a", "a"): 40, ("b", "b"): 40, ("a", "b"): -1}, HALVES, HALVES)
    every = CrossTable(dict(some.users) | {("a", "b"): 0, ("b", "a"): 0}, HALVES, HALVES)
    assert independence({0: some}) == independence({0: every})


def test_no_pair_at_all() -> None:
    assert independence({}) == {}


def test_many_users() -> None:
    half = 5 * 10**8
    assert any_look(of([[half, 0], [0, half]])) == 0.0
    assert any_look(of([[half, half], [half, half]])) == 1.0


def test_what_is_found_is_said() -> None:
    users = {
        ("old", "old"): 5000,
        ("old", "new"): 5000,
        ("wide", "old"): 3800,
        ("wide", "new"): 6200,
    }
    shares = {"old": 0.5, "wide": 0.5}, {"old": 0.5, "new": 0.5}
    (found,) = independence({0: CrossTable(users, *shares)}).values()
    assert found.sentence("layout", "ranker") == (
        "The splits of layout and ranker depend on each other (p < 0.0001 at any look, 20,000 "
        "users in both): users of layout's wide arm are 62% in ranker's new arm, others 50%. The "
        "lift of each has a part of the other's in it."
    )
    (found,) = independence({0: of([[10, 10], [10, 10]])}).values()
    assert found.sentence("layout", "ranker") == (
        "The splits of layout and ranker show no dependence (p = 1 at any look, 40 users in both)."
    )
    (found,) = independence({0: of([[0, 0], [0, 0]])}).values()
    assert found.sentence("layout", "ranker") == "No user is in both layout and ranker."


@pytest.mark.parametrize(
    ("overlap", "share", "sentence"),
    [
        (Overlap(0, 1000, 500), 0.0, "No user is in both layout and ranker."),
        (Overlap(0, 0, 0), 0.0, "No user is in both layout and ranker."),
        (
            Overlap(1, 1000, 500),
            0.002,
            "1 user is in both layout (0.1% of its users) and ranker (0.2%), which must not "
            "share users.",
        ),
        (
            Overlap(500, 4000, 500),
            1.0,
            "500 users are in both layout (12.5% of its users) and ranker (100%), which must not "
            "share users.",
        ),
    ],
)
def test_users_that_must_not_be_shared(overlap: Overlap, share: float, sentence: str) -> None:
    assert overlap.share == share
    assert overlap.sentence("layout", "ranker") == sentence
