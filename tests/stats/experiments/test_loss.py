"""What a treatment costs: found soon, and seldom where it costs nothing, at however many looks."""

from __future__ import annotations

from math import inf, lgamma, log

import numpy as np
import pytest
from scipy import special, stats

from streamer.stats.distributions import beta_cdf
from streamer.stats.experiments.converters import PRIORS, converters
from streamer.stats.experiments.loss import ALPHA, Loss, loss_of
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.sums import ArmSums
from tests.support.lanes import long, sized


def loss(treatment: int, control: int, share: float = 0.5, each: float = 1.0) -> Loss:
    n = 100_000
    plan = Plan("A", {"A": 1 - share, "B": share})
    treated, kept = (ArmSums(n, y=n, yy=n, nonzero=count) for count in (treatment, control))
    (who,) = converters(plan, [("B", treated, kept)])
    assert who is not None
    return loss_of(who, share, each)


def test_the_p_value_is_a_bound_on_that_of_shares_below() -> None:
    """Recomputed by integrating the likelihood over the part of the priors below."""
    looked = 0
    for share in (0.5, 0.2, 0.9):
        for treatment, control in ((10, 40), (3, 60), (40, 45), (0, 9), (200, 260)):
            k, total = treatment, treatment + control
            if k / total >= share:
                assert loss(treatment, control, share).p_value == 1.0
                continue
            qs = np.linspace(0, share, 200_001)[1:]
            likelihood = np.exp(
                k * np.log(qs / share) + (total - k) * np.log((1 - qs) / (1 - share))
            )
            factors, masses = [], []
            for width in PRIORS:
                a = width / min(share, 1 - share)
                prior = stats.beta.pdf(qs, a * share, a * (1 - share))
                factors.append(np.trapezoid(prior * likelihood, qs))
                masses.append(np.trapezoid(prior, qs))
            exact = sum(masses) / sum(factors)
            ours = loss(treatment, control, share).p_value
            assert ours >= min(1.0, exact) * (1 - 1e-3)
            assert ours <= 1.6 * exact or exact > 0.3
            looked += 1
    assert looked > 8


def test_beta_is_that_of_a_library() -> None:
    dice = np.random.default_rng(3)
    for a, b, x in zip(*dice.uniform((0.1, 0.1, 0.01), (400, 400, 0.99), (300, 3)).T, strict=True):
        assert beta_cdf(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-12)


def test_the_loss_is_what_the_control_would_have_had() -> None:
    found = loss(30, 90)
    assert found.value == pytest.approx(60)
    assert found.low < 60 < found.high
    assert loss(30, 90, each=2.5).value == pytest.approx(150)
    assert loss(10, 90, share=0.1).value == pytest.approx(0)
    assert loss(0, 0) == Loss(0.0, 0.0, 0.0, 1.0)
    gain = loss(90, 30)
    assert gain.value < 0
    assert gain.p_value == 1.0


def bounds(treatment: np.ndarray, control: np.ndarray) -> np.ndarray:
    """ln of BF against shares below a half, as the module says it, of many at once."""
    logs = []
    for width in PRIORS:
        a = width / 0.5
        logs.append(
            special.gammaln(a / 2 + treatment)
            + special.gammaln(a / 2 + control)
            - special.gammaln(a + treatment + control)
            - 2 * lgamma(a / 2)
            + lgamma(a)
        )
    most = np.max(logs, axis=0)
    both = most + np.log(np.mean(np.exp(logs - most), axis=0)) - (treatment + control) * log(0.5)
    return np.where(treatment < control, np.log(np.maximum(2 * np.exp(both) - 1, 1e-300)), -inf)


def test_many_at_once_are_as_one_by_one() -> None:
    for treatment, control in ((50, 100), (10, 40), (0, 12)):
        (found,) = bounds(np.array([treatment]), np.array([control]))
        assert found == pytest.approx(-log(loss(treatment, control).p_value), abs=1e-9)


def test_a_halving_is_stopped_when_about_fifty_are_lost() -> None:
    """1,000 buyers a day of which a half is exposed to what halves them: whoever buys is of the
    treatment in one case of three, and as many as it has are lost."""
    runs, buyers = sized(1000, 20_000), 900
    dice = np.random.default_rng(5)
    treatment = (dice.random((runs, buyers)) < 1 / 3).cumsum(1)
    control = np.arange(1, buyers + 1) - treatment
    is_told = (bounds(treatment, control) >= -log(ALPHA)) & (control - treatment > 50)
    assert is_told.any(1).all()
    lost = treatment[np.arange(runs), is_told.argmax(1)]
    assert 42 <= np.median(lost) <= 54
    assert np.quantile(lost, 0.9) <= 92


@long
def test_months_without_an_effect_are_stopped_once_in_a_thousand() -> None:
    """30,000 buyers, looked at after every 25."""
    months, step = 20_000, 25
    dice, told = np.random.default_rng(1), np.zeros(20_000, bool)
    treatment = np.zeros(months, int)
    for number in range(step, 30_001, step):
        treatment += dice.binomial(step, 0.5, months)
        control = number - treatment
        some = np.flatnonzero(control - treatment > 50)
        told[some] |= bounds(treatment[some], control[some]) >= -log(ALPHA)
    assert told.sum() <= 30  # 20 expected at most; measured: 10
