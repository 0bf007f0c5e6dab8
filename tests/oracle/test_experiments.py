"""The oracle: what experiments sum up over their users, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.stats.experiments.caps import EDGES
from tests.oracle.acceptance import accept
from tests.oracle.experiment_metrics import ratio_of
from tests.oracle.experiments import ArmTruth, ExperimentTruth, range_truth, truth_of
from tests.oracle.joining import join
from tests.oracle.timeline import T0, H, Log, M

DAY = T0 // DAY_MS
"""The day of the logs' first events; it ends after 1 h 46 min."""
A: dict[str, Any] = {"variant": "A"}
B: dict[str, Any] = {"variant": "B"}


def made(
    *metrics: str,
    start: int = 0,
    end: int | None = None,
    covariate_days: int = 0,
    arms: str = "AB",
    outcomes: str = "exposed",
    cap: float | None = None,
    **sections: Any,
) -> Settings:
    """An experiment `e` of the arms A and B; its days are counted from that of T0."""
    experiment: dict[str, Any] = {
        "name": "e",
        "dimension": "variant",
        "control": arms[0],
        "split": dict.fromkeys(arms, 1),
        "start": date_of(DAY + start),
        "covariate_days": covariate_days,
        "outcomes": outcomes,
        "metrics": [{"name": name} | ({} if cap is None else {"cap": cap}) for name in metrics],
    }
    if end is not None:
        experiment["end"] = date_of(DAY + end)
    return parse(
        {
            "dimensions": [{"name": "variant"}],
            "metrics": {"k": [1, 5, 10]},
            **sections,
            "experiments": [experiment],
        }
    )


def of(truth: ExperimentTruth, metric: str, day: int, arm: str = "A") -> ArmTruth:
    return truth.sums["e", metric, arm, DAY + day]


def mixed(truth: ExperimentTruth) -> list[int]:
    """By day."""
    return [n for _, n in sorted(truth.mixed.items())]


def ranged(log: Log, settings: Settings, first: int, last: int) -> dict[tuple[str, str], ArmTruth]:
    verdict = accept(log.records, settings)
    joins = join(verdict, settings)
    return range_truth(verdict, joins, settings, "e", DAY + first, DAY + last)


# Users ----------------------------------------------------------------------------------------


def test_squares_are_of_users_not_of_days() -> None:
    # u clicks once a day; w sees two items on the second day and clicks nothing
    log = Log().shown(0, **A).click(1, **A).click(DAY_MS, **A)
    log.shown(DAY_MS, user_id="w", items=[{"item_id": "x"}, {"item_id": "y"}], **A)
    truth = log.truth(made("ctr_ratio", "clicks_per_user"))
    assert of(truth, "ctr_ratio", 0) == ArmTruth(n=1, ny=1, nz=1, x=1, xx=1, y=1, yy=1, xy=1)
    assert of(truth, "ctr_ratio", 1) == ArmTruth(n=2, ny=2, nz=1, x=2, xx=4, y=3, yy=5, xy=2)
    assert of(truth, "clicks_per_user", 1) == ArmTruth(n=2, nz=1, x=2, xx=4, y=2, yy=2, xy=2)
    assert of(truth, "ctr_ratio", 1, "B") == ArmTruth()
    assert len(truth.sums) == (1 + 1 + 4) * 2 * 2  # of the primary metric four ages, too
    assert mixed(truth) == [0, 0]


def test_who_saw_two_arms_is_left_out_of_every_day() -> None:
    log = Log().shown(0, user_id="w", **B).shown(DAY_MS, **A).shown(2 * DAY_MS, **B)
    log.click(2 * DAY_MS, user_id="w", **B)
    truth = log.truth(made("ctr_ratio"))
    assert [of(truth, "ctr_ratio", day).n for day in range(3)] == [0, 0, 0]
    assert [of(truth, "ctr_ratio", day, "B").n for day in range(3)] == [1, 1, 1]
    assert mixed(truth) == [0, 1, 1]
    # With the end before the second arm, or the start after the first, there was one only.
    ended = log.truth(made("ctr_ratio", end=1))
    assert (of(ended, "ctr_ratio", 1).n, mixed(ended)) == (1, [0, 0])
    begun = log.truth(made("ctr_ratio", start=2, covariate_days=2))
    assert (of(begun, "ctr_ratio", 2, "B").n, mixed(begun)) == (1, [0])


