"""The oracle: people who saw, clicked and liked, counted by hand."""

from __future__ import annotations

import pytest

from streamer.settings.load import parse
from streamer.settings.model import Metrics
from tests.support.rollups import every

from .oracle import OracleResult
from .timeline import T0, VARIANT, H, Log, M, value

HOUR = {"window": "1h"}
LIKES = parse(
    {
        "dimensions": [],
        "windows": {"lengths": ["1h"]},
        "metrics": {"feedback": {"like": 1.0, "conversion": 5.0}},
    }
)


def rates(result: OracleResult, feedback: str = "click", **labels: str) -> list[float | None]:
    """The positive rate in both definitions: of all users, and of those who gave any."""
    at = {**HOUR, "feedback": feedback, **labels}
    definitions = ("docs", "gorse-0.5")
    return [value(result, "positive_rate_ratio", definition=d, **at) for d in definitions]


def people(result: OracleResult, **labels: str) -> list[int | float | None]:
    """(users, hit users, hit rate, clicks per user) of the hour."""
    names = ("window_users", "window_hit_users", "user_hit_ratio", "clicks_per_user")
    return [value(result, name, **HOUR, **labels) for name in names]


# What a rate is -------------------------------------------------------------------------------


def test_published_example() -> None:
    # Three users, items shown / clicked: 4/1, 4/2, 5/0. Pooled it would be 3/13.
    log = Log()
    for user, shown, clicked in (("a", 4, 1), ("b", 4, 2), ("c", 5, 0)):
        for i in range(shown):
            log.shown(i, user_id=user, item_id=f"i{i}")
        for i in range(clicked):
            log.click(10 + i, user_id=user, item_id=f"i{i}")
    result = log.run()
    assert rates(result) == [0.25, 0.375]
    assert people(result) == [3, 2, 2 / 3, 1.0]
    assert value(result, "window_positive_users", feedback="click", **HOUR) == 2


def test_a_users_rate_is_rounded_to_billionths() -> None:
    one_of_three, two_of_three = Log(), Log()
    for item in "abc":
        one_of_three.shown(0, item_id=item)
        two_of_three.shown(0, item_id=item)
    one_of_three.click(1, item_id="a")
    two_of_three.click(1, item_id="a").click(1, item_id="c")
    assert rates(one_of_three.run()) == [0.333333333] * 2
    assert rates(two_of_three.run()) == [0.666666667] * 2
    # 1/1024 = 0.0009765625: half of a billionth goes up
    many = Log().shown(0, items=[{"item_id": f"i{i}"} for i in range(1000)])
    many.shown(0, items=[{"item_id": f"j{i}"} for i in range(24)]).click(0, item_id="i7")
    assert rates(many.run()) == [0.000976563] * 2


def test_items_are_distinct_and_others_do_not_count() -> None:
    # x three times (twice as repeats of a request), y once; x clicked twice, z never shown
    log = Log().shown(0, request_id="r").shown(1, request_id="r").shown(2)
    log.shown(3, item_id="y").click(4).click(5).click(6, item_id="z")
    result = log.run()
    assert rates(result) == [0.5, 0.5]
    assert people(result) == [1, 1, 1.0, 3.0]


def test_a_click_on_what_was_never_shown_is_a_hit_but_nothing_positive() -> None:
    result = Log().shown(0).click(1, item_id="z").run()
    assert people(result) == [1, 1, 1.0, 1.0]
    assert rates(result) == [0.0, None]
    assert value(result, "window_positive_users", feedback="click", **HOUR) is None


def test_the_order_within_the_window_does_not_matter() -> None:
    # clicked before it was shown: not attributed, but both happened in the window
    result = Log().click(0).shown(1 * M).run()
    assert rates(result) == [1.0, 1.0]
    assert people(result) == [1, 1, 1.0, 1.0]


def test_without_users_nothing_is_shown() -> None:
    result = Log().click(0).visited(0).run()
    names = ("user_hit_ratio", "clicks_per_user", "positive_rate_ratio", "window_users")
    assert not any(name.removeprefix("streamer_") in names for name, _ in result.readings)
    assert value(result, "window_clicks", **HOUR) == 1
    # A user without clicks: the rate is 0, its support absent.
    assert people(Log().shown(0).run()) == [1, None, 0.0, 0.0]


def test_nobody_is_left_out_and_it_is_said_so() -> None:
    assert value(Log().run(), "user_sample_ratio") == 1.0
    assert value(Log().shown(0).run(VARIANT), "user_sample_ratio") == 1.0


