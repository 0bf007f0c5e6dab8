"""Windows against their baselines: what is said, against brute force, and how often it is wrong."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.mstats import winsorize
from statsmodels.stats.meta_analysis import combine_effects

from streamer.settings.alerts import LEVEL
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, Status, compare
from streamer.stats.alerting.bounds import Noise
from streamer.stats.alerting.past import Past, arrivals, is_never_silent
from streamer.stats.random_groups import GROUPS, GroupSums
from tests.support.lanes import long, shortened

RULE = ChangeRule(drop=0.1)
WINDOW = st.tuples(
    st.lists(st.integers(0, 300), min_size=GROUPS, max_size=GROUPS),
    st.lists(st.integers(0, 5000), min_size=GROUPS, max_size=GROUPS),
).map(lambda xy: GroupSums(tuple(xy[0]), tuple(xy[1])))


def window(dice: np.random.Generator, ctr: float, users: int, each: float = 20.0) -> GroupSums:
    """Users with propensities of their own."""
    y = dice.poisson(each, users)
    x = dice.binomial(y, np.minimum(1.0, dice.beta(0.5, 9.5, users) * ctr / 0.05))
    group = np.arange(users) % GROUPS
    its = (np.bincount(group, part, GROUPS).astype(np.int64).tolist() for part in (x, y))
    return GroupSums(*map(tuple, its))


def days(dice: np.random.Generator, users: int, n: int = 7, spread: float = 0.0) -> list[GroupSums]:
    return [window(dice, 0.05 * np.exp(spread * dice.standard_normal()), users) for _ in range(n)]


def times(one: GroupSums, x: int = 1, y: int = 1) -> GroupSums:
    return GroupSums(tuple(x * n for n in one.x), tuple(y * n for n in one.y))


@pytest.mark.parametrize(
    ("ctr", "users", "status"),
    [
        (0.05, 20_000, Status.WITHIN),
        (0.0455, 20_000, Status.PERHAPS),
        (0.035, 20_000, Status.DROPPED),
        (0.0, 20_000, Status.DROPPED),
        (0.08, 20_000, Status.WITHIN),
        (0.05, 200, Status.TOO_LITTLE),
        (0.0, 200, Status.DROPPED),
        (0.0, 5, Status.TOO_LITTLE),
        (0.2, 500, Status.WITHIN),
    ],
)
def test_what_is_said_of_a_window(ctr: float, users: int, status: Status) -> None:
    dice = np.random.default_rng(users)
    found = compare(window(dice, ctr, users), days(dice, users), RULE)
    assert found.status == status, found
    assert found.days == 7
    if users == 5:
        assert found.change is None
        return
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.change_low is not None
    assert found.change is not None
    assert found.change_high is not None
    assert -1 <= found.change_low <= found.change <= found.change_high
    assert 0 <= found.low <= found.value <= found.high


def test_lower_can_be_better() -> None:
    dice = np.random.default_rng(1)
    past, rule = days(dice, 20_000), replace(RULE, higher_is_better=False)
    assert compare(window(dice, 0.07, 20_000), past, rule).status == Status.RISEN
    assert compare(window(dice, 0.03, 20_000), past, rule).status == Status.WITHIN
    little = compare(window(dice, 0.05, 1000), past, rule)
    assert little.status == Status.TOO_LITTLE
    assert little.reason.endswith("too few events to prove a rise of 10%, or to rule it out")


def test_on_a_day_of_a_new_kind_nothing_short_of_a_collapse_fires() -> None:
    """On the first Saturday: four weekdays are known."""
    dice = np.random.default_rng(1)
    past = days(dice, 20_000, 4)
    for level in (0.035, 0.04, 0.045, 0.05, 0.06):
        found = compare(window(dice, level, 20_000), past, RULE, is_new_kind=True)
        assert found.status == Status.NO_BASELINE, found
        assert found.change_low is not None
        assert found.change_high is not None
        assert found.change_low <= 0.0 <= found.change_high
    assert "usual" in found.reason
    assert found.reason.endswith(
        " (4 days): fewer than two days of its kind are known, and kinds may differ by 30%"
    )
    assert compare(window(dice, 0.035, 20_000), past, RULE).status == Status.DROPPED
    for level, least in ((0.025, -0.1), (0.02, -0.3), (0.0, -0.9)):
        found = compare(window(dice, level, 20_000), past, RULE, is_new_kind=True)
        assert found.status == Status.DROPPED, found
        assert found.change_high is not None
        assert found.change_high < least
    rises = replace(RULE, higher_is_better=False)
    high = compare(window(dice, 0.06, 20_000), past, rises, is_new_kind=True)
    assert high.status == Status.NO_BASELINE
    assert compare(window(dice, 0.1, 20_000), past, rises, is_new_kind=True).status == Status.RISEN


def test_on_a_day_of_a_new_kind_each_known_day_counts() -> None:
    dice = np.random.default_rng(2)
    past, low = days(dice, 20_000), window(dice, 0.02, 20_000)
    assert compare(low, past, RULE, is_new_kind=True).status == Status.DROPPED
    like = [*past[:6], window(dice, 0.022, 20_000)]
    found = compare(low, like, RULE, is_new_kind=True)
    assert (found.status, found.change_high) == (Status.NO_BASELINE, 0.0)


def test_of_few_events_nothing_is_said() -> None:
    dice = np.random.default_rng(1)
    past = days(dice, 12)
    for now, is_higher in ((times(past[0], x=20), False), (times(past[0], x=0), True)):
        found = compare(now, past, replace(RULE, higher_is_better=is_higher))
        assert (found.status, found.change) == (Status.TOO_LITTLE, None)
        assert found.reason.endswith(" independent events, and a change needs 5")


def test_rises_are_found_where_many_rise_and_not_where_one_does() -> None:
    dice, rule = np.random.default_rng(1), replace(RULE, higher_is_better=False)
    past = days(dice, 300)
    assert compare(times(past[0], x=3), past, rule).status == Status.RISEN
    alone = past[0] + GroupSums.of([(3, 2 * sum(past[0].x), 400)])
    assert compare(alone, past, rule).status == Status.TOO_LITTLE


def test_two_days_that_are_high_by_chance_make_no_fall() -> None:
    """A Sunday against two days of the weekend, where all seven are far lower."""
    dice, alike = np.random.default_rng(9), [True, *[False] * 5, True]
    low, high = ([window(dice, ctr, 150) for _ in range(7)] for ctr in (0.04, 0.1))
    past = [high[0], *low[:5], high[1]]
    found = compare(window(dice, 0.035, 150), past, ChangeRule(drop=0.2), alike=alike)
    assert (found.status, found.change_high) == (Status.PERHAPS, 0.0)
    assert found.change is not None
    assert found.change < -0.5
    assert found.reason.endswith(" and 0%: worse, but not proved beyond the tolerated 20%")
    none = compare(window(dice, 0.0, 150), past, ChangeRule(drop=0.2), alike=alike)
    assert none.status == Status.DROPPED


@long
@pytest.mark.parametrize("sessions", shortened([15, 5, 60]))
@pytest.mark.parametrize("is_before", [False, True])
def test_false_alarms_of_small_segments_are_rare(sessions: int, is_before: bool) -> None:
    """At most two in 30,000 windows of sessions of ten impressions, compared with two days of a
    weekend or with the window before."""
    dice, alike = np.random.default_rng(sessions), [False, False, True, True, False, False, False]
    shown = dice.poisson(sessions / GROUPS, (30_000, 8, GROUPS))
    clicks = dice.poisson(dice.standard_gamma(0.5 * shown))
    n, x = np.maximum(1, shown.sum(axis=2)), clicks.sum(axis=2)
    then = slice(1, 2) if is_before else slice(3, 5)
    values, base = x[:, 0] / n[:, 0], x[:, then].sum(axis=1) / n[:, then].sum(axis=1)
    moved = (np.sqrt(values) - np.sqrt(base)) * np.sqrt(n[:, 0])
    false = []
    for rule, worse in (
        (ChangeRule(0.2), -moved),
        (ChangeRule(0.2, higher_is_better=False), moved),
    ):
        for i in np.argsort(-worse)[:800].tolist():
            now, *past = (
                GroupSums(tuple(its_x), tuple(10 * its_y for its_y in y))
                for its_x, y in zip(clicks[i].tolist(), shown[i].tolist(), strict=True)
            )
            found = compare(now, past[0] if is_before else past, rule, alike=alike)
            if found.status in (Status.DROPPED, Status.RISEN):
                false.append(found)
    assert len(false) <= 2, false


def test_a_past_incident_hides_no_fall() -> None:
    """Yesterday all clicks were lost at this time, and today again; or half of them."""
    dice = np.random.default_rng(3)
    past = days(dice, 2000)
    for yesterday in (0.0, 0.01, 0.03):
        hurt = [window(dice, yesterday, 2000), *past[1:]]
        for ctr in (0.0, 0.02):
            found = compare(window(dice, ctr, 2000), hurt, RULE)
            assert found.status == Status.DROPPED, (yesterday, ctr, found)
            assert 0 not in found.kept
        assert compare(window(dice, 0.05, 2000), hurt, RULE).status != Status.DROPPED
    hurt = [window(dice, 0.3, 2000), *past[1:]]
    rises = replace(RULE, higher_is_better=False)
    assert compare(window(dice, 0.1, 2000), hurt, rises).status == Status.RISEN


def test_below_every_past_day_fires_however_much_they_differ() -> None:
    dice = np.random.default_rng(4)
    past = [window(dice, ctr, 5000) for ctr in (0.02, 0.03, 0.05, 0.09, 0.14, 0.03, 0.08)]
    found = compare(window(dice, 0.01, 5000), past, RULE)
    assert found.status == Status.DROPPED, found
    assert found.change_high is not None
    lowest = min(float(day.value or 0) for day in past)
    assert found.change_high < -0.1
    assert (1 + found.change_high) * lowest > (found.value or 0)
    assert compare(window(dice, 0.018, 5000), past, RULE).status == Status.DAYS_DIFFER
    assert compare(window(dice, 0.01, 5000), past[:6], RULE).status == Status.DAYS_DIFFER
    rises = replace(RULE, higher_is_better=False)
    assert compare(window(dice, 0.3, 5000), past, rises).status == Status.RISEN
    assert compare(window(dice, 0.16, 5000), past, rises).status == Status.DAYS_DIFFER


def test_a_fall_of_which_only_the_size_is_unsure_is_perhaps_beyond() -> None:
    """29 % below the baseline, 20 % tolerated, and the whole interval below none."""
    dice, rule = np.random.default_rng(5), ChangeRule(drop=0.2)
    past = days(dice, 3000)
    found = compare(window(dice, 0.038, 1500), past, rule)
    assert found.change_low is not None
    assert found.change_high is not None
    assert found.change_low < -0.2 < found.change_high < 0
    assert found.status == Status.PERHAPS
    assert found.reason.endswith(": worse, but not proved beyond the tolerated 20%")
    up = compare(window(dice, 0.068, 1500), past, replace(rule, higher_is_better=False))
    assert up.status == Status.PERHAPS, up


@given(WINDOW, st.lists(WINDOW, min_size=3, max_size=8), st.floats(0.01, 0.9), st.booleans())
def test_every_status_is_what_the_interval_says(
    now: GroupSums, past: list[GroupSums], drop: float, is_higher: bool
) -> None:
    found = compare(now, past, ChangeRule(drop, higher_is_better=is_higher))
    if found.change_low is None or found.change_high is None:
        return
    worst, best = (
        (found.change_low, found.change_high)
        if is_higher
        else (-found.change_high, -found.change_low)
    )
    assert (found.status in (Status.DROPPED, Status.RISEN)) == (best < -drop)
    assert (found.status == Status.WITHIN) == (worst >= -drop)
    if worst < -drop <= best < 0:
        assert found.status == Status.PERHAPS


def test_reasons_say_what_was_seen() -> None:
    even = GroupSums(tuple(range(92, 108)), (2000,) * GROUPS)
    assert compare(even, [even] * 3, RULE).reason == (
        "0.0498 is 0% above the usual 0.0498 (3 days), between \u22123.6% and +3.7%"
    )
    assert compare(times(even, y=2), even, RULE).reason == (
        "0.0249 is 50% below the usual 0.0498 (the window before): by at least 48%, beyond 10%"
    )


def test_it_is_said_whether_traffic_or_the_days_are_to_blame() -> None:
    dice = np.random.default_rng(7)
    past = [window(dice, ctr, 20_000) for ctr in (0.03, 0.07, 0.04, 0.06, 0.05)]
    unlike = compare(window(dice, 0.05, 20_000), past, RULE)
    assert unlike.status == Status.DAYS_DIFFER
    assert unlike.reason.endswith(
        "past days differ too much to prove a fall of 10%, or to rule it out"
    )
    few = compare(window(dice, 0.05, 200), days(dice, 20_000), RULE)
    assert few.status == Status.TOO_LITTLE
    assert few.reason.endswith("too few events to prove a fall of 10%, or to rule it out")


def test_days_are_to_blame_where_more_events_would_not_help() -> None:
    """Days that differ by hardly more than chance, of so many users that alike days would do."""
    dice, said = np.random.default_rng(8), []
    for _ in range(50):
        now, *past = days(dice, 20_000, 6, spread=0.03)
        said.append(compare(now, past, RULE).status)
    assert said.count(Status.DAYS_DIFFER) >= 10
    assert Status.TOO_LITTLE not in said


def test_little_traffic_is_not_blamed_on_days() -> None:
    """Few users differ from day to day by chance, of which more traffic would be rid."""
    dice, said = np.random.default_rng(11), []
    for _ in range(200):
        now, *past = days(dice, 100, 8)
        said.append(compare(now, past, RULE).status)
    assert said.count(Status.DAYS_DIFFER) <= 8
    assert said.count(Status.TOO_LITTLE) >= 180


def test_nothing_to_compare_with() -> None:
    dice = np.random.default_rng(2)
    one, two, three = days(dice, 1000, 3)
    none = compare(one, [], RULE)
    assert (none.status, none.reason) == (
        Status.NO_BASELINE,
        "0 past windows had traffic, and at least 3 are needed",
    )
    assert (none.change, none.baseline, none.expected_support) == (None, None, 0.0)
    assert (none.low, none.high) == one.interval(LEVEL)
    assert compare(one, [two, three, GroupSums()], RULE).status == Status.NO_BASELINE
    assert compare(one, two, RULE).status != Status.NO_BASELINE
    assert compare(GroupSums(), [], RULE).status == Status.NO_BASELINE
    clickless = GroupSums((0,) * GROUPS, one.y)
    assert compare(one, [clickless] * 7, RULE).reason == (
        "nothing above 0 in the past windows to compare with"
    )


def test_no_traffic_is_said_only_where_there_always_is_some() -> None:
    dice = np.random.default_rng(3)
    past = days(dice, 1000)
    found = compare(GroupSums(), past, RULE)
    assert found.status == Status.NO_TRAFFIC
    assert found.reason.startswith("nothing was counted; usually it is ")
    assert (found.value, found.low, found.change, found.support) == (None, None, None, 0)
    assert compare(GroupSums(), [*past, GroupSums()], RULE).status == Status.TOO_LITTLE
    assert compare(GroupSums(), days(dice, 5), RULE).status == Status.TOO_LITTLE
    one_person = GroupSums.of([(3, 10, 100_000)])
    assert compare(GroupSums(), [one_person] * 7, RULE).status == Status.TOO_LITTLE


def test_one_group_of_users_says_nothing() -> None:
    dice = np.random.default_rng(4)
    past = days(dice, 20_000)
    assert compare(GroupSums.of([(5, 0, 100_000)]), past, RULE).status == Status.TOO_LITTLE
    assert compare(past[0], [GroupSums.of([(5, 9, 99)])] * 7, RULE).status == Status.TOO_LITTLE


def test_one_user_fires_nothing() -> None:
    """Somebody who looks at a third of everything and never clicks."""
    dice = np.random.default_rng(5)
    past = days(dice, 20_000)
    now = window(dice, 0.05, 20_000) + GroupSums.of([(7, 0, 200_000)])
    found = compare(now, past, RULE)
    assert found.change is not None
    assert found.change < -0.3
    assert found.status not in (Status.DROPPED, Status.RISEN)


@given(WINDOW, st.lists(WINDOW, min_size=3, max_size=5), st.randoms(use_true_random=False))
def test_neither_the_order_of_days_nor_that_of_groups_matters(
    now: GroupSums, past: list[GroupSums], dice: object
) -> None:
    order = list(range(GROUPS))
    dice.shuffle(order)  # type: ignore[attr-defined]

    def mixed(one: GroupSums) -> GroupSums:
        return GroupSums(tuple(one.x[i] for i in order), tuple(one.y[i] for i in order))

    found = compare(now, past, RULE)
    other = compare(mixed(now), [mixed(day) for day in reversed(past)], RULE)
    assert found.status == other.status
    for name in ("value", "low", "high", "baseline", "change", "change_low", "change_high"):
        one, two = getattr(found, name), getattr(other, name)
        assert (one is None) == (two is None), name
        assert one is None or one == pytest.approx(two, rel=1e-9, abs=1e-12), name


def test_units_change_values_and_nothing_else() -> None:
    dice = np.random.default_rng(6)
    past, now = days(dice, 1000), window(dice, 0.04, 1000)
    small, whole = compare(now, past, RULE), compare(now, past, RULE, unit=1e-6)
    for name in ("value", "low", "high", "baseline"):
        assert getattr(whole, name) == pytest.approx(getattr(small, name) * 1e-6)
    assert (whole.change_low, whole.status) == (small.change_low, small.status)


@pytest.mark.parametrize("seed", range(5))
def test_between_days_it_is_dersimonian_and_laird_s_without_tails(seed: int) -> None:
    dice = np.random.default_rng(seed)
    past = [
        window(dice, 0.05 * np.exp(0.1 * dice.standard_normal()), int(n))
        for n in dice.integers(500, 5000, 9)
    ]
    found = Past.of(past)
    assert found.unit_variance is not None
    support = np.array([day.support for day in past])
    values = np.array([float(day.value or 0) for day in past])
    unit, kept = found.unit_variance, np.argsort(values)[1:-1]
    fixed = float((support[kept] * values[kept]).sum() / support[kept].sum())
    assert set(found.kept) == set(kept.tolist())
    assert float(found.value or 0) == pytest.approx(fixed, rel=1e-12)
    residuals = np.sqrt(support) * (values - fixed)
    tails = np.asarray(winsorize(residuals, (0.12, 0.12)))
    spread = ((tails - tails.mean()) ** 2).sum() / (1 - 2 / 9) ** 2
    between = (spread - 8 * unit) / (support.sum() - (support**2).sum() / support.sum())
    assert found.between == pytest.approx(max(0.0, between), rel=1e-9, abs=1e-12)
    assert found.between_df == 6


@pytest.mark.parametrize("seed", range(5))
def test_of_three_days_it_is_dersimonian_and_laird_s(seed: int) -> None:
    """So few are not trimmed."""
    dice = np.random.default_rng(seed)
    past = [window(dice, ctr, 3000) for ctr in (0.04, 0.05, 0.06)]
    found = Past.of(past)
    assert found.unit_variance is not None
    support = np.array([day.support for day in past])
    values = np.array([float(day.value or 0) for day in past])
    theirs = combine_effects(values, found.unit_variance / support, method_re="dl")
    z = np.sqrt(support) * (values - theirs.mean_effect_fe)
    about = z.sum() ** 2 / 3 / (support.sum() - (support**2).sum() / support.sum())
    assert found.between + about == pytest.approx(max(0.0, theirs.tau2), rel=1e-9)


NOISES = st.builds(
    Noise,
    sampling=st.floats(0.0, 0.3),
    own=st.floats(0.0, 0.3),
    common=st.floats(0.0, 0.3),
    t=st.floats(1.0, 8.0),
)


@given(NOISES, st.floats(0.0, 3.0))
def test_the_interval_is_all_factors_that_are_not_contradicted(noise: Noise, value: float) -> None:
    """Against trying out factors up to 20, one by one."""
    u = np.linspace(0.0, 20.0, 4001)
    noises = np.maximum(u * noise.sampling, noise.own) + u * u * noise.common
    inside = (value - u) ** 2 <= noise.t**2 * noises
    low, high = noise.factors(value, 1.0)
    near = 1e-6 * (1 + u)
    assert not inside[(u < low - near) | (u > high + near)].any()
    assert low <= value * (1 + 1e-9) + 1e-9
    assert high >= value * (1 - 1e-9)
    assert inside[(u > low + near) & (u < high - near)].all()


def test_where_days_differ_wildly_nothing_bounds_a_rise() -> None:
    assert Noise(0.01, 0.0, 0.5, 3.0).factors(1.0, 1.0)[1] == inf
    assert Noise(0.01, 0.0, 0.5, 3.0).factors(-1.0, 1.0) == (-inf, inf)


def test_values_below_0_have_an_interval() -> None:
    """A loss per request that was a gain."""
    past = [GroupSums(tuple(range(d, d + GROUPS)), (10,) * GROUPS) for d in (40, 41, 42)]
    now = GroupSums(tuple(-n for n in range(20, 36)), (10,) * GROUPS)
    found = compare(now, past, RULE)
    assert found.status == Status.DROPPED
    assert found.change_high is not None
    assert found.change_high < -1
    assert found.high is not None
    assert found.high < 0


@pytest.mark.parametrize(
    ("users", "spread", "n"), [(200, 0.0, 7), (1000, 0.0, 7), (1000, 0.1, 7), (1000, 0.1, 14)]
)
@long
def test_without_a_change_intervals_contain_none(users: int, spread: float, n: int) -> None:
    """Each end misses in at most 1 - level of all windows, and chance."""
    dice, missed, runs = np.random.default_rng(users + n), np.zeros(2), 250
    for _ in range(runs):
        now, *past = days(dice, users, n + 1, spread)
        found = compare(now, past, ChangeRule(level=0.95))
        missed += _misses(found)
    assert (missed / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)).all()
    assert missed.sum() > 0


def _misses(found: MetricChange) -> list[bool]:
    assert found.change_low is not None
    assert found.change_high is not None
    return [found.change_low > 0, found.change_high < 0]


def test_arrivals_are_people_not_impressions() -> None:
    dice = np.random.default_rng(8)
    alone = np.mean([arrivals(window(dice, 0.05, 800, 1.0)) for _ in range(200)])
    together = np.mean([arrivals(times(window(dice, 0.05, 800, 1.0), y=50)) for _ in range(200)])
    assert together == pytest.approx(alone, rel=0.3)
    assert arrivals(GroupSums()) == 0.0
    assert not is_never_silent([])