def test_outcomes_count_from_the_first_exposure_on() -> None:
    # u: clicked before, at and after the exposure, on both days; w is never exposed.
    log = Log().click(0).click(5, user_id="w", **A).shown(2, **A).click(1).click(2, **B)
    log.click(DAY_MS, item_id="z").bought(DAY_MS, value=3).shown(3, variant="C").shown(4)
    truth = log.truth(made("ctr_ratio", "conversion_value_per_user"))
    assert of(truth, "ctr_ratio", 0) == ArmTruth(n=1, ny=1, nz=1, x=1, xx=1, y=3, yy=9, xy=3)
    assert of(truth, "ctr_ratio", 1) == ArmTruth(n=1, ny=1, nz=1, x=2, xx=4, y=3, yy=9, xy=6)
    assert of(truth, "conversion_value_per_user", 1).x == 3_000_000
    assert (of(truth, "ctr_ratio", 0, "B"), mixed(truth)) == (ArmTruth(), [0, 0])
    assert truth.outside == {("e", DAY): (2, 1), ("e", DAY + 1): (2, 1)}


def test_an_exposure_that_comes_late_is_the_first_all_the_same() -> None:
    log = Log().shown(5 * M, **A).click(2 * M).shown(1 * M, 6 * M, **A)
    truth = log.truth(made("ctr_ratio"))
    assert of(truth, "ctr_ratio", 0) == ArmTruth(n=1, ny=1, nz=1, x=1, xx=1, y=2, yy=4, xy=2)
    assert truth.outside == {("e", DAY): (0, 0)}


def test_users_of_several_arms_have_no_outcomes_outside() -> None:
    log = Log().click(0).shown(1, **A).click(2).shown(3, **B).click(4)
    truth = log.truth(made("ctr_ratio"))
    assert (mixed(truth), truth.outside) == ([1], {("e", DAY): (0, 0)})


def test_attributed_users_are_in_from_their_first_impression() -> None:
    # Clicked on the first day, shown on the second: then the click counts, too.
    log = Log().click(0, **A).shown(DAY_MS, **A).click(DAY_MS, user_id="w", **A)
    truth = log.truth(made("ctr_ratio", outcomes="attributed"))
    assert of(truth, "ctr_ratio", 0) == ArmTruth()
    assert of(truth, "ctr_ratio", 1) == ArmTruth(n=1, ny=1, nz=1, x=1, xx=1, y=1, yy=1, xy=1)
    exposed = log.truth(made("ctr_ratio"))
    assert of(exposed, "ctr_ratio", 1) == ArmTruth(n=1, ny=1, y=1, yy=1)


def test_attributed_things_under_other_values_do_not_count() -> None:
    # shown: A, unknown, C (no arm); clicked: A, B (an arm he never saw), unknown and unattributed
    log = Log().shown(0, **A).shown(1).shown(2, variant="C").shown(3, user_id="w")
    log.click(4, **A).click(5, **B).click(6, item_id="z")
    truth = log.truth(made("ctr_ratio", outcomes="attributed"))
    assert of(truth, "ctr_ratio", 0) == ArmTruth(n=1, ny=1, nz=1, x=1, xx=1, y=1, yy=1, xy=1)
    assert (of(truth, "ctr_ratio", 0, "B"), mixed(truth)) == (ArmTruth(), [0])


def spent(*values: float) -> Log:
    """Users who bought for these amounts, every second one in arm B."""
    log = Log()
    for i, value in enumerate(values):
        log.shown(0, user_id=f"u{i}", variant="AB"[i % 2])
        if value:
            log.bought(1, user_id=f"u{i}", value=value)
    return log


@pytest.mark.parametrize(
    ("cap", "most"), [(50.0, 50), (2e6, 123_456), (0.5, 2), (0.75, 3.5), (0.999, 130_000)]
)
def test_a_cap_is_an_amount_or_a_quantile_over_all_arms(cap: float, most: float) -> None:
    values = [0, 0, 1, 2, 3.5, 123_456]
    truth = spent(*values).truth(made("conversion_value_per_user", cap=cap))
    for arm, its in (("A", values[::2]), ("B", values[1::2])):
        expected = [round(1e6 * min(value, most)) for value in its]
        found = of(truth, "conversion_value_per_user", 0, arm)
        assert (found.x, found.xx) == (sum(expected), sum(x * x for x in expected))
        assert found.nz == sum(map(bool, expected))


def test_quantiles_lie_in_buckets() -> None:
    """Whose upper edges are integers of two digits at most, in millionths here."""
    some = [edge for edge in EDGES if edge <= 10**12][::9]
    millionths = [*some, *(edge + 1 for edge in some), *(edge - 1 for edge in some if edge)]
    log = spent(*(number / 1e6 for number in millionths))
    name = "conversion_value_per_user@p50"
    truth = log.truth(made(name, "conversion_value_per_user"))
    found = [of(truth, name, 0, arm) for arm in "AB"]
    assert sum(arm.n for arm in found) == len(millionths)
    assert {edge for arm in found for edge, _ in arm.edges} >= set(some)