# Windows --------------------------------------------------------------------------------------


def test_the_last_time_decides_on_the_window() -> None:
    # 5m: panes of 5 s, S = 300 s: panes 1 to 60. Item a is last shown in pane 0, b again in pane 1;
    # b is clicked in pane 0 only, c in both.
    log = Log().shown(4999, item_id="a").shown(0, item_id="b").shown(5000, item_id="b")
    log.click(4999, item_id="b").shown(5000, item_id="c").click(0, item_id="c")
    log.click(5001, item_id="c").visited(5 * M)
    result = log.run()
    at = {"window": "5m"}
    docs = {"feedback": "click", "definition": "docs"}
    assert value(result, "positive_rate_ratio", **docs, **at) == 0.5
    assert value(result, "positive_rate_ratio", **docs, **HOUR) == 0.666666667
    assert value(result, "clicks_per_user", **at) == 1.0
    assert value(result, "clicks_per_user", **HOUR) == 3.0


def test_users_leave_with_their_last_impression() -> None:
    # a: seen before the hour, clicks in it. b: seen in it, clicked before.
    log = Log().shown(0, user_id="a").click(0, user_id="b").shown(0, user_id="b")
    log.click(61 * M, user_id="a").shown(60 * M, user_id="b")
    assert people(log.run()) == [1, None, 0.0, 1.0]


def test_the_last_time_is_the_largest_in_any_order_of_events() -> None:
    # an impression and a click of minute 60, then late ones of minute 0
    log = Log().shown(60 * M).shown(0, 60 * M).click(60 * M).click(0, 60 * M)
    result = log.run()
    assert people(result) == [1, 1, 1.0, 1.0]
    assert rates(result) == [1.0, 1.0]


def test_what_is_dated_beyond_stream_time_counts_as_soon_as_it_is_known() -> None:
    # all arrive at 0, so S = 0: a click and an item of five minutes later
    log = Log().shown(0).click(5 * M, 0).shown(5 * M, 0, item_id="y", user_id="v")
    result = log.run()
    assert value(result, "stream_time_seconds") == 1_700_000_040
    assert people(result) == [2, 1, 0.5, 0.0]  # window clicks have an upper edge
    assert rates(result) == [0.5, 1.0]
    assert value(result, "window_impressions", **HOUR) == 1
    # Only from the future: users, and nothing else of the window.
    alone = Log().visited(0).shown(5 * M, 0).click(5 * M, 0).run()
    assert people(alone) == [1, 1, 1.0, 0.0]
    assert value(alone, "window_impressions", **HOUR) is None


def test_a_day_later_only_the_long_window_remembers() -> None:
    settings = parse({"dimensions": [], "windows": {"lengths": ["1h", "24h"]}})
    result = Log().shown(0).click(0).shown(23 * H, user_id="v").run(settings)
    assert value(result, "window_users", window="24h") == 2
    assert value(result, "user_hit_ratio", window="24h") == 0.5
    assert people(result) == [1, None, 0.0, 0.0]


# Kinds of feedback ----------------------------------------------------------------------------


def test_every_configured_kind_has_its_rate() -> None:
    # a and b are shown; a clicked, b liked and bought, and shared, which is not configured
    log = Log().shown(0, item_id="a").shown(0, item_id="b").click(1, item_id="a")
    log.click(1, item_id="b", feedback="like").bought(2, item_id="b")
    log.click(1, item_id="b", feedback="share").click(1, item_id="a", feedback="share")
    result = log.run(LIKES)
    assert rates(result, "click") == rates(result, "like") == [0.5, 0.5]
    assert rates(result, "conversion") == [0.5, 0.5]
    assert rates(result, "share") == rates(result, "other") == [None, None]


def test_a_kind_that_nobody_gave_has_a_rate_of_zero() -> None:
    result = Log().shown(0).run(LIKES)
    for kind in ("click", "like", "conversion"):
        assert rates(result, kind) == [0.0, None]
        assert value(result, "window_positive_users", feedback=kind, **HOUR) is None


def test_conversions_count_only_if_configured_and_from_their_topic() -> None:
    bought = Log().shown(0).bought(1)
    assert rates(bought.run(), "conversion") == [None, None]
    assert rates(bought.run(LIKES), "conversion") == [1.0, 1.0]
    named_so = Log().shown(0).click(1, feedback="conversion")
    assert rates(named_so.run(LIKES), "conversion") == [0.0, None]


