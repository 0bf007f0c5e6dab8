"""Sample-ratio mismatch against SciPy, and against what the authors' package said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamer.stats.experiments.srm import ALPHA_FIXED, CONCENTRATION, pearson, sequential, split

Counts = tuple[int, ...]
Shares = tuple[float, ...]
OF_THE_PACKAGE: list[tuple[Counts, Shares, float]] = [
    ((50, 50), (0.5, 0.5), -0.0049754129315715545),
    ((5200, 4800), (0.5, 0.5), 3.6538806656899396),
    ((521, 479), (0.5, 0.5), 0.032531940139051585),
    ((30, 60, 10), (0.4, 0.4, 0.2), 0.07790383805797774),
    ((5300, 9700, 5000), (0.25, 0.5, 0.25), 7.833593422488775),
    ((990, 10), (0.98, 0.02), 0.21055494923075457),
    ((51000, 49000), (0.5, 0.5), 16.98401502147317),
    ((0, 7), (0.5, 0.5), 0.002098636029288059),
]
"""Counts, shares, and the log of the Bayes factor as ssrm-test 0.1.5 gave it with NumPy 1.26
(`sequential_posteriors`, the last one), whose prior has the weight 10,000. It does not run with
NumPy 2."""


@pytest.mark.parametrize(("counts", "shares", "log_bayes_factor"), OF_THE_PACKAGE)
def test_p_is_that_of_the_authors_package(
    counts: Counts, shares: Shares, log_bayes_factor: float
) -> None:
    expected = min(1.0, math.exp(-log_bayes_factor))
    assert sequential(counts, shares, 10_000.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_p_is_the_quotient_of_marginal_likelihoods(seed: int) -> None:
    dice = np.random.default_rng(seed)
    shares = dice.dirichlet([4, 3, 2, 1][: 2 + seed % 3])
    actual = dice.dirichlet(300 * shares)
    counts = dice.multinomial(10 ** (2 + seed % 4), actual)
    prior = stats.dirichlet_multinomial.logpmf(counts, CONCENTRATION * shares, counts.sum())
    planned = stats.multinomial.logpmf(counts, counts.sum(), shares)
    expected = min(1.0, math.exp(planned - prior))
    assert sequential(counts.tolist(), shares.tolist()) == pytest.approx(expected, rel=1e-7)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6), st.data())
def test_pearson_s_p_is_scipy_s(counts: list[int], data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.integers(1, 9), min_size=len(counts), max_size=len(counts)))
    shares = [part / sum(parts) for part in parts]
    if sum(counts):
        expected = [sum(counts) * share for share in shares]
        found = stats.chisquare(counts, expected, sum_check=False).pvalue
        if found > 1e-290:
            assert pearson(counts, shares) == pytest.approx(found, rel=1e-8)


def test_honest_splits_are_rarely_ever_called_wrong() -> None:
    """1,000 experiments, looked at after every 1,000 users up to 40,000."""
    arrived = np.random.default_rng(3).binomial(1000, 0.5, (1000, 40)).cumsum(axis=1).tolist()
    ever = np.mean(
        [
            min(sequential((a, 1000 * i - a), (0.5, 0.5)) for i, a in enumerate(run, 1)) <= 0.05
            for run in arrived
        ]
    )
    assert 0 < ever <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


def test_nobody_and_everybody() -> None:
    assert sequential((0, 0), (0.5, 0.5)) == pearson((0, 0), (0.5, 0.5)) == 1.0
    assert sequential((10**9, 0), (0.5, 0.5)) == 0.0
    assert pearson((10**9, 0), (0.5, 0.5)) == 0.0
    found = split({"A": 5200, "B": 4800}, {"A": 0.5, "B": 0.5})
    assert (found.users, found.expected) == ({"A": 5200, "B": 4800}, {"A": 0.5, "B": 0.5})
    assert found.p_value_fixed < found.p_value == sequential((5200, 4800), (0.5, 0.5))


@pytest.mark.parametrize(
    ("users", "planned", "is_wrong"),
    [
        ((420, 180), (0.5, 0.5), True),
        ((320, 280), (0.5, 0.5), False),
        ((5200, 4800), (0.5, 0.5), False),  # p = 0.0023 at any time, Pearson's 6e-5
        ((5240, 4760), (0.5, 0.5), True),  # 1e-4 at any time, Pearson's 2e-6
        ((5250, 4750), (0.5, 0.5), True),
        ((7, 3), (0.98, 0.02), False),  # Pearson's is below 1e-10, and means nothing of so few
        ((0, 0), (0.5, 0.5), False),
    ],
)
def test_a_split_is_wrong_by_either_test(users: Counts, planned: Shares, is_wrong: bool) -> None:
    arms = "AB"
    found = split(dict(zip(arms, users, strict=True)), dict(zip(arms, planned, strict=True)))
    assert found.is_wrong is is_wrong


def test_pearson_s_test_finds_what_the_prior_does_not_expect() -> None:
    """An arm that nobody comes to, of a small planned share."""
    found = split({"A": 600, "B": 0}, {"A": 0.95, "B": 0.05})
    assert found.p_value_fixed < ALPHA_FIXED
    assert found.is_wrong
