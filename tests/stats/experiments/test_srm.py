"""Sample-ratio mismatch against SciPy, and against what the authors' package said."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamer.stats.experiments.srm import (
    ALPHA_FIXED,
    CONCENTRATION,
    log_bayes_factor,
    over_time,
    pearson,
    split,
)

Counts = tuple[int, ...]
Shares = tuple[float, ...]
HALVES = (0.5, 0.5)
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


def sequential(counts: Counts, shares: Shares) -> float:
    """p of one look, which holds at every look."""
    return math.exp(min(0.0, -log_bayes_factor(counts, shares)))


@pytest.mark.parametrize(("counts", "shares", "expected"), OF_THE_PACKAGE)
def test_the_bayes_factor_is_that_of_the_authors_package(
    counts: Counts, shares: Shares, expected: float
) -> None:
    assert log_bayes_factor(counts, shares, 10_000.0) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_p_is_the_quotient_of_marginal_likelihoods(seed: int) -> None:
    dice = np.random.default_rng(seed)
    shares = dice.dirichlet([4, 3, 2, 1][: 2 + seed % 3])
    actual = dice.dirichlet(300 * shares)
    counts = dice.multinomial(10 ** (2 + seed % 4), actual)
    prior = stats.dirichlet_multinomial.logpmf(counts, CONCENTRATION * shares, counts.sum())
    planned = stats.multinomial.logpmf(counts, counts.sum(), shares)
    expected = min(1.0, math.exp(planned - prior))
    assert sequential(tuple(counts.tolist()), tuple(shares.tolist())) == pytest.approx(
        expected, rel=1e-7
    )


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
    assert sequential((0, 0), HALVES) == pearson((0, 0), HALVES) == over_time([(0, 0)], HALVES) == 1
    assert sequential((10**9, 0), HALVES) == 0.0
    assert pearson((10**9, 0), HALVES) == 0.0
    found = split({"A": 5200, "B": 4800}, {"A": 0.5, "B": 0.5})
    assert (found.users, found.expected) == ({"A": 5200, "B": 4800}, {"A": 0.5, "B": 0.5})
    assert found.p_value_fixed < found.p_value == over_time([(5200, 4800)], HALVES)


def test_p_over_time_is_that_of_its_formula() -> None:
    """By exact marginal likelihoods, at each look."""
    dice = np.random.default_rng(2)
    shares = (0.5, 0.3, 0.2)
    for _ in range(5):
        came = dice.multinomial(300, (0.45, 0.35, 0.2), 6)
        looks = came.cumsum(axis=0)

        def bayes(counts: Any) -> float:
            n = counts.sum()
            prior = CONCENTRATION * np.array(shares)
            over = stats.dirichlet_multinomial.logpmf(counts, prior, n)
            return float(np.exp(over - stats.multinomial.logpmf(counts, n, shares)))

        largest = 0.0
        for t in range(len(came)):
            parts = [bayes(came[d : t + 1].sum(axis=0)) / (d * (d + 1)) for d in range(1, t + 1)]
            to_come = 1 - sum(1 / (d * (d + 1)) for d in range(1, t + 1))
            largest = max(largest, 0.5 * bayes(looks[t]) + 0.5 * (sum(parts) + to_come))
        found = over_time([tuple(map(int, look)) for look in looks], shares)
        assert found == pytest.approx(min(1.0, 1 / largest), rel=1e-7)


def test_p_over_time_never_rises_again() -> None:
    looks = [(800, 200), (1000, 1000), (5000, 5000)]
    found = [over_time(looks[: n + 1], HALVES) for n in range(3)]
    assert found[0] >= found[1] >= found[2]
    assert found[2] < 1e-6 < sequential(looks[2], HALVES) == 1.0


@pytest.mark.parametrize(
    ("users", "planned", "is_wrong", "is_unusual"),
    [
        ((420, 180), (0.5, 0.5), True, False),
        ((320, 280), (0.5, 0.5), False, False),
        ((5200, 4800), (0.5, 0.5), True, False),  # p = 0.0046 at any look
        ((5170, 4830), (0.5, 0.5), False, True),  # Pearson's 7e-4
        ((5100, 4900), (0.5, 0.5), False, False),
        ((7, 3), (0.98, 0.02), False, False),  # Pearson's is below 1e-10, and means nothing
        ((0, 0), (0.5, 0.5), False, False),
    ],
)
def test_a_split_is_wrong_unusual_or_as_planned(
    users: Counts, planned: Shares, is_wrong: bool, is_unusual: bool
) -> None:
    named, shares = dict(zip("AB", users, strict=True)), dict(zip("AB", planned, strict=True))
    found = split(named, shares)
    assert (found.is_wrong, found.is_unusual) == (is_wrong, is_unusual)
    assert split(named, shares, is_over=True).is_wrong is (is_wrong or is_unusual)
    assert ("unusual" in found.sentence) is is_unusual
    assert ("as planned (" in found.sentence) is (sum(users) > 0 and not is_unusual)


def test_a_split_that_turns_says_when() -> None:
    days = [date(2026, 1, day) for day in (1, 2, 3, 4)]
    counts = [(80 * n, 20 * n) for n in (1, 2, 3, 4)]
    found = split({"A": 400, "B": 400}, {"A": 0.5, "B": 0.5}, list(zip(days, counts, strict=True)))
    assert found.is_wrong
    assert "A : B was 80 : 20 until 2026-01-04, and 20 : 80 since." in found.sentence
    sound = split({"A": 500, "B": 500}, {"A": 0.5, "B": 0.5}, [(days[0], (101, 99))])
    assert (sound.is_wrong, sound.turn) == (False, None)


def test_arms_that_were_never_there_together_are_not_compared() -> None:
    history = [(date(2026, 1, 1), (20, 0)), (date(2026, 1, 2), (30, 0))]
    found = split({"A": 30, "B": 30}, {"A": 0.5, "B": 0.5}, history)
    assert (found.is_wrong, found.is_apart) == (True, True)
    assert "On no day users came to two arms." in found.sentence
    both = [*history, (date(2026, 1, 3), (31, 2))]
    assert not split({"A": 31, "B": 30}, {"A": 0.5, "B": 0.5}, both).is_apart


def test_pearson_s_test_finds_what_the_prior_does_not_expect() -> None:
    """An arm that nobody comes to, of a small planned share."""
    found = split({"A": 600, "B": 0}, {"A": 0.95, "B": 0.05})
    assert found.p_value_fixed < ALPHA_FIXED
    assert found.is_unusual or found.is_wrong