def test_feedback_takes_its_arm_from_the_impression() -> None:
    log = Log().shown(0, **A).click(1).bought(2, value=2).click(3, variant="unknown")
    truth = log.truth(made("ctr_ratio", "cvr_ratio"))
    assert of(truth, "ctr_ratio", 0) == ArmTruth(n=1, ny=1, nz=1, x=2, xx=4, y=1, yy=1, xy=2)
    assert of(truth, "cvr_ratio", 0) == ArmTruth(n=1, ny=1, nz=1, x=1, xx=1, y=2, yy=4, xy=2)


def test_arms_are_counted_beyond_the_bound_of_values() -> None:
    log = Log().shown(0, **A).shown(0, user_id="w", **B).shown(0, user_id="x", variant="C")
    few: dict[str, Any] = {"dimensions": [{"name": "variant", "max_values": 0}]}
    truth = log.truth(made("ctr_ratio", **few))
    assert [of(truth, "ctr_ratio", 0, arm).n for arm in "AB"] == [1, 1]


def test_one_name_in_two_partitions_is_two_users() -> None:
    truth = Log().shown(0, **A).shown(0, p=1, **B).truth(made("ctr_ratio"))
    assert [of(truth, "ctr_ratio", 0, arm).n for arm in "AB"] == [1, 1]


# Days -----------------------------------------------------------------------------------------


def test_days_go_from_the_start_to_stream_time_or_the_end() -> None:
    log = Log().shown(0, **A).shown(3 * DAY_MS, **A)

    def days(**when: Any) -> list[int]:
        truth = log.truth(made("ctr_ratio", **when))
        assert {key[-1] for key in truth.sums} == {day for _, day in truth.mixed}
        return sorted(day - DAY for _, day in truth.mixed)

    assert days() == [0, 1, 2, 3]
    assert days(start=1, end=2) == [1, 2]
    assert days(start=3, end=9) == [3]
    assert days(start=4) == []
    nothing = truth_of([], made("ctr_ratio"))
    assert (nothing.sums, nothing.mixed) == ({}, {})
    assert ranged(Log(), made("ctr_ratio"), 0, 0) == {}


def test_what_is_dated_beyond_stream_time_is_of_its_own_day() -> None:
    # Stream time is a minute before midnight; the second arm was seen two minutes later.
    log = Log().shown(105 * M, **A).shown(107 * M, 105 * M, **B)
    truth = log.truth(made("ctr_ratio"))
    assert (of(truth, "ctr_ratio", 0).n, mixed(truth)) == (0, [1])


def test_covariates_are_of_the_days_before_under_any_value() -> None:
    # u before: A on day 0 (too early), B and unknown on day 1, each clicked; w has no past
    log = Log().shown(0, **A).shown(DAY_MS, **B).click(DAY_MS, **B).shown(DAY_MS + 1, item_id="y")
    log.click(DAY_MS + 2, item_id="y").click(DAY_MS + 3, item_id="z")
    for user in "uw":
        log.shown(2 * DAY_MS, user_id=user, **A)
    log.click(2 * DAY_MS, **A)
    names = ("ctr_ratio", "clicks_per_user")
    truth = log.truth(made(*names, start=2, covariate_days=1))
    plain = {"n": 2, "nz": 1, "x": 1, "xx": 1, "y": 2, "yy": 2, "xy": 1}
    # u: x = 1, y = 1, u = 3, v = 2; w: 0, 1, 0, 0
    products = {"u": 3, "uu": 9, "v": 2, "vv": 4, "uv": 6, "xu": 3, "xv": 2, "yu": 3, "yv": 2}
    assert of(truth, "ctr_ratio", 2) == ArmTruth(ny=2, **plain, **products)
    # y and v are 1 for both
    products = {"u": 3, "uu": 9, "v": 2, "vv": 2, "uv": 3, "xu": 3, "xv": 1, "yu": 3, "yv": 2}
    assert of(truth, "clicks_per_user", 2) == ArmTruth(**plain, **products)
    without = log.truth(made(*names, start=2))
    both = {ArmTruth(**plain), ArmTruth(ny=2, **plain)}
    assert {of(without, name, 2) for name in names} == both