def test_only_clicks_are_hits() -> None:
    log = Log().shown(0).click(1, feedback="like").bought(1)
    assert people(log.run(LIKES)) == [1, None, 0.0, 0.0]
    assert rates(log.run(LIKES), "like") == [1.0, 1.0]


# Segments -------------------------------------------------------------------------------------


def test_a_user_counts_in_each_segment_and_once_in_all() -> None:
    # x shown in A and B, y in B; x clicked in A
    log = Log().shown(0, variant="A").shown(0, variant="B")
    log.shown(0, item_id="y", variant="B").click(1, variant="A")
    result = log.run(VARIANT)
    assert people(result, variant="A") == [1, 1, 1.0, 1.0]
    assert people(result, variant="B") == [1, None, 0.0, 0.0]
    assert people(result, variant="all") == [1, 1, 1.0, 1.0]
    assert rates(result, variant="A") == [1.0, 1.0]
    assert rates(result, variant="B") == [0.0, None]
    assert rates(result, variant="all") == [0.5, 0.5]


def test_feedback_counts_where_it_belongs_not_where_the_item_was_shown() -> None:
    # inherited from the impression: A; its own: C, where the user saw nothing
    log = Log().shown(0, request_id="r", variant="A").shown(0, item_id="y", variant="A")
    log.click(1, request_id="r").click(1, item_id="y", variant="C")
    result = log.run(VARIANT)
    assert people(result, variant="A") == [1, 1, 1.0, 1.0]
    assert rates(result, variant="A") == [0.5, 0.5]
    assert people(result, variant="C") == [None] * 4
    assert rates(result, variant="C") == [None, None]
    assert rates(result, variant="all") == [1.0, 1.0]
    assert people(result, variant="all") == [1, 1, 1.0, 2.0]


def test_unsettled_feedback_counts_where_it_stands_now() -> None:
    # y was shown in A, and without a variant; the click on x has no impression yet
    log = Log().shown(0, item_id="y", variant="A").shown(0, item_id="z").click(1)
    result = log.run(VARIANT)
    assert result.unsettled == [("clicks", 0, 0)]
    assert people(result, variant="unknown") == [1, 1, 1.0, 1.0]
    assert people(result, variant="A") == [1, None, 0.0, 0.0]
    log.shown(0, 1 * M, variant="A")  # it comes: the click moves
    result = log.run(VARIANT)
    assert people(result, variant="unknown") == [1, None, 0.0, 0.0]
    assert people(result, variant="A") == [1, 1, 1.0, 1.0]
    assert rates(result, variant="A") == [0.5, 0.5]


def test_conversions_inherit_too() -> None:
    settings = parse(
        {
            "dimensions": [{"name": "variant"}],
            "windows": {"lengths": ["1h"]},
            "metrics": every("variant", feedback={"conversion": 1.0}),
        }
    )
    log = Log().shown(0, request_id="r", variant="A").click(1, request_id="r")
    log.bought(2, request_id="r")
    assert rates(log.run(settings), "conversion", variant="A") == [1.0, 1.0]
    assert rates(log.run(settings), "conversion", variant="unknown") == [None, None]


def bounded(mine: int, theirs: int) -> OracleResult:
    """User u sees x in A and in B and clicks it in A; another sees C; one value is kept."""
    settings = parse(
        {
            "dimensions": [{"name": "variant", "max_values": 1}],
            "windows": {"lengths": ["1h"]},
            "metrics": every("variant"),
        }
    )
    log = Log().shown(0, variant="A", p=mine).shown(0, variant="B", p=mine)
    log.click(1, variant="A", p=mine).shown(0, variant="X", user_id="v", p=theirs)
    return log.run(settings)


def test_nobody_knows_the_users_of_values_that_only_readers_fold() -> None:
    # Hashes ascend from X over B to A: readers keep X, u's partition keeps B.
    apart = bounded(0, 1)
    assert people(apart, variant="X") == [1, None, 0.0, 0.0]
    assert people(apart, variant="other") == [None] * 4
    assert rates(apart, variant="other") == [None, None]
    assert value(apart, "inexact", metrics="users", cause="kept_values") == 1
    assert people(apart, variant="all") == [2, 1, 0.5, 0.5]
    together = bounded(0, 0)
    assert people(together, variant="X") == [1, None, 0.0, 0.0]
    assert people(together, variant="other") == [1, 1, 1.0, 1.0]
    assert rates(together, variant="other") == [1.0, 1.0]
    assert people(together, variant="all") == [2, 1, 0.5, 0.5]


