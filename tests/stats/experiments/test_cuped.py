"""CUPED against regressions, against brute force over users, and where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamer.stats.experiments import lift as cuped
from streamer.stats.experiments.lift import Adjusted, Lift, Pair, contrast
from streamer.stats.experiments.ratio import ratio
from streamer.stats.experiments.relative import Relative, relative
from streamer.stats.experiments.sums import ArmSums

Ints = NDArray[np.int64]
Arm = tuple[Ints, Ints, Ints, Ints]
"""x, y, u, v of the users of one arm."""
WEIGHTS = [1.0, 0.95, 1.3]


def sums(arm: Arm) -> ArmSums:
    return ArmSums.of(zip(*(column.tolist() for column in arm), strict=True))


def adjusted(t: ArmSums, c: ArmSums) -> Adjusted:
    return cuped.adjusted(Pair(ratio(t), ratio(c)), t, c)


def lift_of(found: Adjusted, weight: float = 1.0) -> Lift:
    return contrast(found.pair, weight)


def of_means(seed: int, n: int, effect: int = 0) -> Arm:
    """Values that follow those of the time before."""
    dice = np.random.default_rng(seed)
    u = dice.poisson(50, n)
    one = np.ones_like(u)
    return 3 * u + dice.poisson(60, n) + effect, one, u, one


def of_ratios(seed: int, n: int, rate: float) -> Arm:
    """Clicks and impressions in both times; a fifth of the users is new."""
    dice = np.random.default_rng(seed)
    likes = dice.beta(30 * rate, 30 * (1 - rate), n)
    y, v = dice.poisson(15, n) + 1, dice.poisson(30, n) * (dice.random(n) < 0.8)
    return dice.binomial(y, likes), y, dice.binomial(v, likes), v


@pytest.mark.parametrize(("n", "m"), [(500, 500), (300, 900), (1000, 200)])
def test_it_is_the_coefficient_of_a_regression(n: int, m: int) -> None:
    """Of the treatment, beside u; with unequal arms each is weighted as in var(D)."""
    t, c = of_means(1, n, 5), of_means(2, m)
    found = lift_of(adjusted(sums(t), sums(c)))
    treated = np.repeat([1.0, 0.0], [n, m])
    design = np.column_stack([np.ones(n + m), treated, np.concatenate([t[2], c[2]])])
    weights = np.repeat([1 / (n * (n - 1)), 1 / (m * (m - 1))], [n, m])
    fitted = sm.WLS(np.concatenate([t[0], c[0]]), design, weights=weights).fit()
    assert found.value == pytest.approx(fitted.params[1], rel=1e-10)
    robust = fitted.get_robustcov_results("HC1").bse[1]
    assert found.stderr == pytest.approx(robust, rel=0.02)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("seed", range(4))
def test_ratios_are_adjusted_as_by_brute_force(seed: int, weight: float) -> None:
    arms = of_ratios(seed, 800, 0.1), of_ratios(seed + 50, 1100, 0.09)
    made = adjusted(*(sums(arm) for arm in arms))
    found = lift_of(made, weight)
    parts = [
        ((x - x.sum() / y.sum() * y) / y.mean(), (u - u.sum() / v.sum() * v) / v.mean())
        for x, y, u, v in arms
    ]
    (r_t, q_t), (r_c, q_c) = ((x.sum() / y.sum(), u.sum() / v.sum()) for x, y, u, v in arms)
    # The parts of users in the contrast and in D, arm by arm.
    pairs = [
        (slope * part, sign * then)
        for slope, sign, (part, then) in zip((1.0, -weight), (1, -1), parts, strict=True)
    ]
    matrices = [np.cov(*pair) / len(pair[0]) for pair in pairs]
    together = np.sum(matrices, axis=0)
    theta = together[0, 1] / together[1, 1]
    assert found.value == pytest.approx(r_t - weight * r_c - theta * (q_t - q_c), rel=1e-9)
    variances = [np.var(a - theta * b, ddof=1) / len(a) for a, b in pairs]
    assert found.stderr == pytest.approx(sum(variances) ** 0.5, rel=1e-9)
    degrees = sum(variances) ** 2 / sum(
        v**2 / (len(a) - 1) for v, (a, _) in zip(variances, pairs, strict=True)
    )
    assert found.df == pytest.approx(degrees, rel=1e-9)
    if weight == 1:
        assert made.explained == pytest.approx(1 - sum(variances) / together[0, 0], rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_relative_interval_is_every_adjusted_lift_that_the_test_allows(seed: int) -> None:
    made = adjusted(*(sums(of_ratios(s, 800, 0.1)) for s in (seed, seed + 50)))
    its = relative(made.pair, lift_of(made))
    assert isinstance(its, Relative)
    ends = its.interval(3.0)
    assert ends is not None
    t = [lift_of(made, 1 + r).t for r in (*ends, its.value)]
    assert t == pytest.approx([3.0, -3.0, 0.0], rel=1e-9, abs=1e-9)
    steps = [its.value + step for step in (-1e-6, 1e-6)]
    slope = np.diff([lift_of(made, 1 + r).value or 0.0 for r in steps])[0] / 2e-6
    stderr = lift_of(made, 1 + its.value).stderr or 0.0
    assert its.stderr == pytest.approx(stderr / abs(slope), rel=1e-6)


rows = st.lists(st.tuples(*[st.integers(0, 30)] * 4), min_size=2, max_size=15)


@given(rows, rows, st.sampled_from(WEIGHTS))
def test_it_is_never_less_exact(
    t: list[tuple[int, int, int, int]], c: list[tuple[int, int, int, int]], weight: float
) -> None:
    made = adjusted(ArmSums.of(t), ArmSums.of(c))
    bare = adjusted(*(ArmSums.of([row[:2] for row in arm]) for arm in (t, c)))
    found, without = lift_of(made, weight), lift_of(bare, weight)
    assert (made.explained is None) == bool(made.reason)
    if made.explained is None:
        assert found == without
    else:
        assert found.stderr is not None
        assert without.stderr is not None
        assert 0 <= round(made.explained, 9) <= 1
        assert found.stderr <= without.stderr * (1 + 1e-12)


def test_units_of_the_time_before_do_not_matter() -> None:
    t, c = of_ratios(1, 300, 0.1), of_ratios(2, 300, 0.1)
    plain = lift_of(adjusted(sums(t), sums(c)))
    other = [(x, y, 1000 * u, 7 * v) for x, y, u, v in (t, c)]
    scaled = lift_of(adjusted(*(sums(arm) for arm in other)))
    assert scaled.value == pytest.approx(plain.value, rel=1e-9)
    assert scaled.stderr == pytest.approx(plain.stderr, rel=1e-9)


SOME = [(1, 2, 3, 4), (0, 3, 1, 2), (2, 2, 0, 5)]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(x, y, 0, 0) for x, y, _, _ in SOME], "an arm has no data from before the start"),
        ([(x, y, 3, 1) for x, y, _, _ in SOME], "users did not differ before the start"),
        (
            [(x, y, 5 * x, 5 * y) for x, y, _, _ in SOME],
            "behaviour before the start explains everything",
        ),
        (SOME[:1], "treatment: a variance needs at least two users"),
        ([(1, 1, 1, 1)] * 3, "the standard error is 0"),
    ],
)
def test_what_cannot_be_adjusted_stays_as_it_was(
    rows: list[tuple[int, int, int, int]], reason: str
) -> None:
    arms = ArmSums.of(rows), ArmSums.of(rows if len(rows) > 1 else SOME)
    found = adjusted(*arms)
    without = adjusted(*(ArmSums.of([r[:2] for r in rows]) for _ in arms))
    assert found.reason == reason
    assert found.explained is None
    assert lift_of(found).stderr == lift_of(without).stderr