def test_a_range_of_days() -> None:
    # u on all days, w on the first, m in two arms, of which one lies outside of the range
    log = Log().shown(0, **A).shown(0, user_id="w", **A).shown(0, user_id="m", **B)
    log.shown(DAY_MS, **A).shown(DAY_MS, user_id="m", **A).shown(2 * DAY_MS, **A)
    log.click(0, **A).click(DAY_MS, **A).click(DAY_MS, **A).click(DAY_MS, user_id="w", **A)
    settings = made("ctr_ratio")
    found = ranged(log, settings, 1, 2)
    both = ArmTruth(n=2, ny=1, nz=2, x=3, xx=5, y=2, yy=4, xy=4)  # w was exposed before
    assert (found["ctr_ratio", "A"], found["ctr_ratio", "B"]) == (both, ArmTruth())
    one = ArmTruth(n=1, ny=1, nz=1, x=2, xx=4, y=2, yy=4, xy=4)
    attributed = ranged(log, made("ctr_ratio", outcomes="attributed"), 1, 2)
    assert attributed["ctr_ratio", "A"] == one
    whole = ranged(log, settings, 0, 2)
    assert whole["ctr_ratio", "A"] == of(log.truth(settings), "ctr_ratio", 2)
    past = ranged(log, made("ctr_ratio", start=1, covariate_days=1), 2, 2)
    assert past["ctr_ratio", "A"] == ArmTruth(
        n=2, ny=1, y=1, yy=1, u=1, uu=1, v=2, vv=2, uv=1, yu=1, yv=1
    )


# Metrics --------------------------------------------------------------------------------------


def test_values_of_conversions() -> None:
    names = [f"conversion_value_per_{per}" for per in ("user", "click", "impression")]
    log = Log().shown(0, **A).shown(0, **A).click(1, **A).bought(2, value=1.5, **A)
    log.bought(3, value=0.25, **A).shown(4, user_id="w", **A).bought(5, user_id="w", value=2, **A)
    truth = log.truth(made(*names))
    x, xx = 3_750_000, 1_750_000**2 + 2_000_000**2
    sums = [of(truth, name, 0) for name in names]
    assert {(s.n, s.x, s.xx) for s in sums} == {(2, x, xx)}
    assert [(s.y, s.yy, s.xy) for s in sums] == [
        (2, 2, x),
        (1, 1, 1_750_000),
        (3, 5, 2 * 1_750_000 + 2_000_000),
    ]


def test_attributed_feedback_is_of_the_impressions_day() -> None:
    # Shown half an hour before midnight, clicked twice and bought after it; y is never shown.
    before, after = 90 * M, 110 * M
    log = Log().shown(before, **A).click(after).click(after).bought(after)
    log.click(after, item_id="y", **A)
    names = ("ctr_attributed_ratio", "cvr_attributed_ratio", "ctr_ratio")
    truth = log.truth(made(*names))
    for day in (0, 1):
        for name in names[:2]:
            assert of(truth, name, day) == ArmTruth(n=1, nz=1, ny=1, x=1, xx=1, y=1, yy=1, xy=1)
    assert [of(truth, "ctr_ratio", day).x for day in (0, 1)] == [0, 3]


def test_kinds_of_feedback() -> None:
    log = Log().shown(0, **A).shown(0, item_id="y", **A).click(1).bought(2).bought(3)
    for kind in ("like", "like", "share"):
        log.click(4, feedback=kind)
    names = {
        "positive_rate_ratio": 1,
        "positive_rate_ratio.click": 1,
        "positive_rate_ratio.like": 2,
        "positive_rate_ratio.conversion": 2,
    }
    metrics = {"feedback": {"like": 1.0, "conversion": 3.0}}
    truth = log.truth(made(*names, metrics=metrics))
    for name, x in names.items():
        assert of(truth, name, 0) == ArmTruth(n=1, ny=1, nz=1, x=x, xx=x * x, y=2, yy=4, xy=2 * x)


def test_dwell_counts_each_viewing_once() -> None:
    # A click and a session report the same 3 seconds, w's session of 2 and, an hour later, of 5.
    log = Log().shown(0, request_id="r", **A).click(1, request_id="r", dwell_ms=3000)
    log.visited(2, action="dwell", request_id="r", dwell_ms=2500)
    log.shown(0, user_id="w", request_id="q", **A)
    for at_ms, dwell_ms in ((1, 2000), (1 * H, 5000)):
        more: dict[str, Any] = {"user_id": "w", "request_id": "q", "dwell_ms": dwell_ms, **A}
        log.visited(at_ms, action="dwell", **more)
    truth = log.truth(made("dwell_mean_seconds"))
    sums = of(truth, "dwell_mean_seconds", 0)
    assert (sums.n, sums.x, sums.xx) == (2, 10_000, 3000**2 + 7000**2)
    assert (sums.y, sums.yy, sums.xy) == (3, 5, 3000 + 14_000)