def test_a_user_in_two_partitions_is_two() -> None:
    result = Log().shown(0).shown(0, p=1).click(1, p=1).run()
    assert people(result) == [2, 1, 0.5, 0.5]


def test_coverage_is_0_where_only_a_longer_window_has_users() -> None:
    document = {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["10m", "1h"]},
        "metrics": {**every("variant"), "families": [*Metrics().families, "diversity"]},
    }
    settings = parse(document)
    log = Log().shown(0, user_id="u", variant="A").shown(0, user_id="v", variant="B")
    log.shown(30 * M, user_id="v", variant="B").click(30 * M, user_id="u", variant="C")
    found = {
        (labels["window"], labels["variant"]): x
        for (name, pairs), x in log.run(settings).readings.items()
        if name == "streamer_user_coverage_ratio" and (labels := dict(pairs))
    }
    shown = {"all": 1.0, "A": 1.0, "B": 1.0}
    assert found == {
        **{("1h", variant): x for variant, x in shown.items()},
        **{("10m", "all"): 0.5, ("10m", "A"): 0.0, ("10m", "B"): 1.0},
    }


# Nobody's events --------------------------------------------------------------------------------

MEANS = parse(
    {
        "dimensions": [],
        "windows": {"lengths": ["1h"]},
        "ratios": [
            {
                "name": "spent",
                "numerator": {"kind": "conversions", "field": "value"},
                "denominator": {"kind": "people"},
            }
        ],
    }
)


def test_events_of_nobody_are_in_no_mean_over_users() -> None:
    of_users = Log()
    for n in range(100):
        of_users.shown(n, user_id=f"u{n}")
    for n in range(60):
        of_users.click(200 + n, user_id=f"u{n}")
        of_users.bought(300 + n, user_id=f"u{n}", value=2.5)
    without = of_users.run(MEANS)
    whole = of_users.shown(440, user_id=None, request_id="r")
    whole.click(441, user_id=None, request_id="r")
    whole.click(442, user_id="").click(443, user_id=None).bought(444, user_id=None, value=40.0)
    found = whole.run(MEANS)
    spent = {"ratio": "spent", **HOUR}
    assert value(found, "window_clicks", **HOUR) == 63
    assert value(found, "clicks_per_user", **HOUR) == 0.6
    assert value(found, "window_ratio_numerator", **spent) == 150
    assert value(found, "window_conversion_value", **HOUR) == 190
    assert value(found, "ratio", **spent) == 1.5
    for end in ("lower", "upper"):
        for name, labels in (("clicks_per_user", HOUR), ("ratio", spent)):
            its = value(found, f"{name}_{end}", **labels)
            assert its == value(without, f"{name}_{end}", **labels) is not None


# At the edges -----------------------------------------------------------------------------------


def test_users_beyond_the_window_do_not_disturb_the_others() -> None:
    # Dated ahead of stream time, so that only metrics of users see it: they have no upper edge.
    log = Log().shown(0, variant="A", surface="home").shown(0, variant="A", surface="search")
    log.shown(4 * M, 0, user_id="v", variant="B", surface="home")
    result = log.run(parse({"windows": {"lengths": ["1m", "1h"]}}))
    at = {"window": "1m", "variant": "A", "surface": "all"}
    assert value(result, "window_impressions", **at) == 2


@pytest.mark.parametrize("lengths", [["24h"], ["31d"], ["1m", "90s"]])
def test_the_first_moments_of_1970_count(lengths: list[str]) -> None:
    log = Log()
    for i in range(4):
        log.shown(1000 * i - T0, user_id=f"u{i}")
    result = log.run(parse({"windows": {"lengths": lengths}, "dimensions": []}))
    assert value(result, "window_users", window=lengths[0]) == 4


@pytest.mark.parametrize("start_ms", [T0, 2_200_000_000_000, 4_000_000_000_000])
def test_times_beyond_31_bits(start_ms: int) -> None:
    log = Log()
    for i in range(60):
        log.shown(start_ms + 9000 * i - T0, user_id=f"u{i}")
    result = log.run(parse({"windows": {"lengths": ["1m", "90s"]}, "dimensions": []}))
    assert value(result, "window_users", window="90s") == 10


def test_clicks_without_any_impression() -> None:
    log = Log()
    for i in range(500):
        log.click(i, user_id=f"u{i}")
    result = log.run(parse({"windows": {"lengths": ["1m"]}}))
    everywhere = {"window": "1m", "variant": "all", "surface": "all"}
    assert value(result, "window_clicks", **everywhere) == 500
