"""The readout of a metric: every arm, every comparison, every verdict with its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from streamer.stats.experiments.estimate import Inference
from streamer.stats.experiments.plan import Rule
from streamer.stats.experiments.readout import MetricComparisons, compare
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.verdict import Outcome
from tests.stats.experiments.arms import (
    GUARD,
    HALVES,
    LOWER,
    LOWER_GUARD,
    MANY,
    THREE,
    ab,
    changes,
    clicks,
    only,
)
from tests.support.lanes import sized


@pytest.mark.parametrize(
    ("a", "b", "rule", "outcome"),
    [
        (clicks(5000, 100), clicks(5000, 140), Rule(), Outcome.BETTER),
        (clicks(5000, 100), clicks(5000, 140), LOWER, Outcome.WORSE),
        (clicks(5000, 140), clicks(5000, 100), Rule(), Outcome.WORSE),
        (clicks(5000, 140), clicks(5000, 100), LOWER, Outcome.BETTER),
        (clicks(5000, 100), clicks(5000, 104), Rule(), Outcome.TOO_EARLY),
        (clicks(5000, 100), clicks(5000, 104), GUARD, Outcome.TOO_EARLY),
        (clicks(MANY, 100), clicks(MANY, 100), Rule(), Outcome.TOO_EARLY),
        (clicks(MANY, 100), clicks(MANY, 100), GUARD, Outcome.NO_HARM),
        (clicks(MANY, 100), clicks(MANY, 100), LOWER_GUARD, Outcome.NO_HARM),
        (clicks(MANY, 100), clicks(MANY, 98), GUARD, Outcome.NO_HARM),
        (clicks(MANY, 100), clicks(MANY, 98), Rule(), Outcome.WORSE),
        (clicks(MANY, 100), clicks(MANY, 98), LOWER_GUARD, Outcome.BETTER),
        (clicks(MANY, 100), clicks(MANY, 90), GUARD, Outcome.HARM),
        (clicks(MANY, 100), clicks(MANY, 110), GUARD, Outcome.BETTER),
        (clicks(5200, 100), clicks(4600, 140), Rule(), Outcome.BROKEN_SPLIT),
        (clicks(99, 100), clicks(99, 900), Rule(), Outcome.TOO_EARLY),
        (clicks(99, 100), clicks(99, 900), Rule(min_users=99), Outcome.TOO_EARLY),
        (clicks(199, 300), clicks(199, 900), Rule(min_users=199), Outcome.BETTER),
        (clicks(500, 0), clicks(500, 0), Rule(), Outcome.TOO_EARLY),
        (clicks(500, 0), clicks(500, 398), Rule(), Outcome.TOO_EARLY),
        (clicks(500, 0), clicks(500, 400), Rule(), Outcome.BETTER),
        (clicks(500, 398), clicks(500, 0), Rule(), Outcome.TOO_EARLY),
        (clicks(500, 400), clicks(500, 0), Rule(), Outcome.WORSE),
        (clicks(500, 400), clicks(500, 0), GUARD, Outcome.HARM),
        (clicks(500, 0), clicks(500, 4), GUARD, Outcome.TOO_EARLY),
        (ArmSums(), ArmSums(), Rule(), Outcome.TOO_EARLY),
    ],
)
def test_verdicts(a: ArmSums, b: ArmSums, rule: Rule, outcome: Outcome) -> None:
    assert ab(a, b, rule).verdict.outcome is outcome


SENTENCES = {
    "better": "B is 40% higher than A (range: +18% to +66%). Chance alone would show this "
    "in at most 5% of experiments, however often you look.",
    "lower": "B is 40% higher than A (range: +18% to +66%; lower is better). Chance alone "
    "would show this in at most 5% of experiments, however often you look.",
    "guard": "B is at worst 3.56% worse than A; 5% is tolerated.",
    "few": "Too early: A has 99 users and B has 50; a range needs 100 in each arm.",
    "one": "Too early: A has 1 user and B has 2; a range needs 100 in each arm.",
    "none": "There is no range yet: the standard error is 0.",
    "rare": "There is no range yet: 24 users have a value other than 0, which is about 12 per "
    "arm; 100 are needed.",
    "split": "Users are not split as planned (A 53.1%, planned 50.0%; B 46.9%, planned 50.0%; "
    "p < 0.0001 at any look, p < 0.0001 at one look). Assignment or logging is broken for one arm, "
    "so the arms cannot be compared. One in a hundred sound experiments would look like this.",
    "open": "B could be anything from 13% lower to 25% higher than A. With 10,000 users, a "
    "difference of 24% is found with a probability of 80%.",
    "absolute": "B could be anything from 0.0531 lower to 0.0731 higher than A. With 2,000 "
    "users, a difference of 0.0802 is found with a probability of 80%. No percentage is shown: "
    "the control's value is not above 0.",
    "nonzero": "B is 0.0388 higher than A (range: +0.0339 to +0.0437). Chance alone would show "
    "this in at most 5% of experiments, however often you look. No percentage is shown: only 12 "
    "users of the control have a value other than 0, and a relative range needs 30 in each arm.",
}


@pytest.mark.parametrize(
    ("name", "a", "b", "rule"),
    [
        ("better", clicks(5000, 100), clicks(5000, 140), Rule()),
        ("lower", clicks(5000, 100), clicks(5000, 140), LOWER),
        ("guard", clicks(MANY, 100), clicks(MANY, 98), GUARD),
        ("few", clicks(99, 100), clicks(50, 100), Rule()),
        ("one", clicks(1, 100), clicks(2, 100), Rule()),
        ("none", clicks(500, 0), clicks(500, 0), Rule()),
        ("split", clicks(5200, 100), clicks(4600, 140), Rule()),
        ("open", clicks(5000, 100), clicks(5000, 104), Rule()),
        ("rare", clicks(1000, 10), clicks(1000, 14), Rule()),
        ("absolute", changes(100, 100), changes(110, 100), Rule()),
        ("nonzero", clicks(1000, 12), clicks(1000, 400), Rule()),
    ],
)
def test_verdicts_say_why(name: str, a: ArmSums, b: ArmSums, rule: Rule) -> None:
    assert ab(a, b, rule).verdict.reason == SENTENCES[name]


def test_arms_have_their_values_and_errors() -> None:
    one = [(3_000_000, 2), (1_000_000, 2), (0, 1)]
    a, b = (ArmSums.of(users, x_scale=1e-6) for users in (one, one[:2]))
    found = compare(HALVES, Rule(), {"B": b, "A": a})
    assert [(arm.name, arm.users) for arm in found.arms] == [("A", 3), ("B", 2)]
    assert [arm.value for arm in found.arms] == pytest.approx([0.8, 1.0])
    x, y = np.array([3, 1, 0]), np.array([2, 2, 1])
    part = (x - 0.8 * y) / y.mean()
    assert found.arms[0].stderr == pytest.approx(part.std(ddof=1) / 3**0.5)
    assert only(found).absolute.value == pytest.approx(0.2)
    assert only(found).relative.value == pytest.approx(0.25)
    assert only(found).users == 5


@pytest.mark.parametrize("seed", range(3))
def test_fixed_intervals_are_scipy_s(seed: int) -> None:
    dice = np.random.default_rng(seed)
    a, b = dice.poisson(9, 300), dice.poisson(10, 400)
    sums = [ArmSums.of([(x, 1) for x in arm.tolist()]) for arm in (a, b)]
    found = ab(sums[0], sums[1]).absolute.fixed
    assert found is not None
    expected = stats.ttest_ind(b, a, equal_var=False)
    assert found.p_value == found.p_adjusted == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.alpha == 0.05


rates = st.lists(st.integers(50, 150), min_size=3, max_size=3)


@given(rates, st.sampled_from([3000, 8000, 20_000]))
def test_an_interval_excludes_0_exactly_if_holm_rejects(per_mille: list[int], users: int) -> None:
    sums = {
        arm: clicks(users * share, rate)
        for arm, share, rate in zip("ABC", (2, 1, 1), per_mille, strict=True)
    }
    found = compare(THREE, Rule(), sums)
    for comparison in found.comparisons:
        for inference in (comparison.absolute.fixed, comparison.absolute.anytime):
            assert inference is not None
            excludes = not inference.low <= 0 <= inference.high
            assert excludes == (inference.p_adjusted <= THREE.alpha)
            assert inference.p_value <= inference.p_adjusted
        decided = {Outcome.BETTER, Outcome.WORSE}
        assert (comparison.verdict.outcome in decided) == _excludes(comparison.absolute.anytime)


def _excludes(inference: Inference | None) -> bool:
    return inference is not None and not inference.low <= 0 <= inference.high


def test_an_arm_without_users_counts_among_those_that_are_compared() -> None:
    sums = {"A": clicks(4000, 100), "B": clicks(2000, 100), "C": ArmSums()}
    found = compare(THREE, Rule(), sums)
    assert [c.arm for c in found.comparisons] == ["B", "C"]
    assert found.split.users == {"A": 4000, "B": 2000, "C": 0}
    assert found.comparisons[1].verdict.outcome is Outcome.BROKEN_SPLIT
    few = compare(THREE, Rule(), sums | {"A": clicks(400, 500), "B": clicks(200, 500)})
    assert few.comparisons[0].absolute.anytime is not None
    assert few.comparisons[0].absolute.anytime.alpha == 0.025
    assert few.comparisons[1].absolute.reason == "treatment: there are no users"


def with_before(seed: int, users: int, more: float) -> ArmSums:
    """Users whose clicks follow those of the time before."""
    dice = np.random.default_rng(seed)
    likes = dice.beta(2, 18, users)
    x, u = dice.binomial(60, np.minimum(1, likes * more)), dice.binomial(600, likes)
    return ArmSums.of([(a, 60, b, 600) for a, b in zip(x.tolist(), u.tolist(), strict=True)])


def test_the_time_before_sharpens_and_decides() -> None:
    sums = {"A": with_before(4, 3000, 1.0), "B": with_before(3, 3000, 1.05)}
    with_it = only(compare(HALVES, Rule(), sums))
    alone = {arm: replace(its, before=None) for arm, its in sums.items()}
    without = only(compare(HALVES, Rule(), alone))
    its = with_it.adjustment
    assert its is not None
    assert its.explained is not None
    assert 0.6 < its.explained < 0.9
    plain = its.unadjusted
    for raw, sharper in ((plain.absolute, with_it.absolute), (plain.relative, with_it.relative)):
        assert raw.stderr is not None
        assert sharper.stderr is not None
        assert sharper.stderr < 0.65 * raw.stderr
    assert with_it.verdict.outcome is Outcome.BETTER
    assert without.verdict.outcome is Outcome.TOO_EARLY
    assert (without.absolute, without.adjustment) == (plain.absolute, None)
    least = with_it.detectable.relative, without.detectable.relative
    assert None not in least
    assert (least[0] or 0) < (least[1] or 0)


def test_without_a_difference_before_the_raw_lift_decides() -> None:
    same = ArmSums.of([(1, 10, 1, 2), (0, 10, 1, 2), (0, 10, 1, 2)] * 200)
    found = only(compare(HALVES, Rule(), {"A": same, "B": same}))
    assert found.adjustment is not None
    assert found.adjustment.reason == "users did not differ before the start"
    assert found.adjustment.unadjusted.absolute == found.absolute


SHAPES: list[Mapping[str, ArmSums]] = [
    {"A": ArmSums(), "B": ArmSums()},
    {"A": ArmSums.of([(1, 1)]), "B": ArmSums.of([(2**80, 1), (2**80 + 1, 3)])},
    {"A": clicks(500, 100), "B": clicks(700, 0)},
    {"A": with_before(1, 200, 1.0), "B": with_before(2, 200, 1.0)},
    {"A": ArmSums(n=3, x=10, xx=5, y=3, yy=3, xy=4), "B": clicks(700, 5)},
    {"A": ArmSums(n=-3), "B": clicks(700, 5)},
]


@pytest.mark.parametrize("sums", SHAPES)
def test_it_is_json_without_anything_that_is_no_number(sums: Mapping[str, ArmSums]) -> None:
    found = compare(HALVES, Rule(margin=0.01), sums)
    text = msgspec.json.encode(found)
    assert msgspec.json.decode(text, type=MetricComparisons) == found


# Absolute margins --------------------------------------------------------------------------------

LOSS, RISE = Rule(margin_absolute=0.02), Rule(higher_is_better=False, margin_absolute=0.02)
"""In the unit of the metric."""


@pytest.mark.parametrize(
    ("a", "b", "rule", "outcome", "said"),
    [
        (changes(300, 300), changes(300, 300), LOSS, Outcome.TOO_EARLY, "could be anything"),
        (*[(clicks(MANY, 100, 1))] * 2, LOSS, Outcome.NO_HARM, "at worst 0.00"),
        (clicks(MANY, 100, 1), clicks(MANY, 95, 1), LOSS, Outcome.NO_HARM, "; 0.02 is tolerated."),
        (clicks(MANY, 100, 1), clicks(MANY, 105, 1), RISE, Outcome.NO_HARM, "; 0.02 is tolerated."),
        (clicks(MANY, 100, 1), clicks(MANY, 60, 1), LOSS, Outcome.HARM, "is 40% lower"),
        (clicks(MANY, 100, 1), clicks(MANY, 110, 1), LOSS, Outcome.BETTER, "is 10% higher"),
    ],
)
def test_absolute_margins(a: ArmSums, b: ArmSums, rule: Rule, outcome: Outcome, said: str) -> None:
    found = ab(a, b, rule)
    assert found.verdict.outcome is outcome
    assert said in found.verdict.reason
    assert found.guardrail is not None
    assert found.absolute.anytime is not None
    shift = 0.02 if rule.higher_is_better else -0.02
    ends = found.absolute.anytime.low + shift, found.absolute.anytime.high + shift
    assert (found.guardrail.low, found.guardrail.high) == pytest.approx(ends, rel=1e-9)


def test_an_absolute_margin_holds_where_the_control_is_0() -> None:
    """As many went up as down: no relative loss is defined, an absolute one is excluded."""
    sums = replace(changes(300, 300), n=MANY, y=MANY, yy=MANY, xx=600_000, nonzero=600_000)
    found = ab(sums, sums, LOSS)
    assert found.relative.anytime is None
    assert found.verdict.outcome is Outcome.NO_HARM
    assert re.fullmatch(
        r"B is at worst 0\.00\d+ worse than A; 0\.02 is tolerated\.", found.verdict.reason
    )


def test_a_loss_of_the_absolute_margin_is_rarely_ever_called_no_harm() -> None:
    """Values of -1, 0 and 1 whose mean falls from 0 to -0.1 by the treatment, at 20 looks."""
    runs, a_look, rule = sized(60, 600), 500, Rule(margin_absolute=0.1)
    dice, called = np.random.default_rng(4), 0
    for _ in range(runs):
        made = []
        for mean in (0.0, -0.1):
            shares = [1 / 3 - mean / 2, 1 / 3, 1 / 3 + mean / 2]
            made.append(dice.multinomial(a_look, shares, 20).cumsum(axis=0).tolist())
        outcomes = set()
        for look in range(20):
            n = a_look * (look + 1)
            a, b = (
                ArmSums(n, up - down, up + down, n, n, up - down, up + down)
                for down, _, up in (its[look] for its in made)
            )
            outcomes.add(ab(a, b, rule).verdict.outcome)
        called += bool(outcomes & {Outcome.NO_HARM, Outcome.BETTER})
    assert called <= runs * 0.05 + 3 * (runs * 0.05 * 0.95) ** 0.5