def test_gains_of_slates() -> None:
    # Day 0: the second of two clicked, 1 / log2(3) = 0.630929754 → 630930; day 1: the first, and a
    # slate without a click.
    pair = [{"item_id": "x"}, {"item_id": "y"}]
    log = Log().shown(0, items=pair, request_id="p", **A).click(1, item_id="y", request_id="p")
    for request in "qr":
        log.shown(DAY_MS, items=pair, request_id=request, **A)
    log.click(DAY_MS, request_id="q")
    names = ("ndcg_ratio@10", "ndcg_ratio@10.engaged", "recall_ratio@1", "fcp_ratio")
    truth = log.truth(made(*names))
    x = 630_930
    for name in names[:2]:
        assert of(truth, name, 0) == ArmTruth(n=1, nz=1, ny=1, x=x, xx=x * x, y=1, yy=1, xy=x)
    x += 1_000_000
    assert of(truth, names[0], 1) == ArmTruth(n=1, nz=1, ny=1, x=x, xx=x * x, y=3, yy=9, xy=3 * x)
    assert of(truth, names[1], 1) == ArmTruth(n=1, nz=1, ny=1, x=x, xx=x * x, y=2, yy=4, xy=2 * x)
    # the second item is clicked below the cut-off, or after the one that was not: 0 + 1
    for name in names[2:]:
        assert of(truth, name, 1) == ArmTruth(
            n=1, nz=1, ny=1, x=10**6, xx=10**12, y=2, yy=4, xy=2 * 10**6
        )


def test_values_may_be_below_zero() -> None:
    items = [{"item_id": item} for item in "xyz"]
    log = Log().shown(0, items=items, **A).click(1, item_id="z", **A)
    truth = log.truth(made("kendall_tau"))
    assert of(truth, "kendall_tau", 0).x == -666_667


NAMED = made(
    "mrr", metrics={"k": [5], "conventions": {"map_ratio": ["jurity"], "kendall_tau": ["tau_b"]}}
)


@pytest.mark.parametrize(
    ("metric", "ratio"),
    [
        ("positive_rate_ratio.a.b", ("feedback.a.b", "impressions")),
        ("mrr", ("mrr", "all slates")),
        ("mrr.all", ("mrr", "all slates")),
        ("mrr.engaged", ("mrr", "engaged slates")),
        ("map_ratio@5.jurity", ("map_ratio@5.jurity", "all slates")),
        ("map_ratio@5.engaged.jurity", ("map_ratio@5.jurity", "engaged slates")),
        ("recall_ratio@5", ("recall_ratio@5", "engaged slates")),
        ("kendall_tau.tau_b", ("kendall_tau.tau_b", "contrasted slates")),
        ("gauc_ratio", ("gauc_ratio", "gauc slates")),
        ("bpr_loss", ("bpr_loss", "paired slates")),
        ("hit_sampled_ratio", ("hit_sampled_ratio", "sampled slates")),
        ("index_recall_ratio@5", ("index_recall_ratio@5", "reference slates")),
    ],
)
def test_names_of_metrics(metric: str, ratio: tuple[str, str]) -> None:
    assert ratio_of(metric, NAMED) == ratio


@pytest.mark.parametrize(
    "metric",
    [
        *("ndcg", "ndcg_ratio", "ndcg_ratio@7", "ndcg_ratio@5.jurity", "mrr.engaged.all"),
        *("recall_ratio@5.all", "gauc_ratio.engaged", "ctr_ratio.engaged", "mrr@5"),
    ],
)
def test_what_the_settings_do_not_have_is_an_error(metric: str) -> None:
    with pytest.raises(ValueError, match="metric"):
        ratio_of(metric, NAMED)


def test_a_cap_of_1_counts_users_who_do_it() -> None:
    # u converts twice, w once, z never
    log = Log()
    for user, times in (("u", 2), ("w", 1), ("z", 0)):
        log.shown(0, user_id=user, **A)
        for i in range(times):
            log.bought(1 + i, user_id=user, **A)
    for cap, total in ((1, 2), (None, 3)):
        truth = log.truth(made("conversions_per_user", cap=cap))
        found = of(truth, "conversions_per_user", 0)
        assert (found.n, found.x, found.y, found.nz) == (3, total, 3, 2)
